/* CreateTopics (key 19). */
#pragma once

#include "wire/codec.h"

struct create_topics_request_assignment {
        int32_t partition_index;
        WIRE_ARRAY(int32_t) broker_ids;
};

struct create_topics_request_config {
        struct wire_str name;
        struct wire_str value; /* may be null */
};

struct create_topics_request_topic {
        struct wire_str name;
        int32_t num_partitions;
        int16_t replication_factor;
        WIRE_ARRAY(struct create_topics_request_assignment) assignments;
        WIRE_ARRAY(struct create_topics_request_config) configs;
};

struct create_topics_request {
        WIRE_ARRAY(struct create_topics_request_topic) topics;
        int32_t timeout_ms; /* default 60000 */
        bool validate_only;
};

extern const struct wire_struct create_topics_request_assignment_wire;
extern const struct wire_struct create_topics_request_config_wire;
extern const struct wire_struct create_topics_request_topic_wire;
extern const struct wire_message create_topics_request_wire;

struct create_topics_response_config {
        struct wire_str name;  /* v5+ */
        struct wire_str value; /* v5+, may be null */
        bool read_only;        /* v5+ */
        int8_t config_source;  /* v5+, default -1 */
        bool is_sensitive;     /* v5+ */
};

struct create_topics_response_topic {
        struct wire_str name;
        struct uuid topic_id; /* v7+ */
        int16_t error_code;
        struct wire_str error_message;                            /* may be null */
        int16_t topic_config_error_code;                          /* v5+ */
        int32_t num_partitions;                                   /* v5+, default -1 */
        int16_t replication_factor;                               /* v5+, default -1 */
        WIRE_ARRAY(struct create_topics_response_config) configs; /* v5+, may be null */
};

struct create_topics_response {
        int32_t throttle_time_ms;
        WIRE_ARRAY(struct create_topics_response_topic) topics;
};

extern const struct wire_struct create_topics_response_config_wire;
extern const struct wire_struct create_topics_response_topic_wire;
extern const struct wire_message create_topics_response_wire;
