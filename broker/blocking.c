/* One thread, and a timer on the loop that looks at it. */
#include "blocking.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"

#define LOOK_MS      5000
#define EXTEND_US    30000000 /* six looks: one that comes late on a busy machine ends nothing */
#define HANG_MS      (INT64_C(10) * 60 * 1000)
#define CPU_NOISE_US 20000 /* what the loop itself uses between two looks stays below this */

struct progress { /* of the process as a whole */
        int64_t cpu_us;
        long blocks;
};

struct blocking {
        struct loop *loop;
        struct loop_timer *timer;
        struct loop_task task;
        struct blocking_work work;
        pthread_t thread;
        bool joined, abandoned;
        int r;
        int64_t started_ms, progress_ms;
        struct progress seen;
};

static int64_t us_of(const struct timeval *t)
{
        return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

static struct progress progress_now(void)
{
        struct rusage u;

        if (getrusage(RUSAGE_SELF, &u) < 0)
                return (struct progress){0};
        return (struct progress){.cpu_us = us_of(&u.ru_utime) + us_of(&u.ru_stime),
                                 .blocks = u.ru_inblock + u.ru_oublock};
}

static void look(struct blocking *b)
{
        struct progress now = progress_now();
        int64_t now_ms = clock_mono_ms();

        if (now.cpu_us - b->seen.cpu_us > CPU_NOISE_US || now.blocks != b->seen.blocks)
                b->progress_ms = now_ms;
        b->seen = now;
        if (now_ms - b->progress_ms < HANG_MS)
                (void)sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%d\nSTATUS=%s for %lld s", EXTEND_US, b->work.status,
                                 (long long)(now_ms - b->started_ms) / 1000);
        else
                (void)sd_notifyf(0, "STATUS=%s for %lld s; nothing happens", b->work.status,
                                 (long long)(now_ms - b->started_ms) / 1000);
}

static int on_look(struct loop *l, void *userdata)
{
        (void)l;
        look(userdata);
        return 0;
}

static void join(struct blocking *b)
{
        if (!b->joined)
                (void)pthread_join(b->thread, NULL); /* fails only for a thread that was joined already */
        b->joined = true;
}

static void on_end(void *userdata)
{
        struct blocking *b = userdata;

        if (b->abandoned) {
                free(b);
                return;
        }
        join(b);
        loop_timer_disarm(b->timer);
        b->work.done(b->r, b->work.userdata);
}

static void *run(void *userdata)
{
        struct blocking *b = userdata;

        b->r = b->work.run(b->work.userdata);
        loop_post_task(b->loop, &b->task);
        return NULL;
}

static int start_thread(struct blocking *b)
{
        sigset_t all, before;
        int r;

        /* Signals belong to the main thread's signalfd; a thread inherits the mask of its creator. */
        sigfillset(&all);
        r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r != 0)
                return -r;
        r = pthread_create(&b->thread, NULL, run, b);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* cannot fail: the set came from the call above */
        if (r != 0)
                return -r;
        (void)pthread_setname_np(b->thread, "blocking"); /* for people who look; nothing depends on it */
        return 0;
}

int blocking_start(struct loop *l, const struct blocking_work *w, struct blocking **ret)
{
        cleanup_with(freep) struct blocking *b = calloc(1, sizeof(*b));
        int r;

        if (!b)
                return -ENOMEM;
        b->loop = l;
        b->work = *w;
        b->task = (struct loop_task){.fn = on_end, .userdata = b};
        b->started_ms = b->progress_ms = clock_mono_ms();
        b->seen = progress_now();
        r = loop_add_timer(l, on_look, b, &b->timer);
        if (r < 0)
                return r;
        r = start_thread(b);
        if (r < 0) {
                (void)loop_timer_remove(b->timer);
                return r;
        }
        look(b);
        loop_timer_arm(b->timer, LOOK_MS, LOOK_MS);
        *ret = TAKE_PTR(b);
        return 0;
}

struct blocking *blocking_free(struct blocking *b)
{
        if (!b)
                return NULL;
        b->timer = loop_timer_remove(b->timer);
        if (b->joined) {
                free(b);
                return NULL;
        }
        join(b);
        b->abandoned = true; /* its task is posted: the loop, or loop_free(), runs it */
        return NULL;
}
