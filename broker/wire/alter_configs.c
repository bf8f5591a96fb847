#include "wire/alter_configs.h"
#include "wire/table.h"

static const struct wire_field alter_configs_request_config_fields[] = {
        FIELD(alter_configs_request_config, name, STRING, 0, LAST),
        FIELD(alter_configs_request_config, value, STRING, 0, LAST, NULL_FROM(0)),
};
const struct wire_struct alter_configs_request_config_wire = STRUCT_TABLE(alter_configs_request_config);

static const struct wire_field alter_configs_request_resource_fields[] = {
        FIELD(alter_configs_request_resource, resource_type, INT8, 0, LAST),
        FIELD(alter_configs_request_resource, resource_name, STRING, 0, LAST),
        ARRAY_OF(alter_configs_request_resource, configs, alter_configs_request_config, 0, LAST),
};
const struct wire_struct alter_configs_request_resource_wire = STRUCT_TABLE(alter_configs_request_resource);

static const struct wire_field alter_configs_request_fields[] = {
        ARRAY_OF(alter_configs_request, resources, alter_configs_request_resource, 0, LAST),
        FIELD(alter_configs_request, validate_only, BOOL, 0, LAST),
};
const struct wire_message alter_configs_request_wire =
        MESSAGE(alter_configs_request, "AlterConfigsRequest", 33, 0, 2, 2);

static const struct wire_field alter_configs_response_response_fields[] = {
        FIELD(alter_configs_response_response, error_code, INT16, 0, LAST),
        FIELD(alter_configs_response_response, error_message, STRING, 0, LAST, NULL_FROM(0)),
        FIELD(alter_configs_response_response, resource_type, INT8, 0, LAST),
        FIELD(alter_configs_response_response, resource_name, STRING, 0, LAST),
};
const struct wire_struct alter_configs_response_response_wire = STRUCT_TABLE(alter_configs_response_response);

static const struct wire_field alter_configs_response_fields[] = {
        FIELD(alter_configs_response, throttle_time_ms, INT32, 0, LAST),
        ARRAY_OF(alter_configs_response, responses, alter_configs_response_response, 0, LAST),
};
const struct wire_message alter_configs_response_wire =
        MESSAGE(alter_configs_response, "AlterConfigsResponse", 33, 0, 2, 2);
