/* What is asked of drains and told about them: start, get, undo, ControlledShutdown. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "controller/drain_history.h"
#include "controller/drain_internal.h"
#include "wire/error.h"

#define SHUTDOWN_WAIT_MS                                                                                     \
        20000 /* below the 30 s after which a broker gives up on its request (KAFKA-5137)                    \
               */

enum ask { ASK_START, ASK_GET, ASK_UNDO, ASK_SHUTDOWN };

struct drain_call {
        struct ctl_call call;
        enum ask ask;
        int32_t broker_id;
        int64_t broker_epoch, deadline_ms;
        bool replace, refreshed;
        char *id, *reason, *requested_by;
        controller_drain_fn fn;
        controller_shutdown_fn shutdown_fn;
        void *userdata;
        /* a ControlledShutdown that waits */
        struct list node;
        int64_t until_ms;
};

static void call_free(struct drain_call *q)
{
        free(q->id);
        free(q->reason);
        free(q->requested_by);
        free(q);
}

/* --- status --- */

static int compare_blocked(const void *a, const void *b)
{
        const struct drain_blocked *x = a, *y = b;
        int r;

        if (x->leads != y->leads)
                return x->leads ? -1 : 1;
        r = strcmp(x->topic, y->topic);
        return r ? r : (x->partition > y->partition) - (x->partition < y->partition);
}

static struct drain_blocked describe(const struct ctx_partition *p, const struct drain_verdict *v)
{
        return (struct drain_blocked){.topic = p->topic->name,
                                      .partition = p->number,
                                      .reason = v->reason,
                                      .leads = v->leads || v->single,
                                      .never_safe = v->never_safe,
                                      .min_isr = p->topic->min_isr,
                                      .isr = p->isr,
                                      .n_isr = p->n_isr,
                                      .replicas = p->replicas,
                                      .n_replicas = p->n_slots,
                                      .detail = drain_reason_help(v->reason)};
}

struct lists {
        struct drain_blocked *led, *followed, *single;
        size_t n_led, n_followed, n_single;
};

static void list(struct drain_blocked *items, size_t *n, const struct ctx_partition *p,
                 const struct drain_verdict *v)
{
        if (*n < DRAIN_MAX_LISTED)
                items[(*n)++] = describe(p, v);
}

static void collect(struct controller *c, const struct ctx_broker *b, struct lists *lists,
                    struct drain_status *ret)
{
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct election_replica replicas[ZNODE_MAX_REPLICAS];
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                struct drain_partition view;
                struct drain_verdict v;

                if (p->leader != b->id && !ctx_in_isr(p, b->id))
                        continue;
                drain_view(c, b, i, ret->zookeeper_available, replicas, &view);
                drain_partition_judge(&view, &v);
                if (!v.leads && !v.in_isr && !v.single)
                        continue;
                if (p->reassigning && v.leads && v.stuck && v.reason != DRAIN_REASON_ZK_UNAVAILABLE)
                        v.reason = DRAIN_REASON_REASSIGNMENT;
                ret->leaders_remaining += v.leads;
                ret->isr_remaining += v.in_isr;
                ret->single_replica += v.single;
                ret->by_reason[v.reason]++;
                if (v.single)
                        list(lists->single, &lists->n_single, p, &v);
                else if (v.leads)
                        list(lists->led, &lists->n_led, p, &v);
                else
                        list(lists->followed, &lists->n_followed, p, &v);
        }
}

/* Followed partitions fill what the led ones have left of the list. */
static void hand_over(struct lists *lists, struct drain_status *ret)
{
        for (size_t i = 0; i < lists->n_followed && lists->n_led < DRAIN_MAX_LISTED; i++)
                lists->led[lists->n_led++] = lists->followed[i];
        qsort(lists->led, lists->n_led, sizeof(*lists->led), compare_blocked);
        qsort(lists->single, lists->n_single, sizeof(*lists->single), compare_blocked);
        ret->blocked = lists->led;
        ret->n_blocked = lists->n_led;
        ret->single = lists->single;
        ret->n_single = lists->n_single;
}

static void fill_drain(struct controller *c, const struct ctx_broker *b, struct arena *a,
                       struct drain_status *ret)
{
        const struct drain *d = b->drain;
        struct lists lists = {0};

