/* DeleteTopics, and /admin/delete_topics written by tools.
 *
 *   asked for --> metadata says "deleted" (leader -2) --> StopReplica with deletion to every replica --> all
 *   acknowledged --> states, partitions, topic, configuration, request removed --> forgotten
 *
 * A replica whose broker is away keeps the topic until it is back: otherwise it would return with the data of
 * a topic that nobody knows. Partitions of such topics do not keep a drain from ending. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "controller/topics_internal.h"
#include "wire/delete_topics.h"
#include "wire/error.h"

enum step { STEP_STOPPING, STEP_REMOVING_PARTITIONS, STEP_REMOVING_TOPIC };

#define PARTITIONS_A_MULTI 200

/* --- the topic --- */

void deletion_forget_topic(struct controller *c, struct ctx_topic *t)
{
        for (int32_t i = 0; i < t->n_partitions; i++) {
                struct ctx_partition *p = t->partitions[i];

                if (!p)
                        continue;
                alter_abandon(c, p, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
                partition_set_state(c, p, PARTITION_NONEXISTENT);
        }
        ctx_topic_forget(&c->ctx, t);
}

static void stop_replicas(struct controller *c, struct ctx_partition *p, const struct ctx_broker *only)
{
        for (uint16_t i = 0; i < p->n_slots; i++) {
                struct ctx_slot *s = &p->slots[i];

                if ((only && s->broker != only) || s->state == REPLICA_DELETION_SUCCESSFUL)
                        continue;
                if (!s->broker->sender) {
                        replica_set_state(c, p, s, REPLICA_DELETION_INELIGIBLE);
                        continue;
                }
                if (s->state != REPLICA_DELETION_STARTED)
                        replica_set_state(c, p, s, REPLICA_DELETION_STARTED);
                sender_push_stop(s->broker->sender, p);
        }
}

void deletion_begin(struct controller *c, struct ctx_topic *t)
{
        if (t->deleting)
                return;
        t->deleting = true;
        t->delete_step = STEP_STOPPING;
        list_remove(&t->node);
        list_push_back(&c->ctx.deleting, &t->node);
        slog_notice("topic-deleting", "a topic is being deleted", SL_STR("topic", t->name));
        for (int32_t i = 0; i < t->n_partitions; i++) {
                struct ctx_partition *p = t->partitions[i];

                if (!p)
                        continue;
                alter_abandon(c, p, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
                sender_announce_metadata(c, p);
                stop_replicas(c, p, NULL);
        }
        sender_kick_all(c);
        ctl_progress(c);
}

void deletion_resume(struct controller *c, struct ctx_broker *b)
{
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);

                if (p->topic->deleting)
                        stop_replicas(c, p, b);
        }
}

void deletion_on_stopped(struct controller *c, struct ctx_partition *p, struct ctx_slot *s, int16_t error)
{
        if (s->state != REPLICA_DELETION_STARTED)
                return;
        if (error != KAFKA_NONE && error != KAFKA_UNKNOWN_TOPIC_OR_PARTITION)
                slog_warning("replica-not-deleted",
                             "a broker could not delete a replica; tried again when it restarts",
                             SL_STR("topic", p->topic->name), SL_INT("partition", p->number),
                             SL_INT("broker", s->broker_id), SL_STR("code", kafka_error_name(error)));
        replica_set_state(c, p, s,
                          error == KAFKA_NONE || error == KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                  ? REPLICA_DELETION_SUCCESSFUL
                                  : REPLICA_DELETION_INELIGIBLE);
}

static bool all_deleted(const struct ctx_topic *t)
{
        for (int32_t i = 0; i < t->n_partitions; i++) {
                const struct ctx_partition *p = t->partitions[i];

                if (p && (p->in_flight || t->rewriting))
                        return false; /* a write of its znodes would be overtaken */
                for (uint16_t k = 0; p && k < p->n_slots; k++)
                        if (p->slots[k].state != REPLICA_DELETION_SUCCESSFUL)
                                return false;
        }
        return true;
}

