/* Steps of a registration; each is a set of operations whose callback starts the next:
 *
 *   PATHS -> CLUSTER_ID -> CREATE -> (done)
 *                            ^  '-> INSPECT -> ours: UPDATE -> (done)
 *                            |         |'----> of an earlier session of ours: WAIT, then DELETE -> CREATE
 *                            |         '-----> foreign: WAIT (watch and deadline) --.
 *                            '------------------------------------------------------'
 */
#include "zk/registration.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/slog.h"

enum step {
        STEP_PATHS,
        STEP_CLUSTER_ID,
        STEP_CREATE,
        STEP_INSPECT,
        STEP_UPDATE,
        STEP_DELETE,
        STEP_WAIT,
        STEP_DONE,
        N_STEPS,
};

/* Parents before children. Kafka's "persistent paths", without those of features we have not (ACLs, tokens):
 * their owners create them. */
static const char *const skeleton[] = {
        "/brokers",
        ZNODE_BROKER_IDS,
        ZNODE_TOPICS,
        ZNODE_BROKER_SEQID,
        "/admin",
        ZNODE_DELETE_TOPICS,
        "/config",
        ZNODE_CONFIG_TOPICS,
        ZNODE_CONFIG_BROKERS,
        "/config/clients",
        "/config/users",
        "/config/ips",
        ZNODE_CONFIG_CHANGES,
        ZNODE_ISR_CHANGES,
        ZNODE_LOG_DIR_EVENTS,
        ZNODE_PRODUCER_IDS,
        "/cluster",
};

#define RETRY_MS     100  /* after an operation whose outcome is unknown */
#define OWN_GRACE_MS 1000 /* for the node of an earlier session of ours to go by itself */

struct registration {
        struct zk *z;
        struct loop *loop;
        zk_registration_fn fn;
        void *userdata;
        int32_t broker_id;
        char path[ZNODE_PATH_SIZE];
        char *data;

        enum step step;
        int refs;        /* operations whose callback is to come; the start */
        int outstanding; /* of STEP_PATHS */
        int paths_r;
        const char *paths_failed;
        int64_t wait_until_ms; /* 0: no owner but the current session was seen */
        int64_t awaited_session;
        char cluster_id[ZNODE_SMALL_SIZE];
};

static void start_step(struct registration *g, enum step step);

static void put(struct registration *g)
{
        if (--g->refs > 0)
                return;
        free(g->data);
        free(g);
}

static void finish(struct registration *g, int r, int64_t epoch, const char *error)
{
        struct zk_registration_result res = {
                .r = r,
                .broker_epoch = epoch,
                .session_id = r == 0 ? zk_session_id(g->z) : 0,
                .cluster_id = g->cluster_id,
                .error = r < 0 ? error : NULL,
        };

        if (g->step == STEP_DONE)
                return;
        g->step = STEP_DONE;
        zk_unwatch(g->z, g);
        g->fn(&res, g->userdata);
}

static void fail(struct registration *g, int r, const char *what, const char *path)
{
        char text[512];

        (void)snprintf(text, sizeof(text), "cannot register broker %d: %s %s: %s", g->broker_id, what, path,
                       strerror(-r)); /* cut if need be */
        finish(g, r, -1, text);
}

/* Worth another try within this session: nothing is known, or nothing was done. */
static bool retryable(int r)
{
        return r == -ECONNRESET || r == -ETIMEDOUT;
}

/* An operation could not even be submitted: only memory can be the reason. */
static void submitted(struct registration *g, int r)
{
        if (r < 0)
                finish(g, r, -1, "out of memory");
        else
                g->refs++;
}

static void on_retry(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (g->step != STEP_DONE) {
                if (res->r < 0)
                        fail(g, res->r, "waiting to try again", g->path);
                else
                        start_step(g, g->step);
        }
        put(g);
}

static void retry(struct registration *g)
{
        submitted(g, zk_delay(g->z, g->loop, RETRY_MS, on_retry, g));
}

/* --- the persistent paths --- */

