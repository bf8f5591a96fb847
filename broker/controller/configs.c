/* AlterConfigs and IncrementalAlterConfigs: read a resource's znode, merge, write it and a notification for
 * the brokers in one multi.
 *
 *   READING --merged--> WRITING --written--> DONE
 *      ^                   |
 *      '--- somebody else wrote, or the outcome is not known: what is there decides
 *
 * Every operation may be done twice with the same result, so a write whose reply was lost is simply begun
 * anew. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/slog.h"
#include "controller/config_core.h"
#include "controller/topics_internal.h"
#include "wire/error.h"

#define MAX_TRIES      20
#define MAX_RESOURCES  10000
#define PURGE_AFTER_MS (15 * 60 * 1000) /* Kafka's: who has not looked by then has lost its session */
#define PURGE_EVERY_MS (60 * 1000)
#define PURGE_AT_ONCE  500

struct config_request;

struct config_item {
        struct config_request *q;
        const struct incremental_alter_configs_request_resource *in;
        struct incremental_alter_configs_response_response *out;
        char *name;
        char path[ZNODE_PATH_SIZE], entity[ZNODE_PATH_SIZE];
        int tries;
        bool creates; /* there was no node when it was read */
        bool done;
};

struct config_request {
        struct ctl_call call;
        struct list node; /* controller->configs */
        const struct incremental_alter_configs_request *req;
        bool replace;
        controller_alter_configs_fn fn;
        void *userdata;
        struct arena arena;
        struct incremental_alter_configs_response res;
        struct config_item *items;
        int32_t n_items, open; /* open: not done, and one for ourselves while beginning */
};

static void request_answer(struct config_request *q)
{
        requests_wait_end(q->call.c, &q->node);
        q->fn(&q->res, q->userdata);
        arena_done(&q->arena);
        free(q);
}

static void close_one(struct config_request *q)
{
        if (--q->open == 0)
                request_answer(q);
}

static void set_error(struct config_item *it, int16_t code, const char *sentence)
{
        char *copy =
                sentence && sentence[0] ? arena_strndup(&it->q->arena, sentence, strlen(sentence)) : NULL;

        for (char *p = copy; p && *p; p++) /* it may quote what was sent */
                if (*p < ' ' || *p > '~')
                        *p = '?';
        it->out->error_code = code;
        it->out->error_message = wire_str(copy);
}

/* May end the request. */
static void item_done(struct config_item *it, int16_t code, const char *sentence)
{
        it->done = true;
        set_error(it, code, sentence);
        close_one(it->q);
}

bool config_setting_find(const struct controller *c, enum config_scope scope, const char *name,
                         struct config_setting *ret)
{
        for (size_t i = 0; c->ops.setting && c->ops.setting(scope, i, ret, c->ops.userdata); i++)
                if (strcmp(ret->name, name) == 0)
                        return true;
        return false;
}

static int check_setting(enum config_scope scope, const char *name, const char *value, char error[256],
                         void *userdata)
{
        const struct controller *c = userdata;

        return c->ops.check_setting ? c->ops.check_setting(scope, name, value, error, c->ops.userdata) : 0;
}

static bool find_setting(enum config_scope scope, const char *name, struct config_setting *ret,
                         void *userdata)
{
        return config_setting_find(userdata, scope, name, ret);
}

/* --- old notifications --- */

static void on_notification(struct controller *c, const struct zk_result *res, void *arg)
{
        if (res->r == 0 && clock_real_ms() - res->stat.ctime_ms > PURGE_AFTER_MS)
                (void)!ctl_zk_delete(c, arg, -1, ctl_zk_ignore, NULL); /* the next purge tries again */
        free(arg);
}

