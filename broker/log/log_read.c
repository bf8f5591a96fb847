/* Reading runs beside appends: what is below the bound does not change, segments are referenced, and the
 * content lock keeps truncation away. */
#include "log/partition_log_internal.h"

#include <errno.h>

#include "wire/record_batch.h"

/* Keep the whole batches of @out from @start on that end below @bound. */
static int trim(struct buf *out, size_t start, int64_t bound)
{
        struct record_batch_iter it = record_batch_iter(out->data + start, out->len - start);
        const uint8_t *keep = it.pos;
        struct record_batch b;
        int64_t next = 0;
        int r;

        while ((r = record_batch_iter_next(&it, &b)) > 0 && record_batch_last_offset(&b) < bound) {
                if (b.base_offset < next || b.last_offset_delta < 0) {
                        r = -EBADMSG;
                        break;
                }
                next = record_batch_last_offset(&b) + 1;
                keep = it.pos;
        }
        if (r < 0 && keep == out->data + start)
                return -EBADMSG; /* bytes rotted on the disk */
        out->len = (size_t)(keep - out->data);
        return 0;
}

/* 0: done, *ret_n bytes. -ENXIO: this segment has nothing at @offset or behind. */
static int read_segment(struct segment *s, int64_t offset, int64_t bound, size_t max_bytes, bool min_one,
                        struct buf *out, size_t *ret_n)
{
        size_t start = out->len, want = max_bytes;
        struct batch_meta b;
        int r = segment_locate(s, offset, &b);

        if (r < 0)
                return r;
        *ret_n = 0;
        if (b.last_offset >= bound)
                return 0;
        if ((uint64_t)b.size > want) {
                if (!min_one)
                        return 0;
                want = (size_t)b.size; /* KIP-74: progress even when a batch is larger than the limit */
        }
        want = (size_t)MIN((int64_t)MIN(want, (size_t)INT32_MAX), s->size - b.position);
        r = segment_read(s, b.position, want, out);
        if (r == 0)
                r = trim(out, start, bound);
        if (r < 0) {
                out->len = start;
                return r;
        }
        *ret_n = out->len - start;
        return 0;
}

static int read_locked(struct partition_log *l, int64_t offset, int64_t bound, size_t max_bytes, bool min_one,
                       struct buf *out, size_t *ret_n)
{
        int64_t end = atomic_load_explicit(&l->end_offset, memory_order_acquire), next;
        int r = -ENXIO;

        if (offset < atomic_load(&l->start_offset) || offset > end)
                return -ERANGE;
        bound = MIN(bound, end);
        *ret_n = 0;
        while (r == -ENXIO && offset < bound) {
                struct segment *s = log_segment_for(l, offset, &next);

                /* Retention may have moved the start since: what comes next is not what was asked for. */
                r = s->base_offset > offset ? -ERANGE
                                            : read_segment(s, offset, bound, max_bytes, min_one, out, ret_n);
                segment_unref(s);
                if (r == -ENOENT)
                        return offset < atomic_load(&l->start_offset) ? -ERANGE : -EIO;
                offset = next; /* behind a gap at the segment's end, if at all */
        }
        return r == -ENXIO ? 0 : r;
}

int partition_log_read(struct partition_log *l, int64_t offset, int64_t bound, size_t max_bytes, bool min_one,
                       struct buf *out, size_t *ret_n)
{
        size_t n = 0;
        int r;

        pthread_rwlock_rdlock(&l->content);
        r = read_locked(l, offset, bound, max_bytes, min_one, out, &n);
        pthread_rwlock_unlock(&l->content);
        if (r == 0)
                *ret_n = n;
        return r;
}

/* --- counting --- */

/* Position of the batch that holds @offset; the segment's size when all are before it. */
static int64_t position_of(struct segment *s, int64_t offset)
{
        struct batch_meta b;
        int r = segment_locate(s, offset, &b);

        return r < 0 ? s->size : b.position;
}

static int64_t sizes_between(struct partition_log *l, int64_t from_base, int64_t to_base)
{
        int64_t sum = 0;

        pthread_mutex_lock(&l->lock);
        for (size_t i = segment_list_floor(&l->segments, from_base); i < l->segments.n; i++)
                if (l->segments.items[i]->base_offset > from_base &&
                    l->segments.items[i]->base_offset < to_base)
                        sum += l->segments.items[i]->size;
        pthread_mutex_unlock(&l->lock);
        return sum;
}

static int64_t bytes_between(struct partition_log *l, int64_t from, int64_t to)
{
        int64_t next, end = atomic_load_explicit(&l->end_offset, memory_order_acquire), sum;
        struct segment *first, *last;

        from = MAX(from, atomic_load(&l->start_offset));
        to = MIN(to, end);
        if (from >= to)
                return 0;
        first = log_segment_for(l, from, &next);
        last = log_segment_for(l, to, &next);
        sum = to == end ? last->size : position_of(last, to);
        sum -= position_of(first, from);
        if (first != last)
                sum += first->size + sizes_between(l, first->base_offset, last->base_offset);
        segment_unref(first);
        segment_unref(last);
        return MAX(sum, 0);
}

int64_t partition_log_bytes_between(const struct partition_log *l, int64_t from, int64_t to)
{
        struct partition_log *m = (struct partition_log *)l; /* only its locks change */
        int64_t n;

        pthread_rwlock_rdlock(&m->content);
        n = bytes_between(m, from, to);
        pthread_rwlock_unlock(&m->content);
        return n;
}
