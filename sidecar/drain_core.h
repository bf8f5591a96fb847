/* The drain of one broker as a pure state machine: (state, event, now) -> (state, effects).
 *
 * No clock, socket, file, thread or randomness inside: the shell (drain_run.h) performs the effects and feeds
 * what came of them back as events, with the time and a random number. Not thread-safe.
 *
 * What holds at all times (drain_check() asserts it):
 *   - `drained` is entered only on positive evidence: the controller and the broker itself both said 0 in one
 *     round of polls, and said so again in the next one with no move in between (L1: unknown is never zero);
 *   - one budget bounds the whole of it (L2), one shorter budget bounds being without a controller (L5);
 *   - every known endpoint is tried before a sleep (L3).
 *
 *          START                 PUT accepted             both views are 0
 *   idle --------> requesting ----------------> draining <-----------------> confirming --> drained
 *   or ended            ^  controller forgot us    |       some view is not        |
 *                       '--------------------------+-------------------------------'
 *   any of these:  deadline       -> incomplete (proceed, hold at its limit) | undoing (abort)
 *                  no controller  -> no_controller, or incomplete when ZooKeeper is known to be the cause
 *                  400, 401, 403  -> the deadline's policy, at once        (L3: fail fast and loudly)
 *                  410            -> stale     404 -> unknown_broker       (L3, D2: nothing is left to do)
 *                  broker exited  -> broker_gone     SIGTERM -> skipped
 *                  UNDO           -> undoing --> aborted   (also from idle and from the ended states)
 *                  cluster stop   -> cluster_stop          (D8: nothing is moved, nobody waits)
 *   requesting -- another broker holds the slot (D3) --> waiting_for_slot -- granted --> draining
 */
#pragma once

#include <stdint.h>

#include "base/util.h"

#define DRAIN_NEVER   INT64_MAX
#define DRAIN_UNKNOWN (-1) /* a count nobody has told us; never to be read as 0 */

enum drain_phase {
        DRAIN_IDLE,
        DRAIN_REQUESTING,
        DRAIN_WAITING,
        DRAIN_WAITING_SAFE, /* D4: stopping the broker is not safe yet */
        DRAIN_DRAINING,
        DRAIN_CONFIRMING,
        DRAIN_UNDOING,
        DRAIN_DRAINED,
        DRAIN_INCOMPLETE,
        DRAIN_NO_CONTROLLER,
        DRAIN_STALE,
        DRAIN_UNKNOWN_BROKER,
        DRAIN_BROKER_GONE,
        DRAIN_ABORTED,
        DRAIN_SKIPPED,
        DRAIN_CLUSTER_STOP,
        N_DRAIN_PHASES
};

/* Why the drain stands where it does: the reason of its verdict, or of its present trouble. */
enum drain_why {
        DRAIN_WHY_NONE,
        DRAIN_WHY_DEADLINE,
        DRAIN_WHY_NO_CONTROLLER,
        DRAIN_WHY_ZOOKEEPER,
        DRAIN_WHY_REFUSED,
        DRAIN_WHY_BUSY,
        DRAIN_WHY_BROKER_SILENT,
        DRAIN_WHY_DISAGREE,
        DRAIN_WHY_CANCELLED,
        DRAIN_WHY_UNDONE,
        DRAIN_WHY_UNDO_FAILED,
        DRAIN_WHY_TERMINATED,
        DRAIN_WHY_SLOT,
        DRAIN_WHY_UNSAFE,
        N_DRAIN_WHYS
};

enum drain_unsafe { DRAIN_UNSAFE_WAIT, DRAIN_UNSAFE_REFUSE, DRAIN_UNSAFE_FORCE }; /* L4, D4 */

enum drain_policy { DRAIN_PROCEED, DRAIN_HOLD, DRAIN_ABORT, N_DRAIN_POLICIES }; /* L4 */

/* What the controller calls the state of a drain. */
enum controller_drain_state {
        CONTROLLER_NONE, /* it knows of no drain for the broker */
        CONTROLLER_DRAINING,
        CONTROLLER_DRAINED,
        CONTROLLER_INCOMPLETE, /* nothing more can be moved at present */
        CONTROLLER_STALE,
        CONTROLLER_CANCELLED,
        CONTROLLER_WAITING,      /* it has asked, another broker holds the slot */
        CONTROLLER_CLUSTER_STOP, /* all brokers stop: nothing is moved, nobody waits (D8) */
        N_CONTROLLER_DRAIN_STATES
};

enum drain_call { DRAIN_CALL_NONE, DRAIN_CALL_PUT, DRAIN_CALL_GET, DRAIN_CALL_DELETE };

struct drain_params {             /* durations in milliseconds */
        int64_t deadline_ms;      /* of the whole drain, the reserve already taken off (L2) */
        int64_t hard_limit_ms;    /* policy `hold` waits until here; at least deadline_ms */
        int64_t no_controller_ms; /* without any controller's answer (L5) */
        int64_t broker_silent_ms; /* the controller says 0 and the broker itself says nothing */
        int64_t settle_ms;        /* leads nothing, but the controller still takes it out of ISRs */
        int64_t undo_ms;          /* for the DELETE of policy `abort` and of an undo */
        int64_t stall_ms;         /* no partition moved for so long: say so */
        int64_t poll_ms;          /* between two rounds of polls */
        int64_t backoff_min_ms, backoff_max_ms;
        enum drain_policy policy;
        enum drain_unsafe unsafe;
        int64_t force_ms; /* before the limit: then what can be moved is moved, safe or not */
};

