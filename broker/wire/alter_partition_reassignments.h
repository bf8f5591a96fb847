/* AlterPartitionReassignments (key 45). Null replicas: cancel what is pending of the partition (KIP-455). */
#pragma once

#include "wire/codec.h"

struct alter_partition_reassignments_request_partition {
        int32_t partition_index;
        WIRE_ARRAY(int32_t) replicas; /* may be null */
};

struct alter_partition_reassignments_request_topic {
        struct wire_str name;
        WIRE_ARRAY(struct alter_partition_reassignments_request_partition) partitions;
};

struct alter_partition_reassignments_request {
        int32_t timeout_ms;                   /* default 60000 */
        bool allow_replication_factor_change; /* v1+, default true (KIP-860) */
        WIRE_ARRAY(struct alter_partition_reassignments_request_topic) topics;
};

extern const struct wire_struct alter_partition_reassignments_request_partition_wire;
extern const struct wire_struct alter_partition_reassignments_request_topic_wire;
extern const struct wire_message alter_partition_reassignments_request_wire;

struct alter_partition_reassignments_response_partition {
        int32_t partition_index;
        int16_t error_code;
        struct wire_str error_message; /* may be null */
};

struct alter_partition_reassignments_response_topic {
        struct wire_str name;
        WIRE_ARRAY(struct alter_partition_reassignments_response_partition) partitions;
};

struct alter_partition_reassignments_response {
        int32_t throttle_time_ms;
        bool allow_replication_factor_change; /* v1+, default true */
        int16_t error_code;
        struct wire_str error_message; /* may be null */
        WIRE_ARRAY(struct alter_partition_reassignments_response_topic) responses;
};

extern const struct wire_struct alter_partition_reassignments_response_partition_wire;
extern const struct wire_struct alter_partition_reassignments_response_topic_wire;
extern const struct wire_message alter_partition_reassignments_response_wire;