        ret->state = d->state;
        (void)snprintf(ret->drain_id, sizeof(ret->drain_id), "%s", d->id);
        (void)snprintf(ret->reason, sizeof(ret->reason), "%s", d->reason);
        (void)snprintf(ret->requested_by, sizeof(ret->requested_by), "%s", d->requested_by);
        ret->since_ms = d->since_ms;
        ret->deadline_ms = d->deadline_ms;
        ret->updated_ms = d->updated_ms;
        ret->deadline_passed = d->deadline_ms > 0 && clock_real_ms() > d->deadline_ms;
        ret->leaders_initial = d->leaders_initial;
        ret->leaders_moved = d->moved;
        lists.led = arena_alloc(a, DRAIN_MAX_LISTED, sizeof(*lists.led));
        lists.followed = arena_alloc(a, DRAIN_MAX_LISTED, sizeof(*lists.followed));
        lists.single = arena_alloc(a, DRAIN_MAX_LISTED, sizeof(*lists.single));
        if (!lists.led || !lists.followed || !lists.single) {
                /* counts without lists; never fewer than there are (I16) */
                ret->leaders_remaining = b->leaders_multi;
                ret->single_replica = b->leaders - b->leaders_multi;
                return;
        }
        collect(c, b, &lists, ret);
        hand_over(&lists, ret);
        /* What was true at the last step need not be any more: a state is never better than its numbers. */
        if (ret->state == DRAIN_DRAINED && (ret->leaders_remaining > 0 || ret->isr_remaining > 0))
                ret->state = DRAIN_DRAINING;
}

static void fill_status(struct controller *c, const struct drain_call *q, bool stale, struct arena *a,
                        struct drain_status *ret)
{
        const struct ctx_broker *b = ctx_broker(&c->ctx, q->broker_id);

        *ret = (struct drain_status){.state = DRAIN_NONE,
                                     .stale = stale,
                                     .zookeeper_available = zk_lease_valid(c->zk),
                                     .broker_id = q->broker_id,
                                     .broker_epoch = b && b->alive ? b->epoch : -1,
                                     .controller_id = c->o.broker_id,
                                     .controller_epoch = c->epoch};
        if (!b)
                return;
        if (b->drain) {
                fill_drain(c, b, a, ret);
        } else {
                ret->leaders_remaining = b->leaders_multi;
                ret->single_replica = b->leaders - b->leaders_multi;
        }
}

enum drain_state drain_state_shown(const struct ctx_broker *b)
{
        return b->drain ? b->drain->state : DRAIN_NONE;
}

/* --- answering --- */

static void refuse(struct drain_call *q, int16_t error)
{
        if (q->ask == ASK_SHUTDOWN)
                q->shutdown_fn(error, NULL, 0, q->userdata);
        else
                q->fn(error, NULL, q->userdata);
        call_free(q);
}

static void answer(struct controller *c, struct drain_call *q, int16_t error, bool stale)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct drain_status status;

        if (stale)
                metric_add(&controller_metric_stale[STALE_BROKER_EPOCH], 1);
        if (q->ask == ASK_SHUTDOWN) {
                refuse(q, stale ? KAFKA_STALE_BROKER_EPOCH : error);
                return;
        }
        arena_init(&a, 0);
        fill_status(c, q, stale, &a, &status);
        q->fn(error, &status, q->userdata);
        call_free(q);
}

/* R25: what is still led now, after the moves. Partitions of topics that are being deleted do not count. */
static void answer_shutdown(struct controller *c, const struct ctx_broker *b, struct drain_call *q)
{
        cleanup_with(freep) struct controller_partition *remaining =
                calloc((size_t)MAX(b->leaders_multi, 0) + 1, sizeof(*remaining));
        size_t n = 0;

        if (!remaining) {
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR);
                return;
        }
        for (size_t i = 0; i < b->n_hosted && n < (size_t)b->leaders_multi; i++) {
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);

                if (p->leader == b->id && p->n_slots > 1 && !p->topic->deleting)
                        remaining[n++] = (struct controller_partition){.topic = p->topic->name,
                                                                       .partition = p->number};
        }
        q->shutdown_fn(KAFKA_NONE, remaining, n, q->userdata);
        call_free(q);
}

void drain_answer_shutdowns(struct controller *c, struct drain *d, bool all)
{
        list_for_each_safe (it, tmp, &d->shutdowns) {
                struct drain_call *q = list_entry(it, struct drain_call, node);

                if (!all && loop_now_ms(c->loop) < q->until_ms)
                        continue;
                list_remove(&q->node);
                answer_shutdown(c, d->b, q);
        }
}

