/* AlterPartitionReassignments and ListPartitionReassignments (KIP-455). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller/topics_internal.h"
#include "wire/alter_partition_reassignments.h"
#include "wire/error.h"
#include "wire/list_partition_reassignments.h"

struct move_item {
        const char *topic;
        struct alter_partition_reassignments_response_partition *out;
        bool waiting; /* until the topic's znode says it */
};

struct move_request {
        struct ctl_call call;
        struct list node; /* controller->moves */
        const struct alter_partition_reassignments_request *req;
        controller_alter_reassignments_fn fn;
        void *userdata;
        struct arena arena;
        struct alter_partition_reassignments_response res;
        struct move_item *items;
        size_t n_items;
        int64_t deadline_ms;
};

static void request_answer(struct move_request *q)
{
        requests_wait_end(q->call.c, &q->node);
        q->fn(&q->res, q->userdata);
        arena_done(&q->arena);
        free(q);
}

static struct ctx_partition *partition_of(struct controller *c, const char *topic, int32_t number)
{
        struct ctx_topic *t = ctx_topic(&c->ctx, topic);

        return t && !t->deleting ? ctx_topic_partition(t, number) : NULL;
}

static int32_t origin_factor(const struct ctx_partition *p)
{
        int32_t n = 0;

        for (uint16_t i = 0; i < p->n_slots; i++)
                n += !p->slots[i].adding;
        return n;
}

static int16_t begin_item(struct controller *c, struct move_request *q, struct move_item *it,
                          const struct alter_partition_reassignments_request_partition *in, char error[256])
{
        struct ctx_partition *p = partition_of(c, it->topic, in->partition_index);
        int32_t n = MAX(in->replicas.n, 0);

        if (!p) {
                (void)snprintf(error, 256, "The partition does not exist.");
                return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        }
        if (in->replicas.n == 0) {
                (void)snprintf(error, 256, "Empty replica list specified in partition reassignment.");
                return KAFKA_INVALID_REPLICA_ASSIGNMENT;
        }
        if (n > 0 && !q->req->allow_replication_factor_change && n != origin_factor(p)) {
                (void)snprintf(error, 256,
                               "The replication factor is changed from %d to %d, which is not allowed.",
                               (int)origin_factor(p), (int)n);
                return KAFKA_INVALID_REPLICATION_FACTOR;
        }
        return reassign_want(c, p, in->replicas.items, n, error);
}

static int begin_topic(struct controller *c, struct move_request *q,
                       const struct alter_partition_reassignments_request_topic *in,
                       struct alter_partition_reassignments_response_topic *out)
{
        char *name = arena_strndup(&q->arena, in->name.data, (size_t)MAX(in->name.len, 0));
        int32_t n = MAX(in->partitions.n, 0);

        out->name = in->name;
        out->partitions.items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*out->partitions.items));
        if (!name || !out->partitions.items)
                return -ENOMEM;
        for (int32_t i = 0; i < n; i++) {
                struct move_item *it = &q->items[q->n_items++];
                char error[256] = "";

                *it = (struct move_item){.topic = name, .out = &out->partitions.items[out->partitions.n++]};
                *it->out = (struct alter_partition_reassignments_response_partition){
                        .partition_index = in->partitions.items[i].partition_index,
                        .error_message = WIRE_NULL_STR};
                it->out->error_code = begin_item(c, q, it, &in->partitions.items[i], error);
                it->waiting = it->out->error_code == KAFKA_NONE;
                if (error[0])
                        it->out->error_message = wire_str(arena_strndup(&q->arena, error, strlen(error)));
        }
        return 0;
}

static int begin(struct controller *c, struct move_request *q)
{
        size_t n = 0;
        int r = 0;

        for (int32_t i = 0; i < q->req->topics.n; i++)
                n += (size_t)MAX(q->req->topics.items[i].partitions.n, 0);
        if (names_too_many(c, n))
                return -E2BIG;
        q->items = arena_alloc(&q->arena, n + 1, sizeof(*q->items));
        q->res.responses.items =
                arena_alloc(&q->arena, (size_t)MAX(q->req->topics.n, 0) + 1, sizeof(*q->res.responses.items));
        if (!q->items || !q->res.responses.items)
                return -ENOMEM;
        for (int32_t i = 0; r == 0 && i < q->req->topics.n; i++)
                r = begin_topic(c, q, &q->req->topics.items[i],
                                &q->res.responses.items[q->res.responses.n++]);
        return r;
}

