#include "wire/stop_replica.h"
#include "wire/table.h"

static const struct wire_field stop_replica_request_ungrouped_partition_fields[] = {
        FIELD(stop_replica_request_ungrouped_partition, topic_name, STRING, 0, 0),
        FIELD(stop_replica_request_ungrouped_partition, partition_index, INT32, 0, 0),
};
const struct wire_struct stop_replica_request_ungrouped_partition_wire =
        STRUCT_TABLE(stop_replica_request_ungrouped_partition);

static const struct wire_field stop_replica_request_topic_fields[] = {
        FIELD(stop_replica_request_topic, name, STRING, 1, 2),
        ARRAY(stop_replica_request_topic, partition_indexes, INT32, 1, 2),
};
const struct wire_struct stop_replica_request_topic_wire = STRUCT_TABLE(stop_replica_request_topic);

static const struct wire_field stop_replica_request_partition_state_fields[] = {
        FIELD(stop_replica_request_partition_state, partition_index, INT32, 3, LAST),
        FIELD(stop_replica_request_partition_state, leader_epoch, INT32, 3, LAST, DEFAULT(-1)),
        FIELD(stop_replica_request_partition_state, delete_partition, BOOL, 3, LAST, ZERO_OR_ONE),
};
const struct wire_struct stop_replica_request_partition_state_wire =
        STRUCT_TABLE(stop_replica_request_partition_state);

static const struct wire_field stop_replica_request_topic_state_fields[] = {
        FIELD(stop_replica_request_topic_state, topic_name, STRING, 3, LAST),
        ARRAY_OF(stop_replica_request_topic_state, partition_states, stop_replica_request_partition_state, 3,
                 LAST),
};
const struct wire_struct stop_replica_request_topic_state_wire =
        STRUCT_TABLE(stop_replica_request_topic_state);

static const struct wire_field stop_replica_request_fields[] = {
        FIELD(stop_replica_request, controller_id, INT32, 0, LAST),
        FIELD(stop_replica_request, is_kraft_controller, BOOL, 4, LAST),
        FIELD(stop_replica_request, controller_epoch, INT32, 0, LAST),
        FIELD(stop_replica_request, broker_epoch, INT64, 1, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(stop_replica_request, delete_partitions, BOOL, 0, 2, ZERO_OR_ONE),
        ARRAY_OF(stop_replica_request, ungrouped_partitions, stop_replica_request_ungrouped_partition, 0, 0),
        ARRAY_OF(stop_replica_request, topics, stop_replica_request_topic, 1, 2),
        ARRAY_OF(stop_replica_request, topic_states, stop_replica_request_topic_state, 3, LAST),
};
const struct wire_message stop_replica_request_wire =
        MESSAGE(stop_replica_request, "StopReplicaRequest", 5, 0, 4, 2);

static const struct wire_field stop_replica_response_partition_error_fields[] = {
        FIELD(stop_replica_response_partition_error, topic_name, STRING, 0, LAST),
        FIELD(stop_replica_response_partition_error, partition_index, INT32, 0, LAST),
        FIELD(stop_replica_response_partition_error, error_code, INT16, 0, LAST),
};
const struct wire_struct stop_replica_response_partition_error_wire =
        STRUCT_TABLE(stop_replica_response_partition_error);

static const struct wire_field stop_replica_response_fields[] = {
        FIELD(stop_replica_response, error_code, INT16, 0, LAST),
        ARRAY_OF(stop_replica_response, partition_errors, stop_replica_response_partition_error, 0, LAST),
};
const struct wire_message stop_replica_response_wire =
        MESSAGE(stop_replica_response, "StopReplicaResponse", 5, 0, 4, 2);
