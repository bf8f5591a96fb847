/* A request reads the znodes of all its resources at once and is answered when all have been read. Control
 * loop. */
#include "config_describe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "controller/controller.h"
#include "wire/describe_configs.h"
#include "wire/error.h"
#include "zk/znode.h"

#define TEXT_SIZE     1024
#define MAX_RESOURCES 10000

struct describe;

struct item {
        struct describe *d;
        const struct describe_configs_request_resource *in;
        struct describe_configs_response_result *out;
        char *name;
        /* What a topic says itself; of a broker: its own, and what holds for all of them. */
        struct znode_config own, all;
        bool wants_all; /* and it has not been read yet */
        int tries;
};

struct describe {
        struct loop_task task;
        struct server *s;
        const struct describe_configs_request *req;
        struct arena *a;
        struct describe_configs_response res;
        struct item *items;
        size_t n_items, open; /* open: not done, and one for ourselves while beginning */
        void (*fn)(const struct describe_configs_response *res, void *userdata);
        void *userdata;
};

static void close_one(struct describe *d)
{
        if (--d->open > 0)
                return;
        d->fn(&d->res, d->userdata);
        for (size_t i = 0; i < d->n_items; i++) {
                znode_config_done(&d->items[i].own);
                znode_config_done(&d->items[i].all);
        }
        free(d->items);
        free(d);
}

static struct wire_str keep(struct item *it, const char *s)
{
        return wire_str(arena_strndup(it->d->a, s, strlen(s)));
}

static void item_fail(struct item *it, int16_t code, const char *sentence)
{
        it->out->error_code = code;
        it->out->error_message = keep(it, sentence);
        it->out->configs.n = 0;
        close_one(it->d);
}

/* --- filling in --- */

/* KIP-226: no names, or an empty list of them, asks for all. */
static bool is_asked_for(const struct item *it, const char *name)
{
        if (it->in->configuration_keys.n <= 0)
                return true;
        for (int32_t i = 0; i < it->in->configuration_keys.n; i++)
                if (wire_str_equal(it->in->configuration_keys.items[i], name))
                        return true;
        return false;
}

static int room_for(struct item *it, size_t n)
{
        it->out->configs.items = arena_alloc(it->d->a, n + 1, sizeof(*it->out->configs.items));
        return it->out->configs.items ? 0 : -ENOMEM;
}

/* What a setting would be were those above it not there, the one that holds first. */
struct layer {
        const char *name, *value;
        enum setting_source source;
};

static void put(struct item *it, int8_t type, bool read_only, const char *help, const struct layer *layers,
                size_t n)
{
        struct describe_configs_response_config *c = &it->out->configs.items[it->out->configs.n++];

        *c = (struct describe_configs_response_config){
                .name = keep(it, layers[n - 1].name),
                .value = keep(it, layers[0].value),
                .read_only = read_only,
                .config_source = (int8_t)layers[0].source,
                .config_type = type,
                .documentation = it->d->req->include_documentation && help ? wire_str(help) : WIRE_NULL_STR,
        };
        if (!it->d->req->include_synonyms)
                return;
        c->synonyms.items = arena_alloc(it->d->a, n, sizeof(*c->synonyms.items));
        for (size_t i = 0; c->synonyms.items && i < n; i++)
                c->synonyms.items[c->synonyms.n++] =
                        (struct describe_configs_response_synonym){.name = keep(it, layers[i].name),
                                                                   .value = keep(it, layers[i].value),
                                                                   .source = (int8_t)layers[i].source};
}

/* A value that does not hold because it is none is not shown as if it did. */
static void add_layer(enum settings_scope scope, const struct znode_config *z, const char *name,
                      enum setting_source source, struct layer *layers, size_t *n)
{
        const char *value = znode_config_get(z, name);
        char error[256];

        if (value && settings_check(scope, name, value, error) == 0)
                layers[(*n)++] = (struct layer){name, value, source};
}

