/* What a partition serves to those who read: consumers up to the high watermark, followers up to the log end.
 */
#include "replica/partition_internal.h"

#include <errno.h>

#include "base/clock.h"
#include "replica/stale.h"
#include "wire/error.h"

#define TIMESTAMP_LATEST         (-1)
#define TIMESTAMP_EARLIEST       (-2)
#define TIMESTAMP_MAX            (-3)
#define TIMESTAMP_EARLIEST_LOCAL (-4)
#define TIMESTAMP_LATEST_TIERED  (-5)

int16_t partition_epoch_error(const struct partition *p, int32_t current_leader_epoch)
{
        if (current_leader_epoch < 0 || current_leader_epoch == p->leader_epoch)
                return KAFKA_NONE;
        if (current_leader_epoch > p->leader_epoch)
                return KAFKA_UNKNOWN_LEADER_EPOCH;
        stale_refused(STALE_OF_LEADER);
        return KAFKA_FENCED_LEADER_EPOCH;
}

/* KAFKA-10554: (last_fetched_epoch, offset) is on our history when that epoch is ours and reaches at least to
 * the offset. */
static int16_t check_history(const struct partition *p, const struct partition_fetch *f,
                             struct partition_fetch_state *ret)
{
        int32_t epoch;
        int64_t end_offset;

        if (f->last_fetched_epoch < 0)
                return KAFKA_NONE;
        partition_log_end_offset_for_epoch(p->log, f->last_fetched_epoch, &epoch, &end_offset);
        if (epoch < 0 || end_offset < 0)
                return KAFKA_OFFSET_OUT_OF_RANGE;
        if (epoch < f->last_fetched_epoch || end_offset < f->offset) {
                ret->diverging_epoch = epoch;
                ret->diverging_end_offset = end_offset;
        }
        return KAFKA_NONE;
}

static int64_t read_bound(const struct partition *p, const struct partition_fetch *f)
{
        return f->replica_id >= 0 ? partition_log_end_offset(p->log) : p->hw;
}

/* KAFKA-5758: what is wrong with one partition is that partition's error. */
static int16_t check_reader(const struct partition *p, const struct partition_fetch *f, bool lease)
{
        int16_t error;

        if (p->role == REPLICA_OFFLINE)
                return KAFKA_STORAGE_ERROR;
        error = p->role == REPLICA_NONE ? KAFKA_NOT_LEADER_OR_FOLLOWER
                                        : partition_epoch_error(p, f->current_leader_epoch);
        if (error != KAFKA_NONE)
                return error;
        /* Followers may go on without the lease: they are bound by the epoch, and the HW stands still (F2).
         */
        error = partition_leader_error(p, lease || f->replica_id >= 0);
        if (error == KAFKA_NONE && f->replica_id >= 0 && !leader_find_replica(&p->leader, f->replica_id))
                return KAFKA_UNKNOWN_LEADER_EPOCH; /* an assignment that we have not heard of yet */
        return error;
}

/* Who is being added to the ISR is waited for by acks=all already. */
static bool is_throttled(const struct partition *p, const struct partition_fetch *f)
{
        const struct leader_replica *r;

        if (f->replica_id < 0 || !atomic_load_explicit(&p->leader_throttled, memory_order_relaxed))
                return false;
        r = leader_find_replica(&p->leader, f->replica_id);
        return r && !r->in_isr && !r->in_proposal;
}

static void check_locked(struct partition *p, const struct partition_fetch *f, bool lease,
                         struct partition_fetch_state *ret)
{
        int64_t bound;

        *ret = (struct partition_fetch_state){
                .hw = -1,
                .log_start_offset = -1,
                .diverging_epoch = -1,
                .diverging_end_offset = -1,
                .changes = atomic_load_explicit(&p->changes, memory_order_relaxed),
        };
        ret->error = check_reader(p, f, lease);
        if (ret->error != KAFKA_NONE)
                return;
        ret->hw = p->hw;
        ret->throttled = is_throttled(p, f);
        ret->log_start_offset = partition_log_start_offset(p->log);
        ret->error = check_history(p, f, ret);
        if (ret->error != KAFKA_NONE || ret->diverging_epoch >= 0)
                return;
        if (f->offset < ret->log_start_offset || f->offset > partition_log_end_offset(p->log)) {
                ret->error = KAFKA_OFFSET_OUT_OF_RANGE;
                return;
        }
        bound = read_bound(p, f);
        if (f->offset < bound)
                ret->bytes = partition_log_bytes_between(p->log, f->offset, bound);
}

