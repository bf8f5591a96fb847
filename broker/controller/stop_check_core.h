/* What stopping a broker would mean for each partition it hosts (D4, D10), and whether waiting helps. Pure.
 *
 * Judged is the ISR that would be left: its members that live, do not drain and have not just restarted,
 * without the broker. Draining brokers count as gone, because they are about to be. The answer is the same
 * for a drain and for a crash; what differs is only how long the hand-over takes. */
#pragma once

#include "controller/election_core.h"

struct stop_check_partition {
        struct election_input state;
        int32_t broker_id; /* who would stop */
        int32_t min_isr;   /* of the topic; below 1 counts as 1 */
        bool deleting;     /* its topic is being deleted: nothing is lost */
};

/* The worse, the later. */
enum stop_risk {
        STOP_SAFE,           /* nothing changes for clients */
        STOP_ONE_COPY,       /* acks=all goes on, with one copy only */
        STOP_BELOW_MIN_ISR,  /* acks=all would be rejected: the ISR without it is below min.insync.replicas */
        STOP_SINGLE_REPLICA, /* RF = 1: gone until the broker is back (R16) */
        STOP_UNAVAILABLE,    /* nobody in sync could lead it */
        N_STOP_RISKS,
};
const char *stop_risk_name(enum stop_risk r); /* "safe" "one_copy_left" "below_min_isr" … */
const char *stop_risk_help(enum stop_risk r); /* a sentence for people */

/* What has to happen before this very risk is gone; a lesser one may remain. The likelier, the earlier. */
enum stop_wait {
        STOP_WAIT_NOTHING,  /* there is no risk */
        STOP_WAIT_CATCH_UP, /* replicas that live get in sync: wait */
        STOP_WAIT_DRAINED,  /* and brokers that drain come back, or their drain is undone: wait */
        STOP_WAIT_OFFLINE,  /* and replicas that are dead or on a failed disk return: somebody has to act */
        STOP_WAIT_NEVER,    /* there are not enough replicas: RF <= min.insync.replicas, or RF = 1 */
        N_STOP_WAITS,
};
const char *stop_wait_name(enum stop_wait w);
const char *stop_wait_help(enum stop_wait w);

struct stop_verdict {
        enum stop_risk risk;
        enum stop_risk before; /* what holds already while it runs; `risk` is worse, or as bad */
        enum stop_wait wait;
        bool leads;      /* its leadership would have to move (RF > 1) */
        bool delays;     /* not in sync here while the partition needs it: stopping puts off the repair */
        bool unclean;    /* UNAVAILABLE, and unclean.leader.election.enable would lose messages instead */
        bool never_safe; /* RF <= min.insync.replicas: stopping any replica blocks acks=all */
        int32_t left;    /* members of the ISR without it */
};

void stop_check_judge(const struct stop_check_partition *p, struct stop_verdict *ret);

/* --- the sum over a broker's partitions --- */

struct stop_check_item {
        const char *topic;
        int32_t partition, leader, min_isr;
        const int32_t *isr, *replicas;
        int32_t n_isr, n_replicas;
        struct stop_verdict verdict;
};

struct stop_check {
        int32_t partitions;                          /* hosted; without those of topics being deleted */
        int32_t leaders;                             /* that would move */
        int32_t by_risk[N_STOP_RISKS];               /* whole, whatever is listed */
        int32_t by_wait[N_STOP_RISKS][N_STOP_WAITS]; /* of by_risk */
        int32_t already[N_STOP_RISKS];               /* of by_risk: as bad while it runs */
        int32_t gate; /* that D4 holds it up for: offline or below min.insync.replicas, not so already, and
                         waiting can change it */
        int32_t delays, unclean, never_safe;          /* partitions of which that holds */
        struct stop_check_item *listed[N_STOP_RISKS]; /* the caller's memory, `max` each; NULL: no list */
        size_t n_listed[N_STOP_RISKS], max;
};

/* Count @item, whose verdict is there, and list it while there is room; SAFE ones are not listed. */
void stop_check_add(struct stop_check *sum, const struct stop_check_item *item);
enum stop_risk stop_check_worst(const struct stop_check *sum);
/* Does D4 hold it up: would stopping take a partition offline or below min.insync.replicas, and can waiting
 * change that? RF = 1, one copy left and what can never be safe do not count here: waiting for them is in
 * vain. Returns how many partitions. */
int32_t stop_check_worth_waiting(const struct stop_check *sum);
