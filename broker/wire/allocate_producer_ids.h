/* AllocateProducerIds (key 67), broker to controller: a block of producer ids (KIP-730). */
#pragma once

#include "wire/codec.h"

struct allocate_producer_ids_request {
        int32_t broker_id;
        int64_t broker_epoch; /* default -1 */
};

extern const struct wire_message allocate_producer_ids_request_wire;

struct allocate_producer_ids_response {
        int32_t throttle_time_ms;
        int16_t error_code;
        int64_t producer_id_start;
        int32_t producer_id_len;
};

extern const struct wire_message allocate_producer_ids_response_wire;