static int compare_names(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void on_notifications(struct controller *c, const struct zk_result *res, void *arg)
{
        cleanup_with(freep) const char **names = calloc(res->n_children + 1, sizeof(*names));

        (void)arg;
        if (res->r < 0 || !names)
                return;
        for (size_t i = 0; i < res->n_children; i++)
                names[i] = res->children[i];
        qsort(names, res->n_children, sizeof(*names), compare_names); /* the oldest first */
        for (size_t i = 0; i < MIN(res->n_children, (size_t)PURGE_AT_ONCE); i++) {
                char *path = NULL;

                if (asprintf(&path, ZNODE_CONFIG_CHANGES "/%s", names[i]) < 0 ||
                    ctl_zk_exists_arg(c, path, N_CTL_WATCHES, on_notification, path, NULL) < 0) {
                        free(path);
                        return;
                }
        }
}

/* Who writes them also clears them away: in a cluster of ours alone nobody else does. */
static void purge(struct controller *c)
{
        int64_t now = loop_now_ms(c->loop);

        if (now < c->config_purge_at_ms)
                return;
        c->config_purge_at_ms = now + PURGE_EVERY_MS;
        (void)!ctl_zk_children(c, ZNODE_CONFIG_CHANGES, N_CTL_WATCHES, on_notifications, NULL);
}

/* --- writing --- */

static void read_config(struct controller *c, struct config_item *it);

static void drop_nothing(void *arg)
{
        (void)arg; /* items belong to requests, which resignation has answered */
}

static void begin_again(struct controller *c, struct config_item *it)
{
        if (++it->tries < MAX_TRIES)
                read_config(c, it);
        else
                item_done(it, KAFKA_REQUEST_TIMED_OUT,
                          "somebody else keeps changing it, or ZooKeeper does not answer; the outcome is "
                          "not known");
}

enum { OP_CHECK, OP_CONFIG, OP_NOTIFY };

static void on_written(struct controller *c, const struct zk_result *res, void *arg)
{
        struct config_item *it = arg;
        char error[CONFIG_TEXT_SIZE];
        int at = ctl_multi_failed_at(res);

        if (res->r == 0) {
                slog_notice("config-changed", "a configuration was changed", SL_STR("entity", it->entity),
                            SL_INT("settings", it->in->configs.n));
                purge(c);
                item_done(it, KAFKA_NONE, NULL);
        } else if (at == OP_CHECK) {
                ctl_resign_soon(c,
                                "the change of a configuration was fenced: another controller was elected");
        } else if (ctl_outcome_unknown(res->r) ||
                   (at == OP_CONFIG && (res->r == -ESTALE || res->r == -EEXIST || res->r == -ENOENT))) {
                begin_again(c, it);
        } else {
                (void)snprintf(error, sizeof(error), "ZooKeeper refused it: %s", strerror(-res->r));
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, error);
        }
}

static void write_config(struct controller *c, struct config_item *it, const struct znode_config *config,
                         int32_t version)
{
        cleanup_with(buf_donep) struct buf data = {0}, change = {0};
        struct zk_op ops[] = {
                [OP_CHECK] = ctl_epoch_check(c),
                [OP_CONFIG] = {.type = it->creates ? ZK_OP_CREATE : ZK_OP_SET,
                               .path = it->path,
                               .version = version},
                [OP_NOTIFY] = {.type = ZK_OP_CREATE_SEQUENTIAL, .path = ZNODE_CONFIG_CHANGE_PREFIX},
        };
        int r;

        r = znode_config_encode(config, &data);
        if (r >= 0)
                r = znode_config_change_encode(it->entity, &change);
        ops[OP_CONFIG].data = r >= 0 ? buf_cstr(&data) : NULL;
        ops[OP_NOTIFY].data = r >= 0 ? buf_cstr(&change) : NULL;
        if (!ops[OP_CONFIG].data || !ops[OP_NOTIFY].data)
                r = -ENOMEM;
        if (r >= 0)
                r = ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_written, it, drop_nothing);
        if (r == -EINVAL)
                item_done(it, KAFKA_INVALID_CONFIG, "the settings are more than a znode holds");
        else if (r < 0)
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
}

/* --- reading --- */

