/* The broker and its ZooKeeper session: connect, check the cluster id, register, and again after an expiry
 * (R80–R84, F1).
 *
 * A new session is a new broker epoch. When a session is lost everything that was led under it is given up
 * before a new one is opened, and is led again only when LeaderAndIsr says so (zk-fencing §2.5 rule 4;
 * docs/decisions/0003): the controller sees the new epoch as a bounce and elects anew. Under the policy
 * `shutdown`, or when every attempt at a new session has failed, the broker stops instead, logs closed. */
#include "server_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/slog.h"

#define RETRY_MS          500
#define ATTEMPT_MARGIN_MS 2000

METRIC_COUNTER(attempts, "stepdown_session_reconnect_attempts_total",
               "New ZooKeeper sessions begun after one was lost");
METRIC_COUNTER(attempts_failed, "stepdown_session_reconnect_failures_total",
               "New ZooKeeper sessions given up before the broker was registered under them");
METRIC_COUNTER(recovered, "stepdown_session_reconnects_total",
               "Times the broker registered anew after a lost session");
METRIC_GAUGE(lost, "stepdown_session_lost",
             "1 from the loss of a session until the broker is registered under a new one");

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
static void attempt_failed(struct server *s, const char *why);
static int adopt_cluster_id(struct server *s, const char *id);

static int on_retry(struct loop *l, void *userdata)
{
        struct server *s = userdata;

        (void)l;
        if (s->state < SERVER_STOPPING && zk_is_connected(s->zk))
                begin_registration(s);
        return 0;
}

