/* What the cluster and this broker look like: /v1/cluster, /v1/partitions, /v1/broker, probes, metrics. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "admin/http.h"
#include "base/metrics.h"
#include "controller/controller.h"
#include "wire/error.h"

const struct http_route admin_routes[] = {
        {"PUT", "/v1/brokers/{id}/drain", true, admin_put_drain},
        {"GET", "/v1/brokers/{id}/drain", false, admin_get_drain},
        {"DELETE", "/v1/brokers/{id}/drain", true, admin_delete_drain},
        {"GET", "/v1/cluster", false, admin_get_cluster},
        {"GET", "/v1/partitions", false, admin_get_partitions},
        {"GET", "/v1/broker", false, admin_get_broker},
        {"GET", "/livez", false, admin_get_livez},
        {"GET", "/readyz", false, admin_get_readyz},
        {"GET", "/metrics", false, admin_get_metrics},
};
const size_t admin_n_routes = ARRAY_SIZE(admin_routes);

static json_t *ints(const int32_t *v, int32_t n)
{
        json_t *a = json_array();

        for (int32_t i = 0; i < n; i++)
                (void)json_array_append_new(a, json_integer(v[i]));
        return a;
}

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

static json_t *partition_json(const struct cluster_partition *p)
{
        json_t *o = json_pack("{s:s, s:i, s:i, s:i, s:i, s:b, s:b}", "topic", p->topic, "partition",
                              (int)p->partition, "leader", (int)p->leader, "leader_epoch",
                              (int)p->leader_epoch, "partition_epoch", (int)p->partition_epoch,
                              "under_replicated", (int)p->under_replicated, "offline", (int)p->offline);

        if (!o)
                return NULL;
        (void)json_object_set_new(o, "replicas", ints(p->replicas, p->n_replicas));
        (void)json_object_set_new(o, "isr", ints(p->isr, p->n_isr));
        return o;
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

static void on_partitions(int16_t error, struct cluster_view *v, void *userdata)
{
        cleanup_with(cluster_view_freep) struct cluster_view *view = v;
        struct http_request *r = userdata;
        json_t *o, *topics, *list;

        if (error != KAFKA_NONE || !view) {
                http_reply_to_controller(r);
                return;
        }
        o = view_json(r->admin, view);
        topics = json_array();
        list = json_array();
        for (size_t i = 0; i < view->n_topics; i++)
                (void)json_array_append_new(topics, topic_json(&view->topics[i]));
        for (size_t i = 0; i < view->n_partitions; i++)
                (void)json_array_append_new(list, partition_json(&view->partitions[i]));
        (void)json_object_set_new(o, "topic_list", topics);
        (void)json_object_set_new(o, "partition_list", list);
        http_reply_json(r, MHD_HTTP_OK, o);
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
