/* What the tests of this folder share: a directory for each test, batches made to order, and appends and
 * reads that fail the test when they do not succeed. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "log/partition_log.h"
#include "wire/record_batch.h"

/* A directory of its own for each test, removed with everything in it; *state is its path. */
int tmpdir_setup(void **state);
int memdir_setup(void **state); /* in memory where that can be had: for tests that make thousands of files */
int tmpdir_teardown(void **state);
/* "<dir>/<name>" in memory that lives until the eighth call after it. */
const char *tmpdir_path(void **state, const char *name);

int64_t file_size(const char *path); /* -1: none */
void file_read(const char *path, struct buf *out);
void file_write(const char *path, const void *data, size_t n);
/* The only name in @dir that ends with @suffix, or the last in order. Fails the test when there is none. */
const char *last_file(const char *dir, const char *suffix);
size_t count_files(const char *dir, const char *suffix);

struct made { /* a batch to make; all zero: one record at time 0 without a producer */
        int32_t n_records, value_bytes, epoch;          /* n_records 0: 1 */
        int64_t base_offset, timestamp_ms, producer_id; /* producer_id 0: none */
        int16_t producer_epoch, attributes;
        int32_t sequence;
};
/* Appended to @out. Record i has timestamp timestamp_ms + i and the value "v<base + i>" filled up with dots.
 */
void make_batch(struct buf *out, const struct made *m);

struct partition_log *open_log(const char *dir, const struct log_config *c, int64_t recovery_point,
                               bool clean);
struct log_config small_config(void); /* defaults with an index entry every 200 bytes */
int append_made(struct partition_log *l, const struct made *m, int32_t epoch, struct log_append_info *ret);
/* Append @n batches of @m as the leader of @epoch; timestamps go up by 10 a batch. */
void append_many(struct partition_log *l, int n, struct made m, int32_t epoch);
/* Follow: append what @m makes at m.base_offset. */
int follow_made(struct partition_log *l, const struct made *m);

/* Read from start to end in steps of @max_bytes: every offset must be there once, in order. Returns the
 * batches. */
int check_readable(struct partition_log *l, size_t max_bytes);
/* First and last offset of what a read at @offset gives; -1, -1 when it is empty. */
void read_range(struct partition_log *l, int64_t offset, int64_t bound, size_t max_bytes, bool min_one,
                int64_t *ret_first, int64_t *ret_last);
