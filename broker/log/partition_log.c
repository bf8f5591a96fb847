/* The log's life: opening, closing, deleting, flushing, and what is asked of it without touching segments. */
#include "log/partition_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/slog.h"
#include "base/uuid.h"
#include "log/checkpoint.h"
#include "log/log_dir.h"
#include "log/partition_log_internal.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

void log_config_default(struct log_config *ret)
{
        *ret = (struct log_config){
                .segment_bytes = INT64_C(1) << 30,
                .segment_ms = 7 * DAY_MS,
                .index_interval_bytes = 4096,
                .index_max_bytes = 10 << 20,
                .retention_ms = 7 * DAY_MS,
                .retention_bytes = -1,
                .max_message_bytes = 1048588,
                .producer_id_expiration_ms = DAY_MS,
        };
}

/* --- segment lists --- */

void segment_list_done(struct segment_list *l)
{
        for (size_t i = 0; i < l->n; i++)
                l->items[i] = segment_unref(l->items[i]);
        free(l->items);
        *l = (struct segment_list){0};
}

int segment_list_push(struct segment_list *l, struct segment *s)
{
        if (l->n == l->cap) {
                size_t cap = l->cap == 0 ? 2 : l->cap * 2;
                struct segment **grown = realloc(l->items, cap * sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                l->items = grown;
                l->cap = cap;
        }
        l->items[l->n++] = s;
        return 0;
}

size_t segment_list_floor(const struct segment_list *l, int64_t offset)
{
        size_t low = 0, high = l->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (l->items[middle]->base_offset <= offset)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low > 0 ? low - 1 : 0;
}

struct segment *log_segment_for(struct partition_log *l, int64_t offset, int64_t *ret_next)
{
        struct segment *s;
        size_t i;

        pthread_mutex_lock(&l->lock);
        i = segment_list_floor(&l->segments, offset);
        s = segment_ref(l->segments.items[i]);
        *ret_next = i + 1 < l->segments.n ? l->segments.items[i + 1]->base_offset : INT64_MAX;
        pthread_mutex_unlock(&l->lock);
        return s;
}

/* --- errors and names --- */

int log_path(const struct partition_log *l, const char *name, char out[4096])
{
        int n = snprintf(out, PATH_MAX, "%s/%s", l->dir, name);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int log_storage_error(struct partition_log *l, int error)
{
        switch (error) {
        case 0:
        case -ENOMEM:
        case -ENOSPC:
                return error;
        case -EDQUOT:
        case -EFBIG:
                return -ENOSPC;
        case -EMFILE:
        case -ENFILE:
                return -EMFILE;
        }
        if (!atomic_exchange(&l->failed, true))
                slog_error("log-failed", "storage error: the log refuses appends until it is opened again",
                           SL_STR("dir", l->dir), SL_ERR(error));
        return -EIO;
}

/* --- epochs on disk --- */

int log_write_epochs(struct partition_log *l)
{
        char path[PATH_MAX];
        int r = log_path(l, EPOCH_CHECKPOINT, path);

        if (r == 0)
                r = checkpoint_write_epochs(path, &l->epochs);
        l->epochs_unwritten = r < 0;
        if (r == 0) {
                l->epoch_unwritten = false;
                atomic_store(&l->epochs_dirty, true);
        }
        return r;
}

int log_enter_epoch(struct partition_log *l, int32_t epoch, int64_t start_offset)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache before = {0};
        bool unwritten = l->epochs_unwritten;
        int r;

        if (epoch < 0)
                return 0;
        if (!epoch_cache_needs(&l->epochs, epoch, start_offset))
                return l->epoch_unwritten ? log_write_epochs(l) : 0;
        r = epoch_cache_copy(&l->epochs, &before);
        if (r == 0)
                r = epoch_cache_assign(&l->epochs, epoch, start_offset);
        if (r <= 0)
                return r;
        r = log_write_epochs(l);
        if (r < 0) {
                struct epoch_cache undone = l->epochs;

                l->epochs = before;
                before = undone;
                l->epochs_unwritten = unwritten; /* the file was not touched */
        }
        return r;
}

static int sync_file(const char *path)
{
        cleanup_with(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return fsync(fd) < 0 ? -errno : 0;
}

int log_sync_names(struct partition_log *l)
{
        bool epochs = atomic_exchange(&l->epochs_dirty, false);
        bool names = atomic_exchange(&l->dir_dirty, false) || epochs;
        char path[PATH_MAX];
        int r = 0;

        if (epochs)
                r = log_path(l, EPOCH_CHECKPOINT, path);
        if (epochs && r == 0)
                r = sync_file(path);
        if (names && r == 0)
                r = fs_sync_dir(l->dir);
        if (r < 0) {
                atomic_store(&l->epochs_dirty, epochs);
                atomic_store(&l->dir_dirty, names);
        }
        return r;
}

/* --- life --- */

static int log_new(const char *dir, const struct log_config *config, struct partition_log **ret)
{
        struct partition_log *l = calloc(1, sizeof(*l));
        pthread_rwlockattr_t attr;

        if (!l)
                return -ENOMEM;
        l->dir = strdup(dir);
        if (!l->dir) {
                free(l);
                return -ENOMEM;
        }
        atomic_init(&l->refs, 1);
        l->config = *config;
        l->checkpointed_bound = l->snapshot_offset = -1;
        (void)pthread_mutex_init(&l->lock, NULL); /* these cannot fail on Linux */
        (void)pthread_rwlockattr_init(&attr);
        /* A stream of readers must not keep a truncation waiting. Readers do not nest. */
        (void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
        (void)pthread_rwlock_init(&l->content, &attr);
        (void)pthread_rwlockattr_destroy(&attr);
        *ret = l;
        return 0;
}

struct partition_log *partition_log_ref(struct partition_log *l)
{
        atomic_fetch_add(&l->refs, 1);
        return l;
}

struct partition_log *partition_log_unref(struct partition_log *l)
{
        if (!l || atomic_fetch_sub(&l->refs, 1) > 1)
                return NULL;
        segment_list_done(&l->segments);
        segment_list_done(&l->retired);
        epoch_cache_done(&l->epochs);
        l->producers = producer_state_free(l->producers);
        (void)pthread_rwlock_destroy(&l->content);
        (void)pthread_mutex_destroy(&l->lock);
        free(l->dir);
        free(l);
        return NULL;
}
DEFINE_FREEP(struct partition_log, partition_log_unref)

int partition_log_open(const char *dir, const struct log_config *config, int64_t recovery_point, bool clean,
                       struct partition_log **ret)
{
        cleanup_with(partition_log_unrefp) struct partition_log *l = NULL;
        int r;

        r = log_new(dir, config, &l);
        if (r < 0)
                return r;
        if (mkdir(dir, 0755) == 0)
                atomic_store(&l->dir_dirty, true);
        else if (errno != EEXIST)
                return -errno;
        r = log_load(l, recovery_point, clean);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

int partition_log_close(struct partition_log *l)
{
        int64_t end = atomic_load(&l->end_offset);
        int r;

        (void)partition_log_reap(l); /* what stays is removed at the next start */
        if (atomic_load(&l->failed))
                return -EIO;
        r = segment_write_indexes(log_active(l));
        if (r == 0 && l->epochs_unwritten)
                r = log_write_epochs(l);
        /* The next start loads it instead of reading the log. */
        if (r == 0 && end > atomic_load(&l->start_offset) && l->snapshot_offset != end)
                r = log_producers_snapshot(l, end);
        return r;
}

struct partition_log *partition_log_free(struct partition_log *l)
{
        if (l && partition_log_close(l) < 0)
                slog_notice("log-not-closed", "the log is scanned at the next start", SL_STR("dir", l->dir));
        return partition_log_unref(l);
}

/* "<dir>.<id>-delete"; the name is shortened when a component would become too long, as Kafka does. */
static int deleted_name(const char *dir, char out[4096])
{
        const char *slash = strrchr(dir, '/'), *name = slash ? slash + 1 : dir;
        const size_t tail = 1 + 32 + strlen("-delete");
        struct uuid id;
        char hex[33];
        int r = uuid_random(&id), n;

        if (r < 0)
                return r;
        for (size_t i = 0; i < sizeof(id.bytes); i++)
                (void)snprintf(hex + 2 * i, 3, "%02x", id.bytes[i]); /* two digits */
        n = snprintf(out, PATH_MAX, "%.*s%.*s.%s-delete", (int)(name - dir), dir, (int)(NAME_MAX - tail),
                     name, hex);
        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int log_rename_deleted(struct partition_log *l, char out[4096])
{
        int r = deleted_name(l->dir, out);

        atomic_store(&l->failed, true); /* whoever still holds a reference appends no more */
        if (r == 0 && rename(l->dir, out) < 0)
                r = -errno;
        return r;
}

int partition_log_delete(struct partition_log *l)
{
        char doomed[PATH_MAX];
        int r = log_rename_deleted(l, doomed);

        if (r == 0)
                r = log_dir_remove(doomed);
        partition_log_unref(l);
        return r;
}

/* --- what is known without looking --- */

int64_t partition_log_start_offset(const struct partition_log *l)
{
        return atomic_load(&l->start_offset);
}

int64_t partition_log_end_offset(const struct partition_log *l)
{
        return atomic_load(&l->end_offset);
}

int64_t partition_log_recovery_point(const struct partition_log *l)
{
        return atomic_load(&l->recovery_point);
}

bool partition_log_flush_wanted(const struct partition_log *l)
{
        return atomic_load(&l->rolled);
}

int64_t partition_log_size_bytes(const struct partition_log *l)
{
        struct partition_log *m = (struct partition_log *)l; /* only its mutex changes */
        int64_t sum = 0;

        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < m->segments.n; i++)
                sum += m->segments.items[i]->size;
        pthread_mutex_unlock(&m->lock);
        return sum;
}

void partition_log_set_config(struct partition_log *l, const struct log_config *c)
{
        l->config = *c;
}

int partition_log_assign_epoch(struct partition_log *l, int32_t epoch, int64_t start_offset)
{
        int r;

        if (atomic_load(&l->failed))
                return -EIO;
        if (epoch < 0 || start_offset < 0)
                return -EINVAL;
        if (epoch < epoch_cache_latest(&l->epochs))
                return -ESTALE;
        r = epoch_cache_assign(&l->epochs, epoch, start_offset);
        /* It goes into the file with the first data: until then no start would take it from there. */
        l->epoch_unwritten |= r > 0;
        return MIN(r, 0);
}

int32_t partition_log_latest_epoch(const struct partition_log *l)
{
        return epoch_cache_latest(&l->epochs);
}

void partition_log_end_offset_for_epoch(const struct partition_log *l, int32_t epoch, int32_t *ret_epoch,
                                        int64_t *ret_end_offset)
{
        epoch_cache_end_offset(&l->epochs, epoch, atomic_load(&l->end_offset), ret_epoch, ret_end_offset);
}

int32_t partition_log_epoch_for_offset(const struct partition_log *l, int64_t offset)
{
        return offset > atomic_load(&l->start_offset) ? epoch_cache_at(&l->epochs, offset - 1) : -1;
}

/* --- flush --- */

struct flush {
        struct segment_list segments;
        uint64_t generation;
        int64_t end_offset;
        bool rolled;
};

static void flush_donep(struct flush *f)
{
        segment_list_done(&f->segments);
}

/* References to the segments that have bytes behind the recovery point. */
static int flush_begin(struct partition_log *l, struct flush *f)
{
        int r = 0;

        pthread_mutex_lock(&l->lock);
        f->generation = l->generation;
        f->end_offset = atomic_load(&l->end_offset);
        f->rolled = atomic_exchange(&l->rolled, false);
        for (size_t i = segment_list_floor(&l->segments, atomic_load(&l->recovery_point)); i < l->segments.n;
             i++) {
                r = segment_list_push(&f->segments, l->segments.items[i]);
                if (r < 0)
                        break;
                (void)segment_ref(l->segments.items[i]); /* the list holds it */
        }
        pthread_mutex_unlock(&l->lock);
        return r;
}

static bool is_listed(struct partition_log *l, const struct segment *s)
{
        bool found = false;

        pthread_mutex_lock(&l->lock);
        for (size_t i = 0; i < l->segments.n; i++)
                found = found || l->segments.items[i] == s;
        pthread_mutex_unlock(&l->lock);
        return found;
}

static int flush_sync(struct partition_log *l, const struct flush *f)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < f->segments.n; i++) {
                struct segment *s = f->segments.items[i];
                bool sealed = i + 1 < f->segments.n;

                r = sealed ? 0 : segment_write_indexes(s);
                if (r == 0)
                        r = segment_sync(s, sealed);
                if (r == -ENOENT && !is_listed(l, s))
                        r = 0; /* retention or a truncation took it meanwhile */
        }
        return r < 0 ? r : log_sync_names(l);
}

int partition_log_flush(struct partition_log *l)
{
        cleanup_with(flush_donep) struct flush f = {0};
        int r;

        if (atomic_load(&l->failed))
                return -EIO;
        if (atomic_load(&l->recovery_point) == atomic_load(&l->end_offset))
                return 0;
        r = flush_begin(l, &f);
        if (r == 0)
                r = flush_sync(l, &f);
        pthread_mutex_lock(&l->lock);
        /* A truncation meanwhile took bytes away and others may have come in their place, unsynced. */
        if (r == 0 && f.generation == l->generation && f.end_offset > atomic_load(&l->recovery_point))
                atomic_store(&l->recovery_point, f.end_offset);
        pthread_mutex_unlock(&l->lock);
        if (r < 0 && f.rolled)
                atomic_store(&l->rolled, true);
        return log_storage_error(l, r);
}

bool log_close_writes(const struct partition_log *l)
{
        int64_t end = atomic_load(&l->end_offset);

        return atomic_load(&l->recovery_point) != end ||
               (end > atomic_load(&l->start_offset) && l->snapshot_offset != end);
}

int log_sync_closed(struct partition_log *l)
{
        char path[PATH_MAX];
        int r = partition_log_flush(l);

        if (r < 0 || !l->snapshot_unsynced)
                return r;
        r = segment_path(l->dir, l->snapshot_offset, LOG_SUFFIX_SNAPSHOT, path);
        if (r == 0)
                r = sync_file(path);
        if (r == 0)
                r = segment_sync(log_active(l), true);
        return r < 0 ? r : log_sync_names(l);
}

void log_mark_synced(struct partition_log *l)
{
        atomic_store(&l->recovery_point, atomic_load(&l->end_offset));
}
