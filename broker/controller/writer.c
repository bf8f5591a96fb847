/* Decides partitions and writes their state: multis of `check /controller_epoch` and compare-and-set (D6).
 *
 * A marked partition waits in a queue. When there is room for a multi, partitions are taken from the queues,
 * looked at as they are now (R17), and those that must change go into it. Up to eight multis are in flight,
 * so other work comes in between (R18); a partition is in one at most. An acknowledged multi is told to the
 * brokers at once, one that failed is taken apart: at operation 0 somebody else is controller; elsewhere that
 * partition is read back and the rest sent again. After a lost reply all are read back: what is found is
 * either our own write (KAFKA-1382) or the truth to start from. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "controller/controller_internal.h"
#include "controller/leader_return.h"
#include "wire/error.h"

struct batch {
        struct controller *c;
        size_t n, n_ops, bytes;
        struct writer_plan plans[WRITER_MAX_PARTITIONS];
};

int writer_reserve(struct writer *w, size_t n)
{
        struct index_queue *queues[] = {&w->urgent, &w->normal, &w->doubtful, &w->failed};
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(queues) && r >= 0; i++)
                r = index_queue_reserve(queues[i], n);
        return r;
}

void writer_done(struct writer *w)
{
        index_queue_done(&w->urgent);
        index_queue_done(&w->normal);
        index_queue_done(&w->doubtful);
        index_queue_done(&w->failed);
        w->multis = w->reads = 0;
        w->writing = 0;
}

void writer_push(struct index_queue *q, struct ctx_partition *p)
{
        if (index_queue_push(q, p->index))
                ctx_partition_ref(p);
}

static void on_pump_task(void *userdata)
{
        struct controller *c = userdata;

        c->writer.pump_posted = false;
        writer_pump(c);
}

static void pump_soon(struct controller *c)
{
        struct writer *w = &c->writer;

        if (w->pump_posted)
                return;
        w->pump_posted = true;
        w->pump_task = (struct loop_task){.fn = on_pump_task, .userdata = c};
        loop_post_task(c->loop, &w->pump_task);
}

void writer_mark(struct controller *c, struct ctx_partition *p, enum writer_urgency u)
{
        writer_push(u == WRITER_URGENT ? &c->writer.urgent : &c->writer.normal, p);
        pump_soon(c);
}

bool writer_busy_with(const struct controller *c, const struct ctx_partition *p)
{
        const struct writer *w = &c->writer;

        return p->in_flight || index_queue_has(&w->urgent, p->index) || index_queue_has(&w->normal, p->index);
}

static int on_retry(struct loop *l, void *userdata)
{
        struct controller *c = userdata;
        struct writer *w = &c->writer;
        uint32_t index;

        (void)l;
        while (index_queue_pop(&w->failed, &index)) {
                struct ctx_partition *p = ctx_partition(&c->ctx, index);

                writer_push(&w->normal, p);
                ctx_partition_unref(&c->ctx, p);
        }
        writer_pump(c);
        return 0;
}

int writer_init(struct controller *c)
{
        int r = loop_add_timer(c->loop, on_retry, c, &c->writer.retry);

        return r < 0 ? r : writer_pace_init(c);
}

void writer_retry_later(struct controller *c)
{
        struct writer *w = &c->writer;

        if (!loop_timer_armed(w->retry))
                loop_timer_arm(w->retry, RETRY_MS, 0);
}

/* --- deciding --- */

static void planned_add(struct controller *c, int32_t old_leader, int32_t new_leader, int32_t by)
{
        struct ctx_broker *b;

        if (old_leader == new_leader)
                return;
        b = ctx_broker(&c->ctx, old_leader);
        if (b)
                b->planned -= by;
        b = ctx_broker(&c->ctx, new_leader);
        if (b)
                b->planned += by;
}

/* Nothing to write. A replica that was bounced and is not in the ISR is an ordinary one again. */
static void settle_unchanged(struct ctx_partition *p)
{
        for (uint16_t i = 0; i < p->n_slots; i++)
                if (!ctx_in_isr(p, p->slots[i].broker_id))
                        p->slots[i].bounced = false;
        p->renew = false;
        p->write_failed = false;
}

/* After an election only its leader can be a bounced member of the ISR, taken because nobody else was left.
 * A new leader epoch that was asked for while an ISR was being written is still to come. */
static void settle_written(struct ctx_partition *p, const struct writer_plan *pl)
{
        bool renew = p->renew && pl->alter;

        if (p->leader >= 0 && p->bounces == pl->bounces)
                for (uint16_t i = 0; i < p->n_slots; i++)
                        p->slots[i].bounced = false;
        settle_unchanged(p);
        p->renew = renew;
        p->prefer = p->prefer && !pl->prefer;
        p->unclean = p->unclean && !pl->unclean;
}

