/* DescribeCluster (key 60). */
#pragma once

#include "wire/codec.h"

struct describe_cluster_request {
        bool include_cluster_authorized_operations;
        int8_t endpoint_type; /* v1+, default 1 */
};

extern const struct wire_message describe_cluster_request_wire;

struct describe_cluster_response_broker {
        int32_t broker_id;
        struct wire_str host;
        int32_t port;
        struct wire_str rack; /* may be null */
};

struct describe_cluster_response {
        int32_t throttle_time_ms;
        int16_t error_code;
        struct wire_str error_message; /* may be null */
        int8_t endpoint_type;          /* v1+, default 1 */
        struct wire_str cluster_id;
        int32_t controller_id; /* default -1 */
        WIRE_ARRAY(struct describe_cluster_response_broker) brokers;
        int32_t cluster_authorized_operations; /* default INT32_MIN */
};

extern const struct wire_struct describe_cluster_response_broker_wire;
extern const struct wire_message describe_cluster_response_wire;
