/* Producer state on disk: snapshots and replaying the log behind one.
 *
 * A snapshot `<offset, 20 digits>.snapshot` is the state before the record at that offset. One is taken at
 * every roll and at a clean close. They are not synced: one that a power loss damaged fails its CRC, and an
 * older one and a longer replay do. */
#include "log/partition_log_internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/slog.h"
#include "log/checkpoint.h"
#include "log/log_dir.h"
#include "wire/record_batch.h"

#define SNAPSHOT_MAX (256u << 20)

int log_producers_note(struct partition_log *l, const struct batch_meta *b, int64_t now_ms)
{
        struct producer_batch pb = {
                .first_sequence = b->base_sequence,
                .offset_delta = (int32_t)(b->last_offset - b->base_offset),
                .last_offset = b->last_offset,
                .timestamp_ms = now_ms,
        };

        if (b->producer_id < 0 || b->producer_epoch < 0)
                return 0;
        if (!l->producers)
                l->producers = producer_state_new();
        if (!l->producers)
                return -ENOMEM;
        if (b->attributes & RECORD_ATTR_CONTROL)
                return producer_state_marker(l->producers, b->producer_id, b->producer_epoch, now_ms);
        if (b->base_sequence < 0)
                return 0;
        pb.last_sequence = producer_sequence_add(pb.first_sequence, pb.offset_delta);
        return producer_state_update(l->producers, b->producer_id, b->producer_epoch, &pb);
}

int log_producers_reserve(struct partition_log *l, const struct batch_meta *b)
{
        if (b->producer_id < 0)
                return 0;
        if (!l->producers)
                l->producers = producer_state_new();
        return l->producers ? producer_state_reserve(l->producers, b->producer_id) : -ENOMEM;
}

int log_producers_snapshot(struct partition_log *l, int64_t offset)
{
        cleanup_with(producer_state_freep) struct producer_state *none = NULL;
        cleanup_with(buf_donep) struct buf bytes = {0};
        char path[PATH_MAX];
        int r;

        buf_init(&bytes, 0);
        if (!l->producers) {
                none = producer_state_new();
                if (!none)
                        return -ENOMEM;
        }
        r = producer_state_encode(l->producers ? l->producers : none, &bytes);
        if (r == 0)
                r = segment_path(l->dir, offset, LOG_SUFFIX_SNAPSHOT, path);
        if (r == 0)
                r = checkpoint_replace_unsynced(path, bytes.data, bytes.len);
        if (r < 0)
                return r;
        l->snapshot_offset = offset;
        l->snapshot_unsynced = true;
        atomic_store(&l->dir_dirty, true);
        return 0;
}

static void remove_snapshot(const struct partition_log *l, int64_t offset)
{
        char path[PATH_MAX];

        if (segment_path(l->dir, offset, LOG_SUFFIX_SNAPSHOT, path) == 0)
                (void)unlink(path); /* a stray one is removed at the next start */
}

static int load_snapshot(struct partition_log *l, int64_t offset)
{
        cleanup_with(producer_state_freep) struct producer_state *s = NULL;
        cleanup_with(buf_donep) struct buf bytes = {0};
        char path[PATH_MAX];
        int r = segment_path(l->dir, offset, LOG_SUFFIX_SNAPSHOT, path);

        buf_init(&bytes, 0);
        if (r == 0)
                r = fs_read_file(path, SNAPSHOT_MAX, &bytes);
        if (r < 0)
                return r;
        s = producer_state_new();
        if (!s)
                return -ENOMEM;
        r = producer_state_decode(s, bytes.data, bytes.len);
        if (r < 0)
                return r;
        l->producers = producer_state_free(l->producers);
        if (producer_state_count(s) > 0)
                l->producers = TAKE_PTR(s);
        l->snapshot_offset = offset;
        return 0;
}

int log_producers_load(struct partition_log *l, int64_t offset, int64_t *ret_offset)
{
        cleanup_with(log_dir_listing_donep) struct log_dir_listing files = {0};
        int r = log_dir_list(l->dir, &files);

        if (r < 0)
                return r;
        l->producers = producer_state_free(l->producers);
        l->snapshot_offset = -1;
        for (size_t i = files.n_snapshots; i > 0; i--) {
                int64_t at = files.snapshots[i - 1];

                r = at > offset || at < l->start_offset ? -ESTALE : load_snapshot(l, at);
                if (r == 0) {
                        *ret_offset = at;
                        return 0;
                }
                if (r != -ESTALE && r != -EBADMSG && r != -EFBIG)
                        return r;
                if (r != -ESTALE)
                        slog_warning("producer-snapshot-dropped",
                                     "producer snapshot is damaged, using an older one",
                                     SL_STR("dir", l->dir), SL_INT("offset", at));
                remove_snapshot(l, at);
        }
        *ret_offset = l->start_offset;
        return 0;
}

static int replay_segment(struct partition_log *l, struct segment *s, int64_t from, int64_t to,
                          int64_t now_ms)
{
        cleanup_with(freep) uint8_t *window = NULL;
        const size_t window_size = 65536;
        struct segment_walk w;
        struct batch_meta b;
        int r = segment_locate(s, from, &b);

        if (r < 0)
                return r == -ENXIO ? 0 : r;
        window = malloc(window_size);
        if (!window)
                return -ENOMEM;
        r = segment_walk_init(&w, s, b.position, window, window_size);
        if (r < 0)
                return r;
        while ((r = batch_cursor_next(&w.cursor, &b)) > 0 && b.base_offset < to) {
                r = log_producers_note(l, &b, now_ms);
                if (r < 0)
                        break;
        }
        segment_walk_done(&w);
        return MIN(r, 0);
}

int log_producers_replay(struct partition_log *l, int64_t from, int64_t to)
{
        /* When the batches came is not known any more: the time of loading keeps them longest. */
        int64_t now_ms = clock_real_ms();
        int r = 0;

        for (size_t i = segment_list_floor(&l->segments, from); r == 0 && i < l->segments.n; i++)
                if (from < to && l->segments.items[i]->base_offset < to)
                        r = replay_segment(l, l->segments.items[i], from, to, now_ms);
        return r;
}

void log_producers_reset(struct partition_log *l)
{
        cleanup_with(log_dir_listing_donep) struct log_dir_listing files = {0};

        l->producers = producer_state_free(l->producers);
        l->snapshot_offset = -1;
        if (log_dir_list(l->dir, &files) < 0)
                return; /* what is left is below the new start or above the end: dropped when it is loaded */
        for (size_t i = 0; i < files.n_snapshots; i++)
                remove_snapshot(l, files.snapshots[i]);
}

void log_producers_sweep(struct partition_log *l)
{
        cleanup_with(log_dir_listing_donep) struct log_dir_listing files = {0};

        if (log_dir_list(l->dir, &files) < 0)
                return; /* too many snapshots do no harm */
        for (size_t i = 0; i + 1 < files.n_snapshots; i++) {
                int64_t at = files.snapshots[i];
                size_t floor = segment_list_floor(&l->segments, at);

                if (l->segments.items[floor]->base_offset != at)
                        remove_snapshot(l, at);
        }
}
