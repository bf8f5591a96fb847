/* What a drain looks like from outside: one snapshot, one JSON schema for the control socket, `--json` and
 * the result file (L11), one line for people. No state of its own; any thread.
 *
 * Members of the JSON object (docs/events.md): drain_id broker epoch state verdict why message remaining
 * initial moved leaders rf1_led blocked blocked_total controller rate seconds deadline_in_seconds stalled
 * reason requested_by started_at ended_at slot. A count that is not known is null, never 0 (L1). */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "controller_client.h"
#include "drain_core.h"

struct drain_status {
        char drain_id[DRAIN_TEXT_MAX], reason[DRAIN_TEXT_MAX], requested_by[DRAIN_TEXT_MAX];
        char message[768]; /* present trouble, or why the verdict is what it is; "" when all is well */
        int32_t broker, controller; /* -1: not known */
        int64_t epoch;
        enum drain_phase state;
        enum drain_why why;
        int32_t remaining, initial, leaders; /* DRAIN_UNKNOWN: not known; leaders: the broker's own view */
        int32_t moved, rf1_led, blocked_total;
        int64_t rate_milli;                     /* partitions a second, in thousandths */
        int64_t elapsed_ms, deadline_in_ms;     /* deadline_in_ms: 0 once ended */
        int64_t started_real_ms, ended_real_ms; /* wall clock; 0: not yet */
        int failures;
        bool stalled, may_extend;
        struct slot_info slot; /* who holds the cluster's drain slot, as last heard */
        size_t n_blocked;
        struct blocked_partition blocked[BLOCKED_MAX];
};

/* NULL on out of memory. */
json_t *drain_status_to_json(const struct drain_status *s);
/* -EBADMSG when it is not such an object. */
int drain_status_from_json(const json_t *o, struct drain_status *ret) must_check;

/* "Draining: 12 leader partitions remain (deadline in 1498 s), 40.0/s; [orders,3] no_other_in_sync_replica".
 * Always one line of at most @size - 1 bytes. */
void drain_status_line(const struct drain_status *s, char *out, size_t size);
/* "2026-11-29T23:06:10.614Z" */
void format_time_utc(int64_t real_ms, char out[32]);
