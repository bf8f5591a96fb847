/* The C types that wire messages are made of. Strings, bytes and records are slices of the request buffer
 * (decode) or of caller's memory (encode); arrays live in the request's arena. Nothing here is owned. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "base/uuid.h"

struct wire_str {
        const char *data; /* not NUL-terminated */
        int32_t len;      /* -1: null */
};

struct wire_bytes { /* bytes and records */
        const uint8_t *data;
        int32_t len; /* -1: null */
};

/* Field of a message struct: an array of @type. n == -1: null. */
#define WIRE_ARRAY(type)                                                                                     \
        struct {                                                                                             \
                type *items;                                                                                 \
                int32_t n;                                                                                   \
        }

#define WIRE_NULL_STR   ((struct wire_str){.data = NULL, .len = -1})
#define WIRE_NULL_BYTES ((struct wire_bytes){.data = NULL, .len = -1})

static inline struct wire_str wire_str(const char *s)
{
        return s ? (struct wire_str){.data = s, .len = (int32_t)strlen(s)} : WIRE_NULL_STR;
}

static inline bool wire_str_equal(struct wire_str a, const char *s)
{
        return a.len >= 0 && (size_t)a.len == strlen(s) && memcmp(a.data, s, (size_t)a.len) == 0;
}
