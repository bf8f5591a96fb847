/* A byte buffer that doubles until it meets its ceiling. */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAPACITY 64

static size_t ceiling_of(const struct buf *b)
{
        return b->ceiling ? b->ceiling : SIZE_MAX / 2;
}

void buf_init(struct buf *b, size_t ceiling)
{
        *b = (struct buf){.ceiling = ceiling};
}

void buf_done(struct buf *b)
{
        free(b->data);
        buf_init(b, b->ceiling);
}

static int set_capacity(struct buf *b, size_t cap)
{
        uint8_t *p = realloc(b->data, cap);

        if (!p)
                return -ENOMEM;
        b->data = p;
        b->cap = cap;
        return 0;
}

int buf_reserve(struct buf *b, size_t n)
{
        size_t ceiling = ceiling_of(b), need, cap;

        if (n > ceiling || b->len > ceiling - n)
                return -EMSGSIZE;
        need = b->len + n;
        if (need <= b->cap)
                return 0;
        cap = b->cap > ceiling / 2 ? ceiling : MAX(b->cap * 2, (size_t)FIRST_CAPACITY);
        cap = MIN(MAX(cap, need), ceiling);
        return set_capacity(b, cap);
}

int buf_append(struct buf *b, const void *p, size_t n)
{
        int r;

        if (n == 0)
                return 0;
        r = buf_reserve(b, n);
        if (r < 0)
                return r;
        memcpy(b->data + b->len, p, n);
        b->len += n;
        return 0;
}

int buf_append_str(struct buf *b, const char *s)
{
        return buf_append(b, s, strlen(s));
}

/* The byte for a NUL is not the content's: it may lie one past the ceiling. */
static int reserve_with_nul(struct buf *b, size_t n)
{
        int r = buf_reserve(b, n);

        if (r < 0)
                return r;
        if (b->len + n < b->cap)
                return 0;
        return set_capacity(b, b->len + n + 1);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
        va_list ap;
        int n, r;

        va_start(ap, fmt);
        n = vsnprintf(NULL, 0, fmt, ap);
        va_end(ap);
        if (n < 0)
                return -EINVAL;
        r = reserve_with_nul(b, (size_t)n);
        if (r < 0)
                return r;
        va_start(ap, fmt);
        (void)vsnprintf((char *)b->data + b->len, (size_t)n + 1, fmt, ap); /* measured above */
        va_end(ap);
        b->len += (size_t)n;
        return 0;
}

void buf_consume(struct buf *b, size_t n)
{
        n = MIN(n, b->len);
        if (n == 0)
                return;
        b->len -= n;
        memmove(b->data, b->data + n, b->len);
}

const char *buf_cstr(struct buf *b)
{
        if (reserve_with_nul(b, 0) < 0)
                return NULL;
        b->data[b->len] = '\0';
        return (const char *)b->data;
}

struct buf buf_take(struct buf *b)
{
        struct buf taken = *b;

        buf_init(b, b->ceiling);
        return taken;
}
