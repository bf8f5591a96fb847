/* Appending: as a leader (validate, stamp) and as a follower (take over). Order of what happens, and why:
 *
 *   epoch entry    before the bytes: a leader must be able to answer for each epoch it has data of
 * (KAFKA-7415) bytes          one write; a failed one is cut off again producers      after the bytes: a
 * resend of a batch that was not stored must not look like a duplicate end offset     last: a reader bounded
 * by it sees whole batches only (KAFKA-698) */
#include "log/partition_log_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "wire/record_batch.h"

#define GROUP_MAX 64 /* batches written at once */

struct group { /* batches that follow one another in memory and go to one segment */
        const uint8_t *data;
        size_t len, n;
        struct batch_meta metas[GROUP_MAX];
};

/* --- rolling --- */

static bool too_old(const struct partition_log *l, const struct segment *s, int64_t max_timestamp,
                    int64_t now_ms)
{
        if (l->config.segment_ms <= 0)
                return false;
        if (s->first_timestamp >= 0 && max_timestamp >= 0)
                return max_timestamp - s->first_timestamp > l->config.segment_ms;
        return now_ms - s->created_ms > l->config.segment_ms;
}

static bool must_roll(const struct partition_log *l, size_t pending, const struct batch_meta *b,
                      int64_t now_ms)
{
        const struct segment *s = log_active(l);
        int64_t size = s->size + (int64_t)pending, after = size + b->size;

        if (size == 0)
                return false;
        if (after > l->config.segment_bytes || after > INT32_MAX) /* positions in the index are 32-bit */
                return true;
        if (b->last_offset - s->base_offset > INT32_MAX)
                return true;
        /* The time index is the one that fills first, and sealing needs a last entry. */
        if (((int64_t)s->offsets.n + 2) * TIME_INDEX_ENTRY > l->config.index_max_bytes)
                return true;
        return too_old(l, s, b->max_timestamp, now_ms);
}

/* What is below a checkpointed recovery point is not looked at after a crash. A truncation has put ours below
 * what the checkpoint may still say, so a segment that is sealed down there has to be on disk first. */
static int sync_below_checkpoint(struct partition_log *l)
{
        int r;

        if (atomic_load(&l->end_offset) > l->checkpointed_bound)
                return 0;
        r = segment_sync(log_active(l), true);
        return r < 0 ? r : log_sync_names(l);
}

int log_roll(struct partition_log *l)
{
        cleanup_with(segment_unrefp) struct segment *next = NULL;
        int64_t end = atomic_load(&l->end_offset);
        struct segment *old = log_active(l);
        int r;

        r = segment_write_indexes(old);
        if (r == 0)
                r = sync_below_checkpoint(l);
        if (r == 0)
                r = segment_create(l->dir, end, l->config.index_interval_bytes, &next);
        if (r < 0)
                return r;
        pthread_mutex_lock(&l->lock);
        r = segment_list_push(&l->segments, next);
        pthread_mutex_unlock(&l->lock);
        if (r < 0) {
                segment_unlink(next);
                return r;
        }
        next = NULL;
        if (segment_seal(old) < 0) /* cannot be: its indexes are written */
                slog_warning("seal-failed", "a sealed segment stays open", SL_STR("dir", l->dir));
        atomic_store(&l->dir_dirty, true);
        atomic_store(&l->rolled, true);
        r = log_producers_snapshot(l, end);
        if (r < 0)
                slog_warning("producer-snapshot-failed",
                             "no producer snapshot: the next start reads more of the log",
                             SL_STR("dir", l->dir), SL_ERR(r));
        return 0;
}

/* --- the common path --- */

static int prepare(struct partition_log *l, const struct group *g)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < g->n; i++) {
                r = log_enter_epoch(l, g->metas[i].leader_epoch, g->metas[i].base_offset);
                if (r == 0)
                        r = log_producers_reserve(l, &g->metas[i]);
        }
        return r;
}

static int write_group(struct partition_log *l, struct group *g, int64_t now_ms)
{
        int r;

        if (g->n == 0)
                return 0;
        r = prepare(l, g);
        if (r == 0)
                r = segment_append(log_active(l), g->data, g->len, g->metas, g->n);
        if (r < 0)
                return log_storage_error(l, r);
        for (size_t i = 0; i < g->n; i++) {
                r = log_producers_note(l, &g->metas[i], now_ms);
                assert(r == 0); /* reserved above */
        }
        atomic_store_explicit(&l->end_offset, g->metas[g->n - 1].last_offset + 1, memory_order_release);
        g->data += g->len;
        g->len = g->n = 0;
        return 0;
}

/* Add a batch to the group, writing out what has to go first. */
static int add_batch(struct partition_log *l, struct group *g, const struct batch_meta *b, int64_t now_ms)
{
        bool roll = must_roll(l, g->len, b, now_ms);
        int r = 0;

        if (roll || g->n == GROUP_MAX)
                r = write_group(l, g, now_ms);
        if (r == 0 && roll)
                r = log_storage_error(l, log_roll(l));
        if (r < 0)
                return r;
        g->metas[g->n++] = *b;
        g->len += (size_t)b->size;
        return 0;
}

static void info_add(struct log_append_info *info, const struct batch_meta *b)
{
        info->last_offset = b->last_offset;
        info->max_timestamp = MAX(info->max_timestamp, b->max_timestamp);
        info->n_records += b->n_records;
}

