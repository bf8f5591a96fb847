#include "wire/produce.h"
#include "wire/table.h"

static const struct wire_field produce_request_partition_fields[] = {
        FIELD(produce_request_partition, index, INT32, 0, LAST),
        FIELD(produce_request_partition, records, RECORDS, 0, LAST, NULL_FROM(0), DEFAULT_NULL),
};
const struct wire_struct produce_request_partition_wire = STRUCT_TABLE(produce_request_partition);

static const struct wire_field produce_request_topic_fields[] = {
        FIELD(produce_request_topic, name, STRING, 0, LAST),
        ARRAY_OF(produce_request_topic, partition_data, produce_request_partition, 0, LAST),
};
const struct wire_struct produce_request_topic_wire = STRUCT_TABLE(produce_request_topic);

static const struct wire_field produce_request_fields[] = {
        FIELD(produce_request, transactional_id, STRING, 3, LAST, NULL_FROM(3), DEFAULT_NULL),
        FIELD(produce_request, acks, INT16, 0, LAST),
        FIELD(produce_request, timeout_ms, INT32, 0, LAST),
        ARRAY_OF(produce_request, topic_data, produce_request_topic, 0, LAST),
};
const struct wire_message produce_request_wire = MESSAGE(produce_request, "ProduceRequest", 0, 3, 11, 9);

static const struct wire_field produce_response_record_error_fields[] = {
        FIELD(produce_response_record_error, batch_index, INT32, 8, LAST),
        FIELD(produce_response_record_error, batch_index_error_message, STRING, 8, LAST, NULL_FROM(8),
              DEFAULT_NULL),
};
const struct wire_struct produce_response_record_error_wire = STRUCT_TABLE(produce_response_record_error);

static const struct wire_field produce_response_current_leader_fields[] = {
        FIELD(produce_response_current_leader, leader_id, INT32, 10, LAST, DEFAULT(-1)),
        FIELD(produce_response_current_leader, leader_epoch, INT32, 10, LAST, DEFAULT(-1)),
};
const struct wire_struct produce_response_current_leader_wire = STRUCT_TABLE(produce_response_current_leader);

static const struct wire_field produce_response_partition_fields[] = {
        FIELD(produce_response_partition, index, INT32, 0, LAST),
        FIELD(produce_response_partition, error_code, INT16, 0, LAST),
        FIELD(produce_response_partition, base_offset, INT64, 0, LAST),
        FIELD(produce_response_partition, log_append_time_ms, INT64, 2, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(produce_response_partition, log_start_offset, INT64, 5, LAST, DEFAULT(-1), IGNORABLE),
        ARRAY_OF(produce_response_partition, record_errors, produce_response_record_error, 8, LAST,
                 IGNORABLE),
        FIELD(produce_response_partition, error_message, STRING, 8, LAST, NULL_FROM(8), DEFAULT_NULL,
              IGNORABLE),
        STRUCT(produce_response_partition, current_leader, produce_response_current_leader, 10, LAST, TAG(0)),
};
const struct wire_struct produce_response_partition_wire = STRUCT_TABLE(produce_response_partition);

static const struct wire_field produce_response_topic_fields[] = {
        FIELD(produce_response_topic, name, STRING, 0, LAST),
        ARRAY_OF(produce_response_topic, partition_responses, produce_response_partition, 0, LAST),
};
const struct wire_struct produce_response_topic_wire = STRUCT_TABLE(produce_response_topic);

static const struct wire_field produce_response_node_endpoint_fields[] = {
        FIELD(produce_response_node_endpoint, node_id, INT32, 10, LAST),
        FIELD(produce_response_node_endpoint, host, STRING, 10, LAST),
        FIELD(produce_response_node_endpoint, port, INT32, 10, LAST),
        FIELD(produce_response_node_endpoint, rack, STRING, 10, LAST, NULL_FROM(10), DEFAULT_NULL),
};
const struct wire_struct produce_response_node_endpoint_wire = STRUCT_TABLE(produce_response_node_endpoint);

static const struct wire_field produce_response_fields[] = {
        ARRAY_OF(produce_response, responses, produce_response_topic, 0, LAST),
        FIELD(produce_response, throttle_time_ms, INT32, 1, LAST, IGNORABLE),
        ARRAY_OF(produce_response, node_endpoints, produce_response_node_endpoint, 10, LAST, TAG(0)),
};
const struct wire_message produce_response_wire = MESSAGE(produce_response, "ProduceResponse", 0, 3, 11, 9);
