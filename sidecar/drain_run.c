/* Effects become calls and timers, results become events. Calls that cannot even be started are results too:
 * they are fed to the core by the same loop that performs the effects, so nothing recurses. */
#include "drain_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "api_json.h"
#include "base/clock.h"
#include "base/slog.h"
#include "base/uuid.h"
#include "endpoints.h"

struct drain_run {
        struct loop *loop;
        struct loop_timer *timer;
        const struct sidecar_config *config;
        struct controller_client *client;
        struct drain core;
        struct endpoints endpoints;
        struct controller_call *controller_call, *broker_call, *refresh_call;
        int refresh_tried;

        int32_t broker;    /* -1: not known yet */
        int broker_at;     /* endpoint of the broker itself */
        bool broker_known; /* `answered` is set */
        bool broker_mute;  /* it is registered without an admin listener */
        struct broker_answer answered;

        bool replace, cluster_stop, force;
        int64_t started_real_ms, ended_real_ms;
        struct drain_status status;
        char broker_message[256]; /* why the broker itself does not answer */

        drain_query_fn query;
        void *query_userdata;
        int query_tried, query_at;

        drain_run_fn on_change;
        void *userdata;
};

static void feed(struct drain_run *run, const struct drain_event *ev);

/* --- what the core asks for --- */

static void on_controller(const struct controller_result *res, void *userdata);
static void on_broker(const struct controller_result *res, void *userdata);

static uint32_t fresh_random(void)
{
        uint32_t n = 0;

        if (getrandom(&n, sizeof(n), GRND_NONBLOCK) != (ssize_t)sizeof(n))
                n = (uint32_t)clock_mono_us() * UINT32_C(2654435761); /* only spreads retries */
        return n;
}

static int start_controller_call(struct drain_run *run, enum drain_call call)
{
        bool force = run->force || drain_must_force(&run->core, clock_mono_ms());
        struct drain_ask ask = {
                .drain_id = run->status.drain_id,
                .reason = run->status.reason,
                .requested_by = run->status.requested_by,
                .epoch = run->core.epoch,
                .deadline_ms = drain_limit_ms(&run->core) - clock_mono_ms(),
                .replace = run->replace && run->core.state == DRAIN_WAITING,
                .cluster_stop = run->cluster_stop,
                .force = force,
        };
        char reason[DRAIN_TEXT_MAX];

        if (force && !run->force) { /* recorded; nobody gave a reason for this */
                (void)snprintf(reason, sizeof(reason), "%.150s%s%s", run->status.reason,
                               run->status.reason[0] ? "; " : "",
                               run->core.params.unsafe == DRAIN_UNSAFE_FORCE
                                       ? "unsafe.policy is force"
                                       : "the deadline is near: whatever can move");
                ask.reason = reason;
        }

        if (run->broker < 0) {
                (void)snprintf(run->status.message, sizeof(run->status.message),
                               "which broker this is, nobody said: set broker.id; %s", run->broker_message);
                return -EDESTADDRREQ;
        }
        return controller_call_drain(run->client, call, endpoints_get(&run->endpoints, run->core.endpoint),
                                     run->broker, &ask, on_controller, run, &run->controller_call);
}

static void cancel_calls(struct drain_run *run)
{
        run->controller_call = controller_call_cancel(run->controller_call);
        run->broker_call = controller_call_cancel(run->broker_call);
}

/* Perform the effects. Returns true when a call could not be started: *ret_event is then what to feed next.
 */