void drain_refuse_shutdowns(struct drain *d)
{
        list_for_each_safe (it, tmp, &d->shutdowns) {
                struct drain_call *q = list_entry(it, struct drain_call, node);

                list_remove(&q->node);
                refuse(q, KAFKA_NOT_CONTROLLER);
        }
}

/* --- starting --- */

static void set_texts(struct drain *d, const struct drain_call *q)
{
        if (q->id && q->id[0])
                (void)snprintf(d->id, sizeof(d->id), "%s", q->id);
        if (q->reason && q->reason[0])
                (void)snprintf(d->reason, sizeof(d->reason), "%s", q->reason);
        if (q->requested_by && q->requested_by[0])
                (void)snprintf(d->requested_by, sizeof(d->requested_by), "%s", q->requested_by);
        if (q->deadline_ms > 0)
                d->deadline_ms = q->deadline_ms;
}

static int make_id(struct drain *d)
{
        char text[UUID_TEXT_SIZE];
        struct uuid id;
        int r;

        r = uuid_random(&id);
        if (r < 0)
                return r;
        uuid_format(&id, text);
        (void)snprintf(d->id, sizeof(d->id), "%s", text);
        return 0;
}

static int drain_begin(struct controller *c, struct ctx_broker *b, const struct drain_call *q)
{
        struct drain *d = calloc(1, sizeof(*d));

        if (!d)
                return -ENOMEM;
        if (make_id(d) < 0) {
                free(d);
                return -ENOMEM;
        }
        list_init(&d->shutdowns);
        d->b = b;
        d->state = DRAIN_DRAINING;
        d->leaders_move = true; /* until a step has looked */
        d->epoch = b->epoch;
        d->since_ms = d->updated_ms = clock_real_ms();
        d->leaders_initial = b->leaders_multi;
        (void)snprintf(d->requested_by, sizeof(d->requested_by), "%s",
                       q->ask == ASK_SHUTDOWN ? "controlled-shutdown" : "");
        set_texts(d, q);
        b->drain = d; /* masked from here on: R13, R14 */
        atomic_fetch_add(&c->n_drains, 1);
        slog_notice("drain-started", "a broker is being drained", SL_INT("broker", b->id),
                    SL_INT("epoch", b->epoch), SL_STR("drain_id", d->id), SL_STR("reason", d->reason),
                    SL_STR("requested_by", d->requested_by), SL_INT("leaders", d->leaders_initial),
                    SL_INT("replicas", b->n_hosted));
        ctl_log_change(c, "Drain %s of broker %d started: leaders:%d replicas:%zu", d->id, (int)b->id,
                       (int)d->leaders_initial, b->n_hosted);
        drain_history_begin(c, d);
        return 0;
}

static void wait_for_pass(struct controller *c, struct drain *d, struct drain_call *q)
{
        q->until_ms = loop_now_ms(c->loop) + SHUTDOWN_WAIT_MS;
        list_push_back(&d->shutdowns, &q->node);
        drain_run(c);
}

static void start(struct controller *c, struct ctx_broker *b, struct drain_call *q)
{
        struct drain *d = b->drain;
        bool other = d && q->id && q->id[0] && strcmp(q->id, d->id) != 0;

        if (other && !q->replace) {
                answer(c, q, KAFKA_INVALID_REQUEST, false);
                return;
        }
        if (d && other)
                drain_history_end(c, d, DRAIN_ENDED_REPLACED);
        if (d)
                set_texts(d, q); /* the same drain again, or taken over: what is moved stays moved */
        else if (drain_begin(c, b, q) < 0) {
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR);
                return;
        }
        if (d && other)
                drain_history_begin(c, d);
        if (q->ask == ASK_SHUTDOWN) {
                wait_for_pass(c, b->drain, q);
                return;
        }
        drain_run(c);
        answer(c, q, KAFKA_NONE, false);
}

static void undo(struct controller *c, struct ctx_broker *b, struct drain_call *q)
{
        if (b->drain) {
                slog_notice("drain-undone", "a drain is undone; the broker may lead and rejoins",
                            SL_INT("broker", b->id), SL_STR("drain_id", b->drain->id));
                ctl_log_change(c, "Drain %s of broker %d is undone", b->drain->id, (int)b->id);
                drain_end(c, b, true);
        }
        answer(c, q, KAFKA_NONE, false);
}

