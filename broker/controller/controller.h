/* The cluster's controller: elects partition leaders, drains brokers, creates and deletes topics.
 *
 * Every broker runs one; at most one is active at a time. It runs on one thread with one event loop of its
 * own; all cluster state lives in its memory and all decisions are pure functions over it (*_core.c).
 * Election and every write are ZooKeeper multis that carry `check /controller_epoch` (kafka-semantics §3.2,
 * KAFKA-6082), so that a controller that has been replaced without noticing cannot write; noticing it, it
 * resigns.
 *
 * Requests come from any thread and are answered exactly once through their callback, on the controller's own
 * thread, never from inside the requesting call. When the controller is not active, or resigns while a
 * request waits, the answer is NOT_CONTROLLER (KAFKA-10193). A callback must not block and must not call
 * controller_stop() or controller_free(). What a callback is given dies when it returns unless it says
 * otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "base/uuid.h"
#include "controller/stop_check_core.h"
#include "zk/zk.h"
#include "zk/znode_slot.h"

struct controller;
struct alter_partition_request;
struct alter_partition_response;
struct create_topics_request;
struct create_topics_response;
struct delete_topics_request;
struct delete_topics_response;
struct create_partitions_request;
struct create_partitions_response;
struct elect_leaders_request;
struct elect_leaders_response;
struct alter_partition_reassignments_request;
struct alter_partition_reassignments_response;
struct list_partition_reassignments_request;
struct list_partition_reassignments_response;
struct incremental_alter_configs_request;
struct incremental_alter_configs_response;

/* What has settings that change while brokers run: the numbers are Kafka's resource types. */
enum config_scope { CONFIG_SCOPE_TOPIC = 2, CONFIG_SCOPE_BROKER = 4 };

#define CONFIG_SOURCE_TOPIC 1 /* of a topic's own settings, among the sources of DescribeConfigs */

struct config_setting {
        const char *name;
        char value[64]; /* that holds where nothing is set */
        int8_t source;  /* where that comes from: Kafka's number, of DescribeConfigs */
        bool list;
};

struct controller_options {
        int32_t broker_id;
        struct zk *zk; /* borrowed; zk_free() it after controller_stop() and before controller_free() */
        const char *inter_broker_listener;   /* listener name for requests to brokers; NULL: "PLAINTEXT" */
        int32_t default_num_partitions;      /* num.partitions, for CreateTopics with -1; 0: 1 */
        int16_t default_replication_factor;  /* default.replication.factor; 0: 1 */
        int32_t default_min_insync_replicas; /* min.insync.replicas of topics that do not set it; 0: 1 */
        bool unclean_leader_election;        /* unclean.leader.election.enable; default false */
        bool delete_topic_disabled;          /* delete.topic.enable=false */
        bool auto_leader_rebalance;          /* auto.leader.rebalance.enable (D11); default false */
        bool no_leadership_return;           /* leadership.return.enable=false (D11) */
        int64_t leader_imbalance_check_ms;   /* leader.imbalance.check.interval.seconds; 0: 300000 */
        int32_t leader_imbalance_percentage; /* leader.imbalance.per.broker.percentage; 0 is zero */
        int64_t request_timeout_ms;          /* of a request to a broker, default 30000 */
        int64_t retry_backoff_ms;            /* between attempts of a request to a broker, default 100 */
        int64_t drain_take_up_ms;        /* D12: how long a drain of an earlier controller waits for somebody
                                            to ask on, default 60000 */
        int64_t stop_replica_timeout_ms; /* R11: how long a drain waits for StopReplica, default 5000 */
        int64_t shutdown_gate_ms; /* D4: how long a ControlledShutdown waits until it is safe, default 8000 */
        int64_t slot_lease_ms;    /* drain.slot.lease.ms, default 600000 */
};

struct controller_ops {
        /* One line of the state-change log, without time and newline; names partitions as "[topic,partition]"
         * (R52). Controller thread. NULL: none. */
        void (*on_state_change)(const char *line, void *userdata);
        /* The active controller as this broker knows it changed; -1: none. Controller thread. NULL: none. */
        void (*on_controller_change)(int32_t controller_id, void *userdata);
        /* Is @name=@value a valid topic configuration? 0, or -EINVAL and a sentence in @error. NULL: all are.
         */
        int (*validate_topic_config)(const char *name, const char *value, char error[256], void *userdata);
        /* The same for any scope; @value NULL: may it be taken away? NULL: everything may be set. */
        int (*check_setting)(enum config_scope scope, const char *name, const char *value, char error[256],
                             void *userdata);
        /* The @i-th setting of @scope; false: there is none. NULL: none is known. */
        bool (*setting)(enum config_scope scope, size_t i, struct config_setting *ret, void *userdata);
        void *userdata;
};

