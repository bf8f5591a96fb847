/* What the leader of one partition knows of its replicas, and the three decisions it takes: how far the high
 * watermark goes, who joins the ISR and who leaves it. Pure: no clock, lock or I/O; the caller passes the
 * time, holds the partition's lock and performs the effects.
 *
 *              propose (expand or shrink)
 *   ISR_STEADY ---------------------------> ISR_PROPOSED     one proposal in flight a partition
 *        ^   <-----------------------------      |
 *        |     committed | refused               | fenced: the controller knows better
 *        |                                       v
 *        `------- next LeaderAndIsr ------- ISR_AWAITS_CONTROLLER
 */
#pragma once

#include <stdint.h>

#include "base/util.h"

enum isr_state { ISR_STEADY, ISR_PROPOSED, ISR_AWAITS_CONTROLLER, N_ISR_STATES };

#define LEO_UNKNOWN ((int64_t)-1)

struct leader_replica { /* the leader itself has one, too */
        int32_t id;
        bool assigned;    /* in the replica list; false: only named by the ISR (KAFKA-10301) */
        bool in_isr;      /* committed */
        bool in_proposal; /* in the proposed ISR while one is in flight */
        int64_t leo, last_fetch_leader_leo, last_fetch_ms, last_caught_up_ms;
        int64_t broker_epoch;  /* from its latest fetch, -1 unknown (KIP-903) */
        bool refused;          /* by the controller, as not alive or draining, and not in the ISR since */
        int64_t propose_at_ms; /* not proposed again before */
};

struct leader {
        int32_t self, epoch, partition_epoch, min_isr;
        int64_t lag_max_ms, epoch_start_offset, leo, hw;
        bool may_commit; /* the lease (F2), set by the caller before each event: without it the HW stands
                            still */
        enum isr_state isr_state;
        uint32_t proposal; /* number of the latest one; answers to others are stale */
        struct leader_replica *replicas;
        int32_t n_replicas;
};

struct leader_effects {
        bool hw_moved;
        bool propose; /* ISR_PROPOSED was entered: send leader_proposed_isr() to the controller */
        bool retry;   /* send the same proposal again after a pause */
};

struct leader_start {
        int32_t self, epoch, partition_epoch, min_isr;
        const int32_t *replicas, *isr;
        int32_t n_replicas, n_isr;
        int64_t lag_max_ms, leo, hw, now_ms;
        bool was_leader; /* has not followed since @l began. What it knows of the followers' logs still holds
                            when @epoch is the next one */
        bool may_commit;
};

/* Begin (or go on) leading in a new epoch, or adopt a newer ISR of the same epoch. @l is zeroed or was begun
 * before. -ENOMEM: @l is unchanged. */
int leader_begin(struct leader *l, const struct leader_start *s, struct leader_effects *ret) must_check;
void leader_done(struct leader *l);

void leader_on_append(struct leader *l, int64_t leo, int64_t now_ms, struct leader_effects *ret);

struct leader_fetch {
        int32_t follower_id;
        int64_t offset, broker_epoch, now_ms;
};
/* A follower asks for @offset, whose history agrees with ours (never call it for a diverging fetch:
 * KAFKA-13141). -ENOENT: not a replica of this partition. */
int leader_on_fetch(struct leader *l, const struct leader_fetch *f, struct leader_effects *ret) must_check;

/* Periodically, every lag_max_ms / 2: who fell behind leaves. */
void leader_on_tick(struct leader *l, int64_t now_ms, struct leader_effects *ret);

/* The controller's answer to proposal number @proposal. @error: a Kafka code. */
struct leader_isr_result {
        uint32_t proposal;
        int16_t error;
        int32_t leader_epoch, partition_epoch;
        const int32_t *isr;
        int32_t n_isr;
        int64_t now_ms;
};
void leader_on_isr_result(struct leader *l, const struct leader_isr_result *a, struct leader_effects *ret);

void leader_set_min_isr(struct leader *l, int32_t min_isr, int64_t now_ms, struct leader_effects *ret);

/* min.insync.replicas, but never more than there are replicas. */
int32_t leader_effective_min_isr(const struct leader *l);
int32_t leader_isr_size(const struct leader *l);
/* Committed ISR plus who is being added: an acknowledgement needs all of them. */
int32_t leader_maximal_isr_size(const struct leader *l);
int32_t leader_assigned_size(const struct leader *l);
const struct leader_replica *leader_find_replica(const struct leader *l, int32_t id);
const char *isr_state_name(enum isr_state s);
