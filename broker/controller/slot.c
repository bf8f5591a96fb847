/* The drain slot in ZooKeeper (D3): read while loading, changed by one write after another, each a multi with
 * the check of /controller_epoch and the znode's version.
 *
 * During a term this controller is the only one that writes it, so its memory is the truth: a conflict means
 * that somebody edited the znode by hand, or that a reply was lost, and what we have is written again over
 * whatever is there. What counts for a change is that its write was acknowledged: nobody is masked, and
 * nothing moves, before that. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "controller/controller_internal.h"

static void pump(struct controller *c);

static void drop_nothing(void *arg)
{
        (void)arg; /* the operation stands in the list, which slot_forget() empties */
}

struct slot_now slot_clock(const struct controller *c)
{
        return (struct slot_now){
                .mono_ms = loop_now_ms(c->loop), .wall_ms = clock_real_ms(), .lease_ms = c->o.slot_lease_ms};
}

/* Of the partitions it hosts and that have a leader; a replica that is being added is none yet. */
static int32_t count_missing(const struct controller *c, const struct ctx_broker *b)
{
        int32_t n = 0;

        for (size_t i = 0; i < b->n_hosted; i++) {
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                const struct ctx_slot *s = &p->slots[b->hosted[i].slot];

                if (!p->has_state || p->topic->deleting || s->adding || s->removing)
                        continue;
                n += s->bounced || !ctx_in_isr(p, b->id);
        }
        return n;
}

struct slot_peer *slot_peers(struct controller *c, bool count, size_t *ret_n)
{
        struct slot_peer *peers = calloc(c->ctx.n_alive + 1, sizeof(*peers));
        size_t cursor = 0, n = 0;
        void *v;

        while (peers && n < c->ctx.n_alive && map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;
                bool wanted = b->alive && count && slot_holder_of(c->slot.cur, b->id);

                if (b->alive)
                        peers[n++] = (struct slot_peer){
                                .id = b->id, .epoch = b->epoch, .missing = wanted ? count_missing(c, b) : -1};
        }
        *ret_n = n;
        return peers;
}

/* --- writing --- */

static void publish(struct controller *c)
{
        atomic_store(&c->slot_holders, (int64_t)c->slot.cur->n_holders);
        atomic_store(&c->slot_waiting, (int64_t)c->slot.cur->n_waiting);
}

static struct slot_op *take_first(struct controller *c)
{
        struct slot_op *op = list_entry(c->slot.ops.next, struct slot_op, node);

        list_remove(&op->node);
        return op;
}

/* What ended, and what begins, by the write that has just been acknowledged. */
static void say_changes(const struct znode_slot *was, const struct znode_slot *is)
{
        for (size_t i = 0; i < is->n_ended; i++) {
                const struct slot_ended *e = &is->ended[i];

                if (slot_id_is_over(was, e->broker, e->epoch, e->drain_id) ||
                    (e->how != SLOT_END_EXPIRED && e->how != SLOT_END_REPLACED))
                        continue;
                metric_add(&controller_metric_slot_expired, e->how == SLOT_END_EXPIRED);
                slog_warning("drain-slot-lost", "a broker lost the drain slot before it was back in sync",
                             SL_INT("broker", e->broker), SL_STR("drain_id", e->drain_id),
                             SL_STR("how", slot_end_name(e->how)), SL_STR("note", e->note));
        }
        if (was->n_holders > 0 && is->n_holders == 0)
                slog_notice("drain-slot-free", "the drain slot is free again",
                            SL_INT("broker", was->holders[0].broker),
                            SL_STR("drain_id", was->holders[0].drain_id));
        if (!was->cluster_stop && is->cluster_stop)
                slog_warning("cluster-stop",
                             "all of the cluster is being stopped: nobody waits for the drain "
                             "slot, and no leadership moves",
                             SL_INT("brokers", is->n_holders));
}

static void adopt(struct controller *c, const struct zk_result *res)
{
        struct slot *s = &c->slot;
        struct znode_slot *was = s->cur;
        struct slot_op *op = take_first(c);

        s->version = s->exists ? res->op_stats[1].version : 0;
        s->exists = true;
        s->cur = s->next;
        s->next = was;
        say_changes(was, s->cur);
        publish(c);
        op->done(c, op, 0);
        drain_follow_slot(c);
        drain_serve_parked(c);
        pump(c);
}

/* Is it there, and in which version? Then the same again. */
static void on_looked(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)arg;
        c->slot.writing = false;
        if (res->r == 0 || res->r == -ENOENT) {
                c->slot.exists = res->r == 0;
                c->slot.version = res->stat.version;
                pump(c);
        }
        /* else: the next tick tries */
}

static void on_parent(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)res; /* made, or there already: the look that follows tells */
        if (ctl_zk_get(c, ZNODE_SLOT, on_looked, arg, drop_nothing) < 0)
                c->slot.writing = false;
}

static void look_again(struct controller *c)
{
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_CREATE, .path = ZNODE_STEPDOWN}};

        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_parent, NULL, drop_nothing) < 0)
                c->slot.writing = false;
}

static void on_written(struct controller *c, const struct zk_result *res, void *arg)
{
        struct slot_op *op;

        (void)arg;
        if (res->r == 0) {
                c->slot.writing = false;
                adopt(c, res);
                return;
        }
        if (ctl_multi_failed_at(res) == 0 || res->r == -EOWNERDEAD) {
                metric_add(&controller_metric_fenced, res->r != -EOWNERDEAD);
                ctl_resign_soon(c, "the drain slot was fenced: another controller was elected");
                return;
        }
        if (ctl_outcome_unknown(res->r) || res->r == -ESTALE || res->r == -ENOENT || res->r == -EEXIST) {
                look_again(c);
                return;
        }
        c->slot.writing = false;
        slog_error("drain-slot-not-written", "ZooKeeper refuses the drain slot", SL_ERR(res->r));
        op = take_first(c);
        op->done(c, op, -EIO);
        pump(c);
}

