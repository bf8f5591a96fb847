/* OffsetForLeaderEpoch (key 23): where a leader epoch ends (KIP-101, KIP-320). */
#pragma once

#include "wire/codec.h"

struct offset_for_leader_epoch_request_partition {
        int32_t partition;
        int32_t current_leader_epoch; /* default -1 */
        int32_t leader_epoch;
};

struct offset_for_leader_epoch_request_topic {
        struct wire_str topic;
        WIRE_ARRAY(struct offset_for_leader_epoch_request_partition) partitions;
};

struct offset_for_leader_epoch_request {
        int32_t replica_id; /* v3+, default -2 */
        WIRE_ARRAY(struct offset_for_leader_epoch_request_topic) topics;
};

extern const struct wire_struct offset_for_leader_epoch_request_partition_wire;
extern const struct wire_struct offset_for_leader_epoch_request_topic_wire;
extern const struct wire_message offset_for_leader_epoch_request_wire;

struct offset_for_leader_epoch_response_partition {
        int16_t error_code;
        int32_t partition;
        int32_t leader_epoch; /* default -1 */
        int64_t end_offset;   /* default -1 */
};

struct offset_for_leader_epoch_response_topic {
        struct wire_str topic;
        WIRE_ARRAY(struct offset_for_leader_epoch_response_partition) partitions;
};

struct offset_for_leader_epoch_response {
        int32_t throttle_time_ms;
        WIRE_ARRAY(struct offset_for_leader_epoch_response_topic) topics;
};

extern const struct wire_struct offset_for_leader_epoch_response_partition_wire;
extern const struct wire_struct offset_for_leader_epoch_response_topic_wire;
extern const struct wire_message offset_for_leader_epoch_response_wire;
