/* The session's life: states, events, opening and closing handles, heartbeat and watchdog. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/slog.h"
#include "zk/zk_internal.h"

#define DEFAULT_OP_TIMEOUT_MS 15000
#define DEFAULT_MAX_INFLIGHT  1000
#define TICK_MS               100
#define BEAT_MAX_MS           1000
#define NUDGE_AFTER_MS        250 /* the watchdog of ZOOKEEPER-4537 */
#define CLOSE_DRAIN_MS        1000
#define RETRY_MIN_MS          100
#define RETRY_MAX_MS          5000
#define RESOLVE_AGAIN_MS      5000 /* servers may have moved: names are asked again while disconnected */

static const struct {
        const char *name;
        unsigned next; /* bit set of allowed successors */
} states[N_ZK_STATES] = {
        [ZKS_STARTING] = {"starting", 1U << ZKS_CONNECTING | 1U << ZKS_EXPIRED | 1U << ZKS_CLOSED},
        [ZKS_CONNECTING] = {"connecting", 1U << ZKS_PREPARING | 1U << ZKS_CONNECTED | 1U << ZKS_EXPIRED |
                                                  1U << ZKS_AUTH_FAILED | 1U << ZKS_CLOSED},
        [ZKS_PREPARING] = {"preparing", 1U << ZKS_CONNECTING | 1U << ZKS_CONNECTED | 1U << ZKS_EXPIRED |
                                                1U << ZKS_AUTH_FAILED | 1U << ZKS_CLOSED},
        [ZKS_CONNECTED] = {"connected", 1U << ZKS_CONNECTING | 1U << ZKS_EXPIRED | 1U << ZKS_AUTH_FAILED |
                                                1U << ZKS_CLOSED},
        [ZKS_EXPIRED] = {"expired", 1U << ZKS_STARTING | 1U << ZKS_CLOSED},
        [ZKS_AUTH_FAILED] = {"auth-failed", 1U << ZKS_STARTING | 1U << ZKS_CLOSED},
        [ZKS_CLOSED] = {"closed", 0},
};

void zk_set_state(struct zk *z, enum zk_state to)
{
        if (z->state == to)
                return;
        assert(states[z->state].next & 1U << to);
        slog_debug("zk-state", "ZooKeeper session changes state", SL_STR("from", states[z->state].name),
                   SL_STR("to", states[to].name), SL_INT("session", atomic_load(&z->session_id)));
        z->state = to;
        atomic_store(&z->connected, to == ZKS_CONNECTED);
}

/* --- memory --- */

static void destroy(struct zk *z)
{
        zk_hosts_free(z->hosts);
        free(z->chroot);
        free(z->addresses);
        (void)pthread_cond_destroy(&z->idle);
        (void)pthread_mutex_destroy(&z->lock);
        free(z);
}

void zk_unlock(struct zk *z)
{
        bool last = z->refs == 0;

        (void)pthread_mutex_unlock(&z->lock);
        if (last)
                destroy(z);
}

/* --- events to the owner --- */

static void deliver_events(void *userdata)
{
        struct zk *z = userdata;

        (void)pthread_mutex_lock(&z->lock);
        while (z->n_events > 0 && z->state != ZKS_CLOSED) {
                enum zk_event e = z->events[0];

                memmove(z->events, z->events + 1, (size_t)--z->n_events * sizeof(e));
                (void)pthread_mutex_unlock(&z->lock);
                z->on_event(e, z->userdata);
                (void)pthread_mutex_lock(&z->lock);
        }
        z->event_posted = false;
        z->refs--;
        zk_unlock(z);
}

void zk_emit(struct zk *z, enum zk_event e)
{
        if (!z->on_event)
                return;
        if (z->n_events == ZK_EVENT_RING)
                z->n_events--; /* an owner that far behind needs the latest state, not each flap */
        z->events[z->n_events++] = e;
        if (z->event_posted)
                return;
        z->event_posted = true;
        z->refs++;
        loop_post_task(z->event_loop, &z->event_task);
}

/* --- the library's session events (completion thread) --- */

static void remember_session(struct zk *z, int64_t id)
{
        if (z->n_own_sessions > 0 && z->own_sessions[z->n_own_sessions - 1] == id)
                return;
        if (z->n_own_sessions == ZK_OWN_SESSIONS)
                memmove(z->own_sessions, z->own_sessions + 1, (size_t)--z->n_own_sessions * sizeof(id));
        z->own_sessions[z->n_own_sessions++] = id;
}

