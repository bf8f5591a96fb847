/* What a reassignment makes of a partition's replicas (KIP-455). Pure.
 *
 * Each replica carries two marks. Without `removing` it belongs to the target; without `adding` it belonged
 * to the assignment that the reassignment began with. Both marks: a member of a target that was given up for
 * another; it is on its way out, and a cancellation does not bring it back. Kafka reads the same from the
 * topic's znode: target = replicas - removing, origin = replicas - adding. */
#pragma once

#include "controller/context.h"

#define ASSIGNMENT_MAX (ZNODE_MAX_REPLICAS / 2)

/* The marks when @target becomes the target; @target_n 0: what it began with (cancellation). Order: target,
 * then the rest as it was. Returns the number of entries in @ret, 0: too many. */
size_t assignment_retarget(const struct ctx_assigned *now, size_t n, const int32_t *target, size_t target_n,
                           struct ctx_assigned ret[ASSIGNMENT_MAX]);
/* The target alone, without marks: how the partition looks when it is over. */
size_t assignment_finish(const struct ctx_assigned *now, size_t n, struct ctx_assigned ret[ASSIGNMENT_MAX]);
/* Is it this target already, in this order? */
bool assignment_targets(const struct ctx_assigned *now, size_t n, const int32_t *target, size_t target_n);
/* Nothing new is wanted: the target is a part of what it began with, and all of that (cancellation). */
bool assignment_is_cancellation(const struct ctx_assigned *now, size_t n);
