#include "wire/find_coordinator.h"
#include "wire/table.h"

static const struct wire_field find_coordinator_request_fields[] = {
        FIELD(find_coordinator_request, key, STRING, 0, 3),
        FIELD(find_coordinator_request, key_type, INT8, 1, LAST),
        ARRAY(find_coordinator_request, coordinator_keys, STRING, 4, LAST),
};
const struct wire_message find_coordinator_request_wire =
        MESSAGE(find_coordinator_request, "FindCoordinatorRequest", 10, 0, 6, 3);

static const struct wire_field find_coordinator_response_coordinator_fields[] = {
        FIELD(find_coordinator_response_coordinator, key, STRING, 4, LAST),
        FIELD(find_coordinator_response_coordinator, node_id, INT32, 4, LAST),
        FIELD(find_coordinator_response_coordinator, host, STRING, 4, LAST),
        FIELD(find_coordinator_response_coordinator, port, INT32, 4, LAST),
        FIELD(find_coordinator_response_coordinator, error_code, INT16, 4, LAST),
        FIELD(find_coordinator_response_coordinator, error_message, STRING, 4, LAST, NULL_FROM(4), IGNORABLE),
};
const struct wire_struct find_coordinator_response_coordinator_wire =
        STRUCT_TABLE(find_coordinator_response_coordinator);

static const struct wire_field find_coordinator_response_fields[] = {
        FIELD(find_coordinator_response, throttle_time_ms, INT32, 1, LAST, IGNORABLE),
        FIELD(find_coordinator_response, error_code, INT16, 0, 3),
        FIELD(find_coordinator_response, error_message, STRING, 1, 3, NULL_FROM(1), IGNORABLE),
        FIELD(find_coordinator_response, node_id, INT32, 0, 3),
        FIELD(find_coordinator_response, host, STRING, 0, 3),
        FIELD(find_coordinator_response, port, INT32, 0, 3),
        ARRAY_OF(find_coordinator_response, coordinators, find_coordinator_response_coordinator, 4, LAST),
};
const struct wire_message find_coordinator_response_wire =
        MESSAGE(find_coordinator_response, "FindCoordinatorResponse", 10, 0, 6, 3);
