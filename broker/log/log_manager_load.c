/* Start: find the partitions in all log directories and open them, several at once. */
#include "log/log_manager_internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/slog.h"
#include "log/log_dir.h"

#define TOPIC_MAX   249 /* Kafka's: "-<partition>" has to fit into a file name behind it */
#define THREADS_MAX 64

struct managed_log *managed_log_new(struct managed_dir *d, const char *topic, int32_t partition)
{
        cleanup_with(managed_log_freep) struct managed_log *l = calloc(1, sizeof(*l));

        if (!l)
                return NULL;
        l->dir = d;
        l->partition = partition;
        l->topic = strdup(topic);
        if (!l->topic)
                return NULL;
        if (asprintf(&l->name, "%s-%" PRId32, topic, partition) < 0) {
                l->name = NULL; /* undefined after a failure */
                return NULL;
        }
        return TAKE_PTR(l);
}

struct managed_log *managed_log_free(struct managed_log *l)
{
        if (!l)
                return NULL;
        l->log = partition_log_unref(l->log);
        free(l->topic);
        free(l->name);
        free(l);
        return NULL;
}

bool manager_topic_valid(const char *topic)
{
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        size_t n = strlen(topic);

        if (n == 0 || n > TOPIC_MAX || strspn(topic, allowed) != n)
                return false;
        return strcmp(topic, ".") != 0 && strcmp(topic, "..") != 0;
}

bool manager_split_name(const char *name, char topic[256], int32_t *ret_partition)
{
        const char *dash = strrchr(name, '-');

        if (!dash || dash == name || dash - name > TOPIC_MAX || dash[1] == '+')
                return false;
        if (parse_int32(dash + 1, 0, INT32_MAX, ret_partition) < 0 || (dash[1] == '0' && dash[2] != '\0'))
                return false;
        memcpy(topic, name, (size_t)(dash - name));
        topic[dash - name] = '\0';
        return manager_topic_valid(topic);
}

/* --- finding --- */

static bool ends_with(const char *s, const char *suffix)
{
        size_t n = strlen(s), k = strlen(suffix);

        return n >= k && strcmp(s + n - k, suffix) == 0;
}

static int add_found(struct log_manager *m, struct managed_dir *d, const char *topic, int32_t partition,
                     char **ret_error)
{
        cleanup_with(managed_log_freep) struct managed_log *l = managed_log_new(d, topic, partition);
        const struct managed_log *other;
        int r;

        if (!l)
                return -ENOMEM;
        other = map_get_str(m->logs, l->name);
        if (other)
                return manager_error(ret_error, -EEXIST, "%s is in %s and in %s: keep one of them", l->name,
                                     other->dir->path, d->path);
        r = map_put_str(m->logs, l->name, l);
        if (r < 0)
                return r;
        l = NULL;
        d->n_partitions++;
        return 0;
}

static int on_name(struct log_manager *m, struct managed_dir *d, const char *name, char **ret_error)
{
        char path[PATH_MAX], topic[256];
        struct stat st;
        int32_t partition;
        int r;

        if (name[0] == '.')
                return 0;
        r = manager_path(d, name, NULL, path);
        if (r < 0)
                return r;
        if (stat(path, &st) < 0)
                return manager_error(ret_error, -errno, "%s: %s", path, strerror(errno));
        if (!S_ISDIR(st.st_mode))
                return 0;
        if (ends_with(name, "-delete")) { /* a deletion that a crash interrupted */
                r = log_dir_remove(path);
                return r < 0 ? manager_error(ret_error, r, "%s: %s", path, strerror(-r)) : 0;
        }
        if (manager_split_name(name, topic, &partition))
                return add_found(m, d, topic, partition, ret_error);
        slog_notice("log-dir-ignored", "a directory among the logs is no partition's", SL_STR("dir", path));
        return 0;
}

static void closedirp(DIR **d)
{
        if (*d)
                (void)closedir(*d);
}

