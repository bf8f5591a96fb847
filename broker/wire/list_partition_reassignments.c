#include "wire/list_partition_reassignments.h"
#include "wire/table.h"

static const struct wire_field list_partition_reassignments_request_topic_fields[] = {
        FIELD(list_partition_reassignments_request_topic, name, STRING, 0, LAST),
        ARRAY(list_partition_reassignments_request_topic, partition_indexes, INT32, 0, LAST),
};
const struct wire_struct list_partition_reassignments_request_topic_wire =
        STRUCT_TABLE(list_partition_reassignments_request_topic);

static const struct wire_field list_partition_reassignments_request_fields[] = {
        FIELD(list_partition_reassignments_request, timeout_ms, INT32, 0, LAST, DEFAULT(60000)),
        ARRAY_OF(list_partition_reassignments_request, topics, list_partition_reassignments_request_topic, 0,
                 LAST, NULL_FROM(0), DEFAULT_NULL),
};
const struct wire_message list_partition_reassignments_request_wire =
        MESSAGE(list_partition_reassignments_request, "ListPartitionReassignmentsRequest", 46, 0, 0, 0);

static const struct wire_field list_partition_reassignments_response_partition_fields[] = {
        FIELD(list_partition_reassignments_response_partition, partition_index, INT32, 0, LAST),
        ARRAY(list_partition_reassignments_response_partition, replicas, INT32, 0, LAST),
        ARRAY(list_partition_reassignments_response_partition, adding_replicas, INT32, 0, LAST),
        ARRAY(list_partition_reassignments_response_partition, removing_replicas, INT32, 0, LAST),
};
const struct wire_struct list_partition_reassignments_response_partition_wire =
        STRUCT_TABLE(list_partition_reassignments_response_partition);

static const struct wire_field list_partition_reassignments_response_topic_fields[] = {
        FIELD(list_partition_reassignments_response_topic, name, STRING, 0, LAST),
        ARRAY_OF(list_partition_reassignments_response_topic, partitions,
                 list_partition_reassignments_response_partition, 0, LAST),
};
const struct wire_struct list_partition_reassignments_response_topic_wire =
        STRUCT_TABLE(list_partition_reassignments_response_topic);

static const struct wire_field list_partition_reassignments_response_fields[] = {
        FIELD(list_partition_reassignments_response, throttle_time_ms, INT32, 0, LAST),
        FIELD(list_partition_reassignments_response, error_code, INT16, 0, LAST),
        FIELD(list_partition_reassignments_response, error_message, STRING, 0, LAST, NULL_FROM(0)),
        ARRAY_OF(list_partition_reassignments_response, topics, list_partition_reassignments_response_topic,
                 0, LAST),
};
const struct wire_message list_partition_reassignments_response_wire =
        MESSAGE(list_partition_reassignments_response, "ListPartitionReassignmentsResponse", 46, 0, 0, 0);
