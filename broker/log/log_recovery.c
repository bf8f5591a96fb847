/* From a directory to a log.
 *
 * After a clean shutdown only the end of the last segment is read. Otherwise every segment from the one that
 * holds the recovery point on is read whole: each batch must have its checksum, follow the one before, and
 * not have a smaller leader epoch. At the first that does not the file is cut, and all later segments go:
 * what stands behind a hole cannot be served. The recovery point does not move (KAFKA-10101): nothing was
 * synced here. */
#include "log/partition_log_internal.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/slog.h"
#include "log/checkpoint.h"
#include "log/log_dir.h"
#include "wire/record_batch.h"

#define SCAN_WINDOW 262144

struct scan {
        struct partition_log *l;
        uint8_t *window;
        int64_t end;        /* next offset */
        int64_t cut_bytes;  /* of the segment that was cut */
        int32_t last_epoch; /* of the batches seen so far */
        bool cut;
};

/* --- the directory --- */

static int add_segment(struct partition_log *l, const struct log_dir_file *f)
{
        cleanup_with(segment_unrefp) struct segment *s = NULL;
        char path[PATH_MAX];
        struct stat st;
        int r = segment_path(l->dir, f->base_offset, SEGMENT_SUFFIX_LOG, path);

        if (r < 0)
                return r;
        if (stat(path, &st) < 0)
                return -errno;
        r = segment_new(l->dir, f->base_offset, st.st_size, l->config.index_interval_bytes, &s);
        if (r == 0)
                r = segment_list_push(&l->segments, s);
        if (r < 0)
                return r;
        s = NULL;
        return 0;
}

static int add_first_segment(struct partition_log *l)
{
        cleanup_with(segment_unrefp) struct segment *s = NULL;
        int r = segment_create(l->dir, 0, l->config.index_interval_bytes, &s);

        if (r == 0)
                r = segment_list_push(&l->segments, s);
        if (r < 0)
                return r;
        s = NULL;
        atomic_store(&l->dir_dirty, true);
        return 0;
}

