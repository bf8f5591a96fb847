/* The table of configuration keys. A row carries its help text: --help-config and the manual page print it.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "session_core.h"

#define AT(member) offsetof(struct broker_config, member)
#define MINUTE_MS  (INT64_C(60) * 1000)
#define DAY_MS     (INT64_C(24) * 60 * MINUTE_MS)

static const struct config_row rows[] = {
        {"broker.id", CONFIG_INT32, AT(broker_id), NULL, 0, INT32_MAX,
         .help = "This broker's id, unique in the cluster."},
        {"listeners", CONFIG_STRING, AT(listeners), "PLAINTEXT://127.0.0.1:9092",
         .help = "Where to listen for Kafka clients and brokers: PLAINTEXT://host:port; without a host: on "
                 "every "
                 "address."},
        {"advertised.listeners", CONFIG_STRING, AT(advertised_listeners), "",
         .help = "The address that clients and brokers are told; empty: the same as listeners. Needed where "
                 "listeners names no single address."},
        {"admin.listener", CONFIG_STRING, AT(admin_listener), "127.0.0.1:9644",
         .help = "host:port of the admin HTTP listener (drain, health, metrics); without a host: on every "
                 "address. "
                 "Other hosts must reach it: they are sent to the controller's."},
        {"admin.advertised", CONFIG_STRING, AT(admin_advertised), "",
         .help = "host:port under which other hosts reach the admin listener; empty: the same, with the host "
                 "of "
                 "advertised.listeners where admin.listener names none."},
        {"admin.token.file", CONFIG_STRING, AT(admin_token_file), "",
         .help = "File with a bearer token that changing requests must carry; empty: none is asked for."},
        {"log.dirs", CONFIG_STRING, AT(log_dirs), "/var/lib/stepdown-broker/data",
         .help = "Folders that hold the partitions, comma-separated."},
        {"state.change.log", CONFIG_STRING, AT(state_change_log), "",
         .help = "File of the state-change log; empty: state-change.log in the first of log.dirs."},
        {"zookeeper.connect", CONFIG_STRING, AT(zookeeper_connect), NULL,
         .help = "ZooKeeper servers and an optional chroot: h1:2181,h2:2181/kafka."},
        {"zookeeper.session.timeout.ms", CONFIG_DURATION_MS, AT(zookeeper_session_timeout_ms), "18000", 1000,
         DAY_MS, .help = "Session timeout asked for; the servers may clamp it."},
        {"zookeeper.connection.timeout.ms", CONFIG_DURATION_MS, AT(zookeeper_connection_timeout_ms), "60000",
         100, DAY_MS,
         .help = "How long start-up waits for ZooKeeper before it gives up, and an attempt at a new session "
                 "after a loss."},
        {"zookeeper.session.expired.policy", CONFIG_ENUM, AT(session_expired_policy), "reconnect",
         .choices = session_policy_names,
         .help = "When the session has expired: reconnect (lead nothing, open a new session, register, and "
                 "lead what the controller grants) or shutdown (stop, with exit status 75)."},
        {"zookeeper.session.reconnect.max.attempts", CONFIG_INT32, AT(session_reconnect_max_attempts), "10",
         1, INT32_MAX,
         .help = "With reconnect: new sessions that may fail in a row before the broker stops, with exit "
                 "status 75."},
        {"zookeeper.session.reconnect.backoff.ms", CONFIG_DURATION_MS, AT(session_reconnect_backoff_ms),
         "500", 1, 3600000,
         .help = "With reconnect: the first attempt comes at a random moment within this time, the next ones "
                 "after random pauses that grow to twenty times of it."},

        {"num.partitions", CONFIG_INT32, AT(num_partitions), "1", 1, 100000,
         .help = "Partitions of a topic created without a number."},
        {"default.replication.factor", CONFIG_INT32, AT(default_replication_factor), "1", 1, INT16_MAX,
         .help = "Replicas of a topic created without a number."},
        {"min.insync.replicas", CONFIG_INT32, AT(min_insync_replicas), "1", 1, INT16_MAX,
         .help = "In-sync replicas that acks=all needs; a topic may say otherwise."},
        {"auto.create.topics.enable", CONFIG_BOOL, AT(auto_create_topics), "true",
         .help = "Create a topic when a client asks for the metadata of one that does not exist."},
        {"unclean.leader.election.enable", CONFIG_BOOL, AT(unclean_leader_election), "false",
         .help = "Elect a replica outside the in-sync set when none inside is alive; this loses messages."},
        {"auto.leader.rebalance.enable", CONFIG_BOOL, AT(auto_leader_rebalance), "false",
         .help = "Give leadership back to preferred replicas by itself, in batches, never during a drain."},
        {"leadership.return.enable", CONFIG_BOOL, AT(leadership_return), "true",
         .help = "Give back, in batches, the leaderships that a drain took, when its broker is in sync "
                 "again."},
        {"leader.imbalance.check.interval.seconds", CONFIG_INT64, AT(leader_imbalance_check_s), "300", 1,
         86400, .help = "How often auto.leader.rebalance.enable looks."},
        {"leader.imbalance.per.broker.percentage", CONFIG_INT32, AT(leader_imbalance_percentage), "10", 0,
         100, .help = "Share of a broker's preferred partitions that others may lead before they go back."},
        {"delete.topic.enable", CONFIG_BOOL, AT(delete_topic_enable), "true",
         .help = "Allow topic deletion."},

        {"controlled.shutdown.enable", CONFIG_BOOL, AT(controlled_shutdown_enable), "true",
         .help = "Hand over leadership when the process is told to stop."},
        {"controlled.shutdown.max.retries", CONFIG_INT32, AT(controlled_shutdown_max_retries), "3", 1, 1000,
         .help = "Attempts before the broker stops with leaders left."},
        {"controlled.shutdown.retry.backoff.ms", CONFIG_DURATION_MS, AT(controlled_shutdown_retry_backoff_ms),
         "5000", 0, DAY_MS, .help = "Wait between two attempts."},

        {"drain.slot.lease.ms", CONFIG_DURATION_MS, AT(drain_slot_lease_ms), "600000", 1000, DAY_MS,
         .help = "How long a broker keeps the cluster's one drain slot when nobody asks for its drain any "
                 "more, and "
                 "how long after it went down or came back before it is in sync."},

        {"replica.lag.time.max.ms", CONFIG_DURATION_MS, AT(replica_lag_time_max_ms), "30000", 100, DAY_MS,
         .help = "A follower that has not caught up for this long leaves the in-sync set."},
        {"replica.fetch.wait.max.ms", CONFIG_DURATION_MS, AT(replica_fetch_wait_max_ms), "500", 1, 60000,
         .help = "Longest time a follower's fetch waits at the leader for new data."},
        {"replica.fetch.backoff.ms", CONFIG_DURATION_MS, AT(replica_fetch_backoff_ms), "200", 1, 60000,
         .help = "Wait after a partition's fetch failed."},
        {"replica.fetch.max.bytes", CONFIG_INT32, AT(replica_fetch_max_bytes), "1048576", 1024, INT32_MAX,
         .help = "Bytes a partition that a follower asks for at once."},
        {"replica.fetch.min.bytes", CONFIG_INT32, AT(replica_fetch_min_bytes), "1", 1, INT32_MAX,
         .help = "Bytes that end a follower fetch's wait."},
        {"replica.high.watermark.checkpoint.interval.ms", CONFIG_DURATION_MS,
         AT(replica_hw_checkpoint_interval_ms), "5000", 100, DAY_MS,
         .help = "How often high watermarks are written to disk."},

        {"log.segment.bytes", CONFIG_INT64, AT(log_segment_bytes), "1073741824", 1024, INT32_MAX,
         .help = "Size at which a segment is rolled."},
        {"log.roll.ms", CONFIG_DURATION_MS, AT(log_roll_ms), "604800000", 1, INT64_MAX,
         .help = "Age at which a segment is rolled."},
        {"log.retention.ms", CONFIG_INT64, AT(log_retention_ms), "604800000", -1, INT64_MAX,
         .help = "Age in milliseconds at which whole segments are deleted; -1: never."},
        {"log.retention.bytes", CONFIG_INT64, AT(log_retention_bytes), "-1", -1, INT64_MAX,
         .help = "Size of a partition above which whole segments are deleted; -1: no limit."},
        {"log.index.interval.bytes", CONFIG_INT64, AT(log_index_interval_bytes), "4096", 0, INT32_MAX,
         .help = "Bytes between two index entries."},
        {"log.retention.check.interval.ms", CONFIG_DURATION_MS, AT(log_retention_check_interval_ms), "300000",
         1, DAY_MS, .help = "How often retention is looked at."},
        {"log.flush.offset.checkpoint.interval.ms", CONFIG_DURATION_MS, AT(log_flush_checkpoint_interval_ms),
         "60000", 100, DAY_MS, .help = "How often recovery points are written to disk."},
        {"producer.id.expiration.ms", CONFIG_DURATION_MS, AT(producer_id_expiration_ms), "86400000", 1,
         INT64_MAX, .help = "How long an idle idempotent producer is remembered."},
        {"num.recovery.threads.per.data.dir", CONFIG_INT32, AT(num_recovery_threads), "1", 1, 64,
         .help = "Threads that recover logs after a crash."},
        {"message.max.bytes", CONFIG_INT32, AT(message_max_bytes), "1048588", 0, INT32_MAX,
         .help = "Largest record batch accepted."},

        {"socket.request.max.bytes", CONFIG_INT32, AT(socket_request_max_bytes), "104857600", 1024, INT32_MAX,
         .help = "Largest request; a longer one closes its connection."},
        {"queued.max.request.bytes", CONFIG_INT64, AT(queued_max_request_bytes), "536870912", 1048576,
         INT64_MAX,
         .help = "Memory for the requests of all connections, beyond which they are not read; at least twice "
                 "socket.request.max.bytes is granted."},
        {"queued.max.response.bytes", CONFIG_INT64, AT(queued_max_response_bytes), "536870912", 1048576,
         INT64_MAX,
         .help = "Memory for answers that clients have not taken yet; records for consumers may use half of "
                 "it."},
        {"max.connections", CONFIG_INT32, AT(max_connections), "20000", 1, INT32_MAX,
         .help = "Connections at once."},
        {"max.inflight.requests.per.connection", CONFIG_INT32, AT(max_inflight_per_connection), "64", 1,
         1000000, .help = "Unanswered requests of a connection at which reading from it stops."},
        {"connections.max.idle.ms", CONFIG_DURATION_MS, AT(connections_max_idle_ms), "600000", 1000, DAY_MS,
         .help = "Idle connections are closed after this long."},
        {"socket.frame.timeout.ms", CONFIG_DURATION_MS, AT(socket_frame_timeout_ms), "30000", 100, DAY_MS,
         .help = "A request must arrive whole within this time of its first byte."},
};

/* --- what the keys must satisfy together --- */

