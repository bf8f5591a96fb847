/* The record of the last drains; see the header.
 *
 * One znode with at most DRAIN_HISTORY_MAX records and 256 KiB. One write at a time, which carries whatever
 * has changed by then; a version that somebody else has moved on is read again and merged by drain id. */
#include "controller/drain_history.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "controller/drain_internal.h"
#include "controller/leader_return.h"

#define MAX_BYTES  (256 * 1024)
#define SWEEP_MS   1000
#define MESSAGE_ID "664118af437f44b4a964450c687577a3"
#define NO_PATH    (-2) /* neither the znode nor, perhaps, its parent is there */
#define NOT_READ   (-1)

struct extra {                 /* what only this term knows of a record */
        bool live;             /* its drain is in this controller's memory */
        int32_t moved_before;  /* by controllers before */
        int64_t busy_since_ms; /* loop's clock; 0: nothing can be moved now */
};

struct drain_history {
        struct znode_drain items[DRAIN_HISTORY_MAX];
        struct extra extra[DRAIN_HISTORY_MAX];
        size_t n;
        int32_t version;
        bool active, reading, making, writing, dirty;
        bool parent;                       /* of the znode: it is there */
        int64_t active_since_ms, swept_ms; /* loop's clock */
};

static const char *const end_names[N_DRAIN_ENDS] = {
        [DRAIN_ENDED_NOT] = "",
        [DRAIN_ENDED_DRAINED] = "drained",
        [DRAIN_ENDED_BROKER_GONE] = "broker-gone",
        [DRAIN_ENDED_UNDONE] = "undone",
        [DRAIN_ENDED_EXPIRED] = "expired",
        [DRAIN_ENDED_REPLACED] = "replaced",
        [DRAIN_ENDED_LOST] = "controller-failover",
};

const char *drain_end_name(enum drain_verdict_kind k)
{
        return end_names[k];
}

/* --- metrics --- */

#define ENDED(kind, label)                                                                                   \
        [kind] = {.type = METRIC_T_COUNTER,                                                                  \
                  .name = "stepdown_controller_drains_ended_total",                                          \
                  .help = "Drains that have ended, by verdict",                                              \
                  .labels = "verdict=\"" label "\""}
static struct metric ended[N_DRAIN_ENDS] = {
        ENDED(DRAIN_ENDED_DRAINED, "drained"),   ENDED(DRAIN_ENDED_BROKER_GONE, "broker-gone"),
        ENDED(DRAIN_ENDED_UNDONE, "undone"),     ENDED(DRAIN_ENDED_EXPIRED, "expired"),
        ENDED(DRAIN_ENDED_REPLACED, "replaced"), ENDED(DRAIN_ENDED_LOST, "controller-failover"),
};
METRIC_HISTOGRAM(duration, "stepdown_controller_drain_seconds",
                 "From the beginning of a drain until its broker was drained");
METRIC_COUNTER(write_failures, "stepdown_controller_drain_record_failures_total",
               "Writes of the record of drains that failed; they are repeated");

void drain_history_metrics_register(void)
{
        for (size_t i = DRAIN_ENDED_NOT + 1; i < N_DRAIN_ENDS; i++)
                metrics_register(&ended[i]);
        metrics_register(&duration);
        metrics_register(&write_failures);
}

void drain_history_metrics_unregister(void)
{
        for (size_t i = DRAIN_ENDED_NOT + 1; i < N_DRAIN_ENDS; i++)
                metrics_unregister(&ended[i]);
        metrics_unregister(&duration);
        metrics_unregister(&write_failures);
}

/* --- the list --- */

static void remove_at(struct drain_history *h, size_t i)
{
        znode_drain_done(&h->items[i]);
        memmove(&h->items[i], &h->items[i + 1], (h->n - i - 1) * sizeof(h->items[0]));
        memmove(&h->extra[i], &h->extra[i + 1], (h->n - i - 1) * sizeof(h->extra[0]));
        h->n--;
        memset(&h->items[h->n], 0, sizeof(h->items[0]));
        h->extra[h->n] = (struct extra){0};
}

/* The oldest that has ended, or the oldest of all. */
static void drop_oldest(struct drain_history *h)
{
        size_t i = 0;

        while (i < h->n && h->items[i].verdict[0] == '\0')
                i++;
        remove_at(h, i < h->n ? i : 0);
}

