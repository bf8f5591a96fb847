/* One epoll instance, one heap of timers, one queue of posted tasks.
 *
 * An iteration: wait; read the clock; run due timers; run ready descriptors; run at most TASK_BATCH tasks.
 * Each of the three is bounded, so none starves the others. What a callback removes is only marked and
 * unhooked at once; its memory goes at the end of the iteration, because the batch of ready events may still
 * point at it.
 *
 * Posters write to the eventfd only when the loop is about to sleep or sleeps (`sleeping`, under the lock),
 * so a busy loop costs its posters no system call and an idle one wakes for nothing. */
#include "base/loop.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/slog.h"

#define EVENT_BATCH 64
#define TASK_BATCH  256

struct loop_fd {
        struct list node; /* on loop.fds, or on loop.dead_fds once removed */
        struct loop *loop;
        int fd;
        bool ended;   /* unhooked from epoll: by its callback's error or by removal */
        bool removed; /* the owner let go of it */
        loop_fd_fn fn;
        void *userdata;
};

struct loop_timer {
        struct list node; /* on loop.timers, or on loop.dead_timers once removed */
        struct loop *loop;
        size_t heap_at; /* position in the heap + 1; 0: disarmed */
        int64_t due_ms, period_ms;
        uint64_t sequence; /* of arming: breaks ties first in, first out */
        loop_timer_fn fn;
        void *userdata;
};

struct loop {
        char name[16];
        int epoll_fd, wake_fd;
        bool running;
        bool has_thread;
        pthread_t thread;
        int64_t now_ms;
        struct list fds, dead_fds, timers, dead_timers;
        struct loop_timer **heap; /* room for every timer, so that arming cannot fail */
        size_t n_heap, n_timers, heap_cap;
        uint64_t next_sequence;

        pthread_mutex_t lock;
        struct list tasks; /* lock */
        bool sleeping;     /* lock */
        bool stop;         /* lock */
};

static _Thread_local const struct loop *current_loop;

/* --- timers --- */

static bool is_before(const struct loop_timer *a, const struct loop_timer *b)
{
        return a->due_ms != b->due_ms ? a->due_ms < b->due_ms : a->sequence < b->sequence;
}

static void heap_set(struct loop *l, size_t i, struct loop_timer *t)
{
        l->heap[i] = t;
        t->heap_at = i + 1;
}

static void heap_sift_up(struct loop *l, size_t i, struct loop_timer *t)
{
        while (i > 0 && is_before(t, l->heap[(i - 1) / 2])) {
                heap_set(l, i, l->heap[(i - 1) / 2]);
                i = (i - 1) / 2;
        }
        heap_set(l, i, t);
}

static void heap_sift_down(struct loop *l, size_t i, struct loop_timer *t)
{
        for (;;) {
                size_t child = 2 * i + 1;

                if (child + 1 < l->n_heap && is_before(l->heap[child + 1], l->heap[child]))
                        child++;
                if (child >= l->n_heap || !is_before(l->heap[child], t))
                        break;
                heap_set(l, i, l->heap[child]);
                i = child;
        }
        heap_set(l, i, t);
}

void loop_timer_disarm(struct loop_timer *t)
{
        struct loop *l = t->loop;
        struct loop_timer *last;
        size_t hole;

        if (t->heap_at == 0)
                return;
        hole = t->heap_at - 1;
        t->heap_at = 0;
        last = l->heap[--l->n_heap];
        if (last == t)
                return;
        if (hole > 0 && is_before(last, l->heap[(hole - 1) / 2]))
                heap_sift_up(l, hole, last);
        else
                heap_sift_down(l, hole, last);
}

static void timer_arm_at(struct loop_timer *t, int64_t due_ms, int64_t period_ms)
{
        struct loop *l = t->loop;

        loop_timer_disarm(t);
        t->due_ms = due_ms;
        t->period_ms = period_ms;
        t->sequence = l->next_sequence++;
        heap_sift_up(l, l->n_heap++, t);
}

