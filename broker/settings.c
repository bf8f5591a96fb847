#include "settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/throttled_list.h"

#define FOREVER    "9223372036854775807"
#define TOPIC(m)   offsetof(struct topic_config, m)
#define DYNAMIC(m) offsetof(struct broker_dynamic, m)

static bool is_delete(const char *value)
{
        return strcmp(value, "delete") == 0;
}

static bool is_ratio(const char *value)
{
        char *end;
        double v = strtod(value, &end);

        return *value && !*end && v >= 0 && v <= 1;
}

static bool is_throttled_list(const char *value)
{
        return throttled_list_valid(value);
}

static bool is_text(const char *value)
{
        return *value;
}

static const char *const bools[] = {"true", "false", NULL};
static const char *const codecs[] = {"uncompressed", "zstd", "lz4", "snappy", "gzip", "producer", NULL};
static const char *const timestamps[] = {"CreateTime", "LogAppendTime", NULL};

#define THROTTLED_FORM "'*' for all, or replicas as partition:broker,partition:broker such as 0:1,0:2,1:2"

/* By name. Defaults are Kafka 3.9's. */
static const struct setting topic_settings[] = {
        {"cleanup.policy", SETTING_LIST, STORE_NOT, 0, 0, 0, "delete", NULL, NULL, is_delete,
         "'delete': this broker keeps logs by deletion only"},
        {"compression.type", SETTING_STRING, STORE_NOT, 0, 0, 0, "producer", NULL, codecs, NULL, NULL},
        {"delete.retention.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, "86400000", NULL, NULL, NULL,
         NULL},
        {"file.delete.delay.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, "60000", NULL, NULL, NULL, NULL},
        {"flush.messages", SETTING_INT64, STORE_NOT, 0, 1, INT64_MAX, FOREVER, NULL, NULL, NULL, NULL},
        {"flush.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, FOREVER, NULL, NULL, NULL, NULL},
        {"follower.replication.throttled.replicas", SETTING_LIST, STORE_TEXT, TOPIC(follower_throttled), 0, 0,
         "", NULL, NULL, is_throttled_list, THROTTLED_FORM},
        {"index.interval.bytes", SETTING_INT32, STORE_INT64, TOPIC(log.index_interval_bytes), 0, INT32_MAX,
         "4096", "log.index.interval.bytes", NULL, NULL, NULL},
        {"leader.replication.throttled.replicas", SETTING_LIST, STORE_TEXT, TOPIC(leader_throttled), 0, 0, "",
         NULL, NULL, is_throttled_list, THROTTLED_FORM},
        {"max.compaction.lag.ms", SETTING_INT64, STORE_NOT, 0, 1, INT64_MAX, FOREVER, NULL, NULL, NULL, NULL},
        {"max.message.bytes", SETTING_INT32, STORE_INT32, TOPIC(log.max_message_bytes), 0, INT32_MAX,
         "1048588", "message.max.bytes", NULL, NULL, NULL},
        {"message.downconversion.enable", SETTING_BOOL, STORE_NOT, 0, 0, 0, "true", NULL, bools, NULL, NULL},
        {"message.format.version", SETTING_STRING, STORE_NOT, 0, 0, 0, "3.0-IV1", NULL, NULL, is_text,
         "a version such as 3.0-IV1"},
        {"message.timestamp.after.max.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, FOREVER, NULL, NULL,
         NULL, NULL},
        {"message.timestamp.before.max.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, FOREVER, NULL, NULL,
         NULL, NULL},
        {"message.timestamp.difference.max.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, FOREVER, NULL,
         NULL, NULL, NULL},
        {"message.timestamp.type", SETTING_STRING, STORE_NOT, 0, 0, 0, "CreateTime", NULL, timestamps, NULL,
         NULL},
        {"min.cleanable.dirty.ratio", SETTING_DOUBLE, STORE_NOT, 0, 0, 0, "0.5", NULL, NULL, is_ratio,
         "a number from 0 to 1"},
        {"min.compaction.lag.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, "0", NULL, NULL, NULL, NULL},
        {"min.insync.replicas", SETTING_INT32, STORE_INT32, TOPIC(min_insync_replicas), 1, INT32_MAX, "1",
         "min.insync.replicas", NULL, NULL, NULL},
        {"preallocate", SETTING_BOOL, STORE_NOT, 0, 0, 0, "false", NULL, bools, NULL, NULL},
        {"retention.bytes", SETTING_INT64, STORE_INT64, TOPIC(log.retention_bytes), -1, INT64_MAX, "-1",
         "log.retention.bytes", NULL, NULL, NULL},
        {"retention.ms", SETTING_INT64, STORE_INT64, TOPIC(log.retention_ms), -1, INT64_MAX, "604800000",
         "log.retention.ms", NULL, NULL, NULL},
        {"segment.bytes", SETTING_INT32, STORE_INT64, TOPIC(log.segment_bytes), 1024, INT32_MAX, "1073741824",
         "log.segment.bytes", NULL, NULL, NULL},
        {"segment.index.bytes", SETTING_INT32, STORE_INT64, TOPIC(log.index_max_bytes), 48, INT32_MAX,
         "10485760", NULL, NULL, NULL, NULL},
        {"segment.jitter.ms", SETTING_INT64, STORE_NOT, 0, 0, INT64_MAX, "0", NULL, NULL, NULL, NULL},
        {"segment.ms", SETTING_INT64, STORE_INT64, TOPIC(log.segment_ms), 1, INT64_MAX, "604800000",
         "log.roll.ms", NULL, NULL, NULL},
        {"unclean.leader.election.enable", SETTING_BOOL, STORE_NOT, 0, 0, 0, "false",
         "unclean.leader.election.enable", bools, NULL, NULL},
};

static const struct setting broker_settings[] = {
        {"follower.replication.throttled.rate", SETTING_INT64, STORE_INT64, DYNAMIC(follower_throttle), 0,
         INT64_MAX, FOREVER, NULL, NULL, NULL, NULL},
        {"leader.replication.throttled.rate", SETTING_INT64, STORE_INT64, DYNAMIC(leader_throttle), 0,
         INT64_MAX, FOREVER, NULL, NULL, NULL, NULL},
};

static const struct {
        const struct setting *items;
        size_t n;
} tables[N_SETTINGS_SCOPES] = {
        [SETTINGS_TOPIC] = {topic_settings, ARRAY_SIZE(topic_settings)},
        [SETTINGS_BROKER] = {broker_settings, ARRAY_SIZE(broker_settings)},
};

size_t settings_count(enum settings_scope scope)
{
        return tables[scope].n;
}

const struct setting *settings_at(enum settings_scope scope, size_t i)
{
        return &tables[scope].items[i];
}

const struct setting *settings_find(enum settings_scope scope, const char *name)
{
        for (size_t i = 0; i < tables[scope].n; i++)
                if (strcmp(tables[scope].items[i].name, name) == 0)
                        return &tables[scope].items[i];
        return NULL;
}

enum setting_source settings_default(const struct setting *s, const struct broker_config *c, char *out,
                                     size_t size)
{
        const struct config_row *row = s->broker_key ? broker_config_row(s->broker_key) : NULL;

        if (row) {
                (void)config_row_text(row, c, out, size);
                return strcmp(out, s->default_text) == 0 ? SOURCE_DEFAULT : SOURCE_FILE;
        }
        (void)snprintf(out, size, "%s", s->default_text);
        return SOURCE_DEFAULT;
}

/* --- values --- */

static int wrong(const struct setting *s, const char *value, const char *form, char error[256])
{
        (void)snprintf(error, 256, "%s: '%.60s' is not valid; it must be %s", s->name, value, form);
        return -EINVAL;
}

static int check_choice(const struct setting *s, const char *value, char error[256])
{
        char form[120] = "one of";

        for (size_t i = 0; s->choices[i]; i++) {
                size_t n = strlen(form);

                if (strcmp(s->choices[i], value) == 0)
                        return 0;
                (void)snprintf(form + n, sizeof(form) - n, "%s %s", i > 0 ? "," : "", s->choices[i]);
        }
        return wrong(s, value, form, error);
}

/* Is @value one for @s? The number that it is in *ret. */
static int check_value(const struct setting *s, const char *value, int64_t *ret, char error[256])
{
        *ret = 0;
        if (s->choices)
                return check_choice(s, value, error);
        if (s->valid)
                return s->valid(value) ? 0 : wrong(s, value, s->form, error);
        if (parse_int64(value, s->min, s->max, ret) == 0)
                return 0;
        (void)snprintf(error, 256, "%s: '%.60s' is not a whole number from %" PRId64 " to %" PRId64, s->name,
                       value, s->min, s->max);
        return -EINVAL;
}

static int unknown(enum settings_scope scope, const char *name, char error[256])
{
        size_t best = SIZE_MAX;
        const char *near = NULL;

        for (size_t i = 0; i < tables[scope].n; i++)
                config_nearer(name, tables[scope].items[i].name, &best, &near);
        (void)snprintf(error, 256, "Unknown %s config name: %.80s%s%s%s",
                       scope == SETTINGS_TOPIC ? "topic" : "dynamic broker", name,
                       near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
        return -EINVAL;
}

static int read_only(const char *name, char error[256])
{
        (void)snprintf(error, 256,
                       "%.80s cannot be changed while the broker runs: set it in the broker's configuration "
                       "file and restart it",
                       name);
        return -EINVAL;
}

int settings_check(enum settings_scope scope, const char *name, const char *value, char error[256])
{
        const struct setting *s = settings_find(scope, name);
        int64_t number;

        if (!s && scope == SETTINGS_BROKER && broker_config_row(name))
                return read_only(name, error);
        if (!s)
                return unknown(scope, name, error);
        return value ? check_value(s, value, &number, error) : 0;
}

static int apply(enum settings_scope scope, void *target, const char *name, const char *value,
                 char error[256])
{
        const struct setting *s = settings_find(scope, name);
        char *at = target;
        int64_t number;
        int r;

        r = settings_check(scope, name, value, error);
        if (r == 0)
                r = check_value(s, value, &number, error);
        if (r < 0)
                return r;
        if (s->store == STORE_INT32)
                *(int32_t *)(at + s->offset) = (int32_t)number;
        else if (s->store == STORE_INT64)
                *(int64_t *)(at + s->offset) = number;
        else if (s->store == STORE_TEXT)
                *(const char **)(at + s->offset) = value;
        return 0;
}

int topic_config_set(struct topic_config *c, const char *name, const char *value, char error[256])
{
        return apply(SETTINGS_TOPIC, c, name, value, error);
}

int broker_dynamic_set(struct broker_dynamic *c, const char *name, const char *value, char error[256])
{
        return apply(SETTINGS_BROKER, c, name, value, error);
}