/* A drain is known by its id and by the incarnation of the broker that it drains: one id may serve a whole
 * roll. */
static ptrdiff_t find(const struct drain_history *h, int32_t broker, int64_t epoch, const char *id)
{
        for (size_t i = 0; i < h->n; i++)
                if (h->items[i].broker == broker && h->items[i].epoch == epoch &&
                    strcmp(h->items[i].id, id) == 0)
                        return (ptrdiff_t)i;
        return -1;
}

static ptrdiff_t find_drain(const struct controller *c, const struct drain *d)
{
        return find(c->history, d->b->id, d->epoch, d->id);
}

static size_t append(struct drain_history *h)
{
        if (h->n == DRAIN_HISTORY_MAX)
                drop_oldest(h);
        return h->n++;
}

/* Cut where it was cut in the middle of a character: one such text would make the whole znode unreadable. */
static void copy_text(char out[ZNODE_DRAIN_TEXT], const char *s)
{
        size_t n = MIN(strlen(s), (size_t)ZNODE_DRAIN_TEXT - 1);

        while (n > 0 && !znode_text_valid(s, n))
                n--;
        memcpy(out, s, n);
        out[n] = '\0';
}

/* --- ZooKeeper --- */

static void save(struct controller *c);

static void dirty(struct controller *c)
{
        c->history->dirty = true;
        save(c);
}

/* What another controller has written and we do not know; ours is newer where both know it. */
static void merge(struct drain_history *h, struct znode_drains *read)
{
        for (size_t i = 0, at = 0; i < read->n; i++) {
                const struct znode_drain *z = &read->items[i];
                ptrdiff_t known = find(h, z->broker, z->epoch, z->id);

                if (known >= 0 || h->n == DRAIN_HISTORY_MAX)
                        continue;
                memmove(&h->items[at + 1], &h->items[at], (h->n - at) * sizeof(h->items[0]));
                memmove(&h->extra[at + 1], &h->extra[at], (h->n - at) * sizeof(h->extra[0]));
                h->items[at] = read->items[i];
                h->extra[at] = (struct extra){0};
                read->items[i].left = NULL; /* it is ours now */
                h->n++;
                at++;
        }
}

static void on_read(struct controller *c, const struct zk_result *res, void *arg)
{
        struct drain_history *h = c->history;
        struct znode_drains read = {0};
        int r;

        (void)arg;
        h->reading = false;
        if (res->r == -ENOENT) {
                h->version = NO_PATH;
                return;
        }
        if (res->r != 0)
                return; /* the tick reads again */
        r = znode_drains_decode(res->data ? res->data : "", res->data_len, &read);
        if (r == -ENOMEM)
                return;
        if (r < 0)
                slog_warning("drain-record-malformed",
                             "the record of past drains cannot be read; it begins anew",
                             SL_INT("bytes", res->data_len));
        merge(h, &read);
        znode_drains_done(&read);
        h->version = res->stat.version;
        if (h->active)
                leader_return_active(c);
}

static void read_again(struct controller *c)
{
        struct drain_history *h = c->history;

        if (!h->reading && ctl_zk_get(c, ZNODE_DRAINS, on_read, NULL, NULL) == 0)
                h->reading = true;
}

static void on_written(struct controller *c, const struct zk_result *res, void *arg)
{
        struct drain_history *h = c->history;

        (void)arg;
        h->writing = false;
        if (res->r == 0) {
                h->version = h->version == NO_PATH ? 0 : res->op_stats[1].version;
                save(c); /* what has changed since */
                return;
        }
        h->dirty = true;
        metric_add(&write_failures, 1);
        if (ctl_multi_failed_at(res) == 0)
                ctl_resign_soon(c, "the record of a drain was fenced: another controller was elected");
        else
                h->version = NOT_READ; /* somebody else wrote, or it is not known: the tick reads again */
}

static int encode(struct drain_history *h, struct buf *out)
{
        int r;

        for (;;) {
                buf_done(out);
                r = znode_drains_encode(h->items, h->n, out);
                if (r < 0 || out->len <= MAX_BYTES || h->n <= 1)
                        break;
                drop_oldest(h);
        }
        return r < 0 ? r : buf_append(out, "", 1);
}

