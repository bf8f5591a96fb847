/* One ZooKeeper session: pipelined asynchronous operations, completions on a loop of the caller's choice.
 *
 * Wraps libzookeeper_mt by the rules of its measured behaviour: async only, nothing done inside its callbacks
 * but posting, own deadline an operation, in-flight cap, own registry so that no completion is lost at close,
 * generation numbers so that callbacks of an old handle are dropped, own name resolution (IP literals are
 * passed on), a leader-confirmed heartbeat (sync) that is also the watchdog against ZOOKEEPER-4537. The
 * session, once expired, is gone: on_event(ZK_EXPIRED) is the last event; zk_reopen() starts a new one. */
#pragma once

#include "base/loop.h"
#include "base/util.h"

struct zk;

enum zk_event { ZK_CONNECTED, ZK_DISCONNECTED, ZK_EXPIRED, ZK_AUTH_FAILED };

struct zk_options {
        const char *connect;        /* "h1:p,h2:p/chroot" (R43); resolved by us */
        int64_t session_timeout_ms; /* asked for; the server may clamp */
        int64_t op_timeout_ms;      /* default 15000: a completion comes by then, -ETIMEDOUT at worst */
        int max_inflight;           /* default 1000 operations; more wait in FIFO order */
        struct loop *event_loop;    /* where session events are delivered */
        void (*on_event)(enum zk_event e, void *userdata); /* CONNECTED may repeat */
        void *userdata;
};

struct zk_stat {
        int64_t czxid, mzxid, ephemeral_owner;
        int64_t ctime_ms; /* by the server's clock */
        int64_t mtime_ms; /* of the last change, by the clock of ZooKeeper's leader */
        int32_t version, cversion, num_children;
};

/* r of a result: 0, or
 *   -ENOENT NONODE   -EEXIST NODEEXISTS   -ESTALE BADVERSION   -ENOTEMPTY   -EPERM NOAUTH
 *   -ECONNRESET connection loss: outcome unknown for writes   -ETIMEDOUT: outcome unknown
 *   -EOWNERDEAD session expired: outcome unknown   -ECANCELED closed   -EIO anything else */
struct zk_result {
        int r;
        const char
                *data; /* get: NUL-terminated copy, may be NULL for an empty node; create: the path created */
        size_t data_len;
        struct zk_stat stat;         /* get, exists, set, multi with one set */
        const char *const *children; /* children */
        size_t n_children;
        const int *op_results; /* multi: 0 or an errno per operation, in order; -ECANCELED: not tried */
        const struct zk_stat *op_stats; /* multi: stat of each set (else zeroed) */
        size_t n_ops;
};
/* Everything in @res dies when the callback returns. Exactly once an operation. Runs on @loop. */
typedef void (*zk_fn)(const struct zk_result *res, void *userdata);
/* One-shot: the node (or its children) changed, or the session went (then r of a re-read says so). Armed only
 * by an operation that succeeded (exists: also by -ENOENT); never fires otherwise, nor once zk_free() was
 * called. Fires before the callback of any read that shows the change, when both run on the same loop. */
typedef void (*zk_watch_fn)(const char *path, void *userdata);

int zk_new(const struct zk_options *o, struct zk **ret) must_check; /* copies options; starts connecting */
/* Close the session (ephemerals vanish). Operations in flight get up to a second to end, the others complete
 * with -ECANCELED; their callbacks may run after this returned. Blocks, at worst for some seconds when the
 * servers do not answer. From any thread, a callback of @z included; nobody may use @z meanwhile. */
struct zk *zk_free(struct zk *z);
DEFINE_FREEP(struct zk, zk_free)
int zk_reopen(struct zk *z)
        must_check; /* new session after EXPIRED or AUTH_FAILED; outstanding ops got -EOWNERDEAD */

/* [event loop] Give up the session, or the attempt at one: what is outstanding ends with -EOWNERDEAD, no
 * event comes, events not yet delivered are dropped, and zk_reopen() may follow. At the server the session
 * may live on until its timeout. Nothing after EXPIRED, AUTH_FAILED or zk_free(). */
void zk_abandon(struct zk *z);

bool zk_is_connected(const struct zk *z);  /* [any thread] a hint, never a fence */
int64_t zk_session_id(const struct zk *z); /* 0 before the first connect */
int64_t zk_negotiated_timeout_ms(const struct zk *z);
/* F2: CLOCK_BOOTTIME ms until which the session provably lives: send time of the last leader-confirmed
 * operation + 2/3 of the negotiated timeout; 0 when none. [any thread], lock-free. */
int64_t zk_lease_deadline_ms(const struct zk *z);
bool zk_lease_valid(const struct zk *z); /* clock_boot_ms() < deadline */
/* [any thread] Was @session_id a session of this zk, the current one or one of the last 64 before it? Tells
 * an ephemeral that outlived its session (KAFKA-7165, KAFKA-14845) from another process's. */
bool zk_session_is_own(const struct zk *z, int64_t session_id);
void zk_metrics_register(void); /* stepdown_zk_*; once, at start-up */

/* Operations: [any thread]; @loop is where @fn runs. They fail at once with -errno (and no callback) only for
 * -ENOMEM and -EINVAL (a malformed path, data over 1,000,000 bytes). Path and data are copied. While
 * disconnected they wait in FIFO order until the session is back, gone, or op_timeout_ms is over. version -1:
 * any. watch NULL: none. Inside a callback @z is
 * always safe to use, even after zk_free(): then everything answers -ECANCELED. */
int zk_get(struct zk *z, struct loop *loop, const char *path, zk_watch_fn watch, zk_fn fn, void *userdata)
        must_check;
int zk_exists(struct zk *z, struct loop *loop, const char *path, zk_watch_fn watch, zk_fn fn, void *userdata)
        must_check;
int zk_children(struct zk *z, struct loop *loop, const char *path, zk_watch_fn watch, zk_fn fn,
                void *userdata) must_check;
int zk_create(struct zk *z, struct loop *loop, const char *path, const char *data, bool ephemeral,
              bool sequential, zk_fn fn, void *userdata) must_check;
int zk_set(struct zk *z, struct loop *loop, const char *path, const char *data, int32_t version, zk_fn fn,
           void *userdata) must_check;
int zk_delete(struct zk *z, struct loop *loop, const char *path, int32_t version, zk_fn fn, void *userdata)
        must_check;
int zk_sync(struct zk *z, struct loop *loop, zk_fn fn, void *userdata) must_check;

enum zk_op_type {
        ZK_OP_CREATE,
        ZK_OP_CREATE_EPHEMERAL,
        ZK_OP_CREATE_SEQUENTIAL, /* the server appends ten digits to the path; which ones is not told */
        ZK_OP_SET,
        ZK_OP_DELETE,
        ZK_OP_CHECK
};
struct zk_op {
        enum zk_op_type type;
        const char *path, *data; /* data NULL: empty node */
        int32_t version;
};
/* All or nothing. res->r is the first real error. At most 1000 operations and 512 KiB. */
int zk_multi(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn, void *userdata)
        must_check;
/* Not an operation but ends like one: 0 after @delay_ms, earlier with -EOWNERDEAD or -ECANCELED. */
int zk_delay(struct zk *z, struct loop *loop, int64_t delay_ms, zk_fn fn, void *userdata) must_check;
/* No watch armed with this @userdata fires any more. On the thread of the loop they were armed with. */
void zk_unwatch(struct zk *z, const void *userdata);
