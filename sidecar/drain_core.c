/* The drain state machine. Pure: see drain_core.h for the diagram and the invariants. */
#include "drain_core.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define BIT(s) (UINT32_C(1) << (s))
#define ENDINGS                                                                                              \
        (BIT(DRAIN_INCOMPLETE) | BIT(DRAIN_NO_CONTROLLER) | BIT(DRAIN_STALE) | BIT(DRAIN_UNKNOWN_BROKER) |   \
         BIT(DRAIN_BROKER_GONE) | BIT(DRAIN_SKIPPED) | BIT(DRAIN_ABORTED) | BIT(DRAIN_CLUSTER_STOP))
#define WAITS (BIT(DRAIN_WAITING) | BIT(DRAIN_WAITING_SAFE))
#define ANEW  (BIT(DRAIN_REQUESTING) | BIT(DRAIN_UNDOING))

enum kind { IDLE, ACTIVE, ENDED };

static const struct {
        const char *name;
        enum kind kind;
        int exit_status; /* of whoever waited; documented in `stepdown drain --help` */
        uint32_t next;   /* allowed next states */
} states[N_DRAIN_PHASES] = {
        [DRAIN_IDLE] = {"idle", IDLE, 75, ANEW},
        [DRAIN_REQUESTING] = {"requesting", ACTIVE, 75,
                              ENDINGS | WAITS | BIT(DRAIN_DRAINING) | BIT(DRAIN_UNDOING)},
        [DRAIN_WAITING] = {"waiting_for_slot", ACTIVE, 75,
                           ENDINGS | WAITS | BIT(DRAIN_REQUESTING) | BIT(DRAIN_DRAINING) |
                                   BIT(DRAIN_UNDOING)},
        [DRAIN_WAITING_SAFE] = {"waiting_for_in_sync", ACTIVE, 75,
                                ENDINGS | WAITS | BIT(DRAIN_REQUESTING) | BIT(DRAIN_DRAINING) |
                                        BIT(DRAIN_UNDOING)},
        [DRAIN_DRAINING] = {"draining", ACTIVE, 75,
                            ENDINGS | BIT(DRAIN_REQUESTING) | BIT(DRAIN_CONFIRMING) | BIT(DRAIN_UNDOING)},
        [DRAIN_CONFIRMING] = {"confirming", ACTIVE, 75,
                              ENDINGS | BIT(DRAIN_REQUESTING) | BIT(DRAIN_DRAINING) | BIT(DRAIN_DRAINED) |
                                      BIT(DRAIN_UNDOING)},
        [DRAIN_UNDOING] = {"undoing", ACTIVE, 75,
                           BIT(DRAIN_ABORTED) | BIT(DRAIN_BROKER_GONE) | BIT(DRAIN_SKIPPED)},
        [DRAIN_DRAINED] = {"drained", ENDED, 0, ANEW},
        [DRAIN_INCOMPLETE] = {"incomplete", ENDED, 75, ANEW},
        [DRAIN_NO_CONTROLLER] = {"no-controller", ENDED, 69, ANEW},
        [DRAIN_STALE] = {"stale", ENDED, 0, ANEW},
        [DRAIN_UNKNOWN_BROKER] = {"unknown-broker", ENDED, 0, ANEW},
        [DRAIN_BROKER_GONE] = {"broker-gone", ENDED, 76, ANEW},
        [DRAIN_ABORTED] = {"aborted", ENDED, 75, ANEW},
        [DRAIN_SKIPPED] = {"skipped", ENDED, 75, ANEW},
        [DRAIN_CLUSTER_STOP] = {"cluster-stop", ENDED, 0, ANEW},
};

/* What an HTTP status other than success means to a drain (L3). Not listed: to be tried again elsewhere. */
enum meaning { MEANS_RETRY, MEANS_REFUSED, MEANS_UNKNOWN_BROKER, MEANS_STALE, MEANS_BUSY, MEANS_THROTTLED };

