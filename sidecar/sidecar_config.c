/* The table of keys, and what the keys must satisfy together. */
#include "sidecar_config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"

#define BODY_CEILING (1024 * 1024) /* of an answer: 100 blocked partitions take some 60 KiB */
#define REDIRECTS    3
#define UNDO_MS      10000
#define DAY_MS       INT64_C(86400000)
#define AT(member)   offsetof(struct sidecar_config, member)

static const char *const unsafe_choices[] = {"wait", "refuse", "force", NULL};
static const char *const policy_choices[] = {"proceed", "hold", "abort", NULL};

const struct config_row sidecar_config_rows[] = {
        {"broker.id", CONFIG_INT32, AT(broker_id), "-1", .min = -1, .max = INT32_MAX,
         .help = "Id of the broker on this host. -1: whatever the first admin endpoint says it is."},
        {"admin.endpoints", CONFIG_STRING, AT(admin_endpoints), "http://127.0.0.1:9644",
         .help = "Admin listeners, this host's own broker first. Others are learnt from the cluster."},
        {"admin.token.file", CONFIG_STRING, AT(admin_token_file), "",
         .help = "File with the bearer token for the admin API; empty: none is sent."},
        {"admin.connect.timeout", CONFIG_DURATION_MS, AT(connect_ms), "2s", .min = 1, .max = 60000,
         .help = "Limit for connecting to an admin listener."},
        {"admin.request.timeout", CONFIG_DURATION_MS, AT(request_ms), "5s", .min = 1, .max = 60000,
         .help = "Limit for one request, redirects included."},
        {"control.socket", CONFIG_STRING, AT(control_socket), "/run/stepdown-sidecar/ctl.sock",
         .help = "Unix socket on which the sidecar takes requests of root and of its own user."},
        {"drain.deadline", CONFIG_DURATION_MS, AT(drain_deadline_ms), "25min", .min = 1, .max = DAY_MS,
         .help = "Limit for a drain. With drain.reserve it must fit into stop.timeout."},
        {"drain.reserve", CONFIG_DURATION_MS, AT(drain_reserve_ms), "30s", .max = DAY_MS,
         .help = "Share of stop.timeout kept for the broker's own exit."},
        {"stop.timeout", CONFIG_DURATION_MS, AT(stop_timeout_ms), "30min", .min = 1, .max = DAY_MS,
         .help = "The platform's own limit for a stop: TimeoutStopSec= with its extensions (a reboot is cut "
                 "off "
                 "after 30min), or terminationGracePeriodSeconds."},
        {"deadline.policy", CONFIG_ENUM, AT(deadline_policy), "proceed", .choices = policy_choices,
         .help = "At the deadline: proceed with the stop (the result names what stays), hold until "
                 "stop.timeout "
                 "is nearly used up, or abort (undo the drain)."},
        {"unsafe.policy", CONFIG_ENUM, AT(unsafe_policy), "wait", .choices = unsafe_choices,
         .help = "While stopping the broker would take a partition offline or below min.insync.replicas, and "
                 "waiting can "
                 "change that: wait (and move what can be moved shortly before the deadline), refuse (end at "
                 "once), or "
                 "force (do not wait)."},
        {"no.controller.budget", CONFIG_DURATION_MS, AT(no_controller_ms), "60s", .min = 1, .max = DAY_MS,
         .help = "How long a drain goes on while no controller answers, or none with a quorum."},
        {"broker.silent.budget", CONFIG_DURATION_MS, AT(broker_silent_ms), "30s", .min = 1, .max = DAY_MS,
         .help = "How long the controller's 0 waits for the broker's own 0 while the broker does not "
                 "answer."},
        {"settle.timeout", CONFIG_DURATION_MS, AT(settle_ms), "10s", .max = DAY_MS,
         .help = "How long a broker that leads nothing waits until the controller has taken it out of the "
                 "ISRs."},
        {"stall.timeout", CONFIG_DURATION_MS, AT(stall_ms), "30s", .min = 1, .max = DAY_MS,
         .help = "A drain that moved nothing for so long is called stalled."},
        {"poll.interval", CONFIG_DURATION_MS, AT(poll_ms), "200ms", .min = 1, .max = 60000,
         .help = "Between two polls of controller and broker."},
        {"retry.backoff.min", CONFIG_DURATION_MS, AT(backoff_min_ms), "100ms", .min = 1, .max = 60000,
         .help = "Shortest sleep after every known endpoint has failed."},
        {"retry.backoff.max", CONFIG_DURATION_MS, AT(backoff_max_ms), "5s", .min = 1, .max = 60000,
         .help = "Longest such sleep."},
        {"endpoints.refresh", CONFIG_DURATION_MS, AT(refresh_ms), "30s", .min = 100, .max = DAY_MS,
         .help = "How often an idle sidecar asks the cluster where its brokers' admin listeners are."},
        {"state.dir", CONFIG_STRING, AT(state_dir), "/var/lib/stepdown-sidecar",
         .help = "Where the sidecar keeps the drain that is active, and the record of the last one."},
        {"result.file", CONFIG_STRING, AT(result_file), "/var/lib/stepdown-broker/last-stop.json",
         .help = "Where `stepdown drain` leaves the record of a stop."},
};
const size_t sidecar_config_n_rows = ARRAY_SIZE(sidecar_config_rows);

