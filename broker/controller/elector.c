/* Who is the controller: /controller and /controller_epoch (kafka-semantics §3.2).
 *
 * One multi creates the first and counts up the second, so that there is no moment at which one names a
 * controller and the other does not (KAFKA-6082). The version of /controller_epoch after it is our fence. The
 * epoch is read when we stand for election and at no other time (KAFKA-1096). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/slog.h"
#include "controller/controller_internal.h"

struct election {
        int32_t epoch, version; /* of /controller_epoch before the multi */
};

static void read_epoch(struct controller *c);

static void check_later(struct controller *c)
{
        c->checking = false;
        if (!loop_timer_armed(c->elect_retry))
                loop_timer_arm(c->elect_retry, RETRY_MS, 0);
}

static void check_done(struct controller *c)
{
        bool again = c->check_again;

        c->checking = c->check_again = false;
        if (again)
                elector_check(c);
}

/* Back to watching; whoever has won is read from /controller. */
static void lost(struct controller *c)
{
        ctl_set_state(c, CTL_WATCHING);
        elector_check(c);
}

static void lost_later(struct controller *c)
{
        ctl_set_state(c, CTL_WATCHING);
        check_later(c);
}

/* --- who is it, if not we --- */

static void publish(struct controller *c, int32_t id, const struct controller_location *where)
{
        int32_t old = atomic_exchange(&c->active_id, id);

        (void)pthread_mutex_lock(&c->location_lock);
        c->located = where;
        if (where)
                c->location = *where;
        (void)pthread_mutex_unlock(&c->location_lock);
        if (old != id && c->ops.on_controller_change)
                c->ops.on_controller_change(id, c->ops.userdata);
}

void elector_forget(struct controller *c)
{
        publish(c, -1, NULL);
}

void elector_locate(const struct controller *c, const struct znode_broker *b, struct controller_location *ret)
{
        const struct znode_endpoint *e = znode_broker_endpoint(b, c->listener);
        const char *admin = b->admin_endpoint;

        if (e) {
                (void)snprintf(ret->host, sizeof(ret->host), "%s", e->host);
                ret->port = e->port;
        }
        if (admin && strncmp(admin, "http://", 7) == 0)
                admin += 7;
        if (!admin || parse_host_port(admin, ret->admin_host, &ret->admin_port) < 0)
                ret->admin_host[0] = '\0';
}

static void on_location(struct controller *c, const struct zk_result *res, void *arg)
{
        struct controller_location where = {.id = (int32_t)(intptr_t)arg};
        struct znode_broker b = {0};

        if (ctl_outcome_unknown(res->r)) {
                check_later(c);
                return;
        }
        if (res->r == 0 && znode_broker_decode(res->data ? res->data : "", res->data_len, &b) == 0) {
                elector_locate(c, &b, &where);
                publish(c, where.id, &where);
                znode_broker_done(&b);
        } else {
                /* Gone in between: /controller goes too, or it registers anew; look again until one has
                 * happened. */
                publish(c, where.id, NULL);
                check_later(c);
                return;
        }
        check_done(c);
}

static void drop_nothing(void *arg)
{
        (void)arg; /* a number, not memory */
}

static void read_location(struct controller *c, int32_t id)
{
        char path[ZNODE_PATH_SIZE];

        znode_path_broker(id, path);
        if (ctl_zk_get(c, path, on_location, (void *)(intptr_t)id, drop_nothing) < 0)
                check_later(c);
}

/* --- looking at /controller --- */

static void on_own_leftover_deleted(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)res;
        (void)arg;
        c->checking = false;
        elector_check(c);
}

/* The znode is of our session but we hold no term: a creation whose reply was lost and whose outcome could
 * not be read in time. Nobody knows its epoch, so it goes; the next election is ours or another's. */
static void delete_own_leftover(struct controller *c, int32_t version)
{
        if (ctl_zk_delete(c, ZNODE_CONTROLLER, version, on_own_leftover_deleted, NULL) < 0)
                check_later(c);
}

static void on_controller_data(struct controller *c, const struct zk_result *res, void *arg)
{
        struct znode_controller who;
        bool in_office = c->state == CTL_LOADING || c->state == CTL_ACTIVE;
        bool own;

        (void)arg;
        if (res->r == -ENOENT) {
                c->checking = false;
                elector_check(c);
                return;
        }
        if (res->r != 0 || znode_controller_decode(res->data ? res->data : "", res->data_len, &who) < 0) {
                check_later(c);
                return;
        }
        own = res->stat.ephemeral_owner == zk_session_id(c->zk);
        if (in_office && own) {
                read_location(c, who.broker_id);
                return;
        }
        if (in_office) {
                c->checking = false;
                ctl_resign(c, "/controller names another session");
                return;
        }
        if (own && c->state == CTL_WATCHING)
                delete_own_leftover(c, res->stat.version);
        else
                read_location(c, who.broker_id);
}

static void on_controller_exists(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)arg;
        if (res->r == 0) {
                if (ctl_zk_get(c, ZNODE_CONTROLLER, on_controller_data, NULL, drop_nothing) < 0)
                        check_later(c);
                return;
        }
        if (res->r != -ENOENT) {
                check_later(c);
                return;
        }
        c->checking = false;
        if (c->state == CTL_LOADING || c->state == CTL_ACTIVE) {
                ctl_resign(c, "/controller was deleted");
                return;
        }
        publish(c, -1, NULL);
        if (c->state == CTL_WATCHING) {
                ctl_set_state(c, CTL_ELECTING);
                read_epoch(c);
        }
}

