#include "wire/api_versions.h"
#include "wire/table.h"

static const struct wire_field api_versions_request_fields[] = {
        FIELD(api_versions_request, client_software_name, STRING, 3, LAST, IGNORABLE),
        FIELD(api_versions_request, client_software_version, STRING, 3, LAST, IGNORABLE),
};
const struct wire_message api_versions_request_wire =
        MESSAGE(api_versions_request, "ApiVersionsRequest", 18, 0, 4, 3);

static const struct wire_field api_versions_response_api_key_fields[] = {
        FIELD(api_versions_response_api_key, api_key, INT16, 0, LAST),
        FIELD(api_versions_response_api_key, min_version, INT16, 0, LAST),
        FIELD(api_versions_response_api_key, max_version, INT16, 0, LAST),
};
const struct wire_struct api_versions_response_api_key_wire = STRUCT_TABLE(api_versions_response_api_key);

static const struct wire_field api_versions_response_supported_feature_fields[] = {
        FIELD(api_versions_response_supported_feature, name, STRING, 3, LAST),
        FIELD(api_versions_response_supported_feature, min_version, INT16, 3, LAST),
        FIELD(api_versions_response_supported_feature, max_version, INT16, 3, LAST),
};
const struct wire_struct api_versions_response_supported_feature_wire =
        STRUCT_TABLE(api_versions_response_supported_feature);

static const struct wire_field api_versions_response_finalized_feature_fields[] = {
        FIELD(api_versions_response_finalized_feature, name, STRING, 3, LAST),
        FIELD(api_versions_response_finalized_feature, max_version_level, INT16, 3, LAST),
        FIELD(api_versions_response_finalized_feature, min_version_level, INT16, 3, LAST),
};
const struct wire_struct api_versions_response_finalized_feature_wire =
        STRUCT_TABLE(api_versions_response_finalized_feature);

static const struct wire_field api_versions_response_fields[] = {
        FIELD(api_versions_response, error_code, INT16, 0, LAST),
        ARRAY_OF(api_versions_response, api_keys, api_versions_response_api_key, 0, LAST),
        FIELD(api_versions_response, throttle_time_ms, INT32, 1, LAST, IGNORABLE),
        ARRAY_OF(api_versions_response, supported_features, api_versions_response_supported_feature, 3, LAST,
                 TAG(0), IGNORABLE),
        FIELD(api_versions_response, finalized_features_epoch, INT64, 3, LAST, TAG(1), DEFAULT(-1),
              IGNORABLE),
        ARRAY_OF(api_versions_response, finalized_features, api_versions_response_finalized_feature, 3, LAST,
                 TAG(2), IGNORABLE),
        FIELD(api_versions_response, zk_migration_ready, BOOL, 3, LAST, TAG(3), IGNORABLE),
};
const struct wire_message api_versions_response_wire =
        MESSAGE(api_versions_response, "ApiVersionsResponse", 18, 0, 4, 3);
