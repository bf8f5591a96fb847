/* Life of the controller: its thread, its states, coming into office and leaving it. */
#include "controller/controller.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/slog.h"
#include "controller/controller_internal.h"
#include "controller/drain_history.h"
#include "controller/leader_return.h"

#define TICK_MS     100
#define FAREWELL_MS 1000

/* --- states --- */

#define BIT(s) (1u << (s))
static const struct {
        const char *name;
        unsigned next;
} states[N_CTL_STATES] = {
        [CTL_UNREGISTERED] = {"unregistered", BIT(CTL_WATCHING) | BIT(CTL_STOPPED)},
        [CTL_WATCHING] = {"watching", BIT(CTL_ELECTING) | BIT(CTL_UNREGISTERED) | BIT(CTL_STOPPED)},
        [CTL_ELECTING] = {"electing",
                          BIT(CTL_WATCHING) | BIT(CTL_LOADING) | BIT(CTL_UNREGISTERED) | BIT(CTL_STOPPED)},
        [CTL_LOADING] = {"loading",
                         BIT(CTL_ACTIVE) | BIT(CTL_WATCHING) | BIT(CTL_UNREGISTERED) | BIT(CTL_STOPPED)},
        [CTL_ACTIVE] = {"active", BIT(CTL_WATCHING) | BIT(CTL_UNREGISTERED) | BIT(CTL_STOPPED)},
        [CTL_STOPPED] = {"stopped", 0},
};

void ctl_set_state(struct controller *c, enum ctl_state to)
{
        enum ctl_state from = c->state;

        if (from == to)
                return;
        assert(states[from].next & BIT(to));
        c->state = to;
        slog_debug("controller-state", "the controller changed its state", SL_STR("from", states[from].name),
                   SL_STR("to", states[to].name));
}

/* --- leaving office --- */

static int on_grow(size_t n, void *userdata)
{
        struct controller *c = userdata;
        size_t cursor = 0;
        void *v;
        int r;

        r = writer_reserve(&c->writer, n);
        while (r >= 0 && map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;

                if (b->sender)
                        r = sender_reserve(b->sender, n);
        }
        return r;
}

/* Nothing of this term may reach the next one (KAFKA-5310). */
static void forget_cluster(struct controller *c)
{
        size_t cursor = 0;
        void *v;

        alter_forget(c);
        topics_forget(c);
        growths_forget(c);
        elections_forget(c);
        log_dirs_forget(c);
        reassign_forget(c);
        configs_forget(c);
        deletion_forget(c);
        slot_forget(c);
        drain_forget(c);
        drain_history_forget(c);
        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;

                sender_free(c, TAKE_PTR(b->sender), true);
        }
        c->partitions_waiting = 0;
        writer_forget_doubts(c);
        writer_done(&c->writer);
        ctx_done(&c->ctx);
        c->checking = c->check_again = c->probing = false;
        c->topics_reading = c->topics_again = c->deletions_reading = c->deletions_again = false;
        c->loads = 0;
        c->topic_poll = 0;
        loop_timer_disarm(c->rebalance);
        loop_timer_disarm(c->return_timer);
        c->lease_lost = false;
        c->epoch = c->epoch_version = 0;
        atomic_store(&c->offline_partitions, 0);
        atomic_store(&c->queue_length, 0);
        atomic_store(&c->drain_remaining, 0);
        atomic_store(&c->n_drains, 0);
}

void ctl_resign_to(struct controller *c, enum ctl_state to, const char *why)
{
        bool in_office = c->state == CTL_LOADING || c->state == CTL_ACTIVE;

        if (in_office)
                slog_notice("controller-resigned", "this broker is no longer the controller",
                            SL_INT("epoch", c->epoch), SL_STR("reason", why));
        c->term++;
        atomic_store(&c->active, false);
        atomic_store(&c->public_epoch, 0);
        ctl_set_state(c, to); /* before anybody is answered, so that what they ask next is refused */
        forget_cluster(c);
        brokers_forget(c);
        if (ctx_init(&c->ctx) < 0) {
                slog_error("controller-disabled",
                           "out of memory; this broker takes part in no election any more");
                ctx_done(&c->ctx);
                if (c->state != CTL_STOPPED)
                        ctl_set_state(c, CTL_STOPPED);
        }
        elector_check(c);
}

void ctl_resign(struct controller *c, const char *why)
{
        if (c->state == CTL_LOADING || c->state == CTL_ACTIVE || c->state == CTL_ELECTING)
                ctl_resign_to(c, CTL_WATCHING, why);
}

