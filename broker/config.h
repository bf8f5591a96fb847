/* The broker's configuration: Kafka's key names where Kafka has the key (docs/man/stepdown-broker.yaml.5). */
#pragma once

#include "base/config.h"

struct broker_config {
        int32_t broker_id;
        char *listeners, *advertised_listeners;
        char *admin_listener, *admin_advertised, *admin_token_file;
        char *log_dirs;
        char *state_change_log;
        char *zookeeper_connect;
        int64_t zookeeper_session_timeout_ms, zookeeper_connection_timeout_ms;
        int session_expired_policy; /* enum session_expired_policy */
        int32_t session_reconnect_max_attempts;
        int64_t session_reconnect_backoff_ms;

        int32_t num_partitions, default_replication_factor, min_insync_replicas;
        bool auto_leader_rebalance, leadership_return;
        int64_t leader_imbalance_check_s;
        int64_t drain_slot_lease_ms;
        int32_t leader_imbalance_percentage;
        bool auto_create_topics, unclean_leader_election, delete_topic_enable;

        bool controlled_shutdown_enable;
        int32_t controlled_shutdown_max_retries;
        int64_t controlled_shutdown_retry_backoff_ms;

        int64_t replica_lag_time_max_ms, replica_fetch_wait_max_ms, replica_fetch_backoff_ms;
        int32_t replica_fetch_max_bytes, replica_fetch_min_bytes;
        int64_t replica_hw_checkpoint_interval_ms;

        int64_t log_segment_bytes, log_roll_ms, log_retention_ms, log_retention_bytes,
                log_index_interval_bytes;
        int64_t log_retention_check_interval_ms, log_flush_checkpoint_interval_ms;
        int64_t producer_id_expiration_ms;
        int32_t num_recovery_threads;
        int32_t message_max_bytes;

        int32_t socket_request_max_bytes, max_connections, max_inflight_per_connection;
        int64_t queued_max_request_bytes, queued_max_response_bytes;
        int64_t connections_max_idle_ms, socket_frame_timeout_ms;
};

/* An address of listeners (without "PLAINTEXT://") or of admin.listener. */
struct listener {
        char host[256]; /* "": every address */
        uint16_t port;
};

/* Load from @path (NULL: defaults and overrides only). *ret_error is a sentence for people. */
int broker_config_load(const char *path, const char *const *overrides, struct broker_config *ret,
                       char **ret_error) must_check;
void broker_config_done(struct broker_config *c);
void broker_config_print_help(void);
/* The table of keys, and the row of one; NULL: there is none. */
const struct config_row *broker_config_rows(size_t *ret_n);
const struct config_row *broker_config_row(const char *key);
/* -EINVAL: not of the form, or a security protocol other than PLAINTEXT. */
int listener_parse(const char *s, struct listener *ret) must_check;
bool listener_is_wildcard(const struct listener *l);
bool listener_is_loopback(const struct listener *l);
/* Where the admin listener is opened, and where others are told that it is. Port 0: the kernel's choice. */
void broker_config_admin(const struct broker_config *c, struct listener *ret_listen,
                         struct listener *ret_advertised);