static void on_parent(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)arg;
        c->history->making = false;
        c->history->parent = res->r == 0 || res->r == -EEXIST;
        if (res->r != 0 && ctl_multi_failed_at(res) == 0)
                ctl_resign_soon(c, "the record of a drain was fenced: another controller was elected");
        else if (c->history->parent)
                save(c); /* else the tick tries again */
}

/* Its parent first; there is no hurry. */
static void make_parent(struct controller *c)
{
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_CREATE, .path = ZNODE_STEPDOWN}};

        c->history->making = ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_parent, NULL, NULL) == 0;
}

static void save(struct controller *c)
{
        struct drain_history *h = c->history;
        cleanup_with(buf_donep) struct buf out = {0};
        struct zk_op ops[] = {ctl_epoch_check(c),
                              {.type = h->version == NO_PATH ? ZK_OP_CREATE : ZK_OP_SET,
                               .path = ZNODE_DRAINS,
                               .version = h->version}};

        if (!h->active || !h->dirty || h->writing || h->reading || h->making || h->version == NOT_READ ||
            !ctl_lease(c))
                return;
        if (h->version == NO_PATH && !h->parent) {
                make_parent(c);
                return;
        }
        buf_init(&out, 0);
        if (encode(h, &out) < 0)
                return;
        ops[1].data = (const char *)out.data;
        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_written, NULL, NULL) == 0) {
                h->writing = true;
                h->dirty = false;
        }
}

/* --- what happens to a drain --- */

static void busy_ends(struct controller *c, struct znode_drain *z, struct extra *e)
{
        if (e->busy_since_ms > 0)
                z->busy_ms += loop_now_ms(c->loop) - e->busy_since_ms;
        e->busy_since_ms = 0;
}

static void add_left(struct znode_drain *z, const struct ctx_partition *p, enum drain_reason reason)
{
        const char *name = drain_reason_name(reason);
        size_t i = 0;

        while (i < z->n_reasons && strcmp(z->reasons[i].name, name) != 0)
                i++;
        if (i == z->n_reasons && i < ZNODE_DRAIN_REASONS) {
                (void)snprintf(z->reasons[i].name, ZNODE_DRAIN_NAME, "%s", name);
                z->reasons[i].n = 0;
                z->n_reasons++;
        }
        if (i < ZNODE_DRAIN_REASONS)
                z->reasons[i].n++;
        if (!z->left)
                z->left = calloc(ZNODE_DRAIN_LEFT, sizeof(*z->left));
        if (!z->left || z->n_left == ZNODE_DRAIN_LEFT)
                return;
        (void)snprintf(z->left[z->n_left].topic, sizeof(z->left[0].topic), "%s", p->topic->name);
        (void)snprintf(z->left[z->n_left].reason, ZNODE_DRAIN_NAME, "%s", name);
        z->left[z->n_left++].partition = p->number;
}

/* What @b leads and follows as it stands now. */
static void collect_left(const struct controller *c, const struct ctx_broker *b, struct znode_drain *z)
{
        bool zk = zk_lease_valid(c->zk);

        z->remaining = z->isr_remaining = z->single = 0;
        z->n_reasons = z->n_left = 0;
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct election_replica replicas[ZNODE_MAX_REPLICAS];
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                struct drain_partition view;
                struct drain_verdict v;

                if (p->leader != b->id && !ctx_in_isr(p, b->id))
                        continue;
                drain_view(c, b, i, zk, replicas, &view);
                drain_partition_judge(&view, &v);
                z->remaining += v.leads;
                z->isr_remaining += v.in_isr;
                z->single += v.single;
                if (v.leads || v.in_isr)
                        add_left(z, p, v.reason);
        }
}

static void close_record(struct controller *c, size_t i, enum drain_verdict_kind kind)
{
        struct znode_drain *z = &c->history->items[i];

        z->ended_ms = clock_real_ms();
        z->controller = c->o.broker_id;
        (void)snprintf(z->verdict, sizeof(z->verdict), "%s", end_names[kind]);
        c->history->extra[i].live = false;
        metric_add(&ended[kind], 1);
        slog_notice("drain-ended", "a drain has ended; this is its record", SL_MESSAGE_ID(MESSAGE_ID),
                    SL_STR("drain_id", z->id), SL_INT("broker", z->broker), SL_INT("broker_epoch", z->epoch),
                    SL_STR("verdict", z->verdict), SL_STR("reason", z->reason),
                    SL_STR("requested_by", z->requested_by), SL_INT("leaders", z->leaders),
                    SL_INT("leaders_moved", z->moved), SL_INT("leaders_remaining", z->remaining),
                    SL_INT("isr_remaining", z->isr_remaining), SL_INT("leaders_rf1", z->single),
                    SL_INT("seconds", (z->ended_ms - z->started_ms) / 1000),
                    SL_STR("blocked_by", z->n_reasons ? z->reasons[0].name : ""));
        dirty(c);
}