static const struct {
        int status;
        enum meaning meaning;
} meanings[] = {
        {400, MEANS_REFUSED}, {401, MEANS_REFUSED}, {403, MEANS_REFUSED},   {404, MEANS_UNKNOWN_BROKER},
        {409, MEANS_BUSY},    {410, MEANS_STALE},   {429, MEANS_THROTTLED},
};

static enum meaning meaning_of(int http_status)
{
        for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
                if (meanings[i].status == http_status)
                        return meanings[i].meaning;
        return MEANS_RETRY;
}

bool drain_phase_is_active(enum drain_phase s)
{
        return states[s].kind == ACTIVE;
}

bool drain_phase_is_ended(enum drain_phase s)
{
        return states[s].kind == ENDED;
}

const char *drain_phase_name(enum drain_phase s)
{
        return states[s].name;
}

int drain_phase_parse(const char *name, enum drain_phase *ret)
{
        for (int s = 0; s < N_DRAIN_PHASES; s++)
                if (strcmp(states[s].name, name) == 0) {
                        *ret = (enum drain_phase)s;
                        return 0;
                }
        return -EINVAL;
}

int drain_phase_exit_status(enum drain_phase s)
{
        return states[s].exit_status;
}

void drain_check(const struct drain *d)
{
        assert(d->state < N_DRAIN_PHASES && d->why < N_DRAIN_WHYS);
        assert(d->n_endpoints >= 0 && d->tried <= d->n_endpoints);
        assert(d->endpoint == 0 || d->endpoint < d->n_endpoints);
        /* Nothing is in flight, and nothing is due, unless the drain is active. */
        if (!drain_phase_is_active(d->state))
                assert(d->call == DRAIN_CALL_NONE && !d->broker_asked && d->next_ms == DRAIN_NEVER);
        /* L1: positive evidence only. */
        if (d->state == DRAIN_CONFIRMING || d->state == DRAIN_DRAINED)
                assert(d->remaining == 0 && d->leaders == 0);
        if (d->state == DRAIN_DRAINED)
                assert(d->round_remaining == 0 && d->round_leaders == 0 && d->moved == d->confirm_moved);
        if (drain_phase_is_ended(d->state))
                assert(d->ended_ms >= d->started_ms);
}

/* The one place that changes the state. */
static void set_state(struct drain *d, enum drain_phase to)
{
        assert(states[d->state].next & BIT(to));
        d->state = to;
}

static void drop_calls(struct drain *d, struct drain_effects *fx)
{
        fx->cancel_calls = true;
        fx->call = DRAIN_CALL_NONE;
        fx->ask_broker = false;
        d->call = DRAIN_CALL_NONE;
        d->broker_asked = false;
}

static void end(struct drain *d, enum drain_phase verdict, enum drain_why why, int64_t now_ms,
                struct drain_effects *fx)
{
        drop_calls(d, fx);
        d->next_ms = DRAIN_NEVER;
        d->ended_ms = now_ms;
        d->why = why;
        set_state(d, verdict);
}

static void start_call(struct drain *d, enum drain_call call, struct drain_effects *fx)
{
        d->call = fx->call = call;
        d->next_ms = DRAIN_NEVER;
}

static void ask_broker(struct drain *d, struct drain_effects *fx)
{
        d->broker_asked = fx->ask_broker = true;
        d->round_leaders = DRAIN_UNKNOWN;
        d->next_ms = DRAIN_NEVER;
}

static bool waits(const struct drain *d)
{
        return BIT(d->state) & WAITS;
}

/* A round asks the controller and the broker once each; it is over when both have answered or failed. */
static void start_round(struct drain *d, struct drain_effects *fx)
{
        enum drain_call call = DRAIN_CALL_GET;

        d->tried = 0;
        d->round_remaining = DRAIN_UNKNOWN;
        if (d->state == DRAIN_UNDOING) {
                start_call(d, DRAIN_CALL_DELETE, fx);
                if (d->epoch == DRAIN_UNKNOWN)
                        ask_broker(d, fx); /* the shell may not even know its id yet */
                return;
        }
        /* R27: incomplete means wait and ask again. PUT is idempotent (D1), so asking again is free. */
        if (d->state == DRAIN_REQUESTING || waits(d) || d->ask_anew ||
            d->controller_state == CONTROLLER_INCOMPLETE)
                call = DRAIN_CALL_PUT;
        d->ask_anew = false;
        start_call(d, call, fx);
        ask_broker(d, fx);
}