static void merge(struct controller *c, struct config_item *it, const struct znode_config *now,
                  int32_t version)
{
        const struct config_rules rules = {
                .scope = (enum config_scope)it->in->resource_type,
                .replace = it->q->replace,
                .check = check_setting,
                .find = find_setting,
                .userdata = c,
        };
        char error[CONFIG_TEXT_SIZE] = "";
        struct znode_config to;
        bool changed;
        int16_t code = config_merge(&rules, now, it->in, &it->q->arena, &to, &changed, error);

        if (code != KAFKA_NONE || !changed || it->q->req->validate_only)
                item_done(it, code, error);
        else if (!ctl_lease(c))
                item_done(it, KAFKA_NOT_CONTROLLER, "ZooKeeper does not answer; nothing can be written");
        else
                write_config(c, it, &to, version);
}

static bool topic_exists(struct controller *c, const char *name)
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, name);

        return t && !t->deleting;
}

static void on_read(struct controller *c, const struct zk_result *res, void *arg)
{
        struct config_item *it = arg;
        struct znode_config now = {0};
        char error[CONFIG_TEXT_SIZE];
        int r = 0;

        if (ctl_outcome_unknown(res->r)) {
                begin_again(c, it);
                return;
        }
        if (res->r == 0 && res->data)
                r = znode_config_decode(res->data, res->data_len, &now);
        if (r == -EBADMSG && it->q->replace)
                r = 0; /* nothing of it is to stay */
        if (r < 0 || (res->r < 0 && res->r != -ENOENT)) {
                (void)snprintf(error, sizeof(error), "%.250s in ZooKeeper %s", it->path,
                               r == -EBADMSG ? "is malformed: replace it by AlterConfigs"
                                             : "could not be read");
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, error);
                return;
        }
        it->creates = res->r == -ENOENT;
        if (it->in->resource_type == CONFIG_SCOPE_TOPIC && !topic_exists(c, it->name))
                item_done(it, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted meanwhile");
        else
                merge(c, it, &now, res->stat.version);
        znode_config_done(&now);
}

static void read_config(struct controller *c, struct config_item *it)
{
        if (ctl_zk_get(c, it->path, on_read, it, drop_nothing) < 0)
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
}

/* --- beginning --- */

static int16_t begin_topic(struct controller *c, struct config_item *it, char error[CONFIG_TEXT_SIZE])
{
        if (!topic_exists(c, it->name)) {
                (void)snprintf(error, CONFIG_TEXT_SIZE, "The topic '%.100s' does not exist.", it->name);
                return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        }
        znode_path_topic_config(it->name, it->path);
        (void)snprintf(it->entity, sizeof(it->entity), "topics/%s", it->name);
        return KAFKA_NONE;
}

/* "": what holds for every broker. Any other need not be there now. */
static int16_t begin_broker(struct config_item *it, char error[CONFIG_TEXT_SIZE])
{
        const char *name = it->name[0] ? it->name : ZNODE_DEFAULT_ENTITY;
        int32_t id;

        if (it->name[0] && parse_int32(it->name, 0, INT32_MAX, &id) < 0) {
                (void)snprintf(
                        error, CONFIG_TEXT_SIZE,
                        "'%.100s' is no broker id; it must be a whole number, or empty for the defaults "
                        "of all brokers",
                        it->name);
                return KAFKA_INVALID_REQUEST;
        }
        znode_path_broker_config(name, it->path);
        (void)snprintf(it->entity, sizeof(it->entity), "brokers/%s", name);
        return KAFKA_NONE;
}

static int16_t begin_resource(struct controller *c, struct config_item *it, char error[CONFIG_TEXT_SIZE])
{
        const struct wire_str name = it->in->resource_name;
        int16_t code = config_changes_check(it->in, error);

        if (code != KAFKA_NONE)
                return code;
        it->name = arena_strndup(&it->q->arena, name.data ? name.data : "", (size_t)MAX(name.len, 0));
        if (!it->name)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        switch (it->in->resource_type) {
        case CONFIG_SCOPE_TOPIC:
                return begin_topic(c, it, error);
        case CONFIG_SCOPE_BROKER:
                return begin_broker(it, error);
        default:
                (void)snprintf(error, CONFIG_TEXT_SIZE,
                               "Unsupported resource type %d; it must be 2 (topic) or 4 (broker)",
                               it->in->resource_type);
                return KAFKA_INVALID_REQUEST;
        }
}

