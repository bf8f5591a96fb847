#include "wire/fetch.h"
#include "wire/table.h"

static const struct wire_field fetch_request_replica_state_fields[] = {
        FIELD(fetch_request_replica_state, replica_id, INT32, 15, LAST, DEFAULT(-1)),
        FIELD(fetch_request_replica_state, replica_epoch, INT64, 15, LAST, DEFAULT(-1)),
};
const struct wire_struct fetch_request_replica_state_wire = STRUCT_TABLE(fetch_request_replica_state);

static const struct wire_field fetch_request_partition_fields[] = {
        FIELD(fetch_request_partition, partition, INT32, 0, LAST),
        FIELD(fetch_request_partition, current_leader_epoch, INT32, 9, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(fetch_request_partition, fetch_offset, INT64, 0, LAST),
        FIELD(fetch_request_partition, last_fetched_epoch, INT32, 12, LAST, DEFAULT(-1)),
        FIELD(fetch_request_partition, log_start_offset, INT64, 5, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(fetch_request_partition, partition_max_bytes, INT32, 0, LAST),
        FIELD(fetch_request_partition, replica_directory_id, UUID, 17, LAST, TAG(0), IGNORABLE),
};
const struct wire_struct fetch_request_partition_wire = STRUCT_TABLE(fetch_request_partition);

static const struct wire_field fetch_request_topic_fields[] = {
        FIELD(fetch_request_topic, topic, STRING, 0, 12, IGNORABLE),
        FIELD(fetch_request_topic, topic_id, UUID, 13, LAST, IGNORABLE),
        ARRAY_OF(fetch_request_topic, partitions, fetch_request_partition, 0, LAST),
};
const struct wire_struct fetch_request_topic_wire = STRUCT_TABLE(fetch_request_topic);

static const struct wire_field fetch_request_forgotten_topic_fields[] = {
        FIELD(fetch_request_forgotten_topic, topic, STRING, 7, 12, IGNORABLE),
        FIELD(fetch_request_forgotten_topic, topic_id, UUID, 13, LAST, IGNORABLE),
        ARRAY(fetch_request_forgotten_topic, partitions, INT32, 7, LAST),
};
const struct wire_struct fetch_request_forgotten_topic_wire = STRUCT_TABLE(fetch_request_forgotten_topic);

static const struct wire_field fetch_request_fields[] = {
        FIELD(fetch_request, cluster_id, STRING, 12, LAST, NULL_FROM(12), TAG(0), DEFAULT_NULL, IGNORABLE),
        FIELD(fetch_request, replica_id, INT32, 0, 14, DEFAULT(-1)),
        STRUCT(fetch_request, replica_state, fetch_request_replica_state, 15, LAST, TAG(1)),
        FIELD(fetch_request, max_wait_ms, INT32, 0, LAST),
        FIELD(fetch_request, min_bytes, INT32, 0, LAST),
        FIELD(fetch_request, max_bytes, INT32, 3, LAST, DEFAULT(INT32_MAX), IGNORABLE),
        FIELD(fetch_request, isolation_level, INT8, 4, LAST, IGNORABLE),
        FIELD(fetch_request, session_id, INT32, 7, LAST, IGNORABLE),
        FIELD(fetch_request, session_epoch, INT32, 7, LAST, DEFAULT(-1), IGNORABLE),
        ARRAY_OF(fetch_request, topics, fetch_request_topic, 0, LAST),
        ARRAY_OF(fetch_request, forgotten_topics_data, fetch_request_forgotten_topic, 7, LAST),
        FIELD(fetch_request, rack_id, STRING, 11, LAST, IGNORABLE),
};
const struct wire_message fetch_request_wire = MESSAGE(fetch_request, "FetchRequest", 1, 4, 17, 12);

static const struct wire_field fetch_response_diverging_epoch_fields[] = {
        FIELD(fetch_response_diverging_epoch, epoch, INT32, 12, LAST, DEFAULT(-1)),
        FIELD(fetch_response_diverging_epoch, end_offset, INT64, 12, LAST, DEFAULT(-1)),
};
const struct wire_struct fetch_response_diverging_epoch_wire = STRUCT_TABLE(fetch_response_diverging_epoch);

static const struct wire_field fetch_response_current_leader_fields[] = {
        FIELD(fetch_response_current_leader, leader_id, INT32, 12, LAST, DEFAULT(-1)),
        FIELD(fetch_response_current_leader, leader_epoch, INT32, 12, LAST, DEFAULT(-1)),
};
const struct wire_struct fetch_response_current_leader_wire = STRUCT_TABLE(fetch_response_current_leader);

static const struct wire_field fetch_response_snapshot_id_fields[] = {
        FIELD(fetch_response_snapshot_id, end_offset, INT64, 0, LAST, DEFAULT(-1)),
        FIELD(fetch_response_snapshot_id, epoch, INT32, 0, LAST, DEFAULT(-1)),
};
const struct wire_struct fetch_response_snapshot_id_wire = STRUCT_TABLE(fetch_response_snapshot_id);

static const struct wire_field fetch_response_aborted_transaction_fields[] = {
        FIELD(fetch_response_aborted_transaction, producer_id, INT64, 4, LAST),
        FIELD(fetch_response_aborted_transaction, first_offset, INT64, 4, LAST),
};
const struct wire_struct fetch_response_aborted_transaction_wire =
        STRUCT_TABLE(fetch_response_aborted_transaction);

static const struct wire_field fetch_response_partition_fields[] = {
        FIELD(fetch_response_partition, partition_index, INT32, 0, LAST),
        FIELD(fetch_response_partition, error_code, INT16, 0, LAST),
        FIELD(fetch_response_partition, high_watermark, INT64, 0, LAST),
        FIELD(fetch_response_partition, last_stable_offset, INT64, 4, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(fetch_response_partition, log_start_offset, INT64, 5, LAST, DEFAULT(-1), IGNORABLE),
        STRUCT(fetch_response_partition, diverging_epoch, fetch_response_diverging_epoch, 12, LAST, TAG(0)),
        STRUCT(fetch_response_partition, current_leader, fetch_response_current_leader, 12, LAST, TAG(1)),
        STRUCT(fetch_response_partition, snapshot_id, fetch_response_snapshot_id, 12, LAST, TAG(2)),
        ARRAY_OF(fetch_response_partition, aborted_transactions, fetch_response_aborted_transaction, 4, LAST,
                 NULL_FROM(4), IGNORABLE),
        FIELD(fetch_response_partition, preferred_read_replica, INT32, 11, LAST, DEFAULT(-1)),
        FIELD(fetch_response_partition, records, RECORDS, 0, LAST, NULL_FROM(0), DEFAULT_NULL),
};
const struct wire_struct fetch_response_partition_wire = STRUCT_TABLE(fetch_response_partition);

static const struct wire_field fetch_response_topic_fields[] = {
        FIELD(fetch_response_topic, topic, STRING, 0, 12, IGNORABLE),
        FIELD(fetch_response_topic, topic_id, UUID, 13, LAST, IGNORABLE),
        ARRAY_OF(fetch_response_topic, partitions, fetch_response_partition, 0, LAST),
};
const struct wire_struct fetch_response_topic_wire = STRUCT_TABLE(fetch_response_topic);

static const struct wire_field fetch_response_node_endpoint_fields[] = {
        FIELD(fetch_response_node_endpoint, node_id, INT32, 16, LAST),
        FIELD(fetch_response_node_endpoint, host, STRING, 16, LAST),
        FIELD(fetch_response_node_endpoint, port, INT32, 16, LAST),
        FIELD(fetch_response_node_endpoint, rack, STRING, 16, LAST, NULL_FROM(16), DEFAULT_NULL),
};
const struct wire_struct fetch_response_node_endpoint_wire = STRUCT_TABLE(fetch_response_node_endpoint);

static const struct wire_field fetch_response_fields[] = {
        FIELD(fetch_response, throttle_time_ms, INT32, 1, LAST, IGNORABLE),
        FIELD(fetch_response, error_code, INT16, 7, LAST, IGNORABLE),
        FIELD(fetch_response, session_id, INT32, 7, LAST),
        ARRAY_OF(fetch_response, responses, fetch_response_topic, 0, LAST),
        ARRAY_OF(fetch_response, node_endpoints, fetch_response_node_endpoint, 16, LAST, TAG(0)),
};
const struct wire_message fetch_response_wire = MESSAGE(fetch_response, "FetchResponse", 1, 4, 17, 12);
