/* Shared by fetcher.c (partitions and lanes), fetcher_request.c (what is sent) and fetcher_range.c (out of
 * range). Everything belongs to the replication loop's thread, except what fetchers.lock guards. */
#pragma once

#include "client/kclient.h"
#include "replica/fetcher_core.h"
#include "replica/replica_internal.h"

struct fetcher;

enum fetch_state { FETCH_READY, FETCH_IN_FLIGHT, FETCH_DELAYED, FETCH_RANGING };

struct fetch_entry {         /* one partition followed through one fetcher in one leader epoch */
        struct list node;    /* on fetcher.ready[lane] or fetcher.delayed, as state says */
        struct partition *p; /* a reference */
        struct fetcher *f;
        int32_t epoch, failures;
        enum fetch_state state;
        enum fetch_lane_id lane;
        uint32_t shard;
        size_t sent_at; /* in flight: its place in the lane's list */
        int64_t last_data_ms, due_ms;
        /* As of the latest request. Nobody but the fetcher moves a follower's end, so it stands as long as
         * the answers bring nothing. */
        struct partition_position position;
        bool has_position;
        int64_t leader_hw; /* that was last taken over; -1: none */
        /* While throttled (KIP-73). */
        int64_t ask_bytes;                /* of the next request; 0: as much as any */
        int64_t taken_bytes, given_bytes; /* of the throttle for the one in flight, and used of them */
        bool starved; /* with less than a partition's most nothing came: the next batch may be larger */
};

struct fetch_lane {
        struct fetcher *f;
        enum fetch_lane_id id;
        struct kclient *client;
        struct fetch_entry **sent; /* in request order; NULL: withdrawn while in flight */
        size_t n_sent, cap;
        int32_t failures; /* in a row */
};

struct fetcher { /* one source broker */
        struct list node;
        struct fetchers *owner;
        int32_t broker_id;
        struct replica_endpoint endpoint;
        bool has_endpoint, closing;
        struct fetch_lane lanes[N_FETCH_LANES];
        struct fetch_lanes core;
        size_t n_entries;
        uint32_t next_shard;
        struct kclient *range_client;
        struct list ready[N_FETCH_LANES], delayed;
        struct loop_timer *timer;
        int64_t timer_due_ms; /* INT64_MAX: not armed */
};

struct fetchers {
        struct replica_manager *m;
        struct loop *loop;
        struct list all; /* struct fetcher */

        pthread_mutex_t lock;
        struct list wants; /* lock: partitions (a reference each) whose want_* changed */
        bool stopped, task_posted;
        struct loop_task task;
};

void fetch_entry_ready(struct fetch_entry *e, enum fetch_lane_id from);
void fetch_entry_delay(struct fetch_entry *e, int64_t ms);
void fetch_entry_ranging(struct fetch_entry *e); /* on no list until the leader has answered */
void fetch_entry_drop(struct fetch_entry *e);
/* Take the position if there is none; false: it follows somebody else by now. */
bool fetch_entry_position(struct fetch_entry *e);
/* fetcher_throttle.c: those ready on @lane that the throttle holds back are delayed until it does not; the
 * others know how much to ask for. */
void fetcher_hold_back(struct fetcher *f, enum fetch_lane_id lane);
/* @e comes out of its request. */
void fetch_entry_settle(struct fetch_entry *e);
void fetcher_schedule(struct fetcher *f);
int fetcher_client(struct fetcher *f, struct kclient **client)
        must_check; /* connects on first use; -EHOSTUNREACH */
/* Build and send the Fetch of what is in lane->sent. -ENODATA: nothing is left of it. */
int fetcher_send(struct fetch_lane *lane, int64_t max_wait_ms) must_check;
void fetcher_on_fetched(int r, const void *response, struct arena *arena, void *userdata);
/* The partition's end is outside the leader's log: ask where that is, and act on it. */
void fetcher_find_range(struct fetch_entry *e);
