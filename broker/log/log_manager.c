#include "log/log_manager.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/slog.h"
#include "log/checkpoint.h"
#include "log/log_manager_internal.h"
#include "log/partition_log_internal.h"

#define SYNC_SINGLY_MAX 32 /* more logs than this are synced with their whole file system */

/* --- life --- */

static void dir_done(struct managed_dir *d)
{
        size_t cursor = 0;
        void *saved;

        if (d->saved)
                while (map_next(d->saved, &cursor, NULL, NULL, &saved))
                        free(saved);
        d->saved = map_free(d->saved);
        closep(&d->lock_fd); /* releases the flock */
        free(d->path);
}

struct log_manager *log_manager_free(struct log_manager *m)
{
        size_t cursor = 0;
        void *l;

        if (!m)
                return NULL;
        if (m->logs)
                while (map_next(m->logs, &cursor, NULL, NULL, &l))
                        managed_log_free(l);
        m->logs = map_free(m->logs);
        manager_forget_doomed(m);
        for (size_t i = 0; i < m->n_dirs; i++)
                dir_done(&m->dirs[i]);
        free(m->dirs);
        free(m->cluster_id);
        (void)pthread_mutex_destroy(&m->lock);
        free(m);
        return NULL;
}

static int add_dir(struct log_manager *m, char *path)
{
        struct managed_dir *grown = realloc(m->dirs, (m->n_dirs + 1) * sizeof(*grown)), *d;

        if (!grown)
                return -ENOMEM;
        m->dirs = grown;
        d = &m->dirs[m->n_dirs];
        *d = (struct managed_dir){.lock_fd = -1, .path = strdup(path)};
        if (!d->path)
                return -ENOMEM;
        m->n_dirs++;
        return 0;
}

/* log.dirs: paths separated by commas, blanks around them ignored. */
static int add_dirs(struct log_manager *m, const char *log_dirs, char **ret_error)
{
        cleanup_with(freep) char *copy = strdup(log_dirs);
        char *rest = copy;
        int r = copy ? 0 : -ENOMEM;

        for (char *path; r == 0 && (path = strsep(&rest, ","));) {
                size_t n;

                path += strspn(path, " \t");
                n = strlen(path);
                while (n > 1 && strchr(" \t/", path[n - 1]))
                        path[--n] = '\0';
                if (n > 0)
                        r = add_dir(m, path);
        }
        if (r == 0 && m->n_dirs == 0)
                r = manager_error(ret_error, -EINVAL, "log.dirs names no directory");
        return r;
}

static int prepare_dir(struct log_manager *m, struct managed_dir *d, char **ret_error)
{
        int r = fs_mkdir_p(d->path, 0755);

        if (r < 0)
                return manager_error(ret_error, r, "%s: %s", d->path, strerror(-r));
        r = manager_lock_dir(d, ret_error);
        return r < 0 ? r : manager_check_meta(m, d, ret_error);
}

static int prepare_dirs(struct log_manager *m, char **ret_error)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < m->n_dirs; i++)
                r = prepare_dir(m, &m->dirs[i], ret_error);
        /* All of them fit together: only now is anything written. */
        for (size_t i = 0; r == 0 && i < m->n_dirs; i++) {
                r = manager_take_marker(&m->dirs[i]);
                if (r == 0 && m->dirs[i].meta_stale)
                        r = manager_write_meta(m, &m->dirs[i]);
                if (r < 0)
                        return manager_error(ret_error, r, "%s: %s", m->dirs[i].path, strerror(-r));
        }
        return r;
}

static struct log_manager *manager_new(const struct log_manager_options *o, const char *cluster_id)
{
        struct log_manager *m = calloc(1, sizeof(*m));

        if (!m)
                return NULL;
        (void)pthread_mutex_init(&m->lock, NULL); /* cannot fail with default attributes */
        m->defaults = o->defaults;
        m->broker_id = o->broker_id;
        m->cluster_id = strdup(cluster_id ? cluster_id : "");
        m->logs = map_new();
        return m->cluster_id && m->logs ? m : log_manager_free(m);
}