static int submit(struct controller *c)
{
        cleanup_with(buf_donep) struct buf out = {0};
        struct slot *s = &c->slot;
        struct slot_now now = slot_clock(c);
        struct zk_op ops[] = {
                ctl_epoch_check(c),
                {.type = s->exists ? ZK_OP_SET : ZK_OP_CREATE, .path = ZNODE_SLOT, .version = s->version}};
        int r;

        buf_init(&out, 0);
        slot_set_ages(s->next, &now);
        r = znode_slot_encode(s->next, &out);
        ops[1].data = r == 0 ? buf_cstr(&out) : NULL;
        if (!ops[1].data)
                return -ENOMEM;
        return ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_written, NULL, drop_nothing);
}

static void pump(struct controller *c)
{
        struct slot *s = &c->slot;

        while (!s->writing && !list_empty(&s->ops) && ctl_is_active(c) && ctl_lease(c)) {
                struct slot_op *op = list_entry(s->ops.next, struct slot_op, node);

                *s->next = *s->cur;
                if (op->apply(c, op, s->next)) {
                        s->writing = submit(c) == 0;
                        if (!s->writing)
                                return; /* no memory: the next tick tries */
                        continue;
                }
                list_remove(&op->node);
                /* Not worth a write, but worth knowing: renewals, and who waits since when. */
                *s->cur = *s->next;
                op->done(c, op, 0);
        }
}

void slot_submit(struct controller *c, struct slot_op *op)
{
        list_push_back(&c->slot.ops, &op->node);
        pump(c);
}

/* --- what happens by itself --- */

static bool settle_apply(struct controller *c, struct slot_op *op, struct znode_slot *next)
{
        struct slot_now now = slot_clock(c);
        struct slot_peer *peers;
        bool changed;
        size_t n;

        (void)op;
        peers = slot_peers(c, slot_needs_missing(next), &n);
        changed = peers && slot_settle(next, peers, n, &now);
        free(peers);
        return changed;
}

static void settle_done(struct controller *c, struct slot_op *op, int r)
{
        (void)op;
        (void)r; /* looked at again with the next tick */
        c->slot.settling = false;
}

void slot_settle_soon(struct controller *c)
{
        if (c->slot.settling || (c->slot.cur->n_holders == 0 && c->slot.cur->n_waiting == 0))
                return;
        c->slot.settling = true;
        slot_submit(c, &c->slot.settle);
}

void slot_tick(struct controller *c)
{
        pump(c);
        slot_settle_soon(c);
        drain_serve_parked(c);
}

/* --- life --- */

struct slot_loading {
        ctl_drop_fn loaded;
        void *arg;
};

/* A slot that cannot be read is nobody's: it is said, and written over with the next change (KAFKA-990). */
static void on_read(struct controller *c, const struct zk_result *res, void *arg)
{
        struct slot_loading *l = arg;
        struct slot *s = &c->slot;
        struct slot_now now = slot_clock(c);
        int r;

        if (ctl_outcome_unknown(res->r)) {
                slot_load(c, l->loaded, l->arg);
                free(l);
                return;
        }
        s->exists = res->r == 0;
        s->version = res->stat.version;
        if (s->exists) {
                r = znode_slot_decode(res->data ? res->data : "", res->data_len, s->cur);
                if (r < 0)
                        slog_error("drain-slot-malformed",
                                   "the drain slot in ZooKeeper cannot be read; it counts as free",
                                   SL_ERR(r));
                slot_adopt(s->cur, MAX(c->elected_zk_ms - res->stat.mtime_ms, INT64_C(0)), &now);
        }
        publish(c);
        l->loaded(l->arg);
        free(l);
}

void slot_load(struct controller *c, ctl_drop_fn loaded, void *arg)
{
        struct slot_loading *l = malloc(sizeof(*l));

        if (l) {
                *l = (struct slot_loading){.loaded = loaded, .arg = arg};
                if (ctl_zk_get(c, ZNODE_SLOT, on_read, l, free) == 0)
                        return;
                free(l);
        }
        ctl_resign_soon(c, "out of memory while reading the drain slot");
}

int slot_init(struct controller *c)
{
        struct slot *s = &c->slot;

        list_init(&s->ops);
        list_init(&s->parked);
        s->settle = (struct slot_op){.apply = settle_apply, .done = settle_done};
        s->cur = calloc(1, sizeof(*s->cur));
        s->next = calloc(1, sizeof(*s->next));
        return s->cur && s->next ? 0 : -ENOMEM;
}

void slot_forget(struct controller *c)
{
        struct slot *s = &c->slot;

        s->writing = false;
        while (s->ops.next && !list_empty(&s->ops)) {
                struct slot_op *op = take_first(c);

                op->done(c, op, -ECANCELED);
        }
        drain_refuse_parked(c);
        if (s->cur)
                s->cur->n_holders = s->cur->n_waiting = s->cur->n_ended = s->cur->cluster_stop = 0;
        s->exists = false;
        s->version = 0;
        atomic_store(&c->slot_holders, 0);
        atomic_store(&c->slot_waiting, 0);
}

void slot_free(struct controller *c)
{
        free(c->slot.cur);
        free(c->slot.next);
}
