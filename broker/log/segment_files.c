/* What is done to a segment's files besides appending and reading: loading, rebuilding, cutting, syncing,
 * removing. */
#include "log/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"

static const char *const SUFFIXES[] = {SEGMENT_SUFFIX_LOG, SEGMENT_SUFFIX_INDEX, SEGMENT_SUFFIX_TIMEINDEX};

/* Note the batches from @position on; *ret_end_offset: behind the last, or unchanged when there is none. */
static int note_from(struct segment *s, int64_t position, int64_t *ret_end_offset)
{
        uint8_t window[SEGMENT_WINDOW];
        struct segment_walk w;
        int64_t end_offset = *ret_end_offset;
        struct batch_meta b;
        int r = segment_walk_init(&w, s, position, window, sizeof(window));

        if (r < 0)
                return r;
        while ((r = batch_cursor_next(&w.cursor, &b)) > 0) {
                if (b.base_offset < end_offset || b.last_offset - s->base_offset > INT32_MAX) {
                        r = -EBADMSG;
                        break;
                }
                segment_note_batch(s, &b);
                end_offset = b.last_offset + 1;
        }
        segment_walk_done(&w);
        *ret_end_offset = end_offset;
        return r;
}

static int read_first_timestamp(struct segment *s)
{
        uint8_t window[128];
        struct segment_walk w;
        struct batch_meta b;
        int r = segment_walk_init(&w, s, 0, window, sizeof(window));

        if (r < 0)
                return r;
        r = batch_cursor_next(&w.cursor, &b);
        segment_walk_done(&w);
        if (r > 0) {
                pthread_mutex_lock(&s->lock);
                s->first_timestamp = b.max_timestamp;
                pthread_mutex_unlock(&s->lock);
        }
        return MIN(r, 0);
}

/* The last entries of both indexes into *ret_position and the maxima. */
static int load_index_tails(struct segment *s, int64_t *ret_position, int64_t *ret_last_offset)
{
        char offsets[PATH_MAX], times[PATH_MAX];
        int32_t offset = -1, position = 0, time_offset = -1;
        int64_t timestamp = -1;
        int r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_INDEX, offsets);

        if (r == 0)
                r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_TIMEINDEX, times);
        if (r < 0)
                return r;
        pthread_mutex_lock(&s->lock);
        r = offset_index_last(&s->offsets, offsets, &offset, &position);
        if (r == 0 || r == -ENOENT)
                r = time_index_last(&s->times, times, &timestamp, &time_offset);
        s->first_timestamp = -1;
        s->max_timestamp = time_offset < 0 ? -1 : timestamp;
        s->max_timestamp_last_offset = time_offset < 0 ? -1 : s->base_offset + time_offset;
        s->newest_position = s->newest_base_offset = -1;
        s->bytes_since_index = 0;
        pthread_mutex_unlock(&s->lock);
        if (r < 0 && r != -ENOENT)
                return r;
        /* An offset index without a time index: they are not of this log, or one was removed. */
        if ((position >= s->size && position > 0) || (offset >= 0 && time_offset < 0))
                return -EBADMSG;
        *ret_position = position;
        *ret_last_offset = offset < 0 ? -1 : s->base_offset + offset;
        return 0;
}

int segment_load_tail(struct segment *s, int64_t *ret_end_offset)
{
        int64_t position = 0, indexed = -1, end_offset = s->base_offset;
        struct batch_meta b;
        int r;

        if (s->size == 0) {
                r = segment_reset_indexes(s); /* an index without a log is stale */
                *ret_end_offset = s->base_offset;
                return r;
        }
        r = load_index_tails(s, &position, &indexed);
        if (r == 0)
                r = read_first_timestamp(s);
        if (r < 0)
                return r;
        if (indexed >= 0) {
                /* The entry must name the batch that stands there. */
                r = segment_locate(s, indexed, &b);
                if (r < 0)
                        return r == -ENXIO ? -EBADMSG : r;
                if (b.position != position || b.last_offset != indexed)
                        return -EBADMSG;
        }
        if (s->max_timestamp >= 0) {
                r = segment_check_time_entry(s, s->max_timestamp,
                                             (int32_t)(s->max_timestamp_last_offset - s->base_offset), &b);
                if (r < 0)
                        return r;
        }
        r = note_from(s, position, &end_offset);
        if (r < 0)
                return r;
        *ret_end_offset = end_offset;
        return 0;
}

