/* The public operations: check, copy, submit. */
#include <errno.h>
#include <string.h>

#include "zk/zk_internal.h"

#define MAX_DATA_BYTES  1000000      /* the server closes the connection at jute.maxbuffer, 1,048,575 */
#define MAX_MULTI_BYTES (512 * 1024) /* its reply carries a Stat an operation, and others want their turn */
#define MAX_MULTI_OPS   1000
#define OP_OVERHEAD     64 /* headers and ACL of an operation on the wire, rounded up */

static int check_path(const char *path)
{
        size_t len;

        if (!path || path[0] != '/')
                return -EINVAL;
        len = strlen(path);
        if (len > 1 && path[len - 1] == '/')
                return -EINVAL;
        for (size_t i = 1; i < len; i++)
                if ((path[i] == '/' && path[i - 1] == '/') || (unsigned char)path[i] < 0x20)
                        return -EINVAL;
        return 0;
}

/* Bytes for @path below the chroot, its NUL included. */
static size_t full_path_size(const struct zk *z, const char *path)
{
        return z->chroot_len + strlen(path) + 1;
}

/* Write chroot + @path at @at, advance it. "/" is the chroot itself. */
static const char *put_path(const struct zk *z, const char *path, char **at)
{
        const char *start = *at;
        size_t len = strlen(path);

        memcpy(*at, z->chroot, z->chroot_len);
        *at += z->chroot_len;
        if (len == 1 && z->chroot_len > 0)
                len = 0;
        memcpy(*at, path, len);
        *at += len;
        *(*at)++ = '\0';
        return start;
}

static const char *put_data(const char *data, size_t len, char **at)
{
        const char *start = *at;

        memcpy(*at, data, len);
        *at += len;
        *(*at)++ = '\0';
        return start;
}

static int build(struct zk *z, struct loop *loop, enum zk_req_kind kind, const char *path, const char *data,
                 zk_fn fn, void *userdata, struct zk_req **ret)
{
        size_t data_len = data ? strlen(data) : 0;
        struct zk_req *q;
        char *at;
        int r;

        r = check_path(path);
        if (r < 0)
                return r;
        if (data_len > MAX_DATA_BYTES || !loop || !fn)
                return -EINVAL;
        q = zk_req_new(z, loop, kind, full_path_size(z, path) + data_len + 1, fn, userdata);
        if (!q)
                return -ENOMEM;
        at = q->mem;
        q->path = put_path(z, path, &at);
        if (data) {
                q->data = put_data(data, data_len, &at);
                q->data_len = data_len;
        }
        q->version = -1;
        *ret = q;
        return 0;
}

static int read_op(struct zk *z, struct loop *loop, enum zk_req_kind kind, const char *path,
                   zk_watch_fn watch, zk_fn fn, void *userdata)
{
        struct zk_req *q;
        int r;

        r = build(z, loop, kind, path, NULL, fn, userdata, &q);
        if (r < 0)
                return r;
        if (watch) {
                q->watch = zk_watch_new(z, loop, path, watch, userdata);
                if (!q->watch) {
                        free(q);
                        return -ENOMEM;
                }
        }
        zk_submit(q);
        return 0;
}

int zk_get(struct zk *z, struct loop *loop, const char *path, zk_watch_fn watch, zk_fn fn, void *userdata)
{
        return read_op(z, loop, REQ_GET, path, watch, fn, userdata);
}

int zk_exists(struct zk *z, struct loop *loop, const char *path, zk_watch_fn watch, zk_fn fn, void *userdata)
{
        return read_op(z, loop, REQ_EXISTS, path, watch, fn, userdata);
}

int zk_children(struct zk *z, struct loop *loop, const char *path, zk_watch_fn watch, zk_fn fn,
                void *userdata)
{
        return read_op(z, loop, REQ_CHILDREN, path, watch, fn, userdata);
}

int zk_create(struct zk *z, struct loop *loop, const char *path, const char *data, bool ephemeral,
              bool sequential, zk_fn fn, void *userdata)
{
        struct zk_req *q;
        int r;

        r = build(z, loop, REQ_CREATE, path, data, fn, userdata, &q);
        if (r < 0)
                return r;
        q->create_flags = (ephemeral ? ZOO_EPHEMERAL : 0) | (sequential ? ZOO_SEQUENCE : 0);
        zk_submit(q);
        return 0;
}

int zk_set(struct zk *z, struct loop *loop, const char *path, const char *data, int32_t version, zk_fn fn,
           void *userdata)
{
        struct zk_req *q;
        int r;

        r = build(z, loop, REQ_SET, path, data, fn, userdata, &q);
        if (r < 0)
                return r;
        q->version = version;
        zk_submit(q);
        return 0;
}