/* "host:port", "[v6]:port", or ":port" for every address (*host is then ""). */
static int parse_address(const char *s, struct listener *ret)
{
        int64_t port;
        int r;

        if (s[0] != ':')
                return parse_host_port(s, ret->host, &ret->port);
        r = parse_int64(s + 1, 0, UINT16_MAX, &port);
        if (r < 0)
                return r;
        ret->host[0] = '\0';
        ret->port = (uint16_t)port;
        return 0;
}

int listener_parse(const char *s, struct listener *ret)
{
        static const char scheme[] = "PLAINTEXT://";

        if (strncmp(s, scheme, sizeof(scheme) - 1) != 0)
                return -EINVAL;
        return parse_address(s + sizeof(scheme) - 1, ret);
}

bool listener_is_wildcard(const struct listener *l)
{
        return l->host[0] == '\0' || strcmp(l->host, "0.0.0.0") == 0 || strcmp(l->host, "::") == 0 ||
               strcmp(l->host, "*") == 0;
}

bool listener_is_loopback(const struct listener *l)
{
        return strncmp(l->host, "127.", 4) == 0 || strcmp(l->host, "::1") == 0 ||
               strcmp(l->host, "localhost") == 0;
}

static int fail(char **ret_error, const char *fmt, ...) printf_like(2, 3);