/* --- leader --- */

static int validate(const struct partition_log *l, uint8_t *data, size_t len, struct record_batch *b)
{
        int r = record_batch_parse(data, len, b);

        if (r < 0)
                return r == -ENODATA ? -EBADMSG : r;
        if (b->size != len)
                return -EINVAL; /* one batch a partition and request (KIP-98) */
        if (len > (size_t)l->config.max_message_bytes)
                return -EMSGSIZE;
        r = record_batch_check(b);
        if (r == 0)
                r = record_batch_check_produced(b);
        return r < 0 ? r : record_batch_repair_max_timestamp(data, b);
}

/* 1: a resend of what is here, *ret is filled in. */
static int check_producer(const struct partition_log *l, const struct record_batch *b,
                          struct log_append_info *ret)
{
        struct producer_batch known;
        int r;

        if (b->producer_id < 0 || !l->producers)
                return 0;
        r = producer_state_check(l->producers, b->producer_id, b->producer_epoch, b->base_sequence,
                                 producer_sequence_add(b->base_sequence, b->last_offset_delta), &known);
        if (r <= 0)
                return r;
        *ret = (struct log_append_info){
                .first_offset = known.last_offset - known.offset_delta,
                .last_offset = known.last_offset,
                .max_timestamp = b->max_timestamp,
                .n_records = b->n_records,
                .duplicate = true,
        };
        return 1;
}

bool partition_log_skips_sequences(const struct partition_log *l, const uint8_t *data, size_t len)
{
        struct producer_batch known;
        struct record_batch b;

        if (record_batch_parse(data, len, &b) < 0 || b.producer_id < 0 || b.base_sequence <= 0)
                return false;
        if (!l->producers || !producer_state_knows(l->producers, b.producer_id))
                return true;
        return producer_state_check(l->producers, b.producer_id, b.producer_epoch, b.base_sequence,
                                    producer_sequence_add(b.base_sequence, b.last_offset_delta),
                                    &known) == -EILSEQ;
}

int partition_log_append_leader(struct partition_log *l, uint8_t *data, size_t len, int32_t leader_epoch,
                                int64_t now_ms, struct log_append_info *ret)
{
        int64_t base = atomic_load_explicit(&l->end_offset, memory_order_relaxed);
        struct group g = {.data = data, .len = 0, .n = 0};
        struct log_append_info info = {.first_offset = base, .max_timestamp = -1};
        struct record_batch b;
        struct batch_meta meta;
        int r;

        if (atomic_load(&l->failed))
                return -EIO;
        if (leader_epoch < epoch_cache_latest(&l->epochs))
                return -EPERM;
        r = validate(l, data, len, &b);
        if (r == 0)
                r = check_producer(l, &b, ret);
        if (r != 0)
                return MIN(r, 0);
        record_batch_set_base_offset(data, base);
        record_batch_set_leader_epoch(data, leader_epoch);
        r = batch_meta_parse(data, 0, &meta);
        if (r == 0)
                r = add_batch(l, &g, &meta, now_ms);
        if (r == 0)
                r = write_group(l, &g, now_ms);
        if (r < 0)
                return r;
        info_add(&info, &meta);
        *ret = info;
        return 0;
}

/* --- follower --- */

/* Check all whole batches before any is written. *ret_len: their bytes. */
static int check_fetched(const struct partition_log *l, const uint8_t *data, size_t len, size_t *ret_len)
{
        int64_t end = atomic_load_explicit(&l->end_offset, memory_order_relaxed), next = end;
        int32_t epoch = partition_log_epoch_for_offset(l, end);
        struct record_batch_iter it = record_batch_iter(data, len);
        struct record_batch b;
        int r;

        while ((r = record_batch_iter_next(&it, &b)) > 0) {
                if (b.base_offset < next || (next == end && b.base_offset != end))
                        return -ERANGE;
                if (b.leader_epoch >= 0 && b.leader_epoch < epoch)
                        return -EBADMSG; /* a history that goes back is none */
                r = record_batch_check(&b);
                if (r < 0)
                        return r;
                epoch = MAX(epoch, b.leader_epoch);
                next = record_batch_last_offset(&b) + 1;
        }
        if (r < 0)
                return r;
        *ret_len = (size_t)(it.pos - data);
        return 0;
}

int partition_log_append_follower(struct partition_log *l, const uint8_t *data, size_t len,
                                  struct log_append_info *ret)
{
        int64_t now_ms = clock_real_ms(), base = atomic_load_explicit(&l->end_offset, memory_order_relaxed);
        struct log_append_info info = {.first_offset = base, .last_offset = base - 1, .max_timestamp = -1};
        struct group g = {.data = data, .len = 0, .n = 0};
        size_t whole;
        int r;

        if (atomic_load(&l->failed))
                return -EIO;
        r = check_fetched(l, data, len, &whole);
        for (size_t at = 0; r == 0 && at < whole;) {
                struct batch_meta b;

                r = batch_meta_parse(data + at, 0, &b);
                if (r == 0)
                        r = add_batch(l, &g, &b, now_ms);
                if (r < 0)
                        return r;
                info_add(&info, &b);
                at += (size_t)b.size;
        }
        if (r == 0)
                r = write_group(l, &g, now_ms);
        if (r < 0)
                return r;
        *ret = info;
        return 0;
}
