/* What a partition knows about idempotent producers (KIP-98): their epoch and their last five batches, so
 * that a batch sent twice is stored once and a gap is refused. Pure: the caller passes the time. Not
 * thread-safe.
 *
 * Entries expire by the broker's clock at their last append, not by record timestamps, which are the
 * client's. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/util.h"

#define PRODUCER_BATCHES 5 /* as many as clients may have in flight with idempotence */

/* A batch of a hundred bytes with a producer id of its own costs three hundred for a day. Past so many the
 * tenth that was longest silent is forgotten, as after the expiration: who sends again within minutes is not
 * among them unless there are as many others that do. */
#define PRODUCERS_MAX 10000

struct producer_batch {
        int32_t first_sequence, last_sequence, offset_delta;
        int64_t last_offset, timestamp_ms; /* the broker's clock at the append */
};

struct producer_state;

struct producer_state *producer_state_new(void); /* NULL: out of memory */
struct producer_state *producer_state_free(struct producer_state *s);
DEFINE_FREEP(struct producer_state, producer_state_free)
size_t producer_state_count(const struct producer_state *s);
void producer_state_clear(struct producer_state *s);

/* The sequence @n records after @sequence: MAX_INT is followed by 0. */
int32_t producer_sequence_add(int32_t sequence, int32_t n);

bool producer_state_knows(const struct producer_state *s, int64_t producer_id);
/* May this producer's batch be appended by a leader?
 * 0: yes. 1: it is here already, *ret says where. -EILSEQ: a gap, or a new epoch that does not begin at 0.
 * -ESTALE: an epoch older than the known one. */
int producer_state_check(const struct producer_state *s, int64_t producer_id, int16_t epoch,
                         int32_t first_sequence, int32_t last_sequence, struct producer_batch *ret)
        must_check;
/* It was appended (by a leader, or by a follower, which does not check). May forget others (PRODUCERS_MAX).
 * -ENOMEM: call producer_state_reserve() first. */
int producer_state_update(struct producer_state *s, int64_t producer_id, int16_t epoch,
                          const struct producer_batch *b) must_check;
/* After this the next producer_state_update() of @producer_id cannot fail. */
int producer_state_reserve(struct producer_state *s, int64_t producer_id) must_check;
/* A transaction marker: carries the epoch and no sequence. */
int producer_state_marker(struct producer_state *s, int64_t producer_id, int16_t epoch, int64_t now_ms)
        must_check;
/* Forget producers whose last append is older than @max_age_ms. Returns how many. */
size_t producer_state_expire(struct producer_state *s, int64_t now_ms, int64_t max_age_ms);

/* A snapshot, Kafka's version 1, big-endian:
 *   version i16, CRC-32C u32 of what follows, count i32, then an entry
 *   { producer id i64, epoch i16, last sequence i32, last offset i64, offset delta i32, timestamp i64,
 *     coordinator epoch i32, first offset of the open transaction i64 }
 * A producer has an entry a remembered batch, oldest first; whoever keeps only one (Kafka) ends with the
 * newest. */
int producer_state_encode(const struct producer_state *s, struct buf *out) must_check;
/* Replaces what @s holds, or leaves it empty. -EBADMSG. */
int producer_state_decode(struct producer_state *s, const uint8_t *data, size_t len) must_check;
