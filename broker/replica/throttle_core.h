/* How many bytes of a throttled move may go now (KIP-73): a token bucket. Pure: the caller passes the time.
 *
 * Bytes are taken before they are asked for or read, and what was not used is given back. A batch is never
 * cut, so more may be used than was taken: the level then falls below zero and is waited out, which is how a
 * batch larger than the rate gets through. */
#pragma once

#include <stdint.h>

#include "base/util.h"

#define THROTTLE_NONE INT64_MAX
/* So that a changed rate takes hold soon whatever the old one was, nobody waits longer at once. */
#define THROTTLE_MAX_WAIT_MS 500

struct throttle_core {
        int64_t rate;  /* bytes a second, THROTTLE_NONE: any number */
        int64_t level; /* bytes that may go, at most a second's */
        int64_t at_us; /* when the level was right */
};

/* Starts without a limit. What was used before still counts after a change. */
void throttle_core_init(struct throttle_core *t, int64_t now_us);
void throttle_core_set_rate(struct throttle_core *t, int64_t rate, int64_t now_us);
/* Take up to @want bytes: the number that may go, 0: none now. Crumbs are not handed out: it is at least a
 * tenth of a second's, or all that is wanted. */
int64_t throttle_core_take(struct throttle_core *t, int64_t want, int64_t now_us);
/* @n of what was taken has not been used; negative: more was. */
void throttle_core_give_back(struct throttle_core *t, int64_t n);
/* How long until throttle_core_take() has something; 0: now. */
int64_t throttle_core_wait_ms(struct throttle_core *t, int64_t want, int64_t now_us);
