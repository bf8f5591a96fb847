/* What stepdown reassign is to do, from the files that people give it (R61). Pure but for reading them. */
#pragma once

#include "cli/cluster.h"
#include "cli/json_file.h"

/* New replicas for every partition of the topics, spread over @brokers in the order given, by the algorithm
 * of §1.7 with a random start; each topic keeps the replication factor of its first partition. Topics that @m
 * does not know are named on stderr and counted in *ret_skipped. -EINVAL and a sentence: fewer brokers than
 * replicas. */
int reassign_spread(const struct topic_names *topics, const struct metadata_response *m,
                    const int32_t *brokers, int32_t n_brokers, struct znode_partition_list *ret,
                    size_t *ret_skipped, char error[JSON_FILE_TEXT_SIZE]) must_check;
/* "0,1,2". -EINVAL: not of that form, or one id twice. */
int reassign_parse_brokers(struct arena *a, const char *text, int32_t **ret, int32_t *ret_n) must_check;
/* The same partitions with the replicas they have now, to save for a way back. */
int reassign_current(const struct znode_partition_list *l, const struct metadata_response *m,
                     struct znode_partition_list *ret) must_check;
/* Does each list name live brokers only? -EINVAL and a sentence. */
int reassign_check_brokers(const struct znode_partition_list *l, const struct metadata_response *m,
                           char error[JSON_FILE_TEXT_SIZE]) must_check;
