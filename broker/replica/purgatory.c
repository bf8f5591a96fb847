/* The purgatory: watch, then try again; complete exactly once.
 *
 * An operation's references: one of its caller, one for being in the purgatory (dropped by whoever completes
 * it), and a short one for each checker that looks at it. Expiry is a binary heap under one mutex with a
 * single timer on the loop; whoever makes an operation the earliest posts a task that re-arms it. */
#include "replica/purgatory.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"

#define CHECK_BATCH     32 /* operations that one pass over a key holds references to */
#define SWEEP_PERIOD_MS 1000

struct purgatory {
        struct loop *loop;
        struct loop_timer *timer, *sweep_timer; /* loop thread */
        _Atomic size_t n_waits;
        struct metric waiting, hold; /* R75 */
        char labels[64];

        pthread_mutex_t lock; /* the timers' */
        struct delayed_op **heap;
        size_t n_heap, heap_cap;
        bool closed;
        bool task_posted;
        struct loop_task task;
};

int purgatory_key_init(struct purgatory_key *k)
{
        list_init(&k->waits);
        k->n_waits = 0;
        return -pthread_mutex_init(&k->lock, NULL);
}

void purgatory_key_done(struct purgatory_key *k)
{
        assert(list_empty(&k->waits));
        pthread_mutex_destroy(&k->lock);
}

/* --- timers: a heap by deadline; all under p->lock --- */

static void heap_set(struct purgatory *p, size_t i, struct delayed_op *o)
{
        p->heap[i] = o;
        o->heap_at = i + 1;
}

static void heap_sift_up(struct purgatory *p, size_t i, struct delayed_op *o)
{
        while (i > 0 && o->deadline_ms < p->heap[(i - 1) / 2]->deadline_ms) {
                heap_set(p, i, p->heap[(i - 1) / 2]);
                i = (i - 1) / 2;
        }
        heap_set(p, i, o);
}

static void heap_sift_down(struct purgatory *p, size_t i, struct delayed_op *o)
{
        for (;;) {
                size_t child = 2 * i + 1;

                if (child + 1 < p->n_heap && p->heap[child + 1]->deadline_ms < p->heap[child]->deadline_ms)
                        child++;
                if (child >= p->n_heap || p->heap[child]->deadline_ms >= o->deadline_ms)
                        break;
                heap_set(p, i, p->heap[child]);
                i = child;
        }
        heap_set(p, i, o);
}

static void heap_remove(struct purgatory *p, struct delayed_op *o)
{
        struct delayed_op *last;
        size_t hole;

        if (o->heap_at == 0)
                return;
        hole = o->heap_at - 1;
        o->heap_at = 0;
        last = p->heap[--p->n_heap];
        if (last == o)
                return;
        if (hole > 0 && last->deadline_ms < p->heap[(hole - 1) / 2]->deadline_ms)
                heap_sift_up(p, hole, last);
        else
                heap_sift_down(p, hole, last);
}

static int heap_push(struct purgatory *p, struct delayed_op *o)
{
        if (p->n_heap == p->heap_cap) {
                size_t cap = MAX(p->heap_cap * 2, (size_t)64);
                struct delayed_op **heap = reallocarray(p->heap, cap, sizeof(struct delayed_op *));

                if (!heap)
                        return -ENOMEM;
                p->heap = heap;
                p->heap_cap = cap;
        }
        heap_sift_up(p, p->n_heap++, o);
        return 0;
}

/* --- operations --- */

int delayed_op_init(struct delayed_op *o, const struct delayed_op_ops *ops)
{
        o->ops = ops;
        atomic_init(&o->completed, false);
        atomic_init(&o->refs, 1);
        o->born_us = clock_mono_us();
        return -pthread_mutex_init(&o->lock, NULL);
}

