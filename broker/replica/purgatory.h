/* Where requests wait that cannot be answered yet: produce with acks=all, fetch with min.bytes.
 *
 * An operation waits under a number of keys (one a partition, embedded in it). Whoever changes a partition
 * calls purgatory_check() on its key *with no lock held* (KAFKA-3994, 5970, 6042), which asks every operation
 * waiting there whether it is satisfied. An operation is completed exactly once, by whoever finds it
 * satisfied first or by its expiry (KAFKA-385); the winner unhooks it from all its keys at once, so nothing
 * satisfied is kept (KAFKA-664).
 *
 * Locks, outermost first: operation -> (whatever is_satisfied takes); key; timers. complete() runs with none
 * held. [any thread], except purgatory_new/_free. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/list.h"
#include "base/loop.h"
#include "base/metrics.h"

struct purgatory;

struct purgatory_key {
        pthread_mutex_t lock;
        struct list waits; /* lock */
        size_t n_waits;    /* lock */
};
int purgatory_key_init(struct purgatory_key *k) must_check;
void purgatory_key_done(struct purgatory_key *k); /* nothing may wait under it */

struct delayed_op;

struct delayed_op_ops {
        /* Could it be answered now? Called under the operation's lock, never again once it returned true.
         * @hint: the key whose change asks (NULL: none). May lock partitions, must not call the purgatory. */
        bool (*is_satisfied)(struct delayed_op *o, const struct purgatory_key *hint);
        /* Exactly once, no lock held. @expired: its time was over (or the purgatory closes) before it was
         * satisfied. */
        void (*complete)(struct delayed_op *o, bool expired);
        void (*free)(struct delayed_op *o); /* the last reference went */
        /* Has who asked for it gone? Under the operation's lock, about once a second; then it is completed as
         * expired, so that clients who ask and leave fill nothing. NULL: nobody can go. */
        bool (*is_abandoned)(struct delayed_op *o);
        /* How many waits there may be in the whole purgatory, and under one key, whose change is told to each
         * of them. Operations past that are completed as expired at once. 0: any number. */
        size_t max_waits, max_key_waits;
};

struct delayed_wait { /* one of an operation's places in a key's list */
        struct list node;
        struct delayed_op *op;
        struct purgatory_key *key;
};

struct delayed_op { /* embedded in the caller's operation */
        const struct delayed_op_ops *ops;
        struct purgatory *purgatory;
        pthread_mutex_t lock;
        _Atomic bool completed; /* written under lock */
        _Atomic int refs;
        int64_t born_us, deadline_ms;
        size_t heap_at; /* timers' lock: position + 1; 0: not there */
        struct delayed_wait *waits;
        size_t n_waits;
};

/* @name: of its metrics ("produce", "fetch"); a string literal. Expiries run on @loop's thread. */
int purgatory_new(struct loop *loop, const char *name, struct purgatory **ret) must_check;
/* Complete as expired all that wait; what comes later is completed as expired at once. The loop may still
 * run. */
void purgatory_close(struct purgatory *p);
struct purgatory *
purgatory_free(struct purgatory *p); /* closed, the loop's thread ended, no operation left */
DEFINE_FREEP(struct purgatory, purgatory_free)
int32_t purgatory_waiting(const struct purgatory *p);

/* Fills in @o and takes one reference for the caller. -errno of the mutex. */
int delayed_op_init(struct delayed_op *o, const struct delayed_op_ops *ops) must_check;
void delayed_op_unref(struct delayed_op *o);

/* Answer @o now if it is satisfied; else make it wait under @waits (their .key is set; memory of the
 * operation's own) for at most @timeout_ms. It tries again after it has been hooked in, so that a change
 * between the two is not missed (KAFKA-6653, 8334). The caller's reference is given up. */
void purgatory_try_or_wait(struct purgatory *p, struct delayed_op *o, struct delayed_wait *waits,
                           size_t n_waits, int64_t timeout_ms);
/* The same for who has just found that it is not satisfied, and @timeout_ms > 0: not tried before it is
 * hooked in. */
void purgatory_wait(struct purgatory *p, struct delayed_op *o, struct delayed_wait *waits, size_t n_waits,
                    int64_t timeout_ms);
/* Complete what waits under @k and is satisfied now; no lock may be held. Returns how many. */
int32_t purgatory_check(struct purgatory_key *k);
