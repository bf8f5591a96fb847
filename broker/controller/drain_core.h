/* What a drain has still to do for one partition, and why it has not (D5). Pure. */
#pragma once

#include "controller/controller.h"
#include "controller/election_core.h"

/* One partition hosted by the broker that drains. */
struct drain_partition {
        struct election_input state;
        int32_t broker_id; /* who drains */
        int32_t factor;    /* replication factor */
        int32_t min_isr;
        bool busy;         /* queued for a write, or its write is in flight */
        bool write_failed; /* the last write failed for good; it is tried again later */
        bool zk_available;
        bool reassigning;        /* a reassignment of it goes on */
        bool deleting;           /* its topic is being deleted: not counted (kafka-semantics §2.3) */
        bool stop_sent, stopped; /* StopReplica to the broker: under way, acknowledged or given up on */
};

enum drain_need {
        DRAIN_NEED_NOTHING,
        DRAIN_NEED_MOVE,   /* leadership can and must move */
        DRAIN_NEED_STOP,   /* StopReplica must be sent (R7, R9) */
        DRAIN_NEED_SHRINK, /* stopped; its ISR membership can and must go (R8) */
        DRAIN_NEED_WAIT,   /* something is under way, or cannot be done now */
};

struct drain_verdict {
        enum drain_need need;
        bool leads;  /* leads it with RF > 1: counted as remaining (R25) */
        bool single; /* leads it with RF = 1 (R16) */
        bool in_isr; /* follows it and is in an ISR with another member */
        bool stuck;  /* WAIT for something outside this drain: it does not keep a pass from ending */
        enum drain_reason reason; /* when leads, single or in_isr */
        bool never_safe;
};

void drain_partition_judge(const struct drain_partition *p, struct drain_verdict *ret);

/* The condition that keeps a follower in an ISR (R23), as a sentence for the warning; NULL: nothing does. */
const char *drain_not_removed_because(const struct drain_partition *p);

/* State of a drain whose partitions have been judged. */
struct drain_totals {
        int32_t leaders, single, in_isr;
        int32_t moving; /* NEED_MOVE, NEED_STOP, NEED_SHRINK or WAIT that is not stuck */
        bool told;      /* the other brokers have acknowledged the last moves, or took too long */
};
enum drain_state drain_state_of(const struct drain_totals *t);