static int fail(char **ret_error, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        if (ret_error && vasprintf(ret_error, fmt, ap) < 0)
                *ret_error = NULL;
        va_end(ap);
        return -EINVAL;
}

static int not_a_listener(const char *key, const char *value, char **ret_error)
{
        if (strchr(value, ','))
                return fail(ret_error, "%s: '%s' names more than one listener; this broker has one", key,
                            value);
        if (strstr(value, "://") && strncmp(value, "PLAINTEXT://", 12) != 0)
                return fail(ret_error, "%s: '%s': PLAINTEXT is the only security protocol there is", key,
                            value);
        return fail(ret_error, "%s: '%s' is not of the form PLAINTEXT://host:port", key, value);
}

/* What is told to others must be an address that others can use: "every address" is none. */
static int check_listeners(const struct broker_config *c, char **ret_error)
{
        struct listener l, advertised;

        if (listener_parse(c->listeners, &l) < 0)
                return not_a_listener("listeners", c->listeners, ret_error);
        if (c->advertised_listeners[0] == '\0') {
                if (!listener_is_wildcard(&l))
                        return 0;
                return fail(
                        ret_error,
                        "listeners: '%s' listens on every address; set advertised.listeners to the one that "
                        "clients and brokers are to use, such as PLAINTEXT://this-host.example:%u",
                        c->listeners, l.port);
        }
        if (listener_parse(c->advertised_listeners, &advertised) < 0)
                return not_a_listener("advertised.listeners", c->advertised_listeners, ret_error);
        if (listener_is_wildcard(&advertised))
                return fail(
                        ret_error,
                        "advertised.listeners: '%s' is not an address that anybody can connect to; name a "
                        "host",
                        c->advertised_listeners);
        return 0;
}

