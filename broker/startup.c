/* Bring the modules up, bottom first: logs, replicas, controller, listeners, ZooKeeper. */
#include "server_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/slog.h"

#define TOKEN_MAX_BYTES 4096

static void log_defaults(const struct broker_config *c, struct log_config *ret)
{
        log_config_default(ret);
        ret->segment_bytes = c->log_segment_bytes;
        ret->segment_ms = c->log_roll_ms;
        ret->index_interval_bytes = c->log_index_interval_bytes;
        ret->retention_ms = c->log_retention_ms;
        ret->retention_bytes = c->log_retention_bytes;
        ret->max_message_bytes = c->message_max_bytes;
        ret->producer_id_expiration_ms = c->producer_id_expiration_ms;
}

static int say(char **ret_error, int r, const char *what, const char *about)
{
        if (ret_error && !*ret_error && asprintf(ret_error, "%s %s: %s", what, about, strerror(-r)) < 0)
                *ret_error = NULL;
        return r;
}

static int open_state_change_log(struct server *s, char **ret_error)
{
        const char *configured = s->config->state_change_log;
        cleanup_with(freep) char *path = NULL;
        int r;

        if (configured[0] != '\0')
                path = strdup(configured);
        else if (asprintf(&path, "%.*s/state-change.log", (int)strcspn(s->config->log_dirs, ","),
                          s->config->log_dirs) < 0)
                path = NULL;
        if (!path)
                return -ENOMEM;
        r = state_change_log_open(path, s->config->broker_id, &s->state_changes);
        return r < 0 ? say(ret_error, r, "cannot open the state-change log", path) : 0;
}

static int load_logs(void *userdata)
{
        struct server *s = userdata;
        const struct broker_config *c = s->config;
        struct log_manager_options o = {
                .log_dirs = c->log_dirs,
                .broker_id = c->broker_id,
                .recovery_threads = c->num_recovery_threads,
        };
        int r;

        log_defaults(c, &o.defaults);
        r = log_manager_open(&o, NULL, &s->logs, &s->work_error);
        return r < 0 ? say(&s->work_error, r, "cannot open the log directories", c->log_dirs) : 0;
}

static int start_replicas(struct server *s)
{
        const struct broker_config *c = s->config;
        struct replica_options o;
        struct replica_ops ops;
        int r;

        r = metadata_cache_new("", "PLAINTEXT", &s->metadata);
        if (r < 0)
                return r;
        replica_options_default(&o);
        o.broker_id = c->broker_id;
        o.min_insync_replicas = c->min_insync_replicas;
        o.replica_lag_time_max_ms = c->replica_lag_time_max_ms;
        o.replica_fetch_wait_max_ms = (int32_t)c->replica_fetch_wait_max_ms;
        o.replica_fetch_min_bytes = c->replica_fetch_min_bytes;
        o.replica_fetch_max_bytes = c->replica_fetch_max_bytes;
        o.replica_fetch_backoff_ms = c->replica_fetch_backoff_ms;
        o.replica_high_watermark_checkpoint_interval_ms = c->replica_hw_checkpoint_interval_ms;
        o.log_retention_check_interval_ms = c->log_retention_check_interval_ms;
        log_defaults(c, &o.log_defaults);
        server_fill_replica_ops(s, &ops);
        return replica_manager_new(&o, &ops, s->logs, s->metadata, &s->replicas);
}

static int new_zookeeper(struct server *s)
{
        struct zk_options o = {
                .connect = s->config->zookeeper_connect,
                .session_timeout_ms = s->config->zookeeper_session_timeout_ms,
                .event_loop = s->control_loop,
                .on_event = server_on_zk_event,
                .userdata = s,
        };

        zk_metrics_register();
        return zk_new(&o, &s->zk);
}

