#include "wire/describe_configs.h"
#include "wire/table.h"

static const struct wire_field describe_configs_request_resource_fields[] = {
        FIELD(describe_configs_request_resource, resource_type, INT8, 0, LAST),
        FIELD(describe_configs_request_resource, resource_name, STRING, 0, LAST),
        ARRAY(describe_configs_request_resource, configuration_keys, STRING, 0, LAST, NULL_FROM(0)),
};
const struct wire_struct describe_configs_request_resource_wire =
        STRUCT_TABLE(describe_configs_request_resource);

static const struct wire_field describe_configs_request_fields[] = {
        ARRAY_OF(describe_configs_request, resources, describe_configs_request_resource, 0, LAST),
        FIELD(describe_configs_request, include_synonyms, BOOL, 1, LAST),
        FIELD(describe_configs_request, include_documentation, BOOL, 3, LAST),
};
const struct wire_message describe_configs_request_wire =
        MESSAGE(describe_configs_request, "DescribeConfigsRequest", 32, 1, 4, 4);

static const struct wire_field describe_configs_response_synonym_fields[] = {
        FIELD(describe_configs_response_synonym, name, STRING, 1, LAST),
        FIELD(describe_configs_response_synonym, value, STRING, 1, LAST, NULL_FROM(0)),
        FIELD(describe_configs_response_synonym, source, INT8, 1, LAST),
};
const struct wire_struct describe_configs_response_synonym_wire =
        STRUCT_TABLE(describe_configs_response_synonym);

static const struct wire_field describe_configs_response_config_fields[] = {
        FIELD(describe_configs_response_config, name, STRING, 0, LAST),
        FIELD(describe_configs_response_config, value, STRING, 0, LAST, NULL_FROM(0)),
        FIELD(describe_configs_response_config, read_only, BOOL, 0, LAST),
        FIELD(describe_configs_response_config, config_source, INT8, 1, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(describe_configs_response_config, is_sensitive, BOOL, 0, LAST),
        ARRAY_OF(describe_configs_response_config, synonyms, describe_configs_response_synonym, 1, LAST,
                 IGNORABLE),
        FIELD(describe_configs_response_config, config_type, INT8, 3, LAST, IGNORABLE),
        FIELD(describe_configs_response_config, documentation, STRING, 3, LAST, NULL_FROM(0), IGNORABLE),
};
const struct wire_struct describe_configs_response_config_wire =
        STRUCT_TABLE(describe_configs_response_config);

static const struct wire_field describe_configs_response_result_fields[] = {
        FIELD(describe_configs_response_result, error_code, INT16, 0, LAST),
        FIELD(describe_configs_response_result, error_message, STRING, 0, LAST, NULL_FROM(0)),
        FIELD(describe_configs_response_result, resource_type, INT8, 0, LAST),
        FIELD(describe_configs_response_result, resource_name, STRING, 0, LAST),
        ARRAY_OF(describe_configs_response_result, configs, describe_configs_response_config, 0, LAST),
};
const struct wire_struct describe_configs_response_result_wire =
        STRUCT_TABLE(describe_configs_response_result);

static const struct wire_field describe_configs_response_fields[] = {
        FIELD(describe_configs_response, throttle_time_ms, INT32, 0, LAST),
        ARRAY_OF(describe_configs_response, results, describe_configs_response_result, 0, LAST),
};
const struct wire_message describe_configs_response_wire =
        MESSAGE(describe_configs_response, "DescribeConfigsResponse", 32, 1, 4, 4);
