/* States of the broker as a whole, and what other modules ask of the composition root. */
#include "server_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "ask_controller.h"
#include "base/slog.h"
#include "config_describe.h"

static const struct {
        const char *name;
        unsigned next; /* allowed next states, as bits */
} states[N_SERVER_STATES] = {
        [SERVER_STARTING] = {"starting", 1U << SERVER_RUNNING | 1U << SERVER_STOPPING},
        [SERVER_RUNNING] = {"running", 1U << SERVER_HANDING_OVER | 1U << SERVER_STOPPING},
        [SERVER_HANDING_OVER] = {"draining", 1U << SERVER_STOPPING},
        [SERVER_STOPPING] = {"stopping", 1U << SERVER_STOPPED},
        [SERVER_STOPPED] = {"stopped", 0},
};

static const char *state_name(enum server_state s)
{
        return states[s].name;
}

void server_set_state(struct server *s, enum server_state to)
{
        enum server_state from = s->state;

        if (from == to)
                return;
        if (!(states[from].next & 1U << to)) {
                slog_error("server-state-refused", "a state change that must not happen",
                           SL_STR("from", state_name(from)), SL_STR("to", state_name(to)));
                abort();
        }
        __atomic_store_n(&s->state, to, __ATOMIC_RELEASE);
        slog_info("server-state", "the broker's state changed", SL_STR("from", state_name(from)),
                  SL_STR("to", state_name(to)));
}

void server_status(struct server *s, const char *status)
{
        (void)s;
        (void)sd_notifyf(0, "STATUS=%s", status); /* without systemd there is nobody to tell */
}

void server_fail(struct server *s, const char *what, int r)
{
        slog_error("server-failed", what, SL_ERR(r));
        if (s->result == 0)
                s->result = r;
        if (s->state < SERVER_STOPPING)
                server_take_down(s);
}

int server_result(const struct server *s)
{
        return s->result;
}

/* --- for the admin listener (HTTP thread) --- */

struct sync_check {
        int32_t broker_id;
        bool out_of_sync;
};

static void check_partition(const struct metadata_partition *p, void *userdata)
{
        struct sync_check *c = userdata;

        if (ids_contain(p->replicas, p->n_replicas, c->broker_id) &&
            !ids_contain(p->isr, p->n_isr, c->broker_id))
                c->out_of_sync = true;
}

static void on_broker_status(struct admin_broker_status *ret, void *userdata)
{
        struct server *s = userdata;
        struct replica_counts n = {0};
        struct sync_check sync = {.broker_id = s->config->broker_id};
        struct metadata_broker self;

        replica_manager_get_counts(s->replicas, &n);
        metadata_cache_each(s->metadata, check_partition, &sync);
        *ret = (struct admin_broker_status){
                .state = state_name(__atomic_load_n(&s->state, __ATOMIC_ACQUIRE)),
                .epoch = atomic_load(&s->broker_epoch),
                .leaders = n.led_replicated,
                .leaders_rf1 = n.led - n.led_replicated,
                .replicas = n.partitions,
                .under_replicated = n.under_replicated,
                .offline = n.offline,
                /* Before the controller's first UpdateMetadata nothing is known, and unknown is not in sync.
                 */
                .in_sync = metadata_cache_broker(s->metadata, s->config->broker_id, &self) &&
                           !sync.out_of_sync && n.lagging == 0,
                .zookeeper_connected = zk_is_connected(s->zk),
                .lease_valid = zk_lease_valid(s->zk),
        };
}

/* --- for the replica manager --- */

struct isr_call {
        struct server *server;
        struct isr_batch *batch;
};

static void on_altered(int r, const void *response, struct arena *arena, void *userdata)
{
        cleanup_with(freep) struct isr_call *c = userdata;

        (void)arena;
        replica_manager_on_alter_partition(c->server->replicas, c->batch, r, response);
}

static int alter_partition(void *userdata, int16_t version, const struct alter_partition_request *req,
                           struct isr_batch *batch)
{
        cleanup_with(freep) struct isr_call *c = malloc(sizeof(*c));
        struct server *s = userdata;
        int r;

        if (!c)
                return -ENOMEM;
        *c = (struct isr_call){.server = s, .batch = batch};
        r = controller_link_request(s->link, wire_api_find(56), version, req, 10000, on_altered, c);
        if (r == 0)
                TAKE_PTR(c);
        return r;
}

