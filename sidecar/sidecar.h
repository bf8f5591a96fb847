/* The daemon: one drain at a time on request of the control socket, taken up again after a crash, its own
 * exit put off while a drain is active. One thread, one loop. */
#pragma once

#include "sidecar_config.h"

struct sidecar;

/* -EADDRINUSE: another sidecar serves the socket; -errno. @config must outlive it. */
int sidecar_new(const struct sidecar_config *config, struct sidecar **ret) must_check;
struct sidecar *sidecar_free(struct sidecar *s);
DEFINE_FREEP(struct sidecar, sidecar_free)
int sidecar_run(struct sidecar *s) must_check; /* until SIGTERM or SIGINT; 0 or -errno */
