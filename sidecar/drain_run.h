/* The shell of the drain core: performs its effects on a loop and feeds what came of them back.
 *
 * One object drains one broker, one drain after another. It knows the endpoints: those configured, those the
 * cluster names, and wherever a redirect led (L3). On its loop's thread only. */
#pragma once

#include <stdint.h>

#include "base/loop.h"
#include "drain_status.h"
#include "sidecar_config.h"

struct drain_run;

/* Something changed; @from: the state before. The run must not be freed inside. */
typedef void (*drain_run_fn)(struct drain_run *run, enum drain_phase from, void *userdata);

struct drain_job {
        const char *drain_id; /* NULL: one is made up */
        const char *reason, *requested_by;
        int64_t epoch;           /* DRAIN_UNKNOWN: that of the broker as it is now */
        int64_t deadline_ms;     /* from now; 0: as configured */
        int64_t started_real_ms; /* of a drain that is taken up again; 0: now */
        bool replace;            /* take the slot from whoever holds it; with a reason */
        bool force;              /* D4: safe or not; with a reason */
        bool cluster_stop;       /* D8: all of the cluster is being stopped */
};

/* @config must outlive the run. -ENOMEM, -EINVAL. */
int drain_run_new(struct loop *loop, const struct sidecar_config *config, drain_run_fn on_change,
                  void *userdata, struct drain_run **ret) must_check;
struct drain_run *drain_run_free(struct drain_run *run);
DEFINE_FREEP(struct drain_run, drain_run_free)

/* Another broker than the configured one: its own view is asked for where the cluster says it listens. */
void drain_run_set_broker(struct drain_run *run, int32_t broker);

/* Begin; when a drain is active already this joins it (D1: nothing happens). -ENOMEM, -EIO (no random id). */
int drain_run_start(struct drain_run *run, const struct drain_job *job) must_check;
void drain_run_undo(struct drain_run *run);        /* D2: give leadership back */
void drain_run_skip(struct drain_run *run);        /* stop waiting; what the controller does goes on */
void drain_run_broker_gone(struct drain_run *run); /* its process has ended */
/* Ask the controller once, at each endpoint in turn, how the drain stands. @fn gets NULL and a message when
 * nobody answers. -EBUSY while a query or a drain is active. */
typedef void (*drain_query_fn)(const struct drain_answer *a, const char *message, void *userdata);
int drain_run_query(struct drain_run *run, drain_query_fn fn, void *userdata) must_check;
/* Learn the brokers' endpoints anew. */
void drain_run_refresh(struct drain_run *run);

/* As of now; valid until the next call on the run. */
const struct drain_status *drain_run_status(struct drain_run *run);
/* What the broker itself said last, or NULL. */
const struct broker_answer *drain_run_broker(const struct drain_run *run);
