/* Who holds the drain slot, who gets it, and when it is free again (D3, D8). Pure.
 *
 *                    granted              broker gone             back in a newer life
 *        (free) ---------------> DRAINING ------------> DOWN ------------------------------> RETURNING
 *          ^                        |                     ^------------ gone again -------------'  |
 *          |                        '---------------- undone (DELETE), bounced ------------------>  |
 *          '---- the lease ran out: from everywhere ----------- in every ISR of its partitions -----'
 *
 * One broker at a time, with one exception: a stop of the whole cluster, asked for as such or recognised
 * because every broker asks within SLOT_STOP_WINDOW_MS (docs/decisions). Then nobody waits.
 *
 * Leases are counted with the clock in @now, which is the controller's own; see slot_adopt() for what a
 * controller makes of a slot that another one has written. */
#pragma once

#include "zk/znode_slot.h"

#define SLOT_STOP_WINDOW_MS 10000 /* between the first and the last broker that asks, for a cluster stop */
#define SLOT_PATIENCE_MS    15000 /* who waits and has not asked for so long has given up */

struct slot_now {
        int64_t mono_ms, wall_ms, lease_ms;
};

struct slot_peer { /* a live broker */
        int32_t id;
        int64_t epoch;
        int32_t missing; /* partitions of its own whose ISR it is not in; -1: not counted */
};

struct slot_ask {
        int32_t broker;
        int64_t epoch;
        int64_t named_epoch;                          /* the one that the request names, -1: none */
        const char *drain_id, *reason, *requested_by; /* the id is not empty */
        int64_t deadline_ms;
        int32_t leaders;
        bool replace;      /* take it from whoever holds it; a reason is given */
        bool cluster_stop; /* all of the cluster is being stopped */
        bool unsafe;       /* D4: stopping it now takes a partition offline or below min.insync.replicas, and
                              waiting can change that */
        bool some_missing; /* a broker that hosts replicas is down and does not hold the slot */
};

enum slot_verdict {
        SLOT_GRANTED, /* with s->cluster_stop: stop, nothing needs to be moved */
        SLOT_HELD,    /* *ret_holder has it; who asks is noted as waiting */
        SLOT_UNSAFE,  /* it is free, but D4 holds the broker up; who asks is noted as waiting */
        SLOT_OVER,    /* a drain with that id has ended: the request is late */
        SLOT_FULL,    /* no room to write it down */
};

/* Changes @s as the verdict says. @peers: all live brokers, the asking one among them. */
enum slot_verdict slot_take(struct znode_slot *s, const struct slot_ask *a, const struct slot_peer *peers,
                            size_t n_peers, const struct slot_now *now,
                            const struct slot_holder **ret_holder);
/* Follow what brokers and the clock did. True: @s has changed in a way that is to be written. */
bool slot_settle(struct znode_slot *s, const struct slot_peer *peers, size_t n_peers,
                 const struct slot_now *now);
/* Does slot_settle() look at what peers are missing? */
bool slot_needs_missing(const struct znode_slot *s);
/* The drain of @broker is undone: its id is over, and it holds the slot until it is in every ISR again.
 * False: it does not drain. */
bool slot_undo(struct znode_slot *s, int32_t broker, const char *note, const struct slot_now *now);
/* What was read from ZooKeeper is ours from now on. Every lease begins anew: the holder is promised at least
 * what it was promised before, whatever the two controllers' clocks say, and at most one lease more a
 * failover. @age_ms: how long ago it was written, by ZooKeeper's clock. */
void slot_adopt(struct znode_slot *s, int64_t age_ms, const struct slot_now *now);
/* Ages as they are to be written. */
void slot_set_ages(struct znode_slot *s, const struct slot_now *now);
void slot_renew(struct znode_slot *s, int32_t broker, const struct slot_now *now);
/* It still waits. */
void slot_touch_waiter(struct znode_slot *s, int32_t broker, const struct slot_now *now);

struct slot_holder *slot_holder_of(struct znode_slot *s, int32_t broker); /* NULL: none */
const struct slot_waiter *slot_waiter_of(const struct znode_slot *s, int32_t broker);
/* Has that drain of that broker ended? Whoever names a later epoch means another one: an id may serve a whole
 * roll, and the next one. */
bool slot_id_is_over(const struct znode_slot *s, int32_t broker, int64_t named_epoch, const char *drain_id);
