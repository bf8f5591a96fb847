/* Role and leadership of one partition; what a leader does with Produce. See partition.h. */
#include "replica/partition_internal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "wire/error.h"

/* A producer has several requests under way. When the first is refused (no leader yet, too few in sync) and
 * that changes before the next one arrives, here or at another broker, the next one finds a gap in front of
 * it, which its retry closes. OUT_OF_ORDER_SEQUENCE says less than the truth then, and ends a librdkafka
 * before 2.3 for good when its connection broke in between (librdkafka pull request 4438). So for so long
 * after a refusal, or after leadership began, a gap has the reason of the refusal. The same for a producer
 * that is not known here: were it let in behind its refused first batch, that one could never be stored. */
#define GAP_GRACE_MS 2000

static const struct {
        const char *name;
        bool next[N_REPLICA_ROLES];
} roles[N_REPLICA_ROLES] = {
        [REPLICA_NONE] = {"none", {true, true, true, true}},
        [REPLICA_LEADER] = {"leader", {true, true, true, true}},
        [REPLICA_FOLLOWER] = {"follower", {true, true, true, true}},
        /* Its log is in doubt: only a restart, which recovers it, brings it back; deleting it is allowed. */
        [REPLICA_OFFLINE] = {"offline", {[REPLICA_NONE] = true, [REPLICA_OFFLINE] = true}},
};

const char *replica_role_name(enum replica_role role)
{
        return roles[role].name;
}

static void partition_verify(const struct partition *p)
{
        assert(p->role != REPLICA_LEADER || p->leader_id == p->env->broker_id);
        assert(p->role != REPLICA_LEADER || p->leader.n_replicas > 0);
        assert(p->role != REPLICA_FOLLOWER || p->leader_id != p->env->broker_id);
        (void)p;
}

static void note_refusal(struct partition *p, int16_t error)
{
        p->refusal = error;
        p->refusal_ms = clock_mono_ms();
}

void partition_set_role(struct partition *p, enum replica_role role)
{
        enum replica_role old = p->role;

        assert(roles[old].next[role]);
        p->role = role;
        partition_changed(p);
        if (role == REPLICA_LEADER && old != REPLICA_LEADER) {
                p->term++;
                note_refusal(p, KAFKA_NOT_LEADER_OR_FOLLOWER); /* by us or the leader before */
        }
        if (role != REPLICA_LEADER)
                leader_done(&p->leader);
        if (role != REPLICA_FOLLOWER)
                p->caught_up = false;
        partition_verify(p);
        if (old != role)
                slog_debug("replica-role", "a replica changed its role", SL_STR("topic", p->topic),
                           SL_INT("partition", p->index), SL_STR("from", roles[old].name),
                           SL_STR("to", roles[role].name), SL_INT("leader_epoch", p->leader_epoch));
}

void partition_go_offline(struct partition *p, int r)
{
        slog_error("replica-offline",
                   "a replica goes offline after an I/O error; its broker must be restarted",
                   SL_STR("topic", p->topic), SL_INT("partition", p->index), SL_ERR(r));
        partition_set_role(p, REPLICA_OFFLINE);
        if (p->env->went_offline)
                p->env->went_offline(p->env->userdata);
}

bool partition_lease_valid(const struct partition *p)
{
        return !p->env->lease_valid || p->env->lease_valid(p->env->userdata);
}

/* The core decided; take over what the partition shows of it. Under the lock. */
void partition_take_effects(struct partition *p, const struct leader_effects *e,
                            struct partition_effects *ret)
{
        p->hw = p->leader.hw;
        if (e->hw_moved)
                partition_changed(p);
        ret->hw_moved |= e->hw_moved;
        ret->propose |= e->propose;
        ret->retry_isr |= e->retry;
}

/* --- life --- */

static int init_locks(struct partition *p)
{
        int r;

        r = purgatory_key_init(&p->produce_key);
        if (r < 0)
                return r;
        r = purgatory_key_init(&p->fetch_key);
        if (r < 0)
                goto no_fetch_key;
        r = -pthread_mutex_init(&p->lock, NULL);
        if (r < 0)
                goto no_lock;
        r = -pthread_rwlock_init(&p->reading, NULL);
        if (r == 0)
                return 0;
        pthread_mutex_destroy(&p->lock);
no_lock:
        purgatory_key_done(&p->fetch_key);
no_fetch_key:
        purgatory_key_done(&p->produce_key);
        return r;
}

int partition_new(const struct partition_env *env, const char *topic, int32_t index,
                  struct partition_log *log, int64_t hw, struct partition **ret)
{
        cleanup_with(freep) struct partition *p = calloc(1, sizeof(*p));
        int r;

