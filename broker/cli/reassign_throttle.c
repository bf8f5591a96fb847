#include "cli/reassign_throttle.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/config_change.h"
#include "cli/partition_choice.h"

#define LEADER_RATE       "leader.replication.throttled.rate"
#define FOLLOWER_RATE     "follower.replication.throttled.rate"
#define LEADER_REPLICAS   "leader.replication.throttled.replicas"
#define FOLLOWER_REPLICAS "follower.replication.throttled.replicas"
/* A string of Kafka's protocol has at most 32767 bytes. A list that would be longer becomes "*": more
 * replicas than need be are named, but those in sync are never held back. */
#define MAX_LIST_BYTES 32000

struct ids {
        int32_t *items;
        size_t n;
};

static bool has(const struct ids *s, int32_t id)
{
        for (size_t i = 0; i < s->n; i++)
                if (s->items[i] == id)
                        return true;
        return false;
}

static int add(struct arena *a, struct ids *s, int32_t id)
{
        if (has(s, id))
                return 0;
        if ((s->n & (s->n - 1)) == 0) { /* full at every power of two */
                int32_t *items = arena_alloc(a, MAX(s->n * 2, (size_t)1), sizeof(*items));

                if (!items)
                        return -ENOMEM;
                if (s->n > 0)
                        memcpy(items, s->items, s->n * sizeof(*items));
                s->items = items;
        }
        s->items[s->n++] = id;
        return 0;
}

static int by_id(const void *a, const void *b)
{
        const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

        return (x > y) - (x < y);
}

/* --- the edits --- */

struct plan {
        struct cluster *c;
        struct ids brokers;
        const char *topic; /* whose lists are being made */
        struct buf leaders, followers;
        struct config_edit *edits;
        size_t n_edits, cap;
        char rate[24];
};

static const char *finish_list(struct plan *p, struct buf *list)
{
        const char *text = list->len > MAX_LIST_BYTES ? "*" : buf_cstr(list);
        char *copy = text ? arena_strndup(&p->c->arena, text, strlen(text)) : NULL;

        list->len = 0;
        return copy;
}

static int put_edit(struct plan *p, enum config_entity entity, const char *name,
                    const struct config_edit_setting settings[2])
{
        struct config_edit_setting *copy = arena_alloc(&p->c->arena, 2, sizeof(*copy));

        if (!copy || !name)
                return -ENOMEM;
        if (p->n_edits == p->cap) {
                size_t cap = MAX(p->cap * 2, (size_t)16);
                struct config_edit *edits = reallocarray(p->edits, cap, sizeof(*edits));

                if (!edits)
                        return -ENOMEM;
                p->edits = edits;
                p->cap = cap;
        }
        memcpy(copy, settings, 2 * sizeof(*copy));
        p->edits[p->n_edits++] =
                (struct config_edit){.entity = entity, .name = name, .settings = copy, .n = 2};
        return 0;
}

static int finish_topic(struct plan *p)
{
        struct config_edit_setting settings[2] = {{.key = LEADER_REPLICAS}, {.key = FOLLOWER_REPLICAS}};

        if (!p->topic || p->leaders.len == 0)
                return 0;
        settings[0].value = finish_list(p, &p->leaders);
        settings[1].value = finish_list(p, &p->followers);
        if (!settings[0].value || !settings[1].value)
                return -ENOMEM;
        return put_edit(p, CONFIG_ENTITY_TOPIC, p->topic, settings);
}

static int put_replica(struct plan *p, struct buf *list, int32_t partition, int32_t broker)
{
        int r = buf_printf(list, "%s%d:%d", list->len > 0 ? "," : "", partition, broker);

        return r < 0 ? r : add(&p->c->arena, &p->brokers, broker);
}

