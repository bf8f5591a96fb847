#include "cli/zk_admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "zk/zk_hosts.h"

#define SESSION_TIMEOUT_MS 10000
#define PATH_SIZE          1024
#define MAX_MULTI          16

struct zk_admin {
        struct zk *zk;
        struct loop *loop;
        char *servers, *chroot; /* what stands before and after the first '/' */
        int64_t timeout_ms;
        bool connected, timed_out;
        char error[ZK_ADMIN_TEXT_SIZE];
};

const char *zk_admin_error(const struct zk_admin *z)
{
        return z->error;
}

/* --- the session --- */

static void on_event(enum zk_event e, void *userdata)
{
        struct zk_admin *z = userdata;

        z->connected = e == ZK_CONNECTED;
        loop_stop(z->loop);
}

static int on_timeout(struct loop *l, void *userdata)
{
        struct zk_admin *z = userdata;

        z->timed_out = true;
        loop_stop(l);
        return 0;
}

static int unreachable(struct zk_admin *z)
{
        (void)snprintf(z->error, sizeof(z->error),
                       "no ZooKeeper server of %.300s answered within %" PRId64 ".%" PRId64 " s", z->servers,
                       z->timeout_ms / 1000, z->timeout_ms % 1000 / 100);
        return -EHOSTUNREACH;
}

static int wait_connected(struct zk_admin *z)
{
        struct loop_timer *timer = NULL;
        int r;

        r = loop_add_timer(z->loop, on_timeout, z, &timer);
        if (r < 0)
                return r;
        loop_timer_arm(timer, z->timeout_ms, 0);
        while (r == 0 && !z->connected && !z->timed_out)
                r = loop_run(z->loop);
        loop_timer_remove(timer);
        if (r == 0 && !z->connected)
                r = unreachable(z);
        return r;
}

static int start(struct zk_admin *z)
{
        const struct zk_options o = {
                .connect = z->servers,
                .session_timeout_ms = SESSION_TIMEOUT_MS,
                .op_timeout_ms = z->timeout_ms,
                .event_loop = z->loop,
                .on_event = on_event,
                .userdata = z,
        };
        int r;

        r = zk_new(&o, &z->zk);
        if (r == 0)
                r = wait_connected(z);
        return r;
}

static int split(struct zk_admin *z, const char *connect)
{
        cleanup_with(zk_hosts_freep) struct zk_hosts *hosts = NULL;
        int r;

        r = zk_hosts_parse(connect, &hosts, &z->chroot);
        if (r < 0)
                return r;
        z->servers = strndup(connect, strcspn(connect, "/"));
        return z->servers ? 0 : -ENOMEM;
}

int zk_admin_open(const char *connect, int64_t timeout_ms, struct zk_admin **ret,
                  char error[ZK_ADMIN_TEXT_SIZE])
{
        cleanup_with(zk_admin_closep) struct zk_admin *z = calloc(1, sizeof(*z));
        int r;

        error[0] = '\0';
        if (!z)
                return -ENOMEM;
        z->timeout_ms = timeout_ms;
        r = split(z, connect);
        if (r == -EINVAL)
                (void)snprintf(z->error, sizeof(z->error),
                               "'%.300s' is not a list of ZooKeeper servers, host:port,host:port[/chroot]",
                               connect);
        if (r == 0)
                r = loop_new("zk-admin", &z->loop);
        /* What the session says of itself is for daemons; here each failure has its own sentence. */
        slog_set_level(SLOG_ERROR);
        if (r == 0)
                r = start(z);
        if (r == 0)
                *ret = TAKE_PTR(z);
        else
                (void)snprintf(error, ZK_ADMIN_TEXT_SIZE, "%s", z->error);
        return r;
}

struct zk_admin *zk_admin_close(struct zk_admin *z)
{
        if (!z)
                return NULL;
        z->zk = zk_free(z->zk);
        z->loop = loop_free(z->loop);
        free(z->servers);
        free(z->chroot);
        free(z);
        return NULL;
}

/* --- calls --- */

struct call {
        struct zk_admin *z;
        struct arena *arena;
        struct zk_value *values; /* of reads */
        char **children;
        size_t n_children;
        size_t open; /* operations without a result */
        int r;       /* the first error */
};

struct read {
        struct call *call;
        struct zk_value *value;
};

static void call_end_one(struct call *c, int r)
{
        if (c->r == 0)
                c->r = r;
        if (--c->open == 0)
                loop_stop(c->z->loop);
}

static int call_wait(struct call *c)
{
        int r = 0;

        while (r == 0 && c->open > 0)
                r = loop_run(c->z->loop);
        return r < 0 ? r : c->r;
}

static int full_path(const struct zk_admin *z, const char *path, char out[PATH_SIZE])
{
        int n = snprintf(out, PATH_SIZE, "%s%s", z->chroot, path);

        return n > 0 && n < PATH_SIZE ? 0 : -EINVAL;
}

/* Turn @r into a sentence; @doing: "read", "write". Returns @r, lost connections as -EHOSTUNREACH. */
static int explain(struct zk_admin *z, const char *doing, const char *path, int r)
{
        switch (r) {
        case 0:
                return 0;
        case -EPERM:
                (void)snprintf(z->error, sizeof(z->error), "no permission to %s %s%.300s in ZooKeeper (%s)",
                               doing, z->chroot, path, z->servers);
                return r;
        case -ECONNRESET:
        case -ETIMEDOUT:
        case -EOWNERDEAD:
                return unreachable(z);
        case -EINVAL: /* the paths are well-formed: it is the size */
                (void)snprintf(z->error, sizeof(z->error),
                               "cannot write %s%.300s in ZooKeeper: more than a znode holds", z->chroot,
                               path);
                return -E2BIG;
        default:
                (void)snprintf(z->error, sizeof(z->error), "cannot %s %s%.300s in ZooKeeper (%s): %s", doing,
                               z->chroot, path, z->servers,
                               r == -ENOENT   ? "there is no such node"
                               : r == -ESTALE ? "somebody else changed it at the same time"
                                              : strerror(-r));
                return r;
        }
}

