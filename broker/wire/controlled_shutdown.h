/* ControlledShutdown (key 7), broker to controller (D1). The request header of v0 has no client id. */
#pragma once

#include "wire/codec.h"

struct controlled_shutdown_request {
        int32_t broker_id;
        int64_t broker_epoch; /* v2+, default -1 */
};

extern const struct wire_message controlled_shutdown_request_wire;

struct controlled_shutdown_response_remaining_partition {
        struct wire_str topic_name;
        int32_t partition_index;
};

struct controlled_shutdown_response {
        int16_t error_code;
        WIRE_ARRAY(struct controlled_shutdown_response_remaining_partition) remaining_partitions;
};

extern const struct wire_struct controlled_shutdown_response_remaining_partition_wire;
extern const struct wire_message controlled_shutdown_response_wire;