        if (!p)
                return -ENOMEM;
        if (strlen(topic) >= sizeof(p->topic))
                return -EINVAL;
        memcpy(p->topic, topic, strlen(topic) + 1);
        r = init_locks(p);
        if (r < 0)
                return r;
        p->env = env;
        p->index = index;
        p->log = log;
        p->leader_id = p->leader_epoch = p->partition_epoch = -1;
        p->min_isr = 1;
        p->hw = MAX(partition_log_start_offset(log), MIN(hw, partition_log_end_offset(log)));
        atomic_init(&p->refs, 1);
        list_init(&p->isr_node);
        list_init(&p->want_node);
        p->want_leader = p->want_epoch = -1;
        *ret = TAKE_PTR(p);
        return 0;
}

struct partition *partition_ref(struct partition *p)
{
        atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
        return p;
}

struct partition *partition_unref(struct partition *p)
{
        if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        leader_done(&p->leader);
        free(p->replicas);
        pthread_rwlock_destroy(&p->reading);
        pthread_mutex_destroy(&p->lock);
        purgatory_key_done(&p->fetch_key);
        purgatory_key_done(&p->produce_key);
        free(p);
        return NULL;
}

void partition_detach_log(struct partition *p)
{
        pthread_mutex_lock(&p->lock);
        pthread_rwlock_wrlock(&p->reading);
        partition_set_role(p, REPLICA_NONE);
        p->log = NULL;
        pthread_rwlock_unlock(&p->reading);
        pthread_mutex_unlock(&p->lock);
}

void partition_set_min_isr(struct partition *p, int32_t min_isr, int64_t now_ms,
                           struct partition_effects *ret)
{
        bool lease = partition_lease_valid(p);
        struct leader_effects e;

        *ret = (struct partition_effects){0};
        pthread_mutex_lock(&p->lock);
        p->min_isr = min_isr;
        if (p->role == REPLICA_LEADER) {
                p->leader.may_commit = lease;
                leader_set_min_isr(&p->leader, min_isr, now_ms, &e);
                partition_take_effects(p, &e, ret);
        }
        pthread_mutex_unlock(&p->lock);
}

void partition_set_log_config(struct partition *p, const struct log_config *c)
{
        pthread_mutex_lock(&p->lock);
        if (p->log)
                partition_log_set_config(p->log, c);
        pthread_mutex_unlock(&p->lock);
}

/* --- LeaderAndIsr --- */

/* §4.2 item 2. A replica that was stopped or has stepped down leads and follows nothing, so that its own
 * epoch may be assigned to it again; equality proves that nobody else led in between (zk-fencing §2.5 rule
 * 4). */
static int16_t accept(const struct partition *p, const struct partition_assignment *a,
                      enum partition_outcome *ret)
{
        *ret = PARTITION_REFUSED;
        if (!ids_contain(a->replicas, a->n_replicas, p->env->broker_id))
                return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        if (!p->log || p->role == REPLICA_OFFLINE)
                return KAFKA_STORAGE_ERROR;
        if (!uuid_is_zero(&p->topic_id) && !uuid_is_zero(&a->topic_id) &&
            !uuid_equal(&p->topic_id, &a->topic_id))
                return KAFKA_INCONSISTENT_TOPIC_ID; /* a new topic of that name: the old one must be deleted
                                                       first */
        if (a->leader_epoch < p->leader_epoch)
                return KAFKA_STALE_CONTROLLER_EPOCH;
        if (a->leader_epoch > p->leader_epoch || p->role == REPLICA_NONE) {
                *ret = a->leader == p->env->broker_id ? PARTITION_LEADS : PARTITION_FOLLOWS;
                return KAFKA_NONE;
        }
        if (a->leader != p->leader_id || a->partition_epoch < p->partition_epoch)
                return KAFKA_STALE_CONTROLLER_EPOCH;
        *ret = a->partition_epoch == p->partition_epoch ? PARTITION_UNCHANGED : PARTITION_UPDATED;
        return KAFKA_NONE;
}

/* The epoch is recorded where our log ends before the first record of it can be appended (KAFKA-7415). */
static int begin_leading(struct partition *p, const struct partition_assignment *a, bool lease,
                         int64_t now_ms, struct partition_effects *effects)
{
        struct leader_effects e;
        struct leader_start s = {
                .self = p->env->broker_id,
                .epoch = a->leader_epoch,
                .partition_epoch = a->partition_epoch,
                .min_isr = p->min_isr,
                .replicas = a->replicas,
                .isr = a->isr,
                .n_replicas = a->n_replicas,
                .n_isr = a->n_isr,
                .lag_max_ms = p->env->lag_max_ms,
                .leo = partition_log_end_offset(p->log),
                .hw = p->hw,
                .now_ms = now_ms,
                .was_leader = p->role == REPLICA_LEADER,
                .may_commit = lease,
        };
        int r;

        if (a->leader_epoch > partition_log_latest_epoch(p->log)) {
                r = partition_log_assign_epoch(p->log, a->leader_epoch, s.leo);
                if (r < 0)
                        return r;
        }
        r = leader_begin(&p->leader, &s, &e);
        if (r < 0)
                return r;
        partition_take_effects(p, &e, effects);
        return 0;
}

