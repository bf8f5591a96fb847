/* The broker and its ZooKeeper session: connect, check the cluster id, register, and again after an expiry.
 *
 * A new session is a new broker epoch. When a session is lost everything that was led under it is given up
 * before a new one is opened, and is led again only when LeaderAndIsr says so (zk-fencing §2.5 rule 4): the
 * controller sees the new epoch as a bounce and elects anew. */
#include "server_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/slog.h"

#define RETRY_MS      500
#define REOPEN_MIN_MS INT64_C(200)
#define REOPEN_MAX_MS INT64_C(10000)

static int on_connect_timeout(struct loop *l, void *userdata)
{
        struct server *s = userdata;
        char what[512];

        (void)l;
        (void)snprintf(what, sizeof(what),
                       "ZooKeeper at %s did not answer within zookeeper.connection.timeout.ms; is it "
                       "running, and is "
                       "zookeeper.connect right?",
                       s->config->zookeeper_connect);
        server_fail(s, what, -ETIMEDOUT);
        return 0;
}

static void begin_registration(struct server *s);
static int adopt_cluster_id(struct server *s, const char *id);

static int on_retry(struct loop *l, void *userdata)
{
        struct server *s = userdata;

        (void)l;
        if (s->state < SERVER_STOPPING && zk_is_connected(s->zk))
                begin_registration(s);
        return 0;
}

static void on_registered(const struct zk_registration_result *res, void *userdata)
{
        struct server *s = userdata;

        s->registering = false;
        if (s->state >= SERVER_STOPPING || res->r == -ECANCELED || res->r == -EOWNERDEAD)
                return; /* an expiry brings its own event */
        if (res->r == -EEXIST || res->r == -EBADMSG) {
                server_fail(s, res->error ? res->error : "registration was refused", res->r);
                return;
        }
        if (res->r < 0) {
                slog_warning("registration-retry", "the broker could not register; trying again",
                             SL_STR("why", res->error ? res->error : ""), SL_ERR(res->r));
                loop_timer_arm(s->retry_timer, RETRY_MS, 0);
                return;
        }
        if (adopt_cluster_id(s, res->cluster_id) < 0)
                return;
        s->reopen_delay_ms = 0;
        atomic_store(&s->broker_epoch, res->broker_epoch);
        replica_manager_set_broker_epoch(s->replicas, res->broker_epoch);
        api_control_resume(s->api); /* requests for an older epoch are now told from those for this one */
        topic_configs_on_session(s->topic_configs);
        controller_on_registered(s->controller, res->broker_epoch);
        slog_info("broker-registered", "the broker is registered", SL_INT("broker", s->config->broker_id),
                  SL_INT("broker_epoch", res->broker_epoch), SL_INT("session", res->session_id));
        if (s->state != SERVER_STARTING)
                return;
        loop_timer_disarm(s->connect_timer);
        server_set_state(s, SERVER_RUNNING);
        server_status(s, "Serving");
        (void)sd_notify(0, "READY=1");
}

static void register_now(struct server *s)
{
        struct znode_endpoint endpoint = {
                .listener = (char *)"PLAINTEXT",
                .protocol = (char *)"PLAINTEXT",
                .host = s->advertised.host,
                .port = s->advertised.port,
        };
        struct znode_broker self = {
                .endpoints = &endpoint,
                .n_endpoints = 1,
                .admin_endpoint = s->admin_endpoint,
                .timestamp_ms = clock_real_ms(),
        };
        int r;

        r = zk_register_broker(s->zk, s->control_loop, s->config->broker_id, &self, on_registered, s);
        if (r < 0) {
                s->registering = false;
                loop_timer_arm(s->retry_timer, RETRY_MS, 0);
        }
}

/* @id "": ZooKeeper knows no cluster yet. The logs of one cluster must not be offered to another. */
static bool cluster_id_fits(struct server *s, const char *id)
{
        const char *ours = log_manager_cluster_id(s->logs);
        char what[600];

        if (ours[0] == '\0' || strcmp(ours, id) == 0)
                return true;
        (void)snprintf(what, sizeof(what),
                       "the log directories belong to cluster %s, but ZooKeeper at %s %s%s: fix "
                       "zookeeper.connect, or "
                       "give this broker empty log.dirs",
                       ours, s->config->zookeeper_connect, id[0] ? "is cluster " : "knows no cluster yet",
                       id);
        server_fail(s, what, -EINVAL);
        return false;
}

static int adopt_cluster_id(struct server *s, const char *id)
{
        int r = 0;

        if (!cluster_id_fits(s, id))
                return -EINVAL;
        if (s->cluster_id[0] == '\0') { /* later ones are the same: the log directories hold us to it */
                (void)snprintf(s->cluster_id, sizeof(s->cluster_id), "%s", id);
                atomic_store(&s->known_cluster_id, s->cluster_id);
        }
        metadata_cache_set_cluster_id(s->metadata, id);
        if (log_manager_cluster_id(s->logs)[0] == '\0')
                r = log_manager_set_cluster_id(s->logs, id);
        if (r < 0)
                server_fail(s, "the cluster id could not be written to meta.properties", r);
        return r;
}

