/* Which leader epoch wrote which offsets (KIP-101, KIP-279): entries {epoch, start offset}, both growing
 * strictly. Pure: no file. The cache says nothing that the batches do not say, except that its last entry may
 * have no data yet (KAFKA-7415). Not thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct epoch_entry {
        int32_t epoch;
        int64_t start_offset;
};

struct epoch_cache {
        struct epoch_entry *entries;
        size_t n, cap;
};

void epoch_cache_done(struct epoch_cache *c);
static inline void epoch_cache_donep(struct epoch_cache *c)
{
        epoch_cache_done(c);
}
int epoch_cache_copy(const struct epoch_cache *from, struct epoch_cache *ret) must_check;

/* @epoch begins at @start_offset. Older entries that contradict it (an epoch or an offset that is not
 * smaller) give way. Returns 1 when the cache changed, 0 when it said so already, -ENOMEM, -EINVAL for
 * negative numbers. */
int epoch_cache_assign(struct epoch_cache *c, int32_t epoch, int64_t start_offset) must_check;
/* Would epoch_cache_assign() change anything? */
bool epoch_cache_needs(const struct epoch_cache *c, int32_t epoch, int64_t start_offset);
/* Forget epochs that begin at @offset or later. True when something changed. */
bool epoch_cache_truncate_from_end(struct epoch_cache *c, int64_t offset);
/* The log begins at @offset now: forget older epochs; the one @offset lies in begins there. */
bool epoch_cache_truncate_from_start(struct epoch_cache *c, int64_t offset);

int32_t epoch_cache_latest(const struct epoch_cache *c); /* -1: none */
/* The epoch of the record at @offset; -1: none. */
int32_t epoch_cache_at(const struct epoch_cache *c, int64_t offset);
/* KIP-279: the largest epoch <= @epoch that we know and where it ends; -1, -1 when @epoch is later than any
 * we know (or negative). When we know only later ones: @epoch itself, ending where the first of them begins.
 */
void epoch_cache_end_offset(const struct epoch_cache *c, int32_t epoch, int64_t log_end_offset,
                            int32_t *ret_epoch, int64_t *ret_end_offset);
