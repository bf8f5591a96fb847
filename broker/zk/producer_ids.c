/* One claim at a time: read the block that was claimed last, claim the next one with the version read. */
#include "zk/producer_ids.h"

#include <errno.h>
#include <pthread.h>

#include "zk/znode.h"

#define BLOCK_IDS 1000 /* Kafka's ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE */
#define MAX_TRIES 50   /* lost races in a row; each means that another broker got a block */

struct waiter {
        struct list node;
        struct loop_task task;
        producer_id_fn fn;          /* wants one id, or */
        producer_id_block_fn whole; /* all there are */
        void *userdata;
        int r;
        int64_t id;
        int32_t n;
};

struct producer_ids {
        pthread_mutex_t lock;
        struct zk *z;
        struct loop *loop;
        int32_t broker_id;
        int refs; /* the owner, and the operation in flight */
        bool closed, claiming;
        int tries;
        int64_t next, last;              /* what is left: next <= last */
        int64_t claim_first, claim_last; /* of the write in flight */
        struct list waiters;
};

static void claim(struct producer_ids *p);

static void put(struct producer_ids *p)
{
        (void)pthread_mutex_lock(&p->lock);
        int refs = --p->refs;
        (void)pthread_mutex_unlock(&p->lock);

        if (refs > 0)
                return;
        (void)pthread_mutex_destroy(&p->lock);
        free(p);
}

static void deliver(void *userdata)
{
        struct waiter *w = userdata;

        if (w->whole)
                w->whole(w->r, w->id, w->n, w->userdata);
        else
                w->fn(w->r, w->id, w->userdata);
        free(w);
}

/* Locked. */
static void answer(struct producer_ids *p, struct waiter *w, int r, int64_t id, int32_t n)
{
        list_remove(&w->node);
        w->r = r;
        w->id = id;
        w->n = n;
        w->task = (struct loop_task){.fn = deliver, .userdata = w};
        loop_post_task(p->loop, &w->task);
}

/* Locked. */
static void serve_one(struct producer_ids *p, struct waiter *w)
{
        int32_t n = w->whole ? (int32_t)(p->last - p->next + 1) : 1;

        p->next += n;
        answer(p, w, 0, p->next - n, n);
}

/* Locked. Serve who waits, in order, from what there is; claim more when it is not enough. */
static void serve(struct producer_ids *p)
{
        while (!list_empty(&p->waiters) && p->next <= p->last)
                serve_one(p, list_entry(p->waiters.next, struct waiter, node));
        if (!list_empty(&p->waiters) && !p->claiming && !p->closed)
                claim(p);
}

/* Locked. */
static void claim_failed(struct producer_ids *p, int r)
{
        p->claiming = false;
        p->tries = 0;
        while (!list_empty(&p->waiters))
                answer(p, list_entry(p->waiters.next, struct waiter, node), r, -1, 0);
}

static void on_claimed(const struct zk_result *res, void *userdata)
{
        struct producer_ids *p = userdata;

        (void)pthread_mutex_lock(&p->lock);
        p->claiming = false;
        if (res->r == 0) {
                p->tries = 0;
                p->next = p->claim_first;
                p->last = p->claim_last;
        }
        if (p->closed || res->r == 0 || (res->r == -ESTALE && ++p->tries < MAX_TRIES))
                serve(p); /* -ESTALE: another broker was faster */
        else
                claim_failed(p, res->r); /* outcome unknown: the block is skipped, never used twice */
        (void)pthread_mutex_unlock(&p->lock);
        put(p);
}

/* Locked. The block after the one @res shows. */
static int next_block(struct producer_ids *p, const struct zk_result *res, struct znode_producer_ids *ret)
{
        struct znode_producer_ids old;
        int r;

        *ret = (struct znode_producer_ids){.broker_id = p->broker_id, .first = 0, .last = BLOCK_IDS - 1};
        if (!res->data || res->data_len == 0)
                return 0; /* the node is made empty: no block was claimed yet */
        r = znode_producer_ids_decode(res->data, res->data_len, &old);
        if (r < 0)
                return r;
        if (old.last > INT64_MAX - BLOCK_IDS)
                return -EOVERFLOW;
        ret->first = old.last + 1;
        ret->last = old.last + BLOCK_IDS;
        return 0;
}

static void on_block(const struct zk_result *res, void *userdata)
{
        struct producer_ids *p = userdata;
        struct znode_producer_ids block;
        char text[ZNODE_STATE_SIZE];
        int r = res->r;

        (void)pthread_mutex_lock(&p->lock);
        if (r == 0)
                r = next_block(p, res, &block);
        if (r == 0 && !p->closed) {
                p->claim_first = block.first;
                p->claim_last = block.last;
                (void)znode_producer_ids_encode(&block, text);
                p->refs++;
                r = zk_set(p->z, p->loop, ZNODE_PRODUCER_IDS, text, res->stat.version, on_claimed, p);
                if (r < 0)
                        p->refs--;
        }
        if (r < 0)
                claim_failed(p, r);
        (void)pthread_mutex_unlock(&p->lock);
        put(p);
}

/* Locked. */
static void claim(struct producer_ids *p)
{
        int r;

        p->claiming = true;
        p->refs++;
        r = zk_get(p->z, p->loop, ZNODE_PRODUCER_IDS, NULL, on_block, p);
        if (r < 0) {
                p->refs--;
                claim_failed(p, r);
        }
}

int producer_ids_new(struct zk *z, struct loop *loop, int32_t broker_id, struct producer_ids **ret)
{
        struct producer_ids *p = calloc(1, sizeof(*p));

        if (!p)
                return -ENOMEM;
        (void)pthread_mutex_init(&p->lock, NULL);
        p->z = z;
        p->loop = loop;
        p->broker_id = broker_id;
        p->refs = 1;
        p->last = -1;
        list_init(&p->waiters);
        *ret = p;
        return 0;
}

struct producer_ids *producer_ids_free(struct producer_ids *p)
{
        if (!p)
                return NULL;
        (void)pthread_mutex_lock(&p->lock);
        p->closed = true;
        while (!list_empty(&p->waiters))
                answer(p, list_entry(p->waiters.next, struct waiter, node), -ECANCELED, -1, 0);
        (void)pthread_mutex_unlock(&p->lock);
        put(p);
        return NULL;
}

static int wait_for_ids(struct producer_ids *p, const struct waiter *wanted)
{
        struct waiter *w = calloc(1, sizeof(*w));

        if (!w)
                return -ENOMEM;
        *w = *wanted;
        list_init(&w->node);
        (void)pthread_mutex_lock(&p->lock);
        list_push_back(&p->waiters, &w->node);
        serve(p);
        (void)pthread_mutex_unlock(&p->lock);
        return 0;
}

int producer_ids_next(struct producer_ids *p, producer_id_fn fn, void *userdata)
{
        return wait_for_ids(p, &(struct waiter){.fn = fn, .userdata = userdata});
}

int producer_ids_take(struct producer_ids *p, producer_id_block_fn fn, void *userdata)
{
        return wait_for_ids(p, &(struct waiter){.whole = fn, .userdata = userdata});
}
