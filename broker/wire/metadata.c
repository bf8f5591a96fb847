#include "wire/metadata.h"
#include "wire/table.h"

static const struct wire_field metadata_request_topic_fields[] = {
        FIELD(metadata_request_topic, topic_id, UUID, 10, LAST, IGNORABLE),
        FIELD(metadata_request_topic, name, STRING, 0, LAST, NULL_FROM(10)),
};
const struct wire_struct metadata_request_topic_wire = STRUCT_TABLE(metadata_request_topic);

static const struct wire_field metadata_request_fields[] = {
        ARRAY_OF(metadata_request, topics, metadata_request_topic, 0, LAST, NULL_FROM(1)),
        FIELD(metadata_request, allow_auto_topic_creation, BOOL, 4, LAST, DEFAULT(true)),
        FIELD(metadata_request, include_cluster_authorized_operations, BOOL, 8, 10),
        FIELD(metadata_request, include_topic_authorized_operations, BOOL, 8, LAST),
};
const struct wire_message metadata_request_wire = MESSAGE(metadata_request, "MetadataRequest", 3, 0, 12, 9);

static const struct wire_field metadata_response_broker_fields[] = {
        FIELD(metadata_response_broker, node_id, INT32, 0, LAST),
        FIELD(metadata_response_broker, host, STRING, 0, LAST),
        FIELD(metadata_response_broker, port, INT32, 0, LAST),
        FIELD(metadata_response_broker, rack, STRING, 1, LAST, NULL_FROM(1), DEFAULT_NULL, IGNORABLE),
};
const struct wire_struct metadata_response_broker_wire = STRUCT_TABLE(metadata_response_broker);

static const struct wire_field metadata_response_partition_fields[] = {
        FIELD(metadata_response_partition, error_code, INT16, 0, LAST),
        FIELD(metadata_response_partition, partition_index, INT32, 0, LAST),
        FIELD(metadata_response_partition, leader_id, INT32, 0, LAST),
        FIELD(metadata_response_partition, leader_epoch, INT32, 7, LAST, DEFAULT(-1), IGNORABLE),
        ARRAY(metadata_response_partition, replica_nodes, INT32, 0, LAST),
        ARRAY(metadata_response_partition, isr_nodes, INT32, 0, LAST),
        ARRAY(metadata_response_partition, offline_replicas, INT32, 5, LAST, IGNORABLE),
};
const struct wire_struct metadata_response_partition_wire = STRUCT_TABLE(metadata_response_partition);

static const struct wire_field metadata_response_topic_fields[] = {
        FIELD(metadata_response_topic, error_code, INT16, 0, LAST),
        FIELD(metadata_response_topic, name, STRING, 0, LAST, NULL_FROM(12)),
        FIELD(metadata_response_topic, topic_id, UUID, 10, LAST, IGNORABLE),
        FIELD(metadata_response_topic, is_internal, BOOL, 1, LAST, IGNORABLE),
        ARRAY_OF(metadata_response_topic, partitions, metadata_response_partition, 0, LAST),
        FIELD(metadata_response_topic, topic_authorized_operations, INT32, 8, LAST, DEFAULT(INT32_MIN)),
};
const struct wire_struct metadata_response_topic_wire = STRUCT_TABLE(metadata_response_topic);

static const struct wire_field metadata_response_fields[] = {
        FIELD(metadata_response, throttle_time_ms, INT32, 3, LAST, IGNORABLE),
        ARRAY_OF(metadata_response, brokers, metadata_response_broker, 0, LAST),
        FIELD(metadata_response, cluster_id, STRING, 2, LAST, NULL_FROM(2), DEFAULT_NULL, IGNORABLE),
        FIELD(metadata_response, controller_id, INT32, 1, LAST, DEFAULT(-1), IGNORABLE),
        ARRAY_OF(metadata_response, topics, metadata_response_topic, 0, LAST),
        FIELD(metadata_response, cluster_authorized_operations, INT32, 8, 10, DEFAULT(INT32_MIN)),
};
const struct wire_message metadata_response_wire =
        MESSAGE(metadata_response, "MetadataResponse", 3, 0, 12, 9);
