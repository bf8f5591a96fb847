/* Producer ids, unique in the cluster: blocks of 1000 claimed by compare-and-set of
 * /latest_producer_id_block. [any thread]. A block is used up from memory; what is left of it at a restart is
 * skipped. */
#pragma once

#include "zk/zk.h"

struct producer_ids;

/* @z and @loop are borrowed and must outlive it; ZooKeeper's answers are handled on @loop. */
int producer_ids_new(struct zk *z, struct loop *loop, int32_t broker_id, struct producer_ids **ret)
        must_check;
/* [any thread] Requests that still wait are answered with -ECANCELED, on @loop, afterwards. */
struct producer_ids *producer_ids_free(struct producer_ids *p);
DEFINE_FREEP(struct producer_ids, producer_ids_free)

/* r: 0; -EOWNERDEAD, -ETIMEDOUT, -ECONNRESET … of the claim (ask again); -EBADMSG the znode is not readable;
 * -EOVERFLOW no ids are left; -ECANCELED. On @loop's thread, never from inside the call. */
typedef void (*producer_id_fn)(int r, int64_t producer_id, void *userdata);
/* What is left of the block in hand, at least one id, for another broker to use (AllocateProducerIds). */
typedef void (*producer_id_block_fn)(int r, int64_t first, int32_t n, void *userdata);
int producer_ids_take(struct producer_ids *p, producer_id_block_fn fn, void *userdata)
        must_check;                                                                          /* -ENOMEM */
int producer_ids_next(struct producer_ids *p, producer_id_fn fn, void *userdata) must_check; /* -ENOMEM */