static void on_path(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (res->r < 0 && res->r != -EEXIST && g->paths_r == 0)
                g->paths_r = res->r;
        if (--g->outstanding == 0 && g->step == STEP_PATHS) {
                if (g->paths_r == 0)
                        start_step(g, STEP_CLUSTER_ID);
                else if (retryable(g->paths_r))
                        retry(g);
                else
                        fail(g, g->paths_r, "creating", "the persistent paths");
        }
        put(g);
}

static void start_paths(struct registration *g)
{
        g->paths_r = 0;
        g->outstanding = (int)ARRAY_SIZE(skeleton);
        for (size_t i = 0; i < ARRAY_SIZE(skeleton) && g->step == STEP_PATHS; i++)
                submitted(g, zk_create(g->z, g->loop, skeleton[i], NULL, false, false, on_path, g));
}

/* --- /cluster/id --- */

static void on_cluster_id_made(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (res->r == 0 || res->r == -EEXIST || retryable(res->r))
                start_step(g, STEP_CLUSTER_ID); /* read what won: ours or another broker's */
        else
                fail(g, res->r, "creating", ZNODE_CLUSTER_ID);
        put(g);
}

static void make_cluster_id(struct registration *g)
{
        char text[ZNODE_SMALL_SIZE];
        struct uuid id;
        int r;

        r = uuid_random(&id);
        if (r < 0) {
                fail(g, r, "making", ZNODE_CLUSTER_ID);
                return;
        }
        (void)znode_cluster_id_encode(&id, text);
        submitted(g, zk_create(g->z, g->loop, ZNODE_CLUSTER_ID, text, false, false, on_cluster_id_made, g));
}

static void on_cluster_id(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;
        int r = res->r;

        if (r == -ENOENT) {
                make_cluster_id(g);
        } else if (retryable(r)) {
                retry(g);
        } else {
                if (r == 0)
                        r = znode_cluster_id_decode(res->data, res->data_len, g->cluster_id);
                if (r == 0)
                        start_step(g, STEP_CREATE);
                else
                        fail(g, r, "reading", ZNODE_CLUSTER_ID);
        }
        put(g);
}

static void start_cluster_id(struct registration *g)
{
        submitted(g, zk_get(g->z, g->loop, ZNODE_CLUSTER_ID, NULL, on_cluster_id, g));
}

/* --- /brokers/ids/N --- */

static void on_created(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (res->r == 0)
                finish(g, 0, res->op_stats[1].czxid, NULL);
        else if (res->r == -EEXIST)
                start_step(g, STEP_INSPECT);
        else if (retryable(res->r))
                retry(g); /* if it was done after all, the next try finds it owned by us (KAFKA-1387) */
        else
                fail(g, res->r, "creating", g->path);
        put(g);
}

/* The set's Stat carries the czxid of the create, which a plain create does not return (KIP-380). */
static void start_create(struct registration *g)
{
        const struct zk_op ops[] = {
                {ZK_OP_CREATE_EPHEMERAL, g->path, NULL, 0},
                {ZK_OP_SET, g->path, g->data, 0},
        };

        submitted(g, zk_multi(g->z, g->loop, ops, ARRAY_SIZE(ops), on_created, g));
}

static void on_updated(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (res->r == 0)
                finish(g, 0, res->stat.czxid, NULL);
        else if (res->r == -ENOENT || res->r == -ESTALE || retryable(res->r))
                start_step(g, STEP_INSPECT);
        else
                fail(g, res->r, "updating", g->path);
        put(g);
}

static void on_deleted(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (res->r == 0 || res->r == -ENOENT)
                start_step(g, STEP_CREATE);
        else if (res->r == -ESTALE || retryable(res->r))
                start_step(g, STEP_INSPECT);
        else
                fail(g, res->r, "deleting the leftover", g->path);
        put(g);
}

