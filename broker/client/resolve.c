/* getaddrinfo() in a detached thread. It may hang far longer than anyone waits, so the thread shares nothing
 * with the loop but this small reference-counted struct, and posts under its lock only while nobody has
 * cancelled. */
#include "client/resolve.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct resolve {
        _Atomic int refs; /* the thread's (which the posted task inherits) and the caller's */
        pthread_mutex_t lock;
        struct loop *loop; /* under lock; NULL once cancelled */
        struct loop_task task;
        char *host;
        char service[8];
        int result;
        struct addrinfo *found;
        resolve_fn fn; /* loop thread only; NULL once cancelled or called */
        void *userdata;
};

static struct resolve *resolve_unref(struct resolve *x)
{
        if (!x || atomic_fetch_sub(&x->refs, 1) > 1)
                return NULL;
        if (x->found)
                freeaddrinfo(x->found);
        (void)pthread_mutex_destroy(&x->lock);
        free(x->host);
        free(x);
        return NULL;
}

static void resolve_unrefp(struct resolve **x)
{
        (void)resolve_unref(*x);
}

static int look_up(const char *host, const char *service, int flags, struct addrinfo **ret)
{
        const struct addrinfo hints = {
                .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
        int r = getaddrinfo(host, service, &hints, ret);

        if (r == 0)
                return 0;
        return r == EAI_MEMORY ? -ENOMEM : -EHOSTUNREACH;
}

int resolve_literal(const char *host, uint16_t port, struct addrinfo **ret)
{
        char service[8];

        (void)snprintf(service, sizeof(service), "%u", port);
        return look_up(host, service, AI_NUMERICHOST, ret);
}

static void resolve_on_done(void *userdata)
{
        cleanup_with(resolve_unrefp) struct resolve *x = userdata; /* the thread's reference */
        resolve_fn fn = TAKE_PTR(x->fn);

        if (fn)
                fn(x->result, TAKE_PTR(x->found), x->userdata);
}

static void *resolve_main(void *arg)
{
        cleanup_with(resolve_unrefp) struct resolve *x = arg;
        bool posted = false;

        x->result = look_up(x->host, x->service, 0, &x->found);
        pthread_mutex_lock(&x->lock);
        if (x->loop) {
                loop_post_task(x->loop, &x->task);
                posted = true;
        }
        pthread_mutex_unlock(&x->lock);
        if (posted)
                (void)TAKE_PTR(x); /* the task's now */
        return NULL;
}

static int thread_detached(void *(*fn)(void *), void *arg)
{
        sigset_t all, old;
        pthread_attr_t attr;
        pthread_t t;
        int r;

        r = pthread_attr_init(&attr);
        if (r != 0)
                return -r;
        (void)pthread_attr_setdetachstate(&attr,
                                          PTHREAD_CREATE_DETACHED); /* fails on a wrong constant only */
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_BLOCK, &all, &old); /* signals belong to the program's own threads */
        r = pthread_create(&t, &attr, fn, arg);
        (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
        (void)pthread_attr_destroy(&attr);
        return -r;
}

int resolve_start(struct loop *l, const char *host, uint16_t port, resolve_fn fn, void *userdata,
                  struct resolve **ret)
{
        cleanup_with(resolve_unrefp) struct resolve *x = calloc(1, sizeof(*x));
        int r;

        if (!x)
                return -ENOMEM;
        x->refs = 1;
        x->loop = l;
        x->fn = fn;
        x->userdata = userdata;
        x->task = (struct loop_task){.fn = resolve_on_done, .userdata = x};
        (void)snprintf(x->service, sizeof(x->service), "%u", port);
        (void)pthread_mutex_init(&x->lock, NULL); /* cannot fail with default attributes on Linux */
        x->host = strdup(host);
        if (!x->host)
                return -ENOMEM;

        (void)atomic_fetch_add(&x->refs, 1);
        r = thread_detached(resolve_main, x);
        if (r < 0) {
                (void)atomic_fetch_sub(&x->refs, 1);
                return r;
        }
        *ret = TAKE_PTR(x);
        return 0;
}

struct resolve *resolve_cancel(struct resolve *x)
{
        if (!x)
                return NULL;
        pthread_mutex_lock(&x->lock);
        x->loop = NULL;
        pthread_mutex_unlock(&x->lock);
        x->fn = NULL;
        return resolve_unref(x);
}
