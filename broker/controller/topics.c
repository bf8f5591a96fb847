/* CreateTopics: validate, place the replicas, write configuration and assignment in one multi, then wait
 * until the brokers know the partitions, so that who creates a topic may use it. */
#include "controller/topics_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/parse.h"
#include "base/replica_assignment.h"
#include "base/slog.h"
#include "wire/create_topics.h"
#include "wire/error.h"

#define MAX_PARTITIONS 50000 /* a topic; what its znode can carry is checked when it is written */
#define PATIENCE_MS    5000  /* then a broker that does not acknowledge is not waited for any longer */

enum item_state { ITEM_WRITING, ITEM_STATES, ITEM_TELLING, ITEM_DONE };

struct create_request;
struct create_item {
        struct create_request *q;
        const struct create_topics_request_topic *in;
        struct create_topics_response_topic *out;
        enum item_state state;
        char *name;
        struct znode_topic topic; /* its arrays are in the request's arena */
        const char *topic_json, *config_json;
        int32_t min_isr;
        bool config_exists;
        struct sender_mark *marks;
        size_t n_marks;
        int64_t patient_until_ms;
};

struct create_request {
        struct ctl_call call;
        struct list node; /* controller->creations */
        const struct create_topics_request *req;
        controller_create_topics_fn fn;
        void *userdata;
        struct arena arena;
        struct create_topics_response res;
        struct create_item *items;
        int32_t n_items, open; /* open: not done, and one for ourselves while beginning */
        int64_t deadline_ms;
};

static void request_answer(struct create_request *q)
{
        list_remove(&q->node);
        q->fn(&q->res, q->userdata);
        for (int32_t i = 0; i < q->n_items; i++)
                free(q->items[i].marks);
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
        close_one(it->q);
}

/* --- validation --- */

static const int16_t fault_codes[N_ASSIGNMENT_FAULTS] = {
        [ASSIGNMENT_BAD_PARTITIONS] = KAFKA_INVALID_PARTITIONS,
        [ASSIGNMENT_BAD_FACTOR] = KAFKA_INVALID_REPLICATION_FACTOR,
        [ASSIGNMENT_BAD_REPLICAS] = KAFKA_INVALID_REPLICA_ASSIGNMENT,
        [ASSIGNMENT_BAD_NAME] = KAFKA_INVALID_TOPIC_EXCEPTION,
};

static int16_t check_name(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        const struct wire_str name = it->in->name;
        const struct ctx_topic *t;
        size_t cursor = 0;
        void *v;

        if (name.len < 0 || topic_name_check(name.data, (size_t)name.len, error) < 0)
                return KAFKA_INVALID_TOPIC_EXCEPTION;
        it->name = arena_strndup(&it->q->arena, name.data, (size_t)name.len);
        if (!it->name)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        t = ctx_topic(&c->ctx, it->name);
        if (t) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               t->deleting ? "topic %s is marked for deletion" : "topic %s already exists",
                               it->name);
                return KAFKA_TOPIC_ALREADY_EXISTS;
        }
        while (strpbrk(it->name, "._") && map_next(c->ctx.topics, &cursor, NULL, NULL, &v)) {
                if (!topic_names_collide(((struct ctx_topic *)v)->name, it->name))
                        continue;
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "topic %s collides with existing topics: %s",
                               it->name, ((struct ctx_topic *)v)->name);
                return KAFKA_INVALID_TOPIC_EXCEPTION;
        }
        return KAFKA_NONE;
}

static int16_t check_duplicate(const struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        const struct create_topics_request *req = it->q->req;

        for (int32_t i = 0; i < req->topics.n; i++)
                if (&req->topics.items[i] != it->in && wire_str_equal(req->topics.items[i].name, it->name)) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "duplicate topic name: %s", it->name);
                        return KAFKA_INVALID_REQUEST;
                }
        return KAFKA_NONE;
}

/* Brokers that drain get no new replicas while there are enough others. */
static int32_t *usable_brokers(struct controller *c, int32_t factor, int32_t *ret_n)
{
        int32_t *ids = ctx_alive_ids(&c->ctx, false, ret_n);

        if (ids && *ret_n >= factor)
                return ids;
        free(ids);
        return ctx_alive_ids(&c->ctx, true, ret_n);
}

static int allocate_partitions(struct create_item *it, int32_t n)
{
        it->topic.partitions = arena_alloc(&it->q->arena, (size_t)n + 1, sizeof(*it->topic.partitions));
        it->topic.n_partitions = (size_t)n;
        return it->topic.partitions ? 0 : -ENOMEM;
}

