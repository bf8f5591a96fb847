/* The library's calls and their completions, a row a kind. Completions copy and hand over, nothing else. */
#include <errno.h>
#include <string.h>

#include "zk/zk_internal.h"

#define OP_UNTOUCHED 1 /* no library code is positive */

static void stat_copy(const struct Stat *s, struct zk_stat *ret)
{
        *ret = (struct zk_stat){
                .czxid = s->czxid,
                .ctime_ms = s->ctime,
                .mzxid = s->mzxid,
                .mtime_ms = s->mtime,
                .ephemeral_owner = s->ephemeralOwner,
                .version = s->version,
                .cversion = s->cversion,
                .num_children = s->numChildren,
        };
}

static bool wanted(const struct zk_req *q, int rc)
{
        return rc == ZOK && q->state == REQ_SENT;
}

static int copy_data(struct zk_req *q, const char *data, size_t len)
{
        q->res_data = malloc(len + 1);
        if (!q->res_data)
                return -ENOMEM;
        memcpy(q->res_data, data, len);
        q->res_data[len] = '\0';
        q->res.data = q->res_data;
        q->res.data_len = len;
        return 0;
}

static int copy_children(struct zk_req *q, const struct String_vector *v)
{
        q->res_children = calloc((size_t)v->count + 1, sizeof(char *));
        if (!q->res_children)
                return -ENOMEM;
        for (int i = 0; i < v->count; i++) {
                q->res_children[i] = strdup(v->data[i]);
                if (!q->res_children[i])
                        return -ENOMEM;
                q->res.n_children++;
        }
        q->res.children = (const char *const *)q->res_children;
        return 0;
}

static void on_void(int rc, const void *data)
{
        zk_reply_end(zk_reply_begin(data), rc, 0);
}

static void on_stat(int rc, const struct Stat *stat, const void *data)
{
        struct zk_req *q = zk_reply_begin(data);

        if (wanted(q, rc) && stat)
                stat_copy(stat, &q->res.stat);
        zk_reply_end(q, rc, 0);
}

static void on_data(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
        struct zk_req *q = zk_reply_begin(data);
        int copied = 0;

        if (wanted(q, rc)) {
                if (value && len >= 0)
                        copied = copy_data(q, value, (size_t)len);
                if (stat)
                        stat_copy(stat, &q->res.stat);
        }
        zk_reply_end(q, rc, copied);
}

static void on_children(int rc, const struct String_vector *v, const struct Stat *stat, const void *data)
{
        struct zk_req *q = zk_reply_begin(data);
        int copied = 0;

        if (wanted(q, rc)) {
                if (v)
                        copied = copy_children(q, v);
                if (stat)
                        stat_copy(stat, &q->res.stat);
        }
        zk_reply_end(q, rc, copied);
}

/* The path of a create or sync. */
static void on_path(int rc, const char *path, const void *data)
{
        struct zk_req *q = zk_reply_begin(data);
        size_t skip = q->z->chroot_len;
        int copied = 0;

        if (wanted(q, rc) && q->kind == REQ_CREATE && path) {
                if (strncmp(path, q->z->chroot, skip) != 0)
                        skip = 0;
                copied = copy_data(q, path + skip, strlen(path + skip));
        }
        zk_reply_end(q, rc, copied);
}

/* Operations before the failing one report 0, the failing one its code, later ones ZRUNTIMEINCONSISTENCY; on
 * a lost connection the array is left alone. */
static int op_error(int raw, int rc)
{
        if (raw == OP_UNTOUCHED)
                return zk_error(rc);
        return raw == ZRUNTIMEINCONSISTENCY ? -ECANCELED : zk_error(raw);
}

static void on_multi(int rc, const void *data)
{
        struct zk_req *q = zk_reply_begin(data);
        size_t n_sets = 0, set_at = 0;

        if (q->state != REQ_SENT) {
                zk_reply_end(q, rc, 0);
                return;
        }
        for (size_t i = 0; i < q->n_ops; i++) {
                q->op_results[i] = op_error(q->op_raw[i].err, rc);
                if (rc != ZOK || q->ops[i].type != ZOO_SETDATA_OP)
                        continue;
                stat_copy(&q->op_raw_stats[i], &q->op_stats[i]);
                n_sets++;
                set_at = i;
        }
        if (n_sets == 1)
                q->res.stat = q->op_stats[set_at];
        q->res.op_results = q->op_results;
        q->res.op_stats = q->op_stats;
        q->res.n_ops = q->n_ops;
        zk_reply_end(q, rc, 0);
}

static int call_get(zhandle_t *zh, struct zk_req *q)
{
        return zoo_awget(zh, q->path, q->watch ? zk_watch_on_event : NULL, q->watch, on_data, q);
}

static int call_exists(zhandle_t *zh, struct zk_req *q)
{
        return zoo_awexists(zh, q->path, q->watch ? zk_watch_on_event : NULL, q->watch, on_stat, q);
}

static int call_children(zhandle_t *zh, struct zk_req *q)
{
        return zoo_awget_children2(zh, q->path, q->watch ? zk_watch_on_event : NULL, q->watch, on_children,
                                   q);
}

static int call_create(zhandle_t *zh, struct zk_req *q)
{
        return zoo_acreate(zh, q->path, q->data, q->data ? (int)q->data_len : -1, &ZOO_OPEN_ACL_UNSAFE,
                           q->create_flags, on_path, q);
}

static int call_set(zhandle_t *zh, struct zk_req *q)
{
        return zoo_aset(zh, q->path, q->data, q->data ? (int)q->data_len : -1, q->version, on_stat, q);
}

static int call_delete(zhandle_t *zh, struct zk_req *q)
{
        return zoo_adelete(zh, q->path, q->version, on_void, q);
}

static int call_sync(zhandle_t *zh, struct zk_req *q)
{
        return zoo_async(zh, q->path, on_path, q);
}

static int call_multi(zhandle_t *zh, struct zk_req *q)
{
        for (size_t i = 0; i < q->n_ops; i++)
                q->op_raw[i].err = OP_UNTOUCHED;
        return zoo_amulti(zh, (int)q->n_ops, q->ops, q->op_raw, on_multi, q);
}

static int call_create_chroot(zhandle_t *zh, struct zk_req *q)
{
        return zoo_acreate(zh, q->path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, on_path, q);
}

static int (*const calls[N_REQ_KINDS])(zhandle_t *zh, struct zk_req *q) = {
        [REQ_GET] = call_get,
        [REQ_EXISTS] = call_exists,
        [REQ_CHILDREN] = call_children,
        [REQ_CREATE] = call_create,
        [REQ_SET] = call_set,
        [REQ_DELETE] = call_delete,
        [REQ_SYNC] = call_sync,
        [REQ_MULTI] = call_multi,
        [REQ_HEARTBEAT] = call_sync,
        [REQ_NUDGE] = call_exists,
        [REQ_CHROOT] = call_create_chroot,
};

int zk_call(struct zk_req *q)
{
        return calls[q->kind](q->h->zh, q);
}
