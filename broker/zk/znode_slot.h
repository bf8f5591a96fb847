/* /stepdown/drain_slot: who may be stopped now (D3). Pure; the rules of znode.h hold here too.
 *
 *   {"version":1,"cluster_stop":false,
 *    "holders":[{"broker":1,"epoch":42,"drain_id":"…","state":"draining","since_ms":…,"expires_ms":…,
 *                "deadline_ms":…,"leaders":7,"asked_ago_ms":…,"reason":"…","requested_by":"…"}],
 *    "waiting":[{"broker":2,"epoch":43,"since_ms":…,"asked_ago_ms":…}],
 *    "ended":[{"drain_id":"…","broker":3,"epoch":41,"how":"returned","at_ms":…,"note":"…"}]}
 *
 * Valid is an object of version 1 whose texts fit; what is missing is empty. The znode is persistent and
 * written whole, in a multi with the check of /controller_epoch and its own version. Times are wall clock,
 * for people. Nobody counts with them: `asked_ago_ms` is an age at the time of the write, which together with
 * the Stat's mtime (ZooKeeper's clock) tells a later controller how long ago somebody asked, whatever its own
 * clock says. */
#pragma once

#include "base/buf.h"
#include "base/util.h"

#define ZNODE_STEPDOWN         "/stepdown"
#define ZNODE_SLOT             "/stepdown/drain_slot"
#define ZNODE_SLOT_TEXT_SIZE   256 /* drain id, reason, requested_by, note: with the NUL */
#define ZNODE_SLOT_MAX_HOLDERS 256
#define ZNODE_SLOT_MAX_WAITING 64
#define ZNODE_SLOT_MAX_ENDED   64

enum slot_state {
        SLOT_DRAINING,  /* its broker is up, in the life that asked, and masked */
        SLOT_DOWN,      /* its broker is gone: stopped, or dead */
        SLOT_RETURNING, /* its broker is back, or the drain was undone: not yet in every ISR */
        N_SLOT_STATES,
};
const char *slot_state_name(enum slot_state s);

struct slot_holder {
        int32_t broker;
        int64_t epoch;
        char drain_id[ZNODE_SLOT_TEXT_SIZE], reason[ZNODE_SLOT_TEXT_SIZE], requested_by[ZNODE_SLOT_TEXT_SIZE];
        enum slot_state state;
        int64_t since_ms, expires_ms, deadline_ms; /* deadline 0: none */
        int32_t leaders;                           /* with RF > 1, when the drain began */
        int64_t asked_ago_ms;
        /* Not in the znode; the controller's own clock. */
        int64_t until_ms; /* the lease */
        int64_t asked_ms; /* when it asked */
        int32_t missing;  /* ISRs that it is not in, the fewest so far; -1: never counted */
};

struct slot_waiter {
        int32_t broker;
        int64_t epoch;
        int64_t since_ms, asked_ago_ms;
        /* Not in the znode. */
        int64_t asked_ms, last_ms;
};

enum slot_end { SLOT_END_RETURNED, SLOT_END_UNDONE, SLOT_END_EXPIRED, SLOT_END_REPLACED, N_SLOT_ENDS };
const char *slot_end_name(enum slot_end e);

struct slot_ended { /* a drain that is over: a late request with its id is stale */
        char drain_id[ZNODE_SLOT_TEXT_SIZE], note[ZNODE_SLOT_TEXT_SIZE];
        int32_t broker;
        int64_t epoch, at_ms;
        enum slot_end how;
};

/* "broker 1 (epoch 42, draining since 2026-01-31T10:00:00Z, at most until …, drain id …)" */
#define SLOT_HOLDER_TEXT_SIZE 512
void slot_holder_text(const struct slot_holder *h, char out[SLOT_HOLDER_TEXT_SIZE]);

/* About 250 KB: for the heap. */
struct znode_slot {
        bool cluster_stop; /* D8: all of the cluster is being stopped; nobody waits */
        size_t n_holders, n_waiting, n_ended;
        struct slot_holder holders[ZNODE_SLOT_MAX_HOLDERS];
        struct slot_waiter waiting[ZNODE_SLOT_MAX_WAITING];
        struct slot_ended ended[ZNODE_SLOT_MAX_ENDED]; /* oldest first */
};

int znode_slot_encode(const struct znode_slot *s, struct buf *out) must_check;
/* Entries beyond the room there is are left out. Fills all of *ret. -EBADMSG, -ENOMEM. */
int znode_slot_decode(const char *s, size_t len, struct znode_slot *ret) must_check;
