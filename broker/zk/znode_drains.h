/* /stepdown/drains: the record of the last drains of the cluster (D12). Pure encoder and decoder.
 *
 * One znode, an object {"version":1,"drains":[…]}, oldest first. Written by the controller alone. Unknown
 * members are ignored, and an entry that cannot be read is left out, so that an older program reads what a
 * newer one wrote. The decoder is -EBADMSG for what is no such object and leaves *ret untouched then. */
#pragma once

#include "base/buf.h"
#include "base/util.h"

#define ZNODE_STEPDOWN "/stepdown"
#define ZNODE_DRAINS   "/stepdown/drains"

#define ZNODE_DRAIN_TEXT    256 /* with its NUL; longer ones are cut */
#define ZNODE_DRAIN_NAME    40
#define ZNODE_DRAIN_REASONS 16
#define ZNODE_DRAIN_LEFT    10

struct znode_drain_left { /* a partition that was not handed over */
        char topic[250];
        int32_t partition;
        char reason[ZNODE_DRAIN_NAME];
};

struct znode_drain {
        char id[ZNODE_DRAIN_TEXT], reason[ZNODE_DRAIN_TEXT], requested_by[ZNODE_DRAIN_TEXT];
        int32_t broker, controller;                            /* controller: who wrote this last */
        int64_t epoch;                                         /* of the broker's registration */
        char verdict[ZNODE_DRAIN_NAME];                        /* "": it goes on */
        int64_t started_ms, deadline_ms, drained_ms, ended_ms; /* wall clock; 0: none */
        int64_t busy_ms;                  /* of that, the time in which something could be moved */
        int32_t leaders;                  /* with RF > 1, when it began */
        int32_t replicas;                 /* with RF > 1, led or followed, when it began */
        int32_t preferred, preferred_led; /* of them, whose first replica it is; that it led. -1: not known */
        int64_t returned_ms;              /* when the leaderships it took had gone back (D11); 0: not yet */
        int32_t moved;                    /* leaderships handed over */
        int32_t remaining;                /* with RF > 1, still led at the end; -1: not known */
        int32_t isr_remaining, single;
        struct {
                char name[ZNODE_DRAIN_NAME];
                int32_t n;
        } reasons[ZNODE_DRAIN_REASONS]; /* of what remained */
        size_t n_reasons;
        struct znode_drain_left *left; /* up to ZNODE_DRAIN_LEFT of what remained; NULL: none */
        size_t n_left;
};

struct znode_drains {
        struct znode_drain *items; /* oldest first */
        size_t n;
};

int znode_drains_encode(const struct znode_drain *items, size_t n, struct buf *out) must_check;
int znode_drains_decode(const char *s, size_t len, struct znode_drains *ret) must_check;
void znode_drain_done(struct znode_drain *d);
void znode_drains_done(struct znode_drains *d);
