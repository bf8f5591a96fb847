#include "wire/leader_and_isr.h"
#include "wire/table.h"

static const struct wire_field leader_and_isr_request_partition_state_fields[] = {
        FIELD(leader_and_isr_request_partition_state, topic_name, STRING, 0, 1, IGNORABLE),
        FIELD(leader_and_isr_request_partition_state, partition_index, INT32, 0, LAST),
        FIELD(leader_and_isr_request_partition_state, controller_epoch, INT32, 0, LAST),
        FIELD(leader_and_isr_request_partition_state, leader, INT32, 0, LAST),
        FIELD(leader_and_isr_request_partition_state, leader_epoch, INT32, 0, LAST),
        ARRAY(leader_and_isr_request_partition_state, isr, INT32, 0, LAST),
        FIELD(leader_and_isr_request_partition_state, partition_epoch, INT32, 0, LAST),
        ARRAY(leader_and_isr_request_partition_state, replicas, INT32, 0, LAST),
        ARRAY(leader_and_isr_request_partition_state, adding_replicas, INT32, 3, LAST, IGNORABLE),
        ARRAY(leader_and_isr_request_partition_state, removing_replicas, INT32, 3, LAST, IGNORABLE),
        FIELD(leader_and_isr_request_partition_state, is_new, BOOL, 1, LAST, IGNORABLE),
        FIELD(leader_and_isr_request_partition_state, leader_recovery_state, INT8, 6, LAST),
};
const struct wire_struct leader_and_isr_request_partition_state_wire =
        STRUCT_TABLE(leader_and_isr_request_partition_state);

static const struct wire_field leader_and_isr_request_topic_state_fields[] = {
        FIELD(leader_and_isr_request_topic_state, topic_name, STRING, 2, LAST),
        FIELD(leader_and_isr_request_topic_state, topic_id, UUID, 5, LAST, IGNORABLE),
        ARRAY_OF(leader_and_isr_request_topic_state, partition_states, leader_and_isr_request_partition_state,
                 2, LAST),
};
const struct wire_struct leader_and_isr_request_topic_state_wire =
        STRUCT_TABLE(leader_and_isr_request_topic_state);

static const struct wire_field leader_and_isr_request_live_leader_fields[] = {
        FIELD(leader_and_isr_request_live_leader, broker_id, INT32, 0, LAST),
        FIELD(leader_and_isr_request_live_leader, host_name, STRING, 0, LAST),
        FIELD(leader_and_isr_request_live_leader, port, INT32, 0, LAST),
};
const struct wire_struct leader_and_isr_request_live_leader_wire =
        STRUCT_TABLE(leader_and_isr_request_live_leader);

static const struct wire_field leader_and_isr_request_fields[] = {
        FIELD(leader_and_isr_request, controller_id, INT32, 0, LAST),
        FIELD(leader_and_isr_request, is_kraft_controller, BOOL, 7, LAST),
        FIELD(leader_and_isr_request, controller_epoch, INT32, 0, LAST),
        FIELD(leader_and_isr_request, broker_epoch, INT64, 2, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(leader_and_isr_request, type, INT8, 5, LAST),
        ARRAY_OF(leader_and_isr_request, ungrouped_partition_states, leader_and_isr_request_partition_state,
                 0, 1),
        ARRAY_OF(leader_and_isr_request, topic_states, leader_and_isr_request_topic_state, 2, LAST),
        ARRAY_OF(leader_and_isr_request, live_leaders, leader_and_isr_request_live_leader, 0, LAST),
};
const struct wire_message leader_and_isr_request_wire =
        MESSAGE(leader_and_isr_request, "LeaderAndIsrRequest", 4, 0, 7, 4);

static const struct wire_field leader_and_isr_response_partition_error_fields[] = {
        FIELD(leader_and_isr_response_partition_error, topic_name, STRING, 0, 4, IGNORABLE),
        FIELD(leader_and_isr_response_partition_error, partition_index, INT32, 0, LAST),
        FIELD(leader_and_isr_response_partition_error, error_code, INT16, 0, LAST),
};
const struct wire_struct leader_and_isr_response_partition_error_wire =
        STRUCT_TABLE(leader_and_isr_response_partition_error);

static const struct wire_field leader_and_isr_response_topic_fields[] = {
        FIELD(leader_and_isr_response_topic, topic_id, UUID, 5, LAST),
        ARRAY_OF(leader_and_isr_response_topic, partition_errors, leader_and_isr_response_partition_error, 5,
                 LAST),
};
const struct wire_struct leader_and_isr_response_topic_wire = STRUCT_TABLE(leader_and_isr_response_topic);

static const struct wire_field leader_and_isr_response_fields[] = {
        FIELD(leader_and_isr_response, error_code, INT16, 0, LAST),
        ARRAY_OF(leader_and_isr_response, partition_errors, leader_and_isr_response_partition_error, 0, 4),
        ARRAY_OF(leader_and_isr_response, topics, leader_and_isr_response_topic, 5, LAST),
};
const struct wire_message leader_and_isr_response_wire =
        MESSAGE(leader_and_isr_response, "LeaderAndIsrResponse", 4, 0, 7, 4);
