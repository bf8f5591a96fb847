/* Which brokers live: /brokers/ids, compared by czxid, so that a restart between two looks is seen (KIP-380).
 *
 * Read at processing, not when the watch fires, and once for any number of changes (KAFKA-5502, KAFKA-5879).
 * The comparison is with all brokers that live, draining or not (KAFKA-3085, KAFKA-1867). */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/slog.h"
#include "controller/controller_internal.h"
#include "controller/leader_return.h"

struct broker_waiter {
        struct list node;
        bool patient;
        ctl_drop_fn fn;
        void *arg;
};

struct found {
        int32_t id;
        int64_t epoch; /* -1: gone between the two reads */
        struct znode_broker info;
};

struct reading {
        size_t n, pending;
        bool failed;
        struct found found[];
};

struct reading_ref {
        struct reading *reading;
        size_t i;
};

static void run_waiters(struct list *l, bool patient_too)
{
        struct list now;

        list_init(&now);
        list_for_each_safe (it, tmp, l) {
                if (!patient_too && list_entry(it, struct broker_waiter, node)->patient)
                        continue;
                list_remove(it);
                list_push_back(&now, it);
        }
        while (!list_empty(&now)) {
                struct broker_waiter *w = list_entry(now.next, struct broker_waiter, node);

                list_remove(&w->node);
                w->fn(w->arg);
                free(w);
        }
}

static void reading_free(struct reading *r)
{
        for (size_t i = 0; i < r->n; i++)
                znode_broker_done(&r->found[i].info);
        free(r);
}

/* --- what a change means --- */

static void brokers_changed(struct controller *c)
{
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;

                if (b->sender)
                        sender_brokers_changed(b->sender);
        }
}

/* Partitions that it leads are without a leader from here on; those that it follows lose an ISR member. */
static void on_dead(struct controller *c, struct ctx_broker *b)
{
        slog_notice("broker-gone", "a broker has left the cluster", SL_INT("broker", b->id),
                    SL_INT("epoch", b->epoch));
        ctl_log_change(c, "Broker %d is gone; it hosted %zu replicas and led %d partitions", (int)b->id,
                       b->n_hosted, (int)b->leaders);
        sender_free(c, TAKE_PTR(b->sender), false);
        ctx_broker_set_dead(&c->ctx, b);
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                struct ctx_slot *s = &p->slots[b->hosted[i].slot];

                s->bounced = true; /* whatever comes back under this id must catch up before it counts */
                p->bounces++;
                s->stop_sent = s->stopped = s->stopping = false;
                s->delete_sent = s->delete_in_flight = false;
                if (p->topic->deleting) {
                        if (s->state != REPLICA_DELETION_SUCCESSFUL)
                                replica_set_state(c, p, s, REPLICA_DELETION_INELIGIBLE);
                        continue;
                }
                replica_set_state(c, p, s, REPLICA_OFFLINE);
                if (p->leader == b->id && p->state == PARTITION_ONLINE)
                        partition_set_state(c, p, PARTITION_OFFLINE);
                /* What is being written may name it, too. */
                if (p->has_state && (ctx_in_isr(p, b->id) || p->in_flight))
                        writer_mark(c, p, WRITER_URGENT);
        }
        /* Last: a partition it could not hand over is now an ordinary case of a dead leader. */
        drain_clear(c, b, "its broker is gone");
        b->stopping = false;
        slot_settle_soon(c);
}

void brokers_start_sender(struct controller *c, struct ctx_broker *b)
{
        int r;

        r = sender_new(c, b, &b->sender);
        if (r < 0) {
                slog_error("broker-unreachable", "a broker cannot be told anything; the controller resigns",
                           SL_INT("broker", b->id), SL_ERR(r));
                ctl_resign_soon(c, "a sender could not be made");
                return;
        }
        for (size_t i = 0; i < b->n_hosted; i++)
                sender_push_lai(b->sender, ctx_partition(&c->ctx, b->hosted[i].partition));
        for (size_t i = 0; i < c->ctx.n_indexes; i++)
                if (c->ctx.partitions[i])
                        sender_push_um(b->sender, c->ctx.partitions[i]);
}

static void on_alive(struct controller *c, struct ctx_broker *b, struct found *f)
{
        ctx_broker_set_alive(&c->ctx, b, f->epoch, &f->info);
        slog_notice("broker-up", "a broker has joined the cluster", SL_INT("broker", b->id),
                    SL_INT("epoch", b->epoch));
        ctl_log_change(c, "Broker %d is up with epoch %lld; it hosts %zu replicas", (int)b->id,
                       (long long)b->epoch, b->n_hosted);
        brokers_start_sender(c, b);
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                struct ctx_slot *s = &p->slots[b->hosted[i].slot];

                if (p->topic->deleting)
                        continue;
                replica_set_state(c, p, s, REPLICA_ONLINE);
                writer_mark(c, p, WRITER_URGENT);
        }
        deletion_resume(c, b);
        leader_return_on_back(c, b);
        drain_schedule(c); /* what other drains wait for may come back with it */
        slot_settle_soon(c);
}

static struct found *find(struct reading *r, int32_t id)
{
        for (size_t i = 0; i < r->n; i++)
                if (r->found[i].id == id && r->found[i].epoch >= 0)
                        return &r->found[i];
        return NULL;
}

