/* One-shot node watches: fired at most once, on the loop given with the operation that armed them. */
#include <string.h>

#include "zk/zk_internal.h"

static void deliver(void *userdata);

struct zk_watch *zk_watch_new(struct zk *z, struct loop *loop, const char *path, zk_watch_fn fn,
                              void *userdata)
{
        size_t len = strlen(path) + 1;
        struct zk_watch *w;

        w = calloc(1, sizeof(*w) + len);
        if (!w)
                return NULL;
        list_init(&w->node);
        list_init(&w->all);
        w->task = (struct loop_task){.fn = deliver, .userdata = w};
        w->z = z;
        w->loop = loop;
        w->fn = fn;
        w->userdata = userdata;
        w->live = true;
        memcpy(w->path, path, len);
        return w;
}

static void reap(struct zk_watch *w)
{
        if (w->lib || w->live || w->posted)
                return;
        list_remove(&w->node);
        list_remove(&w->all);
        w->z->refs--;
        free(w);
}

static void fire(struct zk_watch *w)
{
        if (!w->live)
                return;
        w->live = false;
        if (w->cancelled)
                return;
        w->posted = true;
        loop_post_task(w->loop, &w->task);
}

static void deliver(void *userdata)
{
        struct zk_watch *w = userdata;
        struct zk *z = w->z;
        bool wanted;

        (void)pthread_mutex_lock(&z->lock);
        wanted = z->state != ZKS_CLOSED && !w->cancelled;
        zk_unlock(z);
        if (wanted)
                w->fn(w->path, w->userdata);

        (void)pthread_mutex_lock(&z->lock);
        w->posted = false;
        reap(w);
        zk_unlock(z);
}

void zk_watch_on_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
        struct zk_watch *w = ctx;
        struct zk *z;

        (void)zh;
        (void)state;
        (void)path;
        /* Session events go to every watcher and do not use it up. */
        if (type == ZOO_SESSION_EVENT)
                return;
        z = w->z;
        (void)pthread_mutex_lock(&z->lock);
        w->lib = false;
        list_remove(&w->node);
        fire(w);
        reap(w);
        zk_unlock(z);
}

void zk_watch_submitted(struct zk_watch *w)
{
        w->z->refs++;
        list_push_back(&w->z->watches, &w->all);
}

void zk_watch_sent(struct zk_watch *w, struct zk_handle *h)
{
        w->lib = true;
        list_push_back(&h->watches, &w->node);
}

void zk_watch_unsent(struct zk_watch *w)
{
        w->lib = false;
        list_remove(&w->node);
}

void zk_watch_reply(struct zk_watch *w, bool armed)
{
        if (armed)
                return; /* live: it will fire; not live: kept for the library alone */
        w->lib = false;
        w->live = false;
        reap(w);
}

void zk_watch_abandon(struct zk_watch *w)
{
        w->live = false;
        reap(w);
}

void zk_watches_fire(struct zk_handle *h)
{
        list_for_each (it, &h->watches)
                fire(list_entry(it, struct zk_watch, node));
}

void zk_unwatch(struct zk *z, const void *userdata)
{
        (void)pthread_mutex_lock(&z->lock);
        list_for_each (it, &z->watches) {
                struct zk_watch *w = list_entry(it, struct zk_watch, all);

                if (w->userdata == userdata)
                        w->cancelled = true;
        }
        zk_unlock(z);
}

void zk_watches_forget(struct zk_handle *h)
{
        while (!list_empty(&h->watches)) {
                struct zk_watch *w = list_entry(h->watches.next, struct zk_watch, node);

                list_remove(&w->node);
                w->lib = false;
                w->live = false; /* fired already when the session went, or zk_free() was called */
                reap(w);
        }
}
