/* The counters of net/ and the gate that keeps hostile peers from filling the journal. */
#include <assert.h>

#include "net/net_internal.h"

struct metric net_metrics[N_NET_METRICS] = {
        [NET_BYTES_IN] = {.type = METRIC_T_COUNTER,
                          .name = "stepdown_net_request_bytes_total",
                          .help = "Bytes of complete request frames, prefix included"},
        [NET_BYTES_OUT] = {.type = METRIC_T_COUNTER,
                           .name = "stepdown_net_response_bytes_total",
                           .help = "Bytes of responses handed to the kernel"},
        [NET_REQUESTS] = {.type = METRIC_T_COUNTER,
                          .name = "stepdown_net_requests_total",
                          .help = "Complete request frames received"},
        [NET_CONNECTIONS] = {.type = METRIC_T_GAUGE,
                             .name = "stepdown_net_connections",
                             .help = "Open connections"},
        [NET_ACCEPTED] = {.type = METRIC_T_COUNTER,
                          .name = "stepdown_net_connections_accepted_total",
                          .help = "Connections accepted, those over the limit included"},
        [NET_QUEUED_REQUEST_BYTES] =
                {.type = METRIC_T_GAUGE,
                 .name = "stepdown_net_queued_request_bytes",
                 .help = "Memory set aside for frames that are read or not yet answered"},
        [NET_UNSENT_RESPONSE_BYTES] = {.type = METRIC_T_GAUGE,
                                       .name = "stepdown_net_unsent_response_bytes",
                                       .help = "Memory of answers that the kernel has not taken yet"},
        [NET_FRAMES_QUEUED] = {.type = METRIC_T_COUNTER,
                               .name = "stepdown_net_frames_queued_total",
                               .help = "Frames that had to wait for memory"},
};

#define CLOSED_ROW(reason, text)                                                                             \
        [reason] = {.name = text,                                                                            \
                    .closed = {.type = METRIC_T_COUNTER,                                                     \
                               .name = "stepdown_net_connections_closed_total",                              \
                               .help = "Connections closed, by reason",                                      \
                               .labels = "reason=\"" text "\""}}

static struct {
        const char *name;
        struct metric closed;
} close_reasons[N_CLOSE_REASONS] = {
        CLOSED_ROW(CLOSE_EOF, "eof"),
        CLOSED_ROW(CLOSE_TRUNCATED, "truncated-frame"),
        CLOSED_ROW(CLOSE_BAD_LENGTH, "bad-length"),
        CLOSED_ROW(CLOSE_SLOW_FRAME, "slow-frame"),
        CLOSED_ROW(CLOSE_IDLE, "idle"),
        CLOSED_ROW(CLOSE_STALLED, "stalled"),
        CLOSED_ROW(CLOSE_HALF_CLOSED, "half-closed"),
        CLOSED_ROW(CLOSE_ABORTED, "aborted"),
        CLOSED_ROW(CLOSE_ERROR, "error"),
        CLOSED_ROW(CLOSE_NO_MEMORY, "no-memory"),
        CLOSED_ROW(CLOSE_OVER_LIMIT, "over-limit"),
        CLOSED_ROW(CLOSE_SERVER_STOPPED, "server-stopped"),
};

static pthread_once_t metrics_once = PTHREAD_ONCE_INIT;

static void metrics_register_once(void)
{
        for (int i = 0; i < N_NET_METRICS; i++)
                metrics_register(&net_metrics[i]);
        for (int i = 0; i < N_CLOSE_REASONS; i++)
                metrics_register(&close_reasons[i].closed);
}

void net_metrics_register(void)
{
        (void)pthread_once(&metrics_once, metrics_register_once); /* cannot fail with a static initialiser */
}

void net_metrics_closed(enum close_reason why)
{
        assert(why < N_CLOSE_REASONS);
        metric_add(&close_reasons[why].closed, 1);
}

const char *close_reason_name(enum close_reason why)
{
        assert(why < N_CLOSE_REASONS);
        return close_reasons[why].name;
}
