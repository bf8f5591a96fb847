/* Configuration shared by the daemon and the one-shot client: one table, one check. */
#pragma once

#include <stdint.h>

#include "base/config.h"
#include "controller_client.h"
#include "drain_core.h"

#define SIDECAR_CONFIG_DEFAULT "/etc/stepdown/sidecar.yaml"
#define SIDECAR_ENV_PREFIX     "STEPDOWN_SIDECAR_"

struct sidecar_config {
        int32_t broker_id; /* -1: ask the broker at the first endpoint */
        char *admin_endpoints, *admin_token_file, *control_socket, *state_dir, *result_file;
        int64_t drain_deadline_ms, drain_reserve_ms, stop_timeout_ms;
        int deadline_policy; /* enum drain_policy */
        int unsafe_policy;   /* enum drain_unsafe */
        int64_t no_controller_ms, broker_silent_ms, settle_ms, stall_ms, poll_ms, refresh_ms;
        int64_t backoff_min_ms, backoff_max_ms, connect_ms, request_ms;
        char *token; /* read from admin_token_file by sidecar_config_load(), or NULL */
};

extern const struct config_row sidecar_config_rows[];
extern const size_t sidecar_config_n_rows;

/* Load @path (NULL: defaults and environment alone), read the token, check everything (L2: both numbers are
 * named when the deadline does not fit). 0, or -errno and a sentence in *ret_error (owned by the caller). @c
 * must be zeroed before and be given to sidecar_config_done() afterwards either way. */
int sidecar_config_load(const char *path, const char *const *overrides, struct sidecar_config *c,
                        char **ret_error) must_check;
void sidecar_config_done(struct sidecar_config *c);
static inline void sidecar_config_donep(struct sidecar_config *c)
{
        sidecar_config_done(c);
}

/* The drain's budgets for a deadline asked for, 0: the configured one. It is cut to what stop.timeout leaves.
 */
void sidecar_config_params(const struct sidecar_config *c, int64_t deadline_ms, struct drain_params *ret);
void sidecar_config_limits(const struct sidecar_config *c, struct http_limits *ret);
