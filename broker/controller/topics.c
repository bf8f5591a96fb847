/* CreateTopics: validate, place the replicas, write configuration and assignment in one multi, then wait
 * until the brokers know the partitions, so that who creates a topic may use it. */
#include "controller/topics_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "wire/error.h"

#define PATIENCE_MS 5000 /* then a broker that does not acknowledge is not waited for any longer */

static void request_answer(struct create_request *q)
{
        requests_wait_end(q->call.c, &q->node);
        q->fn(&q->res, q->userdata);
        for (int32_t i = 0; i < q->n_items; i++) {
                topics_release(q->call.c, &q->items[i]);
                free(q->items[i].marks);
        }
        (void)map_free(q->names);
        arena_done(&q->arena);
        free(q);
}

static void close_one(struct create_request *q)
{
        if (--q->open == 0)
                request_answer(q);
}

static void set_error(struct create_item *it, int16_t code, const char *sentence)
{
        char *copy = sentence ? arena_strndup(&it->q->arena, sentence, strlen(sentence)) : NULL;

        for (char *p = copy; p && *p; p++) /* it may quote what was sent */
                if (*p < ' ' || *p > '~')
                        *p = '?';
        it->out->error_code = code;
        it->out->error_message = wire_str(copy);
        if (code != KAFKA_NONE) {
                it->out->num_partitions = -1;
                it->out->replication_factor = -1;
                it->out->configs.n = -1;
        }
}

/* May end the request. */
static void item_done(struct create_item *it, int16_t code, const char *sentence)
{
        if (it->state == ITEM_DONE)
                return;
        it->state = ITEM_DONE;
        set_error(it, code, sentence);
        topics_release(it->q->call.c, it);
        close_one(it->q);
}

/* --- writing --- */

static void write_topic(struct controller *c, struct create_item *it);

static void drop_nothing(void *arg)
{
        (void)arg; /* items belong to requests, which resignation has answered */
}

static void begin_waiting(struct controller *c, struct create_item *it)
{
        struct ctx_topic *t;
        int r;

        r = ctx_topic_add(&c->ctx, it->name, &it->topic, &t);
        if (r < 0 && r != -EEXIST) {
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, "the topic was written but could not be loaded");
                ctl_resign_soon(c, "out of memory for a new topic");
                return;
        }
        topics_release(c, it); /* the context has it now */
        t = ctx_topic(&c->ctx, it->name);
        t->min_isr = it->min_isr;
        topic_reread(c, t); /* from now on whoever writes its znode is noticed */
        slog_notice("topic-created", "a topic was created", SL_STR("topic", it->name),
                    SL_INT("partitions", it->topic.n_partitions),
                    SL_INT("factor", it->out->replication_factor));
        for (int32_t i = 0; i < t->n_partitions; i++)
                writer_mark(c, t->partitions[i], WRITER_NORMAL);
        it->state = ITEM_STATES;
        ctl_progress(c);
}

/* The reply was lost: is it there, and is it ours? */
static void on_read_back(struct controller *c, const struct zk_result *res, void *arg)
{
        struct create_item *it = arg;
        struct znode_topic z = {0};
        bool ours;

        ours = res->r == 0 && znode_topic_decode(res->data ? res->data : "", res->data_len, &z) == 0 &&
               uuid_equal(&z.id, &it->topic.id);
        znode_topic_done(&z);
        if (ours)
                begin_waiting(c, it);
        else if (res->r == 0)
                item_done(it, KAFKA_TOPIC_ALREADY_EXISTS, NULL);
        else
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR,
                          "ZooKeeper did not answer; the outcome is not known");
}

static void read_back(struct controller *c, struct create_item *it)
{
        char path[ZNODE_PATH_SIZE];

        znode_path_topic(it->name, path);
        if (ctl_zk_get(c, path, on_read_back, it, drop_nothing) < 0)
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
}

enum { OP_CHECK, OP_CONFIG, OP_TOPIC, OP_PARTITIONS };

static void write_topic(struct controller *c, struct create_item *it);

static void on_config_looked_at(struct controller *c, const struct zk_result *res, void *arg)
{
        struct create_item *it = arg;

        if (res->r < 0 && res->r != -ENOENT) {
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, "ZooKeeper did not answer; nothing was created");
                return;
        }
        it->config_exists = res->r == 0;
        it->config_version = res->stat.version;
        write_topic(c, it);
}

