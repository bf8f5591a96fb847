/* Metrics of stale requests. */
#include "replica/stale.h"

#include "base/metrics.h"

#define ROW(kind, label)                                                                                     \
        [kind] = {.type = METRIC_T_COUNTER,                                                                  \
                  .name = "stepdown_stale_requests_total",                                                   \
                  .help = "Requests and partitions of requests refused for an epoch that is over",           \
                  .labels = "epoch=\"" label "\""}
static struct metric refused[N_STALE_OF] = {
        ROW(STALE_OF_BROKER, "broker"),
        ROW(STALE_OF_CONTROLLER, "controller"),
        ROW(STALE_OF_LEADER, "leader"),
};

void stale_refused(enum stale_epoch e)
{
        metric_add(&refused[e], 1);
}

void stale_register_metrics(void)
{
        for (int i = 0; i < N_STALE_OF; i++)
                metrics_register(&refused[i]);
}
