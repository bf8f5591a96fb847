/* What is asked of drains and told about them: start, get, undo, ControlledShutdown. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "controller/drain_history.h"
#include "controller/drain_internal.h"
#include "controller/stop_check.h"
#include "wire/error.h"

#define SHUTDOWN_WAIT_MS                                                                                     \
        20000 /* below the 30 s after which a broker gives up on its request (KAFKA-5137)                    \
               */

#define RISKS_LISTED 100

enum ask { ASK_START, ASK_GET, ASK_UNDO, ASK_SHUTDOWN };

struct drain_call {
        struct ctl_call call;
        enum ask ask;
        int32_t broker_id;
        int64_t broker_epoch, deadline_ms, wait_ms;
        bool replace, refreshed, cluster_stop, force;
        char *id, *reason, *requested_by;
        controller_drain_fn fn;
        controller_shutdown_fn shutdown_fn;
        void *userdata;
        /* a ControlledShutdown that waits: for the slot, or for the pass to end */
        struct list node;
        int64_t until_ms;
        /* asking for the slot */
        struct slot_op slot;
        int64_t asked_epoch;
        enum slot_verdict verdict;
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

/* Of a broker that stops with all others, or that waits for its turn. */
static void fill_without_drain(struct controller *c, const struct ctx_broker *b, struct drain_status *ret)
{
        const struct slot_holder *own = slot_holder_of(c->slot.cur, b->id);
        const struct slot_waiter *w = slot_waiter_of(c->slot.cur, b->id);

        if (b->stopping && own) {
                ret->holder = own;
                ret->since_ms = own->since_ms;
                (void)snprintf(ret->drain_id, sizeof(ret->drain_id), "%s", own->drain_id);
                (void)snprintf(ret->reason, sizeof(ret->reason), "%s", own->reason);
                (void)snprintf(ret->requested_by, sizeof(ret->requested_by), "%s", own->requested_by);
        } else if (w) {
                ret->since_ms = w->since_ms;
        }
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
        if (c->slot.cur->n_holders > 0)
                ret->holder = &c->slot.cur->holders[0];
        if (!b)
                return;
        if (b->drain) {
                fill_drain(c, b, a, ret);
                return;
        }
        ret->state = drain_state_shown(c, b);
        ret->leaders_remaining = b->leaders_multi;
        ret->single_replica = b->leaders - b->leaders_multi;
        fill_without_drain(c, b, ret);
}

enum drain_state drain_state_shown(const struct controller *c, const struct ctx_broker *b)
{
        if (b->drain)
                return b->drain->state;
        if (b->stopping)
                return DRAIN_CLUSTER_STOP;
        return b->alive && slot_waiter_of(c->slot.cur, b->id) ? DRAIN_WAITING : DRAIN_NONE;
}

/* --- answering --- */

static void answer(struct controller *c, struct drain_call *q, int16_t error, bool stale);

static void refuse(struct drain_call *q, int16_t error)
{
        if (q->ask == ASK_SHUTDOWN)
                q->shutdown_fn(error, NULL, 0, NULL, q->userdata);
        else
                q->fn(error, NULL, q->userdata);
        call_free(q);
}

/* D3: somebody else holds the slot. */
static void answer_held(struct controller *c, struct drain_call *q)
{
        const struct znode_slot *s = c->slot.cur;

        metric_add(&controller_metric_slot_refusals, 1);
        if (q->ask != ASK_SHUTDOWN) {
                answer(c, q, KAFKA_OPERATION_NOT_ATTEMPTED, false);
                return;
        }
        q->shutdown_fn(KAFKA_OPERATION_NOT_ATTEMPTED, NULL, 0, s->n_holders ? &s->holders[0] : NULL,
                       q->userdata);
        call_free(q);
}

static void answer(struct controller *c, struct drain_call *q, int16_t error, bool stale)
{
        cleanup_with(arena_donep) struct arena a = {0};
        const struct ctx_broker *b = ctx_broker(&c->ctx, q->broker_id);
        struct drain_status status;
        struct stop_check risks;

        if (stale)
                metric_add(&controller_metric_stale[STALE_BROKER_EPOCH], 1);
        if (q->ask == ASK_SHUTDOWN) {
                refuse(q, stale ? KAFKA_STALE_BROKER_EPOCH : error);
                return;
        }
        arena_init(&a, 0);
        fill_status(c, q, stale, &a, &status);
        status.unsafe = error == KAFKA_OPERATION_NOT_ATTEMPTED && q->verdict == SLOT_UNSAFE;
        if (q->ask == ASK_START && b && b->alive && stop_check_broker(c, b, RISKS_LISTED, &a, &risks) == 0)
                status.risks = &risks;
        status.ended = stale && q->id && slot_id_is_over(c->slot.cur, q->broker_id, q->broker_epoch, q->id);
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
        q->shutdown_fn(KAFKA_NONE, remaining, n, NULL, q->userdata);
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

/* Every drain has an id before it asks for the slot. */
static int make_id(struct drain_call *q)
{
        struct uuid id;
        char *text;
        int r;

        if (q->id && q->id[0])
                return 0;
        text = malloc(UUID_TEXT_SIZE);
        r = text ? uuid_random(&id) : -ENOMEM;
        if (r < 0) {
                free(text);
                return r;
        }
        uuid_format(&id, text);
        free(q->id);
        q->id = text;
        return 0;
}

/* Masked from here on: R13, R14. */
static int drain_make(struct controller *c, struct ctx_broker *b, const struct slot_holder *h)
{
        struct drain *d = calloc(1, sizeof(*d));

        if (!d)
                return -ENOMEM;
        list_init(&d->shutdowns);
        d->b = b;
        d->state = DRAIN_DRAINING;
        d->leaders_move = true; /* until a step has looked */
        d->epoch = b->epoch;
        d->since_ms = h->since_ms;
        d->updated_ms = clock_real_ms();
        d->deadline_ms = h->deadline_ms;
        d->leaders_initial = MAX(h->leaders, b->leaders_multi);
        d->moved = d->leaders_initial - b->leaders_multi;
        memcpy(d->id, h->drain_id, sizeof(d->id));
        memcpy(d->reason, h->reason, sizeof(d->reason));
        memcpy(d->requested_by, h->requested_by, sizeof(d->requested_by));
        b->drain = d;
        atomic_fetch_add(&c->n_drains, 1);
        drain_history_begin(c, d);
        return 0;
}

static int drain_begin(struct controller *c, struct ctx_broker *b, const struct slot_holder *h)
{
        int r = drain_make(c, b, h);

        if (r < 0)
                return r;
        slog_notice("drain-started", "a broker is being drained", SL_INT("broker", b->id),
                    SL_INT("epoch", b->epoch), SL_STR("drain_id", h->drain_id), SL_STR("reason", h->reason),
                    SL_STR("requested_by", h->requested_by), SL_INT("leaders", b->drain->leaders_initial),
                    SL_INT("replicas", b->n_hosted));
        ctl_log_change(c, "Drain %s of broker %d started: leaders:%d replicas:%zu", h->drain_id, (int)b->id,
                       (int)b->drain->leaders_initial, b->n_hosted);
        return 0;
}

/* R28: what the controller before us had begun goes on before anybody is elected. Its numbers need all
 * partitions, so this comes last of all that is loaded. */
void drain_resume_all(struct controller *c)
{
        for (size_t i = 0; i < c->slot.cur->n_holders; i++) {
                const struct slot_holder *h = &c->slot.cur->holders[i];
                struct ctx_broker *b = ctx_broker(&c->ctx, h->broker);

                if (!b || !b->alive || b->epoch != h->epoch || h->state != SLOT_DRAINING)
                        continue;
                b->stopping = c->slot.cur->cluster_stop;
                if (b->stopping)
                        continue;
                if (drain_make(c, b, h) < 0) {
                        ctl_resign_soon(c, "out of memory for a drain");
                        return;
                }
                slog_notice("drain-taken-over", "a drain that another controller began goes on",
                            SL_INT("broker", b->id), SL_STR("drain_id", h->drain_id),
                            SL_INT("leaders", b->leaders_multi));
                ctl_log_change(c, "Drain %s of broker %d goes on: leaders:%d", h->drain_id, (int)b->id,
                               (int)b->leaders_multi);
        }
}

static void wait_for_pass(struct controller *c, struct drain *d, struct drain_call *q)
{
        q->until_ms = loop_now_ms(c->loop) + SHUTDOWN_WAIT_MS;
        list_push_back(&d->shutdowns, &q->node);
        drain_run(c);
}

/* The broker drains, by this request or an earlier one. */
static void go_on(struct controller *c, struct ctx_broker *b, struct drain_call *q)
{
        if (q->ask == ASK_SHUTDOWN) {
                wait_for_pass(c, b->drain, q);
                return;
        }
        drain_run(c);
        answer(c, q, KAFKA_NONE, false);
}

/* D8. Partitions are still led; that is no reason to stay, for nobody is left to hand them over to. */
static void answer_cluster_stop(struct controller *c, struct drain_call *q)
{
        if (q->ask != ASK_SHUTDOWN) {
                answer(c, q, KAFKA_NONE, false);
                return;
        }
        q->shutdown_fn(KAFKA_NONE, NULL, 0, NULL, q->userdata);
        call_free(q);
}

static void park(struct controller *c, struct drain_call *q)
{
        int64_t now_ms = loop_now_ms(c->loop);

        if (q->until_ms == 0)
                q->until_ms =
                        now_ms + (q->wait_ms > 0 ? MIN(q->wait_ms, SHUTDOWN_WAIT_MS) : SHUTDOWN_WAIT_MS);
        if (now_ms >= q->until_ms)
                answer_held(c, q);
        else
                list_push_back(&c->slot.parked, &q->node);
}

/* Down without having been stopped by us: it is expected back, so this is no stop of the whole cluster. */
static bool some_missing(struct controller *c, struct znode_slot *s)
{
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                if (!b->alive && b->n_hosted > 0 && !slot_holder_of(s, b->id))
                        return true;
        }
        return false;
}

/* D4, in the step that grants the slot: would stopping it take a partition offline or below
 * min.insync.replicas, and is that worth waiting for? Who is stopped by a signal has no policy of its own: it
 * waits for a while, and then hands over what can be handed over. */
static bool is_unsafe(struct controller *c, const struct drain_call *q, const struct slot_now *now)
{
        const struct ctx_broker *b = ctx_broker(&c->ctx, q->broker_id);
        const struct slot_waiter *w = slot_waiter_of(c->slot.cur, q->broker_id);
        struct stop_check sum;

        if (q->force || !b ||
            (q->ask == ASK_SHUTDOWN && w && now->mono_ms - w->asked_ms > c->o.shutdown_gate_ms))
                return false;
        return stop_check_broker(c, b, 0, NULL, &sum) == 0 && sum.gate > 0;
}

static bool ask_apply(struct controller *c, struct slot_op *op, struct znode_slot *next)
{
        struct drain_call *q = container_of(op, struct drain_call, slot);
        struct slot_now now = slot_clock(c);
        const struct ctx_broker *b = ctx_broker(&c->ctx, q->broker_id);
        size_t n, waiting;
        struct slot_peer *peers = slot_peers(c, slot_needs_missing(next), &n);
        const struct slot_holder *holder;
        bool changed, replace = q->replace && q->reason && q->reason[0];
        struct slot_ask a = {.broker = q->broker_id,
                             .epoch = b && b->alive ? b->epoch : -1,
                             .named_epoch = q->broker_epoch,
                             .drain_id = q->id,
                             .reason = q->reason,
                             .requested_by = q->requested_by,
                             .deadline_ms = q->deadline_ms,
                             .leaders = b ? b->leaders_multi : 0,
                             .replace = q->replace && (replace || slot_holder_of(next, q->broker_id)),
                             .cluster_stop = q->cluster_stop,
                             .unsafe = is_unsafe(c, q, &now),
                             .some_missing = some_missing(c, next)};

        q->asked_epoch = a.epoch;
        q->verdict = SLOT_FULL;
        if (!peers || a.epoch < 0) {
                free(peers);
                return false;
        }
        changed = slot_settle(next, peers, n, &now);
        waiting = next->n_waiting;
        q->verdict = slot_take(next, &a, peers, n, &now, &holder);
        free(peers);
        return changed || q->verdict == SLOT_GRANTED || next->n_waiting != waiting;
}

static void serve(struct controller *c, struct drain_call *q);
static void granted(struct controller *c, struct ctx_broker *b, struct drain_call *q);

static void ask_done(struct controller *c, struct slot_op *op, int r)
{
        struct drain_call *q = container_of(op, struct drain_call, slot);
        struct ctx_broker *b = ctx_broker(&c->ctx, q->broker_id);

        if (r == -ECANCELED || !ctl_is_active(c))
                refuse(q, KAFKA_NOT_CONTROLLER);
        else if (r < 0 || (q->verdict == SLOT_FULL && q->asked_epoch >= 0))
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR);
        else if (!b || !b->alive || b->epoch != q->asked_epoch)
                serve(c, q); /* it went meanwhile, or is another by now */
        else if (q->verdict == SLOT_OVER)
                answer(c, q, KAFKA_NONE, true);
        else if (q->verdict == SLOT_GRANTED)
                granted(c, b, q);
        else if (q->ask == ASK_SHUTDOWN)
                park(c, q);
        else
                answer_held(c, q); /* or D4 holds it up */
}