static void on_resign_task(void *userdata)
{
        struct controller *c = userdata;

        c->resign_posted = false;
        ctl_resign(c, c->resign_why);
}

void ctl_resign_soon(struct controller *c, const char *why)
{
        if (c->resign_posted)
                return;
        c->resign_posted = true;
        c->resign_why = why;
        c->resign_task = (struct loop_task){.fn = on_resign_task, .userdata = c};
        loop_post_task(c->loop, &c->resign_task);
}

/* --- while in office --- */

bool ctl_lease(struct controller *c)
{
        if (c->resign_posted)
                return false;
        if (zk_lease_valid(c->zk))
                return true;
        if (!c->lease_lost)
                slog_warning("controller-paused",
                             "ZooKeeper has not confirmed the session lately; nothing is written or sent");
        c->lease_lost = true;
        return false;
}

static void on_progress(void *userdata)
{
        struct controller *c = userdata;

        c->progress_posted = false;
        if (!ctl_is_active(c))
                return;
        topics_progress(c);
        growths_progress(c);
        elections_progress(c);
        reassign_progress(c);
        deletion_progress(c);
        drain_feed(c);
        drain_schedule(c);
}

void ctl_progress(struct controller *c)
{
        if (c->progress_posted)
                return;
        c->progress_posted = true;
        c->progress_task = (struct loop_task){.fn = on_progress, .userdata = c};
        loop_post_task(c->loop, &c->progress_task);
}

static int on_tick(struct loop *l, void *userdata)
{
        struct controller *c = userdata;

        (void)l;
        if (!ctl_is_active(c))
                return 0;
        atomic_store(&c->queue_length, (int64_t)(c->writer.urgent.count + c->writer.normal.count));
        if (!ctl_lease(c)) {
                brokers_release(c); /* they must not wait for as long as ZooKeeper is away */
        } else if (c->lease_lost) {
                c->lease_lost = false;
                sender_kick_all(c);
                writer_pump(c);
        }
        topic_poll(c);
        drain_history_tick(c);
        slot_tick(c);
        ctl_progress(c);
        return 0;
}

static int on_elect_retry(struct loop *l, void *userdata)
{
        (void)l;
        elector_check(userdata);
        return 0;
}

static int on_brokers_retry(struct loop *l, void *userdata)
{
        (void)l;
        brokers_refresh(userdata);
        return 0;
}

void ctl_log_change(struct controller *c, const char *fmt, ...)
{
        char line[1024];
        va_list ap;
        int n;

        if (!c->ops.on_state_change)
                return;
        n = snprintf(line, sizeof(line), "[Controller id=%d epoch=%d] ", (int)c->o.broker_id, (int)c->epoch);
        va_start(ap, fmt);
        (void)vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
        va_end(ap);
        c->ops.on_state_change(line, c->ops.userdata);
}

/* --- requests of other threads --- */

static void on_call(void *userdata)
{
        struct ctl_call *call = userdata;
        struct controller *c = call->c;

        call->run(c, call, ctl_is_active(c));
}

void ctl_post(struct controller *c, struct ctl_call *call,
              void (*run)(struct controller *c, struct ctl_call *call, bool active))
{
        bool stopping;

        call->c = c;
        call->run = run;
        call->task = (struct loop_task){.fn = on_call, .userdata = call};
        (void)pthread_mutex_lock(&c->post_lock);
        stopping = c->stopping;
        if (!stopping)
                loop_post_task(c->loop, &call->task);
        (void)pthread_mutex_unlock(&c->post_lock);
        if (stopping)
                run(c, call, false);
}

/* --- what the composition root tells --- */

struct session_call {
        struct loop_task task;
        struct controller *c;
        enum zk_event event;
        bool registered;
        int64_t broker_epoch;
};

static void on_registered(struct controller *c, int64_t broker_epoch)
{
        c->broker_epoch = broker_epoch;
        if (c->state == CTL_UNREGISTERED)
                ctl_set_state(c, CTL_WATCHING);
        elector_check(c);
}

static void on_session_call(void *userdata)
{
        cleanup_with(freep) struct session_call *call = userdata;
        struct controller *c = call->c;

        if (c->state == CTL_STOPPED)
                return;
        if (call->registered) {
                on_registered(c, call->broker_epoch);
        } else if (call->event == ZK_EXPIRED || call->event == ZK_AUTH_FAILED) {
                ctl_resign_to(c, CTL_UNREGISTERED, "the ZooKeeper session expired");
                elector_forget(c);
        } else if (call->event == ZK_CONNECTED) {
                elector_check(c);
                writer_pump(c);
        }
}

