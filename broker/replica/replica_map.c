/* The maps of the replica manager: partitions by name and id, topic configurations, endpoints of other
 * brokers. */
#include "replica/replica_internal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "base/throttled_list.h"
#include "wire/error.h"

/* --- keys --- */

struct partition_key {
        uint8_t bytes[TOPIC_NAME_SIZE + sizeof(struct uuid) + 4];
        size_t len;
};

static struct partition_key key_of(const void *prefix, size_t len, int32_t index)
{
        struct partition_key k;
        uint32_t be = htobe32((uint32_t)index);

        k.len = MIN(len, sizeof(k.bytes) - sizeof(be));
        memcpy(k.bytes, prefix, k.len);
        memcpy(k.bytes + k.len, &be, sizeof(be));
        k.len += sizeof(be);
        return k;
}

struct partition *replica_find_locked(struct replica_manager *m, const void *prefix, size_t len,
                                      int32_t index, bool by_id)
{
        struct partition_key k = key_of(prefix, len, index);
        struct partition *p = map_get(by_id ? m->by_id : m->partitions, k.bytes, k.len);

        return p ? partition_ref(p) : NULL;
}

static struct partition *find_ref(struct replica_manager *m, const void *prefix, size_t len, int32_t index)
{
        struct partition *p;

        pthread_rwlock_rdlock(&m->map_lock);
        p = replica_find_locked(m, prefix, len, index, false);
        pthread_rwlock_unlock(&m->map_lock);
        return p;
}

struct partition *replica_find(struct replica_manager *m, struct wire_str topic, int32_t index)
{
        if (topic.len < 1 || topic.len >= TOPIC_NAME_SIZE)
                return NULL;
        return find_ref(m, topic.data, (size_t)topic.len, index);
}

int16_t replica_missing_error(struct replica_manager *m, struct wire_str topic, int32_t index)
{
        struct metadata_leader l;

        return metadata_cache_leader(m->metadata, topic, index, &l) ? KAFKA_NOT_LEADER_OR_FOLLOWER
                                                                    : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
}

int replica_snapshot(struct replica_manager *m, struct replica_snapshot *ret)
{
        int r = 0;
        void *p;

        pthread_rwlock_rdlock(&m->map_lock);
        ret->n = 0;
        ret->items = calloc(map_count(m->partitions) + 1, sizeof(struct partition *));
        if (ret->items) {
                for (size_t c = 0; map_next(m->partitions, &c, NULL, NULL, &p);)
                        ret->items[ret->n++] = partition_ref(p);
        } else {
                r = -ENOMEM;
        }
        pthread_rwlock_unlock(&m->map_lock);
        return r;
}

void replica_snapshot_free(struct replica_snapshot *s)
{
        for (size_t i = 0; i < s->n; i++)
                (void)partition_unref(s->items[i]);
        free(s->items);
        *s = (struct replica_snapshot){0};
}

/* --- adding and removing --- */

static void configure(struct replica_manager *m, struct partition *p)
{
        struct partition_effects e;
        struct log_config log = m->options.log_defaults;
        int32_t min_isr = m->options.min_insync_replicas;
        const struct topic_config *c;
        int32_t self = m->options.broker_id;
        bool leader = false, follower = false;

        pthread_rwlock_rdlock(&m->map_lock);
        c = map_get_str(m->topic_configs, p->topic);
        if (c) {
                log = c->log;
                min_isr = c->min_isr > 0 ? c->min_isr : min_isr;
                leader = throttled_list_has(c->leader_throttled, p->index, self);
                follower = throttled_list_has(c->follower_throttled, p->index, self);
        }
        pthread_rwlock_unlock(&m->map_lock);
        atomic_store_explicit(&p->leader_throttled, leader, memory_order_relaxed);
        atomic_store_explicit(&p->follower_throttled, follower, memory_order_relaxed);
        partition_set_log_config(p, &log);
        partition_set_min_isr(p, min_isr, clock_mono_ms(), &e);
        replica_perform(m, p, &e);
}

void replica_set_topic_id(struct replica_manager *m, struct partition *p, const struct uuid *id)
{
        struct partition_key k = key_of(id, sizeof(*id), p->index);
        int r;

        if (uuid_is_zero(id))
                return;
        r = log_manager_set_topic_id(m->logs, p->topic, p->index, id);
        if (r < 0)
                slog_warning("topic-id-not-written", "the id of a replica's topic could not be written",
                             SL_STR("topic", p->topic), SL_INT("partition", p->index), SL_ERR(r));
        pthread_rwlock_wrlock(&m->map_lock);
        if (map_get(m->by_id, k.bytes, k.len) != p && map_set(m->by_id, k.bytes, k.len, p, NULL) < 0)
                slog_warning("out-of-memory", "a partition can be fetched by name only",
                             SL_STR("topic", p->topic), SL_INT("partition", p->index));
        pthread_rwlock_unlock(&m->map_lock);
}

int replica_add(struct replica_manager *m, const char *topic, int32_t index, struct partition_log *log,
                struct partition **ret)
{
        cleanup_with(partition_unrefp) struct partition *p = NULL;
        struct partition_key k;
        int r;