static void start_undo(struct drain *d, enum drain_why why, int64_t now_ms, struct drain_effects *fx)
{
        drop_calls(d, fx);
        if (d->started_ms == 0 || drain_phase_is_ended(d->state))
                d->started_ms = now_ms;
        d->why = why;
        d->contact_ms = now_ms;
        d->deadline_ms = now_ms + d->params.undo_ms;
        d->backoff_ms = 0;
        set_state(d, DRAIN_UNDOING);
        start_round(d, fx);
}

/* What is wrong at present. An undo keeps the reason it was begun for. */
static void set_trouble(struct drain *d, enum drain_why why)
{
        if (d->state != DRAIN_UNDOING)
                d->why = why;
}

int64_t drain_limit_ms(const struct drain *d)
{
        if (d->state != DRAIN_UNDOING && d->params.policy == DRAIN_HOLD)
                return d->started_ms + d->params.hard_limit_ms;
        return d->deadline_ms;
}

/* L4. `hold` is not decided here: it moves the limit (drain_limit_ms()), past which it proceeds like the
 * default.
 */
static void apply_policy(struct drain *d, enum drain_why why, int64_t now_ms, struct drain_effects *fx)
{
        if (d->params.policy == DRAIN_ABORT)
                start_undo(d, why, now_ms, fx);
        else
                end(d, DRAIN_INCOMPLETE, why, now_ms, fx);
}

/* L5; R27. When ZooKeeper is known to be what is missing, the cluster does have a controller or would have
 * one: the honest verdict is that the drain is incomplete. */
static void give_up_without_controller(struct drain *d, int64_t now_ms, struct drain_effects *fx)
{
        if (d->zookeeper_down)
                end(d, DRAIN_INCOMPLETE, DRAIN_WHY_ZOOKEEPER, now_ms, fx);
        else if (d->why == DRAIN_WHY_DISAGREE)
                end(d, DRAIN_INCOMPLETE, DRAIN_WHY_DISAGREE, now_ms, fx);
        else
                end(d, DRAIN_NO_CONTROLLER, DRAIN_WHY_NO_CONTROLLER, now_ms, fx);
}

static bool never_reached(const struct drain *d)
{
        return d->contact_ms == d->started_ms && d->remaining == DRAIN_UNKNOWN;
}

/* Every budget, on every event. */
static void check_budgets(struct drain *d, int64_t now_ms, struct drain_effects *fx)
{
        bool undoing = d->state == DRAIN_UNDOING;

        if (now_ms >= drain_limit_ms(d) && undoing)
                end(d, DRAIN_ABORTED, DRAIN_WHY_UNDO_FAILED, now_ms, fx);
        else if (now_ms >= drain_limit_ms(d) && never_reached(d))
                give_up_without_controller(d, now_ms, fx);
        else if (now_ms >= drain_limit_ms(d))
                apply_policy(d, DRAIN_WHY_DEADLINE, now_ms, fx);
        else if (!undoing && now_ms - d->contact_ms >= d->params.no_controller_ms)
                give_up_without_controller(d, now_ms, fx);
        else if (!undoing && d->silent_ms != DRAIN_NEVER &&
                 now_ms - d->silent_ms >= d->params.broker_silent_ms)
                end(d, DRAIN_INCOMPLETE, DRAIN_WHY_BROKER_SILENT, now_ms, fx);
}

/* Decorrelated jitter (L3): uniform between the minimum and three times the last sleep, below a ceiling. */
static int64_t next_backoff(const struct drain *d, uint32_t random)
{
        int64_t base = d->params.backoff_min_ms;
        int64_t last = d->backoff_ms > 0 ? d->backoff_ms : base;
        int64_t span = MIN(last * 3, d->params.backoff_max_ms) - base;

        if (span <= 0)
                return base;
        return base + (int64_t)((uint64_t)random * (uint64_t)(span + 1) >> 32);
}

