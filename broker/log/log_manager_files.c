/* The small files of a log directory: .lock, meta.properties, the clean-shutdown marker, checkpoints and
 * partition.metadata. */
#include "log/log_manager_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/fs.h"
#include "base/parse.h"
#include "base/slog.h"
#include "log/checkpoint.h"
#include "log/log_dir.h"

#define SMALL_FILE_MAX 65536

int manager_error(char **ret_error, int error, const char *fmt, ...)
{
        va_list ap;

        if (!ret_error)
                return error;
        va_start(ap, fmt);
        if (vasprintf(ret_error, fmt, ap) < 0)
                *ret_error = NULL;
        va_end(ap);
        return error;
}

int manager_path(const struct managed_dir *d, const char *name, const char *file, char out[4096])
{
        int n = snprintf(out, PATH_MAX, "%s/%s%s%s", d->path, name, file ? "/" : "", file ? file : "");

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int manager_lock_dir(struct managed_dir *d, char **ret_error)
{
        char path[PATH_MAX];
        int r = manager_path(d, LOCK_FILE, NULL, path);

        if (r < 0)
                return r;
        d->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (d->lock_fd < 0)
                return manager_error(ret_error, -errno, "%s: %s", path, strerror(errno));
        if (flock(d->lock_fd, LOCK_EX | LOCK_NB) == 0)
                return 0;
        if (errno != EWOULDBLOCK)
                return manager_error(ret_error, -errno, "%s: %s", path, strerror(errno));
        return manager_error(ret_error, -EBUSY, "%s is locked: another broker runs on this directory", path);
}

/* --- meta.properties --- */

struct meta {
        int32_t version, broker_id;
        char cluster_id[256];
};

static int parse_property(char *line, struct meta *m)
{
        char *value = strchr(line, '=');

        if (line[0] == '#' || line[0] == '\0')
                return 0;
        if (!value)
                return -EBADMSG;
        *value++ = '\0';
        if (strcmp(line, "version") == 0)
                return parse_int32(value, 0, INT32_MAX, &m->version);
        if (strcmp(line, "broker.id") == 0)
                return parse_int32(value, 0, INT32_MAX, &m->broker_id);
        if (strcmp(line, "cluster.id") == 0) {
                if (strlen(value) >= sizeof(m->cluster_id))
                        return -EBADMSG;
                (void)snprintf(m->cluster_id, sizeof(m->cluster_id), "%s", value); /* it fits */
        }
        return 0; /* Kafka may have written more than we know */
}

/* -ENOENT: no file. */
static int read_meta(const char *path, struct meta *ret)
{
        cleanup_with(buf_donep) struct buf text = {0};
        struct meta m = {.version = -1, .broker_id = -1};
        char *rest;
        int r;

        buf_init(&text, 0);
        r = fs_read_file(path, SMALL_FILE_MAX, &text);
        if (r < 0)
                return r;
        if (!buf_cstr(&text))
                return -ENOMEM;
        rest = (char *)text.data;
        for (char *line; (line = strsep(&rest, "\n"));) {
                line[strcspn(line, "\r")] = '\0';
                r = parse_property(line, &m);
                if (r < 0)
                        return -EBADMSG;
        }
        *ret = m;
        return 0;
}

int manager_write_meta(const struct log_manager *m, const struct managed_dir *d)
{
        cleanup_with(buf_donep) struct buf text = {0};
        char path[PATH_MAX];
        int r = manager_path(d, META_FILE, NULL, path);

        buf_init(&text, 0);
        if (r == 0)
                r = buf_printf(&text, "#\n#\nversion=0\nbroker.id=%" PRId32 "\n", m->broker_id);
        if (r == 0 && m->cluster_id[0] != '\0')
                r = buf_printf(&text, "cluster.id=%s\n", m->cluster_id);
        return r < 0 ? r : fs_write_atomic(path, text.data, text.len);
}

static int compare_meta(const struct log_manager *m, const char *path, const struct meta *meta,
                        char **ret_error)
{
        if (meta->version != 0)
                return manager_error(ret_error, -EINVAL,
                                     "%s has version=%" PRId32 ", only version=0 (ZooKeeper mode) is known",
                                     path, meta->version);
        if (meta->broker_id != m->broker_id)
                return manager_error(ret_error, -EINVAL,
                                     "%s says broker.id=%" PRId32 ", the configuration %" PRId32
                                     ": set broker.id=%" PRId32
                                     ", or point log.dirs at this broker's own directory",
                                     path, meta->broker_id, m->broker_id, meta->broker_id);
        if (m->cluster_id[0] != '\0' && meta->cluster_id[0] != '\0' &&
            strcmp(m->cluster_id, meta->cluster_id) != 0)
                return manager_error(ret_error, -EINVAL,
                                     "%s says cluster.id=%s, ZooKeeper %s: the directory belongs to another "
                                     "cluster; check "
                                     "zookeeper.connect, or point log.dirs at an empty directory",
                                     path, meta->cluster_id, m->cluster_id);
        return 0;
}

int manager_check_meta(struct log_manager *m, struct managed_dir *d, char **ret_error)
{
        struct meta meta;
        char path[PATH_MAX];
        int r = manager_path(d, META_FILE, NULL, path);

        if (r == 0)
                r = read_meta(path, &meta);
        d->meta_stale = r == -ENOENT || (r == 0 && meta.cluster_id[0] == '\0');
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return manager_error(ret_error, r, "%s cannot be read: %s", path, strerror(-r));
        r = compare_meta(m, path, &meta, ret_error);
        if (r < 0 || m->cluster_id[0] != '\0' || meta.cluster_id[0] == '\0')
                return r;
        free(m->cluster_id);
        m->cluster_id = strdup(meta.cluster_id);
        return m->cluster_id ? 0 : -ENOMEM;
}

/* --- clean-shutdown marker --- */

int manager_take_marker(struct managed_dir *d)
{
        char path[PATH_MAX];
        int r = manager_path(d, CLEAN_MARKER, NULL, path);

        if (r < 0)
                return r;
        d->clean = unlink(path) == 0;
        if (!d->clean)
                return errno == ENOENT ? 0 : -errno;
        /* Gone for good before anything is written: a marker that comes back after a crash would hide that
         * there is something to recover (KAFKA-10471). */
        return fs_sync_dir(d->path);
}

/* --- checkpoints --- */

struct reading {
        struct managed_dir *dir;
        bool is_hw;
};

static int on_saved_offset(const char *topic, int32_t partition, int64_t offset, void *userdata)
{
        struct reading *reading = userdata;
        struct saved_offsets *s;
        char name[512];

        if (snprintf(name, sizeof(name), "%s-%" PRId32, topic, partition) >= (int)sizeof(name))
                return -EBADMSG;
        s = map_get_str(reading->dir->saved, name);
        if (!s) {
                int r;

                s = calloc(1, sizeof(*s));
                if (!s)
                        return -ENOMEM;
                r = map_put_str(reading->dir->saved, name, s);
                if (r < 0) {
                        free(s);
                        return r;
                }
        }
        if (reading->is_hw)
                s->hw = offset;
        else
                s->recovery_point = offset;
        return 0;
}

int manager_read_checkpoints(struct managed_dir *d, char **ret_error)
{
        static const char *const files[] = {RECOVERY_CHECKPOINT, HW_CHECKPOINT};
        char path[PATH_MAX];

        d->saved = map_new();
        if (!d->saved)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                struct reading reading = {.dir = d, .is_hw = i == 1};
                int line = 0, r = manager_path(d, files[i], NULL, path);

                if (r == 0)
                        r = checkpoint_read_offsets(path, on_saved_offset, &reading, &line);
                if (r == -EBADMSG)
                        return manager_error(ret_error, r,
                                             "%s is malformed in line %d: repair it, or remove it (%s)", path,
                                             line,
                                             reading.is_hw ? "every high watermark then starts at 0 and "
                                                             "comes back from the leaders"
                                                           : "every log is then scanned as after a crash");
                if (r < 0 && r != -ENOENT)
                        return manager_error(ret_error, r, "%s: %s", path, strerror(-r));
        }
        return 0;
}

