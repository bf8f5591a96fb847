#include "cli/config_change.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/describe_configs.h"
#include "wire/error.h"
#include "wire/incremental_alter_configs.h"

#define DESCRIBE_CONFIGS  32
#define DESCRIBE_MAX      4
#define INCREMENTAL_ALTER 44
#define INCREMENTAL_MAX   1
#define OP_SET            0
#define OP_DELETE         1
#define SOURCE_TOPIC      1
#define AT_ONCE           1000 /* resources a request */
#define MAX_TRIES         10   /* against somebody else who writes the same znode */

/* --- over Kafka's protocol --- */

static bool alter_moved(const void *response)
{
        const struct incremental_alter_configs_response *res = response;

        for (int32_t i = 0; i < res->responses.n; i++)
                if (res->responses.items[i].error_code == KAFKA_NOT_CONTROLLER)
                        return true;
        return false;
}

static int fill_edit(struct cluster *c, const struct config_edit *e,
                     struct incremental_alter_configs_request_resource *to)
{
        to->resource_type = (int8_t)e->entity;
        to->resource_name = wire_str(e->name);
        to->configs.n = (int32_t)e->n;
        to->configs.items = arena_alloc(&c->arena, e->n + 1, sizeof(*to->configs.items));
        if (!to->configs.items)
                return -ENOMEM;
        for (size_t i = 0; i < e->n; i++)
                to->configs.items[i] = (struct incremental_alter_configs_request_config){
                        .name = wire_str(e->settings[i].key),
                        .config_operation = e->settings[i].value ? OP_SET : OP_DELETE,
                        .value = wire_str(e->settings[i].value)};
        return 0;
}

static int refused(struct cluster *c, const struct incremental_alter_configs_response_response *r)
{
        (void)snprintf(c->error, sizeof(c->error), "the configuration of %s %.*s was not changed: %s%s%.*s",
                       r->resource_type == CONFIG_ENTITY_TOPIC ? "topic" : "broker",
                       MIN(MAX(r->resource_name.len, 0), 250), r->resource_name.data,
                       kafka_error_name(r->error_code), r->error_message.len > 0 ? ": " : "",
                       MIN(MAX(r->error_message.len, 0), 200),
                       r->error_message.len > 0 ? r->error_message.data : "");
        return -EPROTO;
}

/* A Kafka broker that works with ZooKeeper takes the settings of no broker but itself. */
static int ask_itself(struct cluster *c, const struct incremental_alter_configs_request_resource *resource)
{
        const struct wire_api *api = wire_api_find(INCREMENTAL_ALTER);
        struct incremental_alter_configs_request req;
        struct incremental_alter_configs_response *res;
        struct metadata_response *m;
        char name[16], host[256];
        void *response;
        int r;

        r = kafka_admin_metadata(&c->kafka, "", &m);
        if (r < 0)
                return r;
        for (int32_t i = 0; i < m->brokers.n; i++) {
                const struct metadata_response_broker *b = &m->brokers.items[i];

                (void)snprintf(name, sizeof(name), "%d", b->node_id);
                if (!wire_str_equal(resource->resource_name, name))
                        continue;
                (void)snprintf(host, sizeof(host), "%.*s", (int)b->host.len, b->host.data);
                wire_init(api->request, &req);
                req.resources.items = (struct incremental_alter_configs_request_resource *)resource;
                req.resources.n = 1;
                r = kafka_admin_ask_at(&c->kafka, host, (uint16_t)b->port, api, INCREMENTAL_MAX, &req,
                                       &response);
                if (r < 0)
                        return r;
                res = response;
                return res->responses.n == 1 && res->responses.items[0].error_code == KAFKA_NONE ? 0
                                                                                                 : -EPROTO;
        }
        return -EPROTO;
}

static int take_answers(struct cluster *c, const struct incremental_alter_configs_request *req,
                        const struct incremental_alter_configs_response *res)
{
        if (res->responses.n != req->resources.n)
                return -EBADMSG;
        for (int32_t i = 0; i < res->responses.n; i++) {
                const struct incremental_alter_configs_response_response *r = &res->responses.items[i];
                bool other =
                        r->error_code == KAFKA_INVALID_REQUEST && r->resource_type == CONFIG_ENTITY_BROKER;

                if (r->error_code == KAFKA_NONE || (other && ask_itself(c, &req->resources.items[i]) == 0))
                        continue;
                return refused(c, r);
        }
        return 0;
}

