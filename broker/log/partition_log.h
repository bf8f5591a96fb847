/* The log of one partition: segments with offset and time index, leader-epoch checkpoint, producer state.
 * Kafka's own bytes on disk.
 *
 * Not thread-safe: the caller holds the partition's lock, except for partition_log_read() of a range below a
 * bound taken under the lock, which may run without it (segments are reference-counted). */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/util.h"

struct partition_log;

struct log_config { /* per topic; defaults are Kafka's */
        int64_t segment_bytes, segment_ms, index_interval_bytes, index_max_bytes, retention_ms,
                retention_bytes;
        int32_t max_message_bytes;
        int64_t producer_id_expiration_ms;
};
void log_config_default(struct log_config *ret);

/* Open or create @dir ("<log.dirs entry>/<topic>-<partition>").
 * @clean: the clean-shutdown marker was there: no scan. Else everything past @recovery_point is scanned: CRC
 * and offsets checked, indexes and producer state rebuilt, a torn tail cut, segments behind a bad batch
 * deleted; what was cut is logged. -errno. */
int partition_log_open(const char *dir, const struct log_config *config, int64_t recovery_point, bool clean,
                       struct partition_log **ret) must_check;
/* Write out what a start needs so as to find everything without a scan: indexes and a producer snapshot.
 * Syncs nothing: partition_log_flush() first. No appends after it. */
int partition_log_close(struct partition_log *l) must_check;
/* Closes (an error then costs a scan at the next start) and gives the owner's reference back. */
struct partition_log *partition_log_free(struct partition_log *l);
DEFINE_FREEP(struct partition_log, partition_log_free)
int partition_log_delete(struct partition_log *l)
        must_check; /* renames the directory to <dir>.<uuid>-delete and unlinks; frees */
/* Whoever reads or flushes without the partition's lock holds a reference, so that freeing and deleting wait
 * for it. */
struct partition_log *partition_log_ref(struct partition_log *l);
struct partition_log *
partition_log_unref(struct partition_log *l); /* the last one frees, and writes nothing; NULL */

int64_t partition_log_start_offset(const struct partition_log *l);
int64_t partition_log_end_offset(const struct partition_log *l); /* LEO: next offset to write */
int64_t partition_log_recovery_point(const struct partition_log *l);
int64_t partition_log_size_bytes(const struct partition_log *l);

struct log_append_info {
        int64_t first_offset, last_offset, max_timestamp;
        int32_t n_records;
        bool duplicate; /* idempotent resend: nothing appended, offsets are the original's */
};
/* Leader append of one partition's records of a Produce request: exactly one v2 batch, validated in place
 * (CRC, magic, sizes, counts, codec, not a control batch, producer sequence), base offset and leader epoch
 * stamped into @data (both outside the CRC), written with one pwritev. @data is modified. -EBADMSG corrupt
 * -EMSGSIZE > max_message_bytes   -EINVAL invalid record or >1 batch   -EPROTO magic < 2 -ENOPROTOOPT unknown
 * codec   -EILSEQ out-of-order sequence   -ESTALE old producer epoch   -EIO/-ENOSPC storage (the log then
 * refuses appends until reopened after -EIO: KAFKA-10778; after -ENOSPC nothing was appended and the next try
 * may succeed) -EPERM @leader_epoch is older than the log's latest: who calls is no leader of this log
 * -ENOMEM, -EMFILE */
int partition_log_append_leader(struct partition_log *l, uint8_t *data, size_t len, int32_t leader_epoch,
                                int64_t now_ms, struct log_append_info *ret) must_check;
/* Does the idempotent producer's batch begin behind what is here of it? partition_log_append_leader() would
 * say -EILSEQ, or accept it when the producer is not known (any more). */
bool partition_log_skips_sequences(const struct partition_log *l, const uint8_t *data, size_t len);
/* Follower append of whole batches as the leader sent them (a torn last batch is ignored). The first base
 * offset must be the LEO (-ERANGE). Epoch entries are taken from the batches. -EBADMSG: a damaged batch, or
 * epochs that go back; nothing was appended. No whole batch: 0, and *ret has no records. */
