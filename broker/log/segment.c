/* See segment.h for the rules, docs/formats/log.md for the bytes. */
#include "log/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"

/* --- the open file: shared by the owner, readers and the flusher --- */

struct shared_fd {
        atomic_int refs;
        int fd;
};

static struct shared_fd *shared_fd_unref(struct shared_fd *f)
{
        if (!f || atomic_fetch_sub(&f->refs, 1) > 1)
                return NULL;
        (void)close(f->fd); /* errors of written bytes come from fdatasync() */
        free(f);
        return NULL;
}
DEFINE_FREEP(struct shared_fd, shared_fd_unref)

static int shared_fd_open(const char *path, int flags, struct shared_fd **ret)
{
        struct shared_fd *f = malloc(sizeof(*f));

        if (!f)
                return -ENOMEM;
        f->fd = open(path, flags | O_CLOEXEC, 0644);
        if (f->fd < 0) {
                int r = -errno;

                free(f);
                return r;
        }
        atomic_init(&f->refs, 1);
        *ret = f;
        return 0;
}

int segment_path(const char *dir, int64_t base_offset, const char *suffix, char out[4096])
{
        int n = snprintf(out, PATH_MAX, "%s/%020" PRId64 "%s", dir, base_offset, suffix);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* The file, for reading: the active one's, or a fresh one. Retention may have renamed it meanwhile. */
static int file_get(struct segment *s, struct shared_fd **ret)
{
        static const char *const names[] = {SEGMENT_SUFFIX_LOG, SEGMENT_SUFFIX_LOG SEGMENT_SUFFIX_DELETED};
        char path[PATH_MAX];
        int r = -ENOENT;

        pthread_mutex_lock(&s->lock);
        if (s->file) {
                atomic_fetch_add(&s->file->refs, 1);
                *ret = s->file;
                r = 0;
        }
        pthread_mutex_unlock(&s->lock);
        for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(names); i++) {
                r = segment_path(s->dir, s->base_offset, names[i], path);
                if (r == 0)
                        r = shared_fd_open(path, O_RDONLY, ret);
        }
        return r;
}

/* --- life --- */

int segment_new(const char *dir, int64_t base_offset, int64_t size, int64_t index_interval_bytes,
                struct segment **ret)
{
        struct segment *s = calloc(1, sizeof(*s));

        if (!s)
                return -ENOMEM;
        atomic_init(&s->refs, 1);
        atomic_init(&s->size, size);
        s->dir = dir;
        s->base_offset = base_offset;
        s->created_ms = clock_real_ms();
        s->index_interval_bytes = index_interval_bytes;
        s->first_timestamp = s->max_timestamp = s->max_timestamp_last_offset = -1;
        s->newest_position = s->newest_base_offset = -1;
        (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail with default attributes */
        sparse_index_init(&s->offsets, OFFSET_INDEX_ENTRY);
        sparse_index_init(&s->times, TIME_INDEX_ENTRY);
        *ret = s;
        return 0;
}

struct segment *segment_ref(struct segment *s)
{
        atomic_fetch_add(&s->refs, 1);
        return s;
}

struct segment *segment_unref(struct segment *s)
{
        if (!s || atomic_fetch_sub(&s->refs, 1) > 1)
                return NULL;
        s->file = shared_fd_unref(s->file);
        sparse_index_done(&s->offsets);
        sparse_index_done(&s->times);
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
        return NULL;
}

int segment_create(const char *dir, int64_t base_offset, int64_t index_interval_bytes, struct segment **ret)
{
        cleanup_with(segment_unrefp) struct segment *s = NULL;
        char path[PATH_MAX];
        off_t end;
        int r;

        r = segment_new(dir, base_offset, 0, index_interval_bytes, &s);
        if (r < 0)
                return r;
        r = segment_path(dir, base_offset, SEGMENT_SUFFIX_LOG, path);
        if (r == 0)
                r = shared_fd_open(path, O_RDWR | O_CREAT, &s->file);
        if (r < 0)
                return r;
        end = lseek(s->file->fd, 0, SEEK_END);
        if (end != 0)
                return end < 0 ? -errno : -EEXIST;
        r = segment_reset_indexes(s); /* left over from a segment of this name that was cut off */
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

int segment_activate(struct segment *s)
{
        struct shared_fd *file = NULL;
        char path[PATH_MAX];
        int r;

        if (s->file)
                return 0;
        r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_LOG, path);
        if (r == 0)
                r = shared_fd_open(path, O_RDWR, &file);
        if (r < 0)
                return r;
        pthread_mutex_lock(&s->lock);
        s->file = file;
        pthread_mutex_unlock(&s->lock);
        return 0;
}

/* --- indexes --- */

struct index_paths {
        char offsets[PATH_MAX], times[PATH_MAX];
};

static int index_paths(const struct segment *s, struct index_paths *ret)
{
        int r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_INDEX, ret->offsets);

        return r < 0 ? r : segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_TIMEINDEX, ret->times);
}

