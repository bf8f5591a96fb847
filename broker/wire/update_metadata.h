/* UpdateMetadata (key 6), controller to broker. Partitions stand alone in v0-4, by topic from v5. */
#pragma once

#include "wire/codec.h"

struct update_metadata_request_partition_state {
        struct wire_str topic_name; /* v0-4 */
        int32_t partition_index;
        int32_t controller_epoch;
        int32_t leader;
        int32_t leader_epoch;
        WIRE_ARRAY(int32_t) isr;
        int32_t zk_version;
        WIRE_ARRAY(int32_t) replicas;
        WIRE_ARRAY(int32_t) offline_replicas; /* v4+ */
};

struct update_metadata_request_topic_state {
        struct wire_str topic_name;                                                  /* v5+ */
        struct uuid topic_id;                                                        /* v7+ */
        WIRE_ARRAY(struct update_metadata_request_partition_state) partition_states; /* v5+ */
};

struct update_metadata_request_endpoint {
        int32_t port;              /* v1+ */
        struct wire_str host;      /* v1+ */
        struct wire_str listener;  /* v3+ */
        int16_t security_protocol; /* v1+ */
};

struct update_metadata_request_live_broker {
        int32_t id;
        struct wire_str v0_host;                                       /* v0 */
        int32_t v0_port;                                               /* v0 */
        WIRE_ARRAY(struct update_metadata_request_endpoint) endpoints; /* v1+ */
        struct wire_str rack;                                          /* v2+, may be null */
};

struct update_metadata_request {
        int32_t controller_id;
        bool is_kraft_controller; /* v8+ */
        int8_t type;              /* v8+ */
        int32_t controller_epoch;
        int64_t broker_epoch; /* v5+, default -1 */
        WIRE_ARRAY(struct update_metadata_request_partition_state) ungrouped_partition_states; /* v0-4 */
        WIRE_ARRAY(struct update_metadata_request_topic_state) topic_states;                   /* v5+ */
        WIRE_ARRAY(struct update_metadata_request_live_broker) live_brokers;
};

extern const struct wire_struct update_metadata_request_partition_state_wire;
extern const struct wire_struct update_metadata_request_topic_state_wire;
extern const struct wire_struct update_metadata_request_endpoint_wire;
extern const struct wire_struct update_metadata_request_live_broker_wire;
extern const struct wire_message update_metadata_request_wire;

struct update_metadata_response {
        int16_t error_code;
};

extern const struct wire_message update_metadata_response_wire;