/* Sealed segments that are not scanned, but whose indexes are gone. */
static int restore_indexes(struct partition_log *l, const struct log_dir_listing *files, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct segment *s = l->segments.items[i];
                int64_t end;
                int r;

                if ((files->segments[i].has_index && files->segments[i].has_timeindex) ||
                    s->size <= l->config.index_interval_bytes)
                        continue;
                slog_notice("index-rebuilt", "a segment's index is missing and made again",
                            SL_STR("dir", l->dir), SL_INT("segment", s->base_offset));
                r = segment_rebuild_indexes(s, &end);
                if (r == 0 || r == -EBADMSG || r == -ENODATA) /* a damaged log is found by who reads it */
                        r = segment_seal(s);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- scanning --- */

static int check_batch(struct scan *sc, struct segment *s, struct batch_cursor *c, const struct batch_meta *b)
{
        if (b->base_offset < sc->end || b->last_offset - s->base_offset > INT32_MAX)
                return -EBADMSG;
        /* Bytes of before a truncation, which was not on disk yet. */
        if (b->leader_epoch >= 0 && b->leader_epoch < sc->last_epoch)
                return -EBADMSG;
        return batch_cursor_check_crc(c, b);
}

static int accept_batch(struct scan *sc, struct segment *s, const struct batch_meta *b, int64_t now_ms)
{
        int r = 0;

        if (b->leader_epoch > epoch_cache_latest(&sc->l->epochs))
                r = epoch_cache_assign(&sc->l->epochs, b->leader_epoch, b->base_offset);
        if (r >= 0)
                r = log_producers_note(sc->l, b, now_ms);
        if (r < 0)
                return r;
        segment_note_batch(s, b);
        sc->last_epoch = MAX(sc->last_epoch, b->leader_epoch);
        sc->end = b->last_offset + 1;
        return 0;
}

/* Read all of @s. *ret_good: bytes of good batches. */
static int scan_batches(struct scan *sc, struct segment *s, int64_t *ret_good)
{
        int64_t now_ms = clock_real_ms(), good = 0;
        struct segment_walk w;
        struct batch_meta b;
        int r = segment_walk_init(&w, s, 0, sc->window, SCAN_WINDOW);

        if (r < 0)
                return r;
        while ((r = batch_cursor_next(&w.cursor, &b)) > 0) {
                r = check_batch(sc, s, &w.cursor, &b);
                if (r == 0)
                        r = accept_batch(sc, s, &b, now_ms);
                if (r < 0)
                        break;
                good = b.position + b.size;
        }
        segment_walk_done(&w);
        *ret_good = good;
        return r;
}

static int scan_segment(struct scan *sc, struct segment *s)
{
        int64_t good = 0;
        int r = segment_reset_indexes(s);

        if (r == 0)
                r = scan_batches(sc, s, &good);
        if (r == 0)
                return 0;
        if (r != -EBADMSG && r != -ENODATA)
                return r;
        sc->cut = true;
        sc->cut_bytes = s->size - good;
        return segment_truncate(s, good, sc->end);
}

/* Remove the segments from index @keep on, newest first. Returns their bytes. */
static int64_t drop_from(struct partition_log *l, size_t keep)
{
        int64_t bytes = 0;

        while (l->segments.n > keep) {
                struct segment *s = l->segments.items[--l->segments.n];

                bytes += s->size;
                segment_unlink(s);
                segment_unref(s);
        }
        return bytes;
}

static int scan_segments(struct scan *sc, size_t first)
{
        struct partition_log *l = sc->l;
        size_t found = l->segments.n, i;
        int r = 0;

        for (i = first; i < l->segments.n && !sc->cut; i++) {
                struct segment *s = l->segments.items[i];

                if (s->base_offset != sc->end)
                        break; /* what stood between is lost */
                if (i > first)
                        r = log_producers_snapshot(l, s->base_offset);
                if (r == 0)
                        r = scan_segment(sc, s);
                if (r == 0 && i + 1 < l->segments.n && !sc->cut)
                        r = segment_seal(s);
                if (r < 0)
                        return r;
        }
        if (i < found)
                sc->cut_bytes += drop_from(l, i);
        if (i < found || sc->cut)
                slog_warning("log-cut", "the log was cut where it was damaged or torn", SL_STR("dir", l->dir),
                             SL_INT("end_offset", sc->end), SL_INT("bytes_cut", sc->cut_bytes),
                             SL_INT("segments_deleted", found - i));
        return 0;
}

/* State of producers at the first offset to be scanned. */
static int load_producers_before(struct partition_log *l, int64_t offset)
{
        int64_t from;
        int r = log_producers_load(l, offset, &from);

        return r < 0 ? r : log_producers_replay(l, from, offset);
}

static int recover(struct partition_log *l, int64_t recovery_point, int64_t *ret_end)
{
        size_t first = segment_list_floor(&l->segments, recovery_point);
        int64_t base = l->segments.items[first]->base_offset;
        struct scan sc = {.l = l, .end = base};
        int r = load_producers_before(l, base);

        if (r < 0)
                return r;
        /* The batches say which epochs there are from here on. */
        (void)epoch_cache_truncate_from_end(&l->epochs, base);
        sc.last_epoch = epoch_cache_at(&l->epochs, base - 1);
        sc.window = malloc(SCAN_WINDOW);
        if (!sc.window)
                return -ENOMEM;
        r = scan_segments(&sc, first);
        free(sc.window);
        if (r == 0)
                r = segment_activate(log_active(l));
        *ret_end = sc.end;
        return r;
}

/* --- a clean start --- */

static int load_clean(struct partition_log *l, int64_t *ret_end)
{
        struct segment *s = log_active(l);
        int64_t end, from;
        int r = segment_activate(s);

        if (r == 0)
                r = segment_load_tail(s, &end);
        if (r == -EBADMSG || r == -ENODATA || r == -ENOENT) /* of the log, or only of its indexes? */
                r = segment_rebuild_indexes(s, &end);
        if (r == 0)
                r = log_producers_load(l, end, &from);
        /* No snapshot at all after a clean shutdown: there was no producer. */
        if (r == 0 && l->snapshot_offset >= 0)
                r = log_producers_replay(l, from, end);
        if (r == 0)
                *ret_end = end;
        return r;
}

/* --- epochs --- */

/* Make the cache again from all batches: the file is missing or damaged. */
static int rebuild_epochs(struct partition_log *l, int64_t to)
{
        uint8_t window[SEGMENT_WINDOW];
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->segments.n && l->segments.items[i]->base_offset < to; i++) {
                struct segment_walk w;
                struct batch_meta b;

                r = segment_walk_init(&w, l->segments.items[i], 0, window, sizeof(window));
                if (r < 0)
                        return r;
                while ((r = batch_cursor_next(&w.cursor, &b)) > 0) {
                        if (b.leader_epoch > epoch_cache_latest(&l->epochs))
                                r = epoch_cache_assign(&l->epochs, b.leader_epoch, b.base_offset);
                        if (r < 0)
                                break;
                }
                segment_walk_done(&w);
                if (r == -EBADMSG || r == -ENODATA)
                        r = 0; /* recovery of this part finds it and cuts */
        }
        return r;
}

