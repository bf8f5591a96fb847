/* What the cluster and this broker look like: /v1/cluster, /v1/partitions, /v1/broker, probes, metrics. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admin/http.h"
#include "base/metrics.h"
#include "controller/controller.h"
#include "wire/error.h"

#define LARGE_AT_ONCE 4 /* answers of some hundred bytes a partition that are made or sent */

const struct http_route admin_routes[] = {
        {"PUT", "/v1/brokers/{id}/drain", true, admin_put_drain},
        {"GET", "/v1/brokers/{id}/drain", false, admin_get_drain},
        {"DELETE", "/v1/brokers/{id}/drain", true, admin_delete_drain},
        {"GET", "/v1/brokers/{id}/check", false, admin_get_check},
        {"GET", "/v1/brokers/{id}", false, admin_get_broker_info},
        {"GET", "/v1/drains", false, admin_get_drains},
        {"GET", "/v1/cluster", false, admin_get_cluster},
        {"GET", "/v1/partitions", false, admin_get_partitions},
        {"GET", "/v1/broker", false, admin_get_broker},
        {"GET", "/livez", false, admin_get_livez},
        {"GET", "/readyz", false, admin_get_readyz},
        {"GET", "/metrics", false, admin_get_metrics},
};
const size_t admin_n_routes = ARRAY_SIZE(admin_routes);

static json_t *broker_json(const struct cluster_broker *b)
{
        char admin[300] = "";

        if (b->admin_host[0] != '\0')
                (void)snprintf(admin, sizeof(admin), strchr(b->admin_host, ':') ? "[%s]:%u" : "%s:%u",
                               b->admin_host, b->admin_port);
        return json_pack("{s:i, s:I, s:s, s:i, s:s, s:b, s:s, s:i, s:i}", "id", (int)b->id, "epoch",
                         (json_int_t)b->epoch, "host", b->host, "port", (int)b->port, "admin", admin,
                         "draining", (int)(b->drain != DRAIN_NONE), "drain_state", drain_state_name(b->drain),
                         "leaders", (int)b->leaders, "replicas", (int)b->replicas);
}

static json_t *topic_json(const struct cluster_topic *t)
{
        char id[UUID_TEXT_SIZE];

        uuid_format(&t->id, id);
        return json_pack("{s:s, s:s, s:i, s:i, s:b}", "name", t->name, "id", id, "partitions",
                         (int)t->n_partitions, "replication_factor", (int)t->replication_factor, "deleting",
                         (int)t->deleting);
}

static int put_ints(struct buf *out, const char *name, const int32_t *v, int32_t n)
{
        int r = buf_printf(out, ",\"%s\":[", name);

        for (int32_t i = 0; r == 0 && i < n; i++)
                r = buf_printf(out, i > 0 ? ",%d" : "%d", v[i]);
        return r < 0 ? r : buf_append_str(out, "]");
}

/* Written directly: a tree of a hundred thousand of these would take a hundred times their text. Names of
 * topics need no escapes. */
static int put_partition(struct buf *out, const struct cluster_partition *p)
{
        int r = buf_printf(out,
                           "{\"topic\":\"%s\",\"partition\":%d,\"leader\":%d,\"leader_epoch\":%d,"
                           "\"partition_epoch\":%d,\"under_replicated\":%s,\"offline\":%s",
                           p->topic, p->partition, p->leader, p->leader_epoch, p->partition_epoch,
                           p->under_replicated ? "true" : "false", p->offline ? "true" : "false");

        if (r == 0)
                r = put_ints(out, "replicas", p->replicas, p->n_replicas);
        if (r == 0)
                r = put_ints(out, "isr", p->isr, p->n_isr);
        return r < 0 ? r : buf_append_str(out, "}");
}

static json_t *view_json(const struct admin *a, const struct cluster_view *v)
{
        json_t *o = json_pack("{s:s, s:i, s:i, s:I, s:i, s:i, s:i}", "cluster_id",
                              a->env.cluster_id(a->env.userdata), "controller", (int)v->controller_id,
                              "controller_epoch", (int)v->controller_epoch, "topics", (json_int_t)v->n_topics,
                              "partitions", (int)v->n_partitions_total, "under_replicated",
                              (int)v->n_under_replicated, "offline", (int)v->n_offline);
        json_t *list = json_array();

        if (!o || !list) {
                json_decref(o);
                json_decref(list);
                return NULL;
        }
        for (size_t i = 0; i < v->n_brokers; i++)
                (void)json_array_append_new(list, broker_json(&v->brokers[i]));
        (void)json_object_set_new(o, "brokers", list);
        return o;
}

static void on_cluster(int16_t error, struct cluster_view *v, void *userdata)
{
        cleanup_with(cluster_view_freep) struct cluster_view *view = v;
        struct http_request *r = userdata;

        if (error != KAFKA_NONE || !view)
                http_reply_to_controller(r);
        else
                http_reply_json(r, MHD_HTTP_OK, view_json(r->admin, view));
}

static json_t *topics_json(const struct admin *a, const struct cluster_view *v)
{
        json_t *o = view_json(a, v), *topics = json_array();

        for (size_t i = 0; topics && i < v->n_topics; i++)
                (void)json_array_append_new(topics, topic_json(&v->topics[i]));
        if (o && json_object_set_new(o, "topic_list", topics) == 0)
                return o;
        json_decref(o);
        return NULL;
}