/* --- its znodes --- */

struct removal {
        char *topic;
        int32_t *partitions; /* that still have znodes, as far as we know */
        size_t n, done;
        bool skip[2 * PARTITIONS_A_MULTI + 8]; /* of the current multi: found missing */
        size_t in_multi;
};

static void remove_next(struct controller *c, struct removal *rm);

static void removal_free(void *arg)
{
        struct removal *rm = arg;

        free(rm->topic);
        free(rm->partitions);
        free(rm);
}

static void removal_retry(struct controller *c, struct removal *rm)
{
        struct ctx_topic *t = ctx_topic(&c->ctx, rm->topic);

        if (t)
                t->delete_step = STEP_STOPPING; /* begun anew by the next tick */
        removal_free(rm);
}

static void removal_finish(struct controller *c, struct removal *rm)
{
        struct ctx_topic *t = ctx_topic(&c->ctx, rm->topic);

        slog_notice("topic-deleted", "a topic was deleted", SL_STR("topic", rm->topic));
        ctl_log_change(c, "Topic %s is deleted", rm->topic);
        if (t && t->deleting)
                deletion_forget_topic(c, t);
        removal_free(rm);
        ctl_progress(c);
}

static void on_removed(struct controller *c, const struct zk_result *res, void *arg)
{
        struct removal *rm = arg;
        int at = ctl_multi_failed_at(res);

        if (res->r == 0 && rm->done == rm->n && rm->in_multi == 0) {
                removal_finish(c, rm);
                return;
        }
        if (res->r == 0) {
                rm->done += rm->in_multi;
                memset(rm->skip, 0, sizeof(rm->skip));
                remove_next(c, rm);
        } else if (at == 0) {
                removal_free(rm);
                ctl_resign_soon(c, "the deletion of a topic was fenced: another controller was elected");
        } else if (at > 0 && res->r == -ENOENT) {
                rm->skip[at] = true; /* KAFKA-2937: what is gone is gone */
                remove_next(c, rm);
        } else {
                removal_retry(c, rm);
        }
}

/* Operations that were found missing become checks of the epoch, so that the positions stay. */
static void add_delete(struct controller *c, struct removal *rm, struct zk_op *ops, size_t *n,
                       const char *path)
{
        ops[*n] = rm->skip[*n] ? ctl_epoch_check(c)
                               : (struct zk_op){.type = ZK_OP_DELETE, .path = path, .version = -1};
        (*n)++;
}

static void remove_next(struct controller *c, struct removal *rm)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct zk_op *ops;
        size_t n = 0;

        arena_init(&a, 0);
        ops = arena_alloc(&a, 2 * PARTITIONS_A_MULTI + 8, sizeof(*ops));
        rm->in_multi = MIN(rm->n - rm->done, (size_t)PARTITIONS_A_MULTI);
        if (ops)
                ops[n++] = ctl_epoch_check(c);
        for (size_t i = 0; ops && i < rm->in_multi; i++) {
                char *state = arena_alloc(&a, 2, ZNODE_PATH_SIZE),
                     *dir = state ? state + ZNODE_PATH_SIZE : NULL;

                if (!state) {
                        ops = NULL;
                        break;
                }
                znode_path_state(rm->topic, rm->partitions[rm->done + i], state);
                znode_path_partition(rm->topic, rm->partitions[rm->done + i], dir);
                add_delete(c, rm, ops, &n, state);
                add_delete(c, rm, ops, &n, dir);
        }
        if (ops && rm->in_multi == 0) {
                char *paths = arena_alloc(&a, 4, ZNODE_PATH_SIZE);

                if (paths) {
                        znode_path_partitions(rm->topic, paths);
                        znode_path_topic(rm->topic, paths + ZNODE_PATH_SIZE);
                        znode_path_topic_config(rm->topic, paths + 2 * ZNODE_PATH_SIZE);
                        znode_path_delete_topic(rm->topic, paths + 3 * ZNODE_PATH_SIZE);
                        for (size_t i = 0; i < 4; i++)
                                add_delete(c, rm, ops, &n, paths + i * ZNODE_PATH_SIZE);
                } else {
                        ops = NULL;
                }
        }
        if (!ops || ctl_zk_multi(c, ops, n, on_removed, rm, removal_free) < 0)
                removal_retry(c, rm);
}

