/* The log directories of a broker: lock, meta.properties, checkpoints, clean-shutdown marker, and the logs in
 * them. Calls from one thread (the control thread) unless said otherwise. */
#pragma once

#include "base/uuid.h"
#include "log/partition_log.h"

struct log_manager;

struct log_manager_options {
        const char *log_dirs; /* comma-separated (log.dirs) */
        int32_t broker_id;
        struct log_config defaults;
        int recovery_threads;
};

/* Create missing directories, take the flock of each (-EBUSY: another broker runs on it), check
 * meta.properties
 * (-EINVAL: another broker.id or cluster.id; *ret_error says both and the fix), remove the clean marker at
 * the start of loading (KAFKA-10471), load and recover every "<topic>-<partition>" directory. @cluster_id
 * NULL: take what the file says. -EBADMSG: a checkpoint is malformed (KAFKA-509). -EEXIST: a partition is in
 * two directories. *ret_error (to be freed) names the file or directory after every error. */
int log_manager_open(const struct log_manager_options *o, const char *cluster_id, struct log_manager **ret,
                     char **ret_error) must_check;
/* Clean shutdown: flush all logs, write the checkpoints, then the clean marker, release the locks. Frees @m
 * whatever it returns; a directory in which something failed gets no marker and is recovered at the next
 * start. */
int log_manager_close_clean(struct log_manager *m) must_check;
struct log_manager *log_manager_free(struct log_manager *m); /* without flush and marker, as after a crash */
DEFINE_FREEP(struct log_manager, log_manager_free)

const char *log_manager_cluster_id(const struct log_manager *m); /* "" when unknown yet */
/* Writes meta.properties. -EEXIST: it has another one already. */
int log_manager_set_cluster_id(struct log_manager *m, const char *cluster_id) must_check;

/* The log of a partition, created if @create in the directory with the fewest partitions. The manager owns
 * it. -ENOENT; -EINVAL: no topic name. */
int log_manager_get(struct log_manager *m, const char *topic, int32_t partition, bool create,
                    struct partition_log **ret) must_check;
/* Gone at once for everybody; the files go with the next log_manager_write_recovery_points(), or at the next
 * start: to unlink thousands would keep the control thread for seconds. */
int log_manager_delete(struct log_manager *m, const char *topic, int32_t partition) must_check;

/* The id of the topic whose partition this is (partition.metadata), so that a topic of the same name that was
 * made anew does not take over the old one's log. -ENOENT: no such partition, or no id yet. */
int log_manager_topic_id(const struct log_manager *m, const char *topic, int32_t partition, struct uuid *ret)
        must_check;
/* 0 also when it is that id already. -EEXIST: it is another topic's. -ENOENT. */
int log_manager_set_topic_id(struct log_manager *m, const char *topic, int32_t partition,
                             const struct uuid *id) must_check;

/* High watermarks: what the checkpoint said at open (0 when missing, at most the log's end: KAFKA-539) or was
 * told since, and writing all of them (atomic, one file a dir). Partitions that are not in @hws keep what
 * they have, so that the file always names every hosted partition (KAFKA-769, 851, 858, 1647). */
int64_t log_manager_checkpointed_hw(const struct log_manager *m, const char *topic, int32_t partition);
struct log_hw {
        const char *topic;
        int32_t partition;
        int64_t hw;
};
int log_manager_write_hw_checkpoint(struct log_manager *m, const struct log_hw *hws, size_t n)
        must_check; /* [any one thread] */
/* Flush the logs that sealed a segment since the last time, unlink what retention and log_manager_delete()
 * left, and write the recovery points. Long: not from the control thread. [any one thread, no log's lock
 * held] */
int log_manager_write_recovery_points(struct log_manager *m) must_check;
/* Called for every log. */
void log_manager_each(struct log_manager *m,
                      void (*fn)(const char *topic, int32_t partition, struct partition_log *l, void *ud),
                      void *userdata);
