/* Whole-file helpers with the syncs in the right order. Any thread. */
#pragma once

#include "base/buf.h"
#include "base/util.h"

/* Write @path.tmp, fsync, rename over @path, fsync the directory: readers see the old or the new bytes,
 * after a crash too. -errno. */
int fs_write_atomic(const char *path, const void *data, size_t len) must_check;
/* Read at most @max_bytes (-EFBIG past it) into @out (initialised by the caller, appended to). */
int fs_read_file(const char *path, size_t max_bytes, struct buf *out) must_check;
int fs_mkdir_p(const char *path, unsigned mode) must_check;
int fs_sync_dir(const char *path) must_check;
/* write/pwrite/pread until all @n bytes moved; short reads at the end of a file give -ENODATA. */
int fs_write_full(int fd, const void *p, size_t n) must_check;
int fs_pwrite_full(int fd, const void *p, size_t n, int64_t offset) must_check;
int fs_pread_full(int fd, void *p, size_t n, int64_t offset) must_check;
