/* Maps, indexes and counts; see the header. */
#include "controller/context.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/replica_assignment.h"

int ctx_init(struct ctx *c)
{
        c->brokers = map_new();
        c->topics = map_new();
        c->topic_ids = map_new();
        c->folded = map_new();
        list_init(&c->deleting);
        return c->brokers && c->topics && c->topic_ids && c->folded ? 0 : -ENOMEM;
}

static void topic_free(struct ctx_topic *t)
{
        free(t->partitions);
        free(t->name);
        free(t);
}

static void partition_free(struct ctx_partition *p)
{
        free(p->isr);
        free(p->replicas);
        free(p->slots);
        free(p->want);
        free(p->doubt);
        list_remove(&p->moving);
        free(p);
}

static void broker_free(struct ctx_broker *b)
{
        znode_broker_done(&b->info);
        free(b->hosted);
        free(b);
}

void ctx_done(struct ctx *c)
{
        size_t cursor = 0;
        void *v;

        for (size_t i = 0; i < c->n_indexes; i++) {
                struct ctx_partition *p = c->partitions[i];

                if (!p)
                        continue;
                /* Topics out of the map are held by their last partition alone. */
                if (--p->topic->refs == 0 && p->topic->forgotten)
                        topic_free(p->topic);
                partition_free(p);
        }
        while (c->topics && map_next(c->topics, &cursor, NULL, NULL, &v))
                topic_free(v);
        cursor = 0;
        while (c->brokers && map_next(c->brokers, &cursor, NULL, NULL, &v))
                broker_free(v);
        map_free(c->brokers);
        map_free(c->topics);
        map_free(c->topic_ids);
        map_free(c->folded);
        free(c->partitions);
        free(c->free_indexes);
        *c = (struct ctx){.on_grow = c->on_grow, .userdata = c->userdata};
}

/* --- brokers --- */

struct ctx_broker *ctx_broker(const struct ctx *c, int32_t id)
{
        return map_get_int(c->brokers, id);
}

struct ctx_broker *ctx_broker_make(struct ctx *c, int32_t id)
{
        struct ctx_broker *b = ctx_broker(c, id);

        if (b)
                return b;
        b = calloc(1, sizeof(*b));
        if (!b)
                return NULL;
        b->id = id;
        b->epoch = -1;
        if (map_put_int(c->brokers, id, b) < 0) {
                free(b);
                return NULL;
        }
        return b;
}

void ctx_broker_set_alive(struct ctx *c, struct ctx_broker *b, int64_t epoch, struct znode_broker *info)
{
        if (!b->alive)
                c->n_alive++;
        b->alive = true;
        b->epoch = epoch;
        znode_broker_done(&b->info);
        b->info = *info;
        *info = (struct znode_broker){0};
        for (size_t i = 0; i < b->n_hosted; i++)
                c->partitions[b->hosted[i].partition]->slots[b->hosted[i].slot].dir_offline = false;
}

void ctx_broker_set_dead(struct ctx *c, struct ctx_broker *b)
{
        if (b->alive)
                c->n_alive--;
        b->alive = false;
        b->epoch = -1;
}

static int compare_ids(const void *a, const void *b)
{
        int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

        return (x > y) - (x < y);
}

