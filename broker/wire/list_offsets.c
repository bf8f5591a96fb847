#include "wire/list_offsets.h"
#include "wire/table.h"

static const struct wire_field list_offsets_request_partition_fields[] = {
        FIELD(list_offsets_request_partition, partition_index, INT32, 0, LAST),
        FIELD(list_offsets_request_partition, current_leader_epoch, INT32, 4, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(list_offsets_request_partition, timestamp, INT64, 0, LAST),
};
const struct wire_struct list_offsets_request_partition_wire = STRUCT_TABLE(list_offsets_request_partition);

static const struct wire_field list_offsets_request_topic_fields[] = {
        FIELD(list_offsets_request_topic, name, STRING, 0, LAST),
        ARRAY_OF(list_offsets_request_topic, partitions, list_offsets_request_partition, 0, LAST),
};
const struct wire_struct list_offsets_request_topic_wire = STRUCT_TABLE(list_offsets_request_topic);

static const struct wire_field list_offsets_request_fields[] = {
        FIELD(list_offsets_request, replica_id, INT32, 0, LAST),
        FIELD(list_offsets_request, isolation_level, INT8, 2, LAST),
        ARRAY_OF(list_offsets_request, topics, list_offsets_request_topic, 0, LAST),
};
const struct wire_message list_offsets_request_wire =
        MESSAGE(list_offsets_request, "ListOffsetsRequest", 2, 1, 9, 6);

static const struct wire_field list_offsets_response_partition_fields[] = {
        FIELD(list_offsets_response_partition, partition_index, INT32, 0, LAST),
        FIELD(list_offsets_response_partition, error_code, INT16, 0, LAST),
        FIELD(list_offsets_response_partition, timestamp, INT64, 1, LAST, DEFAULT(-1)),
        FIELD(list_offsets_response_partition, offset, INT64, 1, LAST, DEFAULT(-1)),
        FIELD(list_offsets_response_partition, leader_epoch, INT32, 4, LAST, DEFAULT(-1)),
};
const struct wire_struct list_offsets_response_partition_wire = STRUCT_TABLE(list_offsets_response_partition);

static const struct wire_field list_offsets_response_topic_fields[] = {
        FIELD(list_offsets_response_topic, name, STRING, 0, LAST),
        ARRAY_OF(list_offsets_response_topic, partitions, list_offsets_response_partition, 0, LAST),
};
const struct wire_struct list_offsets_response_topic_wire = STRUCT_TABLE(list_offsets_response_topic);

static const struct wire_field list_offsets_response_fields[] = {
        FIELD(list_offsets_response, throttle_time_ms, INT32, 2, LAST, IGNORABLE),
        ARRAY_OF(list_offsets_response, topics, list_offsets_response_topic, 0, LAST),
};
const struct wire_message list_offsets_response_wire =
        MESSAGE(list_offsets_response, "ListOffsetsResponse", 2, 1, 9, 6);