static bool decide(struct controller *c, struct ctx_partition *p, struct writer_plan *ret)
{
        struct election_replica replicas[ZNODE_MAX_REPLICAS];
        struct election_input in;

        ret->prefer = p->prefer;
        ret->unclean = p->unclean;
        ctx_election_input(&c->ctx, p, c->o.unclean_leader_election, replicas, &in);
        election_decide(&in, &ret->to);
        if (ret->to.kind != ELECTION_NONE)
                return true;
        settle_unchanged(p);
        p->prefer = p->unclean = false; /* looked at; there was nothing to do */
        if (!p->has_state)
                return false;
        if (!alter_next(c, p, &ret->alter))
                return false;
        ret->to.n_isr = ret->alter->n_isr;
        memcpy(ret->to.isr, ret->alter->isr, (size_t)ret->alter->n_isr * sizeof(int32_t));
        return true;
}

/* true: @ret is to be written, and the partition is in flight. */
static bool plan(struct controller *c, struct ctx_partition *p, struct writer_plan *ret)
{
        *ret = (struct writer_plan){.index = p->index, .old_leader = p->leader, .bounces = p->bounces};
        if (p->topic->deleting || p->topic->forgotten)
                return false;
        if (p->in_flight) {
                p->again = true;
                return false;
        }
        if (!decide(c, p, ret))
                return false;
        ret->isr = calloc((size_t)ret->to.n_isr + 1, sizeof(int32_t));
        if (!ret->isr) {
                if (ret->alter)
                        alter_finish(c, p, ret->alter, KAFKA_UNKNOWN_SERVER_ERROR);
                writer_push(&c->writer.failed, p);
                writer_retry_later(c);
                return false;
        }
        memcpy(ret->isr, ret->to.isr, (size_t)ret->to.n_isr * sizeof(int32_t));
        ret->makes_dir = !p->has_state && !p->dir_made;
        p->in_flight = true;
        ctx_partition_ref(p);
        planned_add(c, ret->old_leader, ret->to.leader, +1);
        return true;
}

/* An alter item lives in its request's memory, which is not ours. */
void writer_plan_drop(struct controller *c, struct writer_plan *pl)
{
        planned_add(c, pl->old_leader, pl->to.leader, -1);
        free(pl->isr);
        pl->isr = NULL;
}

/* The partition may be looked at again. @p must not be used afterwards. */
void writer_release(struct controller *c, struct ctx_partition *p)
{
        p->in_flight = false;
        if (p->again || p->alters)
                writer_push(&c->writer.urgent, p);
        p->again = false;
        ctx_partition_unref(&c->ctx, p);
}

/* --- results --- */

static void log_written(struct controller *c, const struct ctx_partition *p, const struct writer_plan *pl)
{
        char isr[128];
        size_t used = 0;

        isr[0] = '\0';
        for (int32_t i = 0; i < p->n_isr && used + 16 < sizeof(isr); i++)
                used += (size_t)snprintf(isr + used, sizeof(isr) - used, "%s%d", i ? "," : "",
                                         (int)p->isr[i]);
        ctl_log_change(c, "Changed partition [%s,%d] (%s) to leader:%d leader_epoch:%d isr:%s version:%d",
                       p->topic->name, (int)p->number, pl->alter ? "isr" : election_kind_name(pl->to.kind),
                       (int)p->leader, (int)p->leader_epoch, isr, (int)p->version);
}

static void mark_new(struct ctx_partition *p)
{
        for (uint16_t i = 0; i < p->n_slots; i++)
                p->slots[i].is_new = true;
}