int log_manager_open(const struct log_manager_options *o, const char *cluster_id, struct log_manager **ret,
                     char **ret_error)
{
        cleanup_with(log_manager_freep) struct log_manager *m = manager_new(o, cluster_id);
        char *error = NULL;
        int r;

        if (!m)
                return -ENOMEM;
        r = add_dirs(m, o->log_dirs, &error);
        if (r == 0)
                r = prepare_dirs(m, &error);
        if (r == 0)
                r = manager_load(m, o->recovery_threads, &error);
        if (r < 0) {
                if (!error)
                        (void)manager_error(&error, r, "%s: %s", o->log_dirs, strerror(-r));
                *ret_error = error;
                return r;
        }
        *ret = TAKE_PTR(m);
        return 0;
}

const char *log_manager_cluster_id(const struct log_manager *m)
{
        return m->cluster_id;
}

int log_manager_set_cluster_id(struct log_manager *m, const char *cluster_id)
{
        char *copy;
        int r = 0;

        if (strcmp(m->cluster_id, cluster_id) == 0)
                return 0;
        if (m->cluster_id[0] != '\0')
                return -EEXIST;
        copy = strdup(cluster_id);
        if (!copy)
                return -ENOMEM;
        free(m->cluster_id);
        m->cluster_id = copy;
        for (size_t i = 0; r == 0 && i < m->n_dirs; i++)
                r = manager_write_meta(m, &m->dirs[i]);
        return r;
}

/* --- logs --- */

static struct managed_log *find(const struct log_manager *m, const char *topic, int32_t partition)
{
        char name[512];

        if (snprintf(name, sizeof(name), "%s-%d", topic, partition) >= (int)sizeof(name))
                return NULL;
        return map_get_str(m->logs, name);
}

static struct managed_dir *emptiest(struct log_manager *m)
{
        struct managed_dir *best = &m->dirs[0];

        for (size_t i = 1; i < m->n_dirs; i++)
                if (m->dirs[i].n_partitions < best->n_partitions)
                        best = &m->dirs[i];
        return best;
}

static int create(struct log_manager *m, const char *topic, int32_t partition, struct partition_log **ret)
{
        cleanup_with(managed_log_freep) struct managed_log *l = NULL;
        char path[PATH_MAX];
        int r;

        if (!manager_topic_valid(topic) || partition < 0)
                return -EINVAL;
        l = managed_log_new(emptiest(m), topic, partition);
        if (!l)
                return -ENOMEM;
        r = manager_path(l->dir, l->name, NULL, path);
        if (r == 0)
                r = partition_log_open(path, &m->defaults, 0, false, &l->log);
        if (r < 0)
                return r;
        pthread_mutex_lock(&m->lock);
        r = map_put_str(m->logs, l->name, l);
        pthread_mutex_unlock(&m->lock);
        if (r < 0)
                return r;
        l->dir->n_partitions++;
        *ret = l->log;
        l = NULL;
        return 0;
}

int log_manager_get(struct log_manager *m, const char *topic, int32_t partition, bool create_it,
                    struct partition_log **ret)
{
        struct managed_log *l = find(m, topic, partition);

        if (!l)
                return create_it ? create(m, topic, partition, ret) : -ENOENT;
        *ret = l->log;
        return 0;
}

int log_manager_delete(struct log_manager *m, const char *topic, int32_t partition)
{
        cleanup_with(managed_log_freep) struct managed_log *l = find(m, topic, partition);
        char doomed[PATH_MAX];
        int r;

        if (!l)
                return -ENOENT;
        pthread_mutex_lock(&m->lock);
        (void)map_remove_str(m->logs, l->name); /* it is @l */
        pthread_mutex_unlock(&m->lock);
        l->dir->n_partitions--;
        r = log_rename_deleted(l->log, doomed);
        return r < 0 ? r : manager_doom_dir(m, doomed);
}

void log_manager_each(struct log_manager *m,
                      void (*fn)(const char *topic, int32_t partition, struct partition_log *l, void *ud),
                      void *userdata)
{
        size_t cursor = 0;
        void *value;

        while (map_next(m->logs, &cursor, NULL, NULL, &value)) {
                struct managed_log *l = value;

                fn(l->topic, l->partition, l->log, userdata);
        }
}