static int64_t saturated_add(int64_t a, int64_t b)
{
        int64_t sum;

        return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void loop_timer_arm(struct loop_timer *t, int64_t delay_ms, int64_t period_ms)
{
        timer_arm_at(t, saturated_add(loop_now_ms(t->loop), MAX(delay_ms, (int64_t)0)),
                     MAX(period_ms, (int64_t)0));
}

bool loop_timer_armed(const struct loop_timer *t)
{
        return t->heap_at != 0;
}

int loop_add_timer(struct loop *l, loop_timer_fn fn, void *userdata, struct loop_timer **ret)
{
        struct loop_timer *t;

        if (l->n_timers == l->heap_cap) {
                size_t cap = MAX(l->heap_cap * 2, (size_t)16);
                struct loop_timer **heap = reallocarray(l->heap, cap, sizeof(struct loop_timer *));

                if (!heap)
                        return -ENOMEM;
                l->heap = heap;
                l->heap_cap = cap;
        }
        t = calloc(1, sizeof(*t));
        if (!t)
                return -ENOMEM;
        t->loop = l;
        t->fn = fn;
        t->userdata = userdata;
        list_push_back(&l->timers, &t->node);
        l->n_timers++;
        *ret = t;
        return 0;
}

struct loop_timer *loop_timer_remove(struct loop_timer *t)
{
        if (!t)
                return NULL;
        loop_timer_disarm(t);
        t->loop->n_timers--;
        list_remove(&t->node);
        list_push_back(&t->loop->dead_timers, &t->node);
        return NULL;
}

static void timer_fire(struct loop *l, struct loop_timer *t)
{
        int64_t next_ms;
        int r;

        loop_timer_disarm(t);
        if (t->period_ms > 0) {
                /* A late loop skips the beats it missed: catching up would only make it later. */
                if (__builtin_add_overflow(t->due_ms, t->period_ms, &next_ms) || next_ms <= l->now_ms)
                        next_ms = saturated_add(l->now_ms, t->period_ms);
                timer_arm_at(t, next_ms, t->period_ms);
        }
        r = t->fn(l, t->userdata);
        if (r < 0) {
                loop_timer_disarm(t);
                slog_warning("loop-timer-ended", "a timer's callback failed; the timer is disarmed",
                             SL_STR("loop", l->name), SL_ERR(r));
        }
}

/* Timers armed by the callbacks have a later sequence and wait for the next iteration: one that re-arms
 * itself with no delay must not keep the descriptors waiting forever. */
static void run_timers(struct loop *l)
{
        uint64_t limit = l->next_sequence;

        while (l->n_heap > 0 && l->heap[0]->due_ms <= l->now_ms && l->heap[0]->sequence < limit)
                timer_fire(l, l->heap[0]);
}

/* --- file descriptors --- */

int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *userdata, struct loop_fd **ret)
{
        cleanup_with(freep) struct loop_fd *s = calloc(1, sizeof(*s));
        struct epoll_event ev = {.events = events, .data.ptr = s};

        if (!s)
                return -ENOMEM;
        s->loop = l;
        s->fd = fd;
        s->fn = fn;
        s->userdata = userdata;
        if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
                return -errno;
        list_push_back(&l->fds, &s->node);
        *ret = TAKE_PTR(s);
        return 0;
}

int loop_fd_set_events(struct loop_fd *s, uint32_t events)
{
        struct epoll_event ev = {.events = events, .data.ptr = s};

        if (s->ended) /* by now the number may belong to another file */
                return -ESTALE;
        return epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_MOD, s->fd, &ev) < 0 ? -errno : 0;
}

