/* Replicas of new partitions, as the tools of Kafka 0.8 place them or as somebody lists them by hand (R58,
 * R59; the algorithm and its error texts are base/replica_assignment.h). What is handed out lives in the
 * arena. */
#pragma once

#include "base/arena.h"
#include "base/replica_assignment.h"
#include "zk/znode.h"

/* "1:2,2:3": replicas of partition @first, of @first + 1 … -EINVAL: not of that form. */
int placement_parse(struct arena *a, const char *text, int32_t first, struct znode_topic *ret) must_check;
/* Is each list non-empty, without repetition, of live brokers, and as long as the first? -EINVAL and why. */
int placement_check(const struct znode_topic *t, const int32_t *brokers, int32_t n_brokers,
                    char error[ASSIGNMENT_TEXT_SIZE]) must_check;
/* -EINVAL and why. */
int placement_make(struct arena *a, const struct assignment_request *r, struct znode_topic *ret,
                   char error[ASSIGNMENT_TEXT_SIZE]) must_check;
/* A random start for a new topic. */
void placement_random_start(struct assignment_request *r);
