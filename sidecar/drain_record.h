/* What remains of a drain: journal events with fixed MESSAGE_IDs (docs/events.md) and the result file (L6,
 * D12). */
#pragma once

#include "drain_status.h"

struct drain_record {        /* embed; zeroed */
        int64_t progress_ms; /* when progress was last reported */
        int32_t remaining;
};

/* Report what changed since @from. Call on every change; progress is reported at most every 5 s. */
void drain_record_change(struct drain_record *r, const struct drain_status *s, enum drain_phase from);

/* Write @s to @path, replacing it atomically; the unit's INVOCATION_ID goes with it. -errno. */
int drain_record_write(const char *path, const struct drain_status *s) must_check;
/* For a stop whose drain did not begin: verdict "none", and @why. -errno. */
int drain_record_none(const char *path, const char *why) must_check;
/* ExecStopPost=: add how the service ended ($SERVICE_RESULT, $EXIT_CODE, $EXIT_STATUS) to the record of this
 * invocation; a stop that had no drain gets a record of its own with verdict "none". -errno. */
int drain_record_exit(const char *path) must_check;
