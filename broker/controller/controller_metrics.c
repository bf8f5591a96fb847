/* What the controller counts. */
#include "controller/controller_internal.h"
#include "controller/drain_history.h"
#include "controller/leader_return.h"

struct metric controller_metric_elections[N_ELECTION_KINDS] = {
#define ELECTIONS(kind, label)                                                                               \
        [kind] = {.type = METRIC_T_COUNTER,                                                                  \
                  .name = "stepdown_controller_elections_total",                                             \
                  .help = "Partition state changes written, by kind",                                        \
                  .labels = "kind=\"" label "\""}
        ELECTIONS(ELECTION_NONE, "none"),         ELECTIONS(ELECTION_NEW, "new"),
        ELECTIONS(ELECTION_OFFLINE, "offline"),   ELECTIONS(ELECTION_LEADERLESS, "leaderless"),
        ELECTIONS(ELECTION_DRAIN, "drain"),       ELECTIONS(ELECTION_SHRINK, "shrink"),
        ELECTIONS(ELECTION_REASSIGN, "reassign"), ELECTIONS(ELECTION_PREFERRED, "preferred"),
        ELECTIONS(ELECTION_RENEW, "renew"),       ELECTIONS(ELECTION_UNCLEAN, "unclean"),
};
#define STALE(kind, label)                                                                                   \
        [kind] = {.type = METRIC_T_COUNTER,                                                                  \
                  .name = "stepdown_controller_stale_requests_total",                                        \
                  .help = "Requests of brokers refused by the controller for an epoch that is over",         \
                  .labels = "epoch=\"" label "\""}
struct metric controller_metric_stale[N_STALE_EPOCHS] = {
        STALE(STALE_BROKER_EPOCH, "broker"),
        STALE(STALE_LEADER_EPOCH, "leader"),
        STALE(STALE_PARTITION_EPOCH, "partition"),
};
#define COUNTER(var, n, h) struct metric var = {.type = METRIC_T_COUNTER, .name = (n), .help = (h)}
COUNTER(controller_metric_writes, "stepdown_controller_multis_total", "ZooKeeper multis of partition states");
COUNTER(controller_metric_write_conflicts, "stepdown_controller_write_conflicts_total",
        "Partition states that had been changed by somebody else");
COUNTER(controller_metric_fenced, "stepdown_controller_fenced_total",
        "Times a write or check found another controller in office");
COUNTER(controller_metric_sent, "stepdown_controller_requests_total", "Requests sent to brokers");
COUNTER(controller_metric_send_retries, "stepdown_controller_request_retries_total",
        "Requests to brokers that failed and were repeated");
COUNTER(controller_metric_drain_moves, "stepdown_controller_drain_moves_total",
        "Leaderships moved by drains");
COUNTER(controller_metric_slot_refusals, "stepdown_drain_slot_refusals_total",
        "Requests to drain a broker that were refused because another one holds the slot");
COUNTER(controller_metric_slot_expired, "stepdown_drain_slot_expired_total",
        "Drains that lost the slot because their lease ran out");

static int64_t read_active(void *userdata)
{
        return controller_is_active(userdata);
}

static int64_t read_atomic(void *userdata)
{
        return atomic_load((_Atomic int64_t *)userdata);
}

#define GAUGE(n, h)                                                                                          \
        {                                                                                                    \
                .type = METRIC_T_CALLBACK, .name = (n), .help = (h)                                          \
        }
enum {
        GAUGE_ACTIVE,
        GAUGE_OFFLINE,
        GAUGE_QUEUE,
        GAUGE_REMAINING,
        GAUGE_DRAINS,
        GAUGE_SLOT,
        GAUGE_WAITING,
        N_GAUGES
};
static struct metric gauges[N_GAUGES] = {
        [GAUGE_ACTIVE] = GAUGE("stepdown_controller_active", "1 while this broker is the controller"),
        [GAUGE_OFFLINE] = GAUGE("stepdown_controller_offline_partitions", "Partitions without a leader"),
        [GAUGE_QUEUE] = GAUGE("stepdown_controller_queue_length", "Partitions that wait to be looked at"),
        [GAUGE_REMAINING] = GAUGE("stepdown_controller_drain_leaders_remaining",
                                  "Leaderships that draining brokers still have to give up"),
        [GAUGE_DRAINS] = GAUGE("stepdown_controller_drains", "Brokers that drain or are drained"),
        [GAUGE_SLOT] =
                GAUGE("stepdown_drain_slot_held",
                      "Brokers that hold the drain slot: draining, down after it, or not yet back in sync"),
        [GAUGE_WAITING] = GAUGE("stepdown_drain_slot_waiting", "Brokers that wait for the drain slot"),
};

/* A process has one controller; in tests that have several, the last one registered is shown. */
void controller_metrics_register(struct controller *c)
{
        struct metric *counters[] = {&controller_metric_writes,        &controller_metric_write_conflicts,
                                     &controller_metric_fenced,        &controller_metric_sent,
                                     &controller_metric_send_retries,  &controller_metric_drain_moves,
                                     &controller_metric_slot_refusals, &controller_metric_slot_expired};
        void *userdata[N_GAUGES] = {[GAUGE_ACTIVE] = c,
                                    [GAUGE_OFFLINE] = &c->offline_partitions,
                                    [GAUGE_QUEUE] = &c->queue_length,
                                    [GAUGE_REMAINING] = &c->drain_remaining,
                                    [GAUGE_DRAINS] = &c->n_drains,
                                    [GAUGE_SLOT] = &c->slot_holders,
                                    [GAUGE_WAITING] = &c->slot_waiting};

        drain_history_metrics_register();
        leader_return_metrics_register();
        for (size_t i = 1; i < N_ELECTION_KINDS; i++)
                metrics_register(&controller_metric_elections[i]);
        for (size_t i = 0; i < N_STALE_EPOCHS; i++)
                metrics_register(&controller_metric_stale[i]);
        for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
                metrics_register(counters[i]);
        for (size_t i = 0; i < N_GAUGES; i++) {
                gauges[i].read = i == GAUGE_ACTIVE ? read_active : read_atomic;
                gauges[i].userdata = userdata[i];
                metrics_register(&gauges[i]);
        }
}

void controller_metrics_unregister(struct controller *c)
{
        struct metric *counters[] = {&controller_metric_writes,        &controller_metric_write_conflicts,
                                     &controller_metric_fenced,        &controller_metric_sent,
                                     &controller_metric_send_retries,  &controller_metric_drain_moves,
                                     &controller_metric_slot_refusals, &controller_metric_slot_expired};

        if (gauges[GAUGE_ACTIVE].userdata != c)
                return;
        drain_history_metrics_unregister();
        leader_return_metrics_unregister();
        for (size_t i = 1; i < N_ELECTION_KINDS; i++)
                metrics_unregister(&controller_metric_elections[i]);
        for (size_t i = 0; i < N_STALE_EPOCHS; i++)
                metrics_unregister(&controller_metric_stale[i]);
        for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
                metrics_unregister(counters[i]);
        for (size_t i = 0; i < N_GAUGES; i++)
                metrics_unregister(&gauges[i]);
        gauges[GAUGE_ACTIVE].userdata = NULL;
}
