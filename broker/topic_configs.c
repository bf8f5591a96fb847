/* A map of the topics whose configuration has been read, and one ZooKeeper read a topic that has not. */
#include "topic_configs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/parse.h"
#include "base/slog.h"
#include "zk/znode.h"

#define RETRY_MS 200

struct topic_configs {
        struct topic_configs_options o;
        struct map *known; /* topic -> the map itself, as a mark */
};

enum setting_type { SETTING_INT64, SETTING_INT32, SETTING_OTHER };

/* Kafka's topic settings. SETTING_OTHER: valid in Kafka, without effect on this broker's logs. */
static const struct setting {
        const char *name;
        enum setting_type type;
        size_t offset;
        int64_t min, max;
} settings[] = {
        {"min.insync.replicas", SETTING_INT32, offsetof(struct topic_config, min_insync_replicas), 1,
         INT32_MAX},
        {"max.message.bytes", SETTING_INT32, offsetof(struct topic_config, log.max_message_bytes), 0,
         INT32_MAX},
        {"segment.bytes", SETTING_INT64, offsetof(struct topic_config, log.segment_bytes), 1024, INT32_MAX},
        {"segment.ms", SETTING_INT64, offsetof(struct topic_config, log.segment_ms), 1, INT64_MAX},
        {"segment.index.bytes", SETTING_INT64, offsetof(struct topic_config, log.index_max_bytes), 48,
         INT32_MAX},
        {"index.interval.bytes", SETTING_INT64, offsetof(struct topic_config, log.index_interval_bytes), 0,
         INT32_MAX},
        {"retention.ms", SETTING_INT64, offsetof(struct topic_config, log.retention_ms), -1, INT64_MAX},
        {"retention.bytes", SETTING_INT64, offsetof(struct topic_config, log.retention_bytes), -1, INT64_MAX},
        {"cleanup.policy", SETTING_OTHER, 0, 0, 0},
        {"compression.type", SETTING_OTHER, 0, 0, 0},
        {"delete.retention.ms", SETTING_OTHER, 0, 0, 0},
        {"file.delete.delay.ms", SETTING_OTHER, 0, 0, 0},
        {"flush.messages", SETTING_OTHER, 0, 0, 0},
        {"flush.ms", SETTING_OTHER, 0, 0, 0},
        {"follower.replication.throttled.replicas", SETTING_OTHER, 0, 0, 0},
        {"leader.replication.throttled.replicas", SETTING_OTHER, 0, 0, 0},
        {"max.compaction.lag.ms", SETTING_OTHER, 0, 0, 0},
        {"message.downconversion.enable", SETTING_OTHER, 0, 0, 0},
        {"message.format.version", SETTING_OTHER, 0, 0, 0},
        {"message.timestamp.type", SETTING_OTHER, 0, 0, 0},
        {"message.timestamp.difference.max.ms", SETTING_OTHER, 0, 0, 0},
        {"message.timestamp.before.max.ms", SETTING_OTHER, 0, 0, 0},
        {"message.timestamp.after.max.ms", SETTING_OTHER, 0, 0, 0},
        {"min.cleanable.dirty.ratio", SETTING_OTHER, 0, 0, 0},
        {"min.compaction.lag.ms", SETTING_OTHER, 0, 0, 0},
        {"preallocate", SETTING_OTHER, 0, 0, 0},
        {"segment.jitter.ms", SETTING_OTHER, 0, 0, 0},
        {"unclean.leader.election.enable", SETTING_OTHER, 0, 0, 0},
};

static const struct setting *find_setting(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
                if (strcmp(settings[i].name, name) == 0)
                        return &settings[i];
        return NULL;
}

int topic_config_set(struct topic_config *c, const char *name, const char *value, char error[256])
{
        const struct setting *s = find_setting(name);
        int64_t v = 0;

        if (!s) {
                (void)snprintf(error, 256, "Unknown topic config name: %s", name);
                return -EINVAL;
        }
        if (strcmp(name, "cleanup.policy") == 0 && strcmp(value, "delete") != 0) {
                (void)snprintf(error, 256,
                               "cleanup.policy: this broker keeps logs by deletion only, not '%s'", value);
                return -EINVAL;
        }
        if (s->type == SETTING_OTHER)
                return 0;
        if (parse_int64(value, s->min, s->max, &v) < 0) {
                (void)snprintf(error, 256, "%s: '%s' is not a whole number from %lld to %lld", name, value,
                               (long long)s->min, (long long)s->max);
                return -EINVAL;
        }
        if (s->type == SETTING_INT32)
                *(int32_t *)((char *)c + s->offset) = (int32_t)v;
        else
                *(int64_t *)((char *)c + s->offset) = v;
        return 0;
}

static int decode(struct topic_configs *t, const char *topic, const struct zk_result *res,
                  struct topic_config *ret)
{
        struct znode_config z = {0};
        char error[256];
        int r;

        *ret = (struct topic_config){.log = t->o.defaults};
        if (res->r == -ENOENT || !res->data)
                return 0; /* no settings of its own */
        r = znode_config_decode(res->data, res->data_len, &z);
        for (size_t i = 0; r == 0 && i < z.n; i++)
                if (topic_config_set(ret, z.entries[i].key, z.entries[i].value, error) < 0)
                        slog_warning("topic-config-ignored",
                                     "a topic setting in ZooKeeper has no valid value; the default holds",
                                     SL_STR("topic", topic), SL_STR("why", error));
        znode_config_done(&z);
        return r;
}

