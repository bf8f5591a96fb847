/* AlterPartition (key 56), leader to controller: a proposed ISR (KIP-497). */
#pragma once

#include "wire/codec.h"

struct alter_partition_request_new_isr_with_epoch {
        int32_t broker_id;    /* v3+ */
        int64_t broker_epoch; /* v3+, default -1 */
};

struct alter_partition_request_partition {
        int32_t partition_index;
        int32_t leader_epoch;
        WIRE_ARRAY(int32_t) new_isr;                                                       /* v0-2 */
        WIRE_ARRAY(struct alter_partition_request_new_isr_with_epoch) new_isr_with_epochs; /* v3+ */
        int8_t leader_recovery_state;                                                      /* v1+ */
        int32_t partition_epoch;
};

struct alter_partition_request_topic {
        struct wire_str topic_name; /* v0-1 */
        struct uuid topic_id;       /* v2+ */
        WIRE_ARRAY(struct alter_partition_request_partition) partitions;
};

struct alter_partition_request {
        int32_t broker_id;
        int64_t broker_epoch; /* default -1 */
        WIRE_ARRAY(struct alter_partition_request_topic) topics;
};

extern const struct wire_struct alter_partition_request_new_isr_with_epoch_wire;
extern const struct wire_struct alter_partition_request_partition_wire;
extern const struct wire_struct alter_partition_request_topic_wire;
extern const struct wire_message alter_partition_request_wire;

struct alter_partition_response_partition {
        int32_t partition_index;
        int16_t error_code;
        int32_t leader_id;
        int32_t leader_epoch;
        WIRE_ARRAY(int32_t) isr;
        int8_t leader_recovery_state; /* v1+ */
        int32_t partition_epoch;
};

struct alter_partition_response_topic {
        struct wire_str topic_name; /* v0-1 */
        struct uuid topic_id;       /* v2+ */
        WIRE_ARRAY(struct alter_partition_response_partition) partitions;
};

struct alter_partition_response {
        int32_t throttle_time_ms;
        int16_t error_code;
        WIRE_ARRAY(struct alter_partition_response_topic) topics;
};

extern const struct wire_struct alter_partition_response_partition_wire;
extern const struct wire_struct alter_partition_response_topic_wire;
extern const struct wire_message alter_partition_response_wire;
