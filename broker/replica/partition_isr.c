/* A partition's ISR proposals, and what it tells about itself. */
#include "replica/partition_internal.h"

#include <errno.h>
#include <string.h>

#include "wire/error.h"

static int copy_proposal(const struct partition *p, int64_t own_broker_epoch, struct arena *a,
                         struct partition_proposal *ret)
{
        const struct leader *l = &p->leader;
        int32_t n = 0;

        ret->isr = arena_alloc(a, (size_t)l->n_replicas, sizeof(*ret->isr));
        if (!ret->isr)
                return -ENOMEM;
        for (int32_t i = 0; i < l->n_replicas; i++) {
                const struct leader_replica *r = &l->replicas[i];

                if (!r->in_proposal)
                        continue;
                ret->isr[n].id = r->id;
                ret->isr[n++].broker_epoch = r->id == l->self ? own_broker_epoch : r->broker_epoch;
        }
        ret->n_isr = n;
        ret->topic_id = p->topic_id;
        ret->number = l->proposal;
        ret->leader_epoch = l->epoch;
        ret->partition_epoch = l->partition_epoch;
        return 1;
}

int partition_isr_proposal(struct partition *p, int64_t own_broker_epoch, struct arena *a,
                           struct partition_proposal *ret)
{
        int r = 0;

        pthread_mutex_lock(&p->lock);
        if (p->role == REPLICA_LEADER && p->leader.isr_state == ISR_PROPOSED)
                r = copy_proposal(p, own_broker_epoch, a, ret);
        pthread_mutex_unlock(&p->lock);
        return r;
}

void partition_isr_result(struct partition *p, const struct leader_isr_result *a,
                          struct partition_effects *ret)
{
        bool lease = partition_lease_valid(p);
        struct leader_effects e;

        *ret = (struct partition_effects){0};
        pthread_mutex_lock(&p->lock);
        if (p->role == REPLICA_LEADER) {
                p->leader.may_commit = lease;
                leader_on_isr_result(&p->leader, a, &e);
                p->partition_epoch = p->leader.partition_epoch;
                partition_take_effects(p, &e, ret);
        }
        pthread_mutex_unlock(&p->lock);
}

void partition_tick(struct partition *p, int64_t now_ms, struct partition_effects *ret)
{
        bool lease = partition_lease_valid(p);
        struct leader_effects e;

        *ret = (struct partition_effects){0};
        pthread_mutex_lock(&p->lock);
        if (p->role == REPLICA_LEADER) {
                p->leader.may_commit = lease;
                leader_on_tick(&p->leader, now_ms, &e);
                partition_take_effects(p, &e, ret);
        }
        pthread_mutex_unlock(&p->lock);
}

int64_t partition_high_watermark(struct partition *p)
{
        int64_t hw;

        pthread_mutex_lock(&p->lock);
        hw = p->hw;
        pthread_mutex_unlock(&p->lock);
        return hw;
}

int partition_retain(struct partition *p, int64_t now_real_ms)
{
        int r = 0;

        pthread_mutex_lock(&p->lock);
        if (p->log && (p->role == REPLICA_LEADER || p->role == REPLICA_FOLLOWER))
                r = partition_log_retain(p->log, now_real_ms, p->hw);
        if (r > 0)
                partition_changed(p);
        pthread_mutex_unlock(&p->lock);
        return r;
}

void partition_leader_hint(struct partition *p, int32_t *ret_leader_id, int32_t *ret_leader_epoch)
{
        pthread_mutex_lock(&p->lock);
        *ret_leader_id = p->leader_id;
        *ret_leader_epoch = p->leader_epoch;
        pthread_mutex_unlock(&p->lock);
}

static int info_locked(struct partition *p, struct arena *a, struct replica_info *ret)
{
        size_t n_isr = p->role == REPLICA_LEADER ? (size_t)p->leader.n_replicas : 0;
        int32_t *ids = arena_alloc(a, (size_t)p->n_replicas + n_isr + 1, sizeof(int32_t));

        if (!ids)
                return -ENOMEM;
        if (p->n_replicas > 0)
                memcpy(ids, p->replicas, (size_t)p->n_replicas * sizeof(int32_t));
        *ret = (struct replica_info){.topic = p->topic,
                                     .topic_id = p->topic_id,
                                     .partition = p->index,
                                     .role = p->role,
                                     .leader_id = p->leader_id,
                                     .leader_epoch = p->leader_epoch,
                                     .partition_epoch = p->partition_epoch,
                                     .high_watermark = p->hw,
                                     .replicas = ids,
                                     .n_replicas = p->n_replicas,
                                     .isr = ids + p->n_replicas,
                                     .min_isr = p->min_isr};
        for (size_t i = 0; i < n_isr; i++) {
                if (p->leader.replicas[i].in_isr)
                        ids[p->n_replicas + ret->n_isr++] = p->leader.replicas[i].id;
        }
        if (p->role == REPLICA_LEADER) {
                ret->min_isr = leader_effective_min_isr(&p->leader);
                ret->isr_change_pending = p->leader.isr_state != ISR_STEADY;
        }
        if (p->log) {
                ret->start_offset = partition_log_start_offset(p->log);
                ret->end_offset = partition_log_end_offset(p->log);
                ret->size_bytes = partition_log_size_bytes(p->log);
        }
        return 0;
}

int partition_info(struct partition *p, struct arena *a, struct replica_info *ret)
{
        int r;

        pthread_mutex_lock(&p->lock);
        r = info_locked(p, a, ret);
        pthread_mutex_unlock(&p->lock);
        return r;
}