static bool perform(struct drain_run *run, const struct drain_effects *fx, struct drain_event *ret_event)
{
        bool failed = false;

        if (fx->cancel_calls)
                cancel_calls(run);
        if (fx->call != DRAIN_CALL_NONE && start_controller_call(run, fx->call) < 0) {
                *ret_event = (struct drain_event){.type = DRAIN_EV_CONTROLLER_FAILED, .endpoint = -1};
                failed = true;
        }
        if (fx->ask_broker &&
            controller_call_broker(run->client, endpoints_get(&run->endpoints, run->broker_at), on_broker,
                                   run, &run->broker_call) < 0) {
                run->broker_call = NULL; /* its failure is found by the timer below */
        }
        if (fx->wake_ms == DRAIN_NEVER)
                loop_timer_disarm(run->timer);
        else
                loop_timer_arm(run->timer, MAX(fx->wake_ms - clock_mono_ms(), INT64_C(0)), 0);
        if (!failed && run->core.broker_asked && !run->broker_call) {
                *ret_event = (struct drain_event){.type = DRAIN_EV_BROKER_FAILED};
                failed = true;
        }
        return failed;
}

static void note_end(struct drain_run *run, enum drain_phase from)
{
        if (drain_phase_is_ended(run->core.state) && from != run->core.state)
                run->ended_real_ms = clock_real_ms();
}

static void feed(struct drain_run *run, const struct drain_event *event)
{
        struct drain_event ev = *event;
        enum drain_phase from = run->core.state;
        struct drain_effects fx;
        bool again;

        do {
                ev.random = fresh_random();
                drain_handle(&run->core, &ev, clock_mono_ms(), &fx);
                note_end(run, fx.from);
                again = perform(run, &fx, &ev);
        } while (again);
        if (run->on_change)
                run->on_change(run, from, run->userdata);
}

/* --- what comes back --- */

static void set_message(struct drain_run *run, const char *message)
{
        text_copy(run->status.message, sizeof(run->status.message), message);
}

static void note_drain_answer(struct drain_run *run, const struct drain_answer *a, struct drain_event *ev)
{
        bool exists = a->state != CONTROLLER_NONE && a->state != CONTROLLER_STALE && a->drain_id[0] != '\0';

        ev->type = DRAIN_EV_CONTROLLER_ANSWER;
        ev->zookeeper_down = a->zookeeper_down;
        ev->controller.state = a->state;
        ev->controller.ours = strcmp(a->drain_id, run->status.drain_id) == 0;
        ev->controller.epoch = a->epoch;
        ev->controller.generation = a->generation;
        ev->controller.remaining = a->remaining;
        ev->controller.moved = a->moved;
        ev->controller.rf1_led = a->rf1_led;
        ev->controller.blocked = a->blocked_total;
        /* D1: the drain that is in progress is the one we wait for, whoever began it. */
        if (exists && a->state != CONTROLLER_CANCELLED)
                text_copy(run->status.drain_id, sizeof(run->status.drain_id), a->drain_id);
        run->status.controller = a->controller;
        run->status.slot = a->slot;
        run->status.n_blocked = a->n_blocked;
        if (a->n_blocked > 0)
                memcpy(run->status.blocked, a->blocked, a->n_blocked * sizeof(a->blocked[0]));
}

/* Where a redirect led is asked first from now on. */
static int learn_endpoint(struct drain_run *run, const char *base)
{
        int at = endpoints_add(&run->endpoints, base);

        drain_set_endpoints(&run->core, run->endpoints.n);
        return at;
}

static void on_controller(const struct controller_result *res, void *userdata)
{
        struct drain_event ev = {.endpoint = -1, .http_status = res->http_status};
        struct drain_run *run = userdata;

        run->controller_call = NULL;
        set_message(run, res->message);
        if (res->error < 0) {
                ev.type = DRAIN_EV_CONTROLLER_FAILED;
        } else if (res->drain) {
                ev.endpoint = learn_endpoint(run, res->base);
                note_drain_answer(run, res->drain, &ev);
        } else {
                ev.type = DRAIN_EV_CONTROLLER_REFUSAL;
                ev.zookeeper_down = res->zookeeper_down;
                ev.slot_held = res->slot_held;
                ev.unsafe = res->unsafe;
                if (res->unsafe) {
                        run->core.blocked = res->blocked_total;
                        ev.controller.remaining = res->remaining;
                        run->status.n_blocked = res->n_blocked;
                        if (res->n_blocked > 0)
                                memcpy(run->status.blocked, res->blocked,
                                       res->n_blocked * sizeof(res->blocked[0]));
                }
                ev.drain_ended = res->drain_ended;
                if (res->slot_held && res->slot)
                        run->status.slot = *res->slot;
        }
        feed(run, &ev);
}