/* L3: the next endpoint at once; a sleep (finish_round()) only when all have been tried. */
static void retry_elsewhere(struct drain *d, enum drain_call call, uint32_t random, struct drain_effects *fx)
{
        d->failures++;
        d->tried++;
        if (d->n_endpoints > 0)
                d->endpoint = (d->endpoint + 1) % d->n_endpoints;
        if (d->tried < d->n_endpoints) {
                start_call(d, call, fx);
                return;
        }
        d->tried = 0;
        d->backoff_ms = next_backoff(d, random);
}

/* A controller without ZooKeeper counts from memory: not evidence (L1). One that is still at work on the ISRs
 * is given some time, so that producers do not wait for a follower that is about to exit (R8). */
static bool both_views_are_zero(const struct drain *d, int64_t now_ms)
{
        bool settled = d->zero_ms == DRAIN_NEVER || now_ms - d->zero_ms >= d->params.settle_ms;

        return d->round_remaining == 0 && d->round_leaders == 0 && !d->zookeeper_down && settled;
}

/* The controller's 0 without the broker's own: never "drained", but not waited for until the deadline either.
 */
static void compare_views(struct drain *d, int64_t now_ms)
{
        if (d->round_remaining == DRAIN_UNKNOWN)
                return;
        if (d->round_remaining > 0 || d->round_leaders == 0) {
                d->silent_ms = DRAIN_NEVER;
        } else if (d->round_leaders > 0) {
                d->silent_ms = DRAIN_NEVER;
                d->why = DRAIN_WHY_DISAGREE;
        } else {
                d->silent_ms = d->silent_ms == DRAIN_NEVER ? now_ms : d->silent_ms;
                d->why = DRAIN_WHY_BROKER_SILENT;
        }
}

static void judge_round(struct drain *d, int64_t now_ms, struct drain_effects *fx)
{
        compare_views(d, now_ms);
        if (!both_views_are_zero(d, now_ms)) {
                if (d->state == DRAIN_CONFIRMING)
                        set_state(d, DRAIN_DRAINING);
        } else if (d->state == DRAIN_DRAINING) {
                d->confirm_moved = d->moved;
                set_state(d, DRAIN_CONFIRMING);
        } else if (d->moved != d->confirm_moved) {
                d->confirm_moved = d->moved; /* L1: one poll after the *last* move */
        } else {
                end(d, DRAIN_DRAINED, DRAIN_WHY_NONE, now_ms, fx);
        }
}

static int64_t pause_after_round(struct drain *d, uint32_t random)
{
        if (d->failures > 0)
                return d->backoff_ms;
        if (waits(d)) /* several may wait: not all in step */
                return d->params.poll_ms + (int64_t)(random % (uint32_t)d->params.poll_ms);
        if (d->state != DRAIN_DRAINING || d->controller_state != CONTROLLER_INCOMPLETE)
                return d->params.poll_ms;
        /* Asking again makes the controller look at every partition again: not at the pace of a poll. */
        d->backoff_ms = next_backoff(d, random);
        return MAX(d->params.poll_ms, MIN(d->backoff_ms, 5 * d->params.poll_ms));
}

/* Called when nothing is in flight and nothing is due. */
static void finish_round(struct drain *d, const struct drain_event *ev, int64_t now_ms,
                         struct drain_effects *fx)
{
        if (d->state == DRAIN_REQUESTING && d->failures == 0) {
                /* The broker was asked who it is first, so that the request names its incarnation (D2). */
                start_call(d, DRAIN_CALL_PUT, fx);
                return;
        }
        if (d->state == DRAIN_DRAINING || d->state == DRAIN_CONFIRMING)
                judge_round(d, now_ms, fx);
        if (drain_phase_is_active(d->state))
                d->next_ms = now_ms + pause_after_round(d, ev->random);
}