static void progress_request(struct controller *c, struct move_request *q)
{
        bool late = loop_now_ms(c->loop) >= q->deadline_ms;
        size_t waiting = 0;

        for (size_t i = 0; i < q->n_items; i++) {
                struct move_item *it = &q->items[i];
                const struct ctx_partition *p =
                        it->waiting ? partition_of(c, it->topic, it->out->partition_index) : NULL;

                if (!it->waiting)
                        continue;
                it->waiting = p && p->want && !late;
                if (!p)
                        it->out->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
                else if (p->want && late)
                        it->out->error_code = KAFKA_REQUEST_TIMED_OUT;
                waiting += it->waiting;
        }
        if (waiting == 0)
                request_answer(q);
}

void reassign_answer(struct controller *c)
{
        list_for_each_safe (it, tmp, &c->moves)
                progress_request(c, list_entry(it, struct move_request, node));
}

void reassign_forget(struct controller *c)
{
        tool_znode_forget(&c->moves_znode);
        while (!list_empty(&c->moves)) {
                struct move_request *q = list_entry(c->moves.next, struct move_request, node);

                q->res.error_code = KAFKA_NOT_CONTROLLER;
                q->res.responses.n = 0;
                request_answer(q);
        }
        list_init(&c->moving); /* its partitions are forgotten with the context */
}

static int16_t begin_error(int r)
{
        if (r == -E2BIG)
                return KAFKA_INVALID_REQUEST;
        return r < 0 ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_NONE;
}

static void run_alter(struct controller *c, struct ctl_call *call, bool active)
{
        struct move_request *q = container_of(call, struct move_request, call);

        q->res.error_message = WIRE_NULL_STR;
        q->res.allow_replication_factor_change = q->req->allow_replication_factor_change;
        q->res.error_code = !active               ? KAFKA_NOT_CONTROLLER
                            : requests_crowded(c) ? KAFKA_REQUEST_TIMED_OUT
                                                  : begin_error(begin(c, q));
        if (q->res.error_code != KAFKA_NONE) {
                q->res.responses.n = 0;
                request_answer(q);
                return;
        }
        q->deadline_ms = requests_deadline(c, q->req->timeout_ms);
        requests_wait_begin(c, &c->moves, &q->node);
        ctl_progress(c);
}

void controller_alter_reassignments(struct controller *c,
                                    const struct alter_partition_reassignments_request *req,
                                    controller_alter_reassignments_fn fn, void *userdata)
{
        struct alter_partition_reassignments_response oom = {.error_code = KAFKA_UNKNOWN_SERVER_ERROR,
                                                             .error_message = WIRE_NULL_STR};
        struct move_request *q = calloc(1, sizeof(*q));

        if (!q) {
                fn(&oom, userdata);
                return;
        }
        list_init(&q->node);
        arena_init(&q->arena, 0);
        q->req = req;
        q->fn = fn;
        q->userdata = userdata;
        ctl_post(c, &q->call, run_alter);
}

/* --- list --- */

struct list_request {
        struct ctl_call call;
        const struct list_partition_reassignments_request *req;
        controller_list_reassignments_fn fn;
        void *userdata;
        struct arena arena;
        struct list_partition_reassignments_response res;
};

/* Those that are asked for are compared with those that move. */
static bool asks_too_much(const struct controller *c, const struct list_partition_reassignments_request *req)
{
        size_t n = 0;

        for (int32_t i = 0; i < req->topics.n; i++)
                n += 1 + (size_t)MAX(req->topics.items[i].partition_indexes.n, 0);
        return names_too_many(c, n);
}

