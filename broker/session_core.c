/* Policy, attempts and pauses of a broker without a session. Pure. */
#include "session_core.h"

#define BACKOFF_CAP 20 /* times backoff_ms: the longest pause */

const char *const session_policy_names[N_SESSION_POLICIES + 1] = {
        [SESSION_POLICY_SHUTDOWN] = "shutdown",
        [SESSION_POLICY_RECONNECT] = "reconnect",
};

static int64_t pick(int64_t from, int64_t to, uint32_t random)
{
        return from + (int64_t)((uint64_t)random * (uint64_t)(to - from + 1) >> 32);
}

static int64_t next_delay(const struct session_policy *p, const struct session_recovery *r, uint32_t random)
{
        if (r->delay_ms == 0)
                return pick(1, p->backoff_ms, random);
        return pick(p->backoff_ms,
                    MIN(MAX(r->delay_ms, p->backoff_ms) * 3, p->backoff_ms * (int64_t)BACKOFF_CAP), random);
}

static struct session_step begin_attempt(const struct session_policy *p, struct session_recovery *r,
                                         uint32_t random)
{
        r->delay_ms = next_delay(p, r, random);
        if (r->attempts < INT32_MAX)
                r->attempts++;
        return (struct session_step){SESSION_TRY, r->delay_ms, r->attempts};
}

struct session_step session_next(const struct session_policy *p, struct session_recovery *r, uint32_t random)
{
        if (p->policy == SESSION_POLICY_SHUTDOWN)
                return (struct session_step){.verdict = SESSION_NOT_WANTED};
        if (r->attempts >= p->max_attempts)
                return (struct session_step){.verdict = SESSION_EXHAUSTED, .attempt = r->attempts};
        return begin_attempt(p, r, random);
}

struct session_step session_next_at_start(const struct session_policy *p, struct session_recovery *r,
                                          uint32_t random)
{
        return begin_attempt(p, r, random);
}

void session_recovered(struct session_recovery *r)
{
        r->attempts = 0;
}

void session_lasted(const struct session_policy *p, struct session_recovery *r, int64_t ms)
{
        if (ms >= p->backoff_ms * (int64_t)BACKOFF_CAP)
                r->delay_ms = 0;
}