/* A configuration is left over, or a tool has set or deleted it meanwhile: it is replaced in the version just
 * read (F3). */
static void look_at_config(struct controller *c, struct create_item *it)
{
        char path[ZNODE_PATH_SIZE];

        znode_path_topic_config(it->name, path);
        if (ctl_zk_get(c, path, on_config_looked_at, it, drop_nothing) < 0)
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
}

static void on_written(struct controller *c, const struct zk_result *res, void *arg)
{
        struct create_item *it = arg;
        char error[ASSIGNMENT_TEXT_SIZE];
        int at = ctl_multi_failed_at(res);

        if (res->r == 0) {
                begin_waiting(c, it);
        } else if (at == OP_CHECK) {
                ctl_resign_soon(c, "the creation of a topic was fenced: another controller was elected");
        } else if (at == OP_CONFIG && (res->r == -EEXIST || res->r == -ESTALE || res->r == -ENOENT)) {
                look_at_config(c, it);
        } else if (at >= OP_TOPIC && res->r == -EEXIST) {
                (void)snprintf(error, sizeof(error), "topic %s already exists", it->name);
                item_done(it, KAFKA_TOPIC_ALREADY_EXISTS, error);
        } else if (ctl_outcome_unknown(res->r)) {
                read_back(c, it);
        } else {
                (void)snprintf(error, sizeof(error), "ZooKeeper refused it: %s", strerror(-res->r));
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, error);
        }
}

static void write_topic(struct controller *c, struct create_item *it)
{
        char config[ZNODE_PATH_SIZE], topic[ZNODE_PATH_SIZE], partitions[ZNODE_PATH_SIZE];
        struct zk_op ops[] = {
                [OP_CHECK] = ctl_epoch_check(c),
                [OP_CONFIG] = {.type = it->config_exists ? ZK_OP_SET : ZK_OP_CREATE,
                               .path = config,
                               .data = it->config_json,
                               .version = it->config_version},
                [OP_TOPIC] = {.type = ZK_OP_CREATE, .path = topic, .data = it->topic_json},
                [OP_PARTITIONS] = {.type = ZK_OP_CREATE, .path = partitions},
        };
        int r;

        if (!ctl_lease(c)) {
                item_done(it, KAFKA_NOT_CONTROLLER, "ZooKeeper does not answer; nothing can be written");
                return;
        }
        znode_path_topic_config(it->name, config);
        znode_path_topic(it->name, topic);
        znode_path_partitions(it->name, partitions);
        r = ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_written, it, drop_nothing);
        if (r == -EINVAL)
                item_done(it, KAFKA_INVALID_PARTITIONS, "the assignment is too large for one znode");
        else if (r < 0)
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
}

/* --- waiting --- */

static bool have_states(const struct ctx_topic *t)
{
        for (int32_t i = 0; i < t->n_partitions; i++) {
                const struct ctx_partition *p = t->partitions[i];
                bool alive = false;

                if (!p || p->has_state)
                        continue;
                for (uint16_t k = 0; k < p->n_slots; k++)
                        alive = alive || p->slots[k].broker->alive;
                if (alive)
                        return false; /* else it stays without a leader, and nobody can be told */
        }
        return true;
}

static void progress_item(struct controller *c, struct create_item *it)
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, it->name);
        int64_t now = loop_now_ms(c->loop);

        if (it->state == ITEM_WRITING || it->state == ITEM_DONE)
                return;
        if (!t || t->deleting) {
                item_done(it, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "it was deleted at once");
                return;
        }
        if (it->state == ITEM_STATES && have_states(t) &&
            sender_marks_take(c, &it->marks, &it->n_marks) == 0) {
                it->state = ITEM_TELLING;
                it->patient_until_ms = now + PATIENCE_MS;
        }
        if (it->state == ITEM_TELLING &&
            (sender_marks_passed(c, it->marks, it->n_marks) || now >= it->patient_until_ms))
                item_done(it, KAFKA_NONE, NULL);
        else if (now >= it->q->deadline_ms)
                item_done(it, KAFKA_REQUEST_TIMED_OUT,
                          "the topic exists; not all its partitions have a leader yet");
}