void partition_fetch_check(struct partition *p, const struct partition_fetch *f, bool lease,
                           struct partition_fetch_state *ret)
{
        pthread_mutex_lock(&p->lock);
        check_locked(p, f, lease, ret);
        pthread_mutex_unlock(&p->lock);
}

void partition_fetch_begin(struct partition *p, const struct partition_fetch *f, bool lease, int64_t now_ms,
                           struct partition_fetch_state *ret, struct partition_effects *ret_effects)
{
        struct leader_effects e;

        *ret_effects = (struct partition_effects){0};
        pthread_mutex_lock(&p->lock);
        check_locked(p, f, lease, ret);
        /* A diverging or impossible offset is no progress (KAFKA-13141). */
        if (f->replica_id >= 0 && ret->error == KAFKA_NONE && ret->diverging_epoch < 0) {
                struct leader_fetch lf = {.follower_id = f->replica_id,
                                          .offset = f->offset,
                                          .broker_epoch = f->replica_epoch,
                                          .now_ms = now_ms};

                p->leader.may_commit = lease;
                if (leader_on_fetch(&p->leader, &lf, &e) < 0)
                        ret->error = KAFKA_UNKNOWN_LEADER_EPOCH;
                else
                        partition_take_effects(p, &e, ret_effects);
                ret->hw = p->hw;
                ret->changes = atomic_load_explicit(&p->changes, memory_order_relaxed);
        }
        pthread_mutex_unlock(&p->lock);
}

void partition_fetch_read(struct partition *p, const struct partition_fetch *f, bool lease, size_t max_bytes,
                          bool min_one, struct buf *out, size_t *ret_n, struct partition_fetch_state *ret)
{
        int64_t bound;
        int r;

        *ret_n = 0;
        pthread_mutex_lock(&p->lock);
        check_locked(p, f, lease, ret);
        if (ret->error != KAFKA_NONE || ret->bytes == 0 || (max_bytes == 0 && !min_one)) {
                pthread_mutex_unlock(&p->lock);
                return;
        }
        bound = read_bound(p, f);
        /* Appends may go on while we read below the bound; truncation and deletion wait. */
        pthread_rwlock_rdlock(&p->reading);
        pthread_mutex_unlock(&p->lock);
        r = partition_log_read(p->log, f->offset, bound, max_bytes, min_one, out, ret_n);
        pthread_rwlock_unlock(&p->reading);
        if (r == -ERANGE)
                ret->error = KAFKA_OFFSET_OUT_OF_RANGE; /* retention was faster */
        else if (r < 0)
                ret->error =
                        r == -ENOMEM || r == -EMSGSIZE ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_STORAGE_ERROR;
}

/* --- ListOffsets --- */

typedef int (*find_fn)(struct partition_log *log, int64_t timestamp, int64_t bound, int64_t *ret_offset,
                       int64_t *ret_timestamp);

static bool found_from(find_fn find, struct partition_log *log, int64_t timestamp, int64_t bound,
                       struct partition_offset *o, int *r)
{
        int64_t offset, at;

        *r = find(log, timestamp, bound, &offset, &at);
        if (*r < 0 || offset < 0)
                return false;
        o->offset = offset;
        o->timestamp = at;
        return true;
}

/* The record of the largest timestamp (KIP-734), by bisecting the time axis with the look-up we have. Batches
 * first: one is unpacked, not one a step. Their headers are believed, as for every look-up by time. */
static int find_max_timestamp(struct partition_log *log, int64_t bound, struct partition_offset *o)
{
        int64_t low = 0, high = INT64_MAX; /* a batch reaches low; none reaches high */
        int r;

        if (!found_from(partition_log_find_batch, log, 0, bound, o, &r))
                return r;
        low = o->timestamp;
        while (high - low > 1) {
                int64_t middle = low + (high - low) / 2;

                if (found_from(partition_log_find_batch, log, middle, bound, o, &r))
                        low = o->timestamp;
                else if (r < 0)
                        return r;
                else
                        high = middle;
        }
        (void)found_from(partition_log_find_timestamp, log, o->timestamp, bound, o, &r);
        return r;
}

