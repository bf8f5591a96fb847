/* Reassignments over Kafka's protocol (KIP-455). Errors are those of kafka_admin.h. */
#pragma once

#include "cli/cluster.h"

struct reassign_result {
        int16_t error;
        const char *message; /* NULL: none; in the cluster's arena */
};

/* Ask the controller to give each partition of @l, which is sorted, its replicas; @cancel: to stop giving it
 * new ones. @ret: a result for each. -EPROTO: the whole request was refused; c->error says why. */
int reassign_kafka_alter(struct cluster *c, const struct znode_partition_list *l, bool cancel,
                         struct reassign_result *ret) must_check;
/* What is in progress, of the whole cluster. Released with znode_partitions_done(). -EPROTO as above. */
int reassign_kafka_list(struct cluster *c, struct znode_partition_list *ret) must_check;

/* The same, sorted, with what the move is made of; in the cluster's arena. */
struct reassign_moving {
        const char *topic;
        int32_t partition;
        int32_t *replicas, *adding;
        size_t n_replicas, n_adding;
};
int reassign_kafka_moving(struct cluster *c, struct reassign_moving **ret, size_t *ret_n) must_check;