static void become_connected(struct zk *z)
{
        zk_set_state(z, ZKS_CONNECTED);
        z->lost_since_ms = 0;
        slog_info("zk-connected", "connected to ZooKeeper", SL_INT("session", atomic_load(&z->session_id)),
                  SL_INT("timeout_ms", atomic_load(&z->negotiated_ms)));
        zk_emit(z, ZK_CONNECTED);
        zk_send_heartbeat(z); /* before anything else: the lease begins here */
        zk_pump(z);
}

/* May come again without a loss in between (zk-fencing §1.3). No operation was sent under this session id
 * before, so every id that can own an ephemeral of ours is remembered (KAFKA-14845). */
static void on_connected(struct zk *z, zhandle_t *zh)
{
        int64_t id = zoo_client_id(zh)->client_id;

        atomic_store(&z->session_id, id);
        atomic_store(&z->negotiated_ms, zoo_recv_timeout(zh));
        remember_session(z, id);
        if (z->state == ZKS_CONNECTED) {
                zk_emit(z, ZK_CONNECTED);
        } else if (z->chroot_len > 0) {
                zk_set_state(z, ZKS_PREPARING);
                zk_send_chroot(z);
        } else {
                become_connected(z);
        }
}

void zk_on_chroot(struct zk *z, int rc)
{
        int r = zk_error(rc);

        if (z->state != ZKS_PREPARING)
                return;
        if (r == -ECONNRESET || r == -ETIMEDOUT || r == -EOWNERDEAD)
                return; /* the next session event decides */
        if (r < 0 && r != -EEXIST)
                slog_error("zk-chroot", "cannot create the chroot of zookeeper.connect; operations will fail",
                           SL_STR("path", z->chroot), SL_ERR(r));
        become_connected(z);
}

static void on_lost(struct zk *z)
{
        bool was = z->state == ZKS_CONNECTED;

        if (z->state == ZKS_CONNECTING)
                return;
        zk_set_state(z, ZKS_CONNECTING);
        z->lost_since_ms = clock_mono_ms();
        if (!was)
                return;
        metric_add(&zk_metric_disconnects, 1);
        slog_warning("zk-disconnected", "connection to ZooKeeper lost, the session may live on",
                     SL_INT("session", atomic_load(&z->session_id)));
        zk_emit(z, ZK_DISCONNECTED);
}

/* Everything that depends on the session hears so now, the handle is closed by our own thread. */
static void end_session(struct zk *z, enum zk_state to)
{
        zk_set_state(z, to);
        atomic_store(&z->lease_deadline_ms, 0);
        zk_fail_sent(z, -EOWNERDEAD);
        zk_fail_queued(z, -EOWNERDEAD);
        if (!z->h)
                return;
        zk_watches_fire(z->h);
        list_push_back(&z->retired, &z->h->node);
        z->h = NULL;
        zk_post_work(z);
}

void zk_session_over(struct zk *z, enum zk_state to)
{
        if (z->state != ZKS_CONNECTING && z->state != ZKS_PREPARING && z->state != ZKS_CONNECTED)
                return;
        metric_add(&zk_metric_expired, to == ZKS_EXPIRED ? 1 : 0);
        slog_warning("zk-session-over", "ZooKeeper session is over", SL_STR("why", states[to].name),
                     SL_INT("session", atomic_load(&z->session_id)));
        end_session(z, to);
        zk_emit(z, to == ZKS_EXPIRED ? ZK_EXPIRED : ZK_AUTH_FAILED);
}

static void on_session_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
        struct zk_handle *h = ctx;
        struct zk *z = h->z;

        (void)path;
        if (type != ZOO_SESSION_EVENT)
                return;
        (void)pthread_mutex_lock(&z->lock);
        if (z->h != h || z->state == ZKS_CLOSED)
                ; /* of an older generation */
        else if (state == ZOO_CONNECTED_STATE)
                on_connected(z, zh);
        else if (state == ZOO_EXPIRED_SESSION_STATE)
                zk_session_over(z, ZKS_EXPIRED);
        else if (state == ZOO_AUTH_FAILED_STATE)
                zk_session_over(z, ZKS_AUTH_FAILED);
        else
                on_lost(z);
        zk_unlock(z);
}

