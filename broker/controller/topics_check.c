/* Is a topic that somebody wants to create valid? Names, numbers, placement, configuration. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/parse.h"
#include "controller/topics_internal.h"
#include "wire/error.h"

static const int16_t fault_codes[N_ASSIGNMENT_FAULTS] = {
        [ASSIGNMENT_BAD_PARTITIONS] = KAFKA_INVALID_PARTITIONS,
        [ASSIGNMENT_BAD_FACTOR] = KAFKA_INVALID_REPLICATION_FACTOR,
        [ASSIGNMENT_BAD_REPLICAS] = KAFKA_INVALID_REPLICA_ASSIGNMENT,
        [ASSIGNMENT_BAD_NAME] = KAFKA_INVALID_TOPIC_EXCEPTION,
};

/* --- names --- */

int topics_claim(struct controller *c, struct create_item *it)
{
        char folded[TOPIC_NAME_FOLDED_SIZE];
        int r;

        topic_name_fold(it->name, folded);
        r = map_put_str(c->claimed, folded, it);
        if (r < 0)
                return r;
        it->claims = true;
        c->partitions_waiting += (int64_t)it->topic.n_partitions;
        return 0;
}

void topics_release(struct controller *c, struct create_item *it)
{
        char folded[TOPIC_NAME_FOLDED_SIZE];

        if (!it->claims)
                return;
        it->claims = false;
        topic_name_fold(it->name, folded);
        (void)map_remove_str(c->claimed, folded); /* it is @it */
        c->partitions_waiting -= (int64_t)it->topic.n_partitions;
}

/* Against the topics there are, and those that are being written: nobody may slip in between. */
static int16_t check_collision(struct controller *c, const struct create_item *it,
                               char error[ASSIGNMENT_TEXT_SIZE])
{
        const struct ctx_topic *t = ctx_topic_colliding(&c->ctx, it->name);
        const char *other = t ? t->name : NULL;

        if (!other) {
                char folded[TOPIC_NAME_FOLDED_SIZE];
                const struct create_item *claimed;

                topic_name_fold(it->name, folded);
                claimed = map_get_str(c->claimed, folded);
                other = claimed ? claimed->name : NULL;
        }
        if (!other)
                return KAFKA_NONE;
        if (strcmp(other, it->name) == 0) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "topic %s already exists", it->name);
                return KAFKA_TOPIC_ALREADY_EXISTS;
        }
        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "topic %s collides with existing topics: %s", it->name,
                       other);
        return KAFKA_INVALID_TOPIC_EXCEPTION;
}

static int16_t check_name(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        const struct wire_str name = it->in->name;
        const struct ctx_topic *t;

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
        return check_collision(c, it, error);
}

/* --- replicas --- */

/* A hundred bytes can ask for millions of partitions, and each takes memory from here on. */
static int16_t check_amount(const struct controller *c, struct create_item *it, int64_t n,
                            char error[ASSIGNMENT_TEXT_SIZE])
{
        if (n > PARTITIONS_MAX_PER_REQUEST) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "number of partitions must be at most %d",
                               PARTITIONS_MAX_PER_REQUEST);
                return KAFKA_INVALID_PARTITIONS;
        }
        if (it->q->n_partitions + MAX(n, (int64_t)0) > PARTITIONS_MAX_PER_REQUEST) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "excessively large number of partitions in one request: at most %d",
                               PARTITIONS_MAX_PER_REQUEST);
                return KAFKA_POLICY_VIOLATION;
        }
        if (c->partitions_waiting + n > PARTITIONS_MAX_WAITING) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "too many partitions are being created; ask again");
                return KAFKA_REQUEST_TIMED_OUT;
        }
        it->q->n_partitions += MAX(n, (int64_t)0);
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
        int16_t code = check_amount(c, it, r.n_partitions, error);

        if (code != KAFKA_NONE)
                return code;
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
        int16_t code = check_amount(c, it, n, error);

        if (code != KAFKA_NONE)
                return code;
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

/* --- znodes --- */

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
                /* What cannot be read again would take the topic's other settings with it. */
                if (!znode_text_valid(k->name.data, (size_t)k->name.len) ||
                    !znode_text_valid(k->value.data, (size_t)k->value.len)) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                                       "a name or value is not valid text (UTF-8 without NUL)");
                        return KAFKA_INVALID_CONFIG;
                }
                if (k->value.len > ZNODE_CONFIG_MAX_VALUE) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "%.*s: a value has at most %d bytes",
                                       MIN(k->name.len, 100), k->name.data, ZNODE_CONFIG_MAX_VALUE);
                        return KAFKA_INVALID_CONFIG;
                }
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

static const struct create_topics_request_config *config_of(const struct create_item *it, const char *name)
{
        for (int32_t i = 0; i < it->in->configs.n; i++)
                if (it->in->configs.items[i].value.len >= 0 &&
                    wire_str_equal(it->in->configs.items[i].name, name))
                        return &it->in->configs.items[i];
        return NULL;
}

/* KIP-525: every setting as it is to hold, not only those that were asked for. */
static void fill_configs(struct controller *c, struct create_item *it)
{
        struct arena *a = &it->q->arena;
        struct create_topics_response_topic *out = it->out;
        struct config_setting s;
        size_t n = 0;

        while (c->ops.setting && c->ops.setting(CONFIG_SCOPE_TOPIC, n, &s, c->ops.userdata))
                n++;
        out->configs.items = arena_alloc(a, n + 1, sizeof(*out->configs.items));
        out->configs.n = 0;
        for (size_t i = 0; out->configs.items && i < n; i++) {
                struct create_topics_response_config *k = &out->configs.items[out->configs.n++];
                const struct create_topics_request_config *asked;

                (void)c->ops.setting(CONFIG_SCOPE_TOPIC, i, &s, c->ops.userdata);
                asked = config_of(it, s.name);
                *k = (struct create_topics_response_config){
                        .name = wire_str(s.name),
                        .value = asked ? asked->value : wire_str(arena_strndup(a, s.value, strlen(s.value))),
                        .config_source = (int8_t)(asked ? CONFIG_SOURCE_TOPIC : s.source),
                };
        }
}

static void fill_success(struct controller *c, struct create_item *it)
{
        struct create_topics_response_topic *out = it->out;

        out->num_partitions = (int32_t)it->topic.n_partitions;
        out->replication_factor = (int16_t)(it->topic.n_partitions ? it->topic.partitions[0].n_replicas : 0);
        fill_configs(c, it);
        if (!it->q->req->validate_only)
                out->topic_id = it->topic.id;
}

int16_t topics_check(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        int16_t code = check_name(c, it, error);

        if (code == KAFKA_NONE && it->duplicate) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "duplicate topic name: %s", it->name);
                code = KAFKA_INVALID_REQUEST;
        }
        if (code == KAFKA_NONE)
                code = it->in->assignments.n > 0 ? take_manual(c, it, error) : place(c, it, error);
        if (code == KAFKA_NONE)
                code = encode_config(c, it, error);
        if (code == KAFKA_NONE)
                code = encode_topic(it);
        if (code == KAFKA_NONE)
                fill_success(c, it);
        return code;
}
