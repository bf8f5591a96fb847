/* The registry of operations: FIFO queue, in-flight cap, deadlines, and completion exactly once whatever the
 * library does: it may answer late, or never (ZOOKEEPER-3868). */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "zk/zk_internal.h"

#define MAX_BEATS 16 /* unanswered heartbeats; the library drops the connection after 2/3 of the timeout */

static struct metric metric_latency = {
        .type = METRIC_T_HISTOGRAM,
        .name = "stepdown_zk_request_seconds",
        .help = "Time from sending a ZooKeeper operation to its reply",
};
static struct metric metric_timeouts = {
        .type = METRIC_T_COUNTER,
        .name = "stepdown_zk_timeouts_total",
        .help = "ZooKeeper operations given up at their deadline, outcome unknown",
};
struct metric zk_metric_expired = {
        .type = METRIC_T_COUNTER,
        .name = "stepdown_zk_sessions_expired_total",
        .help = "ZooKeeper sessions that expired",
};
struct metric zk_metric_disconnects = {
        .type = METRIC_T_COUNTER,
        .name = "stepdown_zk_disconnects_total",
        .help = "Connections to ZooKeeper lost while the session lived",
};

void zk_metrics_register(void)
{
        metrics_register(&metric_latency);
        metrics_register(&metric_timeouts);
        metrics_register(&zk_metric_expired);
        metrics_register(&zk_metric_disconnects);
}

static const struct {
        int rc, r;
} errors[] = {
        {ZOK, 0},
        {ZNONODE, -ENOENT},
        {ZNODEEXISTS, -EEXIST},
        {ZBADVERSION, -ESTALE},
        {ZNOTEMPTY, -ENOTEMPTY},
        {ZNOAUTH, -EPERM},
        {ZCONNECTIONLOSS, -ECONNRESET},
        {ZSESSIONMOVED, -ECONNRESET},
        {ZOPERATIONTIMEOUT, -ETIMEDOUT},
        {ZSESSIONEXPIRED, -EOWNERDEAD},
        {ZINVALIDSTATE, -EOWNERDEAD},
        {ZAUTHFAILED, -EOWNERDEAD},
        {ZCLOSING, -ECANCELED},
};

int zk_error(int rc)
{
        for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
                if (errors[i].rc == rc)
                        return errors[i].r;
        return -EIO;
}

/* What only the ensemble's leader can have confirmed: a read or ping is a follower's word (F2). */
static bool leader_confirms(enum zk_req_kind kind)
{
        switch (kind) {
        case REQ_CREATE:
        case REQ_SET:
        case REQ_DELETE:
        case REQ_MULTI:
        case REQ_SYNC:
        case REQ_HEARTBEAT:
                return true;
        default:
                return false;
        }
}

static void req_free(struct zk_req *q)
{
        if (q->res_children)
                for (size_t i = 0; i < q->res.n_children; i++)
                        free(q->res_children[i]);
        free(q->res_children);
        free(q->res_data);
        free(q->ops);
        free(q->op_raw);
        free(q->op_raw_stats);
        free(q->op_results);
        free(q->op_stats);
        free(q);
}

static void req_put(struct zk_req *q)
{
        if (--q->refs > 0)
                return;
        q->z->refs--;
        req_free(q);
}

static void deliver(void *userdata)
{
        struct zk_req *q = userdata;
        struct zk *z = q->z;

        q->fn(&q->res, q->userdata);
        (void)pthread_mutex_lock(&z->lock);
        req_put(q);
        zk_unlock(z);
}

struct zk_req *zk_req_new(struct zk *z, struct loop *loop, enum zk_req_kind kind, size_t mem, zk_fn fn,
                          void *userdata)
{
        struct zk_req *q = calloc(1, sizeof(*q) + mem);

        if (!q)
                return NULL;
        list_init(&q->node);
        list_init(&q->handle_node);
        q->task = (struct loop_task){.fn = deliver, .userdata = q};
        q->z = z;
        q->loop = loop;
        q->fn = fn;
        q->userdata = userdata;
        q->kind = kind;
        q->refs = 1;
        return q;
}

