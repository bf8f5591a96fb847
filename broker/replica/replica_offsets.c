/* ListOffsets and OffsetForLeaderEpoch, and what operators ask: answered from what is here, at once. */
#include "replica/replica_internal.h"

#include <errno.h>
#include <string.h>

#include "wire/list_offsets.h"
#include "wire/offset_for_leader_epoch.h"

/* Negative timestamps are questions of their own, and each came with a version: -1 and -2 are as old as we
 * serve. */
static bool timestamp_known(int64_t timestamp, int16_t version)
{
        static const int16_t first_version[] = {[1] = 0, [2] = 0, [3] = 7, [4] = 8, [5] = 9};

        return timestamp >= 0 ||
               (timestamp > -(int64_t)ARRAY_SIZE(first_version) && version >= first_version[-timestamp]);
}

/* The answer where @to's partition was named first, so that one request cannot ask a thousand times for what
 * takes long. NULL: here. Out of memory: @to, with an error. */
static struct list_offsets_response_partition *seen_before(struct map *seen, struct wire_str topic,
                                                           struct list_offsets_response_partition *to)
{
        uint8_t key[TOPIC_NAME_SIZE + sizeof(int32_t)];
        size_t n = (size_t)MIN(MAX(topic.len, 0), TOPIC_NAME_SIZE - 1);

        if (n > 0)
                memcpy(key, topic.data, n);
        memcpy(key + n, &to->partition_index, sizeof(int32_t));
        n += sizeof(int32_t);
        switch (map_put(seen, key, n, to)) {
        case 0:
                return NULL;
        case -EEXIST:
                return map_get(seen, key, n);
        default:
                to->error_code = KAFKA_UNKNOWN_SERVER_ERROR;
                return to;
        }
}

static void list_one(struct replica_manager *m, struct wire_str topic, const struct list_offsets_request *req,
                     int16_t version, const struct list_offsets_request_partition *q,
                     struct list_offsets_response_partition *to)
{
        cleanup_with(partition_unrefp) struct partition *p = replica_find(m, topic, q->partition_index);
        struct partition_offset o;

        if (!p) {
                to->error_code = replica_missing_error(m, topic, q->partition_index);
                return;
        }
        if (!timestamp_known(q->timestamp, version)) {
                to->error_code = KAFKA_UNSUPPORTED_VERSION;
                return;
        }
        to->error_code =
                partition_list_offset(p, q->timestamp, q->current_leader_epoch, req->replica_id >= 0, &o);
        to->offset = o.offset;
        to->timestamp = o.timestamp;
        to->leader_epoch = o.leader_epoch;
}

static void list_unless_seen(struct replica_manager *m, struct wire_str topic,
                             const struct list_offsets_request *req, int16_t version, struct map *seen,
                             const struct list_offsets_request_partition *q,
                             struct list_offsets_response_partition *to)
{
        struct list_offsets_response_partition *first;

        to->partition_index = q->partition_index;
        first = seen_before(seen, topic, to);
        if (!first) {
                list_one(m, topic, req, version, q, to);
        } else if (first != to) { /* as in Kafka, for each time it is named */
                to->error_code = first->error_code = KAFKA_INVALID_REQUEST;
                first->offset = first->timestamp = first->leader_epoch = -1;
        }
        /* Clients before v5 do not know the code; both mean: ask again soon. */
        if (version < 5 && to->error_code == KAFKA_OFFSET_NOT_AVAILABLE)
                to->error_code = KAFKA_LEADER_NOT_AVAILABLE;
        if (version < 4) /* these cannot carry it, and it is not one to drop in silence */
                to->leader_epoch = -1;
}

int replica_manager_list_offsets(struct replica_manager *m, const struct list_offsets_request *req,
                                 int16_t version, struct arena *a, struct list_offsets_response *ret)
{
        cleanup_with(map_freep) struct map *seen = map_new();
        size_t n = (size_t)MAX(req->topics.n, 0);

        if (!seen)
                return -ENOMEM;
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
                for (int32_t j = 0; j < t->partitions.n; j++)
                        list_unless_seen(m, t->name, req, version, seen, &t->partitions.items[j],
                                         &to->partitions.items[j]);
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