static void on_refreshed(void *arg);

/* "Not registered" means "nothing to drain" to who asks, so it must not be said from a list that lags. */
static bool look_again(struct controller *c, struct drain_call *q)
{
        if (q->refreshed)
                return false;
        q->refreshed = true;
        return brokers_refresh_then(c, on_refreshed, q, false) == 0;
}

static void serve(struct controller *c, struct drain_call *q)
{
        struct ctx_broker *b = ctx_broker(&c->ctx, q->broker_id);
        bool newer = b && b->alive && q->broker_epoch > b->epoch;

        if (!b || !b->alive || newer) {
                if (look_again(c, q))
                        return;
                /* An epoch that ZooKeeper does not know yet is not a reason to say "done". */
                answer(c, q, newer ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_BROKER_NOT_AVAILABLE, false);
                return;
        }
        if (q->broker_epoch != -1 && q->broker_epoch < b->epoch) {
                answer(c, q, KAFKA_NONE, true); /* D2: it was an earlier life that wanted this */
                return;
        }
        if (q->ask == ASK_GET)
                answer(c, q, KAFKA_NONE, false);
        else if (q->ask == ASK_UNDO)
                undo(c, b, q);
        else
                start(c, b, q);
}

static void on_refreshed(void *arg)
{
        struct drain_call *q = arg;
        struct controller *c = q->call.c;

        if (!ctl_is_active(c))
                refuse(q, KAFKA_NOT_CONTROLLER);
        else if (!zk_lease_valid(c->zk))
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR); /* nobody knows */
        else
                serve(c, q);
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct drain_call *q = container_of(call, struct drain_call, call);

        if (active)
                serve(c, q);
        else
                refuse(q, KAFKA_NOT_CONTROLLER);
}

/* --- doors --- */

static struct drain_call *call_new(enum ask ask, int32_t broker_id, int64_t broker_epoch, void *userdata)
{
        struct drain_call *q = calloc(1, sizeof(*q));

        if (!q)
                return NULL;
        q->ask = ask;
        q->broker_id = broker_id;
        q->broker_epoch = broker_epoch;
        q->userdata = userdata;
        return q;
}

void controller_drain_start(struct controller *c, const struct drain_request *r, controller_drain_fn fn,
                            void *userdata)
{
        struct drain_call *q = call_new(ASK_START, r->broker_id, r->broker_epoch, userdata);

        if (!q) {
                fn(KAFKA_UNKNOWN_SERVER_ERROR, NULL, userdata);
                return;
        }
        q->fn = fn;
        q->deadline_ms = r->deadline_ms;
        q->replace = r->replace;
        q->id = strdup(r->drain_id ? r->drain_id : "");
        q->reason = strdup(r->reason ? r->reason : "");
        q->requested_by = strdup(r->requested_by ? r->requested_by : "");
        if (!q->id || !q->reason || !q->requested_by) {
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR);
                return;
        }
        ctl_post(c, &q->call, run);
}

static void ask_simple(struct controller *c, enum ask ask, int32_t broker_id, int64_t broker_epoch,
                       controller_drain_fn fn, void *userdata)
{
        struct drain_call *q = call_new(ask, broker_id, broker_epoch, userdata);

        if (!q) {
                fn(KAFKA_UNKNOWN_SERVER_ERROR, NULL, userdata);
                return;
        }
        q->fn = fn;
        ctl_post(c, &q->call, run);
}

void controller_drain_get(struct controller *c, int32_t broker_id, controller_drain_fn fn, void *userdata)
{
        ask_simple(c, ASK_GET, broker_id, -1, fn, userdata);
}

void controller_drain_undo(struct controller *c, int32_t broker_id, int64_t broker_epoch,
                           controller_drain_fn fn, void *userdata)
{
        ask_simple(c, ASK_UNDO, broker_id, broker_epoch, fn, userdata);
}

void controller_controlled_shutdown(struct controller *c, int32_t broker_id, int64_t broker_epoch,
                                    controller_shutdown_fn fn, void *userdata)
{
        struct drain_call *q = call_new(ASK_SHUTDOWN, broker_id, broker_epoch, userdata);

        if (!q) {
                fn(KAFKA_UNKNOWN_SERVER_ERROR, NULL, 0, userdata);
                return;
        }
        q->shutdown_fn = fn;
        ctl_post(c, &q->call, run);
}