static void on_recovered(struct server *s)
{
        loop_timer_disarm(s->attempt_timer);
        if (s->state != SERVER_STARTING) {
                metric_add(&recovered, 1);
                slog_notice(
                        "session-recovered",
                        "the broker is registered anew; it leads what the controller grants it from here on",
                        SL_INT("attempts", s->recovery.attempts));
                server_status(s, "Serving");
        }
        metric_set(&lost, 0);
        session_recovered(&s->recovery);
        s->registered_at_ms = loop_now_ms(s->control_loop);
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
        if (res->r < 0 && s->state != SERVER_STARTING) {
                attempt_failed(s,
                               res->error ? res->error : strerror(-res->r)); /* R84 d, after R82's attempts */
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
        on_recovered(s);
        atomic_store(&s->broker_epoch, res->broker_epoch);
        replica_manager_set_broker_epoch(s->replicas, res->broker_epoch);
        api_control_resume(s->api); /* requests for an older epoch are now told from those for this one */
        topic_configs_on_session(s->topic_configs);
        dir_report_on_session(s->dir_report);
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
        metric_add(&attempts, 1);
        s->attempt_connected = false;
        if (zk_reopen(s->zk) < 0) {
                server_fail(s, "a new ZooKeeper session could not be started", -ENOMEM);
                return 0;
        }
        if (s->state == SERVER_RUNNING)
                loop_timer_arm(s->attempt_timer, s->config->zookeeper_connection_timeout_ms, 0);
        return 0;
}

static void stop_for_good(struct server *s, const struct session_step *step, const char *why)
{
        char what[1024];

        if (step->verdict == SESSION_NOT_WANTED)
                (void)snprintf(
                        what, sizeof(what),
                        "%s, and zookeeper.session.expired.policy is shutdown: the broker stops, other "
                        "replicas lead its partitions; start it again when ZooKeeper at %s is well",
                        why, s->config->zookeeper_connect);
        else
                (void)snprintf(
                        what, sizeof(what),
                        "no new ZooKeeper session in %d attempts (zookeeper.session.reconnect.max.attempts), "
                        "at last: %s; the broker stops; see whether ZooKeeper at %s answers, then start it "
                        "again",
                        step->attempt, why, s->config->zookeeper_connect);
        server_fail(s, what, -EOWNERDEAD);
}

static struct session_policy policy_of(const struct server *s)
{
        return (struct session_policy){
                .policy = (enum session_expired_policy)s->config->session_expired_policy,
                .max_attempts = s->config->session_reconnect_max_attempts,
                .backoff_ms = s->config->session_reconnect_backoff_ms,
        };
}

/* R82; @why: what ended the last session or attempt. */
static void next_attempt(struct server *s, const char *why)
{
        const struct session_policy policy = policy_of(s);
        struct session_step step;
        uint32_t random = 0;

        (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK); /* it only spreads them */
        step = s->state == SERVER_STARTING ? session_next_at_start(&policy, &s->recovery, random)
                                           : session_next(&policy, &s->recovery, random);
        if (step.verdict != SESSION_TRY) {
                stop_for_good(s, &step, why);
                return;
        }
        slog_notice("session-attempt", "a new ZooKeeper session is opened after a pause", SL_STR("why", why),
                    SL_INT("attempt", step.attempt), SL_INT("max_attempts", policy.max_attempts),
                    SL_INT("pause_ms", step.delay_ms));
        server_status(s, "ZooKeeper session lost: leading nothing until there is a new one");
        loop_timer_arm(s->reopen_timer, step.delay_ms, 0);
}

static void attempt_failed(struct server *s, const char *why)
{
        char reason[600];

        (void)snprintf(reason, sizeof(reason), "%s", why);
        metric_add(&attempts_failed, 1);
        zk_abandon(s->zk);
        s->registering = false;
        loop_timer_disarm(s->retry_timer);
        loop_timer_disarm(s->attempt_timer);
        next_attempt(s, reason);
}

static int on_attempt_timeout(struct loop *l, void *userdata)
{
        struct server *s = userdata;

        (void)l;
        if (s->state == SERVER_RUNNING && atomic_load(&s->broker_epoch) < 0)
                attempt_failed(s, s->registering ? "ZooKeeper did not let the broker register in time"
                                                 : "no connection within zookeeper.connection.timeout.ms");
        return 0;
}

/* A connection is half of it: the rest may have to wait for a foreign owner of our id, which ends in an error
 * of its own and must not be cut short by this. Once an attempt, or one whose connection comes and goes would
 * have no end. */
static void on_attempt_connected(struct server *s)
{
        int64_t wait_ms = zk_negotiated_timeout_ms(s->zk) * 5 / 4 + ATTEMPT_MARGIN_MS;

        if (!loop_timer_armed(s->attempt_timer) || s->attempt_connected)
                return;
        s->attempt_connected = true;
        loop_timer_arm(s->attempt_timer, MAX(s->config->zookeeper_connection_timeout_ms, wait_ms), 0);
}

static void on_session_lost(struct server *s, const char *why)
{
        const struct session_policy policy = policy_of(s);
        bool registered = atomic_exchange(&s->broker_epoch, -1) >= 0;
        int32_t n;

        s->registering = false;
        loop_timer_disarm(s->retry_timer);
        loop_timer_disarm(s->attempt_timer);
        metric_set(&lost, 1);
        if (registered)
                session_lasted(&policy, &s->recovery, loop_now_ms(s->control_loop) - s->registered_at_ms);
        else
                metric_add(&attempts_failed, 1);
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
                next_attempt(s, why);
}

void server_on_zk_event(enum zk_event e, void *userdata)
{
        struct server *s = userdata;

        if (s->state >= SERVER_STOPPING)
                return;
        switch (e) {
        case ZK_CONNECTED:
                controller_on_session(s->controller, e);
                on_attempt_connected(s);
                if (s->state < SERVER_HANDING_OVER)
                        begin_registration(s);
                break;
        case ZK_DISCONNECTED:
                controller_on_session(s->controller, e);
                slog_warning("zookeeper-disconnected",
                             "the connection to ZooKeeper is lost; serving within the lease");
                break;
        case ZK_EXPIRED:
                on_session_lost(s, "the ZooKeeper session expired");
                break;
        case ZK_AUTH_FAILED: /* KAFKA-13461: a client that is dead for good must not go unnoticed */
                on_session_lost(s, "ZooKeeper refused the session's credentials");
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
        if (r == 0)
                r = loop_add_timer(s->control_loop, on_attempt_timeout, s, &s->attempt_timer);
        metrics_register(&attempts);
        metrics_register(&attempts_failed);
        metrics_register(&recovered);
        metrics_register(&lost);
        return r;
}

void server_connect(struct server *s)
{
        server_status(s, "Connecting to ZooKeeper");
        loop_timer_arm(s->connect_timer, s->config->zookeeper_connection_timeout_ms, 0);
        if (zk_is_connected(s->zk)) /* its event may have come before there was somebody to tell */
                begin_registration(s);
}