static int start_controller(struct server *s)
{
        const struct broker_config *c = s->config;
        struct controller_options o = {
                .broker_id = c->broker_id,
                .zk = s->zk,
                .inter_broker_listener = "PLAINTEXT",
                .default_num_partitions = c->num_partitions,
                .default_replication_factor = (int16_t)c->default_replication_factor,
                .default_min_insync_replicas = c->min_insync_replicas,
                .unclean_leader_election = c->unclean_leader_election,
                .auto_leader_rebalance = c->auto_leader_rebalance,
                .no_leadership_return = !c->leadership_return,
                .leader_imbalance_check_ms = c->leader_imbalance_check_s * 1000,
                .leader_imbalance_percentage = c->leader_imbalance_percentage,
                .delete_topic_disabled = !c->delete_topic_enable,
                .slot_lease_ms = c->drain_slot_lease_ms,
        };
        struct controller_ops ops;
        int r;

        server_fill_controller_ops(s, &ops);
        r = controller_new(&o, &ops, &s->controller);
        if (r == 0)
                r = controller_start(s->controller);
        return r;
}

static void on_topic_config(const char *topic, const struct topic_config *c, void *userdata)
{
        const struct replica_topic_config config = {
                .min_isr = c->min_insync_replicas,
                .log = &c->log,
                .leader_throttled = c->leader_throttled,
                .follower_throttled = c->follower_throttled,
        };
        struct server *s = userdata;

        if (replica_manager_set_topic_config(s->replicas, topic, &config) < 0)
                slog_warning("topic-config-lost",
                             "not enough memory for a topic's configuration; the defaults hold",
                             SL_STR("topic", topic));
}

static void on_broker_change(const char *name, void *userdata)
{
        struct server *s = userdata;

        broker_configs_changed(s->broker_configs, name);
}

static void on_broker_config(const struct broker_dynamic *c, void *userdata)
{
        struct server *s = userdata;
        bool same = memcmp(c, &s->dynamic, sizeof(*c)) == 0;

        if (same)
                return;
        s->dynamic = *c;
        slog_notice("broker-config-changed", "this broker's dynamic settings changed",
                    SL_INT("leader_throttle", c->leader_throttle),
                    SL_INT("follower_throttle", c->follower_throttle));
        replica_manager_set_throttles(s->replicas, c->leader_throttle, c->follower_throttle);
}

static int start_configs(struct server *s)
{
        struct topic_configs_options o = {
                .zk = s->zk,
                .loop = s->control_loop,
                .on_config = on_topic_config,
                .on_broker_change = on_broker_change,
                .userdata = s,
        };
        const struct broker_configs_options b = {
                .zk = s->zk,
                .loop = s->control_loop,
                .broker_id = s->config->broker_id,
                .on_config = on_broker_config,
                .userdata = s,
        };
        int r;

        s->dynamic = (struct broker_dynamic)BROKER_DYNAMIC_DEFAULTS;
        log_defaults(s->config, &o.defaults);
        r = topic_configs_new(&o, &s->topic_configs);
        return r < 0 ? r : broker_configs_new(&b, &s->broker_configs);
}

static int start_helpers(struct server *s)
{
        int r;

        r = start_configs(s);
        if (r == 0)
                r = producer_ids_new(s->zk, s->control_loop, s->config->broker_id, &s->producer_ids);
        if (r == 0)
                r = dir_report_new(s->zk, s->control_loop, s->config->broker_id, &s->dir_report);
        if (r == 0)
                r = controller_link_new(s->control_loop, s->controller, &s->link);
        return r;
}

static int listen_for_clients(struct server *s, char **ret_error)
{
        const struct broker_config *c = s->config;
        struct net_limits limits;
        struct api_env env;
        struct net_ops ops;
        int r;

        server_fill_api_env(s, &env);
        r = api_new(&env, &s->api);
        if (r < 0)
                return r;
        net_limits_default(&limits);
        limits.max_frame_bytes = (size_t)c->socket_request_max_bytes;
        limits.max_connections = c->max_connections;
        limits.max_queued_request_bytes = (size_t)c->queued_max_request_bytes;
        limits.max_queued_response_bytes = (size_t)c->queued_max_response_bytes;
        limits.max_inflight = c->max_inflight_per_connection;
        limits.idle_timeout_ms = c->connections_max_idle_ms;
        limits.frame_timeout_ms = c->socket_frame_timeout_ms;
        ops = (struct net_ops){.on_request = api_on_request, .userdata = s->api};
        r = loop_new("net", &s->net_loop);
        if (r == 0)
                r = net_server_new(s->net_loop, s->listen_at.host, s->listen_at.port, &limits, &ops, &s->net);
        if (r < 0)
                return say(ret_error, r, "cannot listen on", c->listeners);
        if (s->advertised.port == 0)
                s->advertised.port = net_server_port(s->net);
        r = loop_thread_start(s->net_loop);
        s->net_running = r == 0;
        return r;
}

