#include "wire/alter_partition_reassignments.h"
#include "wire/table.h"

static const struct wire_field alter_partition_reassignments_request_partition_fields[] = {
        FIELD(alter_partition_reassignments_request_partition, partition_index, INT32, 0, LAST),
        ARRAY(alter_partition_reassignments_request_partition, replicas, INT32, 0, LAST, NULL_FROM(0),
              DEFAULT_NULL),
};
const struct wire_struct alter_partition_reassignments_request_partition_wire =
        STRUCT_TABLE(alter_partition_reassignments_request_partition);

static const struct wire_field alter_partition_reassignments_request_topic_fields[] = {
        FIELD(alter_partition_reassignments_request_topic, name, STRING, 0, LAST),
        ARRAY_OF(alter_partition_reassignments_request_topic, partitions,
                 alter_partition_reassignments_request_partition, 0, LAST),
};
const struct wire_struct alter_partition_reassignments_request_topic_wire =
        STRUCT_TABLE(alter_partition_reassignments_request_topic);

static const struct wire_field alter_partition_reassignments_request_fields[] = {
        FIELD(alter_partition_reassignments_request, timeout_ms, INT32, 0, LAST, DEFAULT(60000)),
        FIELD(alter_partition_reassignments_request, allow_replication_factor_change, BOOL, 1, LAST,
              DEFAULT(true)),
        ARRAY_OF(alter_partition_reassignments_request, topics, alter_partition_reassignments_request_topic,
                 0, LAST),
};
const struct wire_message alter_partition_reassignments_request_wire =
        MESSAGE(alter_partition_reassignments_request, "AlterPartitionReassignmentsRequest", 45, 0, 1, 0);

static const struct wire_field alter_partition_reassignments_response_partition_fields[] = {
        FIELD(alter_partition_reassignments_response_partition, partition_index, INT32, 0, LAST),
        FIELD(alter_partition_reassignments_response_partition, error_code, INT16, 0, LAST),
        FIELD(alter_partition_reassignments_response_partition, error_message, STRING, 0, LAST, NULL_FROM(0)),
};
const struct wire_struct alter_partition_reassignments_response_partition_wire =
        STRUCT_TABLE(alter_partition_reassignments_response_partition);

static const struct wire_field alter_partition_reassignments_response_topic_fields[] = {
        FIELD(alter_partition_reassignments_response_topic, name, STRING, 0, LAST),
        ARRAY_OF(alter_partition_reassignments_response_topic, partitions,
                 alter_partition_reassignments_response_partition, 0, LAST),
};
const struct wire_struct alter_partition_reassignments_response_topic_wire =
        STRUCT_TABLE(alter_partition_reassignments_response_topic);

static const struct wire_field alter_partition_reassignments_response_fields[] = {
        FIELD(alter_partition_reassignments_response, throttle_time_ms, INT32, 0, LAST),
        FIELD(alter_partition_reassignments_response, allow_replication_factor_change, BOOL, 1, LAST,
              DEFAULT(true), IGNORABLE),
        FIELD(alter_partition_reassignments_response, error_code, INT16, 0, LAST),
        FIELD(alter_partition_reassignments_response, error_message, STRING, 0, LAST, NULL_FROM(0)),
        ARRAY_OF(alter_partition_reassignments_response, responses,
                 alter_partition_reassignments_response_topic, 0, LAST),
};
const struct wire_message alter_partition_reassignments_response_wire =
        MESSAGE(alter_partition_reassignments_response, "AlterPartitionReassignmentsResponse", 45, 0, 1, 0);
