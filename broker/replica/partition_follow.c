/* A partition as follower: where it fetches, and what it does with the leader's answers. Everything is bound
 * to the leader epoch under which the fetch was made: LeaderAndIsr may have changed the role meanwhile
 * (KAFKA-7786). */
#include "replica/partition_internal.h"

#include <errno.h>

#include "base/slog.h"
#include "wire/error.h"

static bool follows(const struct partition *p, int32_t leader_epoch)
{
        return p->role == REPLICA_FOLLOWER && p->leader_epoch == leader_epoch;
}

bool partition_follow_position(struct partition *p, int32_t leader_epoch, struct partition_position *ret)
{
        bool ok;

        pthread_mutex_lock(&p->lock);
        ok = follows(p, leader_epoch);
        if (ok) {
                ret->offset = partition_log_end_offset(p->log);
                ret->log_start_offset = partition_log_start_offset(p->log);
                ret->topic_id = p->topic_id;
                ret->last_epoch = partition_log_epoch_for_offset(p->log, ret->offset);
        }
        pthread_mutex_unlock(&p->lock);
        return ok;
}

static struct follower_log log_state(const struct partition *p)
{
        return (struct follower_log){.start_offset = partition_log_start_offset(p->log),
                                     .end_offset = partition_log_end_offset(p->log),
                                     .hw = p->hw};
}

/* The HW goes down with the log; only what was never committed can be cut (KIP-101). */
static int truncate_locked(struct partition *p, int64_t offset)
{
        int64_t old = partition_log_end_offset(p->log);
        int r;

        if (offset < old)
                slog_info("log-truncated", "a follower cuts what its leader does not have",
                          SL_STR("topic", p->topic), SL_INT("partition", p->index), SL_INT("from", old),
                          SL_INT("to", offset), SL_INT("high_watermark", p->hw),
                          SL_INT("leader_epoch", p->leader_epoch));
        if (offset < p->hw)
                slog_warning("log-truncated-below-hw", "the cut lies below the high watermark",
                             SL_STR("topic", p->topic), SL_INT("partition", p->index), SL_INT("to", offset),
                             SL_INT("high_watermark", p->hw));
        pthread_rwlock_wrlock(&p->reading);
        r = partition_log_truncate_to(p->log, offset);
        pthread_rwlock_unlock(&p->reading);
        if (r == 0)
                p->hw = MIN(p->hw, partition_log_end_offset(p->log));
        return r;
}

static int restart_locked(struct partition *p, int64_t offset)
{
        int r;

        slog_warning("log-restarted",
                     "the leader no longer has what this follower needs; its log starts afresh",
                     SL_STR("topic", p->topic), SL_INT("partition", p->index),
                     SL_INT("from", partition_log_end_offset(p->log)), SL_INT("to", offset));
        pthread_rwlock_wrlock(&p->reading);
        r = partition_log_truncate_fully_and_start_at(p->log, offset);
        pthread_rwlock_unlock(&p->reading);
        if (r == 0)
                p->hw = offset; /* KAFKA-9491 */
        return r;
}

static int resolve_divergence(struct partition *p, const struct follower_answer *a)
{
        struct follower_log log = log_state(p);
        int32_t own_epoch;
        int64_t own_end, offset;

        partition_log_end_offset_for_epoch(p->log, a->diverging_epoch, &own_epoch, &own_end);
        offset = follower_truncation_offset(&log, a->diverging_epoch, a->diverging_end_offset, own_epoch,
                                            own_end);
        return offset < log.start_offset ? restart_locked(p, offset) : truncate_locked(p, offset);
}

static int append_locked(struct partition *p, const struct partition_answer *a)
{
        struct log_append_info info;
        struct follower_log log;
        int r = 0;

        if (a->records.len > 0)
                r = partition_log_append_follower(p->log, a->records.data, (size_t)a->records.len, &info);
        if (r < 0)
                return r;
        log = log_state(p);
        p->hw = follower_high_watermark(&log, a->leader_hw);
        if (log.end_offset >= a->leader_hw)
                p->caught_up = true;
        return 0;
}

static int answer_locked(struct partition *p, const struct partition_answer *a,
                         enum follower_action *ret_action)
{
        struct follower_log log = log_state(p);

        *ret_action = follower_on_answer(&log, &a->answer);
        if (*ret_action == FOLLOWER_APPEND)
                return append_locked(p, a);
        if (*ret_action == FOLLOWER_TRUNCATE)
                return resolve_divergence(p, &a->answer);
        return 0;
}

/* -ERANGE and -EBADMSG are the leader's bytes, -ENOSPC and -EMFILE pass; after anything else the log is in
 * doubt. */
static bool is_fatal(int r)
{
        return r < 0 && r != -ERANGE && r != -EBADMSG && r != -EPROTO && r != -EINVAL && r != -ENOMEM &&
               r != -ENOSPC && r != -EMFILE;
}

int partition_follow_answer(struct partition *p, int32_t leader_epoch, const struct partition_answer *a,
                            enum follower_action *ret_action)
{
        int r = -ESTALE;

        pthread_mutex_lock(&p->lock);
        if (follows(p, leader_epoch)) {
                r = answer_locked(p, a, ret_action);
                if (is_fatal(r))
                        partition_go_offline(p, r);
        }
        pthread_mutex_unlock(&p->lock);
        return r;
}

static int range_locked(struct partition *p, int64_t leader_start, int64_t leader_end)
{
        struct follower_log log = log_state(p);
        int64_t offset;

        switch (follower_on_range(&log, leader_start, leader_end, &offset)) {
        case FOLLOWER_RANGE_TRUNCATE:
                return truncate_locked(p, offset);
        case FOLLOWER_RANGE_RESTART:
                return restart_locked(p, offset);
        case FOLLOWER_RANGE_REFETCH:
                break;
        }
        return 0;
}

int partition_follow_range(struct partition *p, int32_t leader_epoch, int64_t leader_start,
                           int64_t leader_end)
{
        int r = -ESTALE;

        pthread_mutex_lock(&p->lock);
        if (follows(p, leader_epoch)) {
                r = range_locked(p, leader_start, leader_end);
                if (is_fatal(r))
                        partition_go_offline(p, r);
        }
        pthread_mutex_unlock(&p->lock);
        return r;
}