int32_t *ctx_alive_ids(const struct ctx *c, bool with_draining, int32_t *ret_n)
{
        int32_t *ids = calloc(c->n_alive + 1, sizeof(*ids)), n = 0;
        size_t cursor = 0;
        void *v;

        if (!ids)
                return NULL;
        while (map_next(c->brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;

                if (b->alive && (with_draining || !b->drain))
                        ids[n++] = b->id;
        }
        qsort(ids, (size_t)n, sizeof(*ids), compare_ids);
        *ret_n = n;
        return ids;
}

static int hosted_reserve(struct ctx_broker *b)
{
        size_t capacity = MAX(b->hosted_capacity * 2, (size_t)16);
        void *grown;

        if (b->n_hosted < b->hosted_capacity)
                return 0;
        grown = reallocarray(b->hosted, capacity, sizeof(*b->hosted));
        if (!grown)
                return -ENOMEM;
        b->hosted = grown;
        b->hosted_capacity = capacity;
        return 0;
}

static void hosted_remove(struct ctx *c, struct ctx_slot *s)
{
        struct ctx_broker *b = s->broker;
        uint32_t at = s->hosted_at;

        b->hosted[at] = b->hosted[--b->n_hosted];
        if (at < b->n_hosted)
                c->partitions[b->hosted[at].partition]->slots[b->hosted[at].slot].hosted_at = at;
}

/* --- topics and partitions --- */

struct ctx_topic *ctx_topic(const struct ctx *c, const char *name)
{
        return map_get_str(c->topics, name);
}

struct ctx_topic *ctx_topic_n(const struct ctx *c, const char *name, size_t len)
{
        char z[256];

        if (len >= sizeof(z) || memchr(name, 0, len))
                return NULL;
        memcpy(z, name, len);
        z[len] = '\0';
        return ctx_topic(c, z);
}

struct ctx_topic *ctx_topic_colliding(const struct ctx *c, const char *name)
{
        char folded[TOPIC_NAME_FOLDED_SIZE];

        topic_name_fold(name, folded);
        return map_get_str(c->folded, folded);
}

struct ctx_topic *ctx_topic_by_id(const struct ctx *c, const struct uuid *id)
{
        return map_get(c->topic_ids, id->bytes, sizeof(id->bytes));
}

struct ctx_partition *ctx_partition(const struct ctx *c, uint32_t index)
{
        return index < c->n_indexes ? c->partitions[index] : NULL;
}

struct ctx_partition *ctx_topic_partition(const struct ctx_topic *t, int32_t number)
{
        return number >= 0 && number < t->n_partitions ? t->partitions[number] : NULL;
}

void ctx_partition_ref(struct ctx_partition *p)
{
        p->refs++;
}

static void partition_release(struct ctx *c, struct ctx_partition *p)
{
        struct ctx_topic *t = p->topic;

        c->partitions[p->index] = NULL;
        c->free_indexes[c->n_free++] = p->index;
        partition_free(p);
        if (--t->refs == 0 && t->forgotten)
                topic_free(t);
}

void ctx_partition_unref(struct ctx *c, struct ctx_partition *p)
{
        assert(p->refs > 0);
        if (--p->refs == 0 && p->topic->forgotten)
                partition_release(c, p);
}

static int grow(struct ctx *c, size_t more)
{
        size_t need = c->n_partitions + more, capacity = MAX(c->capacity, (size_t)64);
        void *grown;
        int r;

        while (capacity < need)
                capacity *= 2;
        if (capacity > c->capacity) {
                grown = reallocarray(c->partitions, capacity, sizeof(*c->partitions));
                if (!grown)
                        return -ENOMEM;
                c->partitions = grown;
                grown = reallocarray(c->free_indexes, capacity, sizeof(*c->free_indexes));
                if (!grown)
                        return -ENOMEM;
                c->free_indexes = grown;
        }
        if (c->on_grow) {
                r = c->on_grow(capacity, c->userdata);
                if (r < 0)
                        return r;
        }
        c->capacity = capacity;
        return 0;
}

static int partition_new(struct ctx *c, struct ctx_topic *t, const struct znode_assignment *a,
                         struct ctx_partition **ret)
{
        struct ctx_partition *p;

        if (a->n_replicas > ZNODE_MAX_REPLICAS / 2)
                return -EINVAL;
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        list_init(&p->moving);
        p->slots = calloc(a->n_replicas + 1, sizeof(*p->slots));
        p->replicas = calloc(a->n_replicas + 1, sizeof(*p->replicas));
        if (!p->slots || !p->replicas) {
                partition_free(p);
                return -ENOMEM;
        }
        p->topic = t;
        p->number = a->partition;
        p->leader = -1;
        p->version = -1;
        p->state = PARTITION_NEW;
        for (size_t i = 0; i < a->n_replicas; i++) {
                struct ctx_broker *b = ctx_broker_make(c, a->replicas[i]);

                if (!b || hosted_reserve(b) < 0) {
                        partition_free(p);
                        return -ENOMEM;
                }
                p->slots[i] = (struct ctx_slot){.broker_id = b->id,
                                                .broker = b,
                                                .state = REPLICA_NEW,
                                                .adding = ids_contain(a->adding, a->n_adding, b->id),
                                                .removing = ids_contain(a->removing, a->n_removing, b->id)};
                p->reassigning = p->reassigning || p->slots[i].adding || p->slots[i].removing;
                p->replicas[i] = b->id;
        }
        p->n_slots = (uint16_t)a->n_replicas;
        *ret = p;
        return 0;
}

/* A failure half-way leaves hosted entries of slots not yet linked untouched; nothing to undo but memory. */
static int partition_link(struct ctx *c, struct ctx_partition *p)
{
        p->index = c->n_free ? c->free_indexes[--c->n_free] : (uint32_t)c->n_indexes++;
        c->partitions[p->index] = p;
        c->n_partitions++;
        p->topic->refs++;
        for (uint16_t i = 0; i < p->n_slots; i++) {
                struct ctx_slot *s = &p->slots[i];

                if (hosted_reserve(s->broker) < 0) {
                        p->n_slots = i; /* the caller forgets the topic, which unlinks these */
                        return -ENOMEM;
                }
                s->hosted_at = (uint32_t)s->broker->n_hosted;
                s->broker->hosted[s->broker->n_hosted].partition = p->index;
                s->broker->hosted[s->broker->n_hosted++].slot = i;
        }
        return 0;
}

static struct ctx_topic *topic_new(const char *name, const struct znode_topic *t)
{
        struct ctx_topic *topic = calloc(1, sizeof(*topic));
        int32_t n = t->n_partitions ? t->partitions[t->n_partitions - 1].partition + 1 : 0;

        if (!topic)
                return NULL;
        list_init(&topic->node);
        topic->name = strdup(name);
        topic->id = t->id;
        topic->n_partitions = n;
        topic->min_isr = 1;
        topic->partitions = calloc((size_t)n + 1, sizeof(struct ctx_partition *));
        if (topic->name && topic->partitions)
                return topic;
        topic_free(topic);
        return NULL;
}

static int topic_fill(struct ctx *c, struct ctx_topic *topic, const struct znode_topic *t)
{
        for (size_t i = 0; i < t->n_partitions; i++) {
                struct ctx_partition *p;
                int r;

                r = partition_new(c, topic, &t->partitions[i], &p);
                if (r < 0)
                        return r;
                topic->partitions[p->number] = p;
                r = partition_link(c, p);
                if (r < 0)
                        return r;
        }
        return 0;
}

int ctx_topic_add(struct ctx *c, const char *name, const struct znode_topic *t, struct ctx_topic **ret)
{
        char folded[TOPIC_NAME_FOLDED_SIZE];
        struct ctx_topic *topic;
        int r;

        if (ctx_topic(c, name))
                return -EEXIST;
        /* Numbers come from a znode anybody may have written: no array by the highest of a few. */
        if (t->n_partitions &&
            (t->partitions[0].partition < 0 || t->partitions[t->n_partitions - 1].partition > 1000000))
                return -EINVAL;
        r = grow(c, t->n_partitions);
        if (r < 0)
                return r;
        topic = topic_new(name, t);
        if (!topic)
                return -ENOMEM;
        r = map_put_str(c->topics, name, topic);
        if (r < 0) {
                topic_free(topic);
                return r;
        }
        r = topic_fill(c, topic, t);
        topic_name_fold(name, folded);
        if (r >= 0 && map_put_str(c->folded, folded, topic) == -ENOMEM)
                r = -ENOMEM;
        if (r >= 0 && !uuid_is_zero(&t->id))
                r = map_set(c->topic_ids, t->id.bytes, sizeof(t->id.bytes), topic, NULL);
        if (r < 0) {
                ctx_topic_forget(c, topic);
                return r;
        }
        *ret = topic;
        return 0;
}

int ctx_topic_grow(struct ctx *c, struct ctx_topic *t, const struct znode_assignment *a,
                   struct ctx_partition **ret)
{
        struct ctx_partition *p;
        int r;

        if (a->partition < 0 || a->partition > 1000000)
                return -EINVAL;
        if (ctx_topic_partition(t, a->partition))
                return -EEXIST;
        r = grow(c, 1);
        if (r < 0)
                return r;
        if (a->partition >= t->n_partitions) {
                struct ctx_partition **grown =
                        reallocarray(t->partitions, (size_t)a->partition + 1, sizeof(struct ctx_partition *));

                if (!grown)
                        return -ENOMEM;
                memset(grown + t->n_partitions, 0,
                       (size_t)(a->partition + 1 - t->n_partitions) * sizeof(struct ctx_partition *));
                t->partitions = grown;
                t->n_partitions = a->partition + 1;
        }
        r = partition_new(c, t, a, &p);
        if (r < 0)
                return r;
        for (uint16_t i = 0; i < p->n_slots; i++)
                if (hosted_reserve(p->slots[i].broker) < 0) {
                        partition_free(p);
                        return -ENOMEM;
                }
        t->partitions[p->number] = p;
        r = partition_link(c, p);
        assert(r >= 0); /* room was made above; no broker is in it twice */
        *ret = p;
        return 0;
}

void ctx_topic_forget(struct ctx *c, struct ctx_topic *t)
{
        char folded[TOPIC_NAME_FOLDED_SIZE];

        (void)map_remove_str(c->topics, t->name);
        topic_name_fold(t->name, folded);
        if (map_get_str(c->folded, folded) == t)
                (void)map_remove_str(c->folded, folded);
        if (ctx_topic_by_id(c, &t->id) == t)
                (void)map_remove(c->topic_ids, t->id.bytes, sizeof(t->id.bytes));
        list_remove(&t->node);
        t->forgotten = true;
        t->refs++; /* ours, for the loop */
        for (int32_t n = 0; n < t->n_partitions; n++) {
                struct ctx_partition *p = t->partitions[n];

                if (!p)
                        continue;
                t->partitions[n] = NULL;
                list_remove(&p->moving);
                ctx_partition_set_state(c, p, -1, p->leader_epoch, p->controller_epoch, p->version, &p->isr,
                                        p->n_isr);
                for (uint16_t i = 0; i < p->n_slots; i++)
                        hosted_remove(c, &p->slots[i]);
                c->n_partitions--;
                if (p->refs == 0)
                        partition_release(c, p);
        }
        if (--t->refs == 0)
                topic_free(t);
}

static void count_leader(struct ctx_partition *p, int32_t by)
{
        if (!p->counted)
                return;
        p->counted->leaders += by;
        if (p->n_slots > 1)
                p->counted->leaders_multi += by;
}

void ctx_partition_set_state(struct ctx *c, struct ctx_partition *p, int32_t leader, int32_t leader_epoch,
                             int32_t controller_epoch, int32_t version, int32_t **isr, int32_t n_isr)
{
        count_leader(p, -1);
        p->leader = leader;
        p->leader_epoch = leader_epoch;
        p->controller_epoch = controller_epoch;
        p->version = version;
        if (*isr != p->isr) {
                free(p->isr);
                p->isr = TAKE_PTR(*isr);
        }
        p->n_isr = n_isr;
        p->counted = leader >= 0 ? ctx_broker(c, leader) : NULL;
        count_leader(p, +1);
}

static struct ctx_slot slot_for(struct ctx_partition *p, struct ctx_broker *b, const struct ctx_assigned *to)
{
        const struct ctx_slot *old = ctx_slot(p, b->id);
        struct ctx_slot s = old ? *old : (struct ctx_slot){.broker_id = b->id, .broker = b};

        if (!old)
                s.state = b->alive ? REPLICA_ONLINE : REPLICA_OFFLINE;
        s.adding = to->adding;
        s.removing = to->removing;
        s.delete_sent = s.delete_in_flight = s.deleted = false;
        return s;
}

int ctx_partition_assign(struct ctx *c, struct ctx_partition *p, const struct ctx_assigned *to, size_t n)
{
        cleanup_with(freep) struct ctx_slot *slots = calloc(n + 1, sizeof(*slots));
        cleanup_with(freep) int32_t *replicas = calloc(n + 1, sizeof(*replicas));

        if (n == 0 || n > ZNODE_MAX_REPLICAS / 2)
                return -EINVAL;
        if (!slots || !replicas)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct ctx_broker *b = ctx_broker_make(c, to[i].id);

                if (!b || hosted_reserve(b) < 0)
                        return -ENOMEM;
                replicas[i] = to[i].id;
                slots[i] = slot_for(p, b, &to[i]);
        }
        count_leader(p, -1);
        for (uint16_t i = 0; i < p->n_slots; i++)
                hosted_remove(c, &p->slots[i]);
        free(p->slots);
        free(p->replicas);
        p->slots = TAKE_PTR(slots);
        p->replicas = TAKE_PTR(replicas);
        p->n_slots = (uint16_t)n;
        p->reassigning = false;
        for (uint16_t i = 0; i < p->n_slots; i++) {
                struct ctx_slot *s = &p->slots[i];

                p->reassigning = p->reassigning || s->adding || s->removing;
                s->hosted_at = (uint32_t)s->broker->n_hosted;
                s->broker->hosted[s->broker->n_hosted].partition = p->index;
                s->broker->hosted[s->broker->n_hosted++].slot = i;
        }
        count_leader(p, +1);
        return 0;
}

