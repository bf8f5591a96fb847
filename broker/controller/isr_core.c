/* Checks in an order that matters; see kafka-semantics §4.3 and items 45–48 of §5.2. Pure. */
#include "controller/isr_core.h"

#include <stddef.h>

#include "wire/error.h"
#include "zk/znode.h"

static const struct isr_member *member(const struct isr_current *cur, int32_t id)
{
        for (int i = 0; i < cur->n_members; i++)
                if (cur->members[i].id == id)
                        return &cur->members[i];
        return NULL;
}

static bool same_set(const struct isr_current *cur, const struct isr_proposal *p)
{
        if (cur->n_isr != p->n_isr)
                return false;
        for (int i = 0; i < p->n_isr; i++)
                if (!ids_contain(cur->isr, cur->n_isr, p->isr[i]) ||
                    !ids_contain(p->isr, p->n_isr, cur->isr[i]))
                        return false;
        return true;
}

/* R22: never empty, never without its leader; and no member that is not a replica. */
static bool well_formed(const struct isr_current *cur, const struct isr_proposal *p)
{
        if (p->n_isr <= 0 || p->n_isr > ZNODE_MAX_REPLICAS || p->leader_recovery_state != 0 ||
            !ids_contain(p->isr, p->n_isr, cur->leader))
                return false;
        for (int i = 0; i < p->n_isr; i++)
                if (!member(cur, p->isr[i]) || ids_contain(p->isr, i, p->isr[i]))
                        return false;
        return true;
}

/* Only those that join are looked at: a pure shrink must not fail because another member is gone, and a
 * leader that drains must still be able to shrink and to admit others (KAFKA-14140; D7). An epoch that is not
 * the registered one is a fetch of an earlier life (KAFKA-15221). */
static bool eligible(const struct isr_current *cur, const struct isr_proposal *p, int i)
{
        const struct isr_member *m = member(cur, p->isr[i]);

        if (ids_contain(cur->isr, cur->n_isr, p->isr[i]))
                return true;
        if (!m->assigned || !m->alive || m->draining)
                return false;
        return !p->epochs || p->epochs[i] == -1 || p->epochs[i] == m->epoch;
}

int16_t isr_proposal_check(const struct isr_current *cur, const struct isr_proposal *p, bool *ret_unchanged)
{
        *ret_unchanged = false;
        /* The leader knows more than we do: we are an old controller, and it must ask the new one
         * (KAFKA-14154). */
        if (p->leader_epoch > cur->leader_epoch || p->partition_epoch > cur->partition_epoch)
                return KAFKA_NOT_CONTROLLER;
        if (p->leader_epoch < cur->leader_epoch)
                return KAFKA_FENCED_LEADER_EPOCH;
        if (p->broker_id != cur->leader)
                return KAFKA_INVALID_REQUEST;
        /* Before the version check: the reply of an earlier attempt may have been lost (KAFKA-14144). */
        if (same_set(cur, p)) {
                *ret_unchanged = true;
                return KAFKA_NONE;
        }
        if (p->partition_epoch < cur->partition_epoch)
                return KAFKA_INVALID_UPDATE_VERSION;
        if (!well_formed(cur, p))
                return KAFKA_INVALID_REQUEST;
        for (int i = 0; i < p->n_isr; i++)
                if (!eligible(cur, p, i))
                        return p->version < 2 ? KAFKA_OPERATION_NOT_ATTEMPTED : KAFKA_INELIGIBLE_REPLICA;
        return KAFKA_NONE;
}