static bool asked_for(const struct list_partition_reassignments_request *req, const struct ctx_partition *p)
{
        if (req->topics.n < 0)
                return true;
        for (int32_t i = 0; i < req->topics.n; i++) {
                const struct list_partition_reassignments_request_topic *t = &req->topics.items[i];

                if (!wire_str_equal(t->name, p->topic->name))
                        continue;
                for (int32_t k = 0; k < t->partition_indexes.n; k++)
                        if (t->partition_indexes.items[k] == p->number)
                                return true;
        }
        return false;
}

static int list_partition(struct arena *a, const struct ctx_partition *p,
                          struct list_partition_reassignments_response_partition *out)
{
        int32_t *ids = arena_alloc(a, 3 * (size_t)p->n_slots + 1, sizeof(*ids));

        if (!ids)
                return -ENOMEM;
        out->partition_index = p->number;
        out->replicas.items = ids;
        out->adding_replicas.items = ids + p->n_slots;
        out->removing_replicas.items = ids + 2 * (size_t)p->n_slots;
        for (uint16_t i = 0; i < p->n_slots; i++) {
                const struct ctx_slot *s = &p->slots[i];

                out->replicas.items[out->replicas.n++] = s->broker_id;
                if (s->adding)
                        out->adding_replicas.items[out->adding_replicas.n++] = s->broker_id;
                if (s->removing)
                        out->removing_replicas.items[out->removing_replicas.n++] = s->broker_id;
        }
        return 0;
}

static int list_topic(struct list_request *q, const struct ctx_topic *t)
{
        struct list_partition_reassignments_response_topic *out = &q->res.topics.items[q->res.topics.n];

        for (int32_t i = 0; i < t->n_partitions; i++) {
                const struct ctx_partition *p = t->partitions[i];

                if (!p || !p->reassigning || !asked_for(q->req, p))
                        continue;
                if (!out->partitions.items) {
                        out->partitions.items = arena_alloc(&q->arena, (size_t)t->n_partitions,
                                                            sizeof(*out->partitions.items));
                        out->name = wire_str(t->name);
                }
                if (!out->partitions.items ||
                    list_partition(&q->arena, p, &out->partitions.items[out->partitions.n++]) < 0)
                        return -ENOMEM;
        }
        q->res.topics.n += out->partitions.n > 0;
        return 0;
}

static void run_list(struct controller *c, struct ctl_call *call, bool active)
{
        struct list_request *q = container_of(call, struct list_request, call);
        size_t cursor = 0;
        int r = 0;
        void *v;

        q->res.error_message = WIRE_NULL_STR;
        q->res.error_code = active ? KAFKA_NONE : KAFKA_NOT_CONTROLLER;
        if (active && asks_too_much(c, q->req)) {
                q->res.error_code = KAFKA_INVALID_REQUEST;
                active = false;
        }
        if (active) {
                q->res.topics.items =
                        arena_alloc(&q->arena, map_count(c->ctx.topics) + 1, sizeof(*q->res.topics.items));
                r = q->res.topics.items ? 0 : -ENOMEM;
        }
        while (active && r == 0 && map_next(c->ctx.topics, &cursor, NULL, NULL, &v))
                if (!((struct ctx_topic *)v)->deleting)
                        r = list_topic(q, v);
        if (r < 0) {
                q->res.error_code = KAFKA_UNKNOWN_SERVER_ERROR;
                q->res.topics.n = 0;
        }
        q->fn(&q->res, q->userdata);
        arena_done(&q->arena);
        free(q);
}

void controller_list_reassignments(struct controller *c,
                                   const struct list_partition_reassignments_request *req,
                                   controller_list_reassignments_fn fn, void *userdata)
{
        struct list_partition_reassignments_response oom = {.error_code = KAFKA_UNKNOWN_SERVER_ERROR,
                                                            .error_message = WIRE_NULL_STR};
        struct list_request *q = calloc(1, sizeof(*q));

        if (!q) {
                fn(&oom, userdata);
                return;
        }
        arena_init(&q->arena, 0);
        q->req = req;
        q->fn = fn;
        q->userdata = userdata;
        ctl_post(c, &q->call, run_list);
}
