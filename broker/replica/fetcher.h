/* The fetchers of a broker: one for each other broker that leads something this one follows.
 *
 * A fetcher has several lanes, each a connection with at most one Fetch in flight, because responses leave a
 * connection in request order and a Fetch may wait half a second for data. A partition is in one lane at a
 * time:
 *
 *   COLD  most partitions; waits up to replica.fetch.wait.max.ms
 *   HOT   up to eight, for those that had data lately: an append costs a request of some dozens, not of all
 *   NEW   those added while the others were waiting; short waits, so that a partition that comes next is not
 * kept (the gap in a drain) and these soon join the others
 *
 * All waits end at a common deadline; then, when there is something to regroup, lanes are held a few ms until
 * all are back and partitions are dealt out afresh. */
#pragma once

#include "replica/partition.h"

struct fetchers;
struct replica_manager;

int fetchers_new(struct replica_manager *m, struct loop *l, struct fetchers **ret) must_check;
/* [any thread] Fetch @p from @leader in @leader_epoch, or from nobody (@leader -1). Takes effect on the
 * loop's thread; answers to fetches of another epoch are ignored from the moment the partition's own epoch
 * changed. */
void fetchers_want(struct fetchers *f, struct partition *p, int32_t leader, int32_t leader_epoch);
void fetchers_stop(struct fetchers *f);             /* loop thread: drop everything, close all connections */
struct fetchers *fetchers_free(struct fetchers *f); /* stopped, the loop's thread ended */
DEFINE_FREEP(struct fetchers, fetchers_free)