static int check_admin(const struct broker_config *c, char **ret_error)
{
        struct listener l;

        if (parse_address(c->admin_listener, &l) < 0)
                return fail(ret_error, "admin.listener: '%s' is not of the form host:port",
                            c->admin_listener);
        if (c->admin_advertised[0] == '\0')
                return 0;
        if (parse_address(c->admin_advertised, &l) < 0)
                return fail(ret_error, "admin.advertised: '%s' is not of the form host:port",
                            c->admin_advertised);
        if (listener_is_wildcard(&l))
                return fail(
                        ret_error,
                        "admin.advertised: '%s' is not an address that anybody can connect to; name a host",
                        c->admin_advertised);
        return 0;
}

static int check_times(const struct broker_config *c, char **ret_error)
{
        if (c->replica_fetch_wait_max_ms < c->replica_lag_time_max_ms)
                return 0;
        return fail(ret_error,
                    "replica.fetch.wait.max.ms (%" PRId64 ") must be below replica.lag.time.max.ms (%" PRId64
                    "): a follower whose fetch waits that long would leave the in-sync set each time",
                    c->replica_fetch_wait_max_ms, c->replica_lag_time_max_ms);
}

void broker_config_admin(const struct broker_config *c, struct listener *ret_listen,
                         struct listener *ret_advertised)
{
        struct listener kafka;
        const char *told = c->advertised_listeners[0] ? c->advertised_listeners : c->listeners;

        *ret_listen = *ret_advertised = (struct listener){0};
        if (parse_address(c->admin_listener, ret_listen) < 0 || listener_parse(told, &kafka) < 0)
                return; /* broker_config_load() has refused it */
        if (c->admin_advertised[0] != '\0') {
                (void)!parse_address(c->admin_advertised, ret_advertised);
                return;
        }
        *ret_advertised = *ret_listen;
        if (listener_is_wildcard(ret_listen))
                memcpy(ret_advertised->host, kafka.host, sizeof(kafka.host));
}

int broker_config_load(const char *path, const char *const *overrides, struct broker_config *ret,
                       char **ret_error)
{
        int r;

        r = config_load(rows, ARRAY_SIZE(rows), path, "STEPDOWN_", overrides, ret, ret_error);
        if (r < 0)
                return r;
        r = check_listeners(ret, ret_error);
        if (r == 0)
                r = check_admin(ret, ret_error);
        if (r == 0)
                r = check_times(ret, ret_error);
        return r;
}

void broker_config_done(struct broker_config *c)
{
        config_done(rows, ARRAY_SIZE(rows), c);
}

void broker_config_print_help(void)
{
        config_print_help(rows, ARRAY_SIZE(rows));
}

const struct config_row *broker_config_rows(size_t *ret_n)
{
        *ret_n = ARRAY_SIZE(rows);
        return rows;
}

const struct config_row *broker_config_row(const char *key)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (strcmp(rows[i].key, key) == 0)
                        return &rows[i];
        return NULL;
}
