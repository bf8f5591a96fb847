/* The cluster in the controller's memory: brokers, topics, partitions, and the indexes between them.
 *
 * A partition has a dense number for as long as it lives, so that sets of partitions are bitmaps and queues
 * of integers. Each broker knows the partitions it hosts; counts of led partitions follow every change,
 * because all changes of a partition's state go through ctx_partition_set_state(). Nothing here does I/O; not
 * thread-safe (controller thread). 100,000 partitions of three replicas take about 25 MB. */
#pragma once

#include "base/arena.h"
#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"
#include "controller/election_core.h"
#include "controller/index_queue.h"
#include "zk/znode.h"

struct drain;
struct sender;
struct alter_item;
struct writer_plan;

enum partition_state {
        PARTITION_NONEXISTENT,
        PARTITION_NEW,
        PARTITION_ONLINE,
        PARTITION_OFFLINE,
        N_PARTITION_STATES
};
enum replica_state {
        REPLICA_NONEXISTENT,
        REPLICA_NEW,
        REPLICA_ONLINE,
        REPLICA_OFFLINE,
        REPLICA_DELETION_STARTED,
        REPLICA_DELETION_SUCCESSFUL,
        REPLICA_DELETION_INELIGIBLE,
        N_REPLICA_STATES,
};

struct ctx_broker {
        int32_t id;
        bool alive; /* registered; a broker that only appears in assignments is not */
        int64_t epoch;
        struct znode_broker info;
        struct { /* (partition, slot) of each replica it hosts; order is arbitrary */
                uint32_t partition;
                uint16_t slot;
        } * hosted;
        size_t n_hosted, hosted_capacity;
        int32_t leaders, leaders_multi; /* partitions led; of them with RF > 1 (R16) */
        int32_t planned;                /* leaderships in flight towards it, minus those away from it (D6) */
        struct drain *drain; /* not NULL: no leadership, no ISR membership (R13: asked, not copied) */
        bool stopping;       /* stops with the whole cluster (D8): no leadership, but it stays in the ISRs */
        struct sender *sender;    /* while alive */
        bool taken;               /* some slot of it may be `taken` */
        int32_t returned;         /* of them, since it came back */
        int64_t in_sync_since_ms; /* loop clock, kept while something is `taken`; 0: it is not */
};

struct ctx_slot { /* one replica */
        int32_t broker_id;
        struct ctx_broker *broker;
        uint32_t hosted_at;              /* index in broker->hosted */
        uint8_t state;                   /* enum replica_state */
        bool dir_offline : 1;            /* answered KAFKA_STORAGE_ERROR in this life of the broker */
        bool taken : 1;                  /* a drain of its broker took the leadership, and owes it (D11) */
        bool bounced : 1;                /* restarted; not yet taken out of the ISR */
        bool stop_sent : 1, stopped : 1; /* drain: StopReplica queued or sent; acknowledged or given up on */
        bool stopping : 1; /* drain: between the two, or stopped and still in the ISR (counted there) */
        bool is_new : 1;   /* the first LeaderAndIsr of a new partition */
        bool adding : 1;   /* reassignment (KIP-455): not in the assignment it began with */
        bool removing : 1; /* reassignment: not in its target; with `adding`: of a target given up meanwhile
                            */
        bool delete_sent : 1, delete_in_flight : 1,
                deleted : 1; /* StopReplica with deletion, of `removing` */
};

struct ctx_topic {
        struct list node; /* in ctx->topics_to_delete while deleting */
        char *name;
        struct uuid id;
        struct ctx_partition **partitions; /* by number; NULL where a number is not used */
        int32_t n_partitions;              /* highest number + 1 */
        int32_t min_isr;
        bool deleting;
        uint8_t delete_step;      /* deletion's own */
        int32_t version;          /* of its znode, as far as we know; what a rewrite expects */
        bool rewriting;           /* a write of its znode, or the read after a doubtful one, is under way */
        bool doubtful;            /* `rewriting`, and what came of it is being read */
        uint64_t stepped;         /* the last pass over reassignments that has looked at it */
        bool reading, read_again; /* its znode is being read; once more after that */
        bool forgotten;           /* gone from the maps; kept until nobody refers to its partitions */
        uint32_t refs;            /* partitions not yet freed */
};

struct ctx_partition {
        struct ctx_topic *topic;
        int32_t number;
        uint32_t index;
        uint8_t state;  /* enum partition_state */
        bool has_state; /* its state znode exists */
        bool dir_made;  /* …/partitions/P exists */
        bool in_flight; /* a write, or the read after a doubtful one, is under way */
        bool again;     /* look at it again when that ends */
        bool renew;     /* D2 */
        bool write_failed;
        bool warned;      /* R23: said once a drain */
        bool reassigning; /* some slot is `adding` or `removing` */
        bool finishing; /* its target is in sync: what is `removing` gets no leadership and leaves the ISR */
        bool prefer;    /* hand leadership to the first replica, if that can be done now (R54) */
        bool unclean;   /* ElectLeaders asked for a leader from outside the ISR */
        struct list moving; /* in controller->moving while something of its reassignment is to be done */
        int32_t *want;      /* target that is not in the topic's znode yet; NULL: none */
        int32_t n_want;
        int32_t leader, leader_epoch, controller_epoch, version;
        struct ctx_broker *counted; /* whose counts include this partition */
        int32_t *isr;
        int32_t n_isr;
        struct alter_item *alters; /* proposals that wait for their turn */
        struct writer_plan *doubt; /* what was written when the reply was lost */
        uint32_t bounces;          /* how often a replica's broker restarted or died */
        uint32_t refs;             /* queues and requests in flight that hold its index */
        uint16_t n_slots;
        int32_t *replicas; /* ids in assignment order (as on the wire); stands behind the slots */
        struct ctx_slot *slots;
};