static void note_time_locked(struct segment *s, const struct index_paths *p)
{
        if (s->max_timestamp >= 0)
                time_index_append(&s->times, p->times, s->max_timestamp,
                                  (int32_t)(s->max_timestamp_last_offset - s->base_offset));
}

static int write_indexes_locked(struct segment *s)
{
        struct index_paths p;
        int64_t last;
        int32_t offset;
        int r = index_paths(s, &p);

        if (r < 0)
                return r;
        note_time_locked(s, &p);
        r = sparse_index_write(&s->offsets, p.offsets);
        if (r == 0)
                r = sparse_index_write(&s->times, p.times);
        if (r < 0 || s->max_timestamp < 0)
                return r;
        /* Retention trusts this entry: without it the segment would look older than it is. */
        r = time_index_last(&s->times, p.times, &last, &offset);
        return r == -ENOENT || (r == 0 && last < s->max_timestamp) ? -ENOSPC : r;
}

int segment_write_indexes(struct segment *s)
{
        int r;

        pthread_mutex_lock(&s->lock);
        r = write_indexes_locked(s);
        pthread_mutex_unlock(&s->lock);
        return r;
}

int segment_seal(struct segment *s)
{
        int r;

        pthread_mutex_lock(&s->lock);
        r = write_indexes_locked(s);
        if (r == 0) {
                s->file = shared_fd_unref(s->file);
                sparse_index_done(&s->offsets); /* found in the files from now on */
                sparse_index_done(&s->times);
        }
        pthread_mutex_unlock(&s->lock);
        return r;
}

int segment_reset_indexes(struct segment *s)
{
        struct index_paths p;
        int r = index_paths(s, &p);

        if (r < 0)
                return r;
        pthread_mutex_lock(&s->lock);
        s->bytes_since_index = 0;
        s->first_timestamp = s->max_timestamp = s->max_timestamp_last_offset = -1;
        s->newest_position = s->newest_base_offset = -1;
        r = sparse_index_reset(&s->offsets, p.offsets);
        if (r == 0)
                r = sparse_index_reset(&s->times, p.times);
        pthread_mutex_unlock(&s->lock);
        return r;
}

static void note_maxima(struct segment *s, const struct batch_meta *b)
{
        if (b->position == 0)
                s->first_timestamp = b->max_timestamp;
        if (b->max_timestamp <= s->max_timestamp)
                return;
        s->max_timestamp = b->max_timestamp;
        s->max_timestamp_last_offset = b->last_offset;
}

static void note_in_indexes(struct segment *s, const struct batch_meta *b)
{
        struct index_paths p;

        if (index_paths(s, &p) < 0)
                return; /* a hint less */
        offset_index_append(&s->offsets, p.offsets, (int32_t)(b->last_offset - s->base_offset),
                            (int32_t)b->position);
        note_time_locked(s, &p);
        s->bytes_since_index = 0;
}

static void note_locked(struct segment *s, const struct batch_meta *b)
{
        note_maxima(s, b);
        if (s->bytes_since_index > s->index_interval_bytes)
                note_in_indexes(s, b);
        s->bytes_since_index += b->size;
        s->newest_position = b->position;
        s->newest_base_offset = b->base_offset;
}

void segment_note_batch(struct segment *s, const struct batch_meta *b)
{
        pthread_mutex_lock(&s->lock);
        note_locked(s, b);
        pthread_mutex_unlock(&s->lock);
}

/* --- appending --- */

int segment_append(struct segment *s, const void *data, size_t len, struct batch_meta *metas, size_t n)
{
        int64_t end = atomic_load_explicit(&s->size, memory_order_relaxed), at = end;
        int r;

        r = fs_pwrite_full(s->file->fd, data, len, end);
        if (r < 0) {
                /* Part of it may stand in the file: cut it off, or the next append would leave a hole of
                 * garbage between two batches (KAFKA-10778). */
                if (ftruncate(s->file->fd, (off_t)end) < 0)
                        return -EIO;
                return r == -EDQUOT || r == -EFBIG ? -ENOSPC : r;
        }
        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < n; i++) {
                metas[i].position = at;
                note_locked(s, &metas[i]);
                at += metas[i].size;
        }
        pthread_mutex_unlock(&s->lock);
        atomic_store_explicit(&s->size, end + (int64_t)len, memory_order_release);
        return 0;
}

/* --- looking up --- */

int segment_walk_init(struct segment_walk *w, struct segment *s, int64_t position, uint8_t *window,
                      size_t window_size)
{
        int64_t end = atomic_load_explicit(&s->size, memory_order_acquire);
        int r = file_get(s, &w->file);

        if (r < 0)
                return r;
        batch_cursor_init(&w->cursor, w->file->fd, position, end, window, window_size);
        return 0;
}

void segment_walk_done(struct segment_walk *w)
{
        w->file = shared_fd_unref(w->file);
}

/* Walk from @position to the first batch that ends at @offset or later. -EBADMSG also when that walk began
 * behind it. */
