/* What the files of the partition log share; nobody else includes it.
 *
 * Locks, in the order they are taken:
 *   the partition's lock (the caller's)  appends, epochs, producers, truncation, retention
 *   content   rwlock; readers hold it shared while they look at bytes, truncation exclusively while it takes
 *             bytes away that a bound read a moment ago still covers
 *   lock      the list of segments, the recovery point and the generation; held for memory work only
 *   a segment's lock */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "log/epoch_cache_core.h"
#include "log/partition_log.h"
#include "log/producer_state_core.h"
#include "log/segment.h"

#define EPOCH_CHECKPOINT "leader-epoch-checkpoint"

struct segment_list {
        struct segment **items; /* each holds a reference */
        size_t n, cap;
};

struct partition_log {
        atomic_int refs;
        char *dir;
        struct log_config config;
        pthread_rwlock_t content;
        pthread_mutex_t lock;
        struct segment_list segments; /* ascending, never empty; the last one is active. Guarded by @lock */
        struct segment_list retired;  /* renamed *.deleted, not yet unlinked. Guarded by @lock */
        uint64_t generation;          /* changes with every truncation. Guarded by @lock */
        _Atomic int64_t start_offset, end_offset, recovery_point;
        atomic_bool failed;         /* a write or sync failed: no appends until reopened (KAFKA-10778) */
        atomic_bool dir_dirty;      /* files came or went since the last fsync of the directory */
        atomic_bool epochs_dirty;   /* the epoch checkpoint was replaced since it was synced */
        bool epochs_unwritten;      /* replacing the epoch checkpoint failed: it is behind the cache */
        bool epoch_unwritten;       /* it lacks the last entry, of which there is no data yet */
        atomic_bool rolled;         /* a segment was sealed since the last flush */
        int64_t checkpointed_bound; /* a recovery point up to this may stand in the manager's checkpoint
                                     * although ours is smaller since a truncation; -1: none */
        struct epoch_cache epochs;
        struct producer_state *producers; /* NULL: never saw an idempotent producer */
        int64_t snapshot_offset;          /* of the newest producer snapshot on disk; -1: none */
        bool snapshot_unsynced;
};

/* --- segment lists --- */
void segment_list_done(struct segment_list *l);
int segment_list_push(struct segment_list *l, struct segment *s) must_check; /* takes the reference over */
/* Index of the last segment whose base offset is <= @offset; 0 when all are larger. */
size_t segment_list_floor(const struct segment_list *l, int64_t offset);

static inline struct segment *log_active(const struct partition_log *l)
{
        return l->segments.items[l->segments.n - 1];
}

/* The segment that holds @offset (or the one before the gap it is in), with a reference; *ret_next: base
 * offset of the one behind it, INT64_MAX when it is the last. */
struct segment *log_segment_for(struct partition_log *l, int64_t offset, int64_t *ret_next);

int log_path(const struct partition_log *l, const char *name, char out[4096]) must_check;
/* What a failed write means for the log. No space (a quota, a file size limit), no memory and no descriptors
 * pass: -ENOSPC, -ENOMEM, -EMFILE. After anything else we do not know what is on the disk: -EIO from now on.
 */
int log_storage_error(struct partition_log *l, int error);

/* partition_log.c: write the epoch cache to its file (no sync), and note that it waits for one. */
int log_write_epochs(struct partition_log *l) must_check;
/* Enter @epoch at @start_offset in cache and file, for data that is about to come; on an error neither has
 * changed. */
int log_enter_epoch(struct partition_log *l, int32_t epoch, int64_t start_offset) must_check;

/* The first half of partition_log_delete(): the directory has its new name, @out, and nothing can be
 * appended. */
int log_rename_deleted(struct partition_log *l, char out[4096]) must_check;
/* Has retention left files to be unlinked? Any thread. */
bool log_has_retired(struct partition_log *l);
/* Will a close leave something that is to be synced? */
bool log_close_writes(const struct partition_log *l);
/* Sync what partition_log_close() wrote, and the log: a clean start believes both. */
int log_sync_closed(struct partition_log *l) must_check;
/* The file system was synced after the log was closed: all of it is on disk. */
void log_mark_synced(struct partition_log *l);
/* fsync the epoch checkpoint if it was replaced, and the directory if files came or went. */
int log_sync_names(struct partition_log *l) must_check;

/* log_append.c: seal the active segment and begin the next one at the end offset. */
int log_roll(struct partition_log *l) must_check;

/* log_producers.c */
/* After this the next note of @b cannot fail. */
int log_producers_reserve(struct partition_log *l, const struct batch_meta *b) must_check;
int log_producers_note(struct partition_log *l, const struct batch_meta *b, int64_t now_ms) must_check;
/* Write the snapshot of the state at @offset. */
int log_producers_snapshot(struct partition_log *l, int64_t offset) must_check;
/* Load the newest good snapshot at or below @offset; *ret_offset: where replaying has to begin (the log's
 * start when there is none). Snapshots above @offset are removed. */
int log_producers_load(struct partition_log *l, int64_t offset, int64_t *ret_offset) must_check;
/* Note all batches of [@from, @to). */
int log_producers_replay(struct partition_log *l, int64_t from, int64_t to) must_check;
/* Forget all, in memory and on disk. */
void log_producers_reset(struct partition_log *l);
/* Remove the snapshots that belong to no segment's base offset, but the newest. */
void log_producers_sweep(struct partition_log *l);

/* log_recovery.c: fill in segments, offsets, epochs and producers from the directory. */
int log_load(struct partition_log *l, int64_t recovery_point, bool clean) must_check;