static void post_session(struct controller *c, struct session_call what)
{
        struct session_call *call = malloc(sizeof(*call));

        /* Losing one of these would leave a controller that never hears of its session's end. */
        if (!call)
                abort();
        *call = what;
        call->c = c;
        call->task = (struct loop_task){.fn = on_session_call, .userdata = call};
        loop_post_task(c->loop, &call->task);
}

void controller_on_session(struct controller *c, enum zk_event e)
{
        post_session(c, (struct session_call){.event = e});
}

void controller_on_registered(struct controller *c, int64_t broker_epoch)
{
        post_session(c, (struct session_call){.registered = true, .broker_epoch = broker_epoch});
}

/* --- life --- */

static void fill_options(struct controller *c, const struct controller_options *o)
{
        c->o = *o;
        c->o.default_num_partitions = o->default_num_partitions > 0 ? o->default_num_partitions : 1;
        c->o.default_replication_factor =
                (int16_t)(o->default_replication_factor > 0 ? o->default_replication_factor : 1);
        c->o.default_min_insync_replicas = MAX(o->default_min_insync_replicas, 1);
        c->o.request_timeout_ms = o->request_timeout_ms > 0 ? o->request_timeout_ms : 30000;
        c->o.retry_backoff_ms = o->retry_backoff_ms > 0 ? o->retry_backoff_ms : 100;
        c->o.stop_replica_timeout_ms = o->stop_replica_timeout_ms > 0 ? o->stop_replica_timeout_ms : 5000;
        c->o.drain_take_up_ms = o->drain_take_up_ms > 0 ? o->drain_take_up_ms : 60000;
        c->o.shutdown_gate_ms = o->shutdown_gate_ms > 0 ? o->shutdown_gate_ms : 8000;
        c->o.slot_lease_ms = o->slot_lease_ms > 0 ? o->slot_lease_ms : 600000;
        if (c->o.leader_imbalance_check_ms <= 0)
                c->o.leader_imbalance_check_ms = 300000;
        c->zk = o->zk;
        c->o.inter_broker_listener = NULL;
}

