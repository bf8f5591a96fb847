#include "wire/create_partitions.h"
#include "wire/table.h"

static const struct wire_field create_partitions_request_assignment_fields[] = {
        ARRAY(create_partitions_request_assignment, broker_ids, INT32, 0, LAST),
};
const struct wire_struct create_partitions_request_assignment_wire =
        STRUCT_TABLE(create_partitions_request_assignment);

static const struct wire_field create_partitions_request_topic_fields[] = {
        FIELD(create_partitions_request_topic, name, STRING, 0, LAST),
        FIELD(create_partitions_request_topic, count, INT32, 0, LAST),
        ARRAY_OF(create_partitions_request_topic, assignments, create_partitions_request_assignment, 0, LAST,
                 NULL_FROM(0)),
};
const struct wire_struct create_partitions_request_topic_wire = STRUCT_TABLE(create_partitions_request_topic);

static const struct wire_field create_partitions_request_fields[] = {
        ARRAY_OF(create_partitions_request, topics, create_partitions_request_topic, 0, LAST),
        FIELD(create_partitions_request, timeout_ms, INT32, 0, LAST),
        FIELD(create_partitions_request, validate_only, BOOL, 0, LAST),
};
const struct wire_message create_partitions_request_wire =
        MESSAGE(create_partitions_request, "CreatePartitionsRequest", 37, 0, 3, 2);

static const struct wire_field create_partitions_response_result_fields[] = {
        FIELD(create_partitions_response_result, name, STRING, 0, LAST),
        FIELD(create_partitions_response_result, error_code, INT16, 0, LAST),
        FIELD(create_partitions_response_result, error_message, STRING, 0, LAST, NULL_FROM(0), DEFAULT_NULL),
};
const struct wire_struct create_partitions_response_result_wire =
        STRUCT_TABLE(create_partitions_response_result);

static const struct wire_field create_partitions_response_fields[] = {
        FIELD(create_partitions_response, throttle_time_ms, INT32, 0, LAST),
        ARRAY_OF(create_partitions_response, results, create_partitions_response_result, 0, LAST),
};
const struct wire_message create_partitions_response_wire =
        MESSAGE(create_partitions_response, "CreatePartitionsResponse", 37, 0, 3, 2);
