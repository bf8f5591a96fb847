/* ElectLeaders (key 43). Null topic_partitions: all of them. */
#pragma once

#include "wire/codec.h"

struct elect_leaders_request_topic_partitions {
        struct wire_str topic;
        WIRE_ARRAY(int32_t) partitions;
};

struct elect_leaders_request {
        int8_t election_type; /* v1+, 0 preferred, 1 unclean */
        WIRE_ARRAY(struct elect_leaders_request_topic_partitions) topic_partitions; /* may be null */
        int32_t timeout_ms;                                                         /* default 60000 */
};

extern const struct wire_struct elect_leaders_request_topic_partitions_wire;
extern const struct wire_message elect_leaders_request_wire;

struct elect_leaders_response_partition_result {
        int32_t partition_id;
        int16_t error_code;
        struct wire_str error_message; /* may be null */
};

struct elect_leaders_response_replica_election_result {
        struct wire_str topic;
        WIRE_ARRAY(struct elect_leaders_response_partition_result) partition_result;
};

struct elect_leaders_response {
        int32_t throttle_time_ms;
        int16_t error_code; /* v1+ */
        WIRE_ARRAY(struct elect_leaders_response_replica_election_result) replica_election_results;
};

extern const struct wire_struct elect_leaders_response_partition_result_wire;
extern const struct wire_struct elect_leaders_response_replica_election_result_wire;
extern const struct wire_message elect_leaders_response_wire;