static void note_counts(struct drain *d, const struct drain_event *ev, int64_t now_ms)
{
        int32_t remaining = ev->controller.remaining;

        if (d->initial == DRAIN_UNKNOWN)
                d->initial = remaining;
        if (d->remaining == DRAIN_UNKNOWN || remaining < d->remaining || ev->controller.moved > d->moved)
                d->progress_ms = now_ms;
        if (d->state == DRAIN_CONFIRMING && remaining != 0)
                set_state(d, DRAIN_DRAINING);
        d->remaining = d->round_remaining = remaining;
        d->moved = ev->controller.moved;
        d->rf1_led = ev->controller.rf1_led;
        d->blocked = ev->controller.blocked;
        d->controller_state = ev->controller.state;
        d->generation = ev->controller.generation;
        if (remaining != 0 || ev->controller.state != CONTROLLER_DRAINING)
                d->zero_ms = DRAIN_NEVER;
        else if (d->zero_ms == DRAIN_NEVER)
                d->zero_ms = now_ms;
        if (d->epoch == DRAIN_UNKNOWN)
                d->epoch = ev->controller.epoch;
}

/* A controller answered. It counts as contact only with a quorum behind it (L5). */
static void note_contact(struct drain *d, const struct drain_event *ev, int64_t now_ms)
{
        if (ev->endpoint >= 0 && ev->endpoint < d->n_endpoints)
                d->endpoint = ev->endpoint;
        d->zookeeper_down = ev->zookeeper_down;
        d->tried = 0;
        d->failures = 0;
        if (ev->controller.state != CONTROLLER_INCOMPLETE)
                d->backoff_ms = 0;
        set_trouble(d, ev->zookeeper_down ? DRAIN_WHY_ZOOKEEPER : DRAIN_WHY_NONE);
        if (!ev->zookeeper_down)
                d->contact_ms = now_ms;
}

/* A new controller does not know the drain of the one before it (R28): ask again, with the same drain id. */
static void request_again(struct drain *d, enum drain_call answered, uint32_t random,
                          struct drain_effects *fx)
{
        if (d->state != DRAIN_REQUESTING)
                set_state(d, DRAIN_REQUESTING);
        if (answered == DRAIN_CALL_PUT)
                retry_elsewhere(d, DRAIN_CALL_PUT, random, fx);
        else
                start_call(d, DRAIN_CALL_PUT, fx);
}

/* The controller that accepted the drain knows of none any more: somebody undid it. */
static bool was_cancelled(const struct drain *d, enum drain_call call, const struct drain_event *ev)
{
        if (call != DRAIN_CALL_GET)
                return false;
        if (ev->controller.state == CONTROLLER_CANCELLED)
                return ev->controller.ours;
        return ev->controller.state == CONTROLLER_NONE && d->generation != DRAIN_UNKNOWN &&
               ev->controller.generation == d->generation;
}

static void on_answer(struct drain *d, const struct drain_event *ev, int64_t now_ms, struct drain_effects *fx)
{
        enum controller_drain_state state = ev->controller.state;
        enum drain_call call = d->call;

        d->call = DRAIN_CALL_NONE;
        note_contact(d, ev, now_ms);
        if (d->state == DRAIN_UNDOING) {
                if (ev->zookeeper_down)
                        retry_elsewhere(d, call, ev->random, fx);
                else
                        end(d, DRAIN_ABORTED, d->why, now_ms, fx);
        } else if (state == CONTROLLER_STALE ||
                   (d->epoch != DRAIN_UNKNOWN && ev->controller.epoch > d->epoch)) {
                end(d, DRAIN_STALE, DRAIN_WHY_NONE, now_ms, fx);
        } else if (state == CONTROLLER_CLUSTER_STOP) {
                end(d, DRAIN_CLUSTER_STOP, DRAIN_WHY_NONE, now_ms, fx);
        } else if (was_cancelled(d, call, ev)) {
                end(d, DRAIN_ABORTED, DRAIN_WHY_CANCELLED, now_ms, fx);
        } else if (state == CONTROLLER_NONE || state == CONTROLLER_CANCELLED || state == CONTROLLER_WAITING) {
                request_again(d, call, ev->random, fx);
        } else {
                note_counts(d, ev, now_ms);
                if (d->state == DRAIN_REQUESTING || waits(d)) {
                        set_state(d, DRAIN_DRAINING);
                        if (!d->broker_asked)
                                ask_broker(d, fx);
                }
        }
}