static int describe_topic(struct item *it)
{
        size_t count = settings_count(SETTINGS_TOPIC);

        if (room_for(it, count) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < count; i++) {
                const struct setting *s = settings_at(SETTINGS_TOPIC, i);
                char text[TEXT_SIZE];
                struct layer layers[3];
                size_t n = 0;

                if (!is_asked_for(it, s->name))
                        continue;
                add_layer(SETTINGS_TOPIC, &it->own, s->name, SOURCE_TOPIC, layers, &n);
                if (settings_default(s, it->d->s->config, text, sizeof(text)) == SOURCE_FILE)
                        layers[n++] = (struct layer){s->broker_key, text, SOURCE_FILE};
                layers[n++] = (struct layer){s->name, s->default_text, SOURCE_DEFAULT};
                put(it, (int8_t)s->type, false, NULL, layers, n);
        }
        return 0;
}

static void describe_dynamic(struct item *it, bool only_all)
{
        for (size_t i = 0; i < settings_count(SETTINGS_BROKER); i++) {
                const struct setting *s = settings_at(SETTINGS_BROKER, i);
                struct layer layers[3];
                size_t n = 0;

                if (!is_asked_for(it, s->name))
                        continue;
                if (!only_all)
                        add_layer(SETTINGS_BROKER, &it->own, s->name, SOURCE_BROKER, layers, &n);
                add_layer(SETTINGS_BROKER, &it->all, s->name, SOURCE_ALL_BROKERS, layers, &n);
                if (!only_all)
                        layers[n++] = (struct layer){s->name, s->default_text, SOURCE_DEFAULT};
                if (n > 0)
                        put(it, (int8_t)s->type, false, NULL, layers, n);
        }
}

static const int8_t row_types[] = {
        [CONFIG_STRING] = SETTING_STRING,     [CONFIG_INT32] = SETTING_INT32,
        [CONFIG_INT64] = SETTING_INT64,       [CONFIG_BOOL] = SETTING_BOOL,
        [CONFIG_DURATION_MS] = SETTING_INT64, [CONFIG_ENUM] = SETTING_STRING,
};

static int describe_broker(struct item *it)
{
        size_t n_rows;
        const struct config_row *rows = broker_config_rows(&n_rows);

        if (room_for(it, settings_count(SETTINGS_BROKER) + n_rows) < 0)
                return -ENOMEM;
        describe_dynamic(it, it->name[0] == '\0');
        for (size_t i = 0; it->name[0] && i < n_rows; i++) {
                char text[TEXT_SIZE];
                struct layer layers[2];
                size_t n = 0;

                if (!is_asked_for(it, rows[i].key))
                        continue;
                (void)config_row_text(&rows[i], it->d->s->config, text, sizeof(text));
                if (!rows[i].default_text || strcmp(rows[i].default_text, text) != 0)
                        layers[n++] = (struct layer){rows[i].key, text, SOURCE_FILE};
                if (rows[i].default_text)
                        layers[n++] = (struct layer){rows[i].key, rows[i].default_text, SOURCE_DEFAULT};
                put(it, row_types[rows[i].type], true, rows[i].help, layers, n);
        }
        return 0;
}

/* --- reading --- */

static int read_next(struct item *it);

static void item_read(struct item *it)
{
        int r = it->in->resource_type == CONFIG_SCOPE_TOPIC ? describe_topic(it) : describe_broker(it);

        if (r < 0)
                item_fail(it, KAFKA_UNKNOWN_SERVER_ERROR, "out of memory");
        else
                close_one(it->d);
}

static void on_read(const struct zk_result *res, void *userdata)
{
        struct item *it = userdata;
        struct znode_config *to = it->wants_all ? &it->all : &it->own;
        int r = res->r == -ENOENT ? 0 : res->r;

        if ((r == -ECONNRESET || r == -ETIMEDOUT) && it->tries++ == 0 && read_next(it) == 0)
                return;
        if (r == 0 && res->r == 0 && res->data)
                r = znode_config_decode(res->data, res->data_len, to);
        if (r < 0) {
                item_fail(it, KAFKA_UNKNOWN_SERVER_ERROR,
                          r == -EBADMSG ? "its configuration in ZooKeeper is malformed"
                                        : "its configuration could not be read from ZooKeeper");
                return;
        }
        if (!it->wants_all) {
                item_read(it);
                return;
        }
        it->wants_all = false;
        if (it->name[0] == '\0')
                item_read(it);
        else if (read_next(it) < 0)
                item_fail(it, KAFKA_UNKNOWN_SERVER_ERROR, "out of memory");
}

