/* Ring plus bitmap; see the header. Pure. */
#include "controller/index_queue.h"

#include <errno.h>
#include <string.h>

static size_t words(size_t n)
{
        return (n + 63) / 64;
}

void index_queue_done(struct index_queue *q)
{
        free(q->ring);
        free(q->present);
        *q = (struct index_queue){0};
}

int index_queue_reserve(struct index_queue *q, size_t n)
{
        cleanup_with(freep) uint32_t *ring = NULL;
        cleanup_with(freep) uint64_t *present = NULL;
        size_t capacity = MAX(q->capacity * 2, (size_t)64);

        if (n <= q->capacity)
                return 0;
        capacity = MAX(capacity, n);
        ring = calloc(capacity, sizeof(*ring));
        present = calloc(words(capacity), sizeof(*present));
        if (!ring || !present)
                return -ENOMEM;

        for (size_t k = 0; k < q->count; k++)
                ring[k] = q->ring[(q->head + k) % q->capacity];
        if (q->capacity)
                memcpy(present, q->present, words(q->capacity) * sizeof(*present));
        free(q->ring);
        free(q->present);
        q->ring = TAKE_PTR(ring);
        q->present = TAKE_PTR(present);
        q->capacity = capacity;
        q->head = 0;
        return 0;
}

bool index_queue_has(const struct index_queue *q, uint32_t i)
{
        return i < q->capacity && (q->present[i / 64] >> (i % 64) & 1);
}

bool index_queue_push(struct index_queue *q, uint32_t i)
{
        if (index_queue_has(q, i))
                return false;
        q->ring[(q->head + q->count) % q->capacity] = i;
        q->count++;
        q->pushed++;
        q->present[i / 64] |= UINT64_C(1) << (i % 64);
        return true;
}

bool index_queue_pop(struct index_queue *q, uint32_t *ret)
{
        uint32_t i;

        if (q->count == 0)
                return false;
        i = q->ring[q->head];
        q->head = (q->head + 1) % q->capacity;
        q->count--;
        q->popped++;
        q->present[i / 64] &= ~(UINT64_C(1) << (i % 64));
        *ret = i;
        return true;
}

bool index_queue_remove(struct index_queue *q, uint32_t i)
{
        size_t k = 0;

        if (!index_queue_has(q, i))
                return false;
        while (q->ring[(q->head + k) % q->capacity] != i)
                k++;
        for (; k + 1 < q->count; k++)
                q->ring[(q->head + k) % q->capacity] = q->ring[(q->head + k + 1) % q->capacity];
        q->count--;
        q->popped++;
        q->present[i / 64] &= ~(UINT64_C(1) << (i % 64));
        return true;
}

void index_queue_clear(struct index_queue *q)
{
        if (q->capacity)
                memset(q->present, 0, words(q->capacity) * sizeof(*q->present));
        q->popped += q->count;
        q->head = q->count = 0;
}
