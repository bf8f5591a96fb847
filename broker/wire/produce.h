/* Produce (key 0). v0-2 carried message formats that Stepdown does not keep; they are advertised for
 * old librdkafka and never served. */
#pragma once

#include "wire/codec.h"

struct produce_request_partition {
        int32_t index;
        struct wire_bytes records; /* may be null */
};

struct produce_request_topic {
        struct wire_str name;
        WIRE_ARRAY(struct produce_request_partition) partition_data;
};

struct produce_request {
        struct wire_str transactional_id; /* may be null */
        int16_t acks;
        int32_t timeout_ms;
        WIRE_ARRAY(struct produce_request_topic) topic_data;
};

extern const struct wire_struct produce_request_partition_wire;
extern const struct wire_struct produce_request_topic_wire;
extern const struct wire_message produce_request_wire;

struct produce_response_record_error {
        int32_t batch_index;                       /* v8+ */
        struct wire_str batch_index_error_message; /* v8+, may be null */
};

struct produce_response_current_leader {
        int32_t leader_id;    /* v10+, default -1 */
        int32_t leader_epoch; /* v10+, default -1 */
};

struct produce_response_partition {
        int32_t index;
        int16_t error_code;
        int64_t base_offset;
        int64_t log_append_time_ms;                                     /* default -1 */
        int64_t log_start_offset;                                       /* v5+, default -1 */
        WIRE_ARRAY(struct produce_response_record_error) record_errors; /* v8+ */
        struct wire_str error_message;                                  /* v8+, may be null */
        struct produce_response_current_leader current_leader;          /* v10+ */
};

struct produce_response_topic {
        struct wire_str name;
        WIRE_ARRAY(struct produce_response_partition) partition_responses;
};

struct produce_response_node_endpoint {
        int32_t node_id;      /* v10+ */
        struct wire_str host; /* v10+ */
        int32_t port;         /* v10+ */
        struct wire_str rack; /* v10+, may be null */
};

struct produce_response {
        WIRE_ARRAY(struct produce_response_topic) responses;
        int32_t throttle_time_ms;
        WIRE_ARRAY(struct produce_response_node_endpoint) node_endpoints; /* v10+ */
};

extern const struct wire_struct produce_response_record_error_wire;
extern const struct wire_struct produce_response_current_leader_wire;
extern const struct wire_struct produce_response_partition_wire;
extern const struct wire_struct produce_response_topic_wire;
extern const struct wire_struct produce_response_node_endpoint_wire;
extern const struct wire_message produce_response_wire;
