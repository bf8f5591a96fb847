/* Shared by the files of the session wrapper; nobody outside zk/ includes it.
 *
 * Threads: callers (any), the library's IO and completion threads (one pair a handle) and the wrapper's own
 * loop thread "zk", which alone opens and closes handles, beats and sweeps deadlines, so that the lease does
 * not depend on how busy any loop of the broker is.
 *
 * One lock (zk->lock) guards everything below. The library is called with it held: its threads call us
 * holding no lock of theirs, and only zookeeper_close() waits for them; that one is called without the lock.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <zookeeper/zookeeper.h>

#include "zk/zk.h"
#include "zk/zk_hosts.h"

/*
 *                  .-------------------- reopen --------------------.
 *                  v                                                |
 *   zk_new --> STARTING --> CONNECTING <--> PREPARING --> CONNECTED |
 *                               |  ^            |          |  |     |
 *                               |  '------------+----------'  |     |
 *                               '--> EXPIRED | AUTH_FAILED <--'-----'        any --> CLOSED
 */
enum zk_state {
        ZKS_STARTING,    /* no handle: resolving names, or waiting to try again */
        ZKS_CONNECTING,  /* a handle that is not connected: at first, or after a loss */
        ZKS_PREPARING,   /* connected, the chroot is being created */
        ZKS_CONNECTED,   /* operations flow */
        ZKS_EXPIRED,     /* the session is gone; waits for zk_reopen() */
        ZKS_AUTH_FAILED, /* likewise */
        ZKS_CLOSED,      /* zk_free() was called */
        N_ZK_STATES,
};

/* One zookeeper_init(): one session. Requests and watches the library may still call back hang on it; they
 * are freed by us after zookeeper_close(), because the library forgets callbacks at close (ZOOKEEPER-3868).
 * Callbacks of a handle that is no longer zk->h change nothing but their own bookkeeping. */
struct zk_handle {
        struct zk *z;
        zhandle_t *zh;
        struct list node;    /* zk->retired */
        struct list reqs;    /* zk_req.handle_node */
        struct list watches; /* zk_watch.node */
        int n_reqs;          /* user requests among reqs: what max_inflight bounds */
        int n_beats;         /* heartbeats among reqs */
        int64_t generation;
};

enum zk_req_kind {
        REQ_GET,
        REQ_EXISTS,
        REQ_CHILDREN,
        REQ_CREATE,
        REQ_SET,
        REQ_DELETE,
        REQ_SYNC,
        REQ_MULTI,
        REQ_DELAY,     /* never sent */
        REQ_HEARTBEAT, /* this and below: our own, without a callback */
        REQ_NUDGE,
        REQ_CHROOT,
        N_REQ_KINDS,
};

enum zk_req_state { REQ_QUEUED, REQ_SENT, REQ_DONE };

/* One operation: one allocation, strings and arrays behind it. Two references at most: the caller's, until
 * its callback has returned, and the library's, until its completion came or its handle is closed. */
struct zk_req {
        struct list node;        /* zk->queue or zk->sent while the caller waits */
        struct list handle_node; /* zk_handle.reqs while the library may call */
        struct loop_task task;
        struct zk *z;
        struct zk_handle *h; /* set when sent */
        struct loop *loop;
        zk_fn fn;
        void *userdata;
        struct zk_watch *watch;
        enum zk_req_kind kind;
        enum zk_req_state state;
        int refs;
        int64_t deadline_ms, sent_us; /* CLOCK_MONOTONIC */
        int64_t sent_boot_ms;
        const char *path, *data;
        size_t data_len;
        int32_t version;
        int create_flags;
        /* multi */
        size_t n_ops;
        zoo_op_t *ops;
        zoo_op_result_t *op_raw;
        struct Stat *op_raw_stats;
        int *op_results;
        struct zk_stat *op_stats;
        /* result, owned */
        struct zk_result res;
        char *res_data;
        char **res_children;
        char mem[];
};

/* Freed when nobody needs it: not the library (lib), not the caller (live), not a posted task (posted). */
struct zk_watch {
        struct list node; /* zk_handle.watches while lib */
        struct list all;  /* zk->watches from submission on */
        struct loop_task task;
        struct zk *z;
        struct loop *loop;
        zk_watch_fn fn;
        void *userdata;
        bool lib, live, posted;
        bool cancelled; /* zk_unwatch(): goes its way, but nobody is told */
        char path[];
};

#define ZK_EVENT_RING   8
#define ZK_OWN_SESSIONS 65