/* --- life --- */
int controller_new(const struct controller_options *o, const struct controller_ops *ops,
                   struct controller **ret) must_check; /* copies both */
int controller_start(struct controller *c) must_check;  /* starts the thread; takes part in no election yet */
/* [any thread but its own] In this order: controller_stop(), zk_free(), controller_free(): ZooKeeper's
 * completions and watches are posted to the controller's loop as long as the session lives. Resign (deleting
 * /controller, so that the next election starts at once; bounded to one second), answer everything that waits
 * with NOT_CONTROLLER, end the thread. Delete /brokers/ids/N *before*: otherwise the next controller still
 * sees this broker as alive. */
void controller_stop(struct controller *c);
struct controller *controller_free(struct controller *c); /* stops it if need be; accepts NULL */
DEFINE_FREEP(struct controller, controller_free)

/* --- fed by the composition root; [any thread] --- */
/* Session events, in order. ZK_EXPIRED: resigns; no election until controller_on_registered(). */
void controller_on_session(struct controller *c, enum zk_event e);
/* /brokers/ids/N was created in the current session; @broker_epoch: its czxid. Starts watching and electing.
 */
void controller_on_registered(struct controller *c, int64_t broker_epoch);

/* --- who is it; [any thread], lock-free or a short lock --- */
int32_t controller_active_id(const struct controller *c); /* last known controller, -1: unknown */
bool controller_is_active(const struct controller *c);    /* elected and loaded; a hint, never a fence */
int32_t controller_epoch(const struct controller *c);     /* of our own term, 0 while not active */

struct controller_location {
        int32_t id;
        char host[256]; /* inter-broker listener */
        uint16_t port;
        char admin_host[256]; /* "" when its registration names no admin listener */
        uint16_t admin_port;
};
/* Where the active controller listens: for AlterPartition and ControlledShutdown, and for the 307 of the
 * admin listener. 0, or -ENOENT while none is known. */
int controller_locate(const struct controller *c, struct controller_location *ret) must_check;

/* --- drain (D1) --- */
enum drain_state {
        DRAIN_NONE,       /* never asked, undone, or cleared by a newer registration or the broker's end */
        DRAIN_DRAINING,   /* moves are queued or under way */
        DRAIN_INCOMPLETE, /* a pass has ended and something remains; retried by itself when anything changes
                           */
        DRAIN_DRAINED,    /* leads nothing with RF > 1, follows nothing, in no ISR that has another member */
        DRAIN_WAITING, /* D3, D4: it has asked; another broker holds the slot, or stopping it is not safe yet
                        */
        DRAIN_CLUSTER_STOP, /* D8: all of the cluster stops: nothing is moved, and nobody waits */
        N_DRAIN_STATES,
};
const char *drain_state_name(enum drain_state s); /* "none" "draining" "incomplete" "drained"
                                                   * "waiting_for_slot" "cluster_stop" */

/* Why a partition is still led by, or has in its ISR, the broker that drains (D5). */
enum drain_reason {
        DRAIN_REASON_QUEUED,             /* its turn has not come, or its write is in flight */
        DRAIN_REASON_NO_OTHER_IN_SYNC,   /* ISR is the draining broker alone (R6) */
        DRAIN_REASON_ONLY_SHUTTING_DOWN, /* the other ISR members are draining as well, or dead (R15, R21) */
        DRAIN_REASON_ZK_WRITE_FAILED,    /* detail says the error */
        DRAIN_REASON_ZK_UNAVAILABLE,     /* no valid lease: nothing can be written now */
        DRAIN_REASON_REASSIGNMENT,       /* a reassignment of it is in progress */
        DRAIN_REASON_STOP_REPLICA_PENDING, /* follower: StopReplica not yet acknowledged (R11) */
        DRAIN_REASON_SINGLE_REPLICA,       /* RF = 1: cannot be moved; listed, not counted (R16) */
        N_DRAIN_REASONS,
};
const char *drain_reason_name(enum drain_reason r); /* "no_other_in_sync_replica" … */
const char *drain_reason_help(enum drain_reason r); /* a sentence for people */

struct drain_blocked {
        const char *topic;
        int32_t partition;
        enum drain_reason reason;
        bool leads;      /* false: only its ISR membership remains */
        bool never_safe; /* RF <= min.insync.replicas: stopping any replica always blocks acks=all
                            (information) */
        int32_t min_isr;
        const int32_t *isr, *replicas;
        int32_t n_isr, n_replicas;
        const char *detail; /* or NULL */
};

#define DRAIN_TEXT_SIZE  256
#define DRAIN_MAX_LISTED 1000 /* entries of `blocked` and of `single`; the counts are always whole */