void topics_progress(struct controller *c)
{
        list_for_each_safe (it, tmp, &c->creations) {
                struct create_request *q = list_entry(it, struct create_request, node);

                q->open++; /* it must not go while its items are walked */
                for (int32_t i = 0; i < q->n_items; i++)
                        progress_item(c, &q->items[i]);
                close_one(q);
        }
}

void topics_forget(struct controller *c)
{
        while (!list_empty(&c->creations)) {
                struct create_request *q = list_entry(c->creations.next, struct create_request, node);

                for (int32_t i = 0; i < q->n_items; i++)
                        if (q->items[i].state != ITEM_DONE)
                                set_error(&q->items[i], KAFKA_NOT_CONTROLLER, NULL);
                request_answer(q);
        }
}

/* --- beginning --- */

static void begin_item(struct controller *c, struct create_item *it)
{
        char error[ASSIGNMENT_TEXT_SIZE];
        int16_t code;

        error[0] = '\0';
        it->min_isr = c->o.default_min_insync_replicas;
        code = topics_check(c, it, error);
        if (code != KAFKA_NONE || it->q->req->validate_only)
                item_done(it, code, error[0] ? error : NULL);
        else if (topics_claim(c, it) < 0)
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
        else
                write_topic(c, it);
}

/* KAFKA_NONE: its topics may be looked at. */
static int16_t admit(const struct controller *c, const struct create_request *q, bool active,
                     const char **ret_sentence)
{
        *ret_sentence = NULL;
        if (!active)
                return KAFKA_NOT_CONTROLLER;
        if (q->req->topics.n > TOPICS_MAX_PER_REQUEST) {
                *ret_sentence = "too many topics in one request: at most 10000";
                return KAFKA_INVALID_REQUEST;
        }
        if (requests_crowded(c)) {
                *ret_sentence = "too many requests to create or delete topics wait; ask again";
                return KAFKA_REQUEST_TIMED_OUT;
        }
        return KAFKA_NONE;
}

static int answer_all(struct create_request *q, int16_t code, const char *sentence)
{
        int32_t n = MAX(q->req->topics.n, 0);

        q->res.topics.items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->res.topics.items));
        if (!q->res.topics.items)
                return -ENOMEM;
        q->res.topics.n = n;
        for (int32_t i = 0; i < n; i++)
                q->res.topics.items[i] =
                        (struct create_topics_response_topic){.name = q->req->topics.items[i].name,
                                                              .error_code = code,
                                                              .error_message = wire_str(sentence),
                                                              .num_partitions = -1,
                                                              .replication_factor = -1,
                                                              .configs = {NULL, -1}};
        return 0;
}

static int make_items(struct create_request *q)
{
        int32_t n = q->res.topics.n;

        q->names = map_new();
        q->items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->items));
        if (!q->names || !q->items)
                return -ENOMEM;
        for (int32_t i = 0; i < n; i++) {
                const struct wire_str name = q->req->topics.items[i].name;
                struct create_item *it = &q->items[i], *first;
                int r;

                *it = (struct create_item){
                        .q = q, .in = &q->req->topics.items[i], .out = &q->res.topics.items[i]};
                r = map_put(q->names, name.len > 0 ? name.data : "", (size_t)MAX(name.len, 0), it);
                if (r == -ENOMEM)
                        return r;
                if (r == 0)
                        continue;
                first = map_get(q->names, name.len > 0 ? name.data : "", (size_t)MAX(name.len, 0));
                first->duplicate = it->duplicate = true;
        }
        q->n_items = n;
        return 0;
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct create_request *q = container_of(call, struct create_request, call);
        const char *sentence;
        int16_t code = admit(c, q, active, &sentence);

        if (answer_all(q, code, sentence) < 0 || code != KAFKA_NONE) {
                request_answer(q);
                return;
        }
        if (make_items(q) < 0) {
                (void)answer_all(q, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
                request_answer(q);
                return;
        }
        q->deadline_ms = requests_deadline(c, q->req->timeout_ms);
        requests_wait_begin(c, &c->creations, &q->node);
        q->open = q->n_items + 1;
        for (int32_t i = 0; i < q->n_items; i++)
                begin_item(c, &q->items[i]);
        close_one(q);
}

void controller_create_topics(struct controller *c, const struct create_topics_request *req,
                              controller_create_topics_fn fn, void *userdata)
{
        struct create_request *q = calloc(1, sizeof(*q));
        struct create_topics_response nothing = {0};

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
