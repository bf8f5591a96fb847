#include "wire/create_topics.h"
#include "wire/table.h"

static const struct wire_field create_topics_request_assignment_fields[] = {
        FIELD(create_topics_request_assignment, partition_index, INT32, 0, LAST),
        ARRAY(create_topics_request_assignment, broker_ids, INT32, 0, LAST),
};
const struct wire_struct create_topics_request_assignment_wire =
        STRUCT_TABLE(create_topics_request_assignment);

static const struct wire_field create_topics_request_config_fields[] = {
        FIELD(create_topics_request_config, name, STRING, 0, LAST),
        FIELD(create_topics_request_config, value, STRING, 0, LAST, NULL_FROM(0)),
};
const struct wire_struct create_topics_request_config_wire = STRUCT_TABLE(create_topics_request_config);

static const struct wire_field create_topics_request_topic_fields[] = {
        FIELD(create_topics_request_topic, name, STRING, 0, LAST),
        FIELD(create_topics_request_topic, num_partitions, INT32, 0, LAST),
        FIELD(create_topics_request_topic, replication_factor, INT16, 0, LAST),
        ARRAY_OF(create_topics_request_topic, assignments, create_topics_request_assignment, 0, LAST),
        ARRAY_OF(create_topics_request_topic, configs, create_topics_request_config, 0, LAST),
};
const struct wire_struct create_topics_request_topic_wire = STRUCT_TABLE(create_topics_request_topic);

static const struct wire_field create_topics_request_fields[] = {
        ARRAY_OF(create_topics_request, topics, create_topics_request_topic, 0, LAST),
        FIELD(create_topics_request, timeout_ms, INT32, 0, LAST, DEFAULT(60000)),
        FIELD(create_topics_request, validate_only, BOOL, 1, LAST),
};
const struct wire_message create_topics_request_wire =
        MESSAGE(create_topics_request, "CreateTopicsRequest", 19, 2, 7, 5);

static const struct wire_field create_topics_response_config_fields[] = {
        FIELD(create_topics_response_config, name, STRING, 5, LAST),
        FIELD(create_topics_response_config, value, STRING, 5, LAST, NULL_FROM(5)),
        FIELD(create_topics_response_config, read_only, BOOL, 5, LAST),
        FIELD(create_topics_response_config, config_source, INT8, 5, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(create_topics_response_config, is_sensitive, BOOL, 5, LAST),
};
const struct wire_struct create_topics_response_config_wire = STRUCT_TABLE(create_topics_response_config);

static const struct wire_field create_topics_response_topic_fields[] = {
        FIELD(create_topics_response_topic, name, STRING, 0, LAST),
        FIELD(create_topics_response_topic, topic_id, UUID, 7, LAST, IGNORABLE),
        FIELD(create_topics_response_topic, error_code, INT16, 0, LAST),
        FIELD(create_topics_response_topic, error_message, STRING, 1, LAST, NULL_FROM(0), IGNORABLE),
        FIELD(create_topics_response_topic, topic_config_error_code, INT16, 5, LAST, TAG(0), IGNORABLE),
        FIELD(create_topics_response_topic, num_partitions, INT32, 5, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(create_topics_response_topic, replication_factor, INT16, 5, LAST, DEFAULT(-1), IGNORABLE),
        ARRAY_OF(create_topics_response_topic, configs, create_topics_response_config, 5, LAST, NULL_FROM(5),
                 IGNORABLE),
};
const struct wire_struct create_topics_response_topic_wire = STRUCT_TABLE(create_topics_response_topic);

static const struct wire_field create_topics_response_fields[] = {
        FIELD(create_topics_response, throttle_time_ms, INT32, 2, LAST, IGNORABLE),
        ARRAY_OF(create_topics_response, topics, create_topics_response_topic, 0, LAST),
};
const struct wire_message create_topics_response_wire =
        MESSAGE(create_topics_response, "CreateTopicsResponse", 19, 2, 7, 5);