static void fail_foreign(struct registration *g, const struct zk_result *res, const char *why)
{
        struct znode_broker other = {0};
        const struct znode_endpoint *e = NULL;
        char text[512], since[32] = "an unknown time";
        struct tm tm;
        time_t at;

        if (res->data && znode_broker_decode(res->data, res->data_len, &other) == 0)
                e = znode_broker_endpoint(&other, NULL);
        at = (time_t)(other.timestamp_ms / 1000);
        if (at > 0 && gmtime_r(&at, &tm))
                (void)strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", &tm);
        (void)snprintf(text, sizeof(text),
                       "broker id %d is in use: %s belongs to session 0x%llx, host %s port %u, since %s, %s; "
                       "give each broker a broker.id of its own",
                       g->broker_id, g->path, (unsigned long long)res->stat.ephemeral_owner,
                       e ? e->host : "unknown", e ? e->port : 0U, since, why); /* cut if need be */
        znode_broker_done(&other);
        finish(g, -EEXIST, -1, text);
}

/* Somebody else's: most likely our own process before a crash, whose session is running out. */
static void on_foreign(struct registration *g, const struct zk_result *res)
{
        int64_t timeout_ms = zk_negotiated_timeout_ms(g->z), now_ms = clock_mono_ms();

        if (g->wait_until_ms == 0) {
                g->wait_until_ms = now_ms + timeout_ms + timeout_ms / 4 + 1000;
                g->awaited_session = res->stat.ephemeral_owner;
                slog_notice("broker-id-taken", "waiting for an older session to release this broker id",
                            SL_INT("broker", g->broker_id), SL_INT("session", g->awaited_session));
        }
        if (res->stat.ephemeral_owner != g->awaited_session)
                fail_foreign(g, res, "which registered while we waited");
        else if (now_ms >= g->wait_until_ms)
                fail_foreign(g, res, "which is alive");
        else
                start_step(g, STEP_WAIT);
}

/* Of an earlier session of this very process. Commonly its deletion is under way, and whoever else waits for
 * it must have the same chance (R84 b): a delete of ours could hit the node of a broker that came in between,
 * for the first version of each is the same. What has not gone within the grace is not going: a session that
 * we gave up but that lives on, or a leftover (ZOOKEEPER-2985). That is replaced, in the exact version just
 * read with its owner; never by name or host (KAFKA-7165). */
static void on_own_old(struct registration *g, const struct zk_result *res)
{
        int64_t now_ms = clock_mono_ms();

        if (g->wait_until_ms == 0 || g->awaited_session != res->stat.ephemeral_owner) {
                g->wait_until_ms = now_ms + OWN_GRACE_MS;
                g->awaited_session = res->stat.ephemeral_owner;
                slog_info("own-registration-left", "an earlier session of this broker still holds its id",
                          SL_INT("broker", g->broker_id), SL_INT("session", g->awaited_session));
        }
        if (now_ms < g->wait_until_ms) {
                start_step(g, STEP_WAIT);
                return;
        }
        g->step = STEP_DELETE;
        submitted(g, zk_delete(g->z, g->loop, g->path, res->stat.version, on_deleted, g));
}

static void on_inspected(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;
        int64_t owner = res->stat.ephemeral_owner;

        if (res->r == -ENOENT) {
                start_step(g, STEP_CREATE);
        } else if (retryable(res->r)) {
                retry(g);
        } else if (res->r < 0) {
                fail(g, res->r, "reading", g->path);
        } else if (owner == zk_session_id(g->z)) {
                if (res->data && strcmp(res->data, g->data) == 0) {
                        finish(g, 0, res->stat.czxid, NULL);
                } else {
                        g->step = STEP_UPDATE;
                        submitted(g,
                                  zk_set(g->z, g->loop, g->path, g->data, res->stat.version, on_updated, g));
                }
        } else if (zk_session_is_own(g->z, owner)) {
                on_own_old(g, res);
        } else {
                on_foreign(g, res);
        }
        put(g);
}

static void start_inspect(struct registration *g)
{
        submitted(g, zk_get(g->z, g->loop, g->path, NULL, on_inspected, g));
}

static void on_wait_watch(const char *path, void *userdata)
{
        struct registration *g = userdata;

        (void)path;
        if (g->step == STEP_WAIT)
                start_step(g, STEP_CREATE);
}

static void on_wait_armed(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (g->step == STEP_WAIT) {
                if (res->r == -ENOENT)
                        start_step(g, STEP_CREATE);
                else if (retryable(res->r))
                        start_step(g, STEP_INSPECT);
                else if (res->r < 0)
                        fail(g, res->r, "watching", g->path);
        }
        put(g);
}

