/* The answer to a Metadata request, copied out of the cache. */
#include "replica/metadata_internal.h"

#include <errno.h>
#include <string.h>

#include "wire/error.h"
#include "wire/metadata.h"

#define ID_VERSION 12

static bool asked_by_id(const struct metadata_request_topic *q)
{
        return q->name.len < 0 && !uuid_is_zero(&q->topic_id);
}

static int copy_str(struct arena *a, const char *s, size_t n, struct wire_str *ret)
{
        char *copy = arena_strndup(a, s, n);

        if (!copy)
                return -ENOMEM;
        *ret = (struct wire_str){.data = copy, .len = (int32_t)n};
        return 0;
}

static int fill_brokers(const struct metadata_cache *m, struct arena *a, struct metadata_response *ret)
{
        int r;

        ret->brokers.items = arena_alloc(a, (size_t)m->n_brokers, sizeof(*ret->brokers.items));
        if (!ret->brokers.items && m->n_brokers > 0)
                return -ENOMEM;
        for (int32_t i = 0; i < m->n_brokers; i++) {
                const struct metadata_broker *b = &m->brokers[i];
                struct metadata_response_broker *to = &ret->brokers.items[i];

                to->node_id = b->id;
                to->port = b->port;
                to->rack = WIRE_NULL_STR;
                r = copy_str(a, b->host, strlen(b->host), &to->host);
                if (r == 0 && b->rack[0])
                        r = copy_str(a, b->rack, strlen(b->rack), &to->rack);
                if (r < 0)
                        return r;
        }
        ret->brokers.n = m->n_brokers;
        return 0;
}

static int fill_partition(const struct metadata_cache *m, const struct cached_partition *p, struct arena *a,
                          struct metadata_response_partition *to)
{
        size_t n_ids = (size_t)p->n_replicas + (size_t)p->n_isr + (size_t)p->n_offline;
        int32_t *ids = arena_alloc(a, n_ids + 1, sizeof(int32_t));

        if (!ids)
                return -ENOMEM;
        memcpy(ids, p->ids, n_ids * sizeof(int32_t));
        to->partition_index = p->index;
        to->leader_epoch = p->leader_epoch;
        to->replica_nodes.items = ids;
        to->replica_nodes.n = p->n_replicas;
        to->isr_nodes.items = ids + p->n_replicas;
        to->isr_nodes.n = p->n_isr;
        to->offline_replicas.items = ids + p->n_replicas + p->n_isr;
        to->offline_replicas.n = p->n_offline;
        /* A dead leader is no leader: clients come again until somebody else has been elected. */
        if (metadata_find_broker(m, p->leader)) {
                to->leader_id = p->leader;
        } else {
                to->leader_id = -1;
                to->error_code = KAFKA_LEADER_NOT_AVAILABLE;
        }
        return 0;
}

static int fill_topic(const struct metadata_cache *m, const struct cached_topic *t, struct arena *a,
                      struct metadata_response_topic *to)
{
        int r;

