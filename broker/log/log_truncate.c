/* Taking bytes away from the end. KAFKA-12153: producers, epochs and recovery point follow before the new end
 * offset can be seen. Segments go newest first, so that a crash in between leaves a shorter log and no hole.
 *
 * Nothing is synced unless the cut is below the recovery point: what is above it is scanned after a crash,
 * and resurrected bytes betray themselves by an epoch or offset that goes back. */
#include "log/partition_log_internal.h"

#include <errno.h>

#include "base/fs.h"

/* Returns whether the cut is below what may be checkpointed as safely on disk. */
static bool lower_recovery_point(struct partition_log *l, int64_t offset)
{
        int64_t before;

        pthread_mutex_lock(&l->lock);
        l->generation++;
        before = atomic_load(&l->recovery_point);
        if (offset < before) {
                l->checkpointed_bound = MAX(l->checkpointed_bound, before);
                atomic_store(&l->recovery_point, offset);
        }
        pthread_mutex_unlock(&l->lock);
        return offset < before;
}

/* Drop the last segment from the list and the disk. */
static void drop_last(struct partition_log *l)
{
        struct segment *s;

        pthread_mutex_lock(&l->lock);
        s = l->segments.items[--l->segments.n];
        pthread_mutex_unlock(&l->lock);
        segment_unlink(s);
        segment_unref(s);
        atomic_store(&l->dir_dirty, true);
}

/* Cut the last segment before the batch that holds @offset. *ret_end: the log's new end. */
static int cut_active(struct partition_log *l, int64_t offset, int64_t *ret_end)
{
        struct segment *s = log_active(l);
        struct batch_meta b;
        int r = segment_activate(s);

        *ret_end = offset;
        if (r == 0)
                r = segment_locate(s, offset, &b);
        if (r < 0)
                return r == -ENXIO ? 0 : r; /* nothing there: a gap, or cut by dropping segments */
        *ret_end = MIN(offset, b.base_offset);
        return segment_truncate(s, b.position, b.base_offset);
}

static int restore_producers(struct partition_log *l, int64_t end)
{
        int64_t from;
        int r;

        if (!l->producers && l->snapshot_offset <= end)
                return 0; /* there was nothing to forget */
        r = log_producers_load(l, end, &from);
        return r < 0 ? r : log_producers_replay(l, from, end);
}

static int sync_cut(struct partition_log *l, bool below)
{
        int r = below ? segment_sync(log_active(l), false) : 0;

        if (r < 0 || !below)
                return r;
        atomic_store(&l->dir_dirty, true);
        return log_sync_names(l);
}

static int truncate_locked(struct partition_log *l, int64_t offset)
{
        int64_t end = offset;
        bool below;
        int r;

        while (l->segments.n > 1 && log_active(l)->base_offset >= offset)
                drop_last(l);
        r = cut_active(l, offset, &end);
        below = lower_recovery_point(l, end);
        if (r == 0)
                r = restore_producers(l, end);
        atomic_store(&l->end_offset, end);
        if (r == 0 && epoch_cache_truncate_from_end(&l->epochs, end))
                r = log_write_epochs(l);
        return r < 0 ? r : sync_cut(l, below);
}

int partition_log_truncate_to(struct partition_log *l, int64_t offset)
{
        int r = 0;

        if (atomic_load(&l->failed))
                return -EIO;
        if (offset < 0)
                return -EINVAL;
        if (offset >= atomic_load(&l->end_offset)) {
                /* KAFKA-10706: an epoch without data that contradicts the leader would be asked about for
                 * ever. */
                if (epoch_cache_truncate_from_end(&l->epochs, offset))
                        r = log_write_epochs(l);
                return log_storage_error(l, r);
        }
        if (offset < atomic_load(&l->start_offset))
                return partition_log_truncate_fully_and_start_at(l, offset);
        pthread_rwlock_wrlock(&l->content);
        r = truncate_locked(l, offset);
        pthread_rwlock_unlock(&l->content);
        return log_storage_error(l, r);
}

static int start_afresh(struct partition_log *l, int64_t offset)
{
        struct segment *s, *old;
        bool below = lower_recovery_point(l, offset);
        int r;

        /* The directory is never without a segment: the oldest goes when its successor is there. */
        while (l->segments.n > 1)
                drop_last(l);
        r = segment_activate(log_active(l));
        if (r == 0)
                r = segment_truncate(log_active(l), 0, log_active(l)->base_offset);
        if (r == 0 && log_active(l)->base_offset != offset) {
                r = segment_create(l->dir, offset, l->config.index_interval_bytes, &s);
                if (r < 0)
                        return r;
                old = log_active(l);
                pthread_mutex_lock(&l->lock);
                l->segments.items[l->segments.n - 1] = s;
                pthread_mutex_unlock(&l->lock);
                segment_unlink(old);
                segment_unref(old);
        }
        if (r < 0)
                return r;
        log_producers_reset(l);
        atomic_store(&l->dir_dirty, true);
        atomic_store(&l->start_offset, offset);
        atomic_store(&l->end_offset, offset);
        if (l->epochs.n > 0) {
                epoch_cache_done(&l->epochs);
                r = log_write_epochs(l);
        }
        return r < 0 ? r : sync_cut(l, below);
}

int partition_log_truncate_fully_and_start_at(struct partition_log *l, int64_t offset)
{
        int r;

        if (atomic_load(&l->failed))
                return -EIO;
        if (offset < 0)
                return -EINVAL;
        pthread_rwlock_wrlock(&l->content);
        r = start_afresh(l, offset);
        pthread_rwlock_unlock(&l->content);
        return log_storage_error(l, r);
}
