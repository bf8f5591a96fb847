#include "wire/incremental_alter_configs.h"
#include "wire/table.h"

static const struct wire_field incremental_alter_configs_request_config_fields[] = {
        FIELD(incremental_alter_configs_request_config, name, STRING, 0, LAST),
        FIELD(incremental_alter_configs_request_config, config_operation, INT8, 0, LAST),
        FIELD(incremental_alter_configs_request_config, value, STRING, 0, LAST, NULL_FROM(0)),
};
const struct wire_struct incremental_alter_configs_request_config_wire =
        STRUCT_TABLE(incremental_alter_configs_request_config);

static const struct wire_field incremental_alter_configs_request_resource_fields[] = {
        FIELD(incremental_alter_configs_request_resource, resource_type, INT8, 0, LAST),
        FIELD(incremental_alter_configs_request_resource, resource_name, STRING, 0, LAST),
        ARRAY_OF(incremental_alter_configs_request_resource, configs,
                 incremental_alter_configs_request_config, 0, LAST),
};
const struct wire_struct incremental_alter_configs_request_resource_wire =
        STRUCT_TABLE(incremental_alter_configs_request_resource);

static const struct wire_field incremental_alter_configs_request_fields[] = {
        ARRAY_OF(incremental_alter_configs_request, resources, incremental_alter_configs_request_resource, 0,
                 LAST),
        FIELD(incremental_alter_configs_request, validate_only, BOOL, 0, LAST),
};
const struct wire_message incremental_alter_configs_request_wire =
        MESSAGE(incremental_alter_configs_request, "IncrementalAlterConfigsRequest", 44, 0, 1, 1);

static const struct wire_field incremental_alter_configs_response_response_fields[] = {
        FIELD(incremental_alter_configs_response_response, error_code, INT16, 0, LAST),
        FIELD(incremental_alter_configs_response_response, error_message, STRING, 0, LAST, NULL_FROM(0)),
        FIELD(incremental_alter_configs_response_response, resource_type, INT8, 0, LAST),
        FIELD(incremental_alter_configs_response_response, resource_name, STRING, 0, LAST),
};
const struct wire_struct incremental_alter_configs_response_response_wire =
        STRUCT_TABLE(incremental_alter_configs_response_response);

static const struct wire_field incremental_alter_configs_response_fields[] = {
        FIELD(incremental_alter_configs_response, throttle_time_ms, INT32, 0, LAST),
        ARRAY_OF(incremental_alter_configs_response, responses, incremental_alter_configs_response_response,
                 0, LAST),
};
const struct wire_message incremental_alter_configs_response_wire =
        MESSAGE(incremental_alter_configs_response, "IncrementalAlterConfigsResponse", 44, 0, 1, 1);
