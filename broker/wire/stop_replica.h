/* StopReplica (key 5), controller to broker (R48-R50): partitions alone in v0, by topic in v1-2, with their
 * own leader epoch and delete flag from v3 (KIP-570). */
#pragma once

#include "wire/codec.h"

struct stop_replica_request_ungrouped_partition {
        struct wire_str topic_name; /* v0 */
        int32_t partition_index;    /* v0 */
};

struct stop_replica_request_topic {
        struct wire_str name;                  /* v1-2 */
        WIRE_ARRAY(int32_t) partition_indexes; /* v1-2 */
};

struct stop_replica_request_partition_state {
        int32_t partition_index; /* v3+ */
        int32_t leader_epoch;    /* v3+, default -1 */
        bool delete_partition;   /* v3+ */
};

struct stop_replica_request_topic_state {
        struct wire_str topic_name;                                               /* v3+ */
        WIRE_ARRAY(struct stop_replica_request_partition_state) partition_states; /* v3+ */
};

struct stop_replica_request {
        int32_t controller_id;
        bool is_kraft_controller; /* v4+ */
        int32_t controller_epoch;
        int64_t broker_epoch;   /* v1+, default -1 */
        bool delete_partitions; /* v0-2 */
        WIRE_ARRAY(struct stop_replica_request_ungrouped_partition) ungrouped_partitions; /* v0 */
        WIRE_ARRAY(struct stop_replica_request_topic) topics;                             /* v1-2 */
        WIRE_ARRAY(struct stop_replica_request_topic_state) topic_states;                 /* v3+ */
};

extern const struct wire_struct stop_replica_request_ungrouped_partition_wire;
extern const struct wire_struct stop_replica_request_topic_wire;
extern const struct wire_struct stop_replica_request_partition_state_wire;
extern const struct wire_struct stop_replica_request_topic_state_wire;
extern const struct wire_message stop_replica_request_wire;

struct stop_replica_response_partition_error {
        struct wire_str topic_name;
        int32_t partition_index;
        int16_t error_code;
};

struct stop_replica_response {
        int16_t error_code;
        WIRE_ARRAY(struct stop_replica_response_partition_error) partition_errors;
};

extern const struct wire_struct stop_replica_response_partition_error_wire;
extern const struct wire_message stop_replica_response_wire;