static bool lease_valid(void *userdata)
{
        struct server *s = userdata;

        return zk_lease_valid(s->zk);
}

static void replica_offline(void *userdata)
{
        struct server *s = userdata;

        dir_report_wanted(s->dir_report);
}

static bool broker_endpoint(void *userdata, int32_t id, char host[METADATA_HOST_SIZE], uint16_t *ret_port)
{
        struct server *s = userdata;
        struct metadata_broker b;

        if (!metadata_cache_broker(s->metadata, id, &b))
                return false;
        (void)snprintf(host, METADATA_HOST_SIZE, "%s", b.host);
        *ret_port = (uint16_t)b.port;
        return true;
}

static void broker_state_change(void *userdata, const char *line)
{
        struct server *s = userdata;

        state_change_log_write(s->state_changes, "Broker", line);
}

/* --- for the controller --- */

static void controller_state_change(const char *line, void *userdata)
{
        struct server *s = userdata;

        state_change_log_write(s->state_changes, "Controller", line);
}

static void controller_changed(int32_t controller_id, void *userdata)
{
        struct server *s = userdata;

        if (controller_id >= 0)
                controller_link_on_change(s->link);
}

static int validate_topic_config(const char *name, const char *value, char error[256], void *userdata)
{
        struct topic_config c = {0};

        (void)userdata;
        return topic_config_set(&c, name, value, error);
}

static enum settings_scope settings_scope_of(enum config_scope scope)
{
        return scope == CONFIG_SCOPE_TOPIC ? SETTINGS_TOPIC : SETTINGS_BROKER;
}

static int check_setting(enum config_scope scope, const char *name, const char *value, char error[256],
                         void *userdata)
{
        (void)userdata;
        return settings_check(settings_scope_of(scope), name, value, error);
}

static bool setting(enum config_scope scope, size_t i, struct config_setting *ret, void *userdata)
{
        const struct server *s = userdata;
        const struct setting *row;

        if (i >= settings_count(settings_scope_of(scope)))
                return false;
        row = settings_at(settings_scope_of(scope), i);
        ret->name = row->name;
        ret->list = row->type == SETTING_LIST;
        ret->source = (int8_t)settings_default(row, s->config, ret->value, sizeof(ret->value));
        return true;
}

/* --- for the api --- */

static void auto_create(const struct create_topics_request *req, void *userdata)
{
        struct server *s = userdata;

        /* The client asks for the metadata again whatever becomes of this. */
        (void)!controller_link_request(s->link, wire_api_find(19), 7, req, 30000, NULL, NULL);
}

struct id_call {
        void (*fn)(int r, int64_t id, void *userdata);
        void *userdata;
};

static void on_producer_id(int r, int64_t id, void *userdata)
{
        cleanup_with(freep) struct id_call *c = userdata;

        c->fn(r, id, c->userdata);
}

static void new_producer_id(void (*fn)(int r, int64_t id, void *fn_userdata), void *fn_userdata,
                            void *userdata)
{
        struct server *s = userdata;
        struct id_call *c = malloc(sizeof(*c));
        int r = -ENOMEM;

        if (c) {
                *c = (struct id_call){.fn = fn, .userdata = fn_userdata};
                r = producer_ids_next(s->producer_ids, on_producer_id, c);
        }
        if (r < 0) {
                free(c);
                fn(r, -1, fn_userdata);
        }
}

struct ids_call {
        void (*fn)(int r, int64_t first, int32_t n, void *userdata);
        void *userdata;
};

static void on_producer_ids(int r, int64_t first, int32_t n, void *userdata)
{
        cleanup_with(freep) struct ids_call *c = userdata;

        c->fn(r, first, n, c->userdata);
}

static void new_producer_ids(void (*fn)(int r, int64_t first, int32_t n, void *fn_userdata),
                             void *fn_userdata, void *userdata)
{
        struct server *s = userdata;
        struct ids_call *c = malloc(sizeof(*c));
        int r = -ENOMEM;

        if (c) {
                *c = (struct ids_call){.fn = fn, .userdata = fn_userdata};
                r = producer_ids_take(s->producer_ids, on_producer_ids, c);
        }
        if (r < 0) {
                free(c);
                fn(r, -1, 0, fn_userdata);
        }
}