/* --- partition.metadata --- */

int manager_read_topic_id(const struct managed_dir *d, const char *name, struct uuid *ret)
{
        static const char key[] = "topic_id: ";
        cleanup_with(buf_donep) struct buf text = {0};
        char path[PATH_MAX], *at, *end;
        int r = manager_path(d, name, PARTITION_METADATA, path);

        buf_init(&text, 0);
        if (r == 0)
                r = fs_read_file(path, SMALL_FILE_MAX, &text);
        if (r < 0)
                return r;
        if (!buf_cstr(&text))
                return -ENOMEM;
        at = strncmp((char *)text.data, "version: 0\n", 11) == 0 ? strstr((char *)text.data, key) : NULL;
        if (!at)
                return -EBADMSG;
        at += strlen(key);
        end = strpbrk(at, "\r\n");
        if (end)
                *end = '\0';
        return uuid_parse(at, ret) < 0 ? -EBADMSG : 0;
}

int manager_write_topic_id(const struct managed_dir *d, const char *name, const struct uuid *id)
{
        char path[PATH_MAX], text[64], id_text[UUID_TEXT_SIZE];
        int r = manager_path(d, name, PARTITION_METADATA, path), n;

        uuid_format(id, id_text);
        n = snprintf(text, sizeof(text), "version: 0\ntopic_id: %s\n", id_text);
        /* Not synced, as the directory it is in: the controller tells it again. */
        return r < 0 ? r : checkpoint_replace_unsynced(path, text, (size_t)n);
}

/* --- deleted logs --- */

int manager_doom_dir(struct log_manager *m, const char *path)
{
        char *copy = strdup(path), **grown = NULL;

        pthread_mutex_lock(&m->lock);
        if (copy)
                grown = realloc(m->doomed, (m->n_doomed + 1) * sizeof(*grown));
        if (grown) {
                m->doomed = grown;
                m->doomed[m->n_doomed++] = copy;
        }
        pthread_mutex_unlock(&m->lock);
        if (grown)
                return 0;
        free(copy);
        return log_dir_remove(path);
}

void manager_remove_doomed(struct log_manager *m)
{
        char **doomed;
        size_t n;

        pthread_mutex_lock(&m->lock);
        doomed = m->doomed;
        n = m->n_doomed;
        m->doomed = NULL;
        m->n_doomed = 0;
        pthread_mutex_unlock(&m->lock);
        for (size_t i = 0; i < n; i++) {
                int r = log_dir_remove(doomed[i]);

                if (r < 0)
                        slog_warning("log-delete-failed", "a deleted log's files stay until the next start",
                                     SL_STR("dir", doomed[i]), SL_ERR(r));
                free(doomed[i]);
        }
        free(doomed);
}

void manager_forget_doomed(struct log_manager *m)
{
        for (size_t i = 0; i < m->n_doomed; i++)
                free(m->doomed[i]);
        free(m->doomed);
        m->doomed = NULL;
        m->n_doomed = 0;
}
