/* The formats and paths of Kafka's znodes (kafka-semantics §3.1): pure encoders and decoders.
 *
 * Encoders write what Kafka 3.9 writes, byte for byte where order matters to nobody but us. Decoders are
 * tolerant of what other versions and tools write: unknown keys are ignored, key order is free, numbers may
 * be quoted, optional keys may be missing. Anything else is -EBADMSG and leaves *ret untouched; no input
 * crashes them or makes them allocate more than a small multiple of its length. -ENOMEM as usual. What a
 * decoder hands out is released with its _done(), which accepts a zeroed struct. */
#pragma once

#include "base/buf.h"
#include "base/util.h"
#include "base/uuid.h"

/* --- paths, relative to the chroot --- */
#define ZNODE_CONTROLLER           "/controller"
#define ZNODE_CONTROLLER_EPOCH     "/controller_epoch"
#define ZNODE_BROKER_IDS           "/brokers/ids"
#define ZNODE_TOPICS               "/brokers/topics"
#define ZNODE_BROKER_SEQID         "/brokers/seqid"
#define ZNODE_REASSIGN             "/admin/reassign_partitions"
#define ZNODE_PREFERRED_ELECTION   "/admin/preferred_replica_election"
#define ZNODE_DELETE_TOPICS        "/admin/delete_topics"
#define ZNODE_ISR_CHANGES          "/isr_change_notification"
#define ZNODE_ISR_CHANGE_PREFIX    "/isr_change_notification/isr_change_"
#define ZNODE_LOG_DIR_EVENTS       "/log_dir_event_notification"
#define ZNODE_LOG_DIR_PREFIX       "/log_dir_event_notification/log_dir_event_"
#define ZNODE_CONFIG_TOPICS        "/config/topics"
#define ZNODE_CONFIG_BROKERS       "/config/brokers"
#define ZNODE_CONFIG_CHANGES       "/config/changes"
#define ZNODE_CONFIG_CHANGE_PREFIX "/config/changes/config_change_"
#define ZNODE_CLUSTER_ID           "/cluster/id"
#define ZNODE_PRODUCER_IDS         "/latest_producer_id_block"

#define ZNODE_PATH_SIZE 384 /* room for the longest path: a topic name has at most 249 bytes */

/* A topic longer than that yields a truncated path, never an overflow; callers validate names first. */
void znode_path_broker(int32_t broker_id, char out[ZNODE_PATH_SIZE]);     /* /brokers/ids/N */
void znode_path_topic(const char *topic, char out[ZNODE_PATH_SIZE]);      /* /brokers/topics/T */
void znode_path_partitions(const char *topic, char out[ZNODE_PATH_SIZE]); /* …/T/partitions */
void znode_path_partition(const char *topic, int32_t partition,
                          char out[ZNODE_PATH_SIZE]);                                   /* …/partitions/P */
void znode_path_state(const char *topic, int32_t partition, char out[ZNODE_PATH_SIZE]); /* …/P/state */
void znode_path_delete_topic(const char *topic, char out[ZNODE_PATH_SIZE]); /* /admin/delete_topics/T */
void znode_path_topic_config(const char *topic, char out[ZNODE_PATH_SIZE]); /* /config/topics/T */
#define ZNODE_DEFAULT_ENTITY "<default>"
/* /config/brokers/N; @name is N in decimal or ZNODE_DEFAULT_ENTITY. */
void znode_path_broker_config(const char *name, char out[ZNODE_PATH_SIZE]);
/* "/brokers/topics/T/partitions/P/state" -> T (into @topic) and P. -EINVAL. */
int znode_path_parse_state(const char *path, char topic[250], int32_t *ret_partition) must_check;

/* --- /brokers/ids/N (written as version 5; read: 1–5) --- */
struct znode_endpoint {
        char *listener; /* "PLAINTEXT", "INTERNAL" … */
        char *protocol; /* security protocol: PLAINTEXT | SSL | SASL_PLAINTEXT | SASL_SSL */
        char *host;     /* IPv6 without brackets */
        uint16_t port;
};
struct znode_broker {
        struct znode_endpoint *endpoints; /* at least one after decode */
        size_t n_endpoints;
        char *rack;           /* NULL: none */
        char *admin_endpoint; /* "http://host:port"; our own key, NULL on a Kafka broker */
        int64_t timestamp_ms;
};
int znode_broker_encode(const struct znode_broker *b, struct buf *out) must_check;
int znode_broker_decode(const char *s, size_t len, struct znode_broker *ret) must_check;
void znode_broker_done(struct znode_broker *b);
/* The endpoint of that listener name, else the first; NULL when there is none at all. */
const struct znode_endpoint *znode_broker_endpoint(const struct znode_broker *b, const char *listener);

/* --- /controller (written as version 2; read: 1, 2 and the bare integer of 0.8 betas) --- */
#define ZNODE_SMALL_SIZE 128
struct znode_controller {
        int32_t broker_id;
        int64_t timestamp_ms;
};
size_t znode_controller_encode(const struct znode_controller *c, char out[ZNODE_SMALL_SIZE]); /* length */
int znode_controller_decode(const char *s, size_t len, struct znode_controller *ret) must_check;

