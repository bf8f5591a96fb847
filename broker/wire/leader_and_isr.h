/* LeaderAndIsr (key 4), controller to broker. Partitions stand alone in v0-1, by topic from v2. */
#pragma once

#include "wire/codec.h"

struct leader_and_isr_request_partition_state {
        struct wire_str topic_name; /* v0-1 */
        int32_t partition_index;
        int32_t controller_epoch;
        int32_t leader;
        int32_t leader_epoch;
        WIRE_ARRAY(int32_t) isr;
        int32_t partition_epoch;
        WIRE_ARRAY(int32_t) replicas;
        WIRE_ARRAY(int32_t) adding_replicas;   /* v3+ */
        WIRE_ARRAY(int32_t) removing_replicas; /* v3+ */
        bool is_new;                           /* v1+ */
        int8_t leader_recovery_state;          /* v6+ */
};

struct leader_and_isr_request_topic_state {
        struct wire_str topic_name;                                                 /* v2+ */
        struct uuid topic_id;                                                       /* v5+ */
        WIRE_ARRAY(struct leader_and_isr_request_partition_state) partition_states; /* v2+ */
};

struct leader_and_isr_request_live_leader {
        int32_t broker_id;
        struct wire_str host_name;
        int32_t port;
};

struct leader_and_isr_request {
        int32_t controller_id;
        bool is_kraft_controller; /* v7+ */
        int32_t controller_epoch;
        int64_t broker_epoch; /* v2+, default -1 */
        int8_t type;          /* v5+ */
        WIRE_ARRAY(struct leader_and_isr_request_partition_state) ungrouped_partition_states; /* v0-1 */
        WIRE_ARRAY(struct leader_and_isr_request_topic_state) topic_states;                   /* v2+ */
        WIRE_ARRAY(struct leader_and_isr_request_live_leader) live_leaders;
};

extern const struct wire_struct leader_and_isr_request_partition_state_wire;
extern const struct wire_struct leader_and_isr_request_topic_state_wire;
extern const struct wire_struct leader_and_isr_request_live_leader_wire;
extern const struct wire_message leader_and_isr_request_wire;

struct leader_and_isr_response_partition_error {
        struct wire_str topic_name; /* v0-4 */
        int32_t partition_index;
        int16_t error_code;
};

struct leader_and_isr_response_topic {
        struct uuid topic_id;                                                        /* v5+ */
        WIRE_ARRAY(struct leader_and_isr_response_partition_error) partition_errors; /* v5+ */
};

struct leader_and_isr_response {
        int16_t error_code;
        WIRE_ARRAY(struct leader_and_isr_response_partition_error) partition_errors; /* v0-4 */
        WIRE_ARRAY(struct leader_and_isr_response_topic) topics;                     /* v5+ */
};

extern const struct wire_struct leader_and_isr_response_partition_error_wire;
extern const struct wire_struct leader_and_isr_response_topic_wire;
extern const struct wire_message leader_and_isr_response_wire;
