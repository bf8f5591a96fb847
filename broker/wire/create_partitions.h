/* CreatePartitions (key 37). Null assignments: the controller chooses. */
#pragma once

#include "wire/codec.h"

struct create_partitions_request_assignment {
        WIRE_ARRAY(int32_t) broker_ids;
};

struct create_partitions_request_topic {
        struct wire_str name;
        int32_t count;
        WIRE_ARRAY(struct create_partitions_request_assignment) assignments; /* may be null */
};

struct create_partitions_request {
        WIRE_ARRAY(struct create_partitions_request_topic) topics;
        int32_t timeout_ms;
        bool validate_only;
};

extern const struct wire_struct create_partitions_request_assignment_wire;
extern const struct wire_struct create_partitions_request_topic_wire;
extern const struct wire_message create_partitions_request_wire;

struct create_partitions_response_result {
        struct wire_str name;
        int16_t error_code;
        struct wire_str error_message; /* may be null */
};

struct create_partitions_response {
        int32_t throttle_time_ms;
        WIRE_ARRAY(struct create_partitions_response_result) results;
};

extern const struct wire_struct create_partitions_response_result_wire;
extern const struct wire_message create_partitions_response_wire;
