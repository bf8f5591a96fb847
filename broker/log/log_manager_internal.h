/* What the files of the log manager share; nobody else includes it. */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "log/log_manager.h"

#define HW_CHECKPOINT       "replication-offset-checkpoint"
#define RECOVERY_CHECKPOINT "recovery-point-offset-checkpoint"
#define CLEAN_MARKER        ".kafka_cleanshutdown"
#define LOCK_FILE           ".lock"
#define META_FILE           "meta.properties"
#define PARTITION_METADATA  "partition.metadata"

struct managed_dir {
        char *path;
        int lock_fd; /* holds the flock; opened before anything is written, so that syncfs() on it reports
                      * every failed write-back since */
        size_t n_partitions;
        bool clean;        /* the marker was there */
        bool meta_stale;   /* meta.properties has to be written */
        struct map *saved; /* while loading: struct saved_offsets by "<topic>-<partition>" */
};

struct saved_offsets {
        int64_t hw, recovery_point;
};

struct managed_log {
        char *topic, *name; /* name: "<topic>-<partition>" */
        int32_t partition;
        struct managed_dir *dir;
        struct partition_log *log;
        int64_t hw;
        struct uuid topic_id; /* zero: not known */
};

struct log_manager {
        struct log_config defaults;
        int32_t broker_id;
        char *cluster_id; /* never NULL */
        struct managed_dir *dirs;
        size_t n_dirs;
        pthread_mutex_t
                lock; /* guards @logs, their hw and @doomed against the one thread that writes checkpoints */
        struct map *logs; /* struct managed_log by name */
        char **doomed;    /* directories of deleted logs, to be removed at leisure. Guarded by @lock */
        size_t n_doomed;
};

/* "…" into *ret_error (which may be NULL); returns @error. */
int manager_error(char **ret_error, int error, const char *fmt, ...) printf_like(3, 4);
int manager_path(const struct managed_dir *d, const char *name, const char *file, char out[4096]) must_check;

/* log_manager_files.c */
int manager_lock_dir(struct managed_dir *d, char **ret_error) must_check;
/* Compare with the broker and *cluster_id (filled in when it is empty). */
int manager_check_meta(struct log_manager *m, struct managed_dir *d, char **ret_error) must_check;
int manager_write_meta(const struct log_manager *m, const struct managed_dir *d) must_check;
int manager_take_marker(struct managed_dir *d) must_check; /* sets d->clean; the marker is gone afterwards */
int manager_read_checkpoints(struct managed_dir *d, char **ret_error) must_check; /* into d->saved */
int manager_read_topic_id(const struct managed_dir *d, const char *name, struct uuid *ret) must_check;
int manager_write_topic_id(const struct managed_dir *d, const char *name, const struct uuid *id) must_check;

/* Remember a deleted log's directory; or, without memory for that, remove it here. */
int manager_doom_dir(struct log_manager *m, const char *path) must_check;
/* Remove them. Long; any thread. */
void manager_remove_doomed(struct log_manager *m);
void manager_forget_doomed(struct log_manager *m); /* the next start removes them */

/* log_manager_load.c */
struct managed_log *managed_log_new(struct managed_dir *d, const char *topic, int32_t partition);
struct managed_log *managed_log_free(struct managed_log *l);
DEFINE_FREEP(struct managed_log, managed_log_free)
bool manager_topic_valid(const char *topic);
/* "<topic>-<partition>" into its parts; false when it is no such name. */
bool manager_split_name(const char *name, char topic[256], int32_t *ret_partition);
/* Find, open and recover what is in all directories, with @threads at once. */
int manager_load(struct log_manager *m, int threads, char **ret_error) must_check;