static void granted(struct controller *c, struct ctx_broker *b, struct drain_call *q)
{
        const struct slot_holder *h = slot_holder_of(c->slot.cur, b->id);

        if (h && c->slot.cur->cluster_stop) {
                drain_follow_slot(c);
                answer_cluster_stop(c, q);
                return;
        }
        if (b->drain && strcmp(b->drain->id, q->id) != 0) {
                drain_history_end(c, b->drain, DRAIN_ENDED_REPLACED);
                set_texts(b->drain, q); /* taken over: what is moved stays moved */
                drain_history_begin(c, b->drain);
        } else if (b->drain) {
                set_texts(b->drain, q);
        } else if (!h || drain_begin(c, b, h) < 0) {
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR); /* the lease ends it */
                return;
        }
        go_on(c, b, q);
}

static void ask_for_slot(struct controller *c, struct drain_call *q)
{
        if (make_id(q) < 0) {
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR);
                return;
        }
        if (!ctl_lease(c)) { /* nothing can be granted now; who asks hears why */
                answer(c, q, KAFKA_UNKNOWN_SERVER_ERROR, false);
                return;
        }
        q->slot = (struct slot_op){.apply = ask_apply, .done = ask_done};
        slot_submit(c, &q->slot);
}

static void start(struct controller *c, struct ctx_broker *b, struct drain_call *q)
{
        struct drain *d = b->drain;
        struct slot_now now = slot_clock(c);
        bool other = d && q->id && q->id[0] && strcmp(q->id, d->id) != 0;

        if (q->id && q->id[0] && slot_id_is_over(c->slot.cur, q->broker_id, q->broker_epoch, q->id)) {
                answer(c, q, KAFKA_NONE, true); /* a late duplicate */
        } else if (other && !q->replace) {
                answer(c, q, KAFKA_INVALID_REQUEST, false);
        } else if (d && !other && !q->cluster_stop) {
                set_texts(d, q); /* the same drain again */
                slot_renew(c->slot.cur, b->id, &now);
                go_on(c, b, q);
        } else {
                ask_for_slot(c, q);
        }
}

