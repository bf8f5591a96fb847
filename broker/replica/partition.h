/* One partition on this broker: its log, its role, its high watermark, and who waits for it.
 *
 *             LeaderAndIsr                LeaderAndIsr
 *   NONE ------------------> LEADER <------------------> FOLLOWER <---- NONE
 *    ^                         |                            |
 *    '--- StopReplica, step down (epochs are kept) ---------'      any --- I/O error ---> OFFLINE
 *
 * [any thread] unless said otherwise. One lock each, held for memory work and an append to the page cache,
 * never while the purgatory, a callback or the network is called: what follows from a change comes back as
 * effects, which the replica manager performs (KAFKA-3994, 13254). Order of locks: lock, then reading. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "log/partition_log.h"
#include "replica/follower_core.h"
#include "replica/leader_core.h"
#include "replica/purgatory.h"
#include "replica/replica_manager.h"

struct fetch_entry;

struct partition_env { /* the same for all partitions of a broker; outlives them */
        int32_t broker_id;
        int64_t lag_max_ms;
        bool (*lease_valid)(void *userdata); /* NULL: always (F2) */
        /* A replica has gone offline. Called under its lock: only to post. NULL allowed. */
        void (*went_offline)(void *userdata);
        void *userdata;
};

struct partition {
        char topic[TOPIC_NAME_SIZE];
        int32_t index;
        const struct partition_env *env;
        _Atomic int refs;
        struct purgatory_key produce_key, fetch_key;
        pthread_rwlock_t
                reading; /* shared: reads of the log outside `lock`; exclusive: truncation and deletion */

        /* Counts, under the lock, what a reader could notice: appends, moves of the HW or the log's ends,
         * role and epoch. Who finds the number it has seen before need not look again. */
        _Atomic uint32_t changes;
        /* KIP-73, by the topic's settings: while we lead it, what goes to replicas that are not in sync
         * counts, and while we follow it out of sync what we fetch. */
        _Atomic bool leader_throttled, follower_throttled;

        pthread_mutex_t lock; /* all up to the next comment */
        struct uuid topic_id;
        struct partition_log *log; /* the log manager's; NULL once deleted */
        enum replica_role role;
        int32_t leader_id, leader_epoch, partition_epoch;
        /* Counts how often we became leader. Within one term the log is never truncated, also when the epoch
         * moves on; what was appended in another term may be gone (R73). */
        uint32_t term;
        int64_t hw;
        /* Why and when Produce was refused last, or leadership began: see partition.c, GAP_GRACE_MS. */
        int16_t refusal;
        int64_t refusal_ms;
        struct leader leader; /* valid while role is LEADER */
        int32_t *replicas, n_replicas;
        int32_t min_isr;
        bool caught_up; /* follower: reached the leader's HW since it follows */

        struct list isr_node;  /* replica manager's isr_lock */
        struct list want_node; /* the fetchers' lock, with the next two: from whom it should fetch */
        int32_t want_leader, want_epoch;
        struct fetch_entry *fetch; /* replication thread */
};

/* What the caller has to do after the lock is released. */
struct partition_effects {
        bool hw_moved;  /* check both purgatory keys */
        bool appended;  /* check the fetch key */
        bool propose;   /* send the ISR proposal */
        bool retry_isr; /* send it again after a pause */
};

/* @hw: from the checkpoint, bounded by the log (KAFKA-539). One reference for the caller. */
int partition_new(const struct partition_env *env, const char *topic, int32_t index,
                  struct partition_log *log, int64_t hw, struct partition **ret) must_check;
struct partition *partition_ref(struct partition *p);
struct partition *partition_unref(struct partition *p); /* accepts NULL, returns NULL */
DEFINE_FREEP(struct partition, partition_unref)
/* The log is about to be closed or deleted: waits for readers; the role becomes NONE. */
void partition_detach_log(struct partition *p);
void partition_set_min_isr(struct partition *p, int32_t min_isr, int64_t now_ms,
                           struct partition_effects *ret);
void partition_set_log_config(struct partition *p, const struct log_config *c);

/* --- control --- */
struct partition_assignment {
        struct uuid topic_id;
        int32_t leader, leader_epoch, partition_epoch;
        const int32_t *replicas, *isr;
        int32_t n_replicas, n_isr;
};
enum partition_outcome {
        PARTITION_REFUSED,   /* see the error */
        PARTITION_UNCHANGED, /* an exact repetition: fine, nothing to do */
        PARTITION_LEADS,
        PARTITION_FOLLOWS, /* (re)start fetching from the leader, if there is one */
        PARTITION_UPDATED, /* same epoch, newer ISR */
};
/* One partition of LeaderAndIsr (§4.2 items 2, 4, 5). What can fail is done before anything changes
 * (KAFKA-9769). Returns a Kafka error. *ret_old: the role before. */
int16_t partition_apply(struct partition *p, const struct partition_assignment *a, int64_t now_ms,
                        enum partition_outcome *ret, enum replica_role *ret_old,
                        struct partition_effects *ret_effects);
/* Loaded at start, of this topic, and not named by any LeaderAndIsr since. */
bool partition_is_unclaimed(struct partition *p, const struct uuid *topic_id);
/* StopReplica: lead and follow nothing; the HW stays known (KAFKA-858). @leader_epoch -1, -2: always; else
 * FENCED_LEADER_EPOCH when ours is newer; equal is accepted (KAFKA-13972). */