static void fd_end(struct loop_fd *s)
{
        if (s->ended)
                return;
        s->ended = true;
        /* Fails only when the owner closed the descriptor first, and then epoll has forgotten it already. */
        (void)epoll_ctl(s->loop->epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
}

struct loop_fd *loop_fd_remove(struct loop_fd *s)
{
        if (!s)
                return NULL;
        fd_end(s);
        s->removed = true;
        list_remove(&s->node);
        list_push_back(&s->loop->dead_fds, &s->node);
        return NULL;
}

static void fd_dispatch(struct loop *l, struct loop_fd *s, uint32_t events)
{
        int r;

        if (s->ended) /* by a callback before it in this batch */
                return;
        r = s->fn(l, s->fd, events, s->userdata);
        if (r >= 0)
                return;
        slog_warning("loop-source-ended", "a descriptor's callback failed; it is no longer watched",
                     SL_STR("loop", l->name), SL_INT("fd", s->fd), SL_ERR(r));
        fd_end(s); /* the memory stays until its owner removes it */
}

static void drain_wake_fd(struct loop *l)
{
        uint64_t n;

        (void)!read(l->wake_fd, &n, sizeof(n)); /* never fails: it is readable and ours alone */
}

static void run_fds(struct loop *l, const struct epoll_event *events, int n)
{
        for (int i = 0; i < n; i++) {
                if (events[i].data.ptr)
                        fd_dispatch(l, events[i].data.ptr, events[i].events);
                else
                        drain_wake_fd(l);
        }
}

static void free_nodes(struct list *l, size_t offset)
{
        list_for_each_safe (it, next, l)
                free((char *)it - offset);
        list_init(l);
}

static void reap(struct loop *l)
{
        free_nodes(&l->dead_fds, offsetof(struct loop_fd, node));
        free_nodes(&l->dead_timers, offsetof(struct loop_timer, node));
}

/* --- tasks --- */

/* Caller holds the lock: the loop cannot be freed between its waking and the end of this write. */
static void wake_locked(struct loop *l)
{
        uint64_t one = 1;

        if (!l->sleeping)
                return;
        l->sleeping = false;
        (void)!write(l->wake_fd, &one, sizeof(one)); /* a full counter (never in practice) wakes as well */
}

void loop_post_task(struct loop *l, struct loop_task *t)
{
        pthread_mutex_lock(&l->lock);
        list_push_back(&l->tasks, &t->node);
        wake_locked(l);
        pthread_mutex_unlock(&l->lock);
}

struct owned_task {
        struct loop_task task;
        loop_task_fn fn;
        void *userdata;
};

static void run_owned_task(void *userdata)
{
        struct owned_task *t = userdata;
        loop_task_fn fn = t->fn;
        void *arg = t->userdata;

        free(t);
        fn(arg);
}

int loop_post(struct loop *l, loop_task_fn fn, void *userdata)
{
        struct owned_task *t = malloc(sizeof(*t));

        if (!t)
                return -ENOMEM;
        *t = (struct owned_task){
                .task = {.fn = run_owned_task, .userdata = t},
                .fn = fn,
                .userdata = userdata,
        };
        loop_post_task(l, &t->task);
        return 0;
}

struct awaited_task {
        struct loop_task task;
        loop_task_fn fn;
        void *userdata;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool done; /* lock */
};

static void run_awaited_task(void *userdata)
{
        struct awaited_task *t = userdata;

        t->fn(t->userdata);
        /* Signal under the lock: once it is free the waiter may return and take this memory with it. */
        pthread_mutex_lock(&t->lock);
        t->done = true;
        pthread_cond_signal(&t->changed);
        pthread_mutex_unlock(&t->lock);
}

int loop_call(struct loop *l, loop_task_fn fn, void *userdata)
{
        struct awaited_task t = {
                .task = {.fn = run_awaited_task, .userdata = &t},
                .fn = fn,
                .userdata = userdata,
                .lock = PTHREAD_MUTEX_INITIALIZER,
                .changed = PTHREAD_COND_INITIALIZER,
        };

        if (loop_is_current(l)) {
                fn(userdata);
                return 0;
        }
        loop_post_task(l, &t.task);
        pthread_mutex_lock(&t.lock);
        while (!t.done)
                pthread_cond_wait(&t.changed, &t.lock);
        pthread_mutex_unlock(&t.lock);
        pthread_cond_destroy(&t.changed);
        pthread_mutex_destroy(&t.lock);
        return 0;
}

/* Take the first @max tasks off the queue; what they post runs in a later batch. */
static void take_tasks(struct loop *l, struct list *ret_batch, size_t max)
{
        list_init(ret_batch);
        pthread_mutex_lock(&l->lock);
        l->sleeping = false;
        for (size_t i = 0; i < max && !list_empty(&l->tasks); i++) {
                struct list *first = l->tasks.next;

                list_remove(first);
                list_push_back(ret_batch, first);
        }
        pthread_mutex_unlock(&l->lock);
}

static bool run_tasks(struct loop *l)
{
        struct list batch;
        bool any = false;

        take_tasks(l, &batch, TASK_BATCH);
        while (!list_empty(&batch)) {
                struct loop_task *t = list_entry(batch.next, struct loop_task, node);

                list_remove(&t->node); /* before the call: the task may free or re-post itself */
                t->fn(t->userdata);
                any = true;
        }
        return any;
}

/* --- the loop --- */

static int timeout_ms(const struct loop *l)
{
        int64_t left;

        if (l->n_heap == 0)
                return -1;
        left = l->heap[0]->due_ms - clock_mono_ms();
        return (int)MIN(MAX(left, (int64_t)0), (int64_t)INT_MAX);
}

/* Returns false when it is time to stop. Decides under the lock whether posters must wake us. */
static bool prepare_to_wait(struct loop *l, int *ret_timeout_ms)
{
        int t = timeout_ms(l);
        bool stop;

        pthread_mutex_lock(&l->lock);
        stop = l->stop;
        if (!list_empty(&l->tasks))
                t = 0;
        l->sleeping = t != 0 && !stop;
        pthread_mutex_unlock(&l->lock);
        *ret_timeout_ms = t;
        return !stop;
}

static int iterate(struct loop *l, int wait_ms)
{
        struct epoll_event events[EVENT_BATCH];
        int n;

        n = epoll_wait(l->epoll_fd, events, EVENT_BATCH, wait_ms);
        if (n < 0 && errno != EINTR)
                return -errno;
        l->now_ms = clock_mono_ms();
        run_timers(l);
        run_fds(l, events, n);
        (void)run_tasks(l);
        reap(l);
        return 0;
}

int loop_run(struct loop *l)
{
        const struct loop *outer = current_loop;
        int wait_ms, r = 0;

        current_loop = l;
        l->running = true;
        l->now_ms = clock_mono_ms();
        while (r == 0 && prepare_to_wait(l, &wait_ms))
                r = iterate(l, wait_ms);
        l->running = false;
        current_loop = outer;

        pthread_mutex_lock(&l->lock);
        l->stop = false; /* it may run again */
        pthread_mutex_unlock(&l->lock);
        return r;
}

void loop_stop(struct loop *l)
{
        pthread_mutex_lock(&l->lock);
        l->stop = true;
        wake_locked(l);
        pthread_mutex_unlock(&l->lock);
}

static void *thread_main(void *userdata)
{
        struct loop *l = userdata;
        int r;

        (void)pthread_setname_np(pthread_self(), l->name); /* for people who look; nothing depends on it */
        r = loop_run(l);
        if (r < 0)
                slog_error("loop-failed", "an event loop ended on an error", SL_STR("loop", l->name),
                           SL_ERR(r));
        return NULL;
}

int loop_thread_start(struct loop *l)
{
        sigset_t all, before;
        int r;

        /* Signals belong to the main thread's signalfd; a thread inherits the mask of its creator. */
        sigfillset(&all);
        r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r != 0)
                return -r;
        r = pthread_create(&l->thread, NULL, thread_main, l);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL); /* cannot fail: the set came from the call above */
        if (r != 0)
                return -r;
        l->has_thread = true;
        return 0;
}

