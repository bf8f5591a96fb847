/* What becomes of a broker whose ZooKeeper session is over (R80–R82, F1). Pure: the caller rolls the dice.
 *
 * An attempt is one new session: opened, connected and registered under, or given up. They are counted from
 * the loss of a session that was registered; a registration ends the count. */
#pragma once

#include <stdint.h>

#include "base/util.h"

/* In the order of session_policy_names, which the configuration's choices are. */
enum session_expired_policy { SESSION_POLICY_SHUTDOWN, SESSION_POLICY_RECONNECT, N_SESSION_POLICIES };
extern const char *const session_policy_names[N_SESSION_POLICIES + 1]; /* NULL-terminated */

struct session_policy {
        enum session_expired_policy policy;
        int32_t max_attempts; /* from 1 */
        int64_t backoff_ms;   /* from 1 */
};

struct session_recovery {
        int32_t attempts; /* begun since the session was lost */
        int64_t delay_ms; /* the last pause; 0: none since a session that lasted */
};

enum session_verdict {
        SESSION_TRY,        /* open a new session after delay_ms */
        SESSION_NOT_WANTED, /* the policy is to stop */
        SESSION_EXHAUSTED,  /* every attempt has failed */
};

struct session_step {
        enum session_verdict verdict;
        int64_t delay_ms;
        int32_t attempt; /* the number of the one that begins, from 1 */
};

/* A session was lost, or an attempt has failed: what now? @random: any 32 bits. The first attempt comes
 * within backoff_ms, the later ones after pauses with decorrelated jitter of backoff_ms up to twenty times of
 * it: sessions of all brokers are lost together, and are not to come back in lock-step (R81). */
struct session_step session_next(const struct session_policy *p, struct session_recovery *r, uint32_t random);
/* The same while the broker starts: every policy tries, and somebody else bounds the time. */
struct session_step session_next_at_start(const struct session_policy *p, struct session_recovery *r,
                                          uint32_t random);
/* Registered: the attempts are counted anew. The pauses only begin anew when that session has lasted, for as
 * long as the longest of them; else sessions that are lost again at once would make a loop without pauses. */
void session_recovered(struct session_recovery *r);
void session_lasted(const struct session_policy *p, struct session_recovery *r, int64_t ms);
