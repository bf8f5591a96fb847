/* The cluster as the controller sees it, copied out so that other threads can take their time with it. */
#include <errno.h>
#include <string.h>

#include "controller/controller_internal.h"
#include "wire/error.h"

struct view_call {
        struct ctl_call call;
        enum cluster_view_scope scope;
        char *topic;
        controller_view_fn fn;
        void *userdata;
};

struct view_box { /* what the caller holds, with the memory it stands in */
        struct cluster_view view;
        struct arena arena;
};

struct cluster_view *cluster_view_free(struct cluster_view *v)
{
        struct view_box *box;

        if (!v)
                return NULL;
        box = container_of(v, struct view_box, view);
        arena_done(&box->arena);
        free(box);
        return NULL;
}

static int compare_brokers(const void *a, const void *b)
{
        const struct cluster_broker *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

static int compare_topics(const void *a, const void *b)
{
        return strcmp((*(struct ctx_topic *const *)a)->name, (*(struct ctx_topic *const *)b)->name);
}

static const char *copy_text(struct arena *a, const char *s)
{
        return s ? arena_strndup(a, s, strlen(s)) : NULL;
}

static int describe_broker(const struct controller *c, const struct ctx_broker *b, struct arena *a,
                           struct cluster_broker *ret)
{
        const struct znode_endpoint *e = znode_broker_endpoint(&b->info, c->listener);
        struct controller_location where = {.admin_host = ""};

        elector_locate(c, &b->info, &where);
        *ret = (struct cluster_broker){.id = b->id,
                                       .epoch = b->epoch,
                                       .host = copy_text(a, e ? e->host : ""),
                                       .admin_host = copy_text(a, where.admin_host),
                                       .rack = copy_text(a, b->info.rack),
                                       .port = e ? e->port : 0,
                                       .admin_port = where.admin_port,
                                       .drain = drain_state_shown(c, b),
                                       .leaders = b->leaders,
                                       .replicas = (int32_t)b->n_hosted};
        return ret->host && ret->admin_host ? 0 : -ENOMEM;
}

static int fill_brokers(const struct controller *c, struct view_box *box)
{
        struct cluster_broker *brokers = arena_alloc(&box->arena, c->ctx.n_alive + 1, sizeof(*brokers));
        size_t cursor = 0, n = 0;
        void *v;

        if (!brokers)
                return -ENOMEM;
        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                if (b->alive && describe_broker(c, b, &box->arena, &brokers[n++]) < 0)
                        return -ENOMEM;
        }
        qsort(brokers, n, sizeof(*brokers), compare_brokers);
        box->view.brokers = brokers;
        box->view.n_brokers = n;
        return 0;
}

static struct ctx_topic **sorted_topics(const struct controller *c, struct arena *a, size_t *ret_n)
{
        struct ctx_topic **topics = arena_alloc(a, map_count(c->ctx.topics) + 1, sizeof(struct ctx_topic *));
        size_t cursor = 0, n = 0;
        void *v;

        while (topics && map_next(c->ctx.topics, &cursor, NULL, NULL, &v))
                topics[n++] = v;
        if (topics)
                qsort(topics, n, sizeof(struct ctx_topic *), compare_topics);
        *ret_n = n;
        return topics;
}

static bool offline(const struct controller *c, const struct ctx_partition *p)
{
        return !p->has_state || !ctx_partition_online(&c->ctx, p);
}

static bool in_scope(const struct controller *c, const struct ctx_partition *p, enum cluster_view_scope scope)
{
        switch (scope) {
        case CLUSTER_PARTITIONS:
                return true;
        case CLUSTER_UNDER_REPLICATED:
                return p->n_isr < p->n_slots;
        case CLUSTER_UNAVAILABLE:
                return offline(c, p);
        case CLUSTER_SUMMARY:
        default:
                return false;
        }
}

static int describe_partition(const struct controller *c, const struct ctx_partition *p, const char *topic,
                              struct arena *a, struct cluster_partition *ret)
{
        int32_t *ids = arena_alloc(a, (size_t)p->n_slots + (size_t)p->n_isr + 1, sizeof(*ids));

