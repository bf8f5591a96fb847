/* Who leads a partition, and who is in its ISR, given which brokers live and which drain. Pure.
 *
 * One function looks at a partition as it is and says what it should become, so that an election after a
 * failure, the hand-over of a drain and the shrink of an ISR cannot contradict each other whatever order
 * events arrive in. What holds for every result: the leader is a member of the ISR, the ISR is a subset of
 * the old one and never empty (R22), a leader is alive, and nobody outside the ISR is ever elected unless
 * unclean election is switched on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "zk/znode.h"

struct election_replica {
        int32_t id;
        int32_t leaders; /* partitions this broker leads or is about to lead (D6) */
        bool assigned;   /* member of the assignment; false: only in the ISR, never elected */
        bool alive;      /* registered, and its log directory of this partition is online */
        bool draining;   /* R13, R15: no leadership, leaves the ISR */
        bool stopped;    /* its StopReplica is acknowledged or given up on (R11) */
        bool leaving;    /* its reassignment ends: no leadership, leaves the ISR (R60, KAFKA-1097) */
        bool bounced;    /* restarted since it was last in sync: counts as dead unless nobody else is left */
};

struct election_input {
        bool has_state; /* false: a new partition, no state znode yet */
        bool renew;     /* write a new leader epoch even if nothing else changes (undo of a drain, D2) */
        bool prefer;    /* the first replica is to lead, if it is fit for it (R54) */
        bool unclean;   /* unclean.leader.election.enable, or asked for by hand */
        int32_t leader, leader_epoch;
        const int32_t *isr;
        int n_isr;
        const struct election_replica *replicas; /* assignment order, then ISR members outside it */
        int n_replicas;
};

enum election_kind {
        ELECTION_NONE,       /* leave it as it is: no write, no request (R24) */
        ELECTION_NEW,        /* first state of a new partition */
        ELECTION_OFFLINE,    /* the leader is gone; another ISR member takes over */
        ELECTION_LEADERLESS, /* the leader is gone and nobody can take over: leader -1 (R29) */
        ELECTION_DRAIN,      /* the leader drains; another ISR member takes over (R15) */
        ELECTION_REASSIGN,  /* the leader is not in the target of a reassignment; a member of it takes over */
        ELECTION_PREFERRED, /* the first replica of the assignment takes over */
        ELECTION_SHRINK,    /* same leader, smaller ISR */
        ELECTION_RENEW,     /* same leader, same ISR, next epoch */
        ELECTION_UNCLEAN,   /* outside the ISR */
        N_ELECTION_KINDS,
};
const char *election_kind_name(enum election_kind k);

struct election_result {
        enum election_kind kind;
        int32_t leader, leader_epoch;
        int n_isr;
        int32_t isr[ZNODE_MAX_REPLICAS];
};

/* *ret is complete for every kind; with ELECTION_NONE it repeats the input. Ties between candidates go to the
 * assignment's order. */
void election_decide(const struct election_input *in, struct election_result *ret);

/* The candidate of a drain: assigned, in the ISR, alive, not draining, not the leader; fewest leaders (D6).
 * NULL: none. */
const struct election_replica *election_drain_candidate(const struct election_input *in);
/* The first replica, when it may lead: assigned, in the ISR, alive, neither draining nor leaving nor
 * restarted since. NULL: it may not. It may lead already. */
const struct election_replica *election_preferred(const struct election_input *in);