/* --- handles (own thread) --- */

static void retry_later(struct zk *z)
{
        uint32_t dice = (uint32_t)clock_mono_us() * 2654435761U; /* jitter, no secret */

        z->retry_delay_ms = MIN((int64_t)RETRY_MAX_MS, MAX((int64_t)RETRY_MIN_MS, z->retry_delay_ms * 2));
        loop_timer_arm(z->retry, z->retry_delay_ms / 2 + dice % (uint32_t)z->retry_delay_ms, 0);
}

/* @addresses is taken over. */
static void open_handle(struct zk *z, char *addresses)
{
        struct zk_handle *h = calloc(1, sizeof(*h));

        free(z->addresses);
        z->addresses = addresses;
        if (!h) {
                retry_later(z);
                return;
        }
        h->z = z;
        list_init(&h->reqs);
        list_init(&h->watches);
        list_init(&h->node);
        h->generation = ++z->n_handles;

        (void)pthread_mutex_lock(&z->lock);
        if (z->state == ZKS_STARTING) /* not closed meanwhile */
                h->zh = zookeeper_init2(addresses, on_session_event, (int)z->session_timeout_ms, NULL, h,
                                        ZOO_NO_LOG_CLIENTENV, zk_log_line);
        if (h->zh) {
                /* -1: no resolution in the IO thread while connected (ZOOKEEPER-1998). */
                (void)zoo_set_servers_resolution_delay(h->zh, -1);
                z->h = h;
                zk_set_state(z, ZKS_CONNECTING);
                z->lost_since_ms = clock_mono_ms();
        }
        zk_unlock(z);
        if (h->zh) {
                z->retry_delay_ms = 0;
                return;
        }
        slog_warning("zk-init-failed", "cannot open a ZooKeeper session, trying again", SL_ERR(-errno));
        free(h);
        retry_later(z);
}

static void move_servers(struct zk *z, char *addresses)
{
        cleanup_with(freep) char *fresh = addresses;

        if (z->addresses && strcmp(z->addresses, fresh) == 0)
                return;
        slog_info("zk-servers-moved", "ZooKeeper's names resolve to other addresses",
                  SL_STR("addresses", fresh));
        (void)pthread_mutex_lock(&z->lock);
        /* Only while disconnected: the call re-balances and may drop a good connection (zk-fencing §1.5). */
        if (z->h && z->state == ZKS_CONNECTING && zoo_set_servers(z->h->zh, fresh) == ZOK) {
                free(z->addresses);
                z->addresses = TAKE_PTR(fresh);
        }
        zk_unlock(z);
}

static void on_resolved(int r, char *addresses, void *userdata)
{
        struct zk *z = userdata;
        enum zk_state state;

        z->resolution = NULL;
        (void)pthread_mutex_lock(&z->lock);
        state = z->state;
        zk_unlock(z);
        if (r < 0) {
                slog_warning("zk-resolve-failed", "no name of zookeeper.connect resolves", SL_ERR(r));
                if (state == ZKS_STARTING)
                        retry_later(z);
        } else if (state == ZKS_STARTING) {
                open_handle(z, addresses);
        } else {
                move_servers(z, addresses);
        }
}

static void resolve(struct zk *z)
{
        char *addresses = NULL;
        int r;

        if (z->resolution)
                return;
        z->last_resolve_ms = clock_mono_ms();
        if (zk_hosts_numeric(z->hosts)) {
                r = zk_hosts_resolve(z->hosts, &addresses);
                on_resolved(r, addresses, z);
                return;
        }
        r = zk_resolution_start(z->hosts, z->own, on_resolved, z, &z->resolution);
        if (r < 0)
                on_resolved(r, NULL, z);
}

static void close_handle(struct zk_handle *h)
{
        struct zk *z = h->z;

        (void)zookeeper_close(h->zh); /* joins the library's threads: no callback of h runs after it */
        (void)pthread_mutex_lock(&z->lock);
        zk_watches_forget(h);
        zk_forget_reqs(h);
        zk_unlock(z);
        free(h);
}

static void work(void *userdata)
{
        struct zk *z = userdata;
        struct list retired = LIST_INIT(retired);
        bool start;

        (void)pthread_mutex_lock(&z->lock);
        z->work_posted = false;
        list_splice_back(&retired, &z->retired);
        start = z->state == ZKS_STARTING;
        zk_unlock(z);
        while (!list_empty(&retired)) {
                struct zk_handle *h = list_entry(retired.next, struct zk_handle, node);

                list_remove(&h->node);
                close_handle(h);
        }
        if (start)
                resolve(z);
}

