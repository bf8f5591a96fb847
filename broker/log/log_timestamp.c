/* Looking up a record by its timestamp (ListOffsets). The time index says where to begin; the answer always
 * comes from the batches. */
#include "log/partition_log_internal.h"

#include <errno.h>

#include "log/decompress.h"
#include "wire/record_batch.h"

/* A batch is unpacked to at most this: who asks for a time must not cost more than who sent the batch paid.
 * One that grows more is answered with its first offset. */
#define MAX_UNPACKED(size) MAX((size_t)1 << 20, 16 * (size))

struct found {
        int64_t offset, timestamp;
};

/* 1: the first record of @b's @records (unpacked) with @timestamp or later. 0: none has. */
static int search_records(const struct record_batch *b, struct record_iter it, int64_t timestamp,
                          struct found *ret)
{
        struct record rec;
        int r;

        while ((r = record_iter_next(&it, &rec)) > 0) {
                /* Both are the sender's: their sum may wrap. */
                int64_t t = (int64_t)((uint64_t)b->base_timestamp + (uint64_t)rec.timestamp_delta);

                if (t < timestamp)
                        continue;
                *ret = (struct found){.offset = b->base_offset + rec.offset_delta, .timestamp = t};
                return 1;
        }
        return r;
}

static int search_batch(const struct record_batch *b, int64_t timestamp, struct found *ret)
{
        cleanup_with(buf_donep) struct buf unpacked = {0};
        struct record_iter it = record_iter(b);
        int r = 0;

        buf_init(&unpacked, MAX_UNPACKED(b->size));
        if (b->attributes & RECORD_ATTR_LOG_APPEND_TIME) { /* one time for all */
                *ret = (struct found){.offset = b->base_offset, .timestamp = b->max_timestamp};
                return 1;
        }
        if (record_batch_codec(b) != RECORD_NONE) {
                r = decompress(record_batch_codec(b), b->data + RECORD_BATCH_HEADER_BYTES,
                               b->size - RECORD_BATCH_HEADER_BYTES, &unpacked);
                it.pos = unpacked.data;
                it.end = unpacked.data + unpacked.len;
        }
        if (r == 0)
                r = search_records(b, it, timestamp, ret);
        if (r >= 0 || r == -ENOMEM)
                return r;
        /* Too large, or no records we can read (compressed ones are not looked into when they are appended):
         * the batch begins early enough to hold what is looked for. */
        *ret = (struct found){.offset = b->base_offset, .timestamp = b->max_timestamp};
        return 1;
}

static int load_and_search(struct segment *s, const struct batch_meta *meta, int64_t timestamp,
                           struct found *ret)
{
        cleanup_with(buf_donep) struct buf bytes = {0};
        struct record_batch b;
        int r;

        buf_init(&bytes, 0);
        r = segment_read(s, meta->position, (size_t)meta->size, &bytes);
        if (r == 0)
                r = record_batch_parse(bytes.data, bytes.len, &b);
        return r < 0 ? r : search_batch(&b, timestamp, ret);
}

/* @whole: the batch is the answer, its records are not looked at. */
static int search_segment(struct segment *s, int64_t timestamp, int64_t bound, bool whole, struct found *ret)
{
        uint8_t window[SEGMENT_WINDOW];
        struct segment_walk w;
        struct batch_meta meta;
        int64_t position;
        int r = segment_floor_timestamp(s, timestamp, &position);

        if (r == 0)
                r = segment_walk_init(&w, s, position, window, sizeof(window));
        if (r < 0)
                return r;
        while ((r = batch_cursor_next(&w.cursor, &meta)) > 0 && meta.base_offset < bound) {
                if (meta.max_timestamp < timestamp)
                        continue;
                if (whole) {
                        *ret = (struct found){.offset = meta.base_offset, .timestamp = meta.max_timestamp};
                        r = 1;
                        break;
                }
                r = load_and_search(s, &meta, timestamp, ret);
                if (r != 0)
                        break;
        }
        segment_walk_done(&w);
        if (r == -ENODATA)
                return 0; /* an append is going on behind the bound */
        return r > 0 && meta.base_offset >= bound ? 0 : r;
}

/* Can a sealed segment be passed over? */
static bool skip_segment(struct segment *s, bool last, int64_t timestamp)
{
        int64_t newest;

        return !last && segment_read_max_timestamp(s, &newest) == 0 && newest < timestamp;
}

static int find_from(struct partition_log *l, int64_t timestamp, int64_t bound, bool whole,
                     int64_t *ret_offset, int64_t *ret_timestamp)
{
        int64_t at = atomic_load(&l->start_offset), next = 0;
        struct found f = {.offset = -1, .timestamp = -1};
        int r = 0;

        pthread_rwlock_rdlock(&l->content);
        bound = MIN(bound, atomic_load_explicit(&l->end_offset, memory_order_acquire));
        for (; r == 0 && at < bound; at = next) {
                struct segment *s = log_segment_for(l, at, &next);

                if (!skip_segment(s, next == INT64_MAX, timestamp))
                        r = search_segment(s, timestamp, bound, whole, &f);
                if (r == -ENOENT && next <= atomic_load(&l->start_offset))
                        r = 0; /* retention took it meanwhile */
                segment_unref(s);
        }
        pthread_rwlock_unlock(&l->content);
        if (r < 0)
                return r;
        if (f.offset >= bound)
                f = (struct found){.offset = -1, .timestamp = -1};
        *ret_offset = f.offset;
        *ret_timestamp = f.timestamp;
        return 0;
}

int partition_log_find_timestamp(struct partition_log *l, int64_t timestamp, int64_t bound,
                                 int64_t *ret_offset, int64_t *ret_timestamp)
{
        return find_from(l, timestamp, bound, false, ret_offset, ret_timestamp);
}

int partition_log_find_batch(struct partition_log *l, int64_t timestamp, int64_t bound, int64_t *ret_offset,
                             int64_t *ret_timestamp)
{
        return find_from(l, timestamp, bound, true, ret_offset, ret_timestamp);
}