static void on_unknown_broker(struct drain *d, enum drain_call call, uint32_t random, int64_t now_ms,
                              struct drain_effects *fx)
{
        /* L3: done. But a broker that says it leads partitions is not done, whatever this controller knows.
         */
        if (d->leaders <= 0) {
                end(d, DRAIN_UNKNOWN_BROKER, DRAIN_WHY_NONE, now_ms, fx);
                return;
        }
        retry_elsewhere(d, call, random, fx);
        d->why = DRAIN_WHY_DISAGREE;
}

/* 400, 401, 403: trying again changes nothing, so the policy speaks at once (L3, L4); `hold` does go on
 * trying, for the operator may mend the token meanwhile. */
static void on_refused(struct drain *d, enum drain_call call, uint32_t random, int64_t now_ms,
                       struct drain_effects *fx)
{
        if (d->state == DRAIN_UNDOING) {
                end(d, DRAIN_ABORTED, DRAIN_WHY_UNDO_FAILED, now_ms, fx);
        } else if (d->params.policy == DRAIN_HOLD) {
                retry_elsewhere(d, call, random, fx);
                d->why = DRAIN_WHY_REFUSED;
        } else {
                apply_policy(d, DRAIN_WHY_REFUSED, now_ms, fx);
        }
}

/* D3: nothing failed; it is somebody else's turn. The deadline goes on meanwhile (L2). */
static void on_wait(struct drain *d, const struct drain_event *ev, int64_t now_ms, struct drain_effects *fx)
{
        enum drain_phase to = ev->slot_held ? DRAIN_WAITING : DRAIN_WAITING_SAFE;

        d->contact_ms = now_ms;
        d->failures = d->tried = 0;
        d->backoff_ms = 0;
        d->zookeeper_down = false;
        if (ev->unsafe && ev->controller.remaining != DRAIN_UNKNOWN) {
                d->remaining = ev->controller.remaining;
                if (d->initial == DRAIN_UNKNOWN)
                        d->initial = d->remaining;
        }
        d->why = ev->slot_held ? DRAIN_WHY_SLOT : DRAIN_WHY_UNSAFE;
        if (!ev->slot_held && d->params.unsafe == DRAIN_UNSAFE_REFUSE) {
                end(d, DRAIN_INCOMPLETE, DRAIN_WHY_UNSAFE, now_ms, fx);
                return;
        }
        if (d->state == DRAIN_DRAINING || d->state == DRAIN_CONFIRMING)
                set_state(d, DRAIN_REQUESTING); /* we had it, and it was taken from us */
        if (d->state != to)
                set_state(d, to);
}

static void on_refusal(struct drain *d, const struct drain_event *ev, int64_t now_ms,
                       struct drain_effects *fx)
{
        enum meaning meaning = meaning_of(ev->http_status);
        bool nothing_left = meaning == MEANS_UNKNOWN_BROKER || meaning == MEANS_STALE;
        enum drain_call call = d->call;

