/* The settings that can be changed while brokers run: of topics (/config/topics/T) and of brokers
 * (/config/brokers/N and /config/brokers/<default>). One table each; what a client may set, what is taken
 * over from ZooKeeper, and what DescribeConfigs and CreateTopics tell are all read from them. Pure. */
#pragma once

#include "config.h"
#include "log/partition_log.h"

enum settings_scope { SETTINGS_TOPIC, SETTINGS_BROKER, N_SETTINGS_SCOPES };

enum setting_type { /* the numbers are Kafka's, of DescribeConfigs (KIP-226, KIP-569) */
                    SETTING_BOOL = 1,
                    SETTING_STRING = 2,
                    SETTING_INT32 = 3,
                    SETTING_INT64 = 5,
                    SETTING_DOUBLE = 6,
                    SETTING_LIST = 7,
};

enum setting_source { /* Kafka's again; the lower wins */
                      SOURCE_TOPIC = 1,
                      SOURCE_BROKER = 2,
                      SOURCE_ALL_BROKERS = 3,
                      SOURCE_FILE = 4,
                      SOURCE_DEFAULT = 5,
};

struct topic_config {
        int32_t min_insync_replicas; /* 0: the broker's default */
        struct log_config log;
        /* KIP-73: "p:b,p:b" or "*"; NULL: none. Borrowed from the text they were read from. */
        const char *leader_throttled, *follower_throttled;
};

struct broker_dynamic { /* in bytes a second; INT64_MAX: no limit (KIP-73) */
        int64_t leader_throttle, follower_throttle;
};
#define BROKER_DYNAMIC_DEFAULTS                                                                              \
        {                                                                                                    \
                .leader_throttle = INT64_MAX, .follower_throttle = INT64_MAX                                 \
        }

enum setting_store { STORE_NOT, STORE_INT32, STORE_INT64, STORE_TEXT };

struct setting {
        const char *name;
        enum setting_type type;
        enum setting_store store; /* STORE_NOT: valid in Kafka, without effect on this broker */
        size_t offset;            /* in struct topic_config or struct broker_dynamic */
        int64_t min, max;         /* of whole numbers */
        const char *default_text;
        const char *broker_key; /* of a topic's: the broker's setting that is its default; NULL: none */
        const char *const *choices;
        bool (*valid)(const char *value); /* of what else there is to say, in `form` */
        const char *form;
};

size_t settings_count(enum settings_scope scope);
const struct setting *settings_at(enum settings_scope scope, size_t i);
const struct setting *settings_find(enum settings_scope scope, const char *name);

/* What holds for @s where nobody has set it, by the broker's file @c, as text in @out; and where that comes
 * from. */
enum setting_source settings_default(const struct setting *s, const struct broker_config *c, char *out,
                                     size_t size);

/* May @name be given @value (NULL: may it be taken away)? -EINVAL with a sentence that names the setting and
 * the fix in @error: unknown names, settings of the broker's file, which need a restart, bad values. */
int settings_check(enum settings_scope scope, const char *name, const char *value, char error[256])
        must_check;
/* Apply one "name=value" to @c. -EINVAL with a sentence in @error. Names known to Kafka that have no effect
 * here are accepted. */
int topic_config_set(struct topic_config *c, const char *name, const char *value, char error[256]) must_check;
int broker_dynamic_set(struct broker_dynamic *c, const char *name, const char *value, char error[256])
        must_check;