static void on_cluster_id(const struct zk_result *res, void *userdata)
{
        char id[ZNODE_SMALL_SIZE] = "";
        struct server *s = userdata;

        s->registering = false;
        if (s->state >= SERVER_STOPPING || res->r == -ECANCELED || res->r == -EOWNERDEAD)
                return;
        if (res->r < 0 && res->r != -ENOENT) {
                loop_timer_arm(s->retry_timer, RETRY_MS, 0);
                return;
        }
        if (res->r == 0 && znode_cluster_id_decode(res->data, res->data_len, id) < 0) {
                server_fail(s, "/cluster/id in ZooKeeper is not readable", -EBADMSG);
                return;
        }
        if (!cluster_id_fits(s, id))
                return;
        s->registering = true;
        register_now(s);
}

static void begin_registration(struct server *s)
{
        if (s->registering || atomic_load(&s->broker_epoch) >= 0)
                return;
        s->registering = true;
        if (zk_get(s->zk, s->control_loop, ZNODE_CLUSTER_ID, NULL, on_cluster_id, s) < 0) {
                s->registering = false;
                loop_timer_arm(s->retry_timer, RETRY_MS, 0);
        }
}

/* --- a lost session --- */

static int on_reopen(struct loop *l, void *userdata)
{
        struct server *s = userdata;

        (void)l;
        if (zk_reopen(s->zk) < 0)
                server_fail(s, "a new ZooKeeper session could not be started", -ENOMEM);
        return 0;
}

/* Soon the first time, for the broker leads nothing until it is back; then with decorrelated jitter, for
 * sessions of all brokers are lost together and one that is lost again at once must not make a loop of it
 * (R81, R82). */
static void reopen_later(struct server *s)
{
        int64_t last = MAX(s->reopen_delay_ms, REOPEN_MIN_MS),
                span = MIN(last * 3, REOPEN_MAX_MS) - REOPEN_MIN_MS;
        uint32_t random = 0;

        (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); /* it only spreads them */
        if (s->reopen_delay_ms == 0)
                s->reopen_delay_ms = 1 + random % REOPEN_MIN_MS;
        else
                s->reopen_delay_ms = REOPEN_MIN_MS + (int64_t)((uint64_t)random * (uint64_t)(span + 1) >> 32);
        loop_timer_arm(s->reopen_timer, s->reopen_delay_ms, 0);
}

static void on_session_lost(struct server *s)
{
        int32_t n;

        atomic_store(&s->broker_epoch, -1);
        s->registering = false;
        loop_timer_disarm(s->retry_timer);
        /* What a controller sent to the broker of the lost session, and we have not done yet, must not bring
         * back the leadership that is given up here: it waits until the new epoch refuses it (D2). */
        api_control_pause(s->api);
        controller_on_session(s->controller, ZK_EXPIRED);
        n = replica_manager_step_down(s->replicas, "the ZooKeeper session expired");
        slog_warning(
                "session-expired",
                "the ZooKeeper session expired; leadership is given up until the controller grants it anew",
                SL_INT("partitions", n));
        if (s->state == SERVER_HANDING_OVER)
                server_on_handover_session_lost(s);
        else
                reopen_later(s);
}

void server_on_zk_event(enum zk_event e, void *userdata)
{
        struct server *s = userdata;

        if (s->state >= SERVER_STOPPING)
                return;
        switch (e) {
        case ZK_CONNECTED:
                controller_on_session(s->controller, e);
                if (s->state < SERVER_HANDING_OVER)
                        begin_registration(s);
                break;
        case ZK_DISCONNECTED:
                controller_on_session(s->controller, e);
                slog_warning("zookeeper-disconnected",
                             "the connection to ZooKeeper is lost; serving within the lease");
                break;
        case ZK_EXPIRED:
        case ZK_AUTH_FAILED:
                on_session_lost(s);
                break;
        }
}

int server_init_session(struct server *s)
{
        int r;

        r = loop_add_timer(s->control_loop, on_connect_timeout, s, &s->connect_timer);
        if (r == 0)
                r = loop_add_timer(s->control_loop, on_retry, s, &s->retry_timer);
        if (r == 0)
                r = loop_add_timer(s->control_loop, on_reopen, s, &s->reopen_timer);
        return r;
}

void server_connect(struct server *s)
{
        server_status(s, "Connecting to ZooKeeper");
        loop_timer_arm(s->connect_timer, s->config->zookeeper_connection_timeout_ms, 0);
        if (zk_is_connected(s->zk)) /* its event may have come before there was somebody to tell */
                begin_registration(s);
}