static int fail(char **ret_error, const char *fmt, ...) printf_like(2, 3);

static int fail(char **ret_error, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        if (ret_error && vasprintf(ret_error, fmt, ap) < 0)
                *ret_error = NULL;
        va_end(ap);
        return -EINVAL;
}

static int check_endpoints(const struct sidecar_config *c, char **ret_error)
{
        cleanup_with(freep) char *list = strdup(c->admin_endpoints);
        char *save = NULL, out[320];
        int n = 0;

        if (!list)
                return -ENOMEM;
        for (char *e = strtok_r(list, ", ", &save); e; e = strtok_r(NULL, ", ", &save), n++)
                if (endpoint_normalise(e, out, sizeof(out)) < 0)
                        return fail(ret_error, "admin.endpoints: '%s' is not http://host:port; write it so",
                                    e);
        return n > 0 ? 0 : fail(ret_error, "admin.endpoints is empty; name at least this host's broker");
}

static int check(const struct sidecar_config *c, char **ret_error)
{
        if (c->drain_deadline_ms + c->drain_reserve_ms > c->stop_timeout_ms)
                return fail(
                        ret_error,
                        "drain.deadline (%" PRId64 " s) plus drain.reserve (%" PRId64
                        " s) is longer than stop.timeout (%" PRId64
                        " s): the platform would end the stop first; shorten the deadline or raise the limit",
                        c->drain_deadline_ms / 1000, c->drain_reserve_ms / 1000, c->stop_timeout_ms / 1000);
        if (c->backoff_min_ms > c->backoff_max_ms)
                return fail(ret_error,
                            "retry.backoff.min (%" PRId64 " ms) is above retry.backoff.max (%" PRId64 " ms)",
                            c->backoff_min_ms, c->backoff_max_ms);
        if (c->connect_ms > c->request_ms)
                return fail(ret_error,
                            "admin.connect.timeout (%" PRId64 " ms) is above admin.request.timeout (%" PRId64
                            " ms)",
                            c->connect_ms, c->request_ms);
        return check_endpoints(c, ret_error);
}

static int read_token(struct sidecar_config *c, char **ret_error)
{
        cleanup_with(buf_donep) struct buf b = {0};
        const char *text;
        size_t len;
        int r;

        buf_init(&b, 4096);
        if (c->admin_token_file[0] == '\0')
                return 0;
        r = fs_read_file(c->admin_token_file, 4000, &b);
        if (r < 0) {
                (void)fail(ret_error, "admin.token.file %s: %s", c->admin_token_file, strerrordesc_np(-r));
                return r;
        }
        text = buf_cstr(&b);
        if (!text)
                return -ENOMEM;
        len = strcspn(text, "\r\n");
        /* The token becomes part of a header line: nothing in it may end that line. */
        if (len == 0 || strlen(text) != b.len || strspn(text + len, "\r\n") != b.len - len)
                return fail(ret_error, "admin.token.file %s: one line with the token is wanted",
                            c->admin_token_file);
        c->token = strndup(text, len);
        return c->token ? 0 : -ENOMEM;
}

int sidecar_config_load(const char *path, const char *const *overrides, struct sidecar_config *c,
                        char **ret_error)
{
        int r;

        r = config_load(sidecar_config_rows, sidecar_config_n_rows, path, SIDECAR_ENV_PREFIX, overrides, c,
                        ret_error);
        if (r == 0)
                r = check(c, ret_error);
        if (r == 0)
                r = read_token(c, ret_error);
        return r;
}

void sidecar_config_done(struct sidecar_config *c)
{
        config_done(sidecar_config_rows, sidecar_config_n_rows, c);
        if (c->token)
                explicit_bzero(c->token, strlen(c->token));
        free(TAKE_PTR(c->token));
}

void sidecar_config_params(const struct sidecar_config *c, int64_t deadline_ms, struct drain_params *ret)
{
        int64_t hard_ms = MAX(c->stop_timeout_ms - c->drain_reserve_ms, INT64_C(1));

        *ret = (struct drain_params){
                .deadline_ms = MIN(deadline_ms > 0 ? deadline_ms : c->drain_deadline_ms, hard_ms),
                .hard_limit_ms = hard_ms,
                .no_controller_ms = c->no_controller_ms,
                .broker_silent_ms = c->broker_silent_ms,
                .settle_ms = c->settle_ms,
                .undo_ms = UNDO_MS,
                .stall_ms = c->stall_ms,
                .poll_ms = c->poll_ms,
                .force_ms = MIN((deadline_ms > 0 ? deadline_ms : c->drain_deadline_ms) / 3, INT64_C(15000)),
                .backoff_min_ms = c->backoff_min_ms,
                .backoff_max_ms = c->backoff_max_ms,
                .policy = (enum drain_policy)c->deadline_policy,
                .unsafe = (enum drain_unsafe)c->unsafe_policy,
        };
}

void sidecar_config_limits(const struct sidecar_config *c, struct http_limits *ret)
{
        *ret = (struct http_limits){
                .connect_ms = c->connect_ms,
                .total_ms = c->request_ms,
                .body_bytes = BODY_CEILING,
                .redirects = REDIRECTS,
        };
}