/* One partition, those of a topic one after the other. Nothing is copied when nobody is new. */
static int put_move(struct plan *p, const char *topic, int32_t partition, const struct ids *from,
                    const struct ids *to)
{
        bool copies = false;
        int r = 0;

        if (!p->topic || strcmp(p->topic, topic) != 0) {
                r = finish_topic(p);
                p->topic = topic;
        }
        for (size_t i = 0; r == 0 && i < to->n; i++) {
                if (has(from, to->items[i]))
                        continue;
                copies = true;
                r = put_replica(p, &p->followers, partition, to->items[i]);
        }
        for (size_t i = 0; r == 0 && copies && i < from->n; i++)
                r = put_replica(p, &p->leaders, partition, from->items[i]);
        return r;
}

/* --- all that moves: what is wanted now, and what is in progress --- */

static int without(struct arena *a, const struct ids *all, const struct ids *some, struct ids *ret)
{
        int r = 0;

        *ret = (struct ids){0};
        for (size_t i = 0; r == 0 && i < all->n; i++)
                if (!has(some, all->items[i]))
                        r = add(a, ret, all->items[i]);
        return r;
}

static int put_moving(struct plan *p, const struct reassign_moving *m, const struct ids *target)
{
        const struct ids all = {m->replicas, m->n_replicas}, adding = {m->adding, m->n_adding};
        struct ids from;
        int r = without(&p->c->arena, &all, &adding, &from);

        return r < 0 ? r : put_move(p, m->topic, m->partition, &from, target ? target : &adding);
}

static int compare(const char *topic, int32_t partition, const struct reassign_moving *m)
{
        int c = strcmp(topic, m->topic);

        return c ? c : (partition > m->partition) - (partition < m->partition);
}

/* Both lists are sorted. */
static int put_all(struct plan *p, const struct znode_partition_list *wanted,
                   const struct znode_partition_list *before, const struct reassign_moving *moving,
                   size_t n_moving)
{
        size_t i = 0, k = 0;
        int r = 0;

        while (r == 0 && (i < wanted->n || k < n_moving)) {
                const struct znode_partition *w = i < wanted->n ? &wanted->items[i] : NULL;
                const struct reassign_moving *m = k < n_moving ? &moving[k] : NULL;
                int order = !w ? 1 : !m ? -1 : compare(w->topic, w->partition, m);
                const struct ids to = w ? (struct ids){w->replicas, w->n_replicas} : (struct ids){0};

                if (order < 0) {
                        const struct ids from = {before->items[i].replicas, before->items[i].n_replicas};

                        r = put_move(p, w->topic, w->partition, &from, &to);
                } else {
                        r = put_moving(p, m, order == 0 ? &to : NULL);
                }
                i += order <= 0;
                k += order >= 0;
        }
        return r < 0 ? r : finish_topic(p);
}

static int put_brokers(struct plan *p, const char *rate)
{
        const struct config_edit_setting settings[2] = {{LEADER_RATE, rate}, {FOLLOWER_RATE, rate}};
        int r = 0;

        if (p->brokers.n > 0)
                qsort(p->brokers.items, p->brokers.n, sizeof(*p->brokers.items), by_id);
        for (size_t i = 0; r == 0 && i < p->brokers.n; i++) {
                char name[16];

                (void)snprintf(name, sizeof(name), "%d", p->brokers.items[i]);
                r = put_edit(p, CONFIG_ENTITY_BROKER, arena_strndup(&p->c->arena, name, strlen(name)),
                             settings);
        }
        return r;
}

static void plan_done(struct plan *p)
{
        buf_done(&p->leaders);
        buf_done(&p->followers);
        free(p->edits);
}

int reassign_throttle_set(struct cluster *c, const struct znode_partition_list *wanted,
                          const struct znode_partition_list *before, int64_t rate)
{
        struct plan p = {.c = c};
        struct reassign_moving *moving = NULL;
        size_t n_moving = 0, n_topics;
        int r = 0;

        if (!c->zk) /* through ZooKeeper a move is only started when there is no other */
                r = reassign_kafka_moving(c, &moving, &n_moving);
        if (r < 0)
                return r;
        (void)snprintf(p.rate, sizeof(p.rate), "%" PRId64, rate);
        r = put_all(&p, wanted, before, moving, n_moving);
        n_topics = p.n_edits;
        if (r == 0)
                r = put_brokers(&p, p.rate);
        /* The brokers first: they hear of it a moment later than we, and nothing moves yet. */
        if (r == 0)
                r = config_change(c, p.edits + n_topics, p.n_edits - n_topics);
        if (r == 0)
                r = config_change(c, p.edits, n_topics);
        plan_done(&p);
        return r;
}