int zk_delete(struct zk *z, struct loop *loop, const char *path, int32_t version, zk_fn fn, void *userdata)
{
        struct zk_req *q;
        int r;

        r = build(z, loop, REQ_DELETE, path, NULL, fn, userdata, &q);
        if (r < 0)
                return r;
        q->version = version;
        zk_submit(q);
        return 0;
}

int zk_sync(struct zk *z, struct loop *loop, zk_fn fn, void *userdata)
{
        struct zk_req *q;
        int r;

        r = build(z, loop, REQ_SYNC, "/", NULL, fn, userdata, &q);
        if (r < 0)
                return r;
        zk_submit(q);
        return 0;
}

int zk_delay(struct zk *z, struct loop *loop, int64_t delay_ms, zk_fn fn, void *userdata)
{
        struct zk_req *q;
        int r;

        r = build(z, loop, REQ_DELAY, "/", NULL, fn, userdata, &q);
        if (r < 0)
                return r;
        zk_submit_delay(q, delay_ms);
        return 0;
}

static int multi_size(const struct zk *z, const struct zk_op *ops, size_t n, size_t *ret)
{
        size_t bytes = 0, wire = 0;
        int r;

        if (n == 0 || n > MAX_MULTI_OPS)
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                size_t data_len = ops[i].data ? strlen(ops[i].data) : 0;

                r = check_path(ops[i].path);
                if (r < 0)
                        return r;
                bytes += full_path_size(z, ops[i].path) + data_len + 1;
                wire += full_path_size(z, ops[i].path) + data_len + OP_OVERHEAD;
                if (wire > MAX_MULTI_BYTES)
                        return -EINVAL;
        }
        *ret = bytes;
        return 0;
}

static int create_flags(enum zk_op_type type)
{
        if (type == ZK_OP_CREATE_EPHEMERAL)
                return ZOO_EPHEMERAL;
        return type == ZK_OP_CREATE_SEQUENTIAL ? ZOO_SEQUENCE : 0;
}

static void multi_put(struct zk_req *q, const struct zk_op *op, size_t i, char **at)
{
        const char *path = put_path(q->z, op->path, at);
        size_t len = op->data ? strlen(op->data) : 0;
        const char *data = op->data ? put_data(op->data, len, at) : NULL;
        int data_len = data ? (int)len : -1;

        switch (op->type) {
        case ZK_OP_CREATE:
        case ZK_OP_CREATE_EPHEMERAL:
        case ZK_OP_CREATE_SEQUENTIAL:
                zoo_create_op_init(&q->ops[i], path, data, data_len, &ZOO_OPEN_ACL_UNSAFE,
                                   create_flags(op->type), NULL, 0);
                break;
        case ZK_OP_SET:
                zoo_set_op_init(&q->ops[i], path, data, data_len, op->version, &q->op_raw_stats[i]);
                break;
        case ZK_OP_DELETE:
                zoo_delete_op_init(&q->ops[i], path, op->version);
                break;
        case ZK_OP_CHECK:
                zoo_check_op_init(&q->ops[i], path, op->version);
                break;
        }
}

static void multi_discard(struct zk_req *q)
{
        free(q->ops);
        free(q->op_raw);
        free(q->op_raw_stats);
        free(q->op_results);
        free(q->op_stats);
        free(q);
}

int zk_multi(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn, void *userdata)
{
        struct zk_req *q;
        size_t bytes;
        char *at;
        int r;

        r = multi_size(z, ops, n, &bytes);
        if (r < 0)
                return r;
        if (!loop || !fn)
                return -EINVAL;
        q = zk_req_new(z, loop, REQ_MULTI, bytes, fn, userdata);
        if (!q)
                return -ENOMEM;
        q->ops = calloc(n, sizeof(*q->ops));
        q->op_raw = calloc(n, sizeof(*q->op_raw));
        q->op_raw_stats = calloc(n, sizeof(*q->op_raw_stats));
        q->op_results = calloc(n, sizeof(*q->op_results));
        q->op_stats = calloc(n, sizeof(*q->op_stats));
        if (!q->ops || !q->op_raw || !q->op_raw_stats || !q->op_results || !q->op_stats) {
                multi_discard(q);
                return -ENOMEM;
        }
        q->n_ops = n;
        at = q->mem;
        for (size_t i = 0; i < n; i++)
                multi_put(q, &ops[i], i, &at);
        zk_submit(q);
        return 0;
}
