/* Bump allocation out of a chain of chunks; only the newest chunk is filled. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Many arenas stay small and live long, those of requests that wait; so the first chunk is no page. */
#define FIRST_CHUNK_BYTES 1024
#define CHUNK_BYTES       4096
#define ALIGNMENT         16

struct arena_chunk {
        struct arena_chunk *next;
        size_t used, cap;
        _Alignas(ALIGNMENT) uint8_t data[];
};

void arena_init(struct arena *a, size_t limit_bytes)
{
        *a = (struct arena){.limit_bytes = limit_bytes};
}

void arena_done(struct arena *a)
{
        while (a->chunks) {
                struct arena_chunk *c = a->chunks;

                a->chunks = c->next;
                free(c);
        }
        a->used_bytes = a->held_bytes = 0;
}

/* A request larger than a chunk gets a chunk of its own size, so that no count of elements is too large
 * as long as the limit allows it. */
static struct arena_chunk *chunk_with_room(struct arena *a, size_t bytes)
{
        struct arena_chunk *c = a->chunks;
        size_t cap;

        if (c && c->cap - c->used >= bytes)
                return c;
        cap = MAX(bytes, (size_t)(c ? CHUNK_BYTES : FIRST_CHUNK_BYTES) - sizeof(struct arena_chunk));
        c = calloc(1, sizeof(*c) + cap); /* zeroed here, and no byte is handed out twice */
        if (!c)
                return NULL;
        c->cap = cap;
        a->held_bytes += sizeof(*c) + cap;
        c->next = a->chunks;
        a->chunks = c;
        return c;
}

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
        struct arena_chunk *c;
        size_t bytes;
        void *p;

        if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
                return NULL;
        /* An empty array still gets an address of its own: NULL means failure and nothing else. */
        bytes = (MAX(bytes, (size_t)1) + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
        if (a->limit_bytes && (bytes > a->limit_bytes || a->used_bytes > a->limit_bytes - bytes))
                return NULL;
        c = chunk_with_room(a, bytes);
        if (!c)
                return NULL;
        p = c->data + c->used;
        c->used += bytes;
        a->used_bytes += bytes;
        return p;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
        char *p;

        if (n == SIZE_MAX)
                return NULL;
        p = arena_alloc(a, n + 1, 1);
        if (p && n > 0)
                memcpy(p, s, n);
        return p; /* the last byte is zero already */
}