void drain_serve_parked(struct controller *c)
{
        struct slot_now now = slot_clock(c);
        struct list again;

        list_init(&again);
        list_splice_back(&again, &c->slot.parked);
        while (!list_empty(&again)) {
                struct drain_call *q = list_entry(again.next, struct drain_call, node);
                const struct znode_slot *s = c->slot.cur;

                list_remove(&q->node);
                slot_touch_waiter(c->slot.cur, q->broker_id, &now);
                if (s->n_holders == 0 || s->cluster_stop || slot_holder_of(c->slot.cur, q->broker_id) ||
                    now.mono_ms >= q->until_ms)
                        serve(c, q);
                else
                        list_push_back(&c->slot.parked, &q->node);
        }
}

void drain_refuse_parked(struct controller *c)
{
        while (c->slot.parked.next && !list_empty(&c->slot.parked)) {
                struct drain_call *q = list_entry(c->slot.parked.next, struct drain_call, node);

                list_remove(&q->node);
                refuse(q, KAFKA_NOT_CONTROLLER);
        }
}

/* --- undo --- */

static bool undo_apply(struct controller *c, struct slot_op *op, struct znode_slot *next)
{
        struct drain_call *q = container_of(op, struct drain_call, slot);
        struct slot_now now = slot_clock(c);

        return slot_undo(next, q->broker_id, "undone on request", &now);
}