/* Its topic is gone: what was written went with it. */
static bool drop_if_forgotten(struct controller *c, struct ctx_partition *p, struct writer_plan *pl)
{
        if (!p->topic->forgotten)
                return false;
        if (pl->alter)
                alter_finish(c, p, pl->alter, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        writer_plan_drop(c, pl);
        writer_release(c, p);
        return true;
}

/* @version: of the state znode after the write. */
void writer_apply(struct controller *c, struct writer_plan *pl, int32_t version)
{
        struct ctx_partition *p = ctx_partition(&c->ctx, pl->index);

        if (drop_if_forgotten(c, p, pl))
                return;
        planned_add(c, pl->old_leader, pl->to.leader, -1);
        if (!p->has_state)
                mark_new(p);
        p->has_state = p->dir_made = true;
        ctx_partition_set_state(&c->ctx, p, pl->to.leader, pl->to.leader_epoch, c->epoch, version, &pl->isr,
                                pl->to.n_isr);
        settle_written(p, pl);
        partition_set_state(c, p, p->leader >= 0 ? PARTITION_ONLINE : PARTITION_OFFLINE);
        log_written(c, p, pl);
        if (pl->alter) {
                sender_announce_metadata(c, p);
                alter_finish(c, p, pl->alter, KAFKA_NONE);
        } else {
                metric_add(&controller_metric_elections[pl->to.kind], 1);
                sender_announce(c, p, pl->old_leader);
        }
        if (pl->to.kind == ELECTION_DRAIN)
                drain_on_moved(c, pl->old_leader);
        if (pl->to.kind == ELECTION_DRAIN)
                leader_return_took(c, p, (int)pl->old_leader);
        drain_on_written(c, p);
        writer_release(c, p);
}

/* To be read back before anything else happens to it. It stays in flight. */
static void doubt(struct controller *c, struct writer_plan *pl)
{
        struct writer_plan *kept = malloc(sizeof(*kept));
        struct ctx_partition *p = ctx_partition(&c->ctx, pl->index);

        if (kept) {
                *kept = *pl;
                p->doubt = kept;
        } else { /* read back without knowing what we wrote: the truth to start from */
                if (pl->alter)
                        alter_finish(c, p, pl->alter, KAFKA_UNKNOWN_SERVER_ERROR);
                writer_plan_drop(c, pl);
        }
        writer_push(&c->writer.doubtful, p);
}

static void give_back(struct controller *c, struct writer_plan *pl)
{
        struct ctx_partition *p = ctx_partition(&c->ctx, pl->index);

        if (drop_if_forgotten(c, p, pl))
                return;
        if (pl->alter)
                alter_requeue(p, pl->alter);
        writer_plan_drop(c, pl);
        p->again = true;
        writer_release(c, p);
}

void writer_try_later(struct controller *c, struct ctx_partition *p)
{
        p->write_failed = true;
        writer_push(&c->writer.failed, p);
        writer_retry_later(c);
}

static void fail(struct controller *c, struct writer_plan *pl, int r)
{
        struct ctx_partition *p = ctx_partition(&c->ctx, pl->index);

        if (drop_if_forgotten(c, p, pl))
                return;
        slog_warning("partition-write-failed", "ZooKeeper refused a partition's state; it is tried again",
                     SL_STR("topic", p->topic->name), SL_INT("partition", p->number), SL_ERR(r));
        if (pl->alter)
                alter_finish(c, p, pl->alter, KAFKA_UNKNOWN_SERVER_ERROR);
        writer_plan_drop(c, pl);
        writer_try_later(c, p);
        writer_release(c, p);
}

/* Operation @k of the multi failed with @r: its partition is set aside, the rest is sent again. */
static void take_apart(struct controller *c, struct batch *b, int k, int r)
{
        for (size_t i = 0; i < b->n; i++) {
                struct writer_plan *pl = &b->plans[i];
                bool guilty = k == pl->op || (pl->makes_dir && k == pl->op - 1);

                if (!guilty) {
                        give_back(c, pl);
                } else if (r == -ESTALE || r == -ENOENT || r == -EEXIST) {
                        metric_add(&controller_metric_write_conflicts, 1);
                        doubt(c, pl);
                } else {
                        fail(c, pl, r);
                }
        }
}

static void batch_drop(void *arg)
{
        struct batch *b = arg;

        for (size_t i = 0; i < b->n; i++)
                free(b->plans[i].isr);
        free(b);
}

static void settle_batch(struct controller *c, struct batch *b, const struct zk_result *res)
{
        int failed = ctl_multi_failed_at(res);

        if (res->r != 0 && failed > 0) {
                take_apart(c, b, failed, res->r);
                return;
        }
        for (size_t i = 0; i < b->n; i++) {
                struct writer_plan *pl = &b->plans[i];

                if (res->r == 0)
                        writer_apply(c, pl, pl->to.kind == ELECTION_NEW ? 0 : res->op_stats[pl->op].version);
                else if (ctl_outcome_unknown(res->r))
                        doubt(c, pl);
                else
                        fail(c, pl, res->r);
        }
}

static void on_multi(struct controller *c, const struct zk_result *res, void *arg)
{
        struct batch *b = arg;

        c->writer.multis--;
        c->writer.writing -= b->n;
        metric_add(&controller_metric_writes, 1);
        if (res->r != 0 && ctl_multi_failed_at(res) == 0) {
                metric_add(&controller_metric_fenced, 1);
                batch_drop(b);
                ctl_resign_soon(c, "a write was fenced: another controller was elected");
                return;
        }
        if (res->r == -EOWNERDEAD) {
                batch_drop(b);
                ctl_resign_soon(c, "the ZooKeeper session is over");
                return;
        }
        settle_batch(c, b, res);
        free(b);
        sender_kick_all(c);
        ctl_progress(c);
        writer_pump(c);
}

/* --- submitting --- */

static int add_ops(struct controller *c, struct batch *b, struct writer_plan *pl, struct arena *a,
                   struct zk_op *ops)
{
        const struct ctx_partition *p = ctx_partition(&c->ctx, pl->index);
        struct znode_state st = {.controller_epoch = c->epoch,
                                 .leader = pl->to.leader,
                                 .leader_epoch = pl->to.leader_epoch,
                                 .n_isr = (size_t)pl->to.n_isr};
        char *path = arena_alloc(a, 1, ZNODE_PATH_SIZE), *dir = arena_alloc(a, 1, ZNODE_PATH_SIZE);
        char *data = arena_alloc(a, 1, ZNODE_STATE_SIZE);

        if (!path || !dir || !data)
                return -ENOMEM;
        memcpy(st.isr, pl->to.isr, (size_t)pl->to.n_isr * sizeof(int32_t));
        (void)znode_state_encode(&st, data);
        znode_path_state(p->topic->name, p->number, path);
        if (pl->makes_dir) {
                znode_path_partition(p->topic->name, p->number, dir);
                ops[b->n_ops++] = (struct zk_op){.type = ZK_OP_CREATE, .path = dir};
        }
        pl->op = (int)b->n_ops;
        ops[b->n_ops++] = (struct zk_op){.type = p->has_state ? ZK_OP_SET : ZK_OP_CREATE,
                                         .path = path,
                                         .data = data,
                                         .version = p->version};
        return 0;
}

static int submit(struct controller *c, struct batch *b)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct zk_op *ops;
        int r;

        arena_init(&a, 0);
        ops = arena_alloc(&a, 2 * WRITER_MAX_PARTITIONS + 1, sizeof(*ops));
        if (!ops)
                return -ENOMEM;
        ops[b->n_ops++] = ctl_epoch_check(c);
        for (size_t i = 0; i < b->n; i++) {
                r = add_ops(c, b, &b->plans[i], &a, ops);
                if (r < 0)
                        return r;
        }
        return ctl_zk_multi(c, ops, b->n_ops, on_multi, b, batch_drop);
}