/* --- /controller_epoch: a plain decimal --- */
size_t znode_epoch_encode(int32_t epoch, char out[ZNODE_SMALL_SIZE]);
int znode_epoch_decode(const char *s, size_t len, int32_t *ret) must_check;

/* --- /brokers/topics/T (written as version 3; read: 1–3) --- */
struct znode_assignment {
        int32_t partition;
        int32_t *replicas, *adding, *removing; /* adding and removing may be NULL */
        size_t n_replicas, n_adding, n_removing;
};
struct znode_topic {
        struct uuid id;                      /* zero: none (versions 1, 2) */
        struct znode_assignment *partitions; /* ascending by number, no duplicates */
        size_t n_partitions;
};
int znode_topic_encode(const struct znode_topic *t, struct buf *out) must_check;
int znode_topic_decode(const char *s, size_t len, struct znode_topic *ret) must_check;
void znode_topic_done(struct znode_topic *t);

/* --- …/partitions/P/state --- */
#define ZNODE_MAX_REPLICAS 128
/* Epochs count up from here; one that somebody wrote and that has no room for it is no epoch. */
#define ZNODE_MAX_EPOCH  (INT32_MAX / 2)
#define ZNODE_STATE_SIZE (192 + ZNODE_MAX_REPLICAS * 12)
struct znode_state {
        int32_t controller_epoch, leader /* -1: none */, leader_epoch;
        bool recovering; /* leader_recovery_state 1 */
        size_t n_isr;
        int32_t isr[ZNODE_MAX_REPLICAS];
};
/* Hand-written, about 100 ns: a drain writes thousands. NUL-terminates; returns the length. */
size_t znode_state_encode(const struct znode_state *st, char out[ZNODE_STATE_SIZE]);
int znode_state_decode(const char *s, size_t len, struct znode_state *ret) must_check;
/* Same leader, epochs, recovery state and the same ISR in the same order: "is this our own write whose reply
 * was lost?" (KAFKA-1382). */
bool znode_state_equal(const struct znode_state *a, const struct znode_state *b);

/* --- lists of partitions: /admin/reassign_partitions (with replicas), /admin/preferred_replica_election and
 * isr_change_ notifications (without) --- */
struct znode_partition {
        char *topic;
        int32_t partition;
        int32_t *replicas; /* NULL without */
        size_t n_replicas;
};
struct znode_partition_list {
        struct znode_partition *items;
        size_t n;
};
int znode_partitions_encode(const struct znode_partition_list *l, struct buf *out) must_check;
/* Tolerant of people's files too (R55): quoted partition numbers, a comma after the last element. */
int znode_partitions_decode(const char *s, size_t len, struct znode_partition_list *ret) must_check;
void znode_partitions_done(struct znode_partition_list *l);

/* --- /config/topics/T, /config/brokers/N --- */
#define ZNODE_CONFIG_MAX_VALUE 65536 /* bytes; a longer one is not read */
struct znode_config_entry {
        char *key, *value;
};
struct znode_config {
        struct znode_config_entry *entries;
        size_t n;
};
/* May @len bytes at @s stand in a znode's JSON and be read again? Valid UTF-8 without a NUL. */
bool znode_text_valid(const char *s, size_t len) must_check;
int znode_config_encode(const struct znode_config *c, struct buf *out) must_check;
int znode_config_decode(const char *s, size_t len, struct znode_config *ret) must_check;
void znode_config_done(struct znode_config *c);
const char *znode_config_get(const struct znode_config *c, const char *key); /* NULL: not set */

/* config_change_ notification, version 2: @entity "topics/T", "brokers/N" or "brokers/<default>". Versions 1
 * and 2 are read; *ret is released with free(). */
int znode_config_change_encode(const char *entity, struct buf *out) must_check;
int znode_config_change_decode(const char *s, size_t len, char **ret) must_check;

/* --- /cluster/id --- */
size_t znode_cluster_id_encode(const struct uuid *id, char out[ZNODE_SMALL_SIZE]);
/* Kafka's ids are uuids in text, but an id made by hand may be anything: up to 127 bytes of text. */
int znode_cluster_id_decode(const char *s, size_t len, char ret[ZNODE_SMALL_SIZE]) must_check;

/* --- /latest_producer_id_block --- */
struct znode_producer_ids {
        int32_t broker_id;
        int64_t first, last; /* both inclusive */
};
size_t znode_producer_ids_encode(const struct znode_producer_ids *p, char out[ZNODE_STATE_SIZE]);
int znode_producer_ids_decode(const char *s, size_t len, struct znode_producer_ids *ret) must_check;

/* --- log_dir_event_ notification: log directory failure of a broker --- */
size_t znode_log_dir_event_encode(int32_t broker_id, char out[ZNODE_SMALL_SIZE]);
int znode_log_dir_event_decode(const char *s, size_t len, int32_t *ret_broker_id) must_check;