static void on_wait_over(const struct zk_result *res, void *userdata)
{
        struct registration *g = userdata;

        if (g->step == STEP_WAIT) {
                if (res->r < 0)
                        fail(g, res->r, "waiting for the end of", g->path);
                else
                        start_step(g, STEP_INSPECT);
        }
        put(g);
}

/* The delay is what keeps @g's memory and tells it of the zk's end; a watch alone would not. */
static void start_wait(struct registration *g)
{
        int64_t left_ms = MAX((int64_t)0, g->wait_until_ms - clock_mono_ms());

        submitted(g, zk_delay(g->z, g->loop, left_ms, on_wait_over, g));
        if (g->step == STEP_WAIT)
                submitted(g, zk_exists(g->z, g->loop, g->path, on_wait_watch, on_wait_armed, g));
}

static void (*const starters[N_STEPS])(struct registration *g) = {
        [STEP_PATHS] = start_paths,   [STEP_CLUSTER_ID] = start_cluster_id,
        [STEP_CREATE] = start_create, [STEP_INSPECT] = start_inspect,
        [STEP_WAIT] = start_wait,
};

static void start_step(struct registration *g, enum step step)
{
        if (g->step == STEP_DONE)
                return;
        /* UPDATE and DELETE need what INSPECT read; they start there. */
        assert(starters[step]);
        g->step = step;
        starters[step](g);
}

int zk_register_broker(struct zk *z, struct loop *loop, int32_t broker_id, const struct znode_broker *broker,
                       zk_registration_fn fn, void *userdata)
{
        cleanup_with(buf_donep) struct buf text = {0};
        struct registration *g;
        int r;

        if (!loop || !fn || broker_id < 0)
                return -EINVAL;
        buf_init(&text, 0);
        r = znode_broker_encode(broker, &text);
        if (r < 0)
                return r;
        g = calloc(1, sizeof(*g));
        if (!g)
                return -ENOMEM;
        g->data = strndup((const char *)text.data, text.len);
        if (!g->data) {
                free(g);
                return -ENOMEM;
        }
        g->z = z;
        g->loop = loop;
        g->fn = fn;
        g->userdata = userdata;
        g->broker_id = broker_id;
        znode_path_broker(broker_id, g->path);
        /* A first step on the loop: from here on only that thread touches @g. */
        g->refs = 1;
        r = zk_delay(z, loop, 0, on_retry, g);
        if (r < 0) {
                free(g->data);
                free(g);
        }
        return r;
}

/* --- deregistration --- */

struct deregistration {
        struct zk *z;
        struct loop *loop;
        zk_deregistered_fn fn;
        void *userdata;
        char path[ZNODE_PATH_SIZE];
};

static void dereg_finish(struct deregistration *d, int r)
{
        d->fn(r == -ENOENT ? 0 : r, d->userdata);
        free(d);
}

static void on_dereg_deleted(const struct zk_result *res, void *userdata)
{
        dereg_finish(userdata, res->r);
}

static void on_dereg_found(const struct zk_result *res, void *userdata)
{
        struct deregistration *d = userdata;
        int r = res->r;

        if (r == 0 && res->stat.ephemeral_owner != zk_session_id(d->z))
                r = -ENOENT; /* not ours, or not ours any more */
        if (r == 0) {
                r = zk_delete(d->z, d->loop, d->path, res->stat.version, on_dereg_deleted, d);
                if (r == 0)
                        return;
        }
        dereg_finish(d, r);
}

int zk_deregister_broker(struct zk *z, struct loop *loop, int32_t broker_id, zk_deregistered_fn fn,
                         void *userdata)
{
        struct deregistration *d;
        int r;

        if (!loop || !fn || broker_id < 0)
                return -EINVAL;
        d = calloc(1, sizeof(*d));
        if (!d)
                return -ENOMEM;
        d->z = z;
        d->loop = loop;
        d->fn = fn;
        d->userdata = userdata;
        znode_path_broker(broker_id, d->path);
        r = zk_exists(z, loop, d->path, NULL, on_dereg_found, d);
        if (r < 0)
                free(d);
        return r;
}
