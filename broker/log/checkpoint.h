/* Kafka's checkpoint files: text, `0\n<count>\n` and a line an entry. Any thread.
 *
 *   replication-offset-checkpoint, recovery-point-offset-checkpoint   <topic> <partition> <offset>
 *   leader-epoch-checkpoint                                           <epoch> <start offset>
 *
 * A file is right or it is refused whole: version 0, exactly <count> lines, numbers in range. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "log/epoch_cache_core.h"

/* Called for each line; @topic is NUL-terminated and not kept. A negative return ends the reading with it. */
typedef int (*checkpoint_offset_fn)(const char *topic, int32_t partition, int64_t offset, void *userdata);

/* @text may be changed. -EBADMSG: malformed; *ret_line says where. */
int checkpoint_parse_offsets(char *text, size_t len, checkpoint_offset_fn fn, void *userdata, int *ret_line)
        must_check;
int checkpoint_parse_epochs(char *text, size_t len, struct epoch_cache *ret, int *ret_line) must_check;

/* -ENOENT: no file (nothing was called). -EBADMSG as above. */
int checkpoint_read_offsets(const char *path, checkpoint_offset_fn fn, void *userdata, int *ret_line)
        must_check;
int checkpoint_read_epochs(const char *path, struct epoch_cache *ret) must_check;

/* The head of a file of @n lines; the lines follow with checkpoint_add_offset(). */
int checkpoint_begin(struct buf *out, size_t n) must_check;
int checkpoint_add_offset(struct buf *out, const char *topic, int32_t partition, int64_t offset) must_check;

/* Atomic, but without a sync: docs/decisions/0002-epoch-checkpoint-sync.md. */
int checkpoint_write_epochs(const char *path, const struct epoch_cache *c) must_check;
/* Write @path.tmp and rename it over @path, without any sync: for what can be had again after a power loss.
 */
int checkpoint_replace_unsynced(const char *path, const void *data, size_t len) must_check;
