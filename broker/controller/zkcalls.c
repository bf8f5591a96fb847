/* ZooKeeper operations bound to the term in which they were begun, and the watches. */
#include <errno.h>
#include <string.h>

#include "controller/controller_internal.h"

struct zk_call {
        struct controller *c;
        uint64_t term;
        ctl_zk_fn fn;
        ctl_drop_fn drop;
        void *arg;
};

/* A read that arms a watch: one pointer serves both callbacks, so it lives until the watch has fired. */
struct watched {
        struct list node; /* controller->watched */
        struct zk_call call;
        enum ctl_watch_kind kind;
        char *topic; /* kind is N_CTL_WATCHES then */
        bool exists, answered, fired;
};

#define TOPIC_WATCH_BYTES(topic) (strlen(ZNODE_TOPICS) + strlen(topic) + 32)
#define MAX_TOPIC_WATCH_BYTES    ((size_t)512 * 1024)

static void (*const watch_fns[N_CTL_WATCHES])(struct controller *c) = {
        [WATCH_CONTROLLER] = elector_check,        [WATCH_BROKERS] = brokers_refresh,
        [WATCH_TOPICS] = loader_on_topics_changed, [WATCH_DELETIONS] = loader_on_deletions_changed,
        [WATCH_ELECTIONS] = elections_on_znode,    [WATCH_REASSIGNMENTS] = reassign_on_znode,
        [WATCH_LOG_DIRS] = log_dirs_on_changed,
};

static void deliver(struct zk_call *call, const struct zk_result *res)
{
        if (call->term != call->c->term)
                call->drop(call->arg);
        else
                call->fn(call->c, res, call->arg);
}

static void on_result(const struct zk_result *res, void *userdata)
{
        cleanup_with(freep) struct zk_call *call = userdata;

        deliver(call, res);
}

static void watched_free(struct watched *w)
{
        list_remove(&w->node);
        free(w->topic);
        free(w);
}

static void disarm(struct controller *c, struct watched *w)
{
        if (!w->topic) {
                c->watch_armed[w->kind] = false;
        } else if (map_get_str(c->topic_watches, w->topic) == w) {
                (void)map_remove_str(c->topic_watches, w->topic);
                c->topic_watch_bytes -= TOPIC_WATCH_BYTES(w->topic);
        }
}

static void on_watch(const char *path, void *userdata)
{
        struct watched *w = userdata;
        struct controller *c = w->call.c;
        enum ctl_watch_kind kind = w->kind;
        cleanup_with(freep) char *topic = TAKE_PTR(w->topic);

        (void)path;
        w->fired = true;
        w->topic = topic;
        disarm(c, w);
        w->topic = NULL;
        if (w->answered)
                watched_free(w);
        if (topic)
                topic_changed(c, topic);
        else
                watch_fns[kind](c);
}

/* A read that failed has armed nothing; exists() of a missing node has. */
static void on_watched_result(const struct zk_result *res, void *userdata)
{
        struct watched *w = userdata;
        struct zk_call call = w->call;
        bool armed = res->r == 0 || (w->exists && res->r == -ENOENT);

        w->answered = true;
        if (!armed && !w->fired)
                disarm(call.c, w);
        if (!armed || w->fired)
                watched_free(w);
        deliver(&call, res);
}

static struct zk_call call_make(struct controller *c, ctl_zk_fn fn, void *arg, ctl_drop_fn drop)
{
        return (struct zk_call){.c = c, .term = c->term, .fn = fn, .arg = arg, .drop = drop ? drop : free};
}

static struct zk_call *call_new(struct controller *c, ctl_zk_fn fn, void *arg, ctl_drop_fn drop)
{
        struct zk_call *call = malloc(sizeof(*call));

        if (call)
                *call = call_make(c, fn, arg, drop);
        return call;
}

/* @r: of the submission. */
static int submitted(struct zk_call *call, int r)
{
        if (r < 0)
                free(call);
        return r;
}

typedef int (*read_fn)(struct zk *z, struct loop *loop, const char *path, zk_watch_fn watch, zk_fn fn,
                       void *userdata);

/* Arms the watch unless it is armed already: once is enough for any number of reads. */
static int read_watched(struct controller *c, read_fn read, const char *path, enum ctl_watch_kind kind,
                        ctl_zk_fn fn, void *arg, ctl_drop_fn drop)
{
        struct watched *w;
        int r;

        if (kind == N_CTL_WATCHES || c->watch_armed[kind]) {
                struct zk_call *call = call_new(c, fn, arg, drop);

                return call ? submitted(call, read(c->zk, c->loop, path, NULL, on_result, call)) : -ENOMEM;
        }
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        w->call = call_make(c, fn, arg, drop);
        w->kind = kind;
        w->exists = read == zk_exists;
        list_push_back(&c->watched, &w->node);
        c->watch_armed[kind] = true;
        r = read(c->zk, c->loop, path, on_watch, on_watched_result, w);
        if (r < 0) {
                c->watch_armed[kind] = false;
                watched_free(w);
        }
        return r;
}

