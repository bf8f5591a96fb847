/* A cluster of fake brokers with real controllers over one real ZooKeeper; each test in a chroot of its own.
 */
#pragma once

#include "../zk/zk_fixture.h"

#include "controller/controller.h"
#include "fake_broker.h"
#include "zk/znode.h"

#define MAX_NODES 5

struct node {
        struct cluster *cluster;
        int32_t id;
        struct client *client; /* its session */
        struct fake_broker *broker;
        struct controller *controller; /* NULL: a broker that stands for no election */
        int64_t epoch;
        struct proxy *proxy; /* between it and ZooKeeper; NULL: direct */
};

struct cluster {
        char chroot[32];
        struct node nodes[MAX_NODES + 1]; /* by id, 1 … */
        struct client *admin;             /* for looking at and changing znodes */
};

/* stop_replica_timeout_ms of controllers started from now on; cluster_new() sets a minute. */
extern int64_t fixture_stop_timeout_ms;
/* auto.leader.rebalance.enable with this interval, in controllers started from now on; 0, and after
 * cluster_new(): off. */
extern int64_t fixture_rebalance_ms;
/* drain_take_up_ms; 0, and after cluster_new(): the default. */
extern int64_t fixture_take_up_ms;
/* drain.slot.lease.ms of controllers started from now on; cluster_new() sets a minute. */
extern int64_t fixture_slot_lease_ms;
/* Are drains asked for without force, so that D4 may hold them up? After cluster_new(): not. */
extern bool fixture_gate;
struct cluster *cluster_new(void);
void cluster_free(struct cluster *c);
enum node_kind { NODE_BROKER, NODE_CONTROLLER, NODE_PROXIED };
void node_start(struct cluster *c, int32_t id, enum node_kind kind); /* registered when this returns */
void node_stop(struct cluster *c, int32_t id);                       /* all of it, its session included */
void node_register(struct node *n);                                  /* again, after an expired session */
void cluster_start(struct cluster *c, int n);         /* nodes 1 … n, controllers all; 1 is active */
struct controller *cluster_active(struct cluster *c); /* waits for it */
int32_t cluster_active_id(struct cluster *c);
void wait_active(struct cluster *c, int32_t id);

/* Manual assignment: n_partitions rows of rf ids; ids NULL: placed by the controller. Returns the error code.
 */
int16_t make_topic(struct cluster *c, const char *name, int32_t n_partitions, int16_t rf, const int32_t *ids);
int16_t drop_topic(struct cluster *c, const char *name);

/* Copied out of the callback. */
struct drain_seen {
        int16_t error;
        int32_t gate; /* partitions that D4 waits for; -1: not told */
        bool has_status;
        struct slot_holder holder;  /* broker -1: none */
        struct drain_status status; /* its lists are the copies below */
        struct drain_blocked blocked[64];
        char topics[64][64];
};
void drain_start(struct cluster *c, int32_t id, int64_t epoch, const char *drain_id, struct drain_seen *ret);
/* With a reason: whoever holds the slot loses it. */
void drain_replace(struct cluster *c, int32_t id, const char *drain_id, struct drain_seen *ret);
/* Asks until it is its turn. */
void drain_start_granted(struct cluster *c, int32_t id, const char *drain_id, struct drain_seen *ret);
void drain_cluster_stop(struct cluster *c, int32_t id, struct drain_seen *ret);
void drain_get(struct cluster *c, int32_t id, struct drain_seen *ret);
void drain_undo(struct cluster *c, int32_t id, struct drain_seen *ret);
void drain_wait(struct cluster *c, int32_t id, enum drain_state state, struct drain_seen *ret);
struct shutdown_seen {
        int16_t error;
        int32_t holder; /* of the slot, with OPERATION_NOT_ATTEMPTED; else -1 */
        size_t n;
        struct controller_partition remaining[64];
        char topics[64][64];
};
void controlled_shutdown(struct controller *c, int32_t id, int64_t epoch, struct shutdown_seen *ret);

/* AlterPartition of one partition by its leader; returns the partition's error, or the request's. */
struct proposal {
        const char *topic;
        int32_t partition, leader, leader_epoch, partition_epoch;
        int32_t isr[8];
        int n_isr;
};
int16_t propose_isr(struct cluster *c, const struct proposal *p);

/* The state znode. false: there is none. */
bool read_state(struct cluster *c, const char *topic, int32_t partition, struct znode_state *ret,
                int32_t *ret_version);
struct znode_state state_of(struct cluster *c, const char *topic,
                            int32_t partition); /* waits until there is one */
void write_state(struct cluster *c, const char *topic, int32_t partition, const struct znode_state *st);
bool isr_has(const struct znode_state *st, int32_t id);
/* Wait until the leader in ZooKeeper is @leader. */
void wait_leader(struct cluster *c, const char *topic, int32_t partition, int32_t leader);
/* Wait until the last word of @kind to @broker about the partition names @leader. */
void wait_told(struct cluster *c, int32_t broker, enum told_kind kind, const char *topic, int32_t partition,
               int32_t leader);
/* Wait until the broker has been told of @n live brokers. */
void wait_live(struct cluster *c, int32_t broker, int32_t n);
