/* ListOffsets and OffsetForLeaderEpoch, and what operators ask: answered from what is here, at once. */
#include "replica/replica_internal.h"

#include <errno.h>
#include <string.h>

#include "wire/list_offsets.h"
#include "wire/offset_for_leader_epoch.h"

static void list_one(struct replica_manager *m, struct wire_str topic, const struct list_offsets_request *req,
                     const struct list_offsets_request_partition *q,
                     struct list_offsets_response_partition *to)
{
        cleanup_with(partition_unrefp) struct partition *p = replica_find(m, topic, q->partition_index);
        struct partition_offset o;

        to->partition_index = q->partition_index;
        if (!p) {
                to->error_code = replica_missing_error(m, topic, q->partition_index);
                return;
        }
        to->error_code =
                partition_list_offset(p, q->timestamp, q->current_leader_epoch, req->replica_id >= 0, &o);
        to->offset = o.offset;
        to->timestamp = o.timestamp;
        to->leader_epoch = o.leader_epoch;
}

int replica_manager_list_offsets(struct replica_manager *m, const struct list_offsets_request *req,
                                 int16_t version, struct arena *a, struct list_offsets_response *ret)
{
        size_t n = (size_t)MAX(req->topics.n, 0);

        wire_init(&list_offsets_response_wire, ret);
        ret->topics.items = WIRE_NEW(a, list_offsets_response_topic, n);
        if (!ret->topics.items)
                return -ENOMEM;
        ret->topics.n = (int32_t)n;
        for (size_t i = 0; i < n; i++) {
                const struct list_offsets_request_topic *t = &req->topics.items[i];
                struct list_offsets_response_topic *to = &ret->topics.items[i];

                to->name = t->name;
                to->partitions.items =
                        WIRE_NEW(a, list_offsets_response_partition, (size_t)MAX(t->partitions.n, 0));
                if (!to->partitions.items)
                        return -ENOMEM;
                to->partitions.n = MAX(t->partitions.n, 0);
                for (int32_t j = 0; j < t->partitions.n; j++) {
                        list_one(m, t->name, req, &t->partitions.items[j], &to->partitions.items[j]);
                        /* Clients before v5 do not know the code; both mean: ask again soon. */
                        if (version < 5 && to->partitions.items[j].error_code == KAFKA_OFFSET_NOT_AVAILABLE)
                                to->partitions.items[j].error_code = KAFKA_LEADER_NOT_AVAILABLE;
                        if (version < 4) /* these cannot carry it, and it is not one to drop in silence */
                                to->partitions.items[j].leader_epoch = -1;
                }
        }
        return 0;
}

static void end_offset_one(struct replica_manager *m, struct wire_str topic,
                           const struct offset_for_leader_epoch_request_partition *q,
                           struct offset_for_leader_epoch_response_partition *to)
{
        cleanup_with(partition_unrefp) struct partition *p = replica_find(m, topic, q->partition);

        to->partition = q->partition;
        to->error_code = p ? partition_end_offset_for_epoch(p, q->current_leader_epoch, q->leader_epoch,
                                                            &to->leader_epoch, &to->end_offset)
                           : replica_missing_error(m, topic, q->partition);
}

int replica_manager_offset_for_leader_epoch(struct replica_manager *m,
                                            const struct offset_for_leader_epoch_request *req,
                                            int16_t version, struct arena *a,
                                            struct offset_for_leader_epoch_response *ret)
{
        size_t n = (size_t)MAX(req->topics.n, 0);

        (void)version;
        wire_init(&offset_for_leader_epoch_response_wire, ret);
        ret->topics.items = WIRE_NEW(a, offset_for_leader_epoch_response_topic, n);
        if (!ret->topics.items)
                return -ENOMEM;
        ret->topics.n = (int32_t)n;
        for (size_t i = 0; i < n; i++) {
                const struct offset_for_leader_epoch_request_topic *t = &req->topics.items[i];
                struct offset_for_leader_epoch_response_topic *to = &ret->topics.items[i];

                to->topic = t->topic;
                to->partitions.items = WIRE_NEW(a, offset_for_leader_epoch_response_partition,
                                                (size_t)MAX(t->partitions.n, 0));
                if (!to->partitions.items)
                        return -ENOMEM;
                to->partitions.n = MAX(t->partitions.n, 0);
                for (int32_t j = 0; j < t->partitions.n; j++)
                        end_offset_one(m, t->topic, &t->partitions.items[j], &to->partitions.items[j]);
        }
        return 0;
}

/* --- operators --- */

void replica_manager_each(struct replica_manager *m, void (*fn)(const struct replica_info *i, void *userdata),
                          void *userdata)
{
        struct replica_snapshot s;

        if (replica_snapshot(m, &s) < 0)
                return;
        for (size_t i = 0; i < s.n; i++) {
                cleanup_with(arena_donep) struct arena a = {0};
                struct replica_info info;

                arena_init(&a, 0);
                if (partition_info(s.items[i], &a, &info) == 0)
                        fn(&info, userdata);
        }
        replica_snapshot_free(&s);
}

static void count_leader(const struct partition *p, struct replica_counts *c)
{
        int32_t isr = leader_isr_size(&p->leader), min_isr = leader_effective_min_isr(&p->leader);

        c->led++;
        c->led_replicated += p->n_replicas > 1;
        c->under_replicated += isr < leader_assigned_size(&p->leader);
        c->under_min_isr += isr < min_isr;
        c->at_min_isr += isr == min_isr;
}

static void count_one(struct partition *p, struct replica_counts *c)
{
        pthread_mutex_lock(&p->lock);
        c->partitions++;
        c->offline += p->role == REPLICA_OFFLINE;
        if (p->role == REPLICA_LEADER)
                count_leader(p, c);
        if (p->role == REPLICA_FOLLOWER) {
                c->followed++;
                c->lagging += !p->caught_up;
        }
        pthread_mutex_unlock(&p->lock);
}

/* No allocation: a count that could not be taken would read as zero, and unknown is never zero (L1). */
void replica_manager_get_counts(struct replica_manager *m, struct replica_counts *ret)
{
        void *p;

        *ret = (struct replica_counts){.produce_waiting = purgatory_waiting(m->produce),
                                       .fetch_waiting = purgatory_waiting(m->fetch)};
        pthread_rwlock_rdlock(&m->map_lock);
        for (size_t c = 0; map_next(m->partitions, &c, NULL, NULL, &p);)
                count_one(p, ret);
        pthread_rwlock_unlock(&m->map_lock);
}