        r = copy_str(a, t->name, (size_t)t->name_len, &to->name);
        if (r < 0)
                return r;
        to->topic_id = t->id;
        to->is_internal = strncmp(t->name, "__", 2) == 0 && (strcmp(t->name, "__consumer_offsets") == 0 ||
                                                             strcmp(t->name, "__transaction_state") == 0);
        to->topic_authorized_operations = INT32_MIN;
        to->partitions.items = arena_alloc(a, (size_t)t->n_partitions, sizeof(*to->partitions.items));
        if (!to->partitions.items && t->n_partitions > 0)
                return -ENOMEM;
        for (int32_t i = 0; i < t->n_partitions; i++) {
                r = fill_partition(m, t->partitions[i], a, &to->partitions.items[to->partitions.n++]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A topic asked for by name, or by id (then the name is null). Requests can carry ids from v10 on, but only
 * from v12 on answers can do without the name. */
static int fill_requested(const struct metadata_cache *m, const struct metadata_request_topic *q,
                          int16_t version, struct arena *a, struct metadata_response_topic *to)
{
        bool by_id = asked_by_id(q);
        const struct cached_topic *t = by_id ? map_get(m->topic_ids, &q->topic_id, sizeof(q->topic_id))
                                             : metadata_find_topic(m, q->name);

        if (by_id && version < ID_VERSION) {
                to->topic_authorized_operations = INT32_MIN;
                to->topic_id = q->topic_id;
                to->error_code = KAFKA_INVALID_REQUEST;
                return copy_str(a, "", 0, &to->name);
        }
        if (t)
                return fill_topic(m, t, a, to);
        to->topic_authorized_operations = INT32_MIN;
        to->topic_id = q->topic_id;
        to->name = WIRE_NULL_STR;
        if (by_id) {
                to->error_code = KAFKA_UNKNOWN_TOPIC_ID;
                return 0;
        }
        to->error_code =
                topic_name_valid(q->name) ? KAFKA_UNKNOWN_TOPIC_OR_PARTITION : KAFKA_INVALID_TOPIC_EXCEPTION;
        return q->name.len < 0 ? copy_str(a, "", 0, &to->name)
                               : copy_str(a, q->name.data, (size_t)q->name.len, &to->name);
}

static int fill_all(const struct metadata_cache *m, struct arena *a, struct metadata_response *ret)
{
        size_t n = map_count(m->topics);
        void *t;
        int r;

        ret->topics.items = arena_alloc(a, n, sizeof(*ret->topics.items));
        if (!ret->topics.items && n > 0)
                return -ENOMEM;
        for (size_t c = 0; map_next(m->topics, &c, NULL, NULL, &t);) {
                r = fill_topic(m, t, a, &ret->topics.items[ret->topics.n++]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* What is asked for, each topic once: a request that names one a million times must not get it as often. */
struct asked {
        bool all;
        const struct metadata_request_topic **items;
        size_t n;
};

static int collect_asked(const struct metadata_request *req, int16_t version, struct arena *a,
                         struct asked *ret)
{
        cleanup_with(map_freep) struct map *names = NULL;
        cleanup_with(map_freep) struct map *ids = NULL;

        *ret = (struct asked){.all = req->topics.n < 0 || (version == 0 && req->topics.n == 0)};
        if (req->topics.n <= 0)
                return 0;
        names = map_new();
        ids = map_new();
        ret->items = arena_alloc(a, (size_t)req->topics.n, sizeof(const struct metadata_request_topic *));
        if (!names || !ids || !ret->items)
                return -ENOMEM;
        for (int32_t i = 0; i < req->topics.n; i++) {
                struct metadata_request_topic *q = &req->topics.items[i];
                int r = asked_by_id(q) ? map_put(ids, &q->topic_id, sizeof(q->topic_id), q)
                                       : map_put(names, q->name.len > 0 ? q->name.data : "",
                                                 (size_t)MAX(q->name.len, 0), q);

                if (r == 0)
                        ret->items[ret->n++] = q;
                else if (r != -EEXIST)
                        return r;
        }
        return 0;
}

static int fill_topics(const struct metadata_cache *m, const struct asked *asked, int16_t version,
                       struct arena *a, struct metadata_response *ret)
{
        int r;

        if (asked->all)
                return fill_all(m, a, ret);
        ret->topics.items = arena_alloc(a, asked->n, sizeof(*ret->topics.items));
        if (!ret->topics.items && asked->n > 0)
                return -ENOMEM;
        for (size_t i = 0; i < asked->n; i++) {
                r = fill_requested(m, asked->items[i], version, a, &ret->topics.items[ret->topics.n++]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int fill_locked(const struct metadata_cache *m, const struct asked *asked, int16_t version,
                       struct arena *a, struct metadata_response *ret)
{
        int r;

        ret->controller_id = metadata_find_broker(m, m->controller_id) ? m->controller_id : -1;
        ret->cluster_authorized_operations = INT32_MIN;
        ret->cluster_id = WIRE_NULL_STR;
        if (m->cluster_id) {
                r = copy_str(a, m->cluster_id, strlen(m->cluster_id), &ret->cluster_id);
                if (r < 0)
                        return r;
        }
        r = fill_brokers(m, a, ret);
        return r < 0 ? r : fill_topics(m, asked, version, a, ret);
}

int metadata_cache_fill_response(struct metadata_cache *m, const struct metadata_request *req,
                                 int16_t version, struct arena *a, struct metadata_response *ret)
{
        struct asked asked;
        int r;

        *ret = (struct metadata_response){0};
        r = collect_asked(req, version, a, &asked);
        if (r < 0)
                return r;
        pthread_rwlock_rdlock(&m->lock);
        r = fill_locked(m, &asked, version, a, ret);
        pthread_rwlock_unlock(&m->lock);
        return r;
}
