/* The drain in progress, on disk: a sidecar that crashed takes it up again under the same id (L10).
 * The epoch in it binds it to one incarnation of the broker: after a reboot the controller answers "stale"
 * (D2). */
#pragma once

#include "drain_status.h"

struct active_drain {
        char drain_id[DRAIN_TEXT_MAX], reason[DRAIN_TEXT_MAX], requested_by[DRAIN_TEXT_MAX];
        int32_t broker;
        int64_t epoch;
        int64_t started_real_ms, deadline_real_ms;
};

int active_drain_write(const char *path, const struct active_drain *a) must_check; /* atomic; -errno */
int active_drain_read(const char *path, struct active_drain *ret) must_check; /* -ENOENT, -EBADMSG, -errno */
int active_drain_remove(const char *path) must_check;                         /* 0 if there is none */