/* The write comes first: a later controller must not take up a drain of which somebody heard that it is over.
 */
static void undo_done(struct controller *c, struct slot_op *op, int r)
{
        struct drain_call *q = container_of(op, struct drain_call, slot);

        if (r < 0) {
                refuse(q, r == -ECANCELED ? KAFKA_NOT_CONTROLLER : KAFKA_UNKNOWN_SERVER_ERROR);
                return;
        }
        drain_follow_slot(c);
        answer(c, q, KAFKA_NONE, false);
}

static void undo(struct controller *c, struct drain_call *q)
{
        if (!ctl_lease(c)) {
                answer(c, q, KAFKA_UNKNOWN_SERVER_ERROR, false);
                return;
        }
        q->slot = (struct slot_op){.apply = undo_apply, .done = undo_done};
        slot_submit(c, &q->slot);
}

static void get(struct controller *c, struct ctx_broker *b, struct drain_call *q)
{
        struct slot_now now = slot_clock(c);

        if (q->id && b->drain && strcmp(q->id, b->drain->id) == 0)
                slot_renew(c->slot.cur, b->id, &now); /* who drains is still there */
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
                get(c, b, q);
        else if (q->ask == ASK_UNDO)
                undo(c, q);
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
        q->cluster_stop = r->cluster_stop;
        q->force = r->force && r->reason && r->reason[0];
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
                       const char *drain_id, controller_drain_fn fn, void *userdata)
{
        struct drain_call *q = call_new(ask, broker_id, broker_epoch, userdata);

        if (q && drain_id && drain_id[0]) {
                q->id = strdup(drain_id);
                if (!q->id) {
                        free(q);
                        q = NULL;
                }
        }
        if (!q) {
                fn(KAFKA_UNKNOWN_SERVER_ERROR, NULL, userdata);
                return;
        }
        q->fn = fn;
        ctl_post(c, &q->call, run);
}

void controller_drain_get(struct controller *c, int32_t broker_id, const char *drain_id,
                          controller_drain_fn fn, void *userdata)
{
        ask_simple(c, ASK_GET, broker_id, -1, drain_id, fn, userdata);
}

void controller_drain_undo(struct controller *c, int32_t broker_id, int64_t broker_epoch,
                           controller_drain_fn fn, void *userdata)
{
        ask_simple(c, ASK_UNDO, broker_id, broker_epoch, NULL, fn, userdata);
}

void controller_controlled_shutdown(struct controller *c, int32_t broker_id, int64_t broker_epoch,
                                    int64_t wait_ms, controller_shutdown_fn fn, void *userdata)
{
        struct drain_call *q = call_new(ASK_SHUTDOWN, broker_id, broker_epoch, userdata);

        if (!q) {
                fn(KAFKA_UNKNOWN_SERVER_ERROR, NULL, 0, NULL, userdata);
                return;
        }
        q->shutdown_fn = fn;
        q->wait_ms = wait_ms;
        q->requested_by = strdup("controlled-shutdown");
        if (!q->requested_by) {
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR);
                return;
        }
        ctl_post(c, &q->call, run);
}