int partition_log_append_follower(struct partition_log *l, const uint8_t *data, size_t len,
                                  struct log_append_info *ret) must_check;

/* Whole batches from the one containing @offset up to @bound (exclusive: HW or LEO), at most @max_bytes, but
 * at least one batch when @min_one. Appends to @out. *ret_n: bytes. -ERANGE: @offset outside [start, LEO].
 * -EBADMSG: damaged on disk. Reads from one segment, so it may give less than @max_bytes although there is
 * more. Any thread. */
int partition_log_read(struct partition_log *l, int64_t offset, int64_t bound, size_t max_bytes, bool min_one,
                       struct buf *out, size_t *ret_n) must_check;
/* Bytes that reads would find, counted in O(log segments): for fetch.min.bytes (R70). Any thread. */
int64_t partition_log_bytes_between(const struct partition_log *l, int64_t from, int64_t to);

/* *ret_offset/-timestamp of the first record below @bound with a timestamp >= @timestamp, or -1/-1. A
 * compressed batch is unpacked for it; one that grows to more than 1 MiB and sixteenfold is answered with its
 * first offset. Any thread. */
int partition_log_find_timestamp(struct partition_log *l, int64_t timestamp, int64_t bound,
                                 int64_t *ret_offset, int64_t *ret_timestamp) must_check;
/* The same for whole batches, by what their headers say: first offset and largest timestamp of the first
 * batch that reaches @timestamp. Nothing is unpacked. Any thread. */
int partition_log_find_batch(struct partition_log *l, int64_t timestamp, int64_t bound, int64_t *ret_offset,
                             int64_t *ret_timestamp) must_check;

/* --- leader epochs (KIP-101, 279) --- */
/* A new leader records its epoch at its LEO before it accepts data (KAFKA-7415); in memory when it returns,
 * in the file before the first data of it, synced with that (docs/decisions/0002-epoch-checkpoint-sync.md). 0
 * when it is known already. -ESTALE: older than the log's latest epoch: this is not the leader's log (was
 * ZooKeeper emptied?) -EINVAL, -EIO, … */
int partition_log_assign_epoch(struct partition_log *l, int32_t epoch, int64_t start_offset) must_check;
int32_t partition_log_latest_epoch(const struct partition_log *l); /* -1: none */
/* endOffsetFor(e): *ret_epoch = largest known epoch <= e and where it ends; -1/-1 when undefined. */
void partition_log_end_offset_for_epoch(const struct partition_log *l, int32_t epoch, int32_t *ret_epoch,
                                        int64_t *ret_end_offset);
/* The epoch of the record at @offset - 1, i.e. LastFetchedEpoch of a fetch at @offset; -1 when none. */
int32_t partition_log_epoch_for_offset(const struct partition_log *l, int64_t offset);

/* Cut everything from @offset on (>= LEO: only the epoch cache is trimmed, KAFKA-10706). A batch that @offset
 * lies in goes whole, so the LEO may end up smaller. Below the start offset: everything goes and the log
 * starts at @offset. Waits for readers. After an error the log may refuse everything (-EIO). */
int partition_log_truncate_to(struct partition_log *l, int64_t offset) must_check;
int partition_log_truncate_fully_and_start_at(struct partition_log *l, int64_t offset) must_check;

/* fsync up to LEO and advance the recovery point. Long: call it from a worker, with a reference and without
 * the lock; it may run beside everything else. */
int partition_log_flush(struct partition_log *l) must_check;
bool partition_log_flush_wanted(
        const struct partition_log *l); /* a segment was sealed since the last flush. Any thread */
/* Delete whole old segments below @hw by time and size (KAFKA-5634), forget expired producers; returns the
 * number deleted or -errno. The files are only renamed: */
int partition_log_retain(struct partition_log *l, int64_t now_ms, int64_t hw) must_check;
/* Unlink what retention deleted; returns how many segments. Long, so without the lock, from any thread. What
 * is left is unlinked by the next retention, the close, or the next start. */
size_t partition_log_reap(struct partition_log *l);
void partition_log_set_config(struct partition_log *l, const struct log_config *c);