static int16_t place(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        struct assignment_request r = {
                .n_partitions =
                        it->in->num_partitions == -1 ? c->o.default_num_partitions : it->in->num_partitions,
                .replication_factor = it->in->replication_factor == -1 ? c->o.default_replication_factor
                                                                       : it->in->replication_factor,
        };
        cleanup_with(freep) int32_t *brokers = usable_brokers(c, r.replication_factor, &r.n_brokers);
        enum assignment_fault fault;
        uint32_t start[2] = {0, 0};
        int32_t *ids;

        if (r.n_partitions > MAX_PARTITIONS) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "number of partitions must be at most %d",
                               MAX_PARTITIONS);
                return KAFKA_INVALID_PARTITIONS;
        }
        (void)getrandom(start, sizeof(start), GRND_NONBLOCK); /* zeroes do as well, if less evenly */
        r.brokers = brokers;
        r.start_index = start[0];
        r.start_shift = start[1];
        ids = arena_alloc(&it->q->arena,
                          (size_t)MAX(r.n_partitions, 1) *
                                  (size_t)MIN(MAX(r.replication_factor, 1), MAX(r.n_brokers, 1)),
                          sizeof(int32_t));
        if (!brokers || !ids)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        if (assignment_make(&r, ids, error, &fault) < 0)
                return fault_codes[fault];
        if (allocate_partitions(it, r.n_partitions) < 0)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        for (int32_t i = 0; i < r.n_partitions; i++)
                it->topic.partitions[i] =
                        (struct znode_assignment){.partition = i,
                                                  .replicas = ids + (size_t)i * (size_t)r.replication_factor,
                                                  .n_replicas = (size_t)r.replication_factor};
        return KAFKA_NONE;
}

static int compare_assignments(const void *a, const void *b)
{
        const struct znode_assignment *x = a, *y = b;

        return (x->partition > y->partition) - (x->partition < y->partition);
}

static int16_t take_manual(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        int32_t n = it->in->assignments.n, n_brokers = 0;
        cleanup_with(freep) int32_t *brokers = ctx_alive_ids(&c->ctx, true, &n_brokers);
        enum assignment_fault fault;

        if (it->in->num_partitions != -1 || it->in->replication_factor != -1) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "both a replica assignment and a number of partitions or a replication factor "
                               "were set");
                return KAFKA_INVALID_REQUEST;
        }
        if (!brokers || allocate_partitions(it, n) < 0)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        for (int32_t i = 0; i < n; i++)
                it->topic.partitions[i] = (struct znode_assignment){
                        .partition = it->in->assignments.items[i].partition_index,
                        .replicas = it->in->assignments.items[i].broker_ids.items,
                        .n_replicas = (size_t)MAX(it->in->assignments.items[i].broker_ids.n, 0),
                };
        qsort(it->topic.partitions, (size_t)n, sizeof(*it->topic.partitions), compare_assignments);
        for (int32_t i = 0; i < n; i++) {
                const struct znode_assignment *a = &it->topic.partitions[i];

                if (a->partition != i) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                                       "partitions should be a consecutive 0-based integer sequence");
                        return KAFKA_INVALID_REPLICA_ASSIGNMENT;
                }
                if (assignment_check(i, a->replicas, (int32_t)a->n_replicas,
                                     (int32_t)it->topic.partitions[0].n_replicas, brokers, n_brokers, error,
                                     &fault) < 0)
                        return fault_codes[fault];
        }
        return KAFKA_NONE;
}

static int16_t encode_config(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        struct arena *a = &it->q->arena;
        struct znode_config config = {0};
        cleanup_with(buf_donep) struct buf out = {0};
        char why[256];

        buf_init(&out, 0);
        config.entries = arena_alloc(a, (size_t)MAX(it->in->configs.n, 0) + 1, sizeof(*config.entries));
        if (!config.entries)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        for (int32_t i = 0; i < it->in->configs.n; i++) {
                const struct create_topics_request_config *k = &it->in->configs.items[i];
                struct znode_config_entry *e = &config.entries[config.n];

                if (k->value.len < 0 || k->name.len < 0)
                        continue; /* null: the default */
                e->key = arena_strndup(a, k->name.data, (size_t)k->name.len);
                e->value = arena_strndup(a, k->value.data, (size_t)k->value.len);
                if (!e->key || !e->value)
                        return KAFKA_UNKNOWN_SERVER_ERROR;
                if (c->ops.validate_topic_config &&
                    c->ops.validate_topic_config(e->key, e->value, why, c->ops.userdata) < 0) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "%s", why);
                        return KAFKA_INVALID_CONFIG;
                }
                if (strcmp(e->key, "min.insync.replicas") == 0 &&
                    parse_int32(e->value, 1, INT32_MAX, &it->min_isr) < 0) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                                       "invalid value %s for min.insync.replicas", e->value);
                        return KAFKA_INVALID_CONFIG;
                }
                config.n++;
        }
        if (znode_config_encode(&config, &out) < 0)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        it->config_json = arena_strndup(a, (const char *)out.data, out.len);
        return it->config_json ? KAFKA_NONE : KAFKA_UNKNOWN_SERVER_ERROR;
}

