/* The partitions that a tool is to work on: from a file, from --topic and --partition, or all; and which of
 * them do not exist. */
#pragma once

#include "cli/cluster.h"

/* Drop from @l what @m does not know, with a line on stderr for each: "Skipping DOING of partition [t,p]
 * since it doesn't exist". Returns how many were dropped. */
size_t partitions_drop_unknown(struct znode_partition_list *l, const struct metadata_response *m,
                               const char *doing);
/* All partitions of the cluster, or of @topic (which must exist in @m), or one of it (@partition >= 0, which
 * need not exist). -ENOMEM. */
int partitions_choose(const struct metadata_response *m, const char *topic, int32_t partition,
                      struct znode_partition_list *ret) must_check;
/* By topic and number: what belongs to a topic stands together, as requests want it. */
void partitions_sort(struct znode_partition_list *l);
/* The items from @at on that belong to the same topic, in a sorted list. */
size_t partitions_run(const struct znode_partition_list *l, size_t at);
/* In a sorted list; NULL: not there. */
const struct znode_partition *partitions_find(const struct znode_partition_list *l, const char *topic,
                                              int32_t partition);
/* "[t,0], [t,1]" */
void partitions_print(const struct znode_partition_list *l, FILE *to);
