#include "wire/alter_partition.h"
#include "wire/table.h"

static const struct wire_field alter_partition_request_new_isr_with_epoch_fields[] = {
        FIELD(alter_partition_request_new_isr_with_epoch, broker_id, INT32, 3, LAST),
        FIELD(alter_partition_request_new_isr_with_epoch, broker_epoch, INT64, 3, LAST, DEFAULT(-1)),
};
const struct wire_struct alter_partition_request_new_isr_with_epoch_wire =
        STRUCT_TABLE(alter_partition_request_new_isr_with_epoch);

static const struct wire_field alter_partition_request_partition_fields[] = {
        FIELD(alter_partition_request_partition, partition_index, INT32, 0, LAST),
        FIELD(alter_partition_request_partition, leader_epoch, INT32, 0, LAST),
        ARRAY(alter_partition_request_partition, new_isr, INT32, 0, 2),
        ARRAY_OF(alter_partition_request_partition, new_isr_with_epochs,
                 alter_partition_request_new_isr_with_epoch, 3, LAST),
        FIELD(alter_partition_request_partition, leader_recovery_state, INT8, 1, LAST),
        FIELD(alter_partition_request_partition, partition_epoch, INT32, 0, LAST),
};
const struct wire_struct alter_partition_request_partition_wire =
        STRUCT_TABLE(alter_partition_request_partition);

static const struct wire_field alter_partition_request_topic_fields[] = {
        FIELD(alter_partition_request_topic, topic_name, STRING, 0, 1, IGNORABLE),
        FIELD(alter_partition_request_topic, topic_id, UUID, 2, LAST, IGNORABLE),
        ARRAY_OF(alter_partition_request_topic, partitions, alter_partition_request_partition, 0, LAST),
};
const struct wire_struct alter_partition_request_topic_wire = STRUCT_TABLE(alter_partition_request_topic);

static const struct wire_field alter_partition_request_fields[] = {
        FIELD(alter_partition_request, broker_id, INT32, 0, LAST),
        FIELD(alter_partition_request, broker_epoch, INT64, 0, LAST, DEFAULT(-1)),
        ARRAY_OF(alter_partition_request, topics, alter_partition_request_topic, 0, LAST),
};
const struct wire_message alter_partition_request_wire =
        MESSAGE(alter_partition_request, "AlterPartitionRequest", 56, 0, 3, 0);

static const struct wire_field alter_partition_response_partition_fields[] = {
        FIELD(alter_partition_response_partition, partition_index, INT32, 0, LAST),
        FIELD(alter_partition_response_partition, error_code, INT16, 0, LAST),
        FIELD(alter_partition_response_partition, leader_id, INT32, 0, LAST),
        FIELD(alter_partition_response_partition, leader_epoch, INT32, 0, LAST),
        ARRAY(alter_partition_response_partition, isr, INT32, 0, LAST),
        FIELD(alter_partition_response_partition, leader_recovery_state, INT8, 1, LAST, IGNORABLE),
        FIELD(alter_partition_response_partition, partition_epoch, INT32, 0, LAST),
};
const struct wire_struct alter_partition_response_partition_wire =
        STRUCT_TABLE(alter_partition_response_partition);

static const struct wire_field alter_partition_response_topic_fields[] = {
        FIELD(alter_partition_response_topic, topic_name, STRING, 0, 1, IGNORABLE),
        FIELD(alter_partition_response_topic, topic_id, UUID, 2, LAST, IGNORABLE),
        ARRAY_OF(alter_partition_response_topic, partitions, alter_partition_response_partition, 0, LAST),
};
const struct wire_struct alter_partition_response_topic_wire = STRUCT_TABLE(alter_partition_response_topic);

static const struct wire_field alter_partition_response_fields[] = {
        FIELD(alter_partition_response, throttle_time_ms, INT32, 0, LAST),
        FIELD(alter_partition_response, error_code, INT16, 0, LAST),
        ARRAY_OF(alter_partition_response, topics, alter_partition_response_topic, 0, LAST),
};
const struct wire_message alter_partition_response_wire =
        MESSAGE(alter_partition_response, "AlterPartitionResponse", 56, 0, 3, 0);
