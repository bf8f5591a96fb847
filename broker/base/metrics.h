/* Process-wide metrics, printed in Prometheus' text format. Registration happens at start-up on one thread;
 * updates come from any thread and are lock-free.
 *
 * A metric is a static variable: METRIC_COUNTER(name_c, "stepdown_x_total", "What it counts"), made known by
 * metrics_register(&name_c). Names follow Prometheus' rules; units are in names, and histograms print
 * seconds. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/util.h"

enum metric_type { METRIC_T_COUNTER, METRIC_T_GAUGE, METRIC_T_HISTOGRAM, METRIC_T_CALLBACK };

#define METRIC_BUCKETS 20 /* histogram: powers of two of 100 µs … 52 s, in microseconds, and +Inf */

struct metric {
        enum metric_type type;
        const char *name, *help, *labels; /* labels: "api=\"Produce\"" or NULL */
        _Atomic int64_t value;            /* counter, gauge; histogram: sum */
        _Atomic int64_t bucket[METRIC_BUCKETS + 1];
        int64_t (*read)(void *userdata); /* callback gauge: safe on any thread; must not call into metrics */
        void *userdata;
        struct metric *next;
};

#define METRIC_COUNTER(var, metric_name, metric_help)                                                        \
        static struct metric var = {.type = METRIC_T_COUNTER, .name = metric_name, .help = metric_help}
#define METRIC_GAUGE(var, metric_name, metric_help)                                                          \
        static struct metric var = {.type = METRIC_T_GAUGE, .name = metric_name, .help = metric_help}
#define METRIC_HISTOGRAM(var, metric_name, metric_help)                                                      \
        static struct metric var = {.type = METRIC_T_HISTOGRAM, .name = metric_name, .help = metric_help}

/* Rows with the same name are printed together. @m must outlive its registration; registering twice is
 * harmless. */
void metrics_register(struct metric *m);
void metrics_unregister(struct metric *m);
static inline void metric_add(struct metric *m, int64_t n)
{
        atomic_fetch_add_explicit(&m->value, n, memory_order_relaxed);
}
static inline void metric_set(struct metric *m, int64_t v)
{
        atomic_store_explicit(&m->value, v, memory_order_relaxed);
}
void metric_observe_us(struct metric *m, int64_t us);
int metrics_print(struct buf *out) must_check; /* [any thread] */
