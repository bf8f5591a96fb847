/* Inside the replica manager: shared by replica_manager.c (life, map, timers), replica_control.c,
 * replica_produce.c, replica_fetch.c, replica_offsets.c, replica_isr.c and fetcher.c. */
#pragma once

#include "base/buf.h"
#include "base/map.h"
#include "replica/fetcher.h"
#include "replica/partition.h"
#include "replica/purgatory.h"
#include "replica/stale.h"
#include "replica/throttle.h"
#include "wire/error.h"
#include "wire/types.h"

struct replica_endpoint {
        char host[METADATA_HOST_SIZE];
        uint16_t port;
};

struct topic_config {
        int32_t min_isr; /* <= 0: default */
        struct log_config log;
        const char *leader_throttled, *follower_throttled; /* in text; NULL: none */
        char text[];
};

struct replica_manager {
        struct replica_options options;
        struct replica_ops ops;
        struct log_manager *logs;
        struct metadata_cache *metadata;
        struct partition_env env;

        struct loop *replication, *housekeeping;
        bool threads_started, shut_down; /* the owner's thread */
        struct loop_timer *isr_tick, *isr_retry, *hw_checkpoint, *retention, *recovery_points;
        struct purgatory *produce, *fetch;
        struct fetchers *fetchers;
        struct throttle throttles[N_THROTTLE_SIDES];

        _Atomic bool shutting_down; /* follow nobody */
        _Atomic bool closed;        /* serve nobody */
        _Atomic int64_t broker_epoch;
        int32_t controller_epoch; /* control thread: the highest seen */
        struct buf said;          /* control thread: lines of the state-change log, not yet handed over */
        int64_t said_ms;          /* when its first line came */

        pthread_rwlock_t map_lock; /* the four maps */
        struct map *partitions;    /* topic name, 4 bytes of index -> struct partition (a reference) */
        struct map *by_id;         /* topic id, 4 bytes of index -> the same, borrowed */
        struct map *endpoints; /* broker id -> struct replica_endpoint, from LeaderAndIsr's live leaders */
        struct map *topic_configs; /* name -> struct topic_config */

        pthread_mutex_t isr_lock; /* the ISR queues: partitions (a reference each) with a proposal to send */
        struct list isr_ready, isr_delayed;
        bool isr_task_posted;
        struct loop_task isr_task;
};

/* --- replica_map.c --- */
struct partition *replica_find(struct replica_manager *m, struct wire_str topic, int32_t index);
/* The same under the map lock, which the caller holds for many look-ups; @prefix: name, or id if @by_id. */
struct partition *replica_find_locked(struct replica_manager *m, const void *prefix, size_t len,
                                      int32_t index, bool by_id);
/* The code for a partition that is not here: is it somewhere else? */
int16_t replica_missing_error(struct replica_manager *m, struct wire_str topic, int32_t index);
/* --- replica_manager.c --- */
/* Do what a change of @p asks for. No lock held. */
void replica_perform(struct replica_manager *m, struct partition *p, const struct partition_effects *e);
/* Complete whatever waits for @p and can be decided now: after a change of role or epoch. */
void replica_check_waiting(struct partition *p);
/* --- replica_map.c, too ---
 * References to all partitions; release with replica_snapshot_free(). */
struct replica_snapshot {
        struct partition **items;
        size_t n;
};
int replica_snapshot(struct replica_manager *m, struct replica_snapshot *ret) must_check;
void replica_snapshot_free(struct replica_snapshot *s);
/* A partition of an open log, put into the map; a reference in *ret. */
int replica_add(struct replica_manager *m, const char *topic, int32_t index, struct partition_log *log,
                struct partition **ret) must_check;
/* Open the log of a partition new to this broker and put it into the map; a reference in *ret. Control
 * thread. */
int replica_create(struct replica_manager *m, const char *topic, int32_t index, struct partition **ret)
        must_check;
void replica_set_topic_id(struct replica_manager *m, struct partition *p, const struct uuid *id);
/* Out of the maps; the log is still there. Control thread. */
void replica_remove(struct replica_manager *m, struct partition *p);
void replica_set_endpoint(struct replica_manager *m, int32_t id, struct wire_str host, int32_t port);
bool replica_endpoint_of(struct replica_manager *m, int32_t id, struct replica_endpoint *ret);

/* --- replica_isr.c --- */
void replica_isr_queue(struct replica_manager *m, struct partition *p, bool delayed);
void replica_isr_on_task(void *userdata); /* replication thread */
int replica_isr_on_retry(struct loop *l, void *userdata);
void replica_isr_drop(struct replica_manager *m); /* forget what is queued */
void replica_isr_register_metrics(void);

/* --- answers about leaders (KIP-951), replica_hints.c --- */
#define REPLICA_HINTS_MAX 16
struct replica_hints {           /* endpoints of the leaders that one response names */
        bool leaders, endpoints; /* what the response's version can carry; without it nothing is filled in */
        struct metadata_broker brokers[REPLICA_HINTS_MAX];
        int32_t n;
};
/* Who leads instead of us, by the newer of LeaderAndIsr and UpdateMetadata; -1, -1: nobody known. @p may be
 * NULL. */
void replica_hint(struct replica_manager *m, struct wire_str topic, int32_t index, struct partition *p,
                  int16_t error, struct replica_hints *hints, int32_t *ret_leader_id,
                  int32_t *ret_leader_epoch);
/* Is @error one that a client gets over by asking another leader? */
static inline bool replica_error_has_hint(int16_t error)
{
        return error == KAFKA_NOT_LEADER_OR_FOLLOWER || error == KAFKA_FENCED_LEADER_EPOCH;
}

/* --- replica_produce.c --- */
struct replica_response *replica_response_new(size_t records_ceiling);
int replica_copy_str(struct arena *a, struct wire_str s, struct wire_str *ret) must_check;
