/* What this broker knows of the cluster from UpdateMetadata: live brokers, topics, partition states,
 * controller. Advisory: it answers clients and finds endpoints, and never decides about leadership (that is
 * LeaderAndIsr's).
 *
 * One writer at a time calls metadata_cache_apply(); everything else is [any thread]. A reader sees the state
 * before or after a whole UpdateMetadata, never half of one. Everything returned is a copy. */
#pragma once

#include "base/arena.h"
#include "base/uuid.h"
#include "wire/types.h"

struct metadata_cache;
struct update_metadata_request;
struct metadata_request;
struct metadata_response;

#define METADATA_HOST_SIZE 256
#define METADATA_RACK_SIZE 128
#define TOPIC_NAME_SIZE    250 /* 249 bytes and NUL */

struct metadata_broker {
        int32_t id;
        char host[METADATA_HOST_SIZE];
        int32_t port;
        char rack[METADATA_RACK_SIZE]; /* "": none */
};

struct metadata_leader {
        int32_t leader_id; /* -1: no leader */
        int32_t leader_epoch;
        bool alive; /* the leader is among the live brokers; @broker is filled */
        struct metadata_broker broker;
};

/* Arrays are valid during the callback. */
struct metadata_partition {
        const char *topic;
        struct uuid topic_id;
        int32_t partition, leader_id, leader_epoch, controller_epoch, partition_epoch;
        const int32_t *replicas, *isr, *offline;
        int32_t n_replicas, n_isr, n_offline;
};

struct metadata_counts {
        int32_t brokers, topics, partitions, leaderless, under_replicated;
};

/* @listener: of several endpoints of a broker the one with this listener name is shown (NULL or not found:
 * the first). */
int metadata_cache_new(const char *cluster_id, const char *listener, struct metadata_cache **ret) must_check;
struct metadata_cache *metadata_cache_free(struct metadata_cache *m);
DEFINE_FREEP(struct metadata_cache, metadata_cache_free)

/* Replace the live brokers and merge the partition states; leader -2 removes a partition (and its topic with
 * the last one). The epochs of the request have been checked by the caller (replica_manager_update_metadata()
 * does both). -ENOMEM: some of the partitions may be missing, the request must be answered with an error. */
int metadata_cache_apply(struct metadata_cache *m, const struct update_metadata_request *req, int16_t version)
        must_check;

/* LeaderAndIsr has named another leader; UpdateMetadata follows, but a client that has just been sent away
 * asks before (D9). Ignored for a partition that is not known, and unless @leader_epoch is later than what
 * is. The same writer as metadata_cache_apply()'s. */
void metadata_cache_lead(struct metadata_cache *m, struct wire_str topic, int32_t partition, int32_t leader,
                         int32_t leader_epoch);

/* Fill the whole answer to a Metadata request: unknown names get UNKNOWN_TOPIC_OR_PARTITION (illegal ones
 * INVALID_TOPIC_EXCEPTION), unknown ids UNKNOWN_TOPIC_ID, partitions without a live leader
 * LEADER_NOT_AVAILABLE. Creates no topic. Strings are copied into @a. -ENOMEM. */
int metadata_cache_fill_response(struct metadata_cache *m, const struct metadata_request *req,
                                 int16_t version, struct arena *a, struct metadata_response *ret) must_check;

/* false: unknown partition. */
bool metadata_cache_leader(struct metadata_cache *m, struct wire_str topic, int32_t partition,
                           struct metadata_leader *ret);
bool metadata_cache_broker(struct metadata_cache *m, int32_t id, struct metadata_broker *ret);
/* At most @max brokers, ascending by id; returns how many there are. */
int32_t metadata_cache_brokers(struct metadata_cache *m, struct metadata_broker *ret, int32_t max);
int32_t metadata_cache_controller_id(struct metadata_cache *m); /* -1: unknown */
/* The controller's listener; false when it is unknown or not alive. */
bool metadata_cache_controller(struct metadata_cache *m, struct metadata_broker *ret);

bool metadata_cache_topic_id(struct metadata_cache *m, struct wire_str topic, struct uuid *ret);
bool metadata_cache_topic_name(struct metadata_cache *m, const struct uuid *id, char ret[TOPIC_NAME_SIZE]);
int32_t metadata_cache_partition_count(struct metadata_cache *m,
                                       struct wire_str topic); /* -1: unknown topic */
void metadata_cache_set_cluster_id(struct metadata_cache *m, const char *cluster_id);

void metadata_cache_get_counts(struct metadata_cache *m, struct metadata_counts *ret);
/* Every partition, topics in no order, partitions ascending; @fn runs under the read lock and must not call
 * back into the cache. */
void metadata_cache_each(struct metadata_cache *m,
                         void (*fn)(const struct metadata_partition *p, void *userdata), void *userdata);

/* Kafka's rule for names: 1–249 of [a-zA-Z0-9._-], not "." or "..". */
bool topic_name_valid(struct wire_str name);
