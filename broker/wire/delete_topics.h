/* DeleteTopics (key 20): topic_names up to v5, topics (a name or an id) from v6. */
#pragma once

#include "wire/codec.h"

struct delete_topics_request_topic {
        struct wire_str name; /* v6+, may be null */
        struct uuid topic_id; /* v6+ */
};

struct delete_topics_request {
        WIRE_ARRAY(struct delete_topics_request_topic) topics; /* v6+ */
        WIRE_ARRAY(struct wire_str) topic_names;               /* v0-5 */
        int32_t timeout_ms;
};

extern const struct wire_struct delete_topics_request_topic_wire;
extern const struct wire_message delete_topics_request_wire;

struct delete_topics_response_response {
        struct wire_str name; /* may be null from v6 */
        struct uuid topic_id; /* v6+ */
        int16_t error_code;
        struct wire_str error_message; /* v5+, may be null */
};

struct delete_topics_response {
        int32_t throttle_time_ms;
        WIRE_ARRAY(struct delete_topics_response_response) responses;
};

extern const struct wire_struct delete_topics_response_response_wire;
extern const struct wire_message delete_topics_response_wire;