static void op_ref(struct delayed_op *o)
{
        atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

void delayed_op_unref(struct delayed_op *o)
{
        if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
                return;
        pthread_mutex_destroy(&o->lock);
        o->ops->free(o);
}

static void unhook(struct delayed_op *o)
{
        for (size_t i = 0; i < o->n_waits; i++) {
                struct delayed_wait *w = &o->waits[i];

                pthread_mutex_lock(&w->key->lock);
                list_remove(&w->node);
                w->key->n_waits--;
                pthread_mutex_unlock(&w->key->lock);
        }
        (void)atomic_fetch_sub(&o->purgatory->n_waits, o->n_waits);
        pthread_mutex_lock(&o->purgatory->lock);
        heap_remove(o->purgatory, o);
        pthread_mutex_unlock(&o->purgatory->lock);
}

/* The one place that decides who completes: false for all but the first. */
static bool win(struct delayed_op *o, const struct purgatory_key *hint, bool force)
{
        bool won = false;

        if (atomic_load_explicit(&o->completed, memory_order_acquire))
                return false;
        pthread_mutex_lock(&o->lock);
        if (!atomic_load_explicit(&o->completed, memory_order_relaxed) &&
            (force || o->ops->is_satisfied(o, hint))) {
                atomic_store_explicit(&o->completed, true, memory_order_release);
                won = true;
        }
        pthread_mutex_unlock(&o->lock);
        return won;
}

/* @o waits (is in the purgatory) and this thread has won it. */
static void finish(struct delayed_op *o, bool expired)
{
        struct purgatory *p = o->purgatory;

        unhook(o);
        metric_add(&p->waiting, -1);
        metric_observe_us(&p->hold, clock_mono_us() - o->born_us);
        o->ops->complete(o, expired);
        delayed_op_unref(o); /* the purgatory's */
}

static bool complete_if(struct delayed_op *o, const struct purgatory_key *hint, bool force)
{
        if (!win(o, hint, force))
                return false;
        finish(o, force);
        return true;
}

/* --- expiry --- */

static struct delayed_op *take_due(struct purgatory *p, int64_t now_ms)
{
        struct delayed_op *o = NULL;

        pthread_mutex_lock(&p->lock);
        if (p->n_heap > 0 && (p->closed || p->heap[0]->deadline_ms <= now_ms)) {
                o = p->heap[0];
                heap_remove(p, o);
                op_ref(o);
        }
        pthread_mutex_unlock(&p->lock);
        return o;
}

static void expire_due(struct purgatory *p, int64_t now_ms)
{
        struct delayed_op *o;

        while ((o = take_due(p, now_ms))) {
                (void)complete_if(o, NULL, true); /* false: satisfied at this very moment */
                delayed_op_unref(o);
        }
}

/* References to up to CHECK_BATCH operations from *at on. The heap may be reordered between two calls: who is
 * missed is seen the next time. */
static size_t look_at(struct purgatory *p, size_t *at, struct delayed_op **ops)
{
        size_t n = 0;

        pthread_mutex_lock(&p->lock);
        for (; *at < p->n_heap && n < CHECK_BATCH; (*at)++) {
                ops[n] = p->heap[*at];
                op_ref(ops[n++]);
        }
        pthread_mutex_unlock(&p->lock);
        return n;
}

/* Until it is completed the request is there to be asked about; the lock keeps it so. */
static bool abandon(struct delayed_op *o)
{
        bool won;

        pthread_mutex_lock(&o->lock);
        won = !atomic_load_explicit(&o->completed, memory_order_relaxed) && o->ops->is_abandoned &&
              o->ops->is_abandoned(o);
        if (won)
                atomic_store_explicit(&o->completed, true, memory_order_release);
        pthread_mutex_unlock(&o->lock);
        return won;
}

static int on_sweep(struct loop *l, void *userdata)
{
        struct purgatory *p = userdata;
        struct delayed_op *ops[CHECK_BATCH];
        size_t at = 0, n;

        (void)l;
        while ((n = look_at(p, &at, ops)) > 0)
                for (size_t i = 0; i < n; i++) {
                        if (abandon(ops[i]))
                                finish(ops[i], true);
                        delayed_op_unref(ops[i]);
                }
        return 0;
}

static void rearm(struct purgatory *p)
{
        int64_t due_ms = -1;

        pthread_mutex_lock(&p->lock);
        if (p->n_heap > 0)
                due_ms = p->heap[0]->deadline_ms;
        pthread_mutex_unlock(&p->lock);
        if (due_ms >= 0)
                loop_timer_arm(p->timer, due_ms - loop_now_ms(p->loop), 0);
        else
                loop_timer_disarm(p->timer);
}

static int on_timer(struct loop *l, void *userdata)
{
        struct purgatory *p = userdata;

        expire_due(p, loop_now_ms(l));
        rearm(p);
        return 0;
}

static void on_task(void *userdata)
{
        struct purgatory *p = userdata;

        pthread_mutex_lock(&p->lock);
        p->task_posted = false;
        pthread_mutex_unlock(&p->lock);
        rearm(p);
}

/* -ENOMEM, -ESHUTDOWN: it is not there, and nobody but the caller will complete it. */
static int schedule(struct purgatory *p, struct delayed_op *o)
{
        bool post = false;
        int r = 0;

        pthread_mutex_lock(&p->lock);
        if (p->closed)
                r = -ESHUTDOWN;
        else if (!atomic_load_explicit(&o->completed, memory_order_acquire))
                r = heap_push(p, o);
        if (r == 0 && o->heap_at == 1 && !p->task_posted)
                post = p->task_posted = true;
        pthread_mutex_unlock(&p->lock);
        if (post)
                loop_post_task(p->loop, &p->task);
        return r;
}

/* --- what callers do --- */

/* Nobody else knows @o yet. */
static bool answer_now(struct delayed_op *o, int64_t timeout_ms)
{
        if (win(o, NULL, false))
                o->ops->complete(o, false);
        else if (timeout_ms <= 0 && win(o, NULL, true))
                o->ops->complete(o, true);
        else
                return false;
        return true;
}

/* false: it is too crowded there. */
static bool hook_in(struct delayed_op *o)
{
        size_t before = atomic_fetch_add(&o->purgatory->n_waits, o->n_waits);
        bool room = o->ops->max_waits == 0 || before + o->n_waits <= o->ops->max_waits;

        for (size_t i = 0; i < o->n_waits; i++) {
                struct delayed_wait *w = &o->waits[i];

                w->op = o;
                pthread_mutex_lock(&w->key->lock);
                list_push_back(&w->key->waits, &w->node);
                w->key->n_waits++;
                room &= o->ops->max_key_waits == 0 || w->key->n_waits <= o->ops->max_key_waits;
                pthread_mutex_unlock(&w->key->lock);
        }
        return room;
}

void purgatory_wait(struct purgatory *p, struct delayed_op *o, struct delayed_wait *waits, size_t n_waits,
                    int64_t timeout_ms)
{
        bool room;

        o->purgatory = p;
        for (size_t i = 0; i < n_waits; i++)
                list_init(&waits[i].node);
        o->waits = waits;
        o->n_waits = n_waits;
        o->deadline_ms = clock_mono_ms() + timeout_ms;
        op_ref(o); /* the purgatory's */
        metric_add(&p->waiting, 1);
        /* Winners read o->waits and unhook each; they must find all of them hooked in. The lock keeps them
         * out meanwhile: purgatory_check() takes it before it can win. */
        pthread_mutex_lock(&o->lock);
        room = hook_in(o);
        pthread_mutex_unlock(&o->lock);
        if (!complete_if(o, NULL, false) && (!room || schedule(p, o) < 0))
                (void)complete_if(o, NULL, true);
        delayed_op_unref(o); /* the caller's */
}

void purgatory_try_or_wait(struct purgatory *p, struct delayed_op *o, struct delayed_wait *waits,
                           size_t n_waits, int64_t timeout_ms)
{
        if (answer_now(o, timeout_ms))
                delayed_op_unref(o);
        else
                purgatory_wait(p, o, waits, n_waits, timeout_ms);
}

/* A referenced copy of the next operations behind @cursor, so that no key lock is held while they are tried.
 * The cursor is an entry of the list itself: whatever others unhook meanwhile, none that stays is skipped. */
static size_t collect(struct purgatory_key *k, struct delayed_wait *cursor, struct delayed_op **ops)
{
        struct list *at;
        size_t n = 0;

        pthread_mutex_lock(&k->lock);
        for (at = cursor->node.next; at != &k->waits && n < CHECK_BATCH; at = at->next) {
                struct delayed_op *o = list_entry(at, struct delayed_wait, node)->op;

                if (!o) /* another checker's cursor */
                        continue;
                op_ref(o);
                ops[n++] = o;
        }
        list_remove(&cursor->node);
        if (n == CHECK_BATCH)
                list_insert_after_(at->prev, &cursor->node);
        pthread_mutex_unlock(&k->lock);
        return n;
}

static bool key_is_empty(struct purgatory_key *k, struct delayed_wait *cursor)
{
        bool empty;

        pthread_mutex_lock(&k->lock);
        empty = list_empty(&k->waits);
        if (!empty)
                list_push_front(&k->waits, &cursor->node);
        pthread_mutex_unlock(&k->lock);
        return empty;
}

int32_t purgatory_check(struct purgatory_key *k)
{
        struct delayed_wait cursor = {.op = NULL, .key = k};
        struct delayed_op *ops[CHECK_BATCH];
        int32_t completed = 0;
        size_t n;

        list_init(&cursor.node);
        if (key_is_empty(k, &cursor))
                return 0;
        do {
                n = collect(k, &cursor, ops);
                for (size_t i = 0; i < n; i++) {
                        completed += complete_if(ops[i], k, false);
                        delayed_op_unref(ops[i]);
                }
        } while (n == CHECK_BATCH);
        return completed;
}

int32_t purgatory_waiting(const struct purgatory *p)
{
        return (int32_t)atomic_load_explicit(&p->waiting.value, memory_order_relaxed);
}

/* --- life --- */

static void init_metrics(struct purgatory *p, const char *name)
{
        (void)snprintf(p->labels, sizeof(p->labels), "purgatory=\"%s\"", name);
        p->waiting = (struct metric){.type = METRIC_T_GAUGE,
                                     .name = "stepdown_purgatory_waiting",
                                     .help = "Requests that wait in the purgatory",
                                     .labels = p->labels};
        p->hold = (struct metric){.type = METRIC_T_HISTOGRAM,
                                  .name = "stepdown_purgatory_hold_seconds",
                                  .help = "How long requests waited in the purgatory",
                                  .labels = p->labels};
        metrics_register(&p->waiting);
        metrics_register(&p->hold);
}

int purgatory_new(struct loop *loop, const char *name, struct purgatory **ret)
{
        cleanup_with(freep) struct purgatory *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        p->loop = loop;
        p->task = (struct loop_task){.fn = on_task, .userdata = p};
        r = -pthread_mutex_init(&p->lock, NULL);
        if (r < 0)
                return r;
        r = loop_add_timer(loop, on_timer, p, &p->timer);
        if (r == 0)
                r = loop_add_timer(loop, on_sweep, p, &p->sweep_timer);
        if (r < 0) {
                (void)loop_timer_remove(p->timer);
                pthread_mutex_destroy(&p->lock);
                return r;
        }
        loop_timer_arm(p->sweep_timer, SWEEP_PERIOD_MS, SWEEP_PERIOD_MS);
        init_metrics(p, name);
        *ret = TAKE_PTR(p);
        return 0;
}

void purgatory_close(struct purgatory *p)
{
        pthread_mutex_lock(&p->lock);
        p->closed = true;
        pthread_mutex_unlock(&p->lock);
        expire_due(p, INT64_MAX);
}

struct purgatory *purgatory_free(struct purgatory *p)
{
        if (!p)
                return NULL;
        assert(p->n_heap == 0);
        p->timer = loop_timer_remove(p->timer);
        p->sweep_timer = loop_timer_remove(p->sweep_timer);
        metrics_unregister(&p->waiting);
        metrics_unregister(&p->hold);
        pthread_mutex_destroy(&p->lock);
        free(p->heap);
        free(p);
        return NULL;
}