void zk_post_work(struct zk *z)
{
        if (z->work_posted)
                return;
        z->work_posted = true;
        loop_post_task(z->own, &z->work_task);
}

/* --- timers (own thread) --- */

static int on_retry(struct loop *l, void *userdata)
{
        (void)l;
        work(userdata);
        return 0;
}

/* min(T/12, 1 s): fresh enough for a lease of 2/3 T (zk-fencing §2.3). */
static int64_t beat_interval_ms(const struct zk *z)
{
        int64_t t_ms = atomic_load(&z->negotiated_ms); /* 0 before the first session */

        return t_ms > 0 ? MIN((int64_t)BEAT_MAX_MS, MAX((int64_t)10, t_ms / 12)) : BEAT_MAX_MS;
}

static int on_tick(struct loop *l, void *userdata)
{
        struct zk *z = userdata;
        int64_t now_ms = clock_mono_ms(), beat_ms;
        bool again = false;

        (void)l;
        (void)pthread_mutex_lock(&z->lock);
        beat_ms = beat_interval_ms(z);
        zk_sweep(z, now_ms);
        if (z->state == ZKS_CONNECTED) {
                if (now_ms - z->last_beat_ms >= beat_ms)
                        zk_send_heartbeat(z);
                if (!list_empty(&z->sent) && now_ms - z->last_nudge_ms >= NUDGE_AFTER_MS &&
                    now_ms - list_entry(z->sent.next, struct zk_req, node)->sent_us / 1000 > NUDGE_AFTER_MS)
                        zk_send_nudge(z);
        } else if (z->state == ZKS_CONNECTING) {
                again = now_ms - z->lost_since_ms >= RESOLVE_AGAIN_MS &&
                        now_ms - z->last_resolve_ms >= RESOLVE_AGAIN_MS;
        }
        zk_unlock(z);
        if (again && !zk_hosts_numeric(z->hosts))
                resolve(z);
        zk_log_drain();
        /* Half a beat, so that a beat is late by half an interval at most. */
        loop_timer_arm(z->tick, MIN((int64_t)TICK_MS, beat_ms / 2), 0);
        return 0;
}

/* --- public --- */

static int init_loop(struct zk *z)
{
        int r;

        r = loop_new("zk", &z->own);
        if (r < 0)
                return r;
        r = loop_add_timer(z->own, on_tick, z, &z->tick);
        if (r < 0)
                return r;
        r = loop_add_timer(z->own, on_retry, z, &z->retry);
        if (r < 0)
                return r;
        loop_timer_arm(z->tick, TICK_MS, 0);
        return 0;
}

static struct zk *discard(struct zk *z)
{
        if (!z)
                return NULL;
        z->state = ZKS_CLOSED; /* so that loop_free(), running the posted work(), opens nothing */
        loop_free(z->own);
        destroy(z);
        return NULL;
}
DEFINE_FREEP(struct zk, discard)

