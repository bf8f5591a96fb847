/* Every partition this broker hosts: leader and follower roles, produce, fetch, ISR, high watermarks,
 * purgatories and the fetchers that follow other brokers.
 *
 * Threads: replica_manager_leader_and_isr(), _stop_replica() and _update_metadata() on one control thread;
 * everything else is [any thread]. The manager runs two threads of its own: "replication" (fetchers,
 * purgatory expiry, ISR changes) and "housekeeping" (high watermark checkpoint, retention). No lock is held
 * while a callback of the caller runs.
 *
 * Who leads is decided by LeaderAndIsr alone; each reply to a client is also bound by the lease (F2). */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "log/log_manager.h"
#include "replica/metadata_cache.h"

struct replica_manager;
struct isr_batch;
struct produce_request;
struct fetch_request;
struct leader_and_isr_request;
struct leader_and_isr_response;
struct stop_replica_request;
struct stop_replica_response;
struct update_metadata_response;
struct alter_partition_request;
struct alter_partition_response;
struct list_offsets_request;
struct list_offsets_response;
struct offset_for_leader_epoch_request;
struct offset_for_leader_epoch_response;

struct replica_options { /* names are Kafka's */
        int32_t broker_id;
        int32_t min_insync_replicas;
        int64_t replica_lag_time_max_ms;
        int32_t replica_fetch_wait_max_ms, replica_fetch_min_bytes;
        int32_t replica_fetch_max_bytes;          /* a partition */
        int32_t replica_fetch_response_max_bytes; /* a response */
        int64_t replica_fetch_backoff_ms;
        int64_t replica_socket_timeout_ms;
        int32_t fetch_max_bytes; /* upper bound of any answer to a Fetch */
        int64_t replica_high_watermark_checkpoint_interval_ms;
        int64_t log_retention_check_interval_ms;
        int64_t log_flush_offset_checkpoint_interval_ms;
        int64_t alter_partition_retry_ms;
        struct log_config log_defaults; /* for topics without a configuration of their own */
};
void replica_options_default(struct replica_options *ret);

/* Filled by the composition root. Called from the manager's threads and from network threads, with no lock
 * held. */
struct replica_ops {
        void *userdata;
        /* Send @req (of @version, valid during the call) to the controller and later, exactly once and on any
         * thread, call replica_manager_on_alter_partition() with @batch. A negative return: not sent, @batch
         * stays the manager's, which tries again after alter_partition_retry_ms. NULL: ISR changes are never
         * proposed. */
        int (*alter_partition)(void *userdata, int16_t version, const struct alter_partition_request *req,
                               struct isr_batch *batch);
        /* F2: may this broker still act as a leader? Cheap; asked at each append, HW advance and read. NULL:
         * always. */
        bool (*lease_valid)(void *userdata);
        /* A replica here went offline after an I/O error, so the controller must be told (KIP-112). With a
         * partition's lock held: only to post. NULL allowed. */
        void (*replica_offline)(void *userdata);
        /* Where broker @id listens for other brokers, if LeaderAndIsr's live leaders didn't say. NULL
         * allowed. */
        bool (*broker_endpoint)(void *userdata, int32_t id, char host[METADATA_HOST_SIZE],
                                uint16_t *ret_port);
        /* Lines of the state-change log without their time stamps, separated by newlines; they name
         * partitions as [topic,partition] (R52). NULL allowed. */
        void (*state_change)(void *userdata, const char *lines);
};

/* @logs and @metadata are borrowed and must outlive the manager. Starts its threads. @ops is copied. */
int replica_manager_new(const struct replica_options *o, const struct replica_ops *ops,
                        struct log_manager *logs, struct metadata_cache *metadata,
                        struct replica_manager **ret) must_check;
/* From here on becoming a follower starts no fetcher, so that a drained broker stays out of the ISR (R9).
 * [any thread] */
void replica_manager_begin_shutdown(struct replica_manager *m);
/* Undoes it (D2): replicas that follow get their fetchers back. Control thread. */
void replica_manager_cancel_shutdown(struct replica_manager *m);
/* Stop fetchers, complete what waits in the purgatories, write the high watermark checkpoint, end the
 * threads. New produce and fetch calls are answered NOT_LEADER_OR_FOLLOWER. Idempotent; not from a thread of
 * the manager. */
void replica_manager_shutdown(struct replica_manager *m);
struct replica_manager *
replica_manager_free(struct replica_manager *m); /* shuts down when that wasn't done */
DEFINE_FREEP(struct replica_manager, replica_manager_free)

/* The epoch this broker is registered under (czxid); requests for an older one are STALE_BROKER_EPOCH. [any
 * thread] */
void replica_manager_set_broker_epoch(struct replica_manager *m, int64_t broker_epoch);
/* Stop leading everything until LeaderAndIsr says so again: after a lost session (zk-fencing §2.5 rule 4).
 * What waits is answered NOT_LEADER_OR_FOLLOWER. Returns the number of partitions given up. [any thread] */