static void init_farewell_cond(pthread_cond_t *cond)
{
        pthread_condattr_t attr;

        (void)pthread_condattr_init(&attr);
        (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        (void)pthread_cond_init(cond, &attr);
        (void)pthread_condattr_destroy(&attr);
}

static int add_timers(struct controller *c)
{
        int r;

        r = loop_add_timer(c->loop, on_tick, c, &c->tick);
        if (r >= 0)
                r = loop_add_timer(c->loop, on_elect_retry, c, &c->elect_retry);
        if (r >= 0)
                r = loop_add_timer(c->loop, on_brokers_retry, c, &c->brokers.retry);
        if (r >= 0)
                r = writer_init(c);
        if (r >= 0)
                r = rebalance_init(c);
        if (r >= 0)
                r = leader_return_init(c);
        return r < 0 ? r : drain_init(c);
}

int controller_new(const struct controller_options *o, const struct controller_ops *ops,
                   struct controller **ret)
{
        cleanup_with(controller_freep) struct controller *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        fill_options(c, o);
        c->ops = ops ? *ops : (struct controller_ops){0};
        c->active_id = -1;
        (void)pthread_mutex_init(&c->location_lock, NULL);
        (void)pthread_mutex_init(&c->post_lock, NULL);
        (void)pthread_mutex_init(&c->farewell.lock, NULL);
        init_farewell_cond(&c->farewell.done_cond);
        list_init(&c->alters);
        list_init(&c->creations);
        list_init(&c->deletions);
        list_init(&c->elections);
        list_init(&c->growths);
        list_init(&c->moves);
        list_init(&c->configs);
        list_init(&c->moving);
        list_init(&c->brokers.waiting);
        list_init(&c->brokers.waiting_next);
        list_init(&c->watched);
        r = slot_init(c);
        if (r < 0)
                return r;
        c->claimed = map_new();
        if (!c->claimed)
                return -ENOMEM;
        c->ctx.on_grow = on_grow;
        c->ctx.userdata = c;
        r = ctx_init(&c->ctx);
        if (r < 0)
                return r;
        c->topic_watches = map_new();
        if (!c->topic_watches)
                return -ENOMEM;
        c->listener = strdup(o->inter_broker_listener ? o->inter_broker_listener : "PLAINTEXT");
        if (!c->listener)
                return -ENOMEM;
        r = drain_history_init(c);
        if (r >= 0)
                r = loop_new("controller", &c->loop);
        if (r >= 0)
                r = add_timers(c);
        if (r < 0)
                return r;
        controller_metrics_register(c);
        *ret = TAKE_PTR(c);
        return 0;
}

int controller_start(struct controller *c)
{
        int r;

        loop_timer_arm(c->tick, TICK_MS, TICK_MS);
        r = loop_thread_start(c->loop);
        if (r >= 0)
                c->started = true;
        return r;
}

static void farewell_done(struct controller *c)
{
        (void)pthread_mutex_lock(&c->farewell.lock);
        c->farewell.done = true;
        (void)pthread_cond_signal(&c->farewell.done_cond);
        (void)pthread_mutex_unlock(&c->farewell.lock);
}

static void on_farewell(const struct zk_result *res, void *userdata)
{
        (void)res; /* whether it was deleted or not: we are leaving */
        farewell_done(userdata);
}

/* Guarded by the check, or a successor's znode could be hit. */
static void say_farewell(void *userdata)
{
        struct controller *c = userdata;
        bool in_office = c->state == CTL_LOADING || c->state == CTL_ACTIVE;
        struct zk_op ops[] = {ctl_epoch_check(c),
                              {.type = ZK_OP_DELETE, .path = ZNODE_CONTROLLER, .version = -1}};

        ctl_resign_to(c, CTL_STOPPED, "the broker stops");
        if (!in_office || zk_multi(c->zk, c->loop, ops, ARRAY_SIZE(ops), on_farewell, c) < 0)
                farewell_done(c);
}

static void await_farewell(struct controller *c)
{
        struct timespec until;
        int r = 0;

        (void)clock_gettime(CLOCK_MONOTONIC,
                            &until); /* as the condition: a clock set back must not prolong a stop */
        until.tv_sec += FAREWELL_MS / 1000;
        (void)pthread_mutex_lock(&c->farewell.lock);
        while (!c->farewell.done && r == 0)
                r = pthread_cond_timedwait(&c->farewell.done_cond, &c->farewell.lock, &until);
        (void)pthread_mutex_unlock(&c->farewell.lock);
}

void controller_stop(struct controller *c)
{
        if (!c || !c->started)
                return;
        (void)pthread_mutex_lock(&c->post_lock);
        c->stopping = true;
        (void)pthread_mutex_unlock(&c->post_lock);
        if (loop_call(c->loop, say_farewell, c) == 0)
                await_farewell(c);
        loop_stop(c->loop);
        loop_thread_join(c->loop);
        c->started = false;
}

struct controller *controller_free(struct controller *c)
{
        if (!c)
                return NULL;
        controller_stop(c);
        controller_metrics_unregister(c);
        if (c->ctx.brokers) {
                /* Never started, or stopped: in both cases nobody waits. */
                if (c->state != CTL_STOPPED)
                        ctl_set_state(c, CTL_STOPPED);
                forget_cluster(c);
        }
        c->loop = loop_free(c->loop); /* runs what was still posted; all of it is refused */
        ctl_zk_forget_watches(c);
        drain_history_done(c);
        map_free(c->topic_watches);
        (void)pthread_mutex_destroy(&c->location_lock);
        (void)pthread_mutex_destroy(&c->post_lock);
        (void)pthread_mutex_destroy(&c->farewell.lock);
        (void)pthread_cond_destroy(&c->farewell.done_cond);
        c->claimed = map_free(c->claimed);
        slot_free(c);
        free(c->listener);
        free(c);
        return NULL;
}

/* --- what everybody may ask --- */

int32_t controller_active_id(const struct controller *c)
{
        return atomic_load(&c->active_id);
}

bool controller_is_active(const struct controller *c)
{
        return atomic_load(&c->active);
}

int32_t controller_epoch(const struct controller *c)
{
        return atomic_load(&c->public_epoch);
}

int controller_locate(const struct controller *c, struct controller_location *ret)
{
        struct controller *unconst =
                (struct controller *)c; /* the lock is not part of what the caller sees */
        int r = -ENOENT;

        (void)pthread_mutex_lock(&unconst->location_lock);
        if (c->located) {
                *ret = c->location;
                r = 0;
        }
        (void)pthread_mutex_unlock(&unconst->location_lock);
        return r;
}