/* The caller's side ends, once. */
static void finish(struct zk_req *q, int r)
{
        struct zk *z = q->z;
        bool sent = q->state == REQ_SENT;

        list_remove(&q->node);
        if (sent && list_empty(&z->sent))
                (void)pthread_cond_broadcast(&z->idle);
        q->state = REQ_DONE;
        q->res.r = r;
        if (q->watch && r < 0 && !(q->kind == REQ_EXISTS && r == -ENOENT)) {
                zk_watch_abandon(q->watch);
                if (!sent)
                        q->watch = NULL; /* sent: the library still has it, zk_reply_end() needs it */
        }
        if (q->kind == REQ_MULTI && r < 0 && !q->res.op_results) {
                for (size_t i = 0; i < q->n_ops; i++)
                        q->op_results[i] = r;
                q->res.op_results = q->op_results;
                q->res.op_stats = q->op_stats;
                q->res.n_ops = q->n_ops;
        }
        loop_post_task(q->loop, &q->task);
}

static void extend_lease(struct zk *z, int64_t sent_boot_ms)
{
        int64_t deadline_ms = sent_boot_ms + atomic_load(&z->negotiated_ms) * 2 / 3;

        if (deadline_ms > atomic_load(&z->lease_deadline_ms))
                atomic_store(&z->lease_deadline_ms, deadline_ms);
}

/* Give it to the library, which holds a reference from here until it replies or its handle is closed. */
static int send_now(struct zk_req *q, int *counter)
{
        struct zk_handle *h = q->z->h;
        int rc;

        q->h = h;
        q->refs++;
        (*counter)++;
        list_push_back(&h->reqs, &q->handle_node);
        if (q->watch)
                zk_watch_sent(q->watch, h);
        q->sent_us = clock_mono_us();
        q->sent_boot_ms = clock_boot_ms(); /* before the call: the lease must not begin later (F2) */
        rc = zk_call(q);
        if (rc == ZOK)
                return 0;
        if (q->watch)
                zk_watch_unsent(q->watch);
        list_remove(&q->handle_node);
        (*counter)--;
        q->refs--;
        return zk_error(rc);
}

void zk_pump(struct zk *z)
{
        while (z->state == ZKS_CONNECTED && !list_empty(&z->queue) && z->h->n_reqs < z->max_inflight) {
                struct zk_req *q = list_entry(z->queue.next, struct zk_req, node);
                int r;

                list_remove(&q->node);
                r = send_now(q, &z->h->n_reqs);
                if (r < 0) {
                        finish(q, r);
                        continue;
                }
                q->state = REQ_SENT;
                list_push_back(&z->sent, &q->node);
        }
}

static void submit_to(struct zk_req *q, struct list *list)
{
        struct zk *z = q->z;

        (void)pthread_mutex_lock(&z->lock);
        z->refs++;
        if (q->watch)
                zk_watch_submitted(q->watch);
        if (z->state == ZKS_CLOSED) {
                finish(q, -ECANCELED);
        } else if (z->state == ZKS_EXPIRED || z->state == ZKS_AUTH_FAILED) {
                finish(q, -EOWNERDEAD);
        } else if (q->kind == REQ_DELAY && q->deadline_ms <= clock_mono_ms()) {
                finish(q, 0);
        } else {
                list_push_back(list, &q->node);
                zk_pump(z);
        }
        zk_unlock(z);
}

void zk_submit(struct zk_req *q)
{
        struct zk *z = q->z;

        q->deadline_ms = clock_mono_ms() + z->op_timeout_ms;
        submit_to(q, &z->queue);
}

void zk_submit_delay(struct zk_req *q, int64_t delay_ms)
{
        q->deadline_ms = clock_mono_ms() + delay_ms;
        submit_to(q, &q->z->delayed);
}

/* What a reply means. A request that the session took with it may come back with any code of the library's
 * own (seen for a multi): the session is what ended it. A reply cut short is a lost one. */
static int reply_error(const struct zk_handle *h, int rc)
{
        int r = zk_error(rc);

        if (r != -EIO)
                return r;
        if (is_unrecoverable(h->zh))
                return -EOWNERDEAD;
        return rc == ZMARSHALLINGERROR ? -ECONNRESET : r;
}

struct zk_req *zk_reply_begin(const void *data)
{
        struct zk_req *q = (struct zk_req *)data;

        (void)pthread_mutex_lock(&q->z->lock);
        return q;
}