static int find_logs(struct log_manager *m, struct managed_dir *d, char **ret_error)
{
        cleanup_with(closedirp) DIR *dir = opendir(d->path);
        struct dirent *e;

        if (!dir)
                return manager_error(ret_error, -errno, "%s: %s", d->path, strerror(errno));
        for (errno = 0; (e = readdir(dir)); errno = 0) {
                int r = on_name(m, d, e->d_name, ret_error);

                if (r < 0)
                        return r;
        }
        return -errno;
}

/* --- opening --- */

struct loading {
        const struct log_manager *m;
        struct managed_log **logs;
        size_t n;
        atomic_size_t next;
        atomic_int error; /* the first one */
        struct managed_log *_Atomic failed;
};

static int load_one(const struct log_manager *m, struct managed_log *l)
{
        const struct saved_offsets *saved = map_get_str(l->dir->saved, l->name);
        char path[PATH_MAX];
        int r = manager_path(l->dir, l->name, NULL, path);

        if (r == 0)
                r = partition_log_open(path, &m->defaults, saved ? saved->recovery_point : 0, l->dir->clean,
                                       &l->log);
        if (r < 0)
                return r;
        l->hw = saved ? MIN(saved->hw, partition_log_end_offset(l->log)) : 0; /* KAFKA-539 */
        r = manager_read_topic_id(l->dir, l->name, &l->topic_id);
        if (r == -EBADMSG)
                slog_warning("partition-metadata-dropped",
                             "partition.metadata is damaged: the controller tells the id again",
                             SL_STR("dir", path));
        return r == -ENOENT || r == -EBADMSG ? 0 : r;
}

static void *load_thread(void *userdata)
{
        struct loading *ld = userdata;
        size_t i;

        while ((i = atomic_fetch_add(&ld->next, 1)) < ld->n && atomic_load(&ld->error) == 0) {
                int none = 0, r = load_one(ld->m, ld->logs[i]);

                if (r < 0 && atomic_compare_exchange_strong(&ld->error, &none, r))
                        atomic_store(&ld->failed, ld->logs[i]);
        }
        return NULL;
}

/* This thread loads too, so that nothing depends on a thread that could not be started. */
static void load_with_threads(struct loading *ld, int threads)
{
        pthread_t ids[THREADS_MAX];
        int n = 0;

        while (n < MIN(threads, THREADS_MAX) - 1 && pthread_create(&ids[n], NULL, load_thread, ld) == 0)
                n++;
        (void)load_thread(ld);
        for (int i = 0; i < n; i++)
                (void)pthread_join(ids[i], NULL);
}

static int load_all(struct log_manager *m, int threads, char **ret_error)
{
        cleanup_with(freep) struct managed_log **logs = calloc(map_count(m->logs) + 1, sizeof(*logs));
        struct loading ld = {.m = m, .logs = logs};
        size_t cursor = 0;
        void *l;
        int r;

        if (!logs)
                return -ENOMEM;
        while (map_next(m->logs, &cursor, NULL, NULL, &l))
                logs[ld.n++] = l;
        load_with_threads(&ld, threads);
        r = atomic_load(&ld.error);
        if (r == 0)
                return 0;
        return manager_error(ret_error, r, "%s/%s: %s", ld.failed->dir->path, ld.failed->name, strerror(-r));
}

int manager_load(struct log_manager *m, int threads, char **ret_error)
{
        int64_t begin = clock_mono_ms();
        bool clean = true;
        int r = 0;

        for (size_t i = 0; r == 0 && i < m->n_dirs; i++) {
                r = manager_read_checkpoints(&m->dirs[i], ret_error);
                if (r == 0)
                        r = find_logs(m, &m->dirs[i], ret_error);
                clean = clean && m->dirs[i].clean;
        }
        if (r == 0)
                r = load_all(m, threads, ret_error);
        if (r == 0)
                slog_info("logs-loaded", "all logs are loaded", SL_INT("logs", map_count(m->logs)),
                          SL_STR("clean", clean ? "yes" : "no"), SL_INT("ms", clock_mono_ms() - begin));
        return r;
}