struct ctx {
        struct map *brokers;   /* int -> ctx_broker, alive or not */
        struct map *topics;    /* name -> ctx_topic */
        struct map *topic_ids; /* 16 bytes -> ctx_topic */
        struct map *folded;    /* topic_name_fold() -> the first ctx_topic of those that collide */
        struct ctx_partition **partitions; /* by index; NULL: free */
        uint32_t *free_indexes;
        size_t n_partitions, capacity, n_free, n_indexes; /* n_indexes: highest ever used + 1 */
        size_t n_alive;
        struct list deleting;
        /* Called when room for more partitions is needed: every queue of indexes is to reserve @n. */
        int (*on_grow)(size_t n, void *userdata);
        void *userdata;
};

int ctx_init(struct ctx *c) must_check;
void ctx_done(struct ctx *c); /* frees everything; the struct may be initialised again */

/* --- brokers --- */
struct ctx_broker *ctx_broker(const struct ctx *c, int32_t id); /* NULL: never heard of */
struct ctx_broker *ctx_broker_make(struct ctx *c, int32_t id)
        must_check; /* found or created; NULL: no memory */
/* Takes over @info. The broker is alive from now on. */
void ctx_broker_set_alive(struct ctx *c, struct ctx_broker *b, int64_t epoch, struct znode_broker *info);
void ctx_broker_set_dead(struct ctx *c, struct ctx_broker *b);
/* Ascending ids of live brokers; @with_draining false leaves those out. Caller frees. NULL: no memory. */
int32_t *ctx_alive_ids(const struct ctx *c, bool with_draining, int32_t *ret_n) must_check;

/* --- topics and partitions --- */
/* A partition's assignment as it is to be: ctx_partition_assign(). */
struct ctx_assigned {
        int32_t id;
        bool adding, removing;
};
/* Replace the replicas of @p; what stays keeps its state. -ENOMEM, -EINVAL: nothing has changed. */
int ctx_partition_assign(struct ctx *c, struct ctx_partition *p, const struct ctx_assigned *to, size_t n)
        must_check;
/* One more partition of a topic that is known. -EEXIST; else as ctx_topic_add(). */
int ctx_topic_grow(struct ctx *c, struct ctx_topic *t, const struct znode_assignment *a,
                   struct ctx_partition **ret) must_check;
struct ctx_topic *ctx_topic(const struct ctx *c, const char *name);
struct ctx_topic *ctx_topic_n(const struct ctx *c, const char *name, size_t len);
/* One that is called @name, or so that the names collide. */
struct ctx_topic *ctx_topic_colliding(const struct ctx *c, const char *name);
struct ctx_topic *ctx_topic_by_id(const struct ctx *c, const struct uuid *id);
/* Add it with all its partitions (state NEW, no state znode). -EEXIST, -ENOMEM (nothing is added). */
int ctx_topic_add(struct ctx *c, const char *name, const struct znode_topic *t, struct ctx_topic **ret)
        must_check;
/* Out of the maps and indexes; memory goes when the last reference does. */
void ctx_topic_forget(struct ctx *c, struct ctx_topic *t);
struct ctx_partition *ctx_partition(const struct ctx *c, uint32_t index); /* NULL: none */
struct ctx_partition *ctx_topic_partition(const struct ctx_topic *t, int32_t number);
void ctx_partition_ref(struct ctx_partition *p);
void ctx_partition_unref(struct ctx *c, struct ctx_partition *p);

/* The one place where leadership and ISR change. Takes over *isr (leaves NULL) and keeps all counts right. */
void ctx_partition_set_state(struct ctx *c, struct ctx_partition *p, int32_t leader, int32_t leader_epoch,
                             int32_t controller_epoch, int32_t version, int32_t **isr, int32_t n_isr);
struct ctx_slot *ctx_slot(struct ctx_partition *p, int32_t broker_id); /* NULL: no replica there */
bool ctx_in_isr(const struct ctx_partition *p, int32_t broker_id);
/* Has a leader, and that broker lives. */
bool ctx_partition_online(const struct ctx *c, const struct ctx_partition *p);

/* Fill an election's input; @replicas has room for ZNODE_MAX_REPLICAS entries and must outlive @ret. */
void ctx_election_input(const struct ctx *c, const struct ctx_partition *p, bool unclean,
                        struct election_replica *replicas, struct election_input *ret);