/* What it is about to give up. */
static void count_hosted(const struct controller *c, const struct ctx_broker *b, struct znode_drain *z)
{
        int32_t replicas = 0, preferred = 0, led = 0;

        for (size_t i = 0; i < b->n_hosted; i++) {
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                bool counts = p->has_state && p->n_slots > 1 && !p->topic->deleting;

                replicas += counts;
                preferred += counts && p->replicas[0] == b->id;
                led += counts && p->replicas[0] == b->id && p->leader == b->id;
        }
        z->replicas = MAX(z->replicas, replicas);
        if (z->preferred >= 0)
                return; /* it goes on: what it led when it began is what counts */
        z->preferred = preferred;
        z->preferred_led = led;
}

void drain_history_begin(struct controller *c, struct drain *d)
{
        struct drain_history *h = c->history;
        ptrdiff_t known = find_drain(c, d);
        size_t i = known >= 0 ? (size_t)known : append(h);
        struct znode_drain *z = &h->items[i];

        /* One that has ended and is asked for again is the same drain still: it goes on in its record. */
        if (z->verdict[0] != '\0' || known < 0) {
                z->verdict[0] = '\0';
                z->ended_ms = z->drained_ms = 0;
                z->remaining = z->preferred = -1;
                z->returned_ms = 0;
        }
        if (z->started_ms == 0)
                z->started_ms = clock_real_ms();
        copy_text(z->id, d->id);
        /* Who asks again after a change of controllers need not know why it was begun. */
        if (d->reason[0] != '\0')
                copy_text(z->reason, d->reason);
        if (d->requested_by[0] != '\0')
                copy_text(z->requested_by, d->requested_by);
        z->broker = d->b->id;
        z->epoch = d->epoch;
        z->controller = c->o.broker_id;
        z->deadline_ms = d->deadline_ms > 0 ? d->deadline_ms : z->deadline_ms;
        /* What an earlier controller moved since it wrote last shows in what is left. */
        z->moved = MAX(z->moved, z->leaders - d->b->leaders_multi);
        z->leaders = MAX(z->leaders, d->b->leaders_multi);
        count_hosted(c, d->b, z);
        if (!h->extra[i].live)
                h->extra[i].moved_before = z->moved - d->moved;
        h->extra[i].live = true;
        if (d->state == DRAIN_DRAINING)
                h->extra[i].busy_since_ms = loop_now_ms(c->loop);
        dirty(c);
}

void drain_history_changed(struct controller *c, struct drain *d, int from)
{
        ptrdiff_t i = find_drain(c, d);
        struct znode_drain *z;

        if (i < 0)
                return;
        z = &c->history->items[i];
        z->moved = c->history->extra[i].moved_before + d->moved;
        if (from == DRAIN_DRAINING)
                busy_ends(c, z, &c->history->extra[i]);
        if (d->state == DRAIN_DRAINING)
                c->history->extra[i].busy_since_ms = loop_now_ms(c->loop);
        if (from == DRAIN_DRAINED)
                z->drained_ms = 0;
        if (d->state != DRAIN_DRAINED)
                return;
        z->drained_ms = clock_real_ms();
        z->remaining = z->isr_remaining = 0;
        metric_observe_us(&duration, MAX(z->drained_ms - z->started_ms, INT64_C(0)) * 1000);
        dirty(c);
}

void drain_history_end(struct controller *c, struct drain *d, enum drain_verdict_kind kind)
{
        ptrdiff_t i = find_drain(c, d);
        struct znode_drain *z;

        if (i < 0 || !c->history->extra[i].live)
                return;
        z = &c->history->items[i];
        z->moved = c->history->extra[i].moved_before + d->moved;
        busy_ends(c, z, &c->history->extra[i]);
        collect_left(c, d->b, z);
        if (z->remaining > 0 || z->isr_remaining > 0)
                z->drained_ms = 0;
        else if (z->drained_ms == 0)
                z->drained_ms = clock_real_ms(); /* it left before the state was looked at again */
        if (kind == DRAIN_ENDED_NOT)
                kind = z->drained_ms > 0 ? DRAIN_ENDED_DRAINED : DRAIN_ENDED_BROKER_GONE;
        close_record(c, (size_t)i, kind);
}