void elector_check(struct controller *c)
{
        if (c->state == CTL_UNREGISTERED || c->state == CTL_STOPPED || c->state == CTL_ELECTING)
                return;
        if (c->checking) {
                c->check_again = true;
                return;
        }
        c->checking = true;
        c->check_again = false;
        if (ctl_zk_exists(c, ZNODE_CONTROLLER, WATCH_CONTROLLER, on_controller_exists, NULL) < 0)
                check_later(c);
}

/* --- standing for election --- */

static void won(struct controller *c, int32_t epoch, const struct zk_stat *stat)
{
        c->epoch = epoch;
        c->epoch_version = stat->version;
        c->elected_zk_ms = stat->mtime_ms;
        atomic_store(&c->public_epoch, epoch);
        slog_notice("controller-elected", "this broker is the controller; it reads the cluster's state",
                    SL_INT("epoch", epoch));
        ctl_set_state(c, CTL_LOADING);
        elector_check(c); /* arms the watch, publishes our own address */
        loader_load_all(c);
}

/* After a lost reply: was it applied? The session, the value and the version together can only be ours. */
static void on_epoch_verified(struct controller *c, const struct zk_result *res, void *arg)
{
        struct election *e = arg;
        int32_t epoch;

        if (res->r == 0 && znode_epoch_decode(res->data ? res->data : "", res->data_len, &epoch) == 0 &&
            epoch == e->epoch + 1 && res->stat.version == e->version + 1)
                won(c, epoch, &res->stat);
        else
                lost_later(c); /* what is in /controller of ours is deleted there */
        free(e);
}

static void on_controller_verified(struct controller *c, const struct zk_result *res, void *arg)
{
        if (res->r == 0 && res->stat.ephemeral_owner == zk_session_id(c->zk) &&
            ctl_zk_get(c, ZNODE_CONTROLLER_EPOCH, on_epoch_verified, arg, free) == 0)
                return;
        free(arg);
        lost_later(c);
}

static void on_synced(struct controller *c, const struct zk_result *res, void *arg)
{
        if (res->r == 0 && ctl_zk_get(c, ZNODE_CONTROLLER, on_controller_verified, arg, free) == 0)
                return;
        free(arg);
        lost_later(c);
}

static void on_elected(struct controller *c, const struct zk_result *res, void *arg)
{
        struct election *e = arg;

        if (res->r == 0) {
                won(c, e->epoch + 1, &res->op_stats[1]);
                free(e);
                return;
        }
        if (ctl_outcome_unknown(res->r) && ctl_zk_sync(c, on_synced, e) == 0)
                return;
        free(e);
        if (res->r == -EEXIST || res->r == -ESTALE)
                lost(c);
        else
                lost_later(c);
}

static void stand(struct controller *c, int32_t epoch, int32_t version)
{
        struct znode_controller who = {.broker_id = c->o.broker_id, .timestamp_ms = clock_real_ms()};
        struct election *e = malloc(sizeof(*e));
        char data[ZNODE_SMALL_SIZE], next[ZNODE_SMALL_SIZE];
        struct zk_op ops[] = {
                {.type = ZK_OP_CREATE_EPHEMERAL, .path = ZNODE_CONTROLLER, .data = data},
                {.type = ZK_OP_SET, .path = ZNODE_CONTROLLER_EPOCH, .data = next, .version = version},
        };

        if (!e) {
                lost_later(c);
                return;
        }
        *e = (struct election){.epoch = epoch, .version = version};
        (void)znode_controller_encode(&who, data);
        (void)znode_epoch_encode(epoch + 1, next);
        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_elected, e, free) < 0) {
                free(e);
                lost_later(c);
        }
}

static void on_epoch_created(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)arg;
        if (res->r == 0 || res->r == -EEXIST)
                read_epoch(c);
        else
                lost_later(c);
}

static void on_epoch(struct controller *c, const struct zk_result *res, void *arg)
{
        char zero[ZNODE_SMALL_SIZE];
        int32_t epoch;

        (void)arg;
        if (res->r == -ENOENT) {
                (void)znode_epoch_encode(0, zero);
                if (ctl_zk_create(c, ZNODE_CONTROLLER_EPOCH, zero, on_epoch_created, NULL) < 0)
                        lost_later(c);
                return;
        }
        if (res->r != 0 || znode_epoch_decode(res->data ? res->data : "", res->data_len, &epoch) < 0) {
                lost_later(c);
                return;
        }
        stand(c, epoch, res->stat.version);
}

static void read_epoch(struct controller *c)
{
        if (ctl_zk_get(c, ZNODE_CONTROLLER_EPOCH, on_epoch, NULL, drop_nothing) < 0)
                lost_later(c);
}

/* --- still in office? --- */

static void on_probed(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)arg;
        c->probing = false;
        if (res->r == -ESTALE || res->r == -ENOENT) {
                metric_add(&controller_metric_fenced, 1);
                ctl_resign(c, "/controller_epoch was counted up by another controller");
        }
}

void elector_probe(struct controller *c)
{
        struct zk_op op = ctl_epoch_check(c);

        if (c->probing || (c->state != CTL_LOADING && c->state != CTL_ACTIVE))
                return;
        if (ctl_zk_multi(c, &op, 1, on_probed, NULL, drop_nothing) == 0)
                c->probing = true;
}
