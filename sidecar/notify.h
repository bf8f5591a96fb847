/* What systemd is told (L6). Never STOPPING=1: it would end a drain that may still be undone. Any thread. */
#pragma once

#include "drain_status.h"

/* One extension, and how often it is renewed: well before the shortest sensible TimeoutStopSec= (5 s) is
 * over. */
#define NOTIFY_EXTEND_MS 15000
#define NOTIFY_PERIOD_MS 2000

void notify_ready(const char *status);
void notify_status(const char *status);
/* STATUS= and, while the drain may go on, EXTEND_TIMEOUT_USEC=. */
void notify_drain(const struct drain_status *s);
void notify_extend(void);
/* Wait (at most a second) until systemd has read what was sent: a short-lived process must not be gone
 * before. */
void notify_barrier(void);
