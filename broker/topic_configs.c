/* A map of the topics whose configuration has been read, and one ZooKeeper read a topic that has not. */
#include "topic_configs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/parse.h"
#include "base/slog.h"
#include "zk/znode.h"

#define RETRY_MS     200
#define NOTHING_SEEN (-2) /* of this session's notifications */

struct topic_configs {
        struct topic_configs_options o;
        struct map *known; /* topic -> the map itself, as a mark */
        int64_t last_seen; /* the number of the newest notification; -1: there was none */
};

static void decode(const struct topic_configs *t, const char *topic, const struct znode_config *z,
                   struct topic_config *ret)
{
        char error[256];

        *ret = (struct topic_config){.log = t->o.defaults};
        for (size_t i = 0; i < z->n; i++)
                if (topic_config_set(ret, z->entries[i].key, z->entries[i].value, error) < 0)
                        slog_warning("topic-config-ignored",
                                     "a topic setting in ZooKeeper has no valid value; the default holds",
                                     SL_STR("topic", topic), SL_STR("why", error));
}

static int take(struct topic_configs *t, const char *topic, const struct zk_result *res)
{
        struct znode_config z = {0}; /* no settings of its own: empty, or no node at all */
        struct topic_config config;
        int r = 0;

        if (res->r == 0 && res->data)
                r = znode_config_decode(res->data, res->data_len, &z);
        if (r < 0)
                return r;
        decode(t, topic, &z, &config);
        t->o.on_config(topic, &config, t->o.userdata);
        (void)!map_put_str(t->known, topic, t->known); /* a lost mark costs one more read */
        znode_config_done(&z);
        return 0;
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
        int r = res->r == -ENOENT ? 0 : res->r;

        if (retryable(r) && zk_delay(t->o.zk, t->o.loop, RETRY_MS, on_read_again, c) == 0) {
                TAKE_PTR(c);
                return;
        }
        if (r == 0)
                r = take(t, c->topic, res);
        if (r < 0)
                slog_warning("topic-config-unread",
                             "a topic's configuration could not be read; the defaults hold for now",
                             SL_STR("topic", c->topic), SL_ERR(r));
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

/* --- changes --- */

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

static void read_everything(struct topic_configs *t)
{
        const void *topic;
        size_t cursor = 0, len;
        void *mark;

        while (map_next(t->known, &cursor, &topic, &len, &mark)) {
                char name[256];

                (void)snprintf(name, sizeof(name), "%.*s", (int)len, (const char *)topic);
                (void)start_read(t, name, NULL);
        }
        if (t->o.on_broker_change)
                t->o.on_broker_change(NULL, t->o.userdata);
}

/* One notification that this broker has not seen yet. */
struct change_read {
        struct topic_configs *owner;
        char path[ZNODE_PATH_SIZE];
};

static void act_on(struct topic_configs *t, const char *entity)
{
        static const char topics[] = "topics/", brokers[] = "brokers/";

        if (strncmp(entity, topics, sizeof(topics) - 1) == 0) {
                entity += sizeof(topics) - 1;
                if (map_get_str(t->known, entity)) /* else it is read before it is needed */
                        (void)start_read(t, entity, NULL);
        } else if (strncmp(entity, brokers, sizeof(brokers) - 1) == 0 && t->o.on_broker_change) {
                t->o.on_broker_change(entity + sizeof(brokers) - 1, t->o.userdata);
        }
}

static int ask_change(struct change_read *c);

static void on_change_again(const struct zk_result *res, void *userdata)
{
        cleanup_with(freep) struct change_read *c = userdata;

        if (res->r < 0)
                return; /* the session is gone: everything is read in the next */
        if (ask_change(c) == 0)
                TAKE_PTR(c);
        else
                read_everything(c->owner);
}

static void on_change_read(const struct zk_result *res, void *userdata)
{
        cleanup_with(freep) struct change_read *c = userdata;
        cleanup_with(freep) char *entity = NULL;
        int r = res->r;

        if (retryable(r) && zk_delay(c->owner->o.zk, c->owner->o.loop, RETRY_MS, on_change_again, c) == 0) {
                TAKE_PTR(c);
                return;
        }
        if (r == -EOWNERDEAD || r == -ECANCELED)
                return;
        if (r == 0)
                r = znode_config_change_decode(res->data ? res->data : "", res->data_len, &entity);
        if (r == 0)
                act_on(c->owner, entity);
        else if (r == -EBADMSG)
                slog_warning("config-change-ignored", "a notification of a configuration change is malformed",
                             SL_STR("path", c->path));
        else /* deleted already, which tells nothing of what it said */
                read_everything(c->owner);
}

static int ask_change(struct change_read *c)
{
        return zk_get(c->owner->o.zk, c->owner->o.loop, c->path, NULL, on_change_read, c);
}

static int start_change_read(struct topic_configs *t, const char *child)
{
        cleanup_with(freep) struct change_read *c = calloc(1, sizeof(*c));
        int r = -ENOMEM;

        if (c) {
                c->owner = t;
                (void)snprintf(c->path, sizeof(c->path), ZNODE_CONFIG_CHANGES "/%s", child);
                r = ask_change(c);
        }
        if (r == 0)
                TAKE_PTR(c);
        return r;
}

/* The number that the server gave to a notification; -1: it is none. */
static int64_t sequence_of(const char *child)
{
        static const char prefix[] = "config_change_";
        int64_t n;

        if (strncmp(child, prefix, sizeof(prefix) - 1) != 0 ||
            parse_int64(child + sizeof(prefix) - 1, 0, INT64_MAX, &n) < 0)
                return -1;
        return n;
}

/* What was changed before this session began is not told by what is left of the notifications: they are
 * deleted after a quarter of an hour. From then on each is read once. That there are some, but older ones
 * than were seen, means that somebody made the parent anew. */
static void on_children(const struct zk_result *res, void *userdata)
{
        struct topic_configs *t = userdata;
        int64_t seen = t->last_seen, newest = -1;
        int r = 0;

        if (retryable(
                    res->r)) { /* no watch was armed: without another try no change would be seen any more */
                (void)!zk_delay(t->o.zk, t->o.loop, RETRY_MS, on_watch_again, t);
                return;
        }
        if (res->r < 0 && res->r != -ENOENT)
                return; /* the session is gone: on_session() comes */
        for (size_t i = 0; i < res->n_children; i++)
                newest = MAX(newest, sequence_of(res->children[i]));
        t->last_seen = res->n_children > 0 ? newest : MAX(seen, newest);
        if (seen == NOTHING_SEEN || (newest >= 0 && newest < seen)) {
                t->last_seen = newest;
                read_everything(t);
                return;
        }
        for (size_t i = 0; r == 0 && i < res->n_children; i++)
                if (sequence_of(res->children[i]) > seen)
                        r = start_change_read(t, res->children[i]);
        if (r < 0)
                read_everything(t);
}

static void watch_changes(struct topic_configs *t)
{
        if (zk_children(t->o.zk, t->o.loop, ZNODE_CONFIG_CHANGES, on_change, on_children, t) < 0)
                slog_warning("topic-config-unwatched",
                             "not enough memory to watch for configuration changes");
}

void topic_configs_on_session(struct topic_configs *t)
{
        t->last_seen = NOTHING_SEEN;
        watch_changes(t);
}

int topic_configs_new(const struct topic_configs_options *o, struct topic_configs **ret)
{
        cleanup_with(topic_configs_freep) struct topic_configs *t = calloc(1, sizeof(*t));

        if (!t)
                return -ENOMEM;
        t->o = *o;
        t->last_seen = NOTHING_SEEN;
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
