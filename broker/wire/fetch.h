/* Fetch (key 1), of consumers and of followers. Topics go by name up to v12, by id from v13. */
#pragma once

#include "wire/codec.h"

struct fetch_request_replica_state {
        int32_t replica_id;    /* v15+, default -1 */
        int64_t replica_epoch; /* v15+, default -1 */
};

struct fetch_request_partition {
        int32_t partition;
        int32_t current_leader_epoch; /* v9+, default -1 */
        int64_t fetch_offset;
        int32_t last_fetched_epoch; /* v12+, default -1 */
        int64_t log_start_offset;   /* v5+, default -1 */
        int32_t partition_max_bytes;
        struct uuid replica_directory_id; /* v17+ */
};

struct fetch_request_topic {
        struct wire_str topic; /* v0-12 */
        struct uuid topic_id;  /* v13+ */
        WIRE_ARRAY(struct fetch_request_partition) partitions;
};

struct fetch_request_forgotten_topic {
        struct wire_str topic;          /* v7-12 */
        struct uuid topic_id;           /* v13+ */
        WIRE_ARRAY(int32_t) partitions; /* v7+ */
};

struct fetch_request {
        struct wire_str cluster_id;                       /* v12+, may be null */
        int32_t replica_id;                               /* v0-14, default -1 */
        struct fetch_request_replica_state replica_state; /* v15+ */
        int32_t max_wait_ms;
        int32_t min_bytes;
        int32_t max_bytes; /* default INT32_MAX */
        int8_t isolation_level;
        int32_t session_id;    /* v7+ */
        int32_t session_epoch; /* v7+, default -1 */
        WIRE_ARRAY(struct fetch_request_topic) topics;
        WIRE_ARRAY(struct fetch_request_forgotten_topic) forgotten_topics_data; /* v7+ */
        struct wire_str rack_id;                                                /* v11+ */
};

extern const struct wire_struct fetch_request_replica_state_wire;
extern const struct wire_struct fetch_request_partition_wire;
extern const struct wire_struct fetch_request_topic_wire;
extern const struct wire_struct fetch_request_forgotten_topic_wire;
extern const struct wire_message fetch_request_wire;

struct fetch_response_diverging_epoch {
        int32_t epoch;      /* v12+, default -1 */
        int64_t end_offset; /* v12+, default -1 */
};

struct fetch_response_current_leader {
        int32_t leader_id;    /* v12+, default -1 */
        int32_t leader_epoch; /* v12+, default -1 */
};

struct fetch_response_snapshot_id {
        int64_t end_offset; /* default -1 */
        int32_t epoch;      /* default -1 */
};

struct fetch_response_aborted_transaction {
        int64_t producer_id;
        int64_t first_offset;
};

struct fetch_response_partition {
        int32_t partition_index;
        int16_t error_code;
        int64_t high_watermark;
        int64_t last_stable_offset;                                                 /* default -1 */
        int64_t log_start_offset;                                                   /* v5+, default -1 */
        struct fetch_response_diverging_epoch diverging_epoch;                      /* v12+ */
        struct fetch_response_current_leader current_leader;                        /* v12+ */
        struct fetch_response_snapshot_id snapshot_id;                              /* v12+ */
        WIRE_ARRAY(struct fetch_response_aborted_transaction) aborted_transactions; /* may be null */
        int32_t preferred_read_replica;                                             /* v11+, default -1 */
        struct wire_bytes records;                                                  /* may be null */
};

struct fetch_response_topic {
        struct wire_str topic; /* v0-12 */
        struct uuid topic_id;  /* v13+ */
        WIRE_ARRAY(struct fetch_response_partition) partitions;
};

struct fetch_response_node_endpoint {
        int32_t node_id;      /* v16+ */
        struct wire_str host; /* v16+ */
        int32_t port;         /* v16+ */
        struct wire_str rack; /* v16+, may be null */
};

struct fetch_response {
        int32_t throttle_time_ms;
        int16_t error_code; /* v7+ */
        int32_t session_id; /* v7+ */
        WIRE_ARRAY(struct fetch_response_topic) responses;
        WIRE_ARRAY(struct fetch_response_node_endpoint) node_endpoints; /* v16+ */
};

extern const struct wire_struct fetch_response_diverging_epoch_wire;
extern const struct wire_struct fetch_response_current_leader_wire;
extern const struct wire_struct fetch_response_snapshot_id_wire;
extern const struct wire_struct fetch_response_aborted_transaction_wire;
extern const struct wire_struct fetch_response_partition_wire;
extern const struct wire_struct fetch_response_topic_wire;
extern const struct wire_struct fetch_response_node_endpoint_wire;
extern const struct wire_message fetch_response_wire;