int32_t replica_manager_step_down(struct replica_manager *m, const char *reason);
/* Configuration of one topic, known or not yet known; copied. */
struct replica_topic_config {
        int32_t min_isr;              /* <= 0: the default */
        const struct log_config *log; /* NULL: the defaults */
        /* KIP-73: lists as in base/throttled_list.h; NULL: none. */
        const char *leader_throttled, *follower_throttled;
};
int replica_manager_set_topic_config(struct replica_manager *m, const char *topic,
                                     const struct replica_topic_config *c) must_check;
/* KIP-73: what may go to, and be fetched as, replicas that are not in sync of the partitions that their
 * topics' settings name, in bytes a second; INT64_MAX: any number. [any thread] */
void replica_manager_set_throttles(struct replica_manager *m, int64_t leader_rate, int64_t follower_rate);

/* --- control requests (control thread). Idempotent; errors are per partition inside @ret, whose memory is
 * @a. -ENOMEM: nothing useful in @ret, close the connection so that the controller sends it again. */
int replica_manager_leader_and_isr(struct replica_manager *m, const struct leader_and_isr_request *req,
                                   int16_t version, struct arena *a, struct leader_and_isr_response *ret)
        must_check;
int replica_manager_stop_replica(struct replica_manager *m, const struct stop_replica_request *req,
                                 int16_t version, struct arena *a, struct stop_replica_response *ret)
        must_check;
/* Epoch checks, then metadata_cache_apply(). */
int replica_manager_update_metadata(struct replica_manager *m, const struct update_metadata_request *req,
                                    int16_t version, struct update_metadata_response *ret) must_check;

/* --- data requests --- */

/* The answer to a Produce or Fetch; owned by whoever gets it. */
struct replica_response {
        const void *body; /* struct produce_response or struct fetch_response; points into this object */
        bool failed;      /* some partition has an error: with acks=0 the connection is to be closed (R46) */
        struct arena arena;
        struct buf records;
};
struct replica_response *replica_response_free(struct replica_response *r);
DEFINE_FREEP(struct replica_response, replica_response_free)

/* @r NULL: out of memory, close the connection. Runs exactly once a call, on any thread, maybe before the
 * call returned; takes over @r. It must not block. */
typedef void (*replica_done_fn)(struct replica_response *r, void *userdata);

struct replica_call {
        int16_t version;
        uint64_t trace_id; /* R72: appears in what is logged about this request */
        replica_done_fn on_done;
        /* Both until on_done, on any thread, short. Has who asked gone? Then nothing is read for it and what
         * waits is given up. NULL: never. */
        bool (*is_abandoned)(void *userdata);
        /* How large an answer there is memory for. NULL: any. */
        size_t (*response_room)(void *userdata);
        void *userdata;
};

/* @req need not outlive the call, but the record bytes it points to are modified (offsets are assigned in
 * place). */
void replica_manager_produce(struct replica_manager *m, const struct produce_request *req,
                             const struct replica_call *call);
/* Consumers (replica id < 0) read up to the high watermark, followers up to the log end. Answers session id
 * 0: no incremental sessions; a request for a session (session_epoch > 0) gets FETCH_SESSION_ID_NOT_FOUND. */
void replica_manager_fetch(struct replica_manager *m, const struct fetch_request *req,
                           const struct replica_call *call);

/* Both answer at once. -ENOMEM. */
int replica_manager_list_offsets(struct replica_manager *m, const struct list_offsets_request *req,
                                 int16_t version, struct arena *a, struct list_offsets_response *ret)
        must_check;
int replica_manager_offset_for_leader_epoch(struct replica_manager *m,
                                            const struct offset_for_leader_epoch_request *req,
                                            int16_t version, struct arena *a,
                                            struct offset_for_leader_epoch_response *ret) must_check;

/* Completion of ops.alter_partition: @r 0 and the decoded @resp, or -errno and NULL (tried again). [any
 * thread] */
void replica_manager_on_alter_partition(struct replica_manager *m, struct isr_batch *batch, int r,
                                        const struct alter_partition_response *resp);

/* --- what operators ask --- */
enum replica_role { REPLICA_NONE, REPLICA_LEADER, REPLICA_FOLLOWER, REPLICA_OFFLINE, N_REPLICA_ROLES };
const char *replica_role_name(enum replica_role role);

struct replica_info { /* arrays and strings valid during the callback */
        const char *topic;
        struct uuid topic_id;
        int32_t partition;
        enum replica_role role;
        int32_t leader_id, leader_epoch, partition_epoch;
        int64_t start_offset, high_watermark, end_offset, size_bytes;
        const int32_t *replicas, *isr; /* the ISR is known to the leader only */
        int32_t n_replicas, n_isr;
        int32_t min_isr;
        bool isr_change_pending;
};
void replica_manager_each(struct replica_manager *m, void (*fn)(const struct replica_info *i, void *userdata),
                          void *userdata);

struct replica_counts {
        int32_t partitions, led, led_replicated /* RF > 1: what a drain has to move (R16) */, followed,
                offline;
        int32_t under_replicated, under_min_isr, at_min_isr; /* of those led */
        int32_t lagging; /* followed, not yet caught up with the leader since the last start of the fetcher */
        int32_t produce_waiting, fetch_waiting; /* in the purgatories (R75) */
};
void replica_manager_get_counts(struct replica_manager *m, struct replica_counts *ret);