static int change_by_kafka(struct cluster *c, const struct config_edit *edits, size_t n)
{
        const struct wire_api *api = wire_api_find(INCREMENTAL_ALTER);
        struct incremental_alter_configs_request req;
        void *response;
        int r = 0;

        wire_init(api->request, &req);
        req.resources.n = (int32_t)n;
        req.resources.items = arena_alloc(&c->arena, n + 1, sizeof(*req.resources.items));
        if (!req.resources.items)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < n; i++)
                r = fill_edit(c, &edits[i], &req.resources.items[i]);
        if (r == 0)
                r = kafka_admin_ask_controller(&c->kafka, api, INCREMENTAL_MAX, &req, alter_moved, &response);
        return r < 0 ? r : take_answers(c, &req, response);
}

/* --- in ZooKeeper --- */

static void znode_path_of(enum config_entity entity, const char *name, char out[ZNODE_PATH_SIZE])
{
        if (entity == CONFIG_ENTITY_TOPIC)
                znode_path_topic_config(name, out);
        else
                znode_path_broker_config(name, out);
}

/* The entries of @out are borrowed. false: nothing changes. */
static bool merge(const struct znode_config *now, const struct config_edit *e, struct znode_config *out)
{
        bool changed = false;

        for (size_t i = 0; i < now->n; i++) {
                bool edited = false;

                for (size_t k = 0; k < e->n; k++)
                        edited = edited || strcmp(e->settings[k].key, now->entries[i].key) == 0;
                if (!edited)
                        out->entries[out->n++] = now->entries[i];
        }
        for (size_t k = 0; k < e->n; k++) {
                const char *old = znode_config_get(now, e->settings[k].key), *value = e->settings[k].value;

                if (value)
                        out->entries[out->n++] = (struct znode_config_entry){
                                .key = (char *)e->settings[k].key, .value = (char *)value};
                changed = changed || !old != !value || (old && strcmp(old, value) != 0);
        }
        return changed;
}

static int write_znode(struct cluster *c, const struct config_edit *e, const char *path,
                       const struct znode_config *config, int32_t version)
{
        cleanup_with(buf_donep) struct buf data = {0}, change = {0};
        char entity[ZNODE_PATH_SIZE];
        struct zk_op ops[] = {
                {.type = ZK_OP_SET, .path = path, .version = version},
                {.type = ZK_OP_CREATE_SEQUENTIAL, .path = ZNODE_CONFIG_CHANGE_PREFIX},
        };
        int r;

        (void)snprintf(entity, sizeof(entity), "%s/%s",
                       e->entity == CONFIG_ENTITY_TOPIC ? "topics" : "brokers", e->name);
        r = znode_config_encode(config, &data);
        if (r >= 0)
                r = znode_config_change_encode(entity, &change);
        if (r < 0)
                return r;
        ops[0].data = buf_cstr(&data);
        ops[1].data = buf_cstr(&change);
        return ops[0].data && ops[1].data ? zk_admin_multi(c->zk, ops, ARRAY_SIZE(ops)) : -ENOMEM;
}

static int make_if_missing(struct cluster *c, const char *path, const char *data)
{
        int r = zk_admin_create(c->zk, path, data);

        return r == -EEXIST ? 0 : r;
}

static int malformed(struct cluster *c, const char *path)
{
        (void)snprintf(c->error, sizeof(c->error), "%.300s in ZooKeeper is malformed", path);
        return -EBADMSG;
}

/* 1: to be tried again. */
static int change_znode(struct cluster *c, const struct config_edit *e, const char *path)
{
        struct znode_config now = {0}, to = {0};
        struct zk_value value;
        int r;

        r = zk_admin_get(c->zk, path, &c->arena, &value);
        if (r == -ENOENT) {
                r = make_if_missing(c, path, "{\"version\":1,\"config\":{}}");
                return r < 0 ? r : 1;
        }
        if (r < 0)
                return r;
        if (value.len > 0 && znode_config_decode(value.data, value.len, &now) < 0)
                return malformed(c, path);
        to.entries = arena_alloc(&c->arena, now.n + e->n + 1, sizeof(*to.entries));
        r = to.entries ? 0 : -ENOMEM;
        if (r == 0 && merge(&now, e, &to))
                r = write_znode(c, e, path, &to, value.version);
        znode_config_done(&now);
        return r == -ESTALE ? 1 : r;
}

