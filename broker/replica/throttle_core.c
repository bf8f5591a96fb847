/* A token bucket for replication: pure. */
#include "replica/throttle_core.h"

#define SECOND_US   INT64_C(1000000)
#define PORTIONS    10                 /* a second */
#define RATE_MAX    (INT64_C(1) << 40) /* above it no hardware has to be held back, and no product overflows */
#define IDLE_MAX_US (SECOND_US * 86400) /* the same for times */
#define DEBT_MAX    (INT64_C(1) << 60)

void throttle_core_init(struct throttle_core *t, int64_t now_us)
{
        *t = (struct throttle_core){.rate = THROTTLE_NONE, .at_us = now_us};
}

static int64_t portion(const struct throttle_core *t, int64_t want)
{
        return MIN(MAX(want, (int64_t)1), MAX(t->rate / PORTIONS, (int64_t)1));
}

/* The time of a fraction of a byte stays with the next refill, or a slow rate asked often would come to
 * nothing. */
static void refill(struct throttle_core *t, int64_t now_us)
{
        int64_t us = MIN(now_us - t->at_us, (int64_t)IDLE_MAX_US), bytes;

        if (us <= 0)
                return;
        if (t->rate == THROTTLE_NONE || t->rate == 0) {
                t->at_us = now_us;
                return;
        }
        bytes = us / SECOND_US * t->rate + us % SECOND_US * t->rate / SECOND_US;
        if (t->level + bytes >= t->rate) {
                t->level = t->rate;
                t->at_us = now_us;
                return;
        }
        t->level += bytes;
        t->at_us = now_us - (us - (bytes / t->rate * SECOND_US + bytes % t->rate * SECOND_US / t->rate));
}

void throttle_core_set_rate(struct throttle_core *t, int64_t rate, int64_t now_us)
{
        refill(t, now_us);
        t->rate = rate > RATE_MAX ? THROTTLE_NONE : MAX(rate, (int64_t)0);
        if (t->rate == THROTTLE_NONE)
                t->level = 0;
        else
                t->level = MIN(t->level, t->rate);
        t->at_us = now_us;
}

int64_t throttle_core_take(struct throttle_core *t, int64_t want, int64_t now_us)
{
        int64_t n;

        if (want <= 0)
                return 0;
        if (t->rate == THROTTLE_NONE)
                return want;
        refill(t, now_us);
        if (t->rate == 0 || t->level < portion(t, want))
                return 0;
        n = MIN(want, t->level);
        t->level -= n;
        return n;
}

void throttle_core_give_back(struct throttle_core *t, int64_t n)
{
        if (t->rate == THROTTLE_NONE)
                return;
        t->level = MAX(MIN(t->level + MAX(n, -DEBT_MAX), t->rate), -DEBT_MAX);
}

int64_t throttle_core_wait_ms(struct throttle_core *t, int64_t want, int64_t now_us)
{
        int64_t missing;

        if (t->rate == THROTTLE_NONE)
                return 0;
        refill(t, now_us);
        if (t->rate == 0)
                return THROTTLE_MAX_WAIT_MS;
        missing = portion(t, want) - t->level;
        if (missing <= 0)
                return 0;
        if (missing / t->rate >= 1)
                return THROTTLE_MAX_WAIT_MS;
        return MIN(missing * 1000 / t->rate + 1, (int64_t)THROTTLE_MAX_WAIT_MS);
}