static void removal_begin(struct controller *c, struct ctx_topic *t)
{
        struct removal *rm = calloc(1, sizeof(*rm));

        if (!rm)
                return; /* the next tick tries again */
        rm->topic = strdup(t->name);
        rm->partitions = calloc((size_t)t->n_partitions + 1, sizeof(*rm->partitions));
        if (!rm->topic || !rm->partitions) {
                removal_free(rm);
                return;
        }
        for (int32_t i = 0; i < t->n_partitions; i++)
                if (t->partitions[i])
                        rm->partitions[rm->n++] = i;
        t->delete_step = STEP_REMOVING_PARTITIONS;
        remove_next(c, rm);
}

/* --- requests --- */

struct delete_item {
        struct delete_request *q;
        struct delete_topics_response_response *out;
        char *name;
        bool done;
};

struct delete_request {
        struct ctl_call call;
        struct list node; /* controller->deletions */
        const struct delete_topics_request *req;
        controller_delete_topics_fn fn;
        void *userdata;
        struct arena arena;
        struct delete_topics_response res;
        struct delete_item *items;
        int32_t n_items, open;
        int64_t deadline_ms;
};

static void request_answer(struct delete_request *q)
{
        requests_wait_end(q->call.c, &q->node);
        q->fn(&q->res, q->userdata);
        arena_done(&q->arena);
        free(q);
}

static void close_one(struct delete_request *q)
{
        if (--q->open == 0)
                request_answer(q);
}

static void item_done(struct delete_item *it, int16_t code)
{
        if (it->done)
                return;
        it->done = true;
        it->out->error_code = code;
        close_one(it->q);
}

void deletion_progress(struct controller *c)
{
        list_for_each_safe (it, tmp, &c->ctx.deleting) {
                struct ctx_topic *t = list_entry(it, struct ctx_topic, node);

                if (t->delete_step == STEP_STOPPING && all_deleted(t) && ctl_lease(c))
                        removal_begin(c, t);
        }
        list_for_each_safe (it, tmp, &c->deletions) {
                struct delete_request *q = list_entry(it, struct delete_request, node);

                q->open++;
                for (int32_t i = 0; i < q->n_items; i++) {
                        const struct ctx_topic *t =
                                q->items[i].name ? ctx_topic(&c->ctx, q->items[i].name) : NULL;

                        /* Another topic under the name has another id: this one is gone. */
                        if (!t || (!uuid_is_zero(&q->items[i].out->topic_id) &&
                                   !uuid_equal(&t->id, &q->items[i].out->topic_id)))
                                item_done(&q->items[i], KAFKA_NONE);
                        else if (loop_now_ms(c->loop) >= q->deadline_ms)
                                item_done(&q->items[i], KAFKA_REQUEST_TIMED_OUT);
                }
                close_one(q);
        }
}

void deletion_forget(struct controller *c)
{
        while (!list_empty(&c->deletions)) {
                struct delete_request *q = list_entry(c->deletions.next, struct delete_request, node);

                for (int32_t i = 0; i < q->n_items; i++)
                        if (!q->items[i].done)
                                q->items[i].out->error_code = KAFKA_NOT_CONTROLLER;
                request_answer(q);
        }
}

static void drop_nothing(void *arg)
{
        (void)arg; /* items belong to requests, which resignation has answered */
}