/* Some other broker listens there: the cluster's list may know better. */
static void note_wrong_broker(struct drain_run *run, const struct broker_answer *a)
{
        int at = endpoints_of_broker(&run->endpoints, run->broker);

        (void)snprintf(run->broker_message, sizeof(run->broker_message), "%s is broker %d, not %d",
                       endpoints_get(&run->endpoints, run->broker_at), a->broker, run->broker);
        if (at >= 0)
                run->broker_at = at;
}

/* Apache Kafka has no admin listener (K3), and need not be asked twice: the controller says "drained" only
 * after the broker itself has acknowledged the LeaderAndIsr that took away its last leadership. That is its
 * own view of zero (L1); anything less than "drained" is none. */
static bool acknowledged_zero(const struct drain_run *run)
{
        return run->broker_mute && run->core.controller_state == CONTROLLER_DRAINED &&
               run->core.remaining == 0;
}

static void on_broker(const struct controller_result *res, void *userdata)
{
        struct drain_event ev = {.type = DRAIN_EV_BROKER_FAILED};
        struct drain_run *run = userdata;
        const struct broker_answer *a = res->broker;

        run->broker_call = NULL;
        if (a && run->broker < 0)
                run->broker = a->broker;
        if (a && a->broker == run->broker) {
                run->answered = *a;
                run->broker_known = true;
                run->broker_message[0] = '\0';
                ev.type = DRAIN_EV_BROKER_ANSWER;
                ev.broker.epoch = a->epoch;
                ev.broker.leaders = a->leaders;
                ev.broker.zookeeper_down = a->zookeeper_down;
        } else if (acknowledged_zero(run)) {
                run->broker_message[0] = '\0';
                ev.type = DRAIN_EV_BROKER_ANSWER;
                ev.broker.epoch = run->core.epoch;
        } else if (a) {
                note_wrong_broker(run, a);
        } else {
                text_copy(run->broker_message, sizeof(run->broker_message), res->message);
        }
        feed(run, &ev);
}

static int on_timer(struct loop *l, void *userdata)
{
        (void)l;
        feed(userdata, &(struct drain_event){.type = DRAIN_EV_TICK});
        return 0;
}

/* --- endpoints of the cluster --- */

static void ask_for_cluster(struct drain_run *run);

static void on_cluster(const struct controller_result *res, void *userdata)
{
        struct drain_run *run = userdata;

        run->refresh_call = NULL;
        if (!res->cluster) {
                if (++run->refresh_tried < run->endpoints.n)
                        ask_for_cluster(run);
                return;
        }
        run->broker_mute = false;
        for (int32_t i = 0; i < res->cluster->n_brokers; i++) {
                const struct cluster_member *m = &res->cluster->brokers[i];

                run->broker_mute = run->broker_mute || (m->mute && m->id == run->broker);
                if (m->admin[0] != '\0')
                        endpoints_set_broker(&run->endpoints, endpoints_add(&run->endpoints, m->admin),
                                             m->id);
        }
        drain_set_endpoints(&run->core, run->endpoints.n);
}

static void ask_for_cluster(struct drain_run *run)
{
        const char *base = endpoints_get(&run->endpoints, run->refresh_tried);

        if (controller_call_cluster(run->client, base, on_cluster, run, &run->refresh_call) < 0)
                run->refresh_call = NULL; /* out of memory: the configured endpoints remain */
}

void drain_run_refresh(struct drain_run *run)
{
        if (run->refresh_call)
                return;
        run->refresh_tried = 0;
        ask_for_cluster(run);
}

/* --- one question without a drain --- */

static int ask_query(struct drain_run *run);

static void answer_query(struct drain_run *run, const struct drain_answer *a, const char *message)
{
        drain_query_fn fn = TAKE_PTR(run->query);

        fn(a, message, run->query_userdata);
}