static bool apply(struct controller *c, struct reading *r)
{
        bool changed = false;
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;
                struct found *f = b->alive ? find(r, b->id) : NULL;

                /* A bounce is a death and a birth (kafka-semantics §3.4). */
                if (!b->alive || (f && f->epoch == b->epoch))
                        continue;
                on_dead(c, b);
                changed = true;
        }
        for (size_t i = 0; i < r->n; i++) {
                struct ctx_broker *b;

                if (r->found[i].epoch < 0)
                        continue;
                b = ctx_broker_make(&c->ctx, r->found[i].id);
                if (!b) {
                        ctl_resign_soon(c, "out of memory for a new broker");
                        return changed;
                }
                if (b->alive)
                        continue;
                on_alive(c, b, &r->found[i]);
                changed = true;
        }
        return changed;
}

/* --- reading --- */

static void read_failed(struct controller *c)
{
        c->brokers.reading = false;
        loop_timer_arm(c->brokers.retry, RETRY_MS, 0);
}

static void read_done(struct controller *c, struct reading *r)
{
        bool again;

        if (r->failed) {
                reading_free(r);
                read_failed(c);
                return;
        }
        c->brokers.reading = false;
        if (apply(c, r))
                brokers_changed(c);
        reading_free(r);
        run_waiters(&c->brokers.waiting, true);
        again = c->brokers.again || !list_empty(&c->brokers.waiting_next);
        c->brokers.again = false;
        sender_kick_all(c);
        ctl_progress(c);
        if (again)
                brokers_refresh(c);
}

static void ref_drop(void *arg)
{
        struct reading_ref *ref = arg;

        if (--ref->reading->pending == 0)
                reading_free(ref->reading);
        free(ref);
}

static void on_broker(struct controller *c, const struct zk_result *res, void *arg)
{
        struct reading_ref *ref = arg;
        struct reading *r = ref->reading;
        struct found *f = &r->found[ref->i];

        free(ref);
        f->epoch = -1;
        if (res->r == 0) {
                if (znode_broker_decode(res->data ? res->data : "", res->data_len, &f->info) == 0)
                        f->epoch = res->stat.czxid;
                else
                        slog_error("broker-znode-malformed",
                                   "a broker's registration cannot be read; it is ignored",
                                   SL_INT("broker", f->id));
        } else if (res->r != -ENOENT) {
                r->failed = true;
        }
        if (--r->pending == 0)
                read_done(c, r);
}

static int read_one(struct controller *c, struct reading *r, size_t i)
{
        struct reading_ref *ref = malloc(sizeof(*ref));
        char path[ZNODE_PATH_SIZE];
        int rc = -ENOMEM;

        if (ref) {
                *ref = (struct reading_ref){.reading = r, .i = i};
                znode_path_broker(r->found[i].id, path);
                rc = ctl_zk_get(c, path, on_broker, ref, ref_drop);
        }
        if (rc < 0)
                free(ref);
        return rc;
}

static void on_ids(struct controller *c, const struct zk_result *res, void *arg)
{
        struct reading *r;

        (void)arg;
        r = res->r == 0 ? calloc(1, sizeof(*r) + res->n_children * sizeof(r->found[0])) : NULL;
        if (!r) {
                read_failed(c);
                return;
        }
        for (size_t i = 0; i < res->n_children; i++)
                if (parse_int32(res->children[i], 0, INT32_MAX, &r->found[r->n].id) == 0)
                        r->n++;
        r->pending = r->n + 1; /* ours, while the reads are begun */
        for (size_t i = 0; i < r->n; i++)
                if (read_one(c, r, i) < 0) {
                        r->failed = true;
                        r->pending--;
                }
        if (--r->pending == 0)
                read_done(c, r);
}

static void on_synced(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)arg;
        if (res->r != 0 || ctl_zk_children(c, ZNODE_BROKER_IDS, WATCH_BROKERS, on_ids, NULL) < 0)
                read_failed(c);
}

void brokers_refresh(struct controller *c)
{
        struct brokers *b = &c->brokers;

        if (c->state != CTL_ACTIVE && c->state != CTL_LOADING)
                return;
        if (b->reading) {
                b->again = true;
                return;
        }
        b->reading = true;
        list_splice_back(&b->waiting, &b->waiting_next);
        /* A sync first: who waits must not be answered from a server that lags. */
        if (ctl_zk_sync(c, on_synced, NULL) < 0)
                read_failed(c);
}

void brokers_release(struct controller *c)
{
        run_waiters(&c->brokers.waiting, false);
        run_waiters(&c->brokers.waiting_next, false);
}

int brokers_refresh_then(struct controller *c, ctl_drop_fn fn, void *arg, bool patient)
{
        struct broker_waiter *w = malloc(sizeof(*w));

        if (!w)
                return -ENOMEM;
        *w = (struct broker_waiter){.fn = fn, .arg = arg, .patient = patient};
        list_push_back(&c->brokers.waiting_next, &w->node);
        brokers_refresh(c);
        return 0;
}

void brokers_forget(struct controller *c)
{
        struct brokers *b = &c->brokers;

        b->reading = b->again = false;
        loop_timer_disarm(b->retry);
        run_waiters(&b->waiting, true);
        run_waiters(&b->waiting_next, true);
}