        d->call = DRAIN_CALL_NONE;
        d->http_status = ev->http_status;
        if ((ev->slot_held || ev->unsafe) && d->state != DRAIN_UNDOING) {
                on_wait(d, ev, now_ms, fx);
        } else if (ev->drain_ended && d->state != DRAIN_UNDOING) {
                end(d, DRAIN_ABORTED, DRAIN_WHY_CANCELLED, now_ms, fx);
        } else if (meaning == MEANS_RETRY) {
                d->zookeeper_down |= ev->zookeeper_down;
                retry_elsewhere(d, call, ev->random, fx);
                set_trouble(d, d->zookeeper_down ? DRAIN_WHY_ZOOKEEPER : DRAIN_WHY_NO_CONTROLLER);
        } else if (meaning == MEANS_REFUSED) {
                on_refused(d, call, ev->random, now_ms, fx);
        } else if (d->state == DRAIN_UNDOING && nothing_left) {
                end(d, DRAIN_ABORTED, d->why, now_ms, fx);
        } else if (meaning == MEANS_UNKNOWN_BROKER) {
                on_unknown_broker(d, call, ev->random, now_ms, fx);
        } else if (meaning == MEANS_STALE) {
                end(d, DRAIN_STALE, DRAIN_WHY_NONE, now_ms, fx);
        } else {
                d->contact_ms = now_ms; /* 409, 429: a controller said this, so there is one */
                retry_elsewhere(d, call, ev->random, fx);
                if (meaning == MEANS_BUSY)
                        set_trouble(d, DRAIN_WHY_BUSY);
        }
}

static void on_failure(struct drain *d, const struct drain_event *ev, int64_t now_ms,
                       struct drain_effects *fx)
{
        enum drain_call call = d->call;

        (void)now_ms;
        d->call = DRAIN_CALL_NONE;
        retry_elsewhere(d, call, ev->random, fx);
        set_trouble(d, d->zookeeper_down ? DRAIN_WHY_ZOOKEEPER : DRAIN_WHY_NO_CONTROLLER);
}

static void on_broker_answer(struct drain *d, const struct drain_event *ev, int64_t now_ms,
                             struct drain_effects *fx)
{
        d->broker_asked = false;
        if (d->state == DRAIN_CONFIRMING && ev->broker.leaders != 0)
                set_state(d, DRAIN_DRAINING);
        d->leaders = d->round_leaders = ev->broker.leaders;
        /* Who has no controller to ask takes the broker's word on what is missing (L5). */
        if (d->failures > 0)
                d->zookeeper_down = ev->broker.zookeeper_down;
        if (d->epoch == DRAIN_UNKNOWN)
                d->epoch = ev->broker.epoch;
        else if (ev->broker.epoch > d->epoch && d->state != DRAIN_UNDOING)
                end(d, DRAIN_STALE, DRAIN_WHY_NONE, now_ms, fx); /* D2: the drain was its predecessor's */
}

static void on_start(struct drain *d, const struct drain_event *ev, int64_t now_ms, struct drain_effects *fx)
{
        struct drain_params params = d->params;
        enum drain_phase state = d->state;
        int n_endpoints = d->n_endpoints;

        drain_init(d, &params, n_endpoints);
        d->state = state;
        d->started_ms = d->progress_ms = d->contact_ms = now_ms;
        d->deadline_ms = now_ms + params.deadline_ms;
        d->epoch = ev->epoch;
        set_state(d, DRAIN_REQUESTING);
        ask_broker(d, fx);
}

static void dispatch(struct drain *d, const struct drain_event *ev, int64_t now_ms, struct drain_effects *fx)
{
        switch (ev->type) {
        case DRAIN_EV_TICK:
                if (now_ms >= d->next_ms)
                        start_round(d, fx);
                break;
        case DRAIN_EV_CONTROLLER_ANSWER:
                on_answer(d, ev, now_ms, fx);
                break;
        case DRAIN_EV_CONTROLLER_REFUSAL:
                on_refusal(d, ev, now_ms, fx);
                break;
        case DRAIN_EV_CONTROLLER_FAILED:
                on_failure(d, ev, now_ms, fx);
                break;
        case DRAIN_EV_BROKER_ANSWER:
                on_broker_answer(d, ev, now_ms, fx);
                break;
        case DRAIN_EV_BROKER_FAILED:
                d->broker_asked = false;
                break;
        case DRAIN_EV_BROKER_GONE:
                end(d, DRAIN_BROKER_GONE, DRAIN_WHY_NONE, now_ms, fx);
                break;
        case DRAIN_EV_SKIP:
                end(d, DRAIN_SKIPPED, DRAIN_WHY_TERMINATED, now_ms, fx);
                break;
        case DRAIN_EV_START:
        case DRAIN_EV_UNDO:
        case N_DRAIN_EVENTS:
                break;
        }
}