int log_manager_topic_id(const struct log_manager *m, const char *topic, int32_t partition, struct uuid *ret)
{
        const struct managed_log *l = find(m, topic, partition);

        if (!l || uuid_is_zero(&l->topic_id))
                return -ENOENT;
        *ret = l->topic_id;
        return 0;
}

int log_manager_set_topic_id(struct log_manager *m, const char *topic, int32_t partition,
                             const struct uuid *id)
{
        struct managed_log *l = find(m, topic, partition);
        int r;

        if (!l)
                return -ENOENT;
        if (!uuid_is_zero(&l->topic_id))
                return uuid_equal(&l->topic_id, id) ? 0 : -EEXIST;
        r = manager_write_topic_id(l->dir, l->name, id);
        if (r == 0)
                l->topic_id = *id;
        return r;
}

/* --- checkpoints --- */

int64_t log_manager_checkpointed_hw(const struct log_manager *m, const char *topic, int32_t partition)
{
        struct log_manager *locked = (struct log_manager *)m; /* only its mutex changes */
        const struct managed_log *l;
        int64_t hw;

        pthread_mutex_lock(&locked->lock);
        l = find(m, topic, partition);
        hw = l ? l->hw : 0;
        pthread_mutex_unlock(&locked->lock);
        return hw;
}

enum checkpoint_kind { CHECKPOINT_HW, CHECKPOINT_RECOVERY };

static int collect_offsets(struct log_manager *m, const struct managed_dir *d, enum checkpoint_kind kind,
                           struct buf *out)
{
        size_t cursor = 0;
        void *value;
        int r;

        pthread_mutex_lock(&m->lock);
        r = checkpoint_begin(out, d->n_partitions);
        while (r == 0 && map_next(m->logs, &cursor, NULL, NULL, &value)) {
                struct managed_log *l = value;
                int64_t offset = kind == CHECKPOINT_HW ? l->hw : partition_log_recovery_point(l->log);

                if (l->dir == d)
                        r = checkpoint_add_offset(out, l->topic, l->partition, offset);
        }
        pthread_mutex_unlock(&m->lock);
        return r;
}

static int write_checkpoint(struct log_manager *m, const struct managed_dir *d, enum checkpoint_kind kind)
{
        cleanup_with(buf_donep) struct buf text = {0};
        char path[PATH_MAX];
        int r = manager_path(d, kind == CHECKPOINT_HW ? HW_CHECKPOINT : RECOVERY_CHECKPOINT, NULL, path);

        buf_init(&text, 0);
        if (r == 0)
                r = collect_offsets(m, d, kind, &text);
        return r < 0 ? r : fs_write_atomic(path, text.data, text.len);
}

int log_manager_write_hw_checkpoint(struct log_manager *m, const struct log_hw *hws, size_t n)
{
        int r = 0;

        pthread_mutex_lock(&m->lock);
        for (size_t i = 0; i < n; i++) {
                struct managed_log *l = find(m, hws[i].topic, hws[i].partition);

                if (l)
                        l->hw = hws[i].hw;
        }
        pthread_mutex_unlock(&m->lock);
        for (size_t i = 0; r == 0 && i < m->n_dirs; i++)
                r = write_checkpoint(m, &m->dirs[i], CHECKPOINT_HW);
        return r;
}

struct held_logs {
        struct partition_log **items; /* references */
        size_t n;
};

static void held_logs_donep(struct held_logs *h)
{
        for (size_t i = 0; i < h->n; i++)
                partition_log_unref(h->items[i]);
        free(h->items);
}

/* References to the logs that have something to be done at leisure. */
static int hold_rolled(struct log_manager *m, struct held_logs *ret)
{
        size_t cursor = 0;
        void *value;

        pthread_mutex_lock(&m->lock);
        ret->items = calloc(map_count(m->logs) + 1, sizeof(struct partition_log *));
        while (ret->items && map_next(m->logs, &cursor, NULL, NULL, &value)) {
                struct managed_log *l = value;

                if (partition_log_flush_wanted(l->log) || log_has_retired(l->log))
                        ret->items[ret->n++] = partition_log_ref(l->log);
        }
        pthread_mutex_unlock(&m->lock);
        return ret->items ? 0 : -ENOMEM;
}