        r = partition_new(&m->env, topic, index, log, log_manager_checkpointed_hw(m->logs, topic, index), &p);
        if (r < 0)
                return r;
        if (log_manager_topic_id(m->logs, topic, index, &p->topic_id) < 0)
                p->topic_id = (struct uuid){0}; /* LeaderAndIsr will say */
        configure(m, p);
        k = key_of(topic, strlen(topic), index);
        pthread_rwlock_wrlock(&m->map_lock);
        r = map_put(m->partitions, k.bytes, k.len, p);
        pthread_rwlock_unlock(&m->map_lock);
        if (r < 0)
                return r;
        replica_set_topic_id(m, p, &p->topic_id);
        *ret = partition_ref(p);
        p = NULL; /* the map's reference */
        return 0;
}

int replica_create(struct replica_manager *m, const char *topic, int32_t index, struct partition **ret)
{
        struct partition_log *log;
        int r;

        r = log_manager_get(m->logs, topic, index, true, &log);
        return r < 0 ? r : replica_add(m, topic, index, log, ret);
}

void replica_remove(struct replica_manager *m, struct partition *p)
{
        struct partition_key by_name = key_of(p->topic, strlen(p->topic), p->index);
        struct partition_key by_id = key_of(&p->topic_id, sizeof(p->topic_id), p->index);
        void *removed;

        pthread_rwlock_wrlock(&m->map_lock);
        removed = map_remove(m->partitions, by_name.bytes, by_name.len);
        (void)map_remove(m->by_id, by_id.bytes, by_id.len);
        pthread_rwlock_unlock(&m->map_lock);
        (void)partition_unref(removed);
}

/* --- topic configurations --- */

static const char *put_text(char **at, const char *s)
{
        size_t n = s ? strlen(s) + 1 : 0;
        const char *copy = n > 1 ? *at : NULL;

        if (copy)
                memcpy(*at, s, n);
        *at += n;
        return copy;
}

static int put_topic_config(struct replica_manager *m, const char *topic,
                            const struct replica_topic_config *from)
{
        size_t n = (from->leader_throttled ? strlen(from->leader_throttled) + 1 : 0) +
                   (from->follower_throttled ? strlen(from->follower_throttled) + 1 : 0);
        struct topic_config *c = calloc(1, sizeof(*c) + n);
        void *old = NULL;
        char *at;
        int r;

        if (!c)
                return -ENOMEM;
        at = c->text;
        c->min_isr = from->min_isr;
        c->log = from->log ? *from->log : m->options.log_defaults;
        c->leader_throttled = put_text(&at, from->leader_throttled);
        c->follower_throttled = put_text(&at, from->follower_throttled);
        pthread_rwlock_wrlock(&m->map_lock);
        r = map_set(m->topic_configs, topic, strlen(topic), c, &old);
        pthread_rwlock_unlock(&m->map_lock);
        free(r < 0 ? c : old);
        return r;
}

int replica_manager_set_topic_config(struct replica_manager *m, const char *topic,
                                     const struct replica_topic_config *c)
{
        struct replica_snapshot s;
        int r;

        r = put_topic_config(m, topic, c);
        if (r == 0)
                r = replica_snapshot(m, &s);
        if (r < 0)
                return r;
        for (size_t i = 0; i < s.n; i++) {
                if (strcmp(s.items[i]->topic, topic) == 0)
                        configure(m, s.items[i]);
        }
        replica_snapshot_free(&s);
        return 0;
}

/* --- endpoints --- */

void replica_set_endpoint(struct replica_manager *m, int32_t id, struct wire_str host, int32_t port)
{
        struct replica_endpoint *e, *old;

        if (host.len < 1 || host.len >= METADATA_HOST_SIZE || port < 1 || port > UINT16_MAX)
                return;
        e = calloc(1, sizeof(*e));
        if (!e)
                return; /* others know it, too */
        memcpy(e->host, host.data, (size_t)host.len);
        e->port = (uint16_t)port;
        pthread_rwlock_wrlock(&m->map_lock);
        old = map_get_int(m->endpoints, id);
        if (old) {
                *old = *e;
                free(e);
        } else if (map_put_int(m->endpoints, id, e) < 0) {
                free(e);
        }
        pthread_rwlock_unlock(&m->map_lock);
}

bool replica_endpoint_of(struct replica_manager *m, int32_t id, struct replica_endpoint *ret)
{
        const struct replica_endpoint *e;
        struct metadata_broker b;

        pthread_rwlock_rdlock(&m->map_lock);
        e = map_get_int(m->endpoints, id);
        if (e)
                *ret = *e;
        pthread_rwlock_unlock(&m->map_lock);
        if (e)
                return true;
        if (m->ops.broker_endpoint && m->ops.broker_endpoint(m->ops.userdata, id, ret->host, &ret->port))
                return true;
        if (!metadata_cache_broker(m->metadata, id, &b) || b.port < 1 || b.port > UINT16_MAX)
                return false;
        memcpy(ret->host, b.host, sizeof(ret->host));
        ret->port = (uint16_t)b.port;
        return true;
}