/* --- taking it away --- */

static int topics_of(struct cluster *c, const struct znode_partition_list *l, const char ***ret,
                     size_t *ret_n)
{
        const char **names = arena_alloc(&c->arena, l->n + 1, sizeof(*names));
        size_t n = 0;

        if (!names)
                return -ENOMEM;
        for (size_t i = 0; i < l->n; i += partitions_run(l, i))
                names[n++] = l->items[i].topic;
        *ret = names;
        *ret_n = n;
        return 0;
}

static int find(struct cluster *c, const char **topics, size_t n, bool *ret)
{
        static const char *const keys[2] = {LEADER_REPLICAS, FOLLOWER_REPLICAS};

        return config_topics_set(c, topics, n, keys, ret);
}

int reassign_throttle_find(struct cluster *c, const struct znode_partition_list *l, bool *ret)
{
        const char **topics;
        size_t n;
        int r = topics_of(c, l, &topics, &n);

        return r < 0 ? r : find(c, topics, n, ret);
}

/* Which brokers had a part in a move that is over nobody knows any more. */
static int concerned_brokers(struct plan *p, const char *const *topics, size_t n,
                             const struct metadata_response *m)
{
        struct arena *a = &p->c->arena;
        int r = 0;

        for (int32_t i = 0; r == 0 && i < m->brokers.n; i++)
                r = add(a, &p->brokers, m->brokers.items[i].node_id);
        for (size_t i = 0; r == 0 && i < n; i++) {
                const struct metadata_response_topic *t = cluster_topic(m, topics[i]);

                for (int32_t k = 0; r == 0 && t && k < t->partitions.n; k++)
                        for (int32_t j = 0; r == 0 && j < t->partitions.items[k].replica_nodes.n; j++)
                                r = add(a, &p->brokers, t->partitions.items[k].replica_nodes.items[j]);
        }
        return r;
}

static void say_cleared(const struct plan *p, const char *const *topics, size_t n)
{
        printf("Clearing broker-level throttles on brokers ");
        for (size_t i = 0; i < p->brokers.n; i++)
                printf("%s%d", i > 0 ? "," : "", p->brokers.items[i]);
        printf("\nClearing topic-level throttles on topics ");
        for (size_t i = 0; i < n; i++)
                printf("%s%s", i > 0 ? "," : "", topics[i]);
        putchar('\n');
}

int reassign_throttle_clear(struct cluster *c, const struct znode_partition_list *l,
                            const struct metadata_response *m, bool quiet, bool *ret_was)
{
        static const struct config_edit_setting replicas[2] = {{LEADER_REPLICAS, NULL},
                                                               {FOLLOWER_REPLICAS, NULL}};
        struct plan p = {.c = c};
        const char **topics = NULL;
        size_t n = 0;
        int r;

        *ret_was = false;
        r = topics_of(c, l, &topics, &n);
        if (r == 0)
                r = find(c, topics, n, ret_was);
        if (r < 0 || !*ret_was)
                return r;
        r = concerned_brokers(&p, topics, n, m);
        if (r == 0)
                r = put_brokers(&p, NULL);
        if (r == 0 && !quiet)
                say_cleared(&p, topics, n);
        if (r == 0) /* the topics last: while one has it, this can be asked for again */
                r = config_change(c, p.edits, p.n_edits);
        p.n_edits = 0;
        for (size_t i = 0; r == 0 && i < n; i++)
                if (cluster_topic(m, topics[i]))
                        r = put_edit(&p, CONFIG_ENTITY_TOPIC, topics[i], replicas);
        if (r == 0)
                r = config_change(c, p.edits, p.n_edits);
        plan_done(&p);
        return r;
}
