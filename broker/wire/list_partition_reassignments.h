/* ListPartitionReassignments (key 46). Null topics: all of them. */
#pragma once

#include "wire/codec.h"

struct list_partition_reassignments_request_topic {
        struct wire_str name;
        WIRE_ARRAY(int32_t) partition_indexes;
};

struct list_partition_reassignments_request {
        int32_t timeout_ms;                                                   /* default 60000 */
        WIRE_ARRAY(struct list_partition_reassignments_request_topic) topics; /* may be null */
};

extern const struct wire_struct list_partition_reassignments_request_topic_wire;
extern const struct wire_message list_partition_reassignments_request_wire;

struct list_partition_reassignments_response_partition {
        int32_t partition_index;
        WIRE_ARRAY(int32_t) replicas;
        WIRE_ARRAY(int32_t) adding_replicas;
        WIRE_ARRAY(int32_t) removing_replicas;
};

struct list_partition_reassignments_response_topic {
        struct wire_str name;
        WIRE_ARRAY(struct list_partition_reassignments_response_partition) partitions;
};

struct list_partition_reassignments_response {
        int32_t throttle_time_ms;
        int16_t error_code;
        struct wire_str error_message; /* may be null */
        WIRE_ARRAY(struct list_partition_reassignments_response_topic) topics;
};

extern const struct wire_struct list_partition_reassignments_response_partition_wire;
extern const struct wire_struct list_partition_reassignments_response_topic_wire;
extern const struct wire_message list_partition_reassignments_response_wire;
