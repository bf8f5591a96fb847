#include "wire/elect_leaders.h"
#include "wire/table.h"

static const struct wire_field elect_leaders_request_topic_partitions_fields[] = {
        FIELD(elect_leaders_request_topic_partitions, topic, STRING, 0, LAST),
        ARRAY(elect_leaders_request_topic_partitions, partitions, INT32, 0, LAST),
};
const struct wire_struct elect_leaders_request_topic_partitions_wire =
        STRUCT_TABLE(elect_leaders_request_topic_partitions);

static const struct wire_field elect_leaders_request_fields[] = {
        FIELD(elect_leaders_request, election_type, INT8, 1, LAST),
        ARRAY_OF(elect_leaders_request, topic_partitions, elect_leaders_request_topic_partitions, 0, LAST,
                 NULL_FROM(0)),
        FIELD(elect_leaders_request, timeout_ms, INT32, 0, LAST, DEFAULT(60000)),
};
const struct wire_message elect_leaders_request_wire =
        MESSAGE(elect_leaders_request, "ElectLeadersRequest", 43, 0, 2, 2);

static const struct wire_field elect_leaders_response_partition_result_fields[] = {
        FIELD(elect_leaders_response_partition_result, partition_id, INT32, 0, LAST),
        FIELD(elect_leaders_response_partition_result, error_code, INT16, 0, LAST),
        FIELD(elect_leaders_response_partition_result, error_message, STRING, 0, LAST, NULL_FROM(0)),
};
const struct wire_struct elect_leaders_response_partition_result_wire =
        STRUCT_TABLE(elect_leaders_response_partition_result);

static const struct wire_field elect_leaders_response_replica_election_result_fields[] = {
        FIELD(elect_leaders_response_replica_election_result, topic, STRING, 0, LAST),
        ARRAY_OF(elect_leaders_response_replica_election_result, partition_result,
                 elect_leaders_response_partition_result, 0, LAST),
};
const struct wire_struct elect_leaders_response_replica_election_result_wire =
        STRUCT_TABLE(elect_leaders_response_replica_election_result);

static const struct wire_field elect_leaders_response_fields[] = {
        FIELD(elect_leaders_response, throttle_time_ms, INT32, 0, LAST),
        FIELD(elect_leaders_response, error_code, INT16, 1, LAST),
        ARRAY_OF(elect_leaders_response, replica_election_results,
                 elect_leaders_response_replica_election_result, 0, LAST),
};
const struct wire_message elect_leaders_response_wire =
        MESSAGE(elect_leaders_response, "ElectLeadersResponse", 43, 0, 2, 2);
