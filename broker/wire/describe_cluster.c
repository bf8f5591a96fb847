#include "wire/describe_cluster.h"
#include "wire/table.h"

static const struct wire_field describe_cluster_request_fields[] = {
        FIELD(describe_cluster_request, include_cluster_authorized_operations, BOOL, 0, LAST),
        FIELD(describe_cluster_request, endpoint_type, INT8, 1, LAST, DEFAULT(1)),
};
const struct wire_message describe_cluster_request_wire =
        MESSAGE(describe_cluster_request, "DescribeClusterRequest", 60, 0, 1, 0);

static const struct wire_field describe_cluster_response_broker_fields[] = {
        FIELD(describe_cluster_response_broker, broker_id, INT32, 0, LAST),
        FIELD(describe_cluster_response_broker, host, STRING, 0, LAST),
        FIELD(describe_cluster_response_broker, port, INT32, 0, LAST),
        FIELD(describe_cluster_response_broker, rack, STRING, 0, LAST, NULL_FROM(0), DEFAULT_NULL),
};
const struct wire_struct describe_cluster_response_broker_wire =
        STRUCT_TABLE(describe_cluster_response_broker);

static const struct wire_field describe_cluster_response_fields[] = {
        FIELD(describe_cluster_response, throttle_time_ms, INT32, 0, LAST),
        FIELD(describe_cluster_response, error_code, INT16, 0, LAST),
        FIELD(describe_cluster_response, error_message, STRING, 0, LAST, NULL_FROM(0), DEFAULT_NULL),
        FIELD(describe_cluster_response, endpoint_type, INT8, 1, LAST, DEFAULT(1)),
        FIELD(describe_cluster_response, cluster_id, STRING, 0, LAST),
        FIELD(describe_cluster_response, controller_id, INT32, 0, LAST, DEFAULT(-1)),
        ARRAY_OF(describe_cluster_response, brokers, describe_cluster_response_broker, 0, LAST),
        FIELD(describe_cluster_response, cluster_authorized_operations, INT32, 0, LAST, DEFAULT(INT32_MIN)),
};
const struct wire_message describe_cluster_response_wire =
        MESSAGE(describe_cluster_response, "DescribeClusterResponse", 60, 0, 1, 0);
