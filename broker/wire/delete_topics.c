#include "wire/delete_topics.h"
#include "wire/table.h"

static const struct wire_field delete_topics_request_topic_fields[] = {
        FIELD(delete_topics_request_topic, name, STRING, 6, LAST, NULL_FROM(6), DEFAULT_NULL),
        FIELD(delete_topics_request_topic, topic_id, UUID, 6, LAST),
};
const struct wire_struct delete_topics_request_topic_wire = STRUCT_TABLE(delete_topics_request_topic);

static const struct wire_field delete_topics_request_fields[] = {
        ARRAY_OF(delete_topics_request, topics, delete_topics_request_topic, 6, LAST),
        ARRAY(delete_topics_request, topic_names, STRING, 0, 5, IGNORABLE),
        FIELD(delete_topics_request, timeout_ms, INT32, 0, LAST),
};
const struct wire_message delete_topics_request_wire =
        MESSAGE(delete_topics_request, "DeleteTopicsRequest", 20, 1, 6, 4);

static const struct wire_field delete_topics_response_response_fields[] = {
        FIELD(delete_topics_response_response, name, STRING, 0, LAST, NULL_FROM(6)),
        FIELD(delete_topics_response_response, topic_id, UUID, 6, LAST, IGNORABLE),
        FIELD(delete_topics_response_response, error_code, INT16, 0, LAST),
        FIELD(delete_topics_response_response, error_message, STRING, 5, LAST, NULL_FROM(5), DEFAULT_NULL,
              IGNORABLE),
};
const struct wire_struct delete_topics_response_response_wire = STRUCT_TABLE(delete_topics_response_response);

static const struct wire_field delete_topics_response_fields[] = {
        FIELD(delete_topics_response, throttle_time_ms, INT32, 1, LAST, IGNORABLE),
        ARRAY_OF(delete_topics_response, responses, delete_topics_response_response, 0, LAST),
};
const struct wire_message delete_topics_response_wire =
        MESSAGE(delete_topics_response, "DeleteTopicsResponse", 20, 1, 6, 4);
