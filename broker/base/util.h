/* Cleanup attributes and small helpers every file uses. Header-only, no state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define must_check        __attribute__((warn_unused_result))
#define printf_like(a, b) __attribute__((format(printf, a, b)))
#define cleanup_with(fn)  __attribute__((cleanup(fn)))

/* Hand an owned pointer (or fd) over: yields the value and leaves NULL (or -1) behind. */
#define TAKE_PTR(p)                                                                                          \
        ({                                                                                                   \
                __auto_type _taken = (p);                                                                    \
                (p) = NULL;                                                                                  \
                _taken;                                                                                      \
        })
#define TAKE_FD(fd)                                                                                          \
        ({                                                                                                   \
                int _taken = (fd);                                                                           \
                (fd) = -1;                                                                                   \
                _taken;                                                                                      \
        })

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
/* Each use gets names of its own (__COUNTER__), so that nesting them shadows nothing. */
#define MIN(a, b)          PICK_(a, b, <, __COUNTER__)
#define MAX(a, b)          PICK_(a, b, >, __COUNTER__)
#define PICK_(a, b, op, n) PICK__(a, b, op, n)
#define PICK__(a, b, op, n)                                                                                  \
        ({                                                                                                   \
                __auto_type _a##n = (a);                                                                     \
                __auto_type _b##n = (b);                                                                     \
                _a##n op _b##n ? _a##n : _b##n;                                                              \
        })
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Is @id among @ids? Lists of replicas are short. */
static inline bool ids_contain(const int32_t *ids, int64_t n, int32_t id)
{
        for (int64_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

/* Destructors for cleanup_with(). */
static inline void freep(void *p)
{
        free(*(void **)p);
}

static inline void closep(int *fd)
{
        if (*fd >= 0)
                (void)close(*fd); /* nothing a caller could do about it in a cleanup path */
}

/* Define x_freep() for a destructor `struct x *x_free(struct x *)`. */
#define DEFINE_FREEP(type, free_fn)                                                                          \
        static inline void free_fn##p(type **p)                                                              \
        {                                                                                                    \
                (void)free_fn(*p);                                                                           \
        }