int16_t partition_stop(struct partition *p, int32_t leader_epoch);
bool partition_step_down(struct partition *p); /* was it a leader? */

/* --- leader: produce --- */
struct partition_append {
        int16_t error;
        uint32_t term;
        int64_t base_offset, required_offset /* the HW to wait for */, log_start_offset;
};
void partition_produce(struct partition *p, uint8_t *data, size_t len, int16_t acks,
                       struct partition_append *ret, struct partition_effects *ret_effects);
/* Is an append of @term up to @required_offset decided? Then *ret_error is its outcome. */
bool partition_ack_state(struct partition *p, uint32_t term, int64_t required_offset, int16_t *ret_error);

/* --- leader: fetch --- */
struct partition_fetch {
        int32_t replica_id; /* < 0: a consumer */
        int64_t replica_epoch;
        int32_t current_leader_epoch, last_fetched_epoch;
        int64_t offset;
};
struct partition_fetch_state {
        int16_t error;
        int64_t hw, log_start_offset; /* one snapshot (KAFKA-7104, 9807) */
        int64_t bytes;                /* that a read would find */
        int32_t diverging_epoch;      /* -1: none */
        int64_t diverging_end_offset;
        uint32_t changes; /* the partition's count that this is the state of */
        bool throttled;   /* for a follower that is not in sync, of a partition whose throttle counts here */
};
/* May it be served, and with how much? @lease: asked by the caller, once for all partitions of a request
 * (F2). Progress of a follower is recorded only by partition_fetch_begin(), once a request. */
void partition_fetch_begin(struct partition *p, const struct partition_fetch *f, bool lease, int64_t now_ms,
                           struct partition_fetch_state *ret, struct partition_effects *ret_effects);
void partition_fetch_check(struct partition *p, const struct partition_fetch *f, bool lease,
                           struct partition_fetch_state *ret);
/* Check again and append the batches to @out; *ret_n bytes. */
void partition_fetch_read(struct partition *p, const struct partition_fetch *f, bool lease, size_t max_bytes,
                          bool min_one, struct buf *out, size_t *ret_n, struct partition_fetch_state *ret);

/* --- follower (replication thread) --- */
struct partition_position {
        int64_t offset, log_start_offset;
        int32_t last_epoch;
        struct uuid topic_id;
};
/* Where to fetch from as a follower in @leader_epoch; false when it isn't that any more. */
bool partition_follow_position(struct partition *p, int32_t leader_epoch, struct partition_position *ret);
struct partition_answer {
        struct follower_answer answer;
        struct wire_bytes records;
        int64_t leader_hw;
};
/* Handle what the leader answered to a fetch made in @leader_epoch. *ret_action says what was found; append
 * and truncation have been done. -ESTALE: role or epoch changed meanwhile, ignore; -EBADMSG: bad records, ask
 * again later; -EIO …: the partition went offline. */
int partition_follow_answer(struct partition *p, int32_t leader_epoch, const struct partition_answer *a,
                            enum follower_action *ret_action) must_check;
/* Out of range: the leader's log is [@leader_start, @leader_end). */
int partition_follow_range(struct partition *p, int32_t leader_epoch, int64_t leader_start,
                           int64_t leader_end) must_check;

/* --- ISR --- */
struct partition_proposal {
        struct uuid topic_id;
        uint32_t number;
        int32_t leader_epoch, partition_epoch;
        struct {
                int32_t id;
                int64_t broker_epoch;
        } * isr; /* in the arena */
        int32_t n_isr;
};
/* 1: there is one to send; 0: not (any more); -ENOMEM. */
int partition_isr_proposal(struct partition *p, int64_t own_broker_epoch, struct arena *a,
                           struct partition_proposal *ret) must_check;
void partition_isr_result(struct partition *p, const struct leader_isr_result *a,
                          struct partition_effects *ret);
void partition_tick(struct partition *p, int64_t now_ms, struct partition_effects *ret);

/* --- the rest --- */
/* The offset for @timestamp (-1 latest, -2 earliest, -3 of the largest timestamp, else the first at or after
 * it), as ListOffsets answers it. @follower: up to the log end. Returns a Kafka error. */
struct partition_offset {
        int64_t offset, timestamp;
        int32_t leader_epoch;
};
int16_t partition_list_offset(struct partition *p, int64_t timestamp, int32_t current_leader_epoch,
                              bool follower, struct partition_offset *ret);
int16_t partition_end_offset_for_epoch(struct partition *p, int32_t current_leader_epoch, int32_t epoch,
                                       int32_t *ret_epoch, int64_t *ret_end_offset);
int64_t partition_high_watermark(struct partition *p);
int partition_retain(struct partition *p, int64_t now_real_ms) must_check;
/* Who leads as far as LeaderAndIsr said, maybe ourselves, -1 unknown. */
void partition_leader_hint(struct partition *p, int32_t *ret_leader_id, int32_t *ret_leader_epoch);
/* Fills @ret; its arrays are in @a. -ENOMEM. */
int partition_info(struct partition *p, struct arena *a, struct replica_info *ret) must_check;