/* Sealed segments are flushed (Kafka does so at each roll), so that the next start after a crash need not
 * read them; and the files of deleted ones unlinked. */
static int flush_rolled(struct log_manager *m)
{
        cleanup_with(held_logs_donep) struct held_logs rolled = {0};
        int r = hold_rolled(m, &rolled);

        for (size_t i = 0; r == 0 && i < rolled.n; i++) {
                struct partition_log *l = rolled.items[i];
                int flushed = partition_log_flush_wanted(l) ? partition_log_flush(l) : 0;

                if (flushed < 0) /* its recovery point stays */
                        slog_warning("log-flush-failed", "a sealed segment could not be flushed; tried again",
                                     SL_STR("dir", l->dir), SL_ERR(flushed));
                (void)partition_log_reap(l); /* a number */
        }
        return r;
}

int log_manager_write_recovery_points(struct log_manager *m)
{
        int r = flush_rolled(m);

        manager_remove_doomed(m);
        for (size_t i = 0; r == 0 && i < m->n_dirs; i++)
                r = write_checkpoint(m, &m->dirs[i], CHECKPOINT_RECOVERY);
        return r;
}

/* --- clean shutdown --- */

static size_t count_unsynced(struct log_manager *m, const struct managed_dir *d)
{
        size_t cursor = 0, n = 0;
        void *value;

        while (map_next(m->logs, &cursor, NULL, NULL, &value)) {
                const struct managed_log *l = value;

                n += l->dir == d && log_close_writes(l->log);
        }
        return n;
}

/* Close every log of @d; with @sync one by one, else the caller syncs the file system. Goes on after an
 * error, returns the first. */
static int close_logs(struct log_manager *m, const struct managed_dir *d, bool sync)
{
        size_t cursor = 0;
        void *value;
        int first = 0;

        while (map_next(m->logs, &cursor, NULL, NULL, &value)) {
                struct managed_log *l = value;
                int r;

                if (l->dir != d)
                        continue;
                r = partition_log_close(l->log);
                if (r == 0 && sync)
                        r = log_sync_closed(l->log);
                if (r < 0)
                        slog_error("log-close-failed",
                                   "no clean shutdown of this directory: it is recovered at the next start",
                                   SL_STR("dir", d->path), SL_STR("log", l->name), SL_ERR(r));
                if (first == 0)
                        first = r;
        }
        return first;
}

static void mark_synced(struct log_manager *m, const struct managed_dir *d)
{
        size_t cursor = 0;
        void *value;

        while (map_next(m->logs, &cursor, NULL, NULL, &value)) {
                struct managed_log *l = value;

                if (l->dir == d)
                        log_mark_synced(l->log);
        }
}

/* Everything first, then the marker that says so. */
static int close_dir(struct log_manager *m, struct managed_dir *d)
{
        bool singly = count_unsynced(m, d) <= SYNC_SINGLY_MAX;
        char path[PATH_MAX];
        int r = close_logs(m, d, singly);

        if (r < 0)
                return r;
        if (!singly && syncfs(d->lock_fd) < 0)
                return -errno;
        mark_synced(m, d);
        r = write_checkpoint(m, d, CHECKPOINT_RECOVERY);
        if (r == 0)
                r = write_checkpoint(m, d, CHECKPOINT_HW);
        if (r == 0)
                r = manager_path(d, CLEAN_MARKER, NULL, path);
        return r < 0 ? r : fs_write_atomic(path, "", 0);
}

int log_manager_close_clean(struct log_manager *m)
{
        int first = 0;

        for (size_t i = 0; i < m->n_dirs; i++) {
                int r = close_dir(m, &m->dirs[i]);

                if (first == 0)
                        first = r;
        }
        log_manager_free(m);
        return first;
}
