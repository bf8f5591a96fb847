/* The values of leader.replication.throttled.replicas and follower.replication.throttled.replicas (KIP-73):
 * "partition:broker,partition:broker", or "*" for every replica of the topic, or empty for none. Pure. */
#pragma once

#include <stdint.h>

#include "base/util.h"

/* White space around an element is allowed, as in Kafka. */
bool throttled_list_valid(const char *list);
/* Is the replica of @partition on @broker in it? @list NULL: no. What is malformed is in no list. */
bool throttled_list_has(const char *list, int32_t partition, int32_t broker);
