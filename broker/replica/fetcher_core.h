/* Which lane of a fetcher a partition goes to, how long a lane may wait, and when lanes are regrouped (see
 * fetcher.h). Pure. */
#pragma once

#include <stdint.h>

#include "base/util.h"

#define FETCH_HOT_LANES_MAX 8

enum fetch_lane_id { LANE_COLD, LANE_NEW, LANE_HOT, N_FETCH_LANES = LANE_HOT + FETCH_HOT_LANES_MAX };
#define LANE_ANY N_FETCH_LANES

struct fetch_lanes {
        int64_t wait_max_ms;
        uint32_t n_hot;           /* hot lanes in use, see fetch_lanes_resize(); 0 counts as 1 */
        bool busy[N_FETCH_LANES]; /* a Fetch is in flight */
        bool misplaced;           /* some partition is not where it belongs: regroup at the deadline */
        bool churning;            /* the last round ended with regrouping: the next one is short */
        bool gathering;           /* past the deadline, waiting for the other lanes to come back */
        int64_t deadline_ms;      /* when all waits of this round end */
        int64_t gather_until_ms;
};

/* Had data lately: its next append should not cost a request of everything. */
bool fetch_lanes_is_hot(int64_t last_data_ms, int64_t now_ms);
/* So many hot lanes that one append costs a request of some dozens of partitions. */
void fetch_lanes_resize(struct fetch_lanes *l, size_t n_partitions);
/* The lane for a partition that is ready. @from: the lane it came back on, LANE_ANY when it was just added.
 * @shard: any number that stays the partition's own, to spread them over the hot lanes. Busy only if all are.
 */
enum fetch_lane_id fetch_lanes_place(struct fetch_lanes *l, enum fetch_lane_id from, bool hot,
                                     uint32_t shard);
/* @lane is sent now; returns the longest wait to ask the leader for, in ms. */
int64_t fetch_lanes_send(struct fetch_lanes *l, enum fetch_lane_id lane, int64_t now_ms);
void fetch_lanes_returned(struct fetch_lanes *l, enum fetch_lane_id lane, int64_t now_ms);
/* May ready lanes be sent now? *ret_regroup: place all that is ready once more first. */
bool fetch_lanes_may_send(struct fetch_lanes *l, int64_t now_ms, bool *ret_regroup);
