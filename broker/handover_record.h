/* The record of the last hand-over on this host's disk (D12): `last-handover.json` in the first log
 * directory. For a stop that no sidecar accompanies; the cluster's own record is in ZooKeeper. Control
 * thread. */
#pragma once

#include <stdint.h>

struct handover_record { /* embed; zeroed */
        int64_t started_real_ms, started_mono_ms;
        int32_t leaders;   /* with RF > 1, when it began */
        char reason[64];   /* why the broker was told to stop */
        char trouble[160]; /* why the last attempt did not complete; "": it did */
};

void handover_record_begin(struct handover_record *r, const char *reason, int32_t leaders);
void handover_record_trouble(struct handover_record *r, const char *why);

struct handover_end {
        const char *log_dirs; /* log.dirs */
        int32_t broker, leaders_left;
        int64_t epoch;
        const char *verdict; /* "drained" "incomplete" "cut-short" */
};
/* Replaces the record of an earlier stop; what fails is logged: it holds nothing up. */
void handover_record_end(const struct handover_record *r, const struct handover_end *e);