/* Two changes of one resource in a request would race. */
static int16_t check_twice(const struct config_item *it, struct map *seen, char error[CONFIG_TEXT_SIZE])
{
        char key[1 + ZNODE_PATH_SIZE];
        int n = snprintf(key, sizeof(key), "%d/%.*s", it->in->resource_type,
                         (int)MIN(MAX(it->in->resource_name.len, 0), 300), it->in->resource_name.data);
        int r = map_put(seen, key, (size_t)n, seen);

        if (r == -EEXIST)
                (void)snprintf(error, CONFIG_TEXT_SIZE, "Each resource must appear at most once.");
        return r == -EEXIST ? KAFKA_INVALID_REQUEST : r < 0 ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_NONE;
}

static int answer_all(struct config_request *q, int16_t code)
{
        int32_t n = MAX(q->req->resources.n, 0);

        q->res.responses.items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->res.responses.items));
        if (!q->res.responses.items)
                return -ENOMEM;
        q->res.responses.n = n;
        for (int32_t i = 0; i < n; i++)
                q->res.responses.items[i] = (struct incremental_alter_configs_response_response){
                        .error_code = code,
                        .error_message = WIRE_NULL_STR,
                        .resource_type = q->req->resources.items[i].resource_type,
                        .resource_name = q->req->resources.items[i].resource_name,
                };
        return 0;
}

static void begin(struct controller *c, struct config_request *q, struct map *seen)
{
        q->open = q->n_items + 1;
        for (int32_t i = 0; i < q->n_items; i++) {
                struct config_item *it = &q->items[i];
                char error[CONFIG_TEXT_SIZE] = "";
                int16_t code;

                *it = (struct config_item){
                        .q = q, .in = &q->req->resources.items[i], .out = &q->res.responses.items[i]};
                code = check_twice(it, seen, error);
                if (code == KAFKA_NONE)
                        code = begin_resource(c, it, error);
                if (code == KAFKA_NONE)
                        read_config(c, it);
                else
                        item_done(it, code, error);
        }
        close_one(q);
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct config_request *q = container_of(call, struct config_request, call);
        cleanup_with(map_freep) struct map *seen = map_new();
        int16_t code = !active                               ? KAFKA_NOT_CONTROLLER
                       : q->req->resources.n > MAX_RESOURCES ? KAFKA_INVALID_REQUEST
                       : requests_crowded(c)                 ? KAFKA_REQUEST_TIMED_OUT
                       : !seen                               ? KAFKA_UNKNOWN_SERVER_ERROR
                                                             : KAFKA_NONE;

        if (answer_all(q, code) < 0 || code != KAFKA_NONE) {
                request_answer(q);
                return;
        }
        q->n_items = q->res.responses.n;
        q->items = arena_alloc(&q->arena, (size_t)q->n_items + 1, sizeof(*q->items));
        if (!q->items) {
                (void)answer_all(q, KAFKA_UNKNOWN_SERVER_ERROR);
                request_answer(q);
                return;
        }
        requests_wait_begin(c, &c->configs, &q->node);
        begin(c, q, seen);
}

void configs_forget(struct controller *c)
{
        c->config_purge_at_ms = 0;
        while (!list_empty(&c->configs)) {
                struct config_request *q = list_entry(c->configs.next, struct config_request, node);

                for (int32_t i = 0; i < q->n_items; i++)
                        if (!q->items[i].done)
                                set_error(&q->items[i], KAFKA_NOT_CONTROLLER, NULL);
                request_answer(q);
        }
}

void controller_alter_configs(struct controller *c, const struct incremental_alter_configs_request *req,
                              bool replace, controller_alter_configs_fn fn, void *userdata)
{
        const struct incremental_alter_configs_response nothing = {0};
        struct config_request *q = calloc(1, sizeof(*q));

        if (!q) {
                fn(&nothing, userdata);
                return;
        }
        list_init(&q->node);
        arena_init(&q->arena, 0);
        q->req = req;
        q->replace = replace;
        q->fn = fn;
        q->userdata = userdata;
        ctl_post(c, &q->call, run);
}
