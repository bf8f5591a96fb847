/* ListOffsets (key 2): offset for a timestamp; -1 latest, -2 earliest, -3 (v7) of the maximum timestamp. */
#pragma once

#include "wire/codec.h"

struct list_offsets_request_partition {
        int32_t partition_index;
        int32_t current_leader_epoch; /* v4+, default -1 */
        int64_t timestamp;
};

struct list_offsets_request_topic {
        struct wire_str name;
        WIRE_ARRAY(struct list_offsets_request_partition) partitions;
};

struct list_offsets_request {
        int32_t replica_id;
        int8_t isolation_level; /* v2+ */
        WIRE_ARRAY(struct list_offsets_request_topic) topics;
};

extern const struct wire_struct list_offsets_request_partition_wire;
extern const struct wire_struct list_offsets_request_topic_wire;
extern const struct wire_message list_offsets_request_wire;

struct list_offsets_response_partition {
        int32_t partition_index;
        int16_t error_code;
        int64_t timestamp;    /* default -1 */
        int64_t offset;       /* default -1 */
        int32_t leader_epoch; /* v4+, default -1 */
};

struct list_offsets_response_topic {
        struct wire_str name;
        WIRE_ARRAY(struct list_offsets_response_partition) partitions;
};

struct list_offsets_response {
        int32_t throttle_time_ms; /* v2+ */
        WIRE_ARRAY(struct list_offsets_response_topic) topics;
};

extern const struct wire_struct list_offsets_response_partition_wire;
extern const struct wire_struct list_offsets_response_topic_wire;
extern const struct wire_message list_offsets_response_wire;
