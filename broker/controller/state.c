/* State machines of partitions and replicas: two tables and two setters. */
#include <assert.h>

#include "base/slog.h"
#include "controller/controller_internal.h"

#define BIT(s) (1u << (s))

/*
 *   NonExistent <--> New ---> Online <--> Offline        Online -> Online: next leader
 *        ^                      |            |
 *        '----------------------'------------'           deletion
 */
static const struct {
        const char *name;
        unsigned next; /* states it may change to */
} partition_states[N_PARTITION_STATES] = {
        [PARTITION_NONEXISTENT] = {"NonExistentPartition", BIT(PARTITION_NEW)},
        [PARTITION_NEW] = {"NewPartition",
                           BIT(PARTITION_ONLINE) | BIT(PARTITION_OFFLINE) | BIT(PARTITION_NONEXISTENT)},
        [PARTITION_ONLINE] = {"OnlinePartition",
                              BIT(PARTITION_ONLINE) | BIT(PARTITION_OFFLINE) | BIT(PARTITION_NONEXISTENT)},
        [PARTITION_OFFLINE] = {"OfflinePartition",
                               BIT(PARTITION_ONLINE) | BIT(PARTITION_OFFLINE) | BIT(PARTITION_NONEXISTENT)},
};

/*
 *   NonExistent --> New --> Online <--> Offline --> DeletionStarted --> DeletionSuccessful --> NonExistent
 *                                          ^            |      ^
 *                                          |            v      |
 *                                          '---- DeletionIneligible
 */
static const struct {
        const char *name;
        unsigned next;
} replica_states[N_REPLICA_STATES] = {
        [REPLICA_NONEXISTENT] = {"NonExistentReplica", BIT(REPLICA_NEW)},
        [REPLICA_NEW] = {"NewReplica", BIT(REPLICA_ONLINE) | BIT(REPLICA_OFFLINE) |
                                               BIT(REPLICA_DELETION_STARTED) |
                                               BIT(REPLICA_DELETION_INELIGIBLE)},
        [REPLICA_ONLINE] = {"OnlineReplica", BIT(REPLICA_ONLINE) | BIT(REPLICA_OFFLINE) |
                                                     BIT(REPLICA_DELETION_STARTED) |
                                                     BIT(REPLICA_DELETION_INELIGIBLE)},
        [REPLICA_OFFLINE] = {"OfflineReplica", BIT(REPLICA_ONLINE) | BIT(REPLICA_OFFLINE) |
                                                       BIT(REPLICA_DELETION_STARTED) |
                                                       BIT(REPLICA_DELETION_INELIGIBLE)},
        [REPLICA_DELETION_STARTED] = {"ReplicaDeletionStarted",
                                      BIT(REPLICA_DELETION_SUCCESSFUL) | BIT(REPLICA_DELETION_INELIGIBLE)},
        [REPLICA_DELETION_SUCCESSFUL] = {"ReplicaDeletionSuccessful", BIT(REPLICA_NONEXISTENT)},
        [REPLICA_DELETION_INELIGIBLE] = {"ReplicaDeletionIneligible",
                                         BIT(REPLICA_DELETION_STARTED) | BIT(REPLICA_DELETION_INELIGIBLE)},
};

const char *partition_state_name(enum partition_state s)
{
        return partition_states[s].name;
}

const char *replica_state_name(enum replica_state s)
{
        return replica_states[s].name;
}

bool partition_state_may(enum partition_state from, enum partition_state to)
{
        return partition_states[from].next & BIT(to);
}

bool replica_state_may(enum replica_state from, enum replica_state to)
{
        return replica_states[from].next & BIT(to);
}

/* What must hold of a partition whose state is known (I4). */
static bool partition_check(const struct ctx_partition *p)
{
        if (p->state != PARTITION_ONLINE)
                return true;
        return p->has_state && p->leader >= 0 && ctx_in_isr(p, p->leader);
}

void partition_set_state(struct controller *c, struct ctx_partition *p, enum partition_state to)
{
        enum partition_state from = p->state;

        assert(partition_state_may(from, to));
        p->state = (uint8_t)to;
        assert(partition_check(p));
        if (from == to)
                return;
        if (from == PARTITION_OFFLINE)
                atomic_fetch_sub(&c->offline_partitions, 1);
        if (to == PARTITION_OFFLINE)
                atomic_fetch_add(&c->offline_partitions, 1);
        ctl_log_change(c, "Changed partition [%s,%d] state from %s to %s", p->topic->name, (int)p->number,
                       partition_states[from].name, partition_states[to].name);
}

void replica_set_state(struct controller *c, struct ctx_partition *p, struct ctx_slot *s,
                       enum replica_state to)
{
        enum replica_state from = s->state;

        assert(replica_state_may(from, to));
        s->state = (uint8_t)to;
        /* Online and offline follow a broker's life for all its replicas at once; one line a broker says so.
         * A line a replica made Kafka's failover twice as slow (kafka-semantics §6). */
        if (from == to || to <= REPLICA_OFFLINE)
                return;
        ctl_log_change(c, "Changed replica %d of partition [%s,%d] state from %s to %s", (int)s->broker_id,
                       p->topic->name, (int)p->number, replica_states[from].name, replica_states[to].name);
}
