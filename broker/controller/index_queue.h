/* A first-in first-out queue of small integers in which each stands at most once. Room is reserved
 * beforehand, so that pushing cannot fail: what has to be told to a broker or written to ZooKeeper is a set
 * of partitions, bounded by their number however long the other side takes (KAFKA-1305). Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct index_queue {
        uint32_t *ring;
        uint64_t *present; /* a bit an integer */
        size_t capacity;   /* integers 0 … capacity-1; also the length of the ring */
        size_t head, count;
        uint64_t pushed, popped; /* positions since birth: pushed == popped + count */
};

void index_queue_done(struct index_queue *q);
/* Make room for integers below @n. -ENOMEM: the queue is as it was. */
int index_queue_reserve(struct index_queue *q, size_t n) must_check;
/* false: it stands in the queue already. */
bool index_queue_push(struct index_queue *q, uint32_t i);
bool index_queue_pop(struct index_queue *q, uint32_t *ret); /* false: empty */
bool index_queue_has(const struct index_queue *q, uint32_t i);
/* Take @i out wherever it stands. O(length) when it does stand there. */
bool index_queue_remove(struct index_queue *q, uint32_t i);
void index_queue_clear(struct index_queue *q);