static void on_query(const struct controller_result *res, void *userdata)
{
        struct drain_run *run = userdata;

        run->controller_call = NULL;
        if (res->drain)
                answer_query(run, res->drain, "");
        else if (res->http_status == 404 || ++run->query_tried >= run->endpoints.n || ask_query(run) < 0)
                answer_query(run, NULL, res->message);
}

static void on_query_broker(const struct controller_result *res, void *userdata)
{
        struct drain_run *run = userdata;

        run->controller_call = NULL;
        if (res->broker)
                run->broker = res->broker->broker;
        if (!res->broker || ask_query(run) < 0)
                answer_query(run, NULL, res->message);
}

static int ask_query(struct drain_run *run)
{
        const char *base = endpoints_get(&run->endpoints, run->query_tried % run->endpoints.n);

        if (run->broker < 0)
                return controller_call_broker(run->client, base, on_query_broker, run, &run->controller_call);
        return controller_call_drain(run->client, DRAIN_CALL_GET, base, run->broker, NULL, on_query, run,
                                     &run->controller_call);
}

int drain_run_query(struct drain_run *run, drain_query_fn fn, void *userdata)
{
        int r;

        if (run->query || drain_phase_is_active(run->core.state))
                return -EBUSY;
        run->query = fn;
        run->query_userdata = userdata;
        run->query_tried = 0;
        r = ask_query(run);
        if (r < 0)
                run->query = NULL;
        return r;
}

/* --- verbs --- */

static int name_drain(struct drain_run *run, const struct drain_job *job)
{
        struct uuid id;
        int r;

        memset(&run->status, 0, sizeof(run->status));
        text_copy(run->status.reason, sizeof(run->status.reason), job->reason ? job->reason : "");
        text_copy(run->status.requested_by, sizeof(run->status.requested_by),
                  job->requested_by ? job->requested_by : "");
        if (job->drain_id && job->drain_id[0] != '\0') {
                text_copy(run->status.drain_id, sizeof(run->status.drain_id), job->drain_id);
                return 0;
        }
        r = uuid_random(&id);
        if (r == 0)
                uuid_format(&id, run->status.drain_id);
        return r;
}

/* D1: the drain in progress is the one that is asked for; but it may be asked for with more force now. */
static int join(struct drain_run *run, const struct drain_job *job)
{
        if (job->cluster_stop && !run->cluster_stop)
                run->core.ask_anew = true;
        if (job->replace && job->reason && job->reason[0] != '\0')
                text_copy(run->status.reason, sizeof(run->status.reason), job->reason);
        run->replace |= job->replace;
        run->force |= job->force;
        run->cluster_stop |= job->cluster_stop;
        return 0;
}

int drain_run_start(struct drain_run *run, const struct drain_job *job)
{
        struct drain_event ev = {.type = DRAIN_EV_START, .epoch = job->epoch};
        int r;

        if (run->query)
                return -EBUSY;
        if (drain_phase_is_active(run->core.state) && run->core.state != DRAIN_UNDOING)
                return join(run, job);
        if (run->core.state == DRAIN_UNDOING)
                return -EBUSY; /* its DELETE is on its way: what was asked for last must not overtake it */
        r = name_drain(run, job);
        if (r < 0)
                return r;
        run->replace = job->replace;
        run->force = job->force;
        run->cluster_stop = job->cluster_stop;
        run->status.controller = -1;
        run->ended_real_ms = 0;
        run->started_real_ms = job->started_real_ms > 0 ? job->started_real_ms : clock_real_ms();
        sidecar_config_params(run->config, job->deadline_ms, &run->core.params);
        drain_run_refresh(run);
        feed(run, &ev);
        return 0;
}

void drain_run_undo(struct drain_run *run)
{
        if (run->started_real_ms == 0)
                run->started_real_ms = clock_real_ms();
        run->ended_real_ms = 0;
        feed(run, &(struct drain_event){.type = DRAIN_EV_UNDO});
}

