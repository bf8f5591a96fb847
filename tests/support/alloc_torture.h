/* Makes the n-th allocation of the calling thread fail. Link with
 * -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc and include this once a program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

static _Thread_local int torture_left; /* 0: off; 1: the next allocation fails */
static _Thread_local bool torture_hit;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static inline bool torture_fails(void)
{
        if (torture_left == 0 || --torture_left > 0)
                return false;
        torture_hit = true;
        return true;
}

static inline void torture_arm(int n)
{
        torture_left = n;
        torture_hit = false;
}

/* Returns whether an allocation was made to fail since torture_arm(). */
static inline bool torture_disarm(void)
{
        torture_left = 0;
        return torture_hit;
}

void *__wrap_malloc(size_t n)
{
        return torture_fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
        return torture_fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
        return torture_fails() ? NULL : __real_realloc(p, n);
}
