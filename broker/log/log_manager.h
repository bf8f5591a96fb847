/* The log directories of a broker: lock, meta.properties, checkpoints, clean-shutdown marker, and the logs in them.
 * Calls from one thread (the control thread) unless said otherwise. */
#pragma once

#include "log/partition_log.h"

struct log_manager;

struct log_manager_options {
        const char *log_dirs; /* comma-separated (log.dirs) */
        int32_t broker_id;
        struct log_config defaults;
        int recovery_threads;
};

/* Create missing directories, take the flock of each (-EBUSY: another broker runs on it), check meta.properties (-EINVAL:
 * another broker.id or cluster.id; *ret_error says both and the fix), remove the clean marker at the start of loading
 * (KAFKA-10471), load and recover every "<topic>-<partition>" directory. @cluster_id NULL: take what the file says. */
int log_manager_open(const struct log_manager_options *o, const char *cluster_id, struct log_manager **ret,
                     char **ret_error) must_check;
/* Clean shutdown: flush all logs, write the checkpoints, then the clean marker, release the locks. */
int log_manager_close_clean(struct log_manager *m) must_check;
struct log_manager *log_manager_free(struct log_manager *m); /* without flush and marker, as after a crash */
DEFINE_FREEP(struct log_manager, log_manager_free)

const char *log_manager_cluster_id(const struct log_manager *m); /* "" when unknown yet */
int log_manager_set_cluster_id(struct log_manager *m, const char *cluster_id) must_check; /* writes meta.properties */

/* The log of a partition, created if @create in the directory with the fewest partitions. -ENOENT. The manager owns it. */
int log_manager_get(struct log_manager *m, const char *topic, int32_t partition, bool create,
                    struct partition_log **ret) must_check;
int log_manager_delete(struct log_manager *m, const char *topic, int32_t partition) must_check;

/* High watermarks: what the checkpoint said at open (0 when missing), and writing all of them (atomic, one file a dir). */
int64_t log_manager_checkpointed_hw(const struct log_manager *m, const char *topic, int32_t partition);
struct log_hw {
        const char *topic;
        int32_t partition;
        int64_t hw;
};
int log_manager_write_hw_checkpoint(struct log_manager *m, const struct log_hw *hws, size_t n) must_check; /* [any one thread] */
int log_manager_write_recovery_points(struct log_manager *m) must_check;
/* Called for every log found at open. */
void log_manager_each(struct log_manager *m, void (*fn)(const char *topic, int32_t partition, struct partition_log *l, void *ud),
                      void *userdata);
