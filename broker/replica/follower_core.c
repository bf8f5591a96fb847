/* Decisions of a follower (kafka-semantics §4.7). */
#include "replica/follower_core.h"

#include "wire/error.h"

static enum follower_action action_on_error(int16_t error)
{
        static const struct {
                int16_t error;
                enum follower_action action;
        } actions[] = {
                {KAFKA_OFFSET_OUT_OF_RANGE, FOLLOWER_FIND_RANGE},
                {KAFKA_NOT_LEADER_OR_FOLLOWER, FOLLOWER_RETRY_SOON},
                {KAFKA_UNKNOWN_LEADER_EPOCH, FOLLOWER_RETRY_SOON},
                {KAFKA_UNKNOWN_TOPIC_OR_PARTITION, FOLLOWER_RETRY_SOON},
                {KAFKA_UNKNOWN_TOPIC_ID, FOLLOWER_RETRY_SOON},
                {KAFKA_INCONSISTENT_TOPIC_ID, FOLLOWER_RETRY_SOON},
                /* A newer LeaderAndIsr is coming. Kept in the fetcher all the same: an answer that came late
                 * must not drop a partition for ever (KAFKA-7786). */
                {KAFKA_FENCED_LEADER_EPOCH, FOLLOWER_RETRY_SOON},
        };

        for (size_t i = 0; i < ARRAY_SIZE(actions); i++) {
                if (actions[i].error == error)
                        return actions[i].action;
        }
        return FOLLOWER_RETRY_LATER;
}

enum follower_action follower_on_answer(const struct follower_log *log, const struct follower_answer *a)
{
        if (a->error != KAFKA_NONE)
                return action_on_error(a->error);
        if (a->fetch_offset != log->end_offset)
                return FOLLOWER_IGNORE;
        /* Before records and HW: a response that says "you diverge" must move neither (KAFKA-14704). */
        if (a->diverging_epoch >= 0)
                return FOLLOWER_TRUNCATE;
        return FOLLOWER_APPEND;
}

int64_t follower_truncation_offset(const struct follower_log *log, int32_t diverging_epoch,
                                   int64_t diverging_end_offset, int32_t own_epoch, int64_t own_end_offset)
{
        int64_t offset = MIN(diverging_end_offset, log->end_offset);

        if (own_epoch < 0) /* nothing of ours is as old as what the leader shares with us */
                return offset;
        if (own_epoch != diverging_epoch)
                return MIN(own_end_offset, log->end_offset); /* and the next fetch asks with own_epoch */
        return MIN(offset, own_end_offset);
}

enum follower_range_action follower_on_range(const struct follower_log *log, int64_t leader_start,
                                             int64_t leader_end, int64_t *ret_offset)
{
        if (leader_end < log->end_offset) {
                *ret_offset = leader_end;
                /* Below our start there is nothing to keep. */
                return leader_end < log->start_offset ? FOLLOWER_RANGE_RESTART : FOLLOWER_RANGE_TRUNCATE;
        }
        if (leader_start > log->end_offset) {
                *ret_offset = leader_start;
                return FOLLOWER_RANGE_RESTART;
        }
        *ret_offset = log->end_offset;
        return FOLLOWER_RANGE_REFETCH;
}

int64_t follower_high_watermark(const struct follower_log *log, int64_t leader_hw)
{
        return MAX(log->hw, MIN(leader_hw, log->end_offset));
}

int64_t follower_backoff_ms(int32_t attempts, int64_t first_ms, int64_t max_ms)
{
        int64_t ms = first_ms;

        for (int32_t i = 1; i < attempts && ms < max_ms; i++)
                ms *= 2;
        return MIN(ms, max_ms);
}