static size_t plan_bytes(const struct ctx_partition *p, const struct writer_plan *pl)
{
        return 2 * (strlen(p->topic->name) + 64) + 128 + (size_t)pl->to.n_isr * 12;
}

static bool take(struct controller *c, struct index_queue *q, struct batch *b)
{
        struct ctx_partition *p;
        uint32_t index;

        if (b->n == WRITER_MAX_PARTITIONS || b->bytes >= WRITER_MAX_BYTES - 4096 ||
            !index_queue_pop(q, &index))
                return false;
        p = ctx_partition(&c->ctx, index);
        if (plan(c, p, &b->plans[b->n])) {
                b->bytes += plan_bytes(p, &b->plans[b->n]);
                b->n++;
        }
        ctx_partition_unref(&c->ctx, p);
        return true;
}

static void pump_writes(struct controller *c)
{
        struct writer *w = &c->writer;

        while (w->multis < WRITER_MAX_MULTIS &&
               (w->urgent.count || (w->normal.count && writer_pace_open(c)))) {
                bool all = writer_pace_open(c);
                struct batch *b = calloc(1, sizeof(*b));
                int r;

                if (!b) {
                        writer_retry_later(c);
                        return;
                }
                while (take(c, &w->urgent, b) ||
                       (all && b->n < WRITER_PACED_PARTITIONS && take(c, &w->normal, b)))
                        continue;
                if (b->n == 0) {
                        free(b);
                        continue;
                }
                r = submit(c, b);
                if (r < 0) {
                        for (size_t i = 0; i < b->n; i++)
                                fail(c, &b->plans[i], r);
                        free(b);
                        return;
                }
                w->multis++;
                writer_pace_wrote(c, b->n);
        }
}

void writer_pump(struct controller *c)
{
        if (c->state != CTL_ACTIVE || !ctl_lease(c))
                return;
        if (!loop_timer_armed(c->writer.retry))
                writer_pump_reads(c);
        pump_writes(c);
}