struct drain_status {
        enum drain_state state;
        bool stale; /* D2: the request named an epoch older than the registration: nothing to do */
        bool zookeeper_available; /* false: the numbers are the last known and nothing moves (I16) */
        bool deadline_passed;
        int32_t broker_id;
        int64_t broker_epoch; /* of the current registration, -1: not registered */
        int32_t controller_id, controller_epoch;
        char drain_id[DRAIN_TEXT_SIZE], reason[DRAIN_TEXT_SIZE], requested_by[DRAIN_TEXT_SIZE];
        int64_t since_ms, deadline_ms, updated_ms; /* wall clock; 0: none */
        int32_t leaders_initial;                   /* with RF > 1, when the drain began */
        int32_t leaders_moved;                     /* by this drain */
        int32_t leaders_remaining;                 /* R25: with RF > 1 and still led; never under-reported */
        int32_t isr_remaining;  /* followed partitions whose ISR still holds it and another member */
        int32_t single_replica; /* RF = 1 partitions it leads (R16) */
        int32_t by_reason[N_DRAIN_REASONS];
        const struct drain_blocked *blocked; /* leaders first; at most DRAIN_MAX_LISTED */
        size_t n_blocked;
        const struct drain_blocked *single; /* RF = 1 */
        size_t n_single;
        const struct slot_holder *holder; /* of the drain slot, whoever that is; NULL: it is free */
        const struct stop_check
                *risks; /* D4: what stopping the broker means now; answers to a request only */
        bool unsafe;    /* D4: nothing has begun; `risks` says which partitions are worth waiting for */
        bool ended;     /* with `stale`: a drain with this id is over, however its broker stands */
};
/* @error: a Kafka code: NONE; NOT_CONTROLLER; BROKER_NOT_AVAILABLE (not registered: nothing to drain; said
 * only after a fresh look at ZooKeeper); INVALID_REQUEST (another drain id holds this broker: @status
 * describes it); OPERATION_NOT_ATTEMPTED (another broker holds the slot, see `holder`, or `unsafe`: ask
 * again); UNKNOWN_SERVER_ERROR (it cannot be told now, ZooKeeper being silent: ask again). @status may
 * be NULL with NOT_CONTROLLER and UNKNOWN_SERVER_ERROR only. */
typedef void (*controller_drain_fn)(int16_t error, const struct drain_status *status, void *userdata);

struct drain_request {
        int32_t broker_id;
        int64_t broker_epoch; /* -1: unknown, the check is skipped */
        const char
                *drain_id; /* NULL or "": one is made up. The same id again: idempotent; retries what remains.
                            * A different id than the running drain's: INVALID_REQUEST unless @replace. */
        const char *reason, *requested_by; /* may be NULL */
        int64_t deadline_ms; /* wall clock, 0: none; recorded and reported, the caller's policy acts on it */
        bool replace;      /* with a reason: also takes the slot from another broker, whose drain is undone */
        bool force;        /* D4: do not wait until stopping it is safe; with a reason */
        bool cluster_stop; /* D8: all of the cluster is being stopped; nobody waits from here on */
};
/* Answers at once with the state as it is now; the work goes on by itself. Strings are copied. */
void controller_drain_start(struct controller *c, const struct drain_request *r, controller_drain_fn fn,
                            void *userdata);
/* @drain_id: who drains asks, which renews its lease; NULL or "": somebody else does. */
void controller_drain_get(struct controller *c, int32_t broker_id, const char *drain_id,
                          controller_drain_fn fn, void *userdata);
/* D2: leadership is allowed again and the followers rejoin. @broker_epoch -1: any. */
void controller_drain_undo(struct controller *c, int32_t broker_id, int64_t broker_epoch,
                           controller_drain_fn fn, void *userdata);

/* ControlledShutdown (api 7): the same drain; while another broker holds the slot it waits up to @wait_ms (0:
 * 20 s, below the 30 s after which an Apache Kafka broker gives up on a request), then answers
 * OPERATION_NOT_ATTEMPTED with the holder: any error makes a Kafka broker wait and try again. Otherwise
 * answers when the first whole pass over what is led and followed has ended, with what is still led then
 * (R25). @remaining: topic and partition of each. Errors as above and STALE_BROKER_EPOCH. */
struct controller_partition {
        const char *topic;
        int32_t partition;
};
typedef void (*controller_shutdown_fn)(int16_t error, const struct controller_partition *remaining, size_t n,
                                       const struct slot_holder *holder, void *userdata);
void controller_controlled_shutdown(struct controller *c, int32_t broker_id, int64_t broker_epoch,
                                    int64_t wait_ms, controller_shutdown_fn fn, void *userdata);

/* --- topics and partitions --- */
/* @req must live until the callback. The response names every topic of the request. Creation is answered when
 * the brokers know the partitions or @req->timeout_ms is over (then REQUEST_TIMED_OUT, the topic exists). */
