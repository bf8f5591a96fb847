/* One drain, shared by drain.c (what it does) and drain_api.c (what is asked and told). */
#pragma once

#include "controller/controller_internal.h"
#include "controller/drain_history.h"

struct drain {
        struct ctx_broker *b;
        enum drain_state state;
        int64_t epoch; /* of the broker that drains */
        char id[DRAIN_TEXT_SIZE], reason[DRAIN_TEXT_SIZE], requested_by[DRAIN_TEXT_SIZE];
        int64_t since_ms, deadline_ms, updated_ms; /* wall clock */
        int32_t leaders_initial, moved;
        int64_t stop_since_ms;    /* loop's clock: the oldest StopReplica without any answer since; 0: none */
        int64_t telling_since_ms; /* nothing moves any more, but not all brokers have been told; 0: not so */
        bool stop_gave_up;
        bool leaders_move;     /* followers wait: the last step found leaderships that can move */
        int32_t stopping;      /* replicas with slot.stopping */
        size_t stop_cursor;    /* hosted[] before it has been asked to stop */
        struct list shutdowns; /* ControlledShutdown requests that wait for the pass to end */
};

/* Nothing to do and nothing to tell: the quick way past most partitions of a broker. */
bool drain_quiet(const struct controller *c, const struct ctx_broker *b, size_t i);
/* The partition behind hosted[@i] of @b as drain_core.c wants it; @replicas must outlive @ret. */
void drain_view(const struct controller *c, const struct ctx_broker *b, size_t i, bool zk_available,
                struct election_replica *replicas, struct drain_partition *ret);
void drain_end(struct controller *c, struct ctx_broker *b, bool rejoin, enum drain_verdict_kind how);

/* Those whose time is over are answered in any case (R19). */
void drain_answer_shutdowns(struct controller *c, struct drain *d, bool all);
void drain_refuse_shutdowns(struct drain *d); /* NOT_CONTROLLER */
