/* ApiVersions (key 18): which APIs and versions the broker speaks. The response header is v0 at every
 * version. */
#pragma once

#include "wire/codec.h"

struct api_versions_request {
        struct wire_str client_software_name;    /* v3+ */
        struct wire_str client_software_version; /* v3+ */
};

extern const struct wire_message api_versions_request_wire;

struct api_versions_response_api_key {
        int16_t api_key;
        int16_t min_version;
        int16_t max_version;
};

struct api_versions_response_supported_feature {
        struct wire_str name; /* v3+ */
        int16_t min_version;  /* v3+ */
        int16_t max_version;  /* v3+ */
};

struct api_versions_response_finalized_feature {
        struct wire_str name;      /* v3+ */
        int16_t max_version_level; /* v3+ */
        int16_t min_version_level; /* v3+ */
};

struct api_versions_response {
        int16_t error_code;
        WIRE_ARRAY(struct api_versions_response_api_key) api_keys;
        int32_t throttle_time_ms;                                                      /* v1+ */
        WIRE_ARRAY(struct api_versions_response_supported_feature) supported_features; /* v3+ */
        int64_t finalized_features_epoch;                                              /* v3+, default -1 */
        WIRE_ARRAY(struct api_versions_response_finalized_feature) finalized_features; /* v3+ */
        bool zk_migration_ready;                                                       /* v3+ */
};

extern const struct wire_struct api_versions_response_api_key_wire;
extern const struct wire_struct api_versions_response_supported_feature_wire;
extern const struct wire_struct api_versions_response_finalized_feature_wire;
extern const struct wire_message api_versions_response_wire;