        if (!ids)
                return -ENOMEM;
        memcpy(ids, p->replicas, p->n_slots * sizeof(*ids));
        if (p->n_isr)
                memcpy(ids + p->n_slots, p->isr, (size_t)p->n_isr * sizeof(*ids));
        *ret = (struct cluster_partition){.topic = topic,
                                          .partition = p->number,
                                          .leader = p->leader,
                                          .leader_epoch = p->leader_epoch,
                                          .partition_epoch = p->version,
                                          .replicas = ids,
                                          .isr = ids + p->n_slots,
                                          .n_replicas = p->n_slots,
                                          .n_isr = p->n_isr,
                                          .under_replicated = p->n_isr < p->n_slots,
                                          .offline = offline(c, p)};
        return 0;
}

static int fill_topic(const struct controller *c, const struct view_call *q, struct ctx_topic *t,
                      struct cluster_topic *ret, struct cluster_partition *partitions, struct view_box *box)
{
        const struct ctx_partition *first = ctx_topic_partition(t, 0);

        *ret = (struct cluster_topic){.name = copy_text(&box->arena, t->name),
                                      .id = t->id,
                                      .replication_factor = first ? first->n_slots : 0,
                                      .deleting = t->deleting};
        if (!ret->name)
                return -ENOMEM;
        for (int32_t i = 0; i < t->n_partitions; i++) {
                const struct ctx_partition *p = t->partitions[i];

                if (!p)
                        continue;
                ret->n_partitions++;
                box->view.n_partitions_total++;
                box->view.n_under_replicated += p->n_isr < p->n_slots && !t->deleting;
                box->view.n_offline += offline(c, p) && !t->deleting;
                if (!in_scope(c, p, q->scope) || (q->topic && strcmp(q->topic, t->name) != 0))
                        continue;
                if (describe_partition(c, p, ret->name, &box->arena, &partitions[box->view.n_partitions++]) <
                    0)
                        return -ENOMEM;
        }
        return 0;
}

static int fill(const struct controller *c, const struct view_call *q, struct view_box *box)
{
        size_t n_partitions = q->scope == CLUSTER_SUMMARY ? 0 : c->ctx.n_partitions, n;
        struct ctx_topic **topics = sorted_topics(c, &box->arena, &n);
        struct cluster_topic *out = arena_alloc(&box->arena, n + 1, sizeof(*out));
        struct cluster_partition *partitions =
                arena_alloc(&box->arena, n_partitions + 1, sizeof(*partitions));
        int r = 0;

        if (!topics || !out || !partitions)
                return -ENOMEM;
        box->view.controller_id = c->o.broker_id;
        box->view.controller_epoch = c->epoch;
        box->view.topics = out;
        box->view.n_topics = n;
        box->view.partitions = partitions;
        for (size_t i = 0; i < n && r >= 0; i++)
                r = fill_topic(c, q, topics[i], &out[i], partitions, box);
        return r < 0 ? r : fill_brokers(c, box);
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct view_call *q = container_of(call, struct view_call, call);
        struct view_box *box = active ? calloc(1, sizeof(*box)) : NULL;
        int16_t error = active ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_NOT_CONTROLLER;

        if (box) {
                arena_init(&box->arena, 0);
                if (fill(c, q, box) >= 0) {
                        error = KAFKA_NONE;
                } else {
                        cluster_view_free(&box->view);
                        box = NULL;
                }
        }
        q->fn(error, box ? &box->view : NULL, q->userdata);
        free(q->topic);
        free(q);
}

void controller_view(struct controller *c, enum cluster_view_scope scope, const char *topic,
                     controller_view_fn fn, void *userdata)
{
        struct view_call *q = calloc(1, sizeof(*q));

        if (q && topic) {
                q->topic = strdup(topic);
                if (!q->topic) {
                        free(q);
                        q = NULL;
                }
        }
        if (!q) {
                fn(KAFKA_UNKNOWN_SERVER_ERROR, NULL, userdata);
                return;
        }
        q->scope = scope;
        q->fn = fn;
        q->userdata = userdata;
        ctl_post(c, &q->call, run);
}