static void init_locks(struct zk *z)
{
        pthread_condattr_t attr;

        (void)pthread_condattr_init(&attr);
        (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
        (void)pthread_mutex_init(&z->lock, NULL);
        (void)pthread_cond_init(&z->idle, &attr);
        (void)pthread_condattr_destroy(&attr);
}

int zk_new(const struct zk_options *o, struct zk **ret)
{
        cleanup_with(discardp) struct zk *z = NULL;
        int r;

        if (o->session_timeout_ms <= 0 || o->session_timeout_ms > INT32_MAX || !o->event_loop)
                return -EINVAL;
        z = calloc(1, sizeof(*z));
        if (!z)
                return -ENOMEM;
        init_locks(z);
        z->refs = 1;
        list_init(&z->retired);
        list_init(&z->queue);
        list_init(&z->sent);
        list_init(&z->delayed);
        list_init(&z->watches);
        z->session_timeout_ms = o->session_timeout_ms;
        z->op_timeout_ms = o->op_timeout_ms > 0 ? o->op_timeout_ms : DEFAULT_OP_TIMEOUT_MS;
        z->max_inflight = o->max_inflight > 0 ? o->max_inflight : DEFAULT_MAX_INFLIGHT;
        z->event_loop = o->event_loop;
        z->on_event = o->on_event;
        z->userdata = o->userdata;
        z->work_task = (struct loop_task){.fn = work, .userdata = z};
        z->event_task = (struct loop_task){.fn = deliver_events, .userdata = z};
        r = zk_hosts_parse(o->connect, &z->hosts, &z->chroot);
        if (r < 0)
                return r;
        z->chroot_len = strlen(z->chroot);
        r = init_loop(z);
        if (r < 0)
                return r;
        zoo_set_debug_level(ZOO_LOG_LEVEL_WARN); /* global; DEBUG touches freed handles (ZOOKEEPER-4809) */
        (void)pthread_mutex_lock(&z->lock);
        zk_post_work(z);
        (void)pthread_mutex_unlock(&z->lock);
        r = loop_thread_start(z->own); /* with all signals blocked: the library's threads inherit that */
        if (r < 0)
                return r;
        *ret = TAKE_PTR(z);
        return 0;
}

int zk_reopen(struct zk *z)
{
        int r = 0;

        (void)pthread_mutex_lock(&z->lock);
        if (z->state == ZKS_EXPIRED || z->state == ZKS_AUTH_FAILED) {
                zk_set_state(z, ZKS_STARTING);
                zk_post_work(z);
        } else {
                r = -EBUSY;
        }
        zk_unlock(z);
        return r;
}

void zk_abandon(struct zk *z)
{
        (void)pthread_mutex_lock(&z->lock);
        z->n_events = 0;
        if (z->state != ZKS_EXPIRED && z->state != ZKS_AUTH_FAILED && z->state != ZKS_CLOSED)
                end_session(z, ZKS_EXPIRED);
        zk_unlock(z);
}

/* Let what was sent come back, for a while: a write whose outcome is known is worth more than a quick close.
 */
static void wait_idle(struct zk *z)
{
        int64_t until_ms = clock_mono_ms() + CLOSE_DRAIN_MS;
        struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};

        while (!list_empty(&z->sent))
                if (pthread_cond_timedwait(&z->idle, &z->lock, &until) != 0)
                        return;
}

struct zk *zk_free(struct zk *z)
{
        struct zk_handle *h;
        struct loop *own;
        bool connected;

        if (!z)
                return NULL;
        (void)pthread_mutex_lock(&z->lock);
        connected = z->state == ZKS_CONNECTED;
        zk_set_state(z, ZKS_CLOSED);
        atomic_store(&z->lease_deadline_ms, 0);
        zk_fail_queued(z, -ECANCELED);
        if (connected)
                wait_idle(z);
        (void)pthread_mutex_unlock(&z->lock);

        /* Our thread first: nothing else may touch the handle while it is being closed. */
        loop_stop(z->own);
        loop_thread_join(z->own);
        z->resolution = zk_resolution_abandon(z->resolution);
        own = TAKE_PTR(z->own);

        (void)pthread_mutex_lock(&z->lock);
        h = TAKE_PTR(z->h);
        zk_fail_sent(z, -ECANCELED);
        (void)pthread_mutex_unlock(&z->lock);
        if (h)
                close_handle(h);
        loop_free(own); /* runs a posted work(): closes what is retired */

        (void)pthread_mutex_lock(&z->lock);
        z->refs--;
        zk_unlock(z);
        return NULL;
}

bool zk_is_connected(const struct zk *z)
{
        return atomic_load(&z->connected);
}

int64_t zk_session_id(const struct zk *z)
{
        return atomic_load(&z->session_id);
}

int64_t zk_negotiated_timeout_ms(const struct zk *z)
{
        return atomic_load(&z->negotiated_ms);
}

int64_t zk_lease_deadline_ms(const struct zk *z)
{
        return atomic_load(&z->lease_deadline_ms);
}

bool zk_lease_valid(const struct zk *z)
{
        return clock_boot_ms() < atomic_load(&z->lease_deadline_ms);
}

bool zk_session_is_own(const struct zk *z, int64_t session_id)
{
        struct zk *locked = (struct zk *)z; /* the lock is no part of the value */
        bool own = false;

        (void)pthread_mutex_lock(&locked->lock);
        for (size_t i = 0; i < z->n_own_sessions; i++)
                own = own || z->own_sessions[i] == session_id;
        zk_unlock(locked);
        return own;
}