static int read_token(struct server *s, char **ret_error)
{
        cleanup_with(buf_donep) struct buf b = {0};
        const char *path = s->config->admin_token_file, *text;
        int r;

        if (path[0] == '\0')
                return 0;
        buf_init(&b, 0);
        r = fs_read_file(path, TOKEN_MAX_BYTES, &b);
        if (r < 0)
                return say(ret_error, r, "cannot read admin.token.file", path);
        text = buf_cstr(&b);
        s->admin_token = text ? strndup(text, strcspn(text, "\r\n")) : NULL;
        if (!s->admin_token)
                return -ENOMEM;
        return s->admin_token[0] ? 0 : say(ret_error, -EINVAL, "there is no token in admin.token.file", path);
}

/* A client that any other broker redirects here would be sent to itself, and drains of the whole cluster fail
 * while this broker is the controller. */
static void warn_of_loopback(struct server *s, const struct listener *told)
{
        if (listener_is_loopback(told) && !listener_is_loopback(&s->advertised))
                slog_warning("admin-not-reachable",
                             "other hosts cannot reach this broker's admin listener: set admin.listener or "
                             "admin.advertised to an address of this host",
                             SL_STR("admin", s->admin_endpoint));
}

static int listen_for_admin(struct server *s, char **ret_error)
{
        struct listener at, told;
        struct admin_env env;
        int r;

        broker_config_admin(s->config, &at, &told);
        r = read_token(s, ret_error);
        if (r < 0)
                return r;
        server_fill_admin_env(s, &env);
        r = admin_new(&env, at.host, at.port, &s->admin);
        if (r < 0)
                return say(ret_error, r, "cannot listen on admin.listener", s->config->admin_listener);
        (void)snprintf(s->admin_endpoint, sizeof(s->admin_endpoint),
                       strchr(told.host, ':') ? "http://[%s]:%u" : "http://%s:%u", told.host,
                       told.port ? told.port : admin_port(s->admin));
        warn_of_loopback(s, &told);
        return 0;
}

/* The listeners are up before this broker registers: the controller's first requests follow at once. */
static int start_modules(struct server *s, char **ret_error)
{
        int r;

        r = open_state_change_log(s, ret_error);
        if (r < 0)
                return r;
        r = new_zookeeper(s); /* before the replicas: their threads ask for its lease from the first moment */
        if (r < 0)
                return say(ret_error, r, "cannot start with zookeeper.connect", s->config->zookeeper_connect);
        r = start_replicas(s);
        if (r == 0)
                r = start_controller(s);
        if (r == 0)
                r = start_helpers(s);
        if (r == 0)
                r = listen_for_clients(s, ret_error);
        if (r == 0)
                r = listen_for_admin(s, ret_error);
        return r < 0 ? say(ret_error, r, "cannot start", "the broker's modules") : 0;
}

static void on_loaded(int r, void *userdata)
{
        struct server *s = userdata;
        cleanup_with(freep) char *error = TAKE_PTR(s->work_error);

        s->loading = false;
        if (s->state >= SERVER_STOPPING)
                return;
        if (r == 0)
                r = start_modules(s, &error);
        if (r < 0)
                server_fail(s, error ? error : "the broker could not start", r);
        else
                server_connect(s);
}

int server_start_loading(struct server *s)
{
        const struct blocking_work work = {
                .status = "Loading logs", .run = load_logs, .done = on_loaded, .userdata = s};
        int r;

        r = blocking_start(s->control_loop, &work, &s->work);
        s->loading = r == 0;
        return r;
}