static int prepare_topics(const struct api_topic *topics, size_t n, void (*fn)(void *fn_userdata),
                          void *fn_userdata, void *userdata)
{
        struct server *s = userdata;

        return topic_configs_prepare(s->topic_configs, topics, n, fn, fn_userdata);
}

/* --- tables of the above, for startup.c --- */

void server_fill_replica_ops(struct server *s, struct replica_ops *ret)
{
        *ret = (struct replica_ops){
                .userdata = s,
                .alter_partition = alter_partition,
                .lease_valid = lease_valid,
                .replica_offline = replica_offline,
                .broker_endpoint = broker_endpoint,
                .state_change = broker_state_change,
        };
}

void server_fill_controller_ops(struct server *s, struct controller_ops *ret)
{
        *ret = (struct controller_ops){
                .on_state_change = controller_state_change,
                .on_controller_change = controller_changed,
                .validate_topic_config = validate_topic_config,
                .check_setting = check_setting,
                .setting = setting,
                .userdata = s,
        };
}

void server_fill_api_env(struct server *s, struct api_env *ret)
{
        *ret = (struct api_env){
                .control_loop = s->control_loop,
                .replicas = s->replicas,
                .metadata = s->metadata,
                .controller = s->controller,
                .auto_create_topics = s->config->auto_create_topics,
                .auto_create = auto_create,
                .prepare_topics = prepare_topics,
                .describe_configs = server_describe_configs,
                .ask_controller = server_ask_controller,
                .new_producer_id = new_producer_id,
                .new_producer_ids = new_producer_ids,
                .userdata = s,
        };
}

static const char *cluster_id(void *userdata)
{
        const struct server *s = userdata;

        return atomic_load(&s->known_cluster_id);
}

void server_fill_admin_env(struct server *s, struct admin_env *ret)
{
        *ret = (struct admin_env){
                .broker_id = s->config->broker_id,
                .cluster_id = cluster_id,
                .controller = s->controller,
                .token = s->admin_token,
                .broker_status = on_broker_status,
                .userdata = s,
        };
}

/* --- life --- */

static int on_watchdog(struct loop *l, void *userdata)
{
        (void)l;
        (void)userdata;
        (void)sd_notify(0, "WATCHDOG=1");
        return 0;
}

static int start_watchdog(struct server *s)
{
        uint64_t usec = 0;
        int r;

        if (sd_watchdog_enabled(0, &usec) <= 0)
                return 0;
        r = loop_add_timer(s->control_loop, on_watchdog, s, &s->watchdog_timer);
        if (r == 0)
                loop_timer_arm(s->watchdog_timer, 0, (int64_t)(usec / 3000));
        return r;
}

int server_new(struct loop *control_loop, const struct broker_config *c, struct server **ret)
{
        cleanup_with(server_freep) struct server *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->config = c;
        s->control_loop = control_loop;
        atomic_store(&s->broker_epoch, -1);
        atomic_store(&s->known_cluster_id, "");
        r = listener_parse(c->listeners, &s->listen_at);
        if (r == 0)
                r = listener_parse(c->advertised_listeners[0] ? c->advertised_listeners : c->listeners,
                                   &s->advertised);
        if (r == 0)
                r = start_watchdog(s);
        if (r == 0)
                r = server_init_take_down(s);
        if (r == 0)
                r = server_init_shutdown(s);
        if (r == 0)
                r = server_init_session(s);
        if (r == 0)
                r = server_start_loading(s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

struct server *server_free(struct server *s)
{
        if (!s)
                return NULL;
        server_take_down_now(s);
        s->work = blocking_free(s->work);
        (void)loop_timer_remove(s->watchdog_timer);
        (void)loop_timer_remove(s->connect_timer);
        (void)loop_timer_remove(s->retry_timer);
        (void)loop_timer_remove(s->reopen_timer);
        (void)loop_timer_remove(s->attempt_timer);
        (void)loop_timer_remove(s->handover_timer);
        (void)loop_timer_remove(s->deregister_timer);
        if (s->admin_token)
                explicit_bzero(s->admin_token, strlen(s->admin_token));
        free(s->admin_token);
        free(s->work_error);
        free(s);
        return NULL;
}