bool ctl_zk_topic_watched(const struct controller *c, const char *topic)
{
        return map_get_str(c->topic_watches, topic);
}

int ctl_zk_get_topic(struct controller *c, const char *topic, ctl_zk_fn fn, void *arg, ctl_drop_fn drop)
{
        char path[ZNODE_PATH_SIZE];
        struct watched *w;
        int r;

        znode_path_topic(topic, path);
        if (ctl_zk_topic_watched(c, topic) ||
            c->topic_watch_bytes + TOPIC_WATCH_BYTES(topic) > MAX_TOPIC_WATCH_BYTES)
                return ctl_zk_get(c, path, fn, arg, drop);
        w = calloc(1, sizeof(*w));
        if (!w)
                return -ENOMEM;
        list_init(&w->node);
        w->call = call_make(c, fn, arg, drop);
        w->kind = N_CTL_WATCHES;
        w->topic = strdup(topic);
        r = w->topic ? map_put_str(c->topic_watches, topic, w) : -ENOMEM;
        if (r < 0) {
                watched_free(w);
                return r;
        }
        list_push_back(&c->watched, &w->node);
        c->topic_watch_bytes += TOPIC_WATCH_BYTES(topic);
        r = zk_get(c->zk, c->loop, path, on_watch, on_watched_result, w);
        if (r < 0) {
                disarm(c, w);
                watched_free(w);
        }
        return r;
}

void ctl_zk_forget_watches(struct controller *c)
{
        list_for_each_safe (it, tmp, &c->watched)
                watched_free(list_entry(it, struct watched, node));
}

int ctl_zk_get(struct controller *c, const char *path, ctl_zk_fn fn, void *arg, ctl_drop_fn drop)
{
        struct zk_call *call = call_new(c, fn, arg, drop);

        return call ? submitted(call, zk_get(c->zk, c->loop, path, NULL, on_result, call)) : -ENOMEM;
}

int ctl_zk_exists(struct controller *c, const char *path, enum ctl_watch_kind watch, ctl_zk_fn fn, void *arg)
{
        return read_watched(c, zk_exists, path, watch, fn, arg, NULL);
}

int ctl_zk_exists_arg(struct controller *c, const char *path, enum ctl_watch_kind watch, ctl_zk_fn fn,
                      void *arg, ctl_drop_fn drop)
{
        return read_watched(c, zk_exists, path, watch, fn, arg, drop);
}

int ctl_zk_children(struct controller *c, const char *path, enum ctl_watch_kind watch, ctl_zk_fn fn,
                    void *arg)
{
        return read_watched(c, zk_children, path, watch, fn, arg, NULL);
}

int ctl_zk_sync(struct controller *c, ctl_zk_fn fn, void *arg)
{
        struct zk_call *call = call_new(c, fn, arg, NULL);

        return call ? submitted(call, zk_sync(c->zk, c->loop, on_result, call)) : -ENOMEM;
}

int ctl_zk_create(struct controller *c, const char *path, const char *data, ctl_zk_fn fn, void *arg)
{
        struct zk_call *call = call_new(c, fn, arg, NULL);

        return call ? submitted(call, zk_create(c->zk, c->loop, path, data, false, false, on_result, call))
                    : -ENOMEM;
}

int ctl_zk_delete(struct controller *c, const char *path, int32_t version, ctl_zk_fn fn, void *arg)
{
        struct zk_call *call = call_new(c, fn, arg, NULL);

        return call ? submitted(call, zk_delete(c->zk, c->loop, path, version, on_result, call)) : -ENOMEM;
}

int ctl_zk_multi(struct controller *c, const struct zk_op *ops, size_t n, ctl_zk_fn fn, void *arg,
                 ctl_drop_fn drop)
{
        struct zk_call *call = call_new(c, fn, arg, drop);

        return call ? submitted(call, zk_multi(c->zk, c->loop, ops, n, on_result, call)) : -ENOMEM;
}

void ctl_zk_ignore(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)c;
        (void)res; /* asked for again when it has not happened */
        (void)arg;
}

/* With a connection or a session every operation is lost, and none of them is the one that failed. */
int ctl_multi_failed_at(const struct zk_result *res)
{
        if (ctl_outcome_unknown(res->r) || res->r == -EOWNERDEAD)
                return -1;
        for (size_t i = 0; res->op_results && i < res->n_ops; i++)
                if (res->op_results[i] != 0 && res->op_results[i] != -ECANCELED)
                        return (int)i;
        return -1;
}