void drain_run_skip(struct drain_run *run)
{
        feed(run, &(struct drain_event){.type = DRAIN_EV_SKIP});
}

void drain_run_broker_gone(struct drain_run *run)
{
        feed(run, &(struct drain_event){.type = DRAIN_EV_BROKER_GONE});
}

void drain_run_set_broker(struct drain_run *run, int32_t broker)
{
        run->broker = broker;
}

/* --- the snapshot --- */

/* The words of the last refusal say more than the reason's own; but they are stale once all is well. */
static void describe(struct drain_run *run, struct drain_status *s)
{
        if (s->why == DRAIN_WHY_BROKER_SILENT)
                (void)snprintf(s->message, sizeof(s->message), "%s: %s", drain_why_text(s->why),
                               run->broker_message);
        else if (s->why == DRAIN_WHY_NONE || s->state == DRAIN_WAITING || s->state == DRAIN_WAITING_SAFE)
                s->message[0] = '\0';
        else if (s->message[0] == '\0' || (drain_phase_is_ended(s->state) && s->why != DRAIN_WHY_REFUSED &&
                                           s->why != DRAIN_WHY_NO_CONTROLLER))
                text_copy(s->message, sizeof(s->message), drain_why_text(s->why));
}

const struct drain_status *drain_run_status(struct drain_run *run)
{
        const struct drain *d = &run->core;
        int64_t now_ms = clock_mono_ms();
        struct drain_status *s = &run->status;

        s->broker = run->broker;
        s->state = d->state;
        s->why = d->why;
        s->epoch = d->epoch;
        s->remaining = d->remaining;
        s->initial = d->initial;
        s->leaders = d->leaders;
        s->moved = d->moved;
        s->rf1_led = d->rf1_led;
        s->blocked_total = d->blocked;
        s->failures = d->failures;
        s->rate_milli = drain_rate_milli(d, now_ms);
        s->stalled = drain_is_stalled(d, now_ms);
        s->may_extend = drain_may_extend(d, now_ms);
        s->started_real_ms = run->started_real_ms;
        s->ended_real_ms = run->ended_real_ms;
        s->elapsed_ms = 0;
        if (run->started_real_ms > 0)
                s->elapsed_ms = MAX((run->ended_real_ms > 0 ? run->ended_real_ms : clock_real_ms()) -
                                            run->started_real_ms,
                                    INT64_C(0));
        s->deadline_in_ms = drain_phase_is_active(d->state) ? drain_limit_ms(d) - now_ms : 0;
        describe(run, s);
        return s;
}

const struct broker_answer *drain_run_broker(const struct drain_run *run)
{
        return run->broker_known ? &run->answered : NULL;
}

/* --- life --- */

int drain_run_new(struct loop *loop, const struct sidecar_config *config, drain_run_fn on_change,
                  void *userdata, struct drain_run **ret)
{
        cleanup_with(drain_run_freep) struct drain_run *run = calloc(1, sizeof(*run));
        struct drain_params params;
        struct http_limits limits;
        int r;

        if (!run)
                return -ENOMEM;
        run->loop = loop;
        run->config = config;
        run->on_change = on_change;
        run->userdata = userdata;
        run->broker = config->broker_id;
        run->status.controller = -1;
        r = endpoints_parse(&run->endpoints, config->admin_endpoints);
        if (r < 0)
                return r;
        sidecar_config_params(config, 0, &params);
        sidecar_config_limits(config, &limits);
        drain_init(&run->core, &params, run->endpoints.n);
        r = controller_client_new(loop, &limits, config->token, &run->client);
        if (r < 0)
                return r;
        r = loop_add_timer(loop, on_timer, run, &run->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(run);
        return 0;
}

struct drain_run *drain_run_free(struct drain_run *run)
{
        if (!run)
                return NULL;
        cancel_calls(run);
        (void)controller_call_cancel(run->refresh_call);
        (void)controller_client_free(run->client);
        (void)loop_timer_remove(run->timer);
        free(run);
        return NULL;
}