void loop_thread_join(struct loop *l)
{
        if (!l->has_thread)
                return;
        (void)pthread_join(l->thread, NULL); /* fails only for a thread that was joined already */
        l->has_thread = false;
}

bool loop_is_current(const struct loop *l)
{
        return current_loop == l;
}

int64_t loop_now_ms(const struct loop *l)
{
        return l->running ? l->now_ms : clock_mono_ms();
}

static int loop_open(struct loop *l)
{
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};

        l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (l->epoll_fd < 0)
                return -errno;
        l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (l->wake_fd < 0)
                return -errno;
        return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->wake_fd, &ev) < 0 ? -errno : 0;
}

int loop_new(const char *name, struct loop **ret)
{
        cleanup_with(loop_freep) struct loop *l = calloc(1, sizeof(*l));
        int r;

        if (!l)
                return -ENOMEM;
        (void)snprintf(l->name, sizeof(l->name), "%s", name); /* cut to what the kernel takes */
        l->epoll_fd = l->wake_fd = -1;
        list_init(&l->fds);
        list_init(&l->dead_fds);
        list_init(&l->timers);
        list_init(&l->dead_timers);
        list_init(&l->tasks);
        pthread_mutex_init(&l->lock, NULL);
        r = loop_open(l);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

struct loop *loop_free(struct loop *l)
{
        const struct loop *outer = current_loop;

        if (!l)
                return NULL;
        current_loop = l; /* tasks may rely on being on the loop's thread */
        while (run_tasks(l))
                continue;
        current_loop = outer;
        reap(l);
        free_nodes(&l->fds, offsetof(struct loop_fd, node));
        free_nodes(&l->timers, offsetof(struct loop_timer, node));
        closep(&l->wake_fd);
        closep(&l->epoll_fd);
        pthread_mutex_destroy(&l->lock);
        free(l->heap);
        free(l);
        return NULL;
}
