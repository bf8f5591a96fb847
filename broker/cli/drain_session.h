/* One wait for a drain: by the sidecar while it is there, by ourselves when it is not (L6).
 *
 * The sidecar is asked over its socket; when it is absent, dead, silent or serves another broker, the same
 * drain id goes on in this process. Ends with a verdict in every case. Runs its own loop on the calling
 * thread. */
#pragma once

#include "drain_status.h"
#include "sidecar_config.h"

struct drain_session_options {
        int32_t broker;     /* -1: the configured one */
        const char *socket; /* of the sidecar; "": do not ask it */
        const char *reason, *requested_by;
        int64_t deadline_ms; /* 0: as configured */
        int64_t main_pid;    /* leave when this process ends; 0: none */
        bool undo;           /* undo instead of drain */
        bool force; /* take the slot from whoever holds it, and do not wait until it is safe; with a reason */
        bool cluster_stop;  /* D8: all of the cluster is being stopped */
        bool wait;          /* else: leave as soon as the drain is accepted */
        bool under_systemd; /* tell systemd and the journal */
        bool live;          /* a progress line on the terminal */
};

/* 0 and the last status, or -errno when nothing could even be tried. */
int drain_session_run(const struct drain_session_options *o, const struct sidecar_config *config,
                      struct drain_status *ret) must_check;
/* Ask how the drain stands and leave: the sidecar first, then the controller. -EHOSTUNREACH and a message
 * when nobody answers. */
int drain_session_status(const struct drain_session_options *o, const struct sidecar_config *config,
                         struct drain_status *ret) must_check;