int segment_rebuild_indexes(struct segment *s, int64_t *ret_end_offset)
{
        int64_t end_offset = s->base_offset;
        int r = segment_reset_indexes(s), bad = 0;

        if (r == 0)
                r = note_from(s, 0, &end_offset);
        if (r == -EBADMSG || r == -ENODATA) {
                bad = r;
                r = 0;
        }
        if (r == 0)
                r = segment_write_indexes(s);
        if (r < 0)
                return r;
        *ret_end_offset = end_offset;
        return bad;
}

/* After a cut: the largest timestamp is what the time index says, or one of the batches behind its last
 * entry. */
static int reload_maxima(struct segment *s)
{
        int64_t end_offset = s->base_offset, position = 0, indexed;
        int r = load_index_tails(s, &position, &indexed);

        if (r == 0)
                r = read_first_timestamp(s);
        if (r == 0)
                r = note_from(s, position, &end_offset);
        return r == -EBADMSG ? segment_rebuild_indexes(s, &end_offset) : r;
}

int segment_truncate(struct segment *s, int64_t position, int64_t offset)
{
        char path[PATH_MAX];
        int32_t relative = (int32_t)MIN(offset - s->base_offset, INT32_MAX);
        int64_t end_offset;
        int r;

        r = segment_activate(s);
        if (r == 0)
                r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_LOG, path);
        if (r < 0)
                return r;
        if (truncate(path, (off_t)position) < 0)
                return -errno;
        s->size = position;
        if (position == 0)
                return segment_reset_indexes(s); /* KAFKA-6492: an emptied segment has empty indexes */
        pthread_mutex_lock(&s->lock);
        r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_INDEX, path);
        if (r == 0)
                r = sparse_index_truncate(&s->offsets, path, relative);
        if (r == 0)
                r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_TIMEINDEX, path);
        if (r == 0)
                r = sparse_index_truncate(&s->times, path, relative);
        pthread_mutex_unlock(&s->lock);
        return r < 0 ? segment_rebuild_indexes(s, &end_offset) : reload_maxima(s);
}

static int sync_path(const char *path)
{
        cleanup_with(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return fdatasync(fd) < 0 ? -errno : 0;
}

int segment_sync(struct segment *s, bool indexes)
{
        size_t n = indexes ? ARRAY_SIZE(SUFFIXES) : 1;
        char path[PATH_MAX];
        int r = 0;

        for (size_t i = 0; i < n; i++) {
                r = segment_path(s->dir, s->base_offset, SUFFIXES[i], path);
                if (r == 0)
                        r = sync_path(path);
                if (r < 0 && !(r == -ENOENT && i > 0)) /* few bytes: no index file */
                        return r;
        }
        return 0;
}

int segment_retire(struct segment *s)
{
        char from[PATH_MAX], to[PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(SUFFIXES); i++) {
                int r = segment_path(s->dir, s->base_offset, SUFFIXES[i], from);

                if (r == 0 &&
                    snprintf(to, sizeof(to), "%s%s", from, SEGMENT_SUFFIX_DELETED) >= (int)sizeof(to))
                        r = -ENAMETOOLONG;
                if (r == 0 && rename(from, to) < 0 && errno != ENOENT)
                        r = -errno;
                if (r < 0)
                        return r;
        }
        return 0;
}

void segment_unlink(struct segment *s)
{
        char path[PATH_MAX], retired[PATH_MAX];

        for (size_t i = 0; i < ARRAY_SIZE(SUFFIXES); i++) {
                if (segment_path(s->dir, s->base_offset, SUFFIXES[i], path) < 0)
                        continue;
                if (snprintf(retired, sizeof(retired), "%s%s", path, SEGMENT_SUFFIX_DELETED) <
                    (int)sizeof(retired))
                        (void)unlink(retired); /* mostly not there */
                (void)unlink(path);            /* what stays is found and removed at the next start */
        }
}