struct ctx_slot *ctx_slot(struct ctx_partition *p, int32_t broker_id)
{
        for (uint16_t i = 0; i < p->n_slots; i++)
                if (p->slots[i].broker_id == broker_id)
                        return &p->slots[i];
        return NULL;
}

bool ctx_in_isr(const struct ctx_partition *p, int32_t broker_id)
{
        for (int32_t i = 0; i < p->n_isr; i++)
                if (p->isr[i] == broker_id)
                        return true;
        return false;
}

bool ctx_partition_online(const struct ctx *c, const struct ctx_partition *p)
{
        struct ctx_broker *b = p->leader >= 0 ? ctx_broker(c, p->leader) : NULL;

        return b && b->alive;
}

void ctx_election_input(const struct ctx *c, const struct ctx_partition *p, bool unclean,
                        struct election_replica *replicas, struct election_input *ret)
{
        int n = 0;

        for (uint16_t i = 0; i < p->n_slots && n < ZNODE_MAX_REPLICAS; i++) {
                const struct ctx_slot *s = &p->slots[i];

                replicas[n++] = (struct election_replica){
                        .id = s->broker_id,
                        .leaders = s->broker->leaders + s->broker->planned,
                        .assigned = true,
                        .alive = s->broker->alive && !s->dir_offline,
                        /* D8: who stops with all others gets nothing more, but hands nothing over either */
                        .draining = s->broker->drain || (s->broker->stopping && p->leader != s->broker_id),
                        .stopped = s->stopped,
                        .bounced = s->bounced,
                        .leaving = p->finishing && s->removing,
                };
        }
        for (int32_t i = 0; i < p->n_isr && n < ZNODE_MAX_REPLICAS; i++) {
                const struct ctx_broker *b = ctx_broker(c, p->isr[i]);
                bool known = false;

                for (uint16_t k = 0; k < p->n_slots; k++)
                        known = known || p->slots[k].broker_id == p->isr[i];
                if (!known)
                        replicas[n++] = (struct election_replica){
                                .id = p->isr[i],
                                .alive = b && b->alive,
                                .draining = b && b->drain,
                                .stopped = true,
                        };
        }
        *ret = (struct election_input){
                .has_state = p->has_state,
                .renew = p->renew,
                .prefer = p->prefer,
                .unclean = unclean || p->unclean,
                .leader = p->leader,
                .leader_epoch = p->leader_epoch,
                .isr = p->isr,
                .n_isr = p->n_isr,
                .replicas = replicas,
                .n_replicas = n,
        };
}
