/* InitProducerId (key 22). */
#pragma once

#include "wire/codec.h"

struct init_producer_id_request {
        struct wire_str transactional_id; /* may be null */
        int32_t transaction_timeout_ms;
        int64_t producer_id;    /* v3+, default -1 */
        int16_t producer_epoch; /* v3+, default -1 */
};

extern const struct wire_message init_producer_id_request_wire;

struct init_producer_id_response {
        int32_t throttle_time_ms;
        int16_t error_code;
        int64_t producer_id; /* default -1 */
        int16_t producer_epoch;
};

extern const struct wire_message init_producer_id_response_wire;
