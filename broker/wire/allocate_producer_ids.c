#include "wire/allocate_producer_ids.h"
#include "wire/table.h"

static const struct wire_field allocate_producer_ids_request_fields[] = {
        FIELD(allocate_producer_ids_request, broker_id, INT32, 0, LAST),
        FIELD(allocate_producer_ids_request, broker_epoch, INT64, 0, LAST, DEFAULT(-1)),
};
const struct wire_message allocate_producer_ids_request_wire =
        MESSAGE(allocate_producer_ids_request, "AllocateProducerIdsRequest", 67, 0, 0, 0);

static const struct wire_field allocate_producer_ids_response_fields[] = {
        FIELD(allocate_producer_ids_response, throttle_time_ms, INT32, 0, LAST),
        FIELD(allocate_producer_ids_response, error_code, INT16, 0, LAST),
        FIELD(allocate_producer_ids_response, producer_id_start, INT64, 0, LAST),
        FIELD(allocate_producer_ids_response, producer_id_len, INT32, 0, LAST),
};
const struct wire_message allocate_producer_ids_response_wire =
        MESSAGE(allocate_producer_ids_response, "AllocateProducerIdsResponse", 67, 0, 0, 0);
