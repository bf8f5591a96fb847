#include "wire/update_metadata.h"
#include "wire/table.h"

static const struct wire_field update_metadata_request_partition_state_fields[] = {
        FIELD(update_metadata_request_partition_state, topic_name, STRING, 0, 4, IGNORABLE),
        FIELD(update_metadata_request_partition_state, partition_index, INT32, 0, LAST),
        FIELD(update_metadata_request_partition_state, controller_epoch, INT32, 0, LAST),
        FIELD(update_metadata_request_partition_state, leader, INT32, 0, LAST),
        FIELD(update_metadata_request_partition_state, leader_epoch, INT32, 0, LAST),
        ARRAY(update_metadata_request_partition_state, isr, INT32, 0, LAST),
        FIELD(update_metadata_request_partition_state, zk_version, INT32, 0, LAST),
        ARRAY(update_metadata_request_partition_state, replicas, INT32, 0, LAST),
        ARRAY(update_metadata_request_partition_state, offline_replicas, INT32, 4, LAST, IGNORABLE),
};
const struct wire_struct update_metadata_request_partition_state_wire =
        STRUCT_TABLE(update_metadata_request_partition_state);

static const struct wire_field update_metadata_request_topic_state_fields[] = {
        FIELD(update_metadata_request_topic_state, topic_name, STRING, 5, LAST),
        FIELD(update_metadata_request_topic_state, topic_id, UUID, 7, LAST, IGNORABLE),
        ARRAY_OF(update_metadata_request_topic_state, partition_states,
                 update_metadata_request_partition_state, 5, LAST),
};
const struct wire_struct update_metadata_request_topic_state_wire =
        STRUCT_TABLE(update_metadata_request_topic_state);

static const struct wire_field update_metadata_request_endpoint_fields[] = {
        FIELD(update_metadata_request_endpoint, port, INT32, 1, LAST),
        FIELD(update_metadata_request_endpoint, host, STRING, 1, LAST),
        FIELD(update_metadata_request_endpoint, listener, STRING, 3, LAST, IGNORABLE),
        FIELD(update_metadata_request_endpoint, security_protocol, INT16, 1, LAST),
};
const struct wire_struct update_metadata_request_endpoint_wire =
        STRUCT_TABLE(update_metadata_request_endpoint);

static const struct wire_field update_metadata_request_live_broker_fields[] = {
        FIELD(update_metadata_request_live_broker, id, INT32, 0, LAST),
        FIELD(update_metadata_request_live_broker, v0_host, STRING, 0, 0, IGNORABLE),
        FIELD(update_metadata_request_live_broker, v0_port, INT32, 0, 0, IGNORABLE),
        ARRAY_OF(update_metadata_request_live_broker, endpoints, update_metadata_request_endpoint, 1, LAST,
                 IGNORABLE),
        FIELD(update_metadata_request_live_broker, rack, STRING, 2, LAST, NULL_FROM(0), IGNORABLE),
};
const struct wire_struct update_metadata_request_live_broker_wire =
        STRUCT_TABLE(update_metadata_request_live_broker);

static const struct wire_field update_metadata_request_fields[] = {
        FIELD(update_metadata_request, controller_id, INT32, 0, LAST),
        FIELD(update_metadata_request, is_kraft_controller, BOOL, 8, LAST),
        FIELD(update_metadata_request, type, INT8, 8, LAST, TAG(0)),
        FIELD(update_metadata_request, controller_epoch, INT32, 0, LAST),
        FIELD(update_metadata_request, broker_epoch, INT64, 5, LAST, DEFAULT(-1), IGNORABLE),
        ARRAY_OF(update_metadata_request, ungrouped_partition_states, update_metadata_request_partition_state,
                 0, 4),
        ARRAY_OF(update_metadata_request, topic_states, update_metadata_request_topic_state, 5, LAST),
        ARRAY_OF(update_metadata_request, live_brokers, update_metadata_request_live_broker, 0, LAST),
};
const struct wire_message update_metadata_request_wire =
        MESSAGE(update_metadata_request, "UpdateMetadataRequest", 6, 0, 8, 6);

static const struct wire_field update_metadata_response_fields[] = {
        FIELD(update_metadata_response, error_code, INT16, 0, LAST),
};
const struct wire_message update_metadata_response_wire =
        MESSAGE(update_metadata_response, "UpdateMetadataResponse", 6, 0, 8, 6);
