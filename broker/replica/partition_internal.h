/* Shared by the files that make up a partition; all under its lock unless said otherwise. */
#pragma once

#include "replica/partition.h"

static inline void partition_changed(struct partition *p)
{
        atomic_fetch_add_explicit(&p->changes, 1, memory_order_release);
}
void partition_set_role(struct partition *p, enum replica_role role);
void partition_go_offline(struct partition *p, int r);
bool partition_lease_valid(const struct partition *p); /* without the lock: calls out */
void partition_take_effects(struct partition *p, const struct leader_effects *e,
                            struct partition_effects *ret);
int16_t partition_leader_error(const struct partition *p, bool lease);
/* KIP-320: -1 is not checked. */
int16_t partition_epoch_error(const struct partition *p, int32_t current_leader_epoch);