static int put_partitions(struct buf *out, const struct admin *a, const struct cluster_view *v)
{
        json_t *head = topics_json(a, v);
        cleanup_with(freep) char *text = head ? json_dumps(head, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
        int r;

        json_decref(head);
        if (!text)
                return -ENOMEM;
        r = buf_append(out, text, strlen(text) - 1); /* the closing brace comes later */
        if (r == 0)
                r = buf_append_str(out, ",\n  \"partition_list\": [\n");
        for (size_t i = 0; r == 0 && i < v->n_partitions; i++) {
                r = buf_append_str(out, i > 0 ? ",\n    " : "    ");
                if (r == 0)
                        r = put_partition(out, &v->partitions[i]);
        }
        return r < 0 ? r : buf_append_str(out, "\n  ]\n}\n");
}

static void render_partitions(struct http_request *r, const struct cluster_view *view)
{
        cleanup_with(buf_donep) struct buf text = {0};

        buf_init(&text, 0);
        if (put_partitions(&text, r->admin, view) < 0)
                http_reply_json(r, MHD_HTTP_INTERNAL_SERVER_ERROR, NULL);
        else
                http_reply_text(r, MHD_HTTP_OK, "application/json", &text);
}

static void on_partitions(int16_t error, struct cluster_view *view, void *userdata)
{
        struct http_request *r = userdata;

        if (error != KAFKA_NONE || !view) {
                (void)cluster_view_free(view);
                http_reply_to_controller(r);
                return;
        }
        http_reply_rendered(r, view, render_partitions);
}

void admin_get_cluster(struct http_request *r)
{
        http_wait_begin(r);
        controller_view(r->admin->env.controller, CLUSTER_SUMMARY, NULL, on_cluster, r);
}

void admin_get_partitions(struct http_request *r)
{
        const char *topic = MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, "topic");
        const char *filter = MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, "filter");
        enum cluster_view_scope scope = CLUSTER_PARTITIONS;

        if (filter && strcmp(filter, "under-replicated") == 0) {
                scope = CLUSTER_UNDER_REPLICATED;
        } else if (filter && strcmp(filter, "unavailable") == 0) {
                scope = CLUSTER_UNAVAILABLE;
        } else if (filter) {
                http_reply_error(r, MHD_HTTP_BAD_REQUEST, "bad_request",
                                 "filter is under-replicated or unavailable");
                return;
        }
        if (!topic && r->admin->n_large >= LARGE_AT_ONCE) {
                r->retry_after_s = 1;
                http_reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "busy",
                                 "others are being told of all partitions; ask again, or for one topic");
                return;
        }
        r->large = !topic;
        r->admin->n_large += r->large;
        http_wait_begin(r);
        controller_view(r->admin->env.controller, scope, topic, on_partitions, r);
}

void admin_get_broker(struct http_request *r)
{
        const struct admin_env *env = &r->admin->env;
        struct admin_broker_status s = {0};

        env->broker_status(&s, env->userdata);
        http_reply_json(r, MHD_HTTP_OK,
                        json_pack("{s:i, s:I, s:s, s:i, s:i, s:i, s:i, s:i, s:b, s:i, s:i, s:s, s:b}",
                                  "broker", (int)env->broker_id, "epoch", (json_int_t)s.epoch, "state",
                                  s.state, "leaders", (int)s.leaders, "leaders_rf1", (int)s.leaders_rf1,
                                  "replicas", (int)s.replicas, "under_replicated", (int)s.under_replicated,
                                  "offline", (int)s.offline, "in_sync", (int)s.in_sync, "controller",
                                  (int)controller_active_id(env->controller), "pid", (int)getpid(),
                                  "zookeeper", s.zookeeper_connected ? "connected" : "disconnected",
                                  "lease_valid", (int)s.lease_valid));
}

void admin_get_livez(struct http_request *r)
{
        http_reply_json(r, MHD_HTTP_OK, json_pack("{s:s}", "status", "alive"));
}

/* Ready: registered, not fenced, not draining, every replica in sync (L7). */
void admin_get_readyz(struct http_request *r)
{
        const struct admin_env *env = &r->admin->env;
        struct admin_broker_status s = {0};
        const char *why = NULL;

        env->broker_status(&s, env->userdata);
        if (strcmp(s.state, "running") != 0)
                why = s.state;
        else if (!s.lease_valid)
                why = "fenced: no confirmed ZooKeeper session";
        else if (s.epoch < 0)
                why = "not registered: the ZooKeeper session was lost";
        else if (!s.in_sync)
                why = "catching up: not every replica here is in sync";
        if (why)
                http_reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "not_ready", why);
        else
                http_reply_json(r, MHD_HTTP_OK, json_pack("{s:s}", "status", "ready"));
}

void admin_get_metrics(struct http_request *r)
{
        struct buf b;

        buf_init(&b, 0);
        if (metrics_print(&b) < 0) {
                buf_done(&b);
                http_reply_error(r, MHD_HTTP_INTERNAL_SERVER_ERROR, "out_of_memory",
                                 "not enough memory to print the metrics");
                return;
        }
        http_reply_text(r, MHD_HTTP_OK, "text/plain; version=0.0.4", &b);
}
