/* One segment of a partition's log: `<base offset, 20 digits>.log` and its two sparse indexes.
 *
 * Reference-counted: readers and the flusher hold a reference, so that retention may unlink under them.
 * Appending, sealing and truncating need the partition's lock; all else may run at the same time as an
 * append. Only the active segment keeps a file open; a sealed one is opened for each read and costs no
 * descriptor. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/buf.h"
#include "log/batch_cursor.h"
#include "log/sparse_index.h"

#define SEGMENT_SUFFIX_LOG       ".log"
#define SEGMENT_SUFFIX_INDEX     ".index"
#define SEGMENT_SUFFIX_TIMEINDEX ".timeindex"
#define SEGMENT_SUFFIX_DELETED   ".deleted" /* after the other suffix: unlinked at the next occasion */
#define SEGMENT_WINDOW           4096       /* read at once while looking for a batch: one index interval */

struct shared_fd;

struct segment {
        atomic_int refs;
        const char *dir; /* the log's, which outlives its segments */
        int64_t base_offset, created_ms;
        _Atomic int64_t size;   /* bytes of whole batches; grows after they are written */
        pthread_mutex_t lock;   /* guards what follows; the partition's lock is enough to read it */
        struct shared_fd *file; /* NULL: sealed */
        struct sparse_index offsets, times;
        int64_t index_interval_bytes, bytes_since_index;
        int64_t first_timestamp;           /* the first batch's largest; -1: unknown or empty */
        int64_t max_timestamp;             /* -1: none. Of a sealed segment: segment_read_max_timestamp() */
        int64_t max_timestamp_last_offset; /* of the batch that has it */
        int64_t newest_position, newest_base_offset; /* the batch appended last; -1: unknown */
};

/* "<dir>/<offset, 20 digits><suffix>" into @out. -ENAMETOOLONG. */
int segment_path(const char *dir, int64_t base_offset, const char *suffix, char out[4096]) must_check;

/* A new empty segment, open for appending. -EEXIST when the file exists and is not empty. */
int segment_create(const char *dir, int64_t base_offset, int64_t index_interval_bytes, struct segment **ret)
        must_check;
/* An existing one of @size bytes, sealed. Touches no file. */
int segment_new(const char *dir, int64_t base_offset, int64_t size, int64_t index_interval_bytes,
                struct segment **ret) must_check;
struct segment *segment_ref(struct segment *s);
struct segment *segment_unref(struct segment *s); /* returns NULL; accepts NULL. Writes nothing */
DEFINE_FREEP(struct segment, segment_unref)

/* Open the file for appending (no effect when it is). */
int segment_activate(struct segment *s) must_check;
/* No more appends: last time index entry, indexes written out, file closed. */
int segment_seal(struct segment *s) must_check;
/* Write out the indexes, with the entry that time lookups need to skip this segment. */
int segment_write_indexes(struct segment *s) must_check;

/* Write @len bytes, the @n batches of @metas (whose positions are set here), at the end. On an error nothing
 * is appended; when even that cannot be had (the file could not be cut back) the result is -EIO. -ENOSPC also
 * stands for a quota or file size limit. */
int segment_append(struct segment *s, const void *data, size_t len, struct batch_meta *metas, size_t n)
        must_check;
/* Note @b, at b->position, in the indexes and the maxima, as an append does: for recovery. */
void segment_note_batch(struct segment *s, const struct batch_meta *b);
int segment_reset_indexes(struct segment *s) must_check;

/* The first batch whose last offset is >= @offset. -ENXIO: all are smaller. -EBADMSG: the log is damaged
 * there. -ENOENT: the file is gone. */
int segment_locate(struct segment *s, int64_t offset, struct batch_meta *ret) must_check;
/* Append bytes [@position, @position + @n) to @out; -ENODATA if they are not there. */
int segment_read(struct segment *s, int64_t position, size_t n, struct buf *out) must_check;
/* Does the log bear out the time index's entry {@timestamp, @offset}? Then *ret is that batch; else -EBADMSG.
 */
int segment_check_time_entry(struct segment *s, int64_t timestamp, int32_t offset, struct batch_meta *ret)
        must_check;
/* Where to begin looking for a record of @timestamp or later: position of a batch with none before it. */
int segment_floor_timestamp(struct segment *s, int64_t timestamp, int64_t *ret_position) must_check;
/* The largest timestamp of a sealed segment, -1 when no batch has any. */
int segment_read_max_timestamp(struct segment *s, int64_t *ret) must_check;

/* What a log needs to know of its last segment when there is nothing to recover: reads what the index does
 * not cover. *ret_end_offset: the next offset. -EBADMSG/-ENODATA: there is something to recover, or the
 * indexes are damaged. */
int segment_load_tail(struct segment *s, int64_t *ret_end_offset) must_check;
/* Make the indexes again from the batch headers. -EBADMSG/-ENODATA: only up to the first bad one, which is at
 * *ret_end_offset; else that is the next offset. */
int segment_rebuild_indexes(struct segment *s, int64_t *ret_end_offset) must_check;

/* Cut at @position, where the batch with base offset @offset began. */
int segment_truncate(struct segment *s, int64_t position, int64_t offset) must_check;
/* fdatasync; with @indexes also of the indexes (a sealed segment's are never rebuilt after this). */
int segment_sync(struct segment *s, bool indexes) must_check;
/* Rename the three files to *.deleted: gone after a crash too. */
int segment_retire(struct segment *s) must_check;
/* Unlink the files, retired or not. */
void segment_unlink(struct segment *s);

/* A cursor over the segment from @position to its present end. Release with segment_walk_done(). */
struct segment_walk {
        struct batch_cursor cursor;
        struct shared_fd *file;
};
int segment_walk_init(struct segment_walk *w, struct segment *s, int64_t position, uint8_t *window,
                      size_t window_size) must_check;
void segment_walk_done(struct segment_walk *w);