static void take_assignment(struct partition *p, const struct partition_assignment *a, int32_t *replicas)
{
        free(p->replicas);
        p->replicas = replicas;
        p->n_replicas = a->n_replicas;
        partition_changed(p);
        p->leader_id = a->leader;
        p->leader_epoch = a->leader_epoch;
        p->partition_epoch = a->partition_epoch;
        if (!uuid_is_zero(&a->topic_id))
                p->topic_id = a->topic_id;
}

static int apply_locked(struct partition *p, const struct partition_assignment *a,
                        enum partition_outcome outcome, bool lease, int64_t now_ms,
                        struct partition_effects *effects)
{
        bool leads = a->leader == p->env->broker_id;
        cleanup_with(freep) int32_t *replicas = calloc((size_t)a->n_replicas, sizeof(int32_t));
        int r;

        if (!replicas)
                return -ENOMEM;
        memcpy(replicas, a->replicas, (size_t)a->n_replicas * sizeof(int32_t));
        if (leads) {
                r = begin_leading(p, a, lease, now_ms, effects);
                if (r < 0)
                        return r;
        }
        take_assignment(p, a, TAKE_PTR(replicas));
        if (leads)
                partition_set_role(p, REPLICA_LEADER);
        else if (outcome == PARTITION_FOLLOWS) {
                p->caught_up = false;
                partition_set_role(p, REPLICA_FOLLOWER);
        }
        return 0;
}

int16_t partition_apply(struct partition *p, const struct partition_assignment *a, int64_t now_ms,
                        enum partition_outcome *ret, enum replica_role *ret_old,
                        struct partition_effects *ret_effects)
{
        bool lease = partition_lease_valid(p);
        int16_t error;
        int r;

        *ret_effects = (struct partition_effects){0};
        pthread_mutex_lock(&p->lock);
        *ret_old = p->role;
        error = accept(p, a, ret);
        if (error == KAFKA_NONE && *ret != PARTITION_UNCHANGED) {
                r = apply_locked(p, a, *ret, lease, now_ms, ret_effects);
                if (r < 0) {
                        *ret = PARTITION_REFUSED;
                        error = r == -ENOMEM ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_STORAGE_ERROR;
                }
        }
        pthread_mutex_unlock(&p->lock);
        return error;
}

bool partition_is_unclaimed(struct partition *p, const struct uuid *topic_id)
{
        bool unclaimed;

        pthread_mutex_lock(&p->lock);
        unclaimed = p->log && p->role == REPLICA_NONE && p->leader_epoch < 0 &&
                    uuid_equal(&p->topic_id, topic_id);
        pthread_mutex_unlock(&p->lock);
        return unclaimed;
}

int16_t partition_stop(struct partition *p, int32_t leader_epoch)
{
        int16_t error = KAFKA_NONE;

        pthread_mutex_lock(&p->lock);
        if (leader_epoch >= 0 && leader_epoch < p->leader_epoch)
                error = KAFKA_FENCED_LEADER_EPOCH;
        else if (p->role == REPLICA_OFFLINE)
                error = KAFKA_STORAGE_ERROR;
        else
                partition_set_role(p, REPLICA_NONE);
        pthread_mutex_unlock(&p->lock);
        return error;
}

bool partition_step_down(struct partition *p)
{
        bool led;

        pthread_mutex_lock(&p->lock);
        led = p->role == REPLICA_LEADER;
        if (led)
                partition_set_role(p, REPLICA_NONE);
        pthread_mutex_unlock(&p->lock);
        return led;
}

/* --- produce --- */

static int16_t append_error(int r)
{
        static const struct {
                int r;
                int16_t error;
        } errors[] = {
                {0, KAFKA_NONE},
                {-EBADMSG, KAFKA_CORRUPT_MESSAGE},
                {-EMSGSIZE, KAFKA_MESSAGE_TOO_LARGE},
                {-EINVAL, KAFKA_INVALID_RECORD},
                {-EPROTO, KAFKA_UNSUPPORTED_FOR_MESSAGE_FORMAT},
                {-ENOPROTOOPT, KAFKA_UNSUPPORTED_COMPRESSION_TYPE},
                {-EILSEQ, KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER},
                {-ESTALE, KAFKA_INVALID_PRODUCER_EPOCH},
                {-EIO, KAFKA_STORAGE_ERROR},
                {-ENOSPC, KAFKA_STORAGE_ERROR},
                {-EMFILE, KAFKA_STORAGE_ERROR},         /* passes: clients try again */
                {-EPERM, KAFKA_NOT_LEADER_OR_FOLLOWER}, /* the log knows a later epoch than ours */
        };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                if (errors[i].r == r)
                        return errors[i].error;
        }
        return KAFKA_UNKNOWN_SERVER_ERROR;
}

