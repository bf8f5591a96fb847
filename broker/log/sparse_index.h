/* The two sparse indexes of a segment, in Kafka's bytes. All numbers are big-endian, offsets relative to the
 * segment's base offset:
 *
 *   .index      8 bytes an entry: offset i32, position i32. The batch at @position has this *last* offset.
 *   .timeindex  12 bytes an entry: timestamp i64, offset i32. The largest timestamp up to and including the
 * batch with this last offset. Both columns grow strictly.
 *
 * An index is a hint: whoever follows it checks what it finds in the log, so a damaged index costs time and
 * never answers wrongly. A failure to write one is therefore never an error of an append.
 *
 * New entries stay in memory and are written out a few at a time; the newest remain in memory for the readers
 * at the tail. A segment nobody writes to costs no memory: entries are looked up in the file.
 * Not thread-safe: the segment's lock. */
#pragma once

#include <stdint.h>

#include "base/util.h"

#define OFFSET_INDEX_ENTRY 8
#define TIME_INDEX_ENTRY   12

struct sparse_index {
        uint8_t *tail; /* entries [tail_first, n) */
        uint32_t tail_first;
        uint32_t n_written; /* entries [0, n_written) are in the file; tail_first <= n_written <= n */
        uint32_t n;
        uint8_t entry_size;
        bool loaded;
};

void sparse_index_init(struct sparse_index *x, uint8_t entry_size);
void sparse_index_done(struct sparse_index *x); /* forgets what was not written */

/* Find out how many entries @path has (once). -ENOENT: no file; -EBADMSG: the size or the last entry is no
 * index's. */
int sparse_index_load(struct sparse_index *x, const char *path) must_check;
/* Start afresh with an empty index; the file is emptied on the next write. */
int sparse_index_reset(struct sparse_index *x, const char *path) must_check;
/* Write out what is only in memory, and cut the file to that. */
int sparse_index_write(struct sparse_index *x, const char *path) must_check;

/* The append functions ignore an entry that does not grow, and drop one for which there is neither memory nor
 * disk space. */
void offset_index_append(struct sparse_index *x, const char *path, int32_t offset, int32_t position);
void time_index_append(struct sparse_index *x, const char *path, int64_t timestamp, int32_t offset);

/* Position of the entry with the largest offset <= @offset; 0 when there is none. */
int offset_index_floor(struct sparse_index *x, const char *path, int32_t offset, int32_t *ret_position)
        must_check;
/* The entry with the largest timestamp <= @timestamp; -ENOENT when there is none. */
int time_index_floor(struct sparse_index *x, const char *path, int64_t timestamp, int64_t *ret_timestamp,
                     int32_t *ret_offset) must_check;
/* The last entry; -ENOENT when the index is empty. */
int offset_index_last(struct sparse_index *x, const char *path, int32_t *ret_offset, int32_t *ret_position)
        must_check;
int time_index_last(struct sparse_index *x, const char *path, int64_t *ret_timestamp, int32_t *ret_offset)
        must_check;
/* Drop the entries with an offset >= @offset. */
int sparse_index_truncate(struct sparse_index *x, const char *path, int32_t offset) must_check;