struct zk {
        pthread_mutex_t lock;
        pthread_cond_t idle; /* zk->sent became empty */
        long refs;           /* the owner, every req and watch, a posted event task */

        /* constant after zk_new() */
        struct zk_hosts *hosts;
        char *chroot; /* "" or "/a/b" */
        size_t chroot_len;
        int64_t session_timeout_ms, op_timeout_ms;
        int max_inflight;
        struct loop *event_loop;
        void (*on_event)(enum zk_event e, void *userdata);
        void *userdata;
        struct loop *own;
        struct loop_timer *tick, *retry;

        /* guarded by lock */
        enum zk_state state;
        struct zk_handle *h;
        struct list retired;
        struct list queue, sent; /* both in order of submission, hence of deadline */
        struct list delayed;
        struct list watches;
        struct loop_task work_task;
        bool work_posted;
        struct loop_task event_task;
        enum zk_event events[ZK_EVENT_RING];
        int n_events;
        bool event_posted;
        int64_t own_sessions[ZK_OWN_SESSIONS];
        size_t n_own_sessions;
        int64_t last_beat_ms, last_nudge_ms, lost_since_ms;

        /* own loop's thread only */
        struct zk_resolution *resolution;
        char *addresses; /* what the handle was given */
        int64_t retry_delay_ms, last_resolve_ms;
        int64_t n_handles;

        /* read by any thread without the lock */
        _Atomic bool connected;
        _Atomic int64_t session_id, negotiated_ms, lease_deadline_ms;
};

/* Every critical section ends here: unlocks, and frees @z when its last reference went meanwhile. */
void zk_unlock(struct zk *z);

/* zk_session.c; all locked */
void zk_set_state(struct zk *z, enum zk_state to);
void zk_emit(struct zk *z, enum zk_event e);
void zk_post_work(struct zk *z);
void zk_on_chroot(struct zk *z, int rc);
void zk_session_over(struct zk *z, enum zk_state to);

/* zk_req.c; all locked unless said */
int zk_error(int rc); /* library code -> errno; no lock */
/* No lock. @mem: bytes wanted behind it. NULL on out of memory. */
struct zk_req *zk_req_new(struct zk *z, struct loop *loop, enum zk_req_kind kind, size_t mem, zk_fn fn,
                          void *userdata);
void zk_submit(struct zk_req *q);                         /* no lock; takes over @q */
void zk_submit_delay(struct zk_req *q, int64_t delay_ms); /* likewise */
/* Completion thread. begin takes the lock; between the two the result is copied when the caller still waits;
 * end completes, drops the library's reference, sends what waits and unlocks. @copied: 0 or -ENOMEM. */
struct zk_req *zk_reply_begin(const void *data);
void zk_reply_end(struct zk_req *q, int rc, int copied);
void zk_pump(struct zk *z);
void zk_send_heartbeat(struct zk *z);
void zk_send_nudge(struct zk *z);
void zk_send_chroot(struct zk *z);
void zk_fail_queued(struct zk *z, int r); /* and the delayed */
void zk_fail_sent(struct zk *z, int r);
void zk_sweep(struct zk *z, int64_t now_ms);
void zk_forget_reqs(struct zk_handle *h); /* after zookeeper_close() */
extern struct metric zk_metric_expired, zk_metric_disconnects;

/* zk_calls.c; locked */
int zk_call(struct zk_req *q); /* hand it to the library; its code */

/* zk_watch.c; all locked unless said. A watch holds a reference to zk as long as it exists. */
struct zk_watch *zk_watch_new(struct zk *z, struct loop *loop, const char *path, zk_watch_fn fn,
                              void *userdata); /* no lock; takes its reference when submitted */
void zk_watch_on_event(zhandle_t *zh, int type, int state, const char *path, void *ctx); /* takes the lock */
void zk_watch_submitted(struct zk_watch *w);
void zk_watch_sent(struct zk_watch *w, struct zk_handle *h);
void zk_watch_unsent(struct zk_watch *w);            /* the library refused the call */
void zk_watch_reply(struct zk_watch *w, bool armed); /* not armed: the library has forgotten it */
void zk_watch_abandon(struct zk_watch *w);           /* the caller's operation failed: never fires */
void zk_watches_fire(struct zk_handle *h);
void zk_watches_forget(struct zk_handle *h); /* after zookeeper_close() */

/* zk_log.c */
void zk_log_line(const char *line); /* the library's callback: copies to a ring, nothing else */
void zk_log_drain(void);            /* [any thread] ring -> slog, at a limited rate */
