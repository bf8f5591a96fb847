/* Where clients should turn instead (D9, KIP-951): the new leader's id, epoch and endpoint. */
#include "replica/replica_internal.h"

static void add_endpoint(struct replica_manager *m, struct replica_hints *hints, int32_t id)
{
        for (int32_t i = 0; i < hints->n; i++) {
                if (hints->brokers[i].id == id)
                        return;
        }
        /* Only brokers that the cluster's metadata shows: LeaderAndIsr's endpoints are for brokers, not for
         * clients. */
        if (hints->endpoints && hints->n < REPLICA_HINTS_MAX &&
            metadata_cache_broker(m->metadata, id, &hints->brokers[hints->n]))
                hints->n++;
}

void replica_hint(struct replica_manager *m, struct wire_str topic, int32_t index, struct partition *p,
                  int16_t error, struct replica_hints *hints, int32_t *ret_leader_id,
                  int32_t *ret_leader_epoch)
{
        struct metadata_leader cached;
        int32_t id = -1, epoch = -1;

        *ret_leader_id = *ret_leader_epoch = -1;
        if (!hints->leaders)
                return;
        if (p)
                partition_leader_hint(p, &id, &epoch);
        if (metadata_cache_leader(m->metadata, topic, index, &cached) && cached.leader_epoch > epoch) {
                id = cached.leader_id;
                epoch = cached.leader_epoch;
        }
        /* Who has just refused to lead must not send the client back to itself. */
        if (id < 0 || (id == m->options.broker_id && error == KAFKA_NOT_LEADER_OR_FOLLOWER))
                return;
        *ret_leader_id = id;
        *ret_leader_epoch = epoch;
        add_endpoint(m, hints, id);
}
