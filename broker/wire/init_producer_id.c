#include "wire/init_producer_id.h"
#include "wire/table.h"

static const struct wire_field init_producer_id_request_fields[] = {
        FIELD(init_producer_id_request, transactional_id, STRING, 0, LAST, NULL_FROM(0)),
        FIELD(init_producer_id_request, transaction_timeout_ms, INT32, 0, LAST),
        FIELD(init_producer_id_request, producer_id, INT64, 3, LAST, DEFAULT(-1)),
        FIELD(init_producer_id_request, producer_epoch, INT16, 3, LAST, DEFAULT(-1)),
};
const struct wire_message init_producer_id_request_wire =
        MESSAGE(init_producer_id_request, "InitProducerIdRequest", 22, 0, 5, 2);

static const struct wire_field init_producer_id_response_fields[] = {
        FIELD(init_producer_id_response, throttle_time_ms, INT32, 0, LAST, IGNORABLE),
        FIELD(init_producer_id_response, error_code, INT16, 0, LAST),
        FIELD(init_producer_id_response, producer_id, INT64, 0, LAST, DEFAULT(-1)),
        FIELD(init_producer_id_response, producer_epoch, INT16, 0, LAST),
};
const struct wire_message init_producer_id_response_wire =
        MESSAGE(init_producer_id_response, "InitProducerIdResponse", 22, 0, 5, 2);