void zk_reply_end(struct zk_req *q, int rc, int copied)
{
        struct zk *z = q->z;
        struct zk_handle *h = q->h;
        bool current = z->h == h;

        if (q->watch) {
                bool armed = rc == ZOK || (q->kind == REQ_EXISTS && rc == ZNONODE);

                zk_watch_reply(q->watch, armed);
                if (!armed)
                        q->watch = NULL;
        }
        list_remove(&q->handle_node);
        if (q->kind == REQ_HEARTBEAT)
                h->n_beats--;
        if (rc == ZOK && current && leader_confirms(q->kind))
                extend_lease(z, q->sent_boot_ms);
        if (q->kind == REQ_CHROOT && current && q->version == 1)
                zk_on_chroot(z, rc);
        if (q->kind < REQ_HEARTBEAT) {
                h->n_reqs--;
                metric_observe_us(&metric_latency, clock_mono_us() - q->sent_us);
                if (q->state == REQ_SENT)
                        finish(q, copied < 0 ? copied : reply_error(h, rc));
        }
        req_put(q);
        /* The server may say so while the connection stands (the session was closed by someone who knows its
         * id): the library takes that for an ordinary error and, kept alive by our heartbeats, never hears
         * more. */
        if (current && rc == ZSESSIONEXPIRED)
                zk_session_over(z, ZKS_EXPIRED);
        else if (current)
                zk_pump(z);
        zk_unlock(z);
}

/* --- our own requests: no caller waits, no memory is no reason to fail: the next tick tries again --- */

static void send_own(struct zk *z, enum zk_req_kind kind, const char *path, size_t path_len, int32_t version)
{
        struct zk_req *q;
        int ignored = 0;

        q = zk_req_new(z, NULL, kind, path_len + 1, NULL, NULL);
        if (!q)
                return;
        memcpy(q->mem, path, path_len);
        q->path = q->mem;
        q->version = version;
        q->state = REQ_DONE;
        z->refs++;
        (void)send_now(q, kind == REQ_HEARTBEAT ? &z->h->n_beats : &ignored); /* the session event says why */
        req_put(q);
}

void zk_send_heartbeat(struct zk *z)
{
        z->last_beat_ms = clock_mono_ms();
        if (z->h->n_beats < MAX_BEATS)
                send_own(z, REQ_HEARTBEAT, "/", 1, -1);
}

void zk_send_nudge(struct zk *z)
{
        z->last_nudge_ms = clock_mono_ms();
        send_own(z, REQ_NUDGE, "/", 1, -1);
}

/* One create a component, pipelined; the last one's outcome counts. */
void zk_send_chroot(struct zk *z)
{
        for (size_t i = 1; i <= z->chroot_len; i++)
                if (z->chroot[i] == '/' || z->chroot[i] == '\0')
                        send_own(z, REQ_CHROOT, z->chroot, i, i == z->chroot_len);
}

/* --- endings --- */

void zk_fail_queued(struct zk *z, int r)
{
        while (!list_empty(&z->queue))
                finish(list_entry(z->queue.next, struct zk_req, node), r);
        while (!list_empty(&z->delayed))
                finish(list_entry(z->delayed.next, struct zk_req, node), r);
}

void zk_fail_sent(struct zk *z, int r)
{
        while (!list_empty(&z->sent))
                finish(list_entry(z->sent.next, struct zk_req, node), r);
}

static void sweep_list(struct list *l, int64_t now_ms)
{
        while (!list_empty(l)) {
                struct zk_req *q = list_entry(l->next, struct zk_req, node);

                if (q->deadline_ms > now_ms)
                        return;
                metric_add(&metric_timeouts, 1);
                finish(q, -ETIMEDOUT);
        }
}

void zk_sweep(struct zk *z, int64_t now_ms)
{
        sweep_list(&z->sent, now_ms);
        sweep_list(&z->queue, now_ms);
        list_for_each_safe (it, tmp, &z->delayed) {
                struct zk_req *q = list_entry(it, struct zk_req, node);

                if (q->deadline_ms <= now_ms)
                        finish(q, 0);
        }
}

void zk_forget_reqs(struct zk_handle *h)
{
        while (!list_empty(&h->reqs)) {
                struct zk_req *q = list_entry(h->reqs.next, struct zk_req, handle_node);

                list_remove(&q->handle_node);
                if (q->state == REQ_SENT)
                        finish(q, -ECANCELED);
                q->watch = NULL; /* on the handle's own list */
                req_put(q);
        }
}