/* Under the lock: as leader, or why not. */
int16_t partition_leader_error(const struct partition *p, bool lease)
{
        if (p->role == REPLICA_OFFLINE)
                return KAFKA_STORAGE_ERROR;
        return p->role == REPLICA_LEADER && lease ? KAFKA_NONE : KAFKA_NOT_LEADER_OR_FOLLOWER;
}

static void append_locked(struct partition *p, uint8_t *data, size_t len, struct partition_append *ret,
                          struct partition_effects *effects)
{
        struct log_append_info info;
        struct leader_effects e;
        int r;

        r = partition_log_append_leader(p->log, data, len, p->leader_epoch, clock_real_ms(), &info);
        ret->error = append_error(r);
        if (r == -EIO)
                partition_go_offline(p, r); /* KAFKA-10778: no append after a failed one */
        if (r < 0)
                return;
        ret->base_offset = info.first_offset;
        ret->required_offset = info.last_offset + 1;
        if (info.duplicate)
                return; /* R64: answered when the original is committed */
        effects->appended = true;
        partition_changed(p);
        leader_on_append(&p->leader, partition_log_end_offset(p->log), clock_mono_ms(), &e);
        partition_take_effects(p, &e, effects);
}

/* KAFKA_NONE, or why the batch before this one was refused a moment ago. */
static int16_t refused_before(struct partition *p, const uint8_t *data, size_t len)
{
        if (p->refusal == KAFKA_NONE)
                return KAFKA_NONE;
        if (clock_mono_ms() - p->refusal_ms > GAP_GRACE_MS) {
                p->refusal = KAFKA_NONE;
                return KAFKA_NONE;
        }
        return partition_log_skips_sequences(p->log, data, len) ? p->refusal : KAFKA_NONE;
}

void partition_produce(struct partition *p, uint8_t *data, size_t len, int16_t acks,
                       struct partition_append *ret, struct partition_effects *ret_effects)
{
        bool lease = partition_lease_valid(p);

        *ret_effects = (struct partition_effects){0};
        *ret = (struct partition_append){.base_offset = -1, .log_start_offset = -1};
        pthread_mutex_lock(&p->lock);
        ret->term = p->term;
        ret->error = partition_leader_error(p, lease);
        if (ret->error == KAFKA_NONE && acks == -1 &&
            leader_isr_size(&p->leader) < leader_effective_min_isr(&p->leader))
                ret->error = KAFKA_NOT_ENOUGH_REPLICAS; /* I11: nothing appended */
        if (ret->error != KAFKA_NONE)
                note_refusal(p, ret->error);
        else
                ret->error = refused_before(p, data, len);
        if (ret->error == KAFKA_NONE) {
                p->leader.may_commit = lease;
                append_locked(p, data, len, ret, ret_effects);
        }
        if (p->log && ret->error == KAFKA_NONE)
                ret->log_start_offset = partition_log_start_offset(p->log);
        pthread_mutex_unlock(&p->lock);
        /* The append may have taken long: with acks 0 and 1 this is the acknowledgement, so it is asked
         * again. */
        if (ret->error == KAFKA_NONE && !partition_lease_valid(p))
                ret->error = KAFKA_NOT_LEADER_OR_FOLLOWER;
}

static bool ack_locked(const struct partition *p, uint32_t term, int64_t required_offset, bool lease,
                       int16_t *ret_error)
{
        *ret_error = partition_leader_error(p, lease);
        if (!p->log)
                *ret_error = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        if (*ret_error != KAFKA_NONE)
                return true;
        /* R73: lost and regained; what was appended may have been truncated in between. */
        if (p->term != term) {
                *ret_error = KAFKA_NOT_LEADER_OR_FOLLOWER;
                return true;
        }
        if (p->hw < required_offset)
                return false;
        if (leader_maximal_isr_size(&p->leader) < leader_effective_min_isr(&p->leader))
                *ret_error = KAFKA_NOT_ENOUGH_REPLICAS_AFTER_APPEND;
        return true;
}

bool partition_ack_state(struct partition *p, uint32_t term, int64_t required_offset, int16_t *ret_error)
{
        bool lease = partition_lease_valid(p), decided;

        pthread_mutex_lock(&p->lock);
        decided = ack_locked(p, term, required_offset, lease, ret_error);
        pthread_mutex_unlock(&p->lock);
        return decided;
}
