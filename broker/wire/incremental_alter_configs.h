/* IncrementalAlterConfigs (key 44): single settings (KIP-339). */
#pragma once

#include "wire/codec.h"

struct incremental_alter_configs_request_config {
        struct wire_str name;
        int8_t config_operation; /* 0 set, 1 delete, 2 append, 3 subtract */
        struct wire_str value;   /* may be null */
};

struct incremental_alter_configs_request_resource {
        int8_t resource_type;
        struct wire_str resource_name;
        WIRE_ARRAY(struct incremental_alter_configs_request_config) configs;
};

struct incremental_alter_configs_request {
        WIRE_ARRAY(struct incremental_alter_configs_request_resource) resources;
        bool validate_only;
};

extern const struct wire_struct incremental_alter_configs_request_config_wire;
extern const struct wire_struct incremental_alter_configs_request_resource_wire;
extern const struct wire_message incremental_alter_configs_request_wire;

struct incremental_alter_configs_response_response {
        int16_t error_code;
        struct wire_str error_message; /* may be null */
        int8_t resource_type;
        struct wire_str resource_name;
};

struct incremental_alter_configs_response {
        int32_t throttle_time_ms;
        WIRE_ARRAY(struct incremental_alter_configs_response_response) responses;
};

extern const struct wire_struct incremental_alter_configs_response_response_wire;
extern const struct wire_message incremental_alter_configs_response_wire;