static int64_t earliest_of(const struct drain *d)
{
        int64_t t = MIN(d->next_ms, drain_limit_ms(d));

        if (d->state == DRAIN_UNDOING)
                return t;
        t = MIN(t, d->contact_ms + d->params.no_controller_ms);
        if (d->silent_ms != DRAIN_NEVER)
                t = MIN(t, d->silent_ms + d->params.broker_silent_ms);
        return t;
}

void drain_handle(struct drain *d, const struct drain_event *ev, int64_t now_ms, struct drain_effects *ret)
{
        bool active = drain_phase_is_active(d->state);

        *ret = (struct drain_effects){.wake_ms = DRAIN_NEVER, .from = d->state};
        if (ev->type == DRAIN_EV_START && !active)
                on_start(d, ev, now_ms, ret);
        else if (ev->type == DRAIN_EV_UNDO && d->state != DRAIN_UNDOING)
                start_undo(d, DRAIN_WHY_UNDONE, now_ms, ret);
        else if (active)
                dispatch(d, ev, now_ms, ret);
        if (drain_phase_is_active(d->state) && d->call == DRAIN_CALL_NONE && !d->broker_asked &&
            d->next_ms == DRAIN_NEVER)
                finish_round(d, ev, now_ms, ret);
        if (drain_phase_is_active(d->state))
                check_budgets(d, now_ms, ret);
        if (drain_phase_is_active(d->state))
                ret->wake_ms = earliest_of(d);
        drain_check(d);
}

void drain_init(struct drain *d, const struct drain_params *params, int n_endpoints)
{
        *d = (struct drain){
                .params = *params,
                .state = DRAIN_IDLE,
                .silent_ms = DRAIN_NEVER,
                .next_ms = DRAIN_NEVER,
                .n_endpoints = n_endpoints,
                .epoch = DRAIN_UNKNOWN,
                .generation = DRAIN_UNKNOWN,
                .zero_ms = DRAIN_NEVER,
                .remaining = DRAIN_UNKNOWN,
                .initial = DRAIN_UNKNOWN,
                .leaders = DRAIN_UNKNOWN,
                .round_remaining = DRAIN_UNKNOWN,
                .round_leaders = DRAIN_UNKNOWN,
        };
}

void drain_set_endpoints(struct drain *d, int n_endpoints)
{
        assert(n_endpoints >= d->n_endpoints);
        d->n_endpoints = n_endpoints;
}

bool drain_must_force(const struct drain *d, int64_t now_ms)
{
        if (d->params.unsafe != DRAIN_UNSAFE_WAIT)
                return d->params.unsafe == DRAIN_UNSAFE_FORCE;
        return d->state == DRAIN_WAITING_SAFE && d->params.policy != DRAIN_ABORT &&
               drain_limit_ms(d) - now_ms <= d->params.force_ms;
}

bool drain_is_stalled(const struct drain *d, int64_t now_ms)
{
        return drain_phase_is_active(d->state) && now_ms - d->progress_ms >= d->params.stall_ms;
}

bool drain_may_extend(const struct drain *d, int64_t now_ms)
{
        /* Progress without a controller there is none: partitions move because it answers. */
        return drain_phase_is_active(d->state) && now_ms < drain_limit_ms(d) &&
               now_ms - d->contact_ms < d->params.no_controller_ms;
}

int64_t drain_rate_milli(const struct drain *d, int64_t now_ms)
{
        int64_t end_ms = drain_phase_is_ended(d->state) ? d->ended_ms : now_ms;

        if (d->initial == DRAIN_UNKNOWN || d->remaining == DRAIN_UNKNOWN || end_ms <= d->started_ms)
                return 0;
        return (int64_t)(d->initial - d->remaining) * 1000 * 1000 / (end_ms - d->started_ms);
}
