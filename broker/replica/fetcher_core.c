/* Lanes of a fetcher: pure. */
#include "replica/fetcher_core.h"

#define HOT_MS      1000 /* without data for so long a partition is cold */
#define NEW_WAIT_MS 2    /* bounds how long a partition that is added waits for its first fetch */
#define CHURN_ROUND_MS                                                                                       \
        100 /* the round after one in which partitions came: more will, and NEW is to stay short */
#define GATHER_MS             15 /* how long lanes are held for each other at the deadline */
#define NEAR_MS               2  /* leaders' timers are not finer */
#define PARTITIONS_A_HOT_LANE 64

bool fetch_lanes_is_hot(int64_t last_data_ms, int64_t now_ms)
{
        return now_ms - last_data_ms <= HOT_MS;
}

void fetch_lanes_resize(struct fetch_lanes *l, size_t n_partitions)
{
        l->n_hot = (uint32_t)MIN(n_partitions / PARTITIONS_A_HOT_LANE + 1, (size_t)FETCH_HOT_LANES_MAX);
}

enum fetch_lane_id fetch_lanes_place(struct fetch_lanes *l, enum fetch_lane_id from, bool hot, uint32_t shard)
{
        enum fetch_lane_id wanted =
                hot ? (enum fetch_lane_id)(LANE_HOT + shard % MAX(l->n_hot, (uint32_t)1)) : LANE_COLD;

        if (!l->busy[wanted])
                return wanted;
        l->misplaced = true;
        if (from != LANE_ANY && !l->busy[from])
                return from;
        if (!l->busy[LANE_NEW])
                return LANE_NEW;
        for (int i = 0; i < N_FETCH_LANES; i++) {
                if (!l->busy[i])
                        return (enum fetch_lane_id)i;
        }
        return LANE_NEW; /* the first to be back */
}

int64_t fetch_lanes_send(struct fetch_lanes *l, enum fetch_lane_id lane, int64_t now_ms)
{
        int64_t wait_ms;

        l->busy[lane] = true;
        if (l->deadline_ms <= now_ms + 1) {
                l->deadline_ms = now_ms + (l->churning ? MIN(l->wait_max_ms, (int64_t)CHURN_ROUND_MS)
                                                       : l->wait_max_ms);
                l->churning = false;
        }
        wait_ms = l->deadline_ms - now_ms;
        if (lane == LANE_NEW)
                wait_ms = MIN(wait_ms, (int64_t)NEW_WAIT_MS);
        return MAX(wait_ms, (int64_t)1);
}

void fetch_lanes_returned(struct fetch_lanes *l, enum fetch_lane_id lane, int64_t now_ms)
{
        l->busy[lane] = false;
        if (!l->misplaced || l->gathering || now_ms + NEAR_MS < l->deadline_ms)
                return;
        l->gathering = true;
        l->gather_until_ms = now_ms + GATHER_MS;
}

bool fetch_lanes_may_send(struct fetch_lanes *l, int64_t now_ms, bool *ret_regroup)
{
        bool any_busy = false;

        *ret_regroup = false;
        if (!l->gathering)
                return true;
        for (int i = 0; i < N_FETCH_LANES; i++)
                any_busy |= l->busy[i];
        if (any_busy && now_ms < l->gather_until_ms)
                return false;
        l->gathering = false;
        l->misplaced = false;
        l->churning = true;
        l->deadline_ms = 0; /* a new round */
        *ret_regroup = true;
        return true;
}