static int read_next(struct item *it)
{
        char path[ZNODE_PATH_SIZE];

        if (it->in->resource_type == CONFIG_SCOPE_TOPIC)
                znode_path_topic_config(it->name, path);
        else
                znode_path_broker_config(it->wants_all ? ZNODE_DEFAULT_ENTITY : it->name, path);
        return zk_get(it->d->s->zk, it->d->s->control_loop, path, NULL, on_read, it);
}

/* --- beginning --- */

/* A broker knows its own file, not those of others. */
static int16_t check_resource(struct item *it, char error[TEXT_SIZE])
{
        const struct server *s = it->d->s;
        char self[16];

        (void)snprintf(self, sizeof(self), "%d", s->config->broker_id);
        switch (it->in->resource_type) {
        case CONFIG_SCOPE_TOPIC:
                if (it->name[0] && metadata_cache_partition_count(s->metadata, it->in->resource_name) > 0)
                        return KAFKA_NONE;
                (void)snprintf(error, TEXT_SIZE, "The topic '%.250s' does not exist.", it->name);
                return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        case CONFIG_SCOPE_BROKER:
                it->wants_all = true;
                if (it->name[0] == '\0' || strcmp(it->name, self) == 0)
                        return KAFKA_NONE;
                (void)snprintf(error, TEXT_SIZE,
                               "Unexpected broker id, expected %s or empty string, but received %.100s", self,
                               it->name);
                return KAFKA_INVALID_REQUEST;
        default:
                (void)snprintf(error, TEXT_SIZE,
                               "Unsupported resource type %d; it must be 2 (topic) or 4 (broker)",
                               it->in->resource_type);
                return KAFKA_INVALID_REQUEST;
        }
}

static void begin_item(struct item *it)
{
        const struct wire_str name = it->in->resource_name;
        char error[TEXT_SIZE] = "";
        int16_t code;

        it->name = arena_strndup(it->d->a, name.data ? name.data : "", (size_t)MAX(name.len, 0));
        *it->out = (struct describe_configs_response_result){.error_message = WIRE_NULL_STR,
                                                             .resource_type = it->in->resource_type,
                                                             .resource_name = name};
        if (!it->name) {
                item_fail(it, KAFKA_UNKNOWN_SERVER_ERROR, "out of memory");
                return;
        }
        code = it->d->n_items > MAX_RESOURCES ? KAFKA_INVALID_REQUEST : check_resource(it, error);
        if (code != KAFKA_NONE)
                item_fail(it, code, error[0] ? error : "too many resources in one request: at most 10000");
        else if (read_next(it) < 0)
                item_fail(it, KAFKA_UNKNOWN_SERVER_ERROR, "out of memory");
}

static void begin(void *userdata)
{
        struct describe *d = userdata;

        for (size_t i = 0; i < d->n_items; i++) {
                d->items[i].d = d;
                d->items[i].in = &d->req->resources.items[i];
                d->items[i].out = &d->res.results.items[i];
                begin_item(&d->items[i]);
        }
        close_one(d);
}

void server_describe_configs(const struct describe_configs_request *req, struct arena *a,
                             void (*fn)(const struct describe_configs_response *res, void *fn_userdata),
                             void *fn_userdata, void *userdata)
{
        struct describe *d = calloc(1, sizeof(*d));
        struct server *s = userdata;

        if (d) {
                d->s = s;
                d->req = req;
                d->a = a;
                d->fn = fn;
                d->userdata = fn_userdata;
                d->n_items = (size_t)MAX(req->resources.n, 0);
                d->open = d->n_items + 1;
                d->items = calloc(d->n_items + 1, sizeof(*d->items));
                d->res.results.items = arena_alloc(a, d->n_items + 1, sizeof(*d->res.results.items));
                d->res.results.n = (int32_t)d->n_items;
        }
        if (!d || !d->items || !d->res.results.items) {
                if (d)
                        free(d->items);
                free(d);
                fn(NULL, fn_userdata);
                return;
        }
        d->task = (struct loop_task){.fn = begin, .userdata = d};
        loop_post_task(s->control_loop, &d->task);
}