static int load_epochs(struct partition_log *l)
{
        char path[PATH_MAX];
        int r = log_path(l, EPOCH_CHECKPOINT, path);

        if (r == 0)
                r = checkpoint_read_epochs(path, &l->epochs);
        if (r != -ENOENT && r != -EBADMSG && r != -EFBIG)
                return r;
        if (r != -ENOENT)
                slog_warning("epochs-rebuilt",
                             "leader-epoch-checkpoint is damaged and made again from the log",
                             SL_STR("file", path), SL_ERR(r));
        l->epochs_unwritten = true;
        return rebuild_epochs(l, INT64_MAX);
}

static bool same_epochs(const struct epoch_cache *a, const struct epoch_cache *b)
{
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (a->entries[i].epoch != b->entries[i].epoch ||
                    a->entries[i].start_offset != b->entries[i].start_offset)
                        return false;
        return true;
}

/* Cut the cache to the log (Kafka does the same: an epoch without data was another start's leader) and store
 * it if it is not what the file says. */
static int settle_epochs(struct partition_log *l, const struct epoch_cache *stored)
{
        (void)epoch_cache_truncate_from_end(&l->epochs, atomic_load(&l->end_offset));
        (void)epoch_cache_truncate_from_start(&l->epochs, atomic_load(&l->start_offset));
        if (same_epochs(&l->epochs, stored) && !(l->epochs_unwritten && l->epochs.n > 0)) {
                l->epochs_unwritten = false;
                return 0;
        }
        return log_write_epochs(l);
}

/* --- all together --- */

static int load_segments(struct partition_log *l, const struct log_dir_listing *files, int64_t recovery_point,
                         bool clean)
{
        size_t last = l->segments.n - 1;
        int64_t end = 0;
        int r = 0;

        if (clean) {
                r = restore_indexes(l, files, last);
                if (r == 0)
                        r = load_clean(l, &end);
                if (r == -EBADMSG || r == -ENODATA) {
                        slog_warning("log-not-clean",
                                     "the last segment is damaged although the shutdown was clean",
                                     SL_STR("dir", l->dir));
                        clean = false;
                        recovery_point = l->segments.items[last]->base_offset;
                }
        } else {
                r = restore_indexes(l, files, segment_list_floor(&l->segments, recovery_point));
        }
        if (!clean && (r == 0 || r == -EBADMSG || r == -ENODATA))
                r = recover(l, recovery_point, &end);
        if (r < 0)
                return r;
        atomic_store(&l->end_offset, end);
        atomic_store(&l->recovery_point, clean ? end : MIN(MAX(recovery_point, 0), end));
        return 0;
}

int log_load(struct partition_log *l, int64_t recovery_point, bool clean)
{
        cleanup_with(log_dir_listing_donep) struct log_dir_listing files = {0};
        cleanup_with(epoch_cache_donep) struct epoch_cache stored = {0};
        int r = log_dir_list(l->dir, &files);

        if (r == 0 && files.n_leftovers > 0)
                r = log_dir_clean(l->dir);
        for (size_t i = 0; r == 0 && i < files.n_segments; i++)
                r = add_segment(l, &files.segments[i]);
        if (r == 0 && files.n_segments == 0)
                r = add_first_segment(l);
        if (r < 0)
                return r;
        atomic_store(&l->start_offset, l->segments.items[0]->base_offset);
        r = load_epochs(l);
        if (r == 0)
                r = epoch_cache_copy(&l->epochs, &stored);
        if (r == 0 && files.n_segments > 0)
                r = load_segments(l, &files, recovery_point, clean);
        if (r == 0 && files.n_segments == 0 && files.n_snapshots > 0)
                log_producers_reset(l);
        if (r == 0 && files.n_snapshots > l->segments.n + 1)
                log_producers_sweep(l);
        return r < 0 ? r : settle_epochs(l, &stored);
}
