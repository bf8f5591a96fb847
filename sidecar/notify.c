#include "notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>

#define BARRIER_US UINT64_C(1000000)

/* Results are ignored throughout: without systemd there is nobody to tell, and nothing depends on it. */

void notify_ready(const char *status)
{
        (void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_status(const char *status)
{
        (void)sd_notifyf(0, "STATUS=%s", status);
}

void notify_extend(void)
{
        (void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRId64, (int64_t)NOTIFY_EXTEND_MS * 1000);
}

void notify_drain(const struct drain_status *s)
{
        char line[512];

        drain_status_line(s, line, sizeof(line));
        notify_status(line);
        if (s->may_extend)
                notify_extend();
}

void notify_barrier(void)
{
        (void)sd_notify_barrier(0, BARRIER_US);
}