static int locate_from(struct segment *s, int64_t position, int64_t offset, struct batch_meta *ret)
{
        uint8_t window[SEGMENT_WINDOW];
        struct segment_walk w;
        int64_t previous = s->base_offset - 1;
        int r = segment_walk_init(&w, s, position, window, sizeof(window));

        if (r < 0)
                return r;
        if (position > 0 && position >= w.cursor.end)
                r = -EBADMSG;
        while (r == 0) {
                struct batch_meta b;

                r = batch_cursor_next(&w.cursor, &b);
                if (r <= 0)
                        break;
                if (b.base_offset <= previous ||
                    (b.position == position && position > 0 && b.base_offset > offset)) {
                        r = -EBADMSG;
                        break;
                }
                previous = b.last_offset;
                r = b.last_offset >= offset;
                if (r > 0)
                        *ret = b;
        }
        segment_walk_done(&w);
        return r == 0 ? -ENXIO : MIN(r, 0);
}

/* Where the indexes say to begin; 0 when they say nothing. */
static int64_t floor_position(struct segment *s, int64_t offset)
{
        char path[PATH_MAX];
        int32_t position = 0;
        int64_t newest = -1;
        int r = 0;

        pthread_mutex_lock(&s->lock);
        if (s->newest_base_offset >= 0 && offset >= s->newest_base_offset)
                newest = s->newest_position;
        else
                r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_INDEX, path);
        if (newest < 0 && r == 0)
                r = offset_index_floor(&s->offsets, path, (int32_t)MIN(offset - s->base_offset, INT32_MAX),
                                       &position);
        pthread_mutex_unlock(&s->lock);
        if (newest >= 0)
                return newest;
        return r < 0 || position < 0 ? 0 : position;
}

int segment_locate(struct segment *s, int64_t offset, struct batch_meta *ret)
{
        int64_t position = floor_position(s, MAX(offset, s->base_offset));
        int r = locate_from(s, position, offset, ret);

        /* The index is a hint only: what it points at may be no batch, or one behind @offset. */
        if (position > 0 && (r == -EBADMSG || r == -ENODATA))
                r = locate_from(s, 0, offset, ret);
        return r == -ENODATA ? -EBADMSG : r;
}

int segment_read(struct segment *s, int64_t position, size_t n, struct buf *out)
{
        cleanup_with(shared_fd_unrefp) struct shared_fd *file = NULL;
        int r = buf_reserve(out, n);

        if (r < 0)
                return r;
        r = file_get(s, &file);
        if (r < 0)
                return r;
        r = fs_pread_full(file->fd, out->data + out->len, n, position);
        if (r < 0)
                return r;
        out->len += n;
        return 0;
}

int segment_check_time_entry(struct segment *s, int64_t timestamp, int32_t offset, struct batch_meta *ret)
{
        struct batch_meta b;
        int r = offset < 0 ? -EBADMSG : segment_locate(s, s->base_offset + offset, &b);

        if (r == -ENXIO)
                return -EBADMSG;
        if (r < 0)
                return r;
        if (b.last_offset != s->base_offset + offset || b.max_timestamp != timestamp)
                return -EBADMSG;
        *ret = b;
        return 0;
}

int segment_floor_timestamp(struct segment *s, int64_t timestamp, int64_t *ret_position)
{
        struct batch_meta b;
        char path[PATH_MAX];
        int64_t found = -1;
        int32_t offset = -1;
        int r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_TIMEINDEX, path);

        if (r < 0)
                return r;
        *ret_position = 0;
        pthread_mutex_lock(&s->lock);
        /* Strictly smaller: of equal timestamps the first is wanted. */
        r = timestamp > 0 ? time_index_floor(&s->times, path, timestamp - 1, &found, &offset) : -ENOENT;
        pthread_mutex_unlock(&s->lock);
        if (r < 0)
                return 0; /* from the beginning */
        r = segment_check_time_entry(s, found, offset, &b);
        if (r == 0)
                *ret_position = b.position;
        return r == -EBADMSG ? 0 : r;
}

static int scan_max_timestamp(struct segment *s, int64_t *ret)
{
        uint8_t window[SEGMENT_WINDOW];
        struct segment_walk w;
        struct batch_meta b;
        int64_t max = -1;
        int r = segment_walk_init(&w, s, 0, window, sizeof(window));

        if (r < 0)
                return r;
        while ((r = batch_cursor_next(&w.cursor, &b)) > 0)
                max = MAX(max, b.max_timestamp);
        segment_walk_done(&w);
        if (r == 0)
                *ret = max;
        return r;
}

int segment_read_max_timestamp(struct segment *s, int64_t *ret)
{
        struct batch_meta b;
        char path[PATH_MAX];
        int64_t timestamp;
        int32_t offset;
        int r = segment_path(s->dir, s->base_offset, SEGMENT_SUFFIX_TIMEINDEX, path);

        if (r < 0)
                return r;
        pthread_mutex_lock(&s->lock);
        r = time_index_last(&s->times, path, &timestamp, &offset);
        pthread_mutex_unlock(&s->lock);
        if (r == 0)
                r = segment_check_time_entry(s, timestamp, offset, &b);
        if (r < 0)
                return scan_max_timestamp(s, ret); /* no index, or a damaged one */
        *ret = timestamp;
        return 0;
}
