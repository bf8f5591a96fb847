#include "replica/throttle.h"

#include "base/clock.h"
#include "base/metrics.h"

#define SIDE(name_, side_, type_, help_)                                                                     \
        {                                                                                                    \
                .type = (type_), .name = (name_), .labels = "side=\"" side_ "\"", .help = (help_)            \
        }
#define BOTH(m, name_, type_, help_)                                                                         \
        static struct metric m[N_THROTTLE_SIDES] = {                                                         \
                [THROTTLE_LEADER] = SIDE(name_, "leader", type_, help_),                                     \
                [THROTTLE_FOLLOWER] = SIDE(name_, "follower", type_, help_),                                 \
        }

BOTH(limit, "stepdown_replication_throttle_bytes_per_second", METRIC_T_GAUGE,
     "What replication of throttled partitions may transfer; -1: no limit");
BOTH(bytes, "stepdown_replication_throttled_bytes_total", METRIC_T_COUNTER,
     "Bytes transferred under the replication throttle");
BOTH(waits, "stepdown_replication_throttle_waits_total", METRIC_T_COUNTER,
     "Times a throttled partition was left out of a fetch or its answer");

void throttle_register_metrics(void)
{
        for (int i = 0; i < N_THROTTLE_SIDES; i++) {
                metrics_register(&limit[i]);
                metrics_register(&bytes[i]);
                metrics_register(&waits[i]);
        }
}

void throttle_init(struct throttle *t, enum throttle_side side)
{
        *t = (struct throttle){.side = side};
        (void)pthread_mutex_init(&t->lock, NULL); /* takes no resources on Linux */
        throttle_core_init(&t->core, clock_mono_us());
        metric_set(&limit[side], -1);
}

void throttle_done(struct throttle *t)
{
        (void)pthread_mutex_destroy(&t->lock);
}

void throttle_set_rate(struct throttle *t, int64_t rate)
{
        bool on;

        pthread_mutex_lock(&t->lock);
        throttle_core_set_rate(&t->core, rate, clock_mono_us());
        on = t->core.rate != THROTTLE_NONE;
        pthread_mutex_unlock(&t->lock);
        atomic_store(&t->on, on);
        metric_set(&limit[t->side], on ? rate : -1);
}

int64_t throttle_take(struct throttle *t, int64_t want)
{
        int64_t n;

        if (want <= 0 || !throttle_is_on(t))
                return want;
        pthread_mutex_lock(&t->lock);
        n = throttle_core_take(&t->core, want, clock_mono_us());
        pthread_mutex_unlock(&t->lock);
        if (n == 0)
                metric_add(&waits[t->side], 1);
        return n;
}

int64_t throttle_wait_ms(struct throttle *t, int64_t want)
{
        int64_t ms;

        if (!throttle_is_on(t))
                return 0;
        pthread_mutex_lock(&t->lock);
        ms = throttle_core_wait_ms(&t->core, want, clock_mono_us());
        pthread_mutex_unlock(&t->lock);
        return ms;
}

void throttle_settle(struct throttle *t, int64_t taken, int64_t used)
{
        if (!throttle_is_on(t))
                return;
        metric_add(&bytes[t->side], used);
        if (taken == used)
                return;
        pthread_mutex_lock(&t->lock);
        throttle_core_give_back(&t->core, taken - used);
        pthread_mutex_unlock(&t->lock);
}
