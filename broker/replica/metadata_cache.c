/* Applying UpdateMetadata and the small look-ups. A reader-writer lock rather than snapshots: an update of
 * one partition would copy the map of them all. */
#include "replica/metadata_internal.h"

#include <errno.h>
#include <string.h>

#include "wire/update_metadata.h"

#define LEADER_DELETED (-2)
bool topic_name_valid(struct wire_str name)
{
        static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

        if (name.len < 1 || name.len >= TOPIC_NAME_SIZE || wire_str_equal(name, ".") ||
            wire_str_equal(name, ".."))
                return false;
        for (int32_t i = 0; i < name.len; i++) {
                if (!name.data[i] || !strchr(legal, name.data[i]))
                        return false;
        }
        return true;
}

/* --- finding; the lock is held --- */

const struct metadata_broker *metadata_find_broker(const struct metadata_cache *m, int32_t id)
{
        for (int32_t i = 0; i < m->n_brokers; i++) {
                if (m->brokers[i].id == id)
                        return &m->brokers[i];
        }
        return NULL;
}

struct cached_topic *metadata_find_topic(const struct metadata_cache *m, struct wire_str name)
{
        return name.len > 0 ? map_get(m->topics, name.data, (size_t)name.len) : NULL;
}

/* Position of the first partition that is @partition or behind it. Partitions have consecutive numbers as a
 * rule, and then it is the number. */
