/* The two throttles of a broker's replication (KIP-73): what it sends to replicas that are not in sync, and
 * what it fetches while it is not in sync itself; of the partitions that the topics' settings name. Replicas
 * in sync are never held back, so an acks=all never waits for a throttle. [any thread] */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "replica/throttle_core.h"

enum throttle_side { THROTTLE_LEADER, THROTTLE_FOLLOWER, N_THROTTLE_SIDES };

struct throttle {
        enum throttle_side side;
        _Atomic bool on; /* there is a limit */
        pthread_mutex_t lock;
        struct throttle_core core; /* under lock */
};

void throttle_init(struct throttle *t, enum throttle_side side);
void throttle_done(struct throttle *t);
void throttle_set_rate(struct throttle *t, int64_t rate);
static inline bool throttle_is_on(const struct throttle *t)
{
        return atomic_load_explicit(&t->on, memory_order_relaxed);
}
/* As in throttle_core.h, by the clock. */
int64_t throttle_take(struct throttle *t, int64_t want);
int64_t throttle_wait_ms(struct throttle *t, int64_t want);
/* Of @taken bytes @used have gone: gives back the rest, and counts. */
void throttle_settle(struct throttle *t, int64_t taken, int64_t used);
void throttle_register_metrics(void);
