/* FindCoordinator (key 10): one key up to v3, a list of keys from v4. */
#pragma once

#include "wire/codec.h"

struct find_coordinator_request {
        struct wire_str key;                          /* v0-3 */
        int8_t key_type;                              /* v1+ */
        WIRE_ARRAY(struct wire_str) coordinator_keys; /* v4+ */
};

extern const struct wire_message find_coordinator_request_wire;

struct find_coordinator_response_coordinator {
        struct wire_str key;           /* v4+ */
        int32_t node_id;               /* v4+ */
        struct wire_str host;          /* v4+ */
        int32_t port;                  /* v4+ */
        int16_t error_code;            /* v4+ */
        struct wire_str error_message; /* v4+, may be null */
};

struct find_coordinator_response {
        int32_t throttle_time_ms;                                              /* v1+ */
        int16_t error_code;                                                    /* v0-3 */
        struct wire_str error_message;                                         /* v1-3, may be null */
        int32_t node_id;                                                       /* v0-3 */
        struct wire_str host;                                                  /* v0-3 */
        int32_t port;                                                          /* v0-3 */
        WIRE_ARRAY(struct find_coordinator_response_coordinator) coordinators; /* v4+ */
};

extern const struct wire_struct find_coordinator_response_coordinator_wire;
extern const struct wire_message find_coordinator_response_wire;
