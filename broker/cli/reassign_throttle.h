/* The throttle of stepdown reassign (KIP-73): which replicas and brokers a move concerns, and their settings.
 */
#pragma once

#include "cli/reassign_kafka.h"

/* Before the move of @wanted from @before (the same partitions in the same order) starts: hold what is sent
 * by those that have a replica, and fetched by those that get one, to @rate bytes a second; with it all other
 * moves that are in progress. */
int reassign_throttle_set(struct cluster *c, const struct znode_partition_list *wanted,
                          const struct znode_partition_list *before, int64_t rate) must_check;
/* Take it away from all brokers that live or hold a replica of the topics of @l, which is sorted, and from
 * these topics; when one of them has it: *ret_was. What is done is said on standard output unless @quiet. */
int reassign_throttle_clear(struct cluster *c, const struct znode_partition_list *l,
                            const struct metadata_response *m, bool quiet, bool *ret_was) must_check;
/* Does one of these topics have it? */
int reassign_throttle_find(struct cluster *c, const struct znode_partition_list *l, bool *ret) must_check;
