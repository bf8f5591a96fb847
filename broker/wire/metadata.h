/* Metadata (key 3): brokers, topics, partitions and their leaders.
 * Topics of a request: null means all, empty means none; at v0 empty means all. */
#pragma once

#include "wire/codec.h"

struct metadata_request_topic {
        struct uuid topic_id; /* v10+ */
        struct wire_str name; /* may be null from v10 */
};

struct metadata_request {
        WIRE_ARRAY(struct metadata_request_topic) topics; /* may be null from v1 */
        bool allow_auto_topic_creation;                   /* v4+, default true */
        bool include_cluster_authorized_operations;       /* v8-10 */
        bool include_topic_authorized_operations;         /* v8+ */
};

extern const struct wire_struct metadata_request_topic_wire;
extern const struct wire_message metadata_request_wire;

struct metadata_response_broker {
        int32_t node_id;
        struct wire_str host;
        int32_t port;
        struct wire_str rack; /* v1+, may be null */
};

struct metadata_response_partition {
        int16_t error_code;
        int32_t partition_index;
        int32_t leader_id;
        int32_t leader_epoch; /* v7+, default -1 */
        WIRE_ARRAY(int32_t) replica_nodes;
        WIRE_ARRAY(int32_t) isr_nodes;
        WIRE_ARRAY(int32_t) offline_replicas; /* v5+ */
};

struct metadata_response_topic {
        int16_t error_code;
        struct wire_str name; /* may be null from v12 */
        struct uuid topic_id; /* v10+ */
        bool is_internal;     /* v1+ */
        WIRE_ARRAY(struct metadata_response_partition) partitions;
        int32_t topic_authorized_operations; /* v8+, default INT32_MIN */
};

struct metadata_response {
        int32_t throttle_time_ms; /* v3+ */
        WIRE_ARRAY(struct metadata_response_broker) brokers;
        struct wire_str cluster_id; /* v2+, may be null */
        int32_t controller_id;      /* v1+, default -1 */
        WIRE_ARRAY(struct metadata_response_topic) topics;
        int32_t cluster_authorized_operations; /* v8-10, default INT32_MIN */
};

extern const struct wire_struct metadata_response_broker_wire;
extern const struct wire_struct metadata_response_partition_wire;
extern const struct wire_struct metadata_response_topic_wire;
extern const struct wire_message metadata_response_wire;
