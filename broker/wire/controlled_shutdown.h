/* ControlledShutdown (key 7), broker to controller (D1). The request header of v0 has no client id.
 *
 * The tagged fields are our own: Apache Kafka skips them, as tagged fields that one does not know are. */
#pragma once

#include "wire/codec.h"

struct controlled_shutdown_request {
        int32_t broker_id;
        int64_t broker_epoch; /* v2+, default -1 */
        int32_t slot_wait_ms; /* ours, v3+, default 0: how long to wait for the drain slot (D3) */
};

extern const struct wire_message controlled_shutdown_request_wire;

struct controlled_shutdown_response_remaining_partition {
        struct wire_str topic_name;
        int32_t partition_index;
};

struct controlled_shutdown_response {
        int16_t error_code;
        WIRE_ARRAY(struct controlled_shutdown_response_remaining_partition) remaining_partitions;
        struct wire_str
                slot_holder; /* ours, v3+, null: with OPERATION_NOT_ATTEMPTED, who holds it, for people */
};

extern const struct wire_struct controlled_shutdown_response_remaining_partition_wire;
extern const struct wire_message controlled_shutdown_response_wire;
