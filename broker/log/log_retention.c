/* Deleting old segments. Whole ones from the start, only below the high watermark: a leader must keep what a
 * follower may still have to fetch (KAFKA-5634). Files are renamed first and unlinked later, outside the
 * partition's lock, for to unlink a gigabyte takes a file system long. */
#include "log/partition_log_internal.h"

#include <errno.h>
#include <limits.h>
#include <sys/stat.h>

#include "log/checkpoint.h"
#include "log/log_dir.h"

/* The largest timestamp, or when the file was written last if its batches have none. */
static int newest_timestamp(struct segment *s, bool active, int64_t *ret)
{
        char path[PATH_MAX];
        struct stat st;
        int r = 0;

        *ret = active ? s->max_timestamp : -1;
        if (!active)
                r = segment_read_max_timestamp(s, ret);
        if (r < 0 || *ret >= 0)
                return r;
        r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_LOG, path);
        if (r < 0)
                return r;
        if (stat(path, &st) < 0)
                return -errno;
        *ret = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
        return 0;
}

/* 1: its time is over. */
static int expired(const struct partition_log *l, struct segment *s, bool active, int64_t now_ms)
{
        int64_t newest = -1;
        int r;

        if (l->config.retention_ms < 0)
                return 0;
        r = newest_timestamp(s, active, &newest);
        return r < 0 ? r : newest < now_ms - l->config.retention_ms;
}

/* Take the first segment from the list, then rename its files: whoever misses a file finds its segment gone.
 */
static int retire_first(struct partition_log *l)
{
        struct segment *s = segment_ref(l->segments.items[0]);
        char path[PATH_MAX];
        int r, listed;

        pthread_mutex_lock(&l->lock);
        listed = segment_list_push(&l->retired, s);
        l->segments.n--;
        for (size_t i = 0; i < l->segments.n; i++)
                l->segments.items[i] = l->segments.items[i + 1];
        atomic_store(&l->start_offset, l->segments.items[0]->base_offset);
        pthread_mutex_unlock(&l->lock);
        atomic_store(&l->dir_dirty, true);
        r = segment_retire(s);
        if (segment_path(l->dir, s->base_offset, LOG_SUFFIX_SNAPSHOT, path) == 0)
                (void)unlink(path); /* a stray one is removed at the next start */
        if (listed < 0) {           /* no memory to remember it: unlink it here */
                segment_unlink(s);
                segment_unref(s);
        }
        segment_unref(s);
        return r;
}

static bool below(const struct partition_log *l, int64_t hw)
{
        return l->segments.n > 1 && l->segments.items[1]->base_offset <= hw;
}

static int retain_by_time(struct partition_log *l, int64_t now_ms, int64_t hw, int *n)
{
        int r = 0;

        while (below(l, hw) && (r = expired(l, l->segments.items[0], false, now_ms)) > 0) {
                r = retire_first(l);
                if (r < 0)
                        return r;
                (*n)++;
        }
        if (r < 0 || l->segments.n > 1)
                return MIN(r, 0);
        /* Only the active one is left. If its time is over too, an empty one takes its place. */
        if (log_active(l)->size == 0 || atomic_load(&l->end_offset) > hw)
                return 0;
        r = expired(l, log_active(l), true, now_ms);
        if (r <= 0)
                return r;
        r = log_roll(l);
        if (r == 0)
                r = retire_first(l);
        if (r == 0)
                (*n)++;
        return r;
}

static int retain_by_size(struct partition_log *l, int64_t hw, int *n)
{
        int64_t excess = partition_log_size_bytes(l) - l->config.retention_bytes;

        while (l->config.retention_bytes >= 0 && below(l, hw) && excess >= l->segments.items[0]->size) {
                int r;

                excess -= l->segments.items[0]->size;
                r = retire_first(l);
                if (r < 0)
                        return r;
                (*n)++;
        }
        return 0;
}

int partition_log_retain(struct partition_log *l, int64_t now_ms, int64_t hw)
{
        int n = 0, r;

        if (atomic_load(&l->failed))
                return -EIO;
        (void)partition_log_reap(l); /* what the last call left, if nobody came for it */
        if (l->producers)
                (void)producer_state_expire(l->producers, now_ms, l->config.producer_id_expiration_ms);
        r = retain_by_time(l, now_ms, hw, &n);
        if (r == 0)
                r = retain_by_size(l, hw, &n);
        if (n > 0 && epoch_cache_truncate_from_start(&l->epochs, atomic_load(&l->start_offset)) && r == 0)
                r = log_write_epochs(l);
        return r < 0 ? log_storage_error(l, r) : n;
}

bool log_has_retired(struct partition_log *l)
{
        bool any;

        pthread_mutex_lock(&l->lock);
        any = l->retired.n > 0;
        pthread_mutex_unlock(&l->lock);
        return any;
}

size_t partition_log_reap(struct partition_log *l)
{
        struct segment_list doomed;
        size_t n;

        pthread_mutex_lock(&l->lock);
        doomed = l->retired;
        l->retired = (struct segment_list){0};
        pthread_mutex_unlock(&l->lock);
        n = doomed.n;
        for (size_t i = 0; i < n; i++)
                segment_unlink(doomed.items[i]);
        segment_list_done(&doomed);
        return n;
}