/* One read of /config/topics/T, for a prepare or after a change. */
struct config_read {
        struct topic_configs *owner;
        struct config_wait *wait; /* NULL: nobody waits */
        char topic[];
};

struct config_wait {
        size_t pending;
        void (*fn)(void *userdata);
        void *userdata;
};

static void wait_done(struct config_wait *w)
{
        if (!w || --w->pending > 0)
                return;
        w->fn(w->userdata);
        free(w);
}

static int ask(struct config_read *c);

/* The session lives, and only this operation was lost: to go on with the defaults would be to go on, perhaps
 * for days, with another min.insync.replicas than the topic's. */
static bool retryable(int r)
{
        return r == -ECONNRESET || r == -ETIMEDOUT;
}

static void on_read(const struct zk_result *res, void *userdata);

static void on_read_again(const struct zk_result *res, void *userdata)
{
        struct config_read *c = userdata;

        if (res->r < 0 || ask(c) < 0)
                on_read(&(struct zk_result){.r = res->r < 0 ? res->r : -ENOMEM}, c);
}

static void on_read(const struct zk_result *res, void *userdata)
{
        cleanup_with(freep) struct config_read *c = userdata;
        struct topic_configs *t = c->owner;
        struct topic_config config;
        int r = res->r == -ENOENT ? 0 : res->r;

        if (retryable(r) && zk_delay(t->o.zk, t->o.loop, RETRY_MS, on_read_again, c) == 0) {
                TAKE_PTR(c);
                return;
        }
        if (r == 0)
                r = decode(t, c->topic, res, &config);
        if (r == 0) {
                t->o.on_config(c->topic, &config, t->o.userdata);
                (void)!map_put_str(t->known, c->topic, t->known); /* a lost mark costs one more read */
        } else {
                slog_warning("topic-config-unread",
                             "a topic's configuration could not be read; the defaults hold for now",
                             SL_STR("topic", c->topic), SL_ERR(r));
        }
        wait_done(c->wait);
}

static int ask(struct config_read *c)
{
        char path[ZNODE_PATH_SIZE];

        znode_path_topic_config(c->topic, path);
        return zk_get(c->owner->o.zk, c->owner->o.loop, path, NULL, on_read, c);
}

static int start_read(struct topic_configs *t, const char *topic, struct config_wait *wait)
{
        size_t n = strlen(topic) + 1;
        struct config_read *c = malloc(sizeof(*c) + n);
        int r;

        if (!c)
                return -ENOMEM;
        c->owner = t;
        c->wait = wait;
        memcpy(c->topic, topic, n);
        r = ask(c);
        if (r < 0)
                free(c);
        else if (wait)
                wait->pending++;
        return r;
}

int topic_configs_prepare(struct topic_configs *t, const struct api_topic *topics, size_t n,
                          void (*fn)(void *userdata), void *userdata)
{
        struct config_wait *w = NULL;

        for (size_t i = 0; i < n; i++) {
                if (!topics[i].fresh && map_get_str(t->known, topics[i].name))
                        continue;
                if (!w) {
                        w = malloc(sizeof(*w));
                        if (!w)
                                return -ENOMEM;
                        *w = (struct config_wait){.pending = 1, .fn = fn, .userdata = userdata};
                }
                if (start_read(t, topics[i].name, w) < 0)
                        slog_warning("topic-config-unread",
                                     "not enough memory to read a topic's configuration",
                                     SL_STR("topic", topics[i].name));
        }
        if (w)
                wait_done(w);
        else
                fn(userdata);
        return 0;
}

static void watch_changes(struct topic_configs *t);

static void on_change(const char *path, void *userdata)
{
        (void)path;
        watch_changes(userdata);
}

static void on_watch_again(const struct zk_result *res, void *userdata)
{
        if (res->r == 0)
                watch_changes(userdata);
}

/* Every known topic is read again: changes are rare, and the list of notifications does not say reliably
 * which ones this broker has seen. */
static void on_children(const struct zk_result *res, void *userdata)
{
        struct topic_configs *t = userdata;
        const void *topic;
        size_t cursor = 0, len;
        void *mark;

        if (retryable(
                    res->r)) { /* no watch was armed: without another try no change would be seen any more */
                (void)!zk_delay(t->o.zk, t->o.loop, RETRY_MS, on_watch_again, t);
                return;
        }
        if (res->r < 0 && res->r != -ENOENT)
                return; /* the session is gone: on_session() comes */
        while (map_next(t->known, &cursor, &topic, &len, &mark)) {
                char name[256];

                (void)snprintf(name, sizeof(name), "%.*s", (int)len, (const char *)topic);
                (void)start_read(t, name, NULL);
        }
}

static void watch_changes(struct topic_configs *t)
{
        if (zk_children(t->o.zk, t->o.loop, ZNODE_CONFIG_CHANGES, on_change, on_children, t) < 0)
                slog_warning("topic-config-unwatched",
                             "not enough memory to watch for configuration changes");
}

void topic_configs_on_session(struct topic_configs *t)
{
        watch_changes(t);
}

int topic_configs_new(const struct topic_configs_options *o, struct topic_configs **ret)
{
        cleanup_with(topic_configs_freep) struct topic_configs *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->o = *o;
        t->known = map_new();
        if (!t->known)
                return -ENOMEM;
        *ret = TAKE_PTR(t);
        return 0;
}

struct topic_configs *topic_configs_free(struct topic_configs *t)
{
        if (!t)
                return NULL;
        t->known = map_free(t->known);
        free(t);
        return NULL;
}