static void on_read(const struct zk_result *res, void *userdata)
{
        struct read *read = userdata;
        struct zk_value *v = read->value;
        char *copy;

        v->r = res->r;
        if (res->r == 0) {
                copy = arena_strndup(read->call->arena, res->data ? res->data : "", res->data_len);
                v->data = copy;
                v->len = res->data_len;
                v->version = res->stat.version;
                if (!copy)
                        v->r = -ENOMEM;
        }
        call_end_one(read->call, v->r == -ENOENT ? 0 : v->r);
}

int zk_admin_get_all(struct zk_admin *z, const char *const *paths, size_t n, struct arena *a,
                     struct zk_value *ret)
{
        struct call c = {.z = z, .arena = a};
        struct read *reads = arena_alloc(a, n + 1, sizeof(*reads));
        int r = reads ? 0 : -ENOMEM;

        memset(ret, 0, n * sizeof(*ret));
        for (size_t i = 0; r == 0 && i < n; i++) {
                char path[PATH_SIZE];

                reads[i] = (struct read){.call = &c, .value = &ret[i]};
                r = full_path(z, paths[i], path);
                if (r == 0)
                        r = zk_get(z->zk, z->loop, path, NULL, on_read, &reads[i]);
                c.open += r == 0;
        }
        if (r < 0)
                c.r = r;
        r = call_wait(&c);
        for (size_t i = 0; i < n && r < 0; i++)
                if (ret[i].r == r)
                        return explain(z, "read", paths[i], r);
        return explain(z, "read", n > 0 ? paths[0] : "", r);
}

int zk_admin_get(struct zk_admin *z, const char *path, struct arena *a, struct zk_value *ret)
{
        int r = zk_admin_get_all(z, &path, 1, a, ret);

        return r < 0 ? r : ret->r;
}

static void on_children(const struct zk_result *res, void *userdata)
{
        struct call *c = userdata;
        int r = res->r;

        if (r == 0) {
                c->children = arena_alloc(c->arena, res->n_children + 1, sizeof(char *));
                r = c->children ? 0 : -ENOMEM;
        }
        for (size_t i = 0; r == 0 && i < res->n_children; i++) {
                c->children[i] = arena_strndup(c->arena, res->children[i], strlen(res->children[i]));
                r = c->children[i] ? 0 : -ENOMEM;
                c->n_children = i + 1;
        }
        call_end_one(c, r);
}

int zk_admin_children(struct zk_admin *z, const char *path, struct arena *a, char ***ret, size_t *ret_n)
{
        struct call c = {.z = z, .arena = a, .open = 1};
        char full[PATH_SIZE];
        int r;

        r = full_path(z, path, full);
        if (r == 0)
                r = zk_children(z->zk, z->loop, full, NULL, on_children, &c);
        if (r == 0)
                r = call_wait(&c);
        if (r < 0)
                return explain(z, "list", path, r);
        *ret = c.children;
        *ret_n = c.n_children;
        return 0;
}

static void on_done(const struct zk_result *res, void *userdata)
{
        call_end_one(userdata, res->r);
}

static int create_once(struct zk_admin *z, const char *path, const char *data)
{
        struct call c = {.z = z, .open = 1};
        char full[PATH_SIZE];
        int r;

        r = full_path(z, path, full);
        if (r == 0)
                r = zk_create(z->zk, z->loop, full, data, false, false, on_done, &c);
        return r == 0 ? call_wait(&c) : r;
}

/* Everything between the chroot and the last component. */
static int create_parents(struct zk_admin *z, const char *path)
{
        char parent[PATH_SIZE];
        int r = 0;

        for (const char *p = strchr(path + 1, '/'); p && (r == 0 || r == -EEXIST); p = strchr(p + 1, '/')) {
                (void)snprintf(parent, sizeof(parent), "%.*s", (int)(p - path), path);
                r = create_once(z, parent, NULL);
        }
        return r == -EEXIST ? 0 : r;
}

int zk_admin_create(struct zk_admin *z, const char *path, const char *data)
{
        int r;

        r = create_once(z, path, data);
        if (r == -ENOENT) {
                r = create_parents(z, path);
                if (r == 0)
                        r = create_once(z, path, data);
        }
        return r == -EEXIST ? r : explain(z, "create", path, r);
}

int zk_admin_set(struct zk_admin *z, const char *path, const char *data, int32_t version)
{
        struct call c = {.z = z, .open = 1};
        char full[PATH_SIZE];
        int r;

        r = full_path(z, path, full);
        if (r == 0)
                r = zk_set(z->zk, z->loop, full, data, version, on_done, &c);
        if (r == 0)
                r = call_wait(&c);
        return explain(z, "write", path, r);
}

int zk_admin_multi(struct zk_admin *z, const struct zk_op *ops, size_t n)
{
        struct call c = {.z = z, .open = 1};
        char paths[MAX_MULTI][PATH_SIZE];
        struct zk_op full[MAX_MULTI];
        int r = n <= MAX_MULTI ? 0 : -EINVAL;

        for (size_t i = 0; r == 0 && i < n; i++) {
                full[i] = ops[i];
                full[i].path = paths[i];
                r = full_path(z, ops[i].path, paths[i]);
        }
        if (r == 0)
                r = zk_multi(z->zk, z->loop, full, n, on_done, &c);
        if (r == 0)
                r = call_wait(&c);
        return r == -EEXIST ? r : explain(z, "write", ops[n - 1].path, r);
}
