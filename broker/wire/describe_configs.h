/* DescribeConfigs (key 32). Null configuration_keys: all of them. */
#pragma once

#include "wire/codec.h"

struct describe_configs_request_resource {
        int8_t resource_type;
        struct wire_str resource_name;
        WIRE_ARRAY(struct wire_str) configuration_keys; /* may be null */
};

struct describe_configs_request {
        WIRE_ARRAY(struct describe_configs_request_resource) resources;
        bool include_synonyms;
        bool include_documentation; /* v3+ */
};

extern const struct wire_struct describe_configs_request_resource_wire;
extern const struct wire_message describe_configs_request_wire;

struct describe_configs_response_synonym {
        struct wire_str name;
        struct wire_str value; /* may be null */
        int8_t source;
};

struct describe_configs_response_config {
        struct wire_str name;
        struct wire_str value; /* may be null */
        bool read_only;
        int8_t config_source; /* default -1 */
        bool is_sensitive;
        WIRE_ARRAY(struct describe_configs_response_synonym) synonyms;
        int8_t config_type;            /* v3+ */
        struct wire_str documentation; /* v3+, may be null */
};

struct describe_configs_response_result {
        int16_t error_code;
        struct wire_str error_message; /* may be null */
        int8_t resource_type;
        struct wire_str resource_name;
        WIRE_ARRAY(struct describe_configs_response_config) configs;
};

struct describe_configs_response {
        int32_t throttle_time_ms;
        WIRE_ARRAY(struct describe_configs_response_result) results;
};

extern const struct wire_struct describe_configs_response_synonym_wire;
extern const struct wire_struct describe_configs_response_config_wire;
extern const struct wire_struct describe_configs_response_result_wire;
extern const struct wire_message describe_configs_response_wire;