static int16_t encode_topic(struct create_item *it)
{
        cleanup_with(buf_donep) struct buf out = {0};

        buf_init(&out, 0);
        if (uuid_random(&it->topic.id) < 0 || znode_topic_encode(&it->topic, &out) < 0)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        it->topic_json = arena_strndup(&it->q->arena, (const char *)out.data, out.len);
        return it->topic_json ? KAFKA_NONE : KAFKA_UNKNOWN_SERVER_ERROR;
}

static void fill_success(struct create_item *it)
{
        struct create_topics_response_topic *out = it->out;
        int32_t n = MAX(it->in->configs.n, 0);

        out->num_partitions = (int32_t)it->topic.n_partitions;
        out->replication_factor = (int16_t)(it->topic.n_partitions ? it->topic.partitions[0].n_replicas : 0);
        out->configs.items = arena_alloc(&it->q->arena, (size_t)n + 1, sizeof(*out->configs.items));
        out->configs.n = 0;
        for (int32_t i = 0; out->configs.items && i < n; i++)
                out->configs.items[out->configs.n++] =
                        (struct create_topics_response_config){.name = it->in->configs.items[i].name,
                                                               .value = it->in->configs.items[i].value,
                                                               .config_source = 1};
        if (!it->q->req->validate_only)
                out->topic_id = it->topic.id;
}

static int16_t validate(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        int16_t code = check_name(c, it, error);

        if (code == KAFKA_NONE)
                code = check_duplicate(it, error);
        if (code == KAFKA_NONE)
                code = it->in->assignments.n > 0 ? take_manual(c, it, error) : place(c, it, error);
        if (code == KAFKA_NONE)
                code = encode_config(c, it, error);
        if (code == KAFKA_NONE)
                code = encode_topic(it);
        return code;
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
        t = ctx_topic(&c->ctx, it->name);
        t->min_isr = it->min_isr;
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

static void on_written(struct controller *c, const struct zk_result *res, void *arg)
{
        struct create_item *it = arg;
        char error[ASSIGNMENT_TEXT_SIZE];
        int at = ctl_multi_failed_at(res);

        if (res->r == 0) {
                begin_waiting(c, it);
        } else if (at == OP_CHECK) {
                ctl_resign_soon(c, "the creation of a topic was fenced: another controller was elected");
        } else if (at == OP_CONFIG && res->r == -EEXIST && !it->config_exists) {
                it->config_exists = true; /* left over, or set beforehand by a tool */
                write_topic(c, it);
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
                               .version = -1},
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
        code = validate(c, it, error);
        if (code == KAFKA_NONE)
                fill_success(it);
        if (code != KAFKA_NONE || it->q->req->validate_only)
                item_done(it, code, error[0] ? error : NULL);
        else
                write_topic(c, it);
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct create_request *q = container_of(call, struct create_request, call);
        int32_t n = MAX(q->req->topics.n, 0);

        q->items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->items));
        q->res.topics.items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->res.topics.items));
        if (!q->items || !q->res.topics.items) {
                request_answer(q);
                return;
        }
        if (active) {
                q->deadline_ms = loop_now_ms(c->loop) + MAX(q->req->timeout_ms, 0);
                list_push_back(&c->creations, &q->node);
        }
        q->open = n + 1;
        q->n_items = q->res.topics.n = n;
        for (int32_t i = 0; i < n; i++) {
                q->res.topics.items[i] =
                        (struct create_topics_response_topic){.name = q->req->topics.items[i].name,
                                                              .error_message = WIRE_NULL_STR,
                                                              .num_partitions = -1,
                                                              .replication_factor = -1,
                                                              .configs = {NULL, -1}};
                q->items[i] = (struct create_item){
                        .q = q, .in = &q->req->topics.items[i], .out = &q->res.topics.items[i]};
        }
        for (int32_t i = 0; i < n; i++)
                if (active)
                        begin_item(c, &q->items[i]);
                else
                        item_done(&q->items[i], KAFKA_NOT_CONTROLLER, NULL);
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
