/* The record of the last drains (D12): who asked, why, what was moved, what remained, how it ended.
 *
 * In memory while in office, and in ZooKeeper (/stepdown/drains), written with the check of the controller's
 * epoch. A record is opened when a drain begins, so that a successor finds it, and closed exactly once: by
 * the end of the drain, or by whoever is controller when its broker is found gone, or when nobody has taken
 * the drain up again after a change of controllers. Nothing here holds up a drain: a write that fails is
 * repeated, and what cannot be kept is said. Controller thread; internal to controller/. */
#pragma once

#include "zk/znode_drains.h"

struct controller;
struct ctx_broker;
struct drain;
struct drain_history;

#define DRAIN_HISTORY_MAX 100 /* records */

enum drain_verdict_kind {
        DRAIN_ENDED_NOT,         /* it goes on */
        DRAIN_ENDED_DRAINED,     /* its broker left, or restarted, after it was drained */
        DRAIN_ENDED_BROKER_GONE, /* its broker left, or restarted, before */
        DRAIN_ENDED_UNDONE,      /* it was undone */
        DRAIN_ENDED_EXPIRED,     /* nobody renewed its lease */
        DRAIN_ENDED_REPLACED,    /* another drain of the same broker took over */
        DRAIN_ENDED_LOST,        /* the controller changed, and nobody asked the next one to go on */
        N_DRAIN_ENDS,
};
const char *drain_end_name(enum drain_verdict_kind k); /* "" "drained" "broker-gone" … */

int drain_history_init(struct controller *c) must_check;
void drain_history_done(struct controller *c);
void drain_history_load(struct controller *c);   /* elected: read what there is */
void drain_history_active(struct controller *c); /* loaded, nothing has been decided yet */
void drain_history_forget(struct controller *c); /* resignation */
void drain_history_tick(struct controller *c);   /* often: writes what waits, closes what is over */

/* The drain has begun, is known again after a change of controllers, or has another id. */
void drain_history_begin(struct controller *c, struct drain *d);
/* Its state has changed from @from. */
void drain_history_changed(struct controller *c, struct drain *d, int from);
/* It is about to be forgotten; its broker and the counts are still as they were. NOT: drained or broker-gone,
 * whichever it is. */
void drain_history_end(struct controller *c, struct drain *d, enum drain_verdict_kind kind);

/* Has the last drain of @b ended, which took all leaderships whose first replica it is, and have they not
 * gone back yet (D11)? */
bool drain_history_took_all(const struct controller *c, const struct ctx_broker *b);
void drain_history_returned(struct controller *c, const struct ctx_broker *b); /* they have */

/* Oldest first. Valid until anything changes. */
const struct znode_drain *drain_history_items(const struct controller *c, size_t *ret_n);
/* Is the record in ZooKeeper what is in memory? */
bool drain_history_saved(const struct controller *c);

void drain_history_metrics_register(void);
void drain_history_metrics_unregister(void);