static int32_t find_position(const struct cached_topic *t, int32_t partition)
{
        int32_t low = 0, high = t->n_partitions;

        if (partition < high && t->partitions[partition]->index == partition)
                return partition;
        if (high == 0 || t->partitions[high - 1]->index < partition)
                return high; /* they come in order */
        while (low < high) {
                int32_t middle = low + (high - low) / 2;

                if (t->partitions[middle]->index < partition)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

const struct cached_partition *metadata_find_partition(const struct cached_topic *t, int32_t partition)
{
        int32_t at = partition < 0 ? t->n_partitions : find_position(t, partition);

        return at < t->n_partitions && t->partitions[at]->index == partition ? t->partitions[at] : NULL;
}

/* --- life --- */

static struct cached_topic *topic_free(struct cached_topic *t)
{
        if (!t)
                return NULL;
        for (int32_t i = 0; i < t->n_partitions; i++)
                free(t->partitions[i]);
        free(t->partitions);
        free(t);
        return NULL;
}
DEFINE_FREEP(struct cached_topic, topic_free)

struct metadata_cache *metadata_cache_free(struct metadata_cache *m)
{
        void *t;

        if (!m)
                return NULL;
        if (m->topics) {
                for (size_t c = 0; map_next(m->topics, &c, NULL, NULL, &t);)
                        (void)topic_free(t);
        }
        (void)map_free(m->topics);
        (void)map_free(m->topic_ids);
        free(m->brokers);
        free(m->listener);
        free(m->cluster_id);
        pthread_rwlock_destroy(&m->lock);
        free(m);
        return NULL;
}

int metadata_cache_new(const char *cluster_id, const char *listener, struct metadata_cache **ret)
{
        cleanup_with(metadata_cache_freep) struct metadata_cache *m = NULL;
        struct metadata_cache *fresh = calloc(1, sizeof(*fresh));
        int r;

        if (!fresh)
                return -ENOMEM;
        r = -pthread_rwlock_init(&fresh->lock, NULL);
        if (r < 0) {
                free(fresh);
                return r;
        }
        m = fresh;
        m->controller_id = -1;
        m->topics = map_new();
        m->topic_ids = map_new();
        m->listener = listener ? strdup(listener) : NULL;
        m->cluster_id = cluster_id ? strdup(cluster_id) : NULL;
        if (!m->topics || !m->topic_ids || (listener && !m->listener) || (cluster_id && !m->cluster_id))
                return -ENOMEM;
        *ret = TAKE_PTR(m);
        return 0;
}

void metadata_cache_set_cluster_id(struct metadata_cache *m, const char *cluster_id)
{
        char *copy = strdup(cluster_id);

        if (!copy)
                return; /* the old one is shown on */
        pthread_rwlock_wrlock(&m->lock);
        free(m->cluster_id);
        m->cluster_id = copy;
        pthread_rwlock_unlock(&m->lock);
}

/* --- applying --- */

static void copy_text(char *to, size_t size, struct wire_str s)
{
        size_t n = s.len > 0 ? MIN((size_t)s.len, size - 1) : 0;

        if (n > 0)
                memcpy(to, s.data, n);
        to[n] = '\0';
}

static void set_endpoint(const struct metadata_cache *m, const struct update_metadata_request_live_broker *b,
                         int16_t version, struct metadata_broker *ret)
{
        const struct update_metadata_request_endpoint *e = NULL;

        if (version == 0) {
                copy_text(ret->host, sizeof(ret->host), b->v0_host);
                ret->port = b->v0_port;
                return;
        }
        for (int32_t i = 0; i < b->endpoints.n; i++) {
                if (!e || (m->listener && wire_str_equal(b->endpoints.items[i].listener, m->listener)))
                        e = &b->endpoints.items[i];
        }
        if (e) {
                copy_text(ret->host, sizeof(ret->host), e->host);
                ret->port = e->port;
        }
}

static int compare_brokers(const void *a, const void *b)
{
        const struct metadata_broker *x = a, *y = b;

        return x->id < y->id ? -1 : x->id > y->id;
}

static int apply_brokers(struct metadata_cache *m, const struct update_metadata_request *req, int16_t version)
{
        int32_t n = MAX(req->live_brokers.n, 0);
        struct metadata_broker *brokers = calloc((size_t)n + 1, sizeof(*brokers));

        if (!brokers)
                return -ENOMEM;
        for (int32_t i = 0; i < n; i++) {
                const struct update_metadata_request_live_broker *b = &req->live_brokers.items[i];

                brokers[i].id = b->id;
                copy_text(brokers[i].rack, sizeof(brokers[i].rack), b->rack);
                set_endpoint(m, b, version, &brokers[i]);
        }
        qsort(brokers, (size_t)n, sizeof(*brokers), compare_brokers);
        free(m->brokers);
        m->brokers = brokers;
        m->n_brokers = n;
        return 0;
}

static void copy_ids(int32_t **at, const int32_t *ids, int32_t n)
{
        if (n > 0)
                memcpy(*at, ids, (size_t)n * sizeof(int32_t));
        *at += n;
}

static struct cached_partition *partition_copy(const struct update_metadata_request_partition_state *s)
{
        int32_t n_replicas = MAX(s->replicas.n, 0), n_isr = MAX(s->isr.n, 0);
        int32_t n_offline = MAX(s->offline_replicas.n, 0);
        size_t n_ids = (size_t)n_replicas + (size_t)n_isr + (size_t)n_offline;
        struct cached_partition *p = malloc(sizeof(*p) + n_ids * sizeof(int32_t));
        int32_t *at;

        if (!p)
                return NULL;
        *p = (struct cached_partition){
                .index = s->partition_index,
                .leader = s->leader,
                .leader_epoch = s->leader_epoch,
                .controller_epoch = s->controller_epoch,
                .zk_version = s->zk_version,
                .n_replicas = n_replicas,
                .n_isr = n_isr,
                .n_offline = n_offline,
        };
        at = p->ids;
        copy_ids(&at, s->replicas.items, n_replicas);
        copy_ids(&at, s->isr.items, n_isr);
        copy_ids(&at, s->offline_replicas.items, n_offline);
        return p;
}

static int topic_new(struct metadata_cache *m, struct wire_str name, struct cached_topic **ret)
{
        cleanup_with(topic_freep) struct cached_topic *t = calloc(1, sizeof(*t) + (size_t)name.len + 1);
        int r;

        if (!t)
                return -ENOMEM;
        t->name_len = name.len;
        memcpy(t->name, name.data, (size_t)name.len);
        r = map_put(m->topics, t->name, (size_t)t->name_len, t);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}

/* A topic that was deleted and made again has a new id. */
static int topic_set_id(struct metadata_cache *m, struct cached_topic *t, const struct uuid *id)
{
        if (uuid_is_zero(id) || uuid_equal(id, &t->id))
                return 0;
        if (!uuid_is_zero(&t->id))
                (void)map_remove(m->topic_ids, &t->id, sizeof(t->id));
        t->id = *id;
        return map_set(m->topic_ids, id, sizeof(*id), t, NULL);
}

static int topic_reserve(struct cached_topic *t)
{
        int32_t capacity = MAX(t->capacity * 2, 4);
        struct cached_partition **p;

        if (t->n_partitions < t->capacity)
                return 0;
        p = reallocarray(t->partitions, (size_t)capacity, sizeof(struct cached_partition *));
        if (!p)
                return -ENOMEM;
        t->partitions = p;
        t->capacity = capacity;
        return 0;
}

/* The array holds what is known and not what could be: a number from outside must not size it. */
static void shift_partitions(struct cached_topic *t, int32_t from, int32_t by)
{
        memmove(&t->partitions[from + by], &t->partitions[from],
                (size_t)(t->n_partitions - from) * sizeof(struct cached_partition *));
        t->n_partitions += by;
}

static void remove_partition(struct metadata_cache *m, struct cached_topic *t, int32_t index)
{
        int32_t at = find_position(t, index);

        if (at >= t->n_partitions || t->partitions[at]->index != index)
                return;
        free(t->partitions[at]);
        shift_partitions(t, at + 1, -1);
        if (t->n_partitions > 0)
                return;
        (void)map_remove(m->topics, t->name, (size_t)t->name_len);
        if (!uuid_is_zero(&t->id))
                (void)map_remove(m->topic_ids, &t->id, sizeof(t->id));
        (void)topic_free(t);
}

static int put_partition(struct cached_topic *t, const struct update_metadata_request_partition_state *s)
{
        int32_t at = find_position(t, s->partition_index);
        struct cached_partition *p;
        int r;

        r = topic_reserve(t);
        if (r < 0)
                return r;
        p = partition_copy(s);
        if (!p)
                return -ENOMEM;
        if (at < t->n_partitions && t->partitions[at]->index == s->partition_index)
                free(t->partitions[at]);
        else
                shift_partitions(t, at, 1);
        t->partitions[at] = p;
        return 0;
}

static int apply_partition(struct metadata_cache *m, struct wire_str name, const struct uuid *id,
                           const struct update_metadata_request_partition_state *s)
{
        struct cached_topic *t = metadata_find_topic(m, name);
        int r;

        if (name.len < 1 || s->partition_index < 0)
                return 0; /* nothing a client could ask for */
        if (s->leader == LEADER_DELETED) {
                if (t)
                        remove_partition(m, t, s->partition_index);
                return 0;
        }
        if (!t) {
                r = topic_new(m, name, &t);
                if (r < 0)
                        return r;
        }
        r = topic_set_id(m, t, id);
        return r < 0 ? r : put_partition(t, s);
}

static int apply_partitions(struct metadata_cache *m, const struct update_metadata_request *req)
{
        static const struct uuid no_id;
        int r = 0;

        for (int32_t i = 0; r == 0 && i < req->ungrouped_partition_states.n; i++)
                r = apply_partition(m, req->ungrouped_partition_states.items[i].topic_name, &no_id,
                                    &req->ungrouped_partition_states.items[i]);
        for (int32_t i = 0; r == 0 && i < req->topic_states.n; i++) {
                const struct update_metadata_request_topic_state *t = &req->topic_states.items[i];

                for (int32_t j = 0; r == 0 && j < t->partition_states.n; j++)
                        r = apply_partition(m, t->topic_name, &t->topic_id, &t->partition_states.items[j]);
        }
        return r;
}

int metadata_cache_apply(struct metadata_cache *m, const struct update_metadata_request *req, int16_t version)
{
        int r;

        pthread_rwlock_wrlock(&m->lock);
        m->controller_id = req->controller_id;
        r = apply_brokers(m, req, version);
        if (r == 0)
                r = apply_partitions(m, req);
        pthread_rwlock_unlock(&m->lock);
        return r;
}

void metadata_cache_lead(struct metadata_cache *m, struct wire_str topic, int32_t partition, int32_t leader,
                         int32_t leader_epoch)
{
        struct cached_topic *t;
        int32_t at;

        pthread_rwlock_wrlock(&m->lock);
        t = metadata_find_topic(m, topic);
        at = t ? find_position(t, partition) : 0;
        if (t && at < t->n_partitions && t->partitions[at]->index == partition &&
            leader_epoch > t->partitions[at]->leader_epoch) {
                t->partitions[at]->leader = leader;
                t->partitions[at]->leader_epoch = leader_epoch;
        }
        pthread_rwlock_unlock(&m->lock);
}

/* --- look-ups --- */

bool metadata_cache_leader(struct metadata_cache *m, struct wire_str topic, int32_t partition,
                           struct metadata_leader *ret)
{
        const struct cached_topic *t;
        const struct cached_partition *p;
        const struct metadata_broker *b;

        pthread_rwlock_rdlock(&m->lock);
        t = metadata_find_topic(m, topic);
        p = t ? metadata_find_partition(t, partition) : NULL;
        if (p) {
                b = metadata_find_broker(m, p->leader);
                *ret = (struct metadata_leader){
                        .leader_id = p->leader, .leader_epoch = p->leader_epoch, .alive = b};
                if (b)
                        ret->broker = *b;
        }
        pthread_rwlock_unlock(&m->lock);
        return p;
}

bool metadata_cache_broker(struct metadata_cache *m, int32_t id, struct metadata_broker *ret)
{
        const struct metadata_broker *b;

        pthread_rwlock_rdlock(&m->lock);
        b = metadata_find_broker(m, id);
        if (b)
                *ret = *b;
        pthread_rwlock_unlock(&m->lock);
        return b;
}

int32_t metadata_cache_brokers(struct metadata_cache *m, struct metadata_broker *ret, int32_t max)
{
        int32_t n;

        pthread_rwlock_rdlock(&m->lock);
        n = m->n_brokers;
        if (n > 0 && max > 0)
                memcpy(ret, m->brokers, (size_t)MIN(n, max) * sizeof(*ret));
        pthread_rwlock_unlock(&m->lock);
        return n;
}

int32_t metadata_cache_controller_id(struct metadata_cache *m)
{
        int32_t id;

        pthread_rwlock_rdlock(&m->lock);
        id = m->controller_id;
        pthread_rwlock_unlock(&m->lock);
        return id;
}

bool metadata_cache_controller(struct metadata_cache *m, struct metadata_broker *ret)
{
        return metadata_cache_broker(m, metadata_cache_controller_id(m), ret);
}

bool metadata_cache_topic_id(struct metadata_cache *m, struct wire_str topic, struct uuid *ret)
{
        const struct cached_topic *t;

        pthread_rwlock_rdlock(&m->lock);
        t = metadata_find_topic(m, topic);
        if (t)
                *ret = t->id;
        pthread_rwlock_unlock(&m->lock);
        return t;
}

bool metadata_cache_topic_name(struct metadata_cache *m, const struct uuid *id, char ret[TOPIC_NAME_SIZE])
{
        const struct cached_topic *t;

        pthread_rwlock_rdlock(&m->lock);
        t = map_get(m->topic_ids, id, sizeof(*id));
        if (t)
                copy_text(ret, TOPIC_NAME_SIZE, (struct wire_str){.data = t->name, .len = t->name_len});
        pthread_rwlock_unlock(&m->lock);
        return t;
}

int32_t metadata_cache_partition_count(struct metadata_cache *m, struct wire_str topic)
{
        const struct cached_topic *t;
        int32_t n;

        pthread_rwlock_rdlock(&m->lock);
        t = metadata_find_topic(m, topic);
        n = t ? t->n_partitions : -1;
        pthread_rwlock_unlock(&m->lock);
        return n;
}

static void each_locked(struct metadata_cache *m,
                        void (*fn)(const struct metadata_partition *p, void *userdata), void *userdata)
{
        void *value;

        for (size_t c = 0; map_next(m->topics, &c, NULL, NULL, &value);) {
                const struct cached_topic *t = value;

                for (int32_t i = 0; i < t->n_partitions; i++) {
                        const struct cached_partition *p = t->partitions[i];

                        fn(
                                &(struct metadata_partition){
                                        .topic = t->name,
                                        .topic_id = t->id,
                                        .partition = p->index,
                                        .leader_id = p->leader,
                                        .leader_epoch = p->leader_epoch,
                                        .controller_epoch = p->controller_epoch,
                                        .partition_epoch = p->zk_version,
                                        .replicas = p->ids,
                                        .isr = p->ids + p->n_replicas,
                                        .offline = p->ids + p->n_replicas + p->n_isr,
                                        .n_replicas = p->n_replicas,
                                        .n_isr = p->n_isr,
                                        .n_offline = p->n_offline,
                                },
                                userdata);
                }
        }
}

void metadata_cache_each(struct metadata_cache *m,
                         void (*fn)(const struct metadata_partition *p, void *userdata), void *userdata)
{
        pthread_rwlock_rdlock(&m->lock);
        each_locked(m, fn, userdata);
        pthread_rwlock_unlock(&m->lock);
}

static void count_partition(const struct metadata_partition *p, void *userdata)
{
        struct metadata_counts *c = userdata;

        c->partitions++;
        c->leaderless += p->leader_id < 0;
        c->under_replicated += p->n_isr < p->n_replicas;
}

void metadata_cache_get_counts(struct metadata_cache *m, struct metadata_counts *ret)
{
        *ret = (struct metadata_counts){0};
        pthread_rwlock_rdlock(&m->lock);
        ret->brokers = m->n_brokers;
        ret->topics = (int32_t)map_count(m->topics);
        each_locked(m, count_partition, ret);
        pthread_rwlock_unlock(&m->lock);
}