/* --- what it took goes back (D11) --- */

static struct znode_drain *last_of(const struct controller *c, const struct ctx_broker *b)
{
        for (size_t i = c->history->n; i-- > 0;)
                if (c->history->items[i].broker == b->id)
                        return &c->history->items[i];
        return NULL;
}

bool drain_history_took_all(const struct controller *c, const struct ctx_broker *b)
{
        const struct znode_drain *z = last_of(c, b);

        return z && z->verdict[0] != '\0' && z->returned_ms == 0 && z->moved > 0 && z->preferred > 0 &&
               z->preferred_led == z->preferred;
}

void drain_history_returned(struct controller *c, const struct ctx_broker *b)
{
        struct znode_drain *z = last_of(c, b);

        if (!z || z->returned_ms > 0)
                return;
        z->returned_ms = clock_real_ms();
        dirty(c);
}

/* --- records that nobody closes --- */

/* @exact: nothing has been decided since the broker went, so what it still led can be told. */
static void close_gone(struct controller *c, size_t i, const struct ctx_broker *b, bool exact)
{
        struct znode_drain *z = &c->history->items[i];

        if (exact && b && !b->alive)
                collect_left(c, b, z);
        else if (exact && !b)
                z->remaining = z->isr_remaining = 0;
        if (exact && (!b || !b->alive) && z->remaining == 0 && z->isr_remaining == 0 && z->drained_ms == 0)
                z->drained_ms = clock_real_ms();
        if (z->remaining > 0)
                z->drained_ms = 0;
        if (z->remaining >= 0)
                z->moved = MAX(z->moved, z->leaders - z->remaining);
        close_record(c, i, z->drained_ms > 0 ? DRAIN_ENDED_DRAINED : DRAIN_ENDED_BROKER_GONE);
}

static void sweep(struct controller *c, bool exact)
{
        struct drain_history *h = c->history;
        int64_t now_ms = loop_now_ms(c->loop);

        h->swept_ms = now_ms;
        for (size_t i = 0; i < h->n; i++) {
                const struct ctx_broker *b = ctx_broker(&c->ctx, h->items[i].broker);

                if (h->items[i].verdict[0] != '\0' || h->extra[i].live)
                        continue;
                if (!b || !b->alive || b->epoch > h->items[i].epoch)
                        close_gone(c, i, b, exact);
                else if (now_ms - h->active_since_ms > c->o.drain_take_up_ms)
                        close_record(c, i, DRAIN_ENDED_LOST);
        }
}

/* --- terms --- */

int drain_history_init(struct controller *c)
{
        c->history = calloc(1, sizeof(*c->history));
        return c->history ? 0 : -ENOMEM;
}

void drain_history_forget(struct controller *c)
{
        struct drain_history *h = c->history;

        if (!h)
                return;
        while (h->n > 0)
                remove_at(h, h->n - 1);
        *h = (struct drain_history){.version = NOT_READ};
}

void drain_history_done(struct controller *c)
{
        drain_history_forget(c);
        free(TAKE_PTR(c->history));
}

void drain_history_load(struct controller *c)
{
        drain_history_forget(c);
        read_again(c);
}

void drain_history_active(struct controller *c)
{
        struct drain_history *h = c->history;

        h->active = true;
        h->active_since_ms = loop_now_ms(c->loop);
        if (h->version >= 0)
                sweep(c, true);
}

void drain_history_tick(struct controller *c)
{
        struct drain_history *h = c->history;

        if (!h->active)
                return;
        if (h->version == NOT_READ && !h->writing)
                read_again(c);
        else if (loop_now_ms(c->loop) - h->swept_ms > SWEEP_MS)
                sweep(c, false);
        save(c);
}

const struct znode_drain *drain_history_items(const struct controller *c, size_t *ret_n)
{
        *ret_n = c->history->n;
        return c->history->items;
}

bool drain_history_saved(const struct controller *c)
{
        return !c->history->dirty && !c->history->writing && c->history->version != NOT_READ;
}
