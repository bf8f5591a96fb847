#include "wire/offset_for_leader_epoch.h"
#include "wire/table.h"

static const struct wire_field offset_for_leader_epoch_request_partition_fields[] = {
        FIELD(offset_for_leader_epoch_request_partition, partition, INT32, 0, LAST),
        FIELD(offset_for_leader_epoch_request_partition, current_leader_epoch, INT32, 2, LAST, DEFAULT(-1),
              IGNORABLE),
        FIELD(offset_for_leader_epoch_request_partition, leader_epoch, INT32, 0, LAST),
};
const struct wire_struct offset_for_leader_epoch_request_partition_wire =
        STRUCT_TABLE(offset_for_leader_epoch_request_partition);

static const struct wire_field offset_for_leader_epoch_request_topic_fields[] = {
        FIELD(offset_for_leader_epoch_request_topic, topic, STRING, 0, LAST),
        ARRAY_OF(offset_for_leader_epoch_request_topic, partitions, offset_for_leader_epoch_request_partition,
                 0, LAST),
};
const struct wire_struct offset_for_leader_epoch_request_topic_wire =
        STRUCT_TABLE(offset_for_leader_epoch_request_topic);

static const struct wire_field offset_for_leader_epoch_request_fields[] = {
        FIELD(offset_for_leader_epoch_request, replica_id, INT32, 3, LAST, DEFAULT(-2), IGNORABLE),
        ARRAY_OF(offset_for_leader_epoch_request, topics, offset_for_leader_epoch_request_topic, 0, LAST),
};
const struct wire_message offset_for_leader_epoch_request_wire =
        MESSAGE(offset_for_leader_epoch_request, "OffsetForLeaderEpochRequest", 23, 2, 4, 4);

static const struct wire_field offset_for_leader_epoch_response_partition_fields[] = {
        FIELD(offset_for_leader_epoch_response_partition, error_code, INT16, 0, LAST),
        FIELD(offset_for_leader_epoch_response_partition, partition, INT32, 0, LAST),
        FIELD(offset_for_leader_epoch_response_partition, leader_epoch, INT32, 1, LAST, DEFAULT(-1),
              IGNORABLE),
        FIELD(offset_for_leader_epoch_response_partition, end_offset, INT64, 0, LAST, DEFAULT(-1)),
};
const struct wire_struct offset_for_leader_epoch_response_partition_wire =
        STRUCT_TABLE(offset_for_leader_epoch_response_partition);

static const struct wire_field offset_for_leader_epoch_response_topic_fields[] = {
        FIELD(offset_for_leader_epoch_response_topic, topic, STRING, 0, LAST),
        ARRAY_OF(offset_for_leader_epoch_response_topic, partitions,
                 offset_for_leader_epoch_response_partition, 0, LAST),
};
const struct wire_struct offset_for_leader_epoch_response_topic_wire =
        STRUCT_TABLE(offset_for_leader_epoch_response_topic);

static const struct wire_field offset_for_leader_epoch_response_fields[] = {
        FIELD(offset_for_leader_epoch_response, throttle_time_ms, INT32, 2, LAST, IGNORABLE),
        ARRAY_OF(offset_for_leader_epoch_response, topics, offset_for_leader_epoch_response_topic, 0, LAST),
};
const struct wire_message offset_for_leader_epoch_response_wire =
        MESSAGE(offset_for_leader_epoch_response, "OffsetForLeaderEpochResponse", 23, 2, 4, 4);
