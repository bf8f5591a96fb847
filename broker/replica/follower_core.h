/* What a follower does with the answer to one partition of its Fetch: append, truncate, start afresh, wait.
 * Pure.
 *
 * Truncation is by leader epoch alone: the leader says where its history departs from ours (KAFKA-10554), and
 * never by the high watermark, which lags and may be below what is committed (KAFKA-1211, KIP-101). */
#pragma once

#include <stdint.h>

#include "base/util.h"

struct follower_log { /* our log when the answer is handled */
        int64_t start_offset, end_offset, hw;
};

struct follower_answer { /* one partition of the response */
        int16_t error;
        int32_t diverging_epoch; /* -1: none */
        int64_t diverging_end_offset;
        int64_t fetch_offset; /* what we had asked for */
        int64_t records_bytes;
};

enum follower_action {
        FOLLOWER_APPEND,   /* append the records (maybe none), then take over the leader's HW */
        FOLLOWER_IGNORE,   /* our log is not where it was when we asked: ask again at its end (KAFKA-13266) */
        FOLLOWER_TRUNCATE, /* resolve the divergence with follower_truncation_offset() */
        FOLLOWER_FIND_RANGE,  /* out of range: ask the leader for its log's start and end */
        FOLLOWER_RETRY_SOON,  /* the leader has not heard of its own or our epoch yet: LeaderAndIsr is on its
                                 way */
        FOLLOWER_RETRY_LATER, /* its storage, or something unknown */
};

enum follower_action follower_on_answer(const struct follower_log *log, const struct follower_answer *a);

/* Where to cut when the leader's history of epoch @diverging_epoch ends at @diverging_end_offset.
 * @own_epoch, @own_end_offset: our largest epoch <= @diverging_epoch and where it ends in our log, -1/-1 when
 * we have none. If @own_epoch is smaller the next fetch may find a further divergence (KIP-279). */
int64_t follower_truncation_offset(const struct follower_log *log, int32_t diverging_epoch,
                                   int64_t diverging_end_offset, int32_t own_epoch, int64_t own_end_offset);

/* Out of range. The leader's log is [@leader_start, @leader_end). */
enum follower_range_action {
        FOLLOWER_RANGE_TRUNCATE, /* we are ahead: cut to *ret_offset */
        FOLLOWER_RANGE_RESTART,  /* the leader deleted what we need: drop all and start at *ret_offset */
        FOLLOWER_RANGE_REFETCH,  /* our end is inside: ask again */
};
enum follower_range_action follower_on_range(const struct follower_log *log, int64_t leader_start,
                                             int64_t leader_end, int64_t *ret_offset);

/* The HW of a follower: never above its own log, never backwards within an epoch (I7). */
int64_t follower_high_watermark(const struct follower_log *log, int64_t leader_hw);

/* Pause before asking again after the @attempts-th failure in a row (1, 2 …): doubles from @first_ms to
 * @max_ms. */
int64_t follower_backoff_ms(int32_t attempts, int64_t first_ms, int64_t max_ms);
