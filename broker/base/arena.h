/* Bump allocator for memory that lives exactly as long as one request. Not thread-safe. */
#pragma once

#include <stddef.h>

#include "base/util.h"

struct arena {
        struct arena_chunk *chunks;
        size_t used_bytes, limit_bytes;
        size_t held_bytes; /* of the heap, for these */
};

/* @limit_bytes: arena_alloc() fails past it (0: no limit). */
void arena_init(struct arena *a, size_t limit_bytes);
void arena_done(struct arena *a); /* frees everything; the arena can be used again */
static inline void arena_donep(struct arena *a)
{
        arena_done(a);
}
/* Zeroed, 16-byte aligned; NULL on out of memory or past the limit. n * size is checked for overflow. */
void *arena_alloc(struct arena *a, size_t n, size_t size) must_check;
char *arena_strndup(struct arena *a, const char *s, size_t n) must_check;