static int change_in_zookeeper(struct cluster *c, const struct config_edit *e)
{
        char path[ZNODE_PATH_SIZE];
        int r = 1;

        znode_path_of(e->entity, e->name, path);
        for (int i = 0; r == 1 && i < MAX_TRIES; i++)
                r = change_znode(c, e, path);
        return r == 1 ? -ESTALE : r;
}

int config_change(struct cluster *c, const struct config_edit *edits, size_t n)
{
        int r = 0;

        if (c->zk && n > 0)
                r = make_if_missing(c, ZNODE_CONFIG_CHANGES, NULL);
        for (size_t i = 0; c->zk && r == 0 && i < n; i++)
                r = change_in_zookeeper(c, &edits[i]);
        for (size_t i = 0; !c->zk && r == 0 && i < n; i += AT_ONCE)
                r = change_by_kafka(c, &edits[i], MIN(n - i, (size_t)AT_ONCE));
        return r;
}

/* --- what is set --- */

static bool sets_something(const struct describe_configs_response *res)
{
        for (int32_t i = 0; i < res->results.n; i++)
                for (int32_t k = 0; k < res->results.items[i].configs.n; k++) {
                        const struct describe_configs_response_config *s =
                                &res->results.items[i].configs.items[k];

                        if (s->config_source == SOURCE_TOPIC && s->value.len > 0)
                                return true;
                }
        return false;
}

static int set_by_kafka(struct cluster *c, const char *const *topics, size_t n, const char *const keys[2],
                        bool *ret)
{
        struct wire_str names[2] = {wire_str(keys[0]), wire_str(keys[1])};
        const struct wire_api *api = wire_api_find(DESCRIBE_CONFIGS);
        struct describe_configs_request req;
        void *response;
        int r;

        wire_init(api->request, &req);
        req.resources.n = (int32_t)n;
        req.resources.items = arena_alloc(&c->arena, n + 1, sizeof(*req.resources.items));
        if (!req.resources.items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                req.resources.items[i] =
                        (struct describe_configs_request_resource){.resource_type = CONFIG_ENTITY_TOPIC,
                                                                   .resource_name = wire_str(topics[i]),
                                                                   .configuration_keys = {names, 2}};
        r = kafka_admin_ask_controller(&c->kafka, api, DESCRIBE_MAX, &req, NULL, &response);
        if (r == 0)
                *ret = *ret || sets_something(response);
        return r == -EPROTONOSUPPORT ? 0 : r;
}

static int set_in_zookeeper(struct cluster *c, const char *topic, const char *const keys[2], bool *ret)
{
        struct znode_config now = {0};
        char path[ZNODE_PATH_SIZE];
        struct zk_value value;
        int r;

        znode_path_topic_config(topic, path);
        r = zk_admin_get(c->zk, path, &c->arena, &value);
        if (r == -ENOENT || (r == 0 && value.len == 0))
                return 0;
        if (r == 0 && znode_config_decode(value.data, value.len, &now) < 0)
                return malformed(c, path);
        for (int i = 0; r == 0 && i < 2; i++) {
                const char *v = znode_config_get(&now, keys[i]);

                *ret = *ret || (v && v[0]);
        }
        znode_config_done(&now);
        return r;
}

int config_topics_set(struct cluster *c, const char *const *topics, size_t n, const char *const keys[2],
                      bool *ret)
{
        int r = 0;

        *ret = false;
        for (size_t i = 0; c->zk && r == 0 && i < n; i++)
                r = set_in_zookeeper(c, topics[i], keys, ret);
        for (size_t i = 0; !c->zk && r == 0 && i < n; i += AT_ONCE)
                r = set_by_kafka(c, &topics[i], MIN(n - i, (size_t)AT_ONCE), keys, ret);
        return r;
}