enum drain_event_type {
        DRAIN_EV_START,              /* begin; .epoch if the incarnation is known, else DRAIN_UNKNOWN */
        DRAIN_EV_TICK,               /* the time asked for in effects.wake_ms has come */
        DRAIN_EV_CONTROLLER_ANSWER,  /* .http_status 200..202 and a well-formed body in .controller */
        DRAIN_EV_CONTROLLER_REFUSAL, /* any other .http_status; .zookeeper_down if the body blames ZooKeeper
                                      */
        DRAIN_EV_CONTROLLER_FAILED,  /* no answer, or bytes that are none */
        DRAIN_EV_BROKER_ANSWER,      /* .broker */
        DRAIN_EV_BROKER_FAILED,
        DRAIN_EV_BROKER_GONE, /* its process has ended */
        DRAIN_EV_UNDO,
        DRAIN_EV_SKIP, /* told to stop waiting */
        N_DRAIN_EVENTS
};

struct drain_event {
        enum drain_event_type type;
        uint32_t random; /* fresh with every event */
        int endpoint; /* controller events: index of the endpoint that answered; -1: the one that was asked */
        int http_status;
        bool zookeeper_down;
        bool slot_held;   /* a refusal: another broker holds the slot (D3) */
        bool unsafe;      /* a refusal: not safe yet (D4) */
        bool drain_ended; /* a refusal: the drain with our id is over */
        int64_t epoch;
        struct { /* the controller's view */
                enum controller_drain_state state;
                int64_t generation; /* the controller's epoch, DRAIN_UNKNOWN if absent */
                bool ours; /* the answer bears the drain id we use (the shell adopts the id of a joined drain)
                            */
                int64_t epoch; /* DRAIN_UNKNOWN if absent */
                int32_t remaining, moved, rf1_led, blocked;
        } controller;
        struct { /* the broker's own view */
                int64_t epoch;
                int32_t leaders;
                bool zookeeper_down;
        } broker;
};

struct drain_effects {
        enum drain_call call;  /* start this call at drain.endpoint */
        bool ask_broker;       /* ask the broker itself */
        bool cancel_calls;     /* first abandon what is in flight */
        int64_t wake_ms;       /* deliver DRAIN_EV_TICK then; DRAIN_NEVER: not at all */
        enum drain_phase from; /* the state before the event; differs from drain.state after a change */
};

struct drain {
        struct drain_params params;
        enum drain_phase state;
        enum drain_why why;

        int64_t started_ms, ended_ms;
        int64_t deadline_ms; /* absolute; of the undo while undoing */
        int64_t progress_ms; /* a partition moved last */
        int64_t contact_ms;  /* a controller with a quorum answered last */
        int64_t silent_ms;   /* since when the controller's 0 lacks the broker's own; DRAIN_NEVER: it does not
                              */
        int64_t next_ms;     /* next round; DRAIN_NEVER while calls are in flight */
        int64_t backoff_ms;  /* last sleep of the decorrelated jitter, 0: none since the last answer */

        int n_endpoints, endpoint, tried;
        enum drain_call call; /* in flight, DRAIN_CALL_NONE: none */
        bool broker_asked;    /* in flight */
        bool ask_anew;        /* the next round asks for the drain again: what is asked for has changed */
        bool zookeeper_down;  /* as last heard */
        int http_status;      /* of the last refusal */
        int failures;         /* controller calls that failed since the last answer */

        int64_t epoch;
        int64_t generation; /* of the controller that accepted the drain */
        int64_t zero_ms; /* since when it leads nothing while the controller is still at work; or DRAIN_NEVER
                          */
        enum controller_drain_state controller_state;
        int32_t remaining, initial, moved, rf1_led, blocked; /* as last heard from the controller */
        int32_t leaders;                                     /* as last heard from the broker */
        int32_t round_remaining, round_leaders;              /* as heard in this round */
        int32_t confirm_moved;                               /* `moved` when confirming began */
};

void drain_init(struct drain *d, const struct drain_params *params, int n_endpoints);
/* Endpoints may be learnt while the drain goes on; the number only grows. */
void drain_set_endpoints(struct drain *d, int n_endpoints);
void drain_handle(struct drain *d, const struct drain_event *ev, int64_t now_ms, struct drain_effects *ret);
/* Assert every invariant named above. */
void drain_check(const struct drain *d);

bool drain_phase_is_active(enum drain_phase s); /* neither idle nor ended */
bool drain_phase_is_ended(enum drain_phase s);
const char *drain_phase_name(enum drain_phase s);
int drain_phase_parse(const char *name, enum drain_phase *ret) must_check; /* -EINVAL */
/* Exit status of a command that waited for the drain; 75 for states that have not ended. */
int drain_phase_exit_status(enum drain_phase s);
const char *drain_why_name(enum drain_why w); /* "" for none */
const char *drain_why_text(enum drain_why w); /* for people */
const char *drain_policy_name(enum drain_policy p);

/* D4: is the drain to be asked for although stopping the broker is not safe? By policy, or because the limit
 * is near and the stop goes on at the limit in any case: then leaderships that can move had better move. */
bool drain_must_force(const struct drain *d, int64_t now_ms);
bool drain_is_stalled(const struct drain *d, int64_t now_ms);
/* May the stop timer be extended (L6)? Only while active, the deadline ahead, and a controller with a quorum
 * has answered within its budget. */
bool drain_may_extend(const struct drain *d, int64_t now_ms);
int64_t drain_limit_ms(const struct drain *d); /* when the drain ends at the latest, absolute */
/* Partitions a second since the drain began, in thousandths; 0 when unknown. */
int64_t drain_rate_milli(const struct drain *d, int64_t now_ms);
