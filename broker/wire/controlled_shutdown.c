#include "wire/controlled_shutdown.h"
#include "wire/table.h"

static const struct wire_field controlled_shutdown_request_fields[] = {
        FIELD(controlled_shutdown_request, broker_id, INT32, 0, LAST),
        FIELD(controlled_shutdown_request, broker_epoch, INT64, 2, LAST, DEFAULT(-1), IGNORABLE),
        FIELD(controlled_shutdown_request, slot_wait_ms, INT32, 3, LAST, TAG(7300), IGNORABLE),
};
const struct wire_message controlled_shutdown_request_wire =
        MESSAGE(controlled_shutdown_request, "ControlledShutdownRequest", 7, 0, 3, 3);

static const struct wire_field controlled_shutdown_response_remaining_partition_fields[] = {
        FIELD(controlled_shutdown_response_remaining_partition, topic_name, STRING, 0, LAST),
        FIELD(controlled_shutdown_response_remaining_partition, partition_index, INT32, 0, LAST),
};
const struct wire_struct controlled_shutdown_response_remaining_partition_wire =
        STRUCT_TABLE(controlled_shutdown_response_remaining_partition);

static const struct wire_field controlled_shutdown_response_fields[] = {
        FIELD(controlled_shutdown_response, error_code, INT16, 0, LAST),
        ARRAY_OF(controlled_shutdown_response, remaining_partitions,
                 controlled_shutdown_response_remaining_partition, 0, LAST),
        FIELD(controlled_shutdown_response, slot_holder, STRING, 3, LAST, NULL_FROM(3), TAG(7300),
              DEFAULT_NULL, IGNORABLE),
};
const struct wire_message controlled_shutdown_response_wire =
        MESSAGE(controlled_shutdown_response, "ControlledShutdownResponse", 7, 0, 3, 3);
