/* The cluster that a tool works on: asked over Kafka's protocol (--bootstrap), or read and written in
 * ZooKeeper (--zookeeper) as the tools of Kafka 0.8 do (R53–R61). Both give the same picture: a
 * metadata_response.
 *
 *     static const struct cli_option options[] = {
 *             CLUSTER_OPTIONS(struct my_options, where),
 *             …
 */
#pragma once

#include "cli/cli.h"
#include "cli/kafka_admin.h"
#include "cli/zk_admin.h"
#include "zk/znode.h"

struct cluster_options {
        const char *bootstrap, *zookeeper;
        int64_t timeout_ms;
        bool json;
};
#define CLUSTER_DEFAULTS                                                                                     \
        {                                                                                                    \
                .timeout_ms = 30000                                                                          \
        }
/* The rows of a verb's table for its member @m. */
#define CLUSTER_OPTIONS(type, m)                                                                             \
        {"zookeeper",                                                                                        \
         CLI_STRING,                                                                                         \
         offsetof(type, m.zookeeper),                                                                        \
         "HOST:PORT,…[/CHROOT]",                                                                             \
         "work through ZooKeeper instead of the brokers",                                                    \
         0,                                                                                                  \
         0},                                                                                                 \
                {"bootstrap",                                                                                \
                 CLI_STRING,                                                                                 \
                 offsetof(type, m.bootstrap),                                                                \
                 "HOST:PORT,…",                                                                              \
                 "brokers to ask, tried in order (default: $STEPDOWN_BOOTSTRAP or 127.0.0.1:9092)",          \
                 0,                                                                                          \
                 0},                                                                                         \
                {"timeout",                                                                                  \
                 CLI_DURATION_MS,                                                                            \
                 offsetof(type, m.timeout_ms),                                                               \
                 "TIME",                                                                                     \
                 "how long to wait for an answer (default 30s)",                                             \
                 0,                                                                                          \
                 0},                                                                                         \
        {                                                                                                    \
                "json", CLI_FLAG, offsetof(type, m.json), NULL, "print one JSON document", 0, 0              \
        }

struct cluster {
        const char *verb; /* the name of its errors */
        const struct cluster_options *o;
        struct kafka_admin kafka;
        struct zk_admin *zk; /* NULL: over Kafka's protocol */
        struct arena arena;  /* what the calls below hand out lives here */
        char error[512];
};

/* CLI_OK; CLI_USAGE (both ways were given, or a list is malformed) and CLI_UNAVAILABLE after a line on
 * stderr. Over Kafka's protocol nothing is asked yet. */
int cluster_open(struct cluster *c, const char *verb, const struct cluster_options *o) must_check;
void cluster_close(struct cluster *c);
static inline void cluster_closep(struct cluster *c)
{
        cluster_close(c);
}

/* Brokers, controller, topics and partitions, sorted by name and number; of all topics, or of @topic, whose
 * error_code is UNKNOWN_TOPIC_OR_PARTITION when it does not exist. Topics that cannot be described keep their
 * error_code. -errno; cluster_fail() says why. */
int cluster_metadata(struct cluster *c, const char *topic, struct metadata_response **ret) must_check;
/* One line on stderr for what a call on @c returned. CLI_UNAVAILABLE when nobody answered, CLI_USAGE for a
 * malformed address, else CLI_FAILED. */
int cluster_fail(const struct cluster *c, int r);

const struct metadata_response_topic *cluster_topic(const struct metadata_response *m, const char *name);
const struct metadata_response_partition *cluster_partition(const struct metadata_response_topic *t,
                                                            int32_t partition);
bool cluster_is_live(const struct metadata_response *m, int32_t broker);
/* Ascending ids of the brokers that live, in @c's arena. */
int cluster_broker_ids(struct cluster *c, const struct metadata_response *m, int32_t **ret, int32_t *ret_n)
        must_check;