/* What is known without looking into the log. false: @ret is to be searched for below *ret_bound. */
static bool list_locked(const struct partition *p, int64_t timestamp, bool follower, int64_t *ret_bound,
                        struct partition_offset *ret, int16_t *ret_error)
{
        *ret_bound = follower ? partition_log_end_offset(p->log) : p->hw;
        switch (timestamp) {
        case TIMESTAMP_LATEST:
                /* KIP-207: a new leader's HW may be behind what consumers have seen. */
                if (!follower && p->hw < p->leader.epoch_start_offset)
                        *ret_error = KAFKA_OFFSET_NOT_AVAILABLE;
                else
                        ret->offset = *ret_bound;
                return true;
        case TIMESTAMP_EARLIEST:
        case TIMESTAMP_EARLIEST_LOCAL:
                ret->offset = partition_log_start_offset(p->log);
                return true;
        case TIMESTAMP_LATEST_TIERED:
                return true; /* nothing is tiered: -1 */
        default:
                return false;
        }
}

/* The epoch of the record at @offset; at the log's end, of the record before it (KIP-320). */
static int32_t epoch_of(const struct partition *p, int64_t offset, int32_t leader_epoch)
{
        return offset >= partition_log_end_offset(p->log)
                       ? leader_epoch
                       : partition_log_epoch_for_offset(p->log, offset + 1);
}

/* The search reads from the disk: appends go on meanwhile, truncation and deletion wait. */
static int16_t list_search(struct partition *p, int64_t timestamp, int64_t bound,
                           struct partition_offset *ret)
{
        int r;

        if (timestamp == TIMESTAMP_MAX)
                r = find_max_timestamp(p->log, bound, ret);
        else
                (void)found_from(partition_log_find_timestamp, p->log, timestamp, bound, ret, &r);
        return r < 0 ? KAFKA_STORAGE_ERROR : KAFKA_NONE;
}

int16_t partition_list_offset(struct partition *p, int64_t timestamp, int32_t current_leader_epoch,
                              bool follower, struct partition_offset *ret)
{
        bool lease = partition_lease_valid(p), known = true;
        int32_t leader_epoch;
        int64_t bound = 0;
        int16_t error;

        *ret = (struct partition_offset){.offset = -1, .timestamp = -1, .leader_epoch = -1};
        pthread_mutex_lock(&p->lock);
        error = p->role == REPLICA_LEADER ? partition_epoch_error(p, current_leader_epoch) : KAFKA_NONE;
        if (error == KAFKA_NONE)
                error = partition_leader_error(p, lease || follower);
        if (error != KAFKA_NONE) {
                pthread_mutex_unlock(&p->lock);
                return error;
        }
        known = list_locked(p, timestamp, follower, &bound, ret, &error);
        leader_epoch = p->leader_epoch;
        pthread_rwlock_rdlock(&p->reading);
        pthread_mutex_unlock(&p->lock);
        if (!known)
                error = list_search(p, timestamp, bound, ret);
        if (ret->offset >= 0)
                ret->leader_epoch = epoch_of(p, ret->offset, leader_epoch);
        pthread_rwlock_unlock(&p->reading);
        if (error != KAFKA_NONE)
                *ret = (struct partition_offset){.offset = -1, .timestamp = -1, .leader_epoch = -1};
        return error;
}

int16_t partition_end_offset_for_epoch(struct partition *p, int32_t current_leader_epoch, int32_t epoch,
                                       int32_t *ret_epoch, int64_t *ret_end_offset)
{
        bool lease = partition_lease_valid(p);
        int16_t error;

        *ret_epoch = -1;
        *ret_end_offset = -1;
        pthread_mutex_lock(&p->lock);
        error = p->role == REPLICA_LEADER ? partition_epoch_error(p, current_leader_epoch) : KAFKA_NONE;
        if (error == KAFKA_NONE)
                error = partition_leader_error(p, lease);
        if (error == KAFKA_NONE)
                partition_log_end_offset_for_epoch(p->log, epoch, ret_epoch, ret_end_offset);
        pthread_mutex_unlock(&p->lock);
        return error;
}