/* The request stands in ZooKeeper before anything is touched: a successor goes on with it. */
static void on_requested(struct controller *c, const struct zk_result *res, void *arg)
{
        struct delete_item *it = arg;
        struct ctx_topic *t = ctx_topic(&c->ctx, it->name);

        if (res->r != 0 && ctl_multi_failed_at(res) == 0)
                ctl_resign_soon(c, "the deletion of a topic was fenced: another controller was elected");
        else if (res->r == 0 || res->r == -EEXIST) {
                if (t)
                        deletion_begin(c, t);
        } else {
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR);
        }
}

static int16_t begin_item(struct controller *c, struct delete_item *it, struct wire_str name,
                          const struct uuid *id)
{
        bool by_id = name.len < 0;
        struct ctx_topic *t =
                by_id ? ctx_topic_by_id(&c->ctx, id) : ctx_topic_n(&c->ctx, name.data, (size_t)name.len);
        char path[ZNODE_PATH_SIZE];
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_CREATE, .path = path}};

        if (!t)
                return by_id ? KAFKA_UNKNOWN_TOPIC_ID : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        if (c->o.delete_topic_disabled)
                return KAFKA_TOPIC_DELETION_DISABLED;
        if (!ctl_lease(c))
                return KAFKA_NOT_CONTROLLER;
        it->name = arena_strndup(&it->q->arena, t->name, strlen(t->name));
        if (!it->name)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        it->out->name = wire_str(it->name);
        it->out->topic_id = t->id;
        znode_path_delete_topic(t->name, path);
        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_requested, it, drop_nothing) < 0)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        return KAFKA_NONE;
}

/* KAFKA_NONE: its topics may be looked at. */
static int16_t admit(const struct controller *c, int32_t n, bool active)
{
        if (!active)
                return KAFKA_NOT_CONTROLLER;
        if (n > TOPICS_MAX_PER_REQUEST)
                return KAFKA_INVALID_REQUEST;
        return requests_crowded(c) ? KAFKA_REQUEST_TIMED_OUT : KAFKA_NONE;
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct delete_request *q = container_of(call, struct delete_request, call);
        int32_t n_new = MAX(q->req->topics.n, 0), n_old = MAX(q->req->topic_names.n, 0), n = n_new + n_old;
        int16_t refused = admit(c, n, active);

        q->items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->items));
        q->res.responses.items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->res.responses.items));
        if (!q->items || !q->res.responses.items) {
                request_answer(q);
                return;
        }
        if (refused == KAFKA_NONE) {
                q->deadline_ms = requests_deadline(c, q->req->timeout_ms);
                requests_wait_begin(c, &c->deletions, &q->node);
        }
        q->open = n + 1;
        q->n_items = q->res.responses.n = n;
        for (int32_t i = 0; i < n; i++) {
                const struct delete_topics_request_topic *t = i < n_new ? &q->req->topics.items[i] : NULL;
                struct delete_item *it = &q->items[i];
                int16_t code = refused;

                *it = (struct delete_item){.q = q, .out = &q->res.responses.items[i]};
                *it->out = (struct delete_topics_response_response){
                        .name = t ? t->name : q->req->topic_names.items[i - n_new],
                        .error_message = WIRE_NULL_STR,
                };
                if (t)
                        it->out->topic_id = t->topic_id;
                if (code == KAFKA_NONE)
                        code = begin_item(c, it, it->out->name, &it->out->topic_id);
                if (code != KAFKA_NONE)
                        item_done(it, code);
        }
        close_one(q);
}

void controller_delete_topics(struct controller *c, const struct delete_topics_request *req,
                              controller_delete_topics_fn fn, void *userdata)
{
        struct delete_request *q = calloc(1, sizeof(*q));
        struct delete_topics_response nothing = {0};

        if (!q) {
                fn(&nothing, userdata);
                return;
        }
        list_init(&q->node);
        arena_init(&q->arena, 0);
        q->req = req;
        q->fn = fn;
        q->userdata = userdata;
        ctl_post(c, &q->call, run);
}