typedef void (*controller_create_topics_fn)(const struct create_topics_response *res, void *userdata);
void controller_create_topics(struct controller *c, const struct create_topics_request *req,
                              controller_create_topics_fn fn, void *userdata);
/* Answered when the topics are gone or @req->timeout_ms is over (REQUEST_TIMED_OUT; deletion goes on). */
typedef void (*controller_delete_topics_fn)(const struct delete_topics_response *res, void *userdata);
void controller_delete_topics(struct controller *c, const struct delete_topics_request *req,
                              controller_delete_topics_fn fn, void *userdata);
/* Answered when the brokers know the new partitions or @req->timeout_ms is over (then REQUEST_TIMED_OUT, the
 * partitions exist). */
typedef void (*controller_create_partitions_fn)(const struct create_partitions_response *res, void *userdata);
void controller_create_partitions(struct controller *c, const struct create_partitions_request *req,
                                  controller_create_partitions_fn fn, void *userdata);
/* Answered when every election has been decided and the brokers know, or @req->timeout_ms is over. */
typedef void (*controller_elect_leaders_fn)(const struct elect_leaders_response *res, void *userdata);
void controller_elect_leaders(struct controller *c, const struct elect_leaders_request *req,
                              controller_elect_leaders_fn fn, void *userdata);
/* Answered when the topics' znodes name the targets (the copying goes on), or @req->timeout_ms is over. */
typedef void (*controller_alter_reassignments_fn)(const struct alter_partition_reassignments_response *res,
                                                  void *userdata);
void controller_alter_reassignments(struct controller *c,
                                    const struct alter_partition_reassignments_request *req,
                                    controller_alter_reassignments_fn fn, void *userdata);
typedef void (*controller_list_reassignments_fn)(const struct list_partition_reassignments_response *res,
                                                 void *userdata);
void controller_list_reassignments(struct controller *c,
                                   const struct list_partition_reassignments_request *req,
                                   controller_list_reassignments_fn fn, void *userdata);
/* Change the settings of topics and brokers in ZooKeeper, each resource on its own, and tell the brokers of
 * it;
 * @replace: what is not named goes (AlterConfigs), and every operation is a set. A resource's answer is
 * NOT_CONTROLLER when it was not written because somebody else is. */
typedef void (*controller_alter_configs_fn)(const struct incremental_alter_configs_response *res,
                                            void *userdata);
void controller_alter_configs(struct controller *c, const struct incremental_alter_configs_request *req,
                              bool replace, controller_alter_configs_fn fn, void *userdata);
/* @version: of the request; older ones know fewer error codes. */
typedef void (*controller_alter_partition_fn)(const struct alter_partition_response *res, void *userdata);
void controller_alter_partition(struct controller *c, const struct alter_partition_request *req,
                                int16_t version, controller_alter_partition_fn fn, void *userdata);

/* --- the cluster as the controller sees it --- */
struct cluster_broker {
        int32_t id;
        int64_t epoch;
        const char *host, *admin_host, *rack; /* admin_host "", rack NULL when unknown */
        uint16_t port, admin_port;
        enum drain_state drain;
        int32_t leaders, replicas; /* partitions it leads and hosts */
};
struct cluster_topic {
        const char *name;
        struct uuid id;
        int32_t n_partitions, replication_factor; /* of partition 0 */
        bool deleting;
};
struct cluster_partition {
        const char *topic;
        int32_t partition, leader, leader_epoch, partition_epoch;
        const int32_t *replicas, *isr;
        int32_t n_replicas, n_isr;
        bool under_replicated; /* |ISR| < |replicas| */
        bool offline;          /* no leader, or the leader is not alive */
};
struct cluster_view { /* immutable, one allocation arena; usable on any thread */
        int32_t controller_id, controller_epoch;
        int32_t n_partitions_total, n_under_replicated, n_offline;
        const struct cluster_broker *brokers; /* ascending by id */
        size_t n_brokers;
        const struct cluster_topic *topics; /* ascending by name */
        size_t n_topics;
        const struct cluster_partition *partitions; /* by topic, partition; empty unless asked for */
        size_t n_partitions;
};
struct cluster_view *cluster_view_free(struct cluster_view *v);
DEFINE_FREEP(struct cluster_view, cluster_view_free)

enum cluster_view_scope {
        CLUSTER_SUMMARY,
        CLUSTER_PARTITIONS,
        CLUSTER_UNDER_REPLICATED,
        CLUSTER_UNAVAILABLE
};
/* @view is the callback's to free; NULL with NOT_CONTROLLER. @topic: only this topic's partitions; NULL: all.
 */
typedef void (*controller_view_fn)(int16_t error, struct cluster_view *view, void *userdata);
void controller_view(struct controller *c, enum cluster_view_scope scope, const char *topic,
                     controller_view_fn fn, void *userdata);
