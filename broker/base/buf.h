/* Growable byte buffer with a ceiling stated at birth. Not thread-safe; embed or pass by pointer. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/util.h"

struct buf {
        uint8_t *data;
        size_t len, cap, ceiling; /* ceiling 0: SIZE_MAX/2 */
};

void buf_init(struct buf *b, size_t ceiling);
void buf_done(struct buf *b); /* frees; leaves an empty buffer with the same ceiling */
static inline void buf_donep(struct buf *b)
{
        buf_done(b);
}
/* Make room for @n more bytes. -ENOMEM, or -EMSGSIZE past the ceiling. */
int buf_reserve(struct buf *b, size_t n) must_check;
int buf_append(struct buf *b, const void *p, size_t n) must_check;
int buf_append_str(struct buf *b, const char *s) must_check;
int buf_printf(struct buf *b, const char *fmt, ...) must_check printf_like(2, 3);
void buf_consume(struct buf *b, size_t n); /* drop the first n bytes */
/* NUL-terminate (not counted in len) and return the text, or NULL on -ENOMEM. */
const char *buf_cstr(struct buf *b);
struct buf buf_take(struct buf *b); /* move out; leaves @b empty */
