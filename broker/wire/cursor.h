/* The only door for foreign bytes: a position that cannot pass its end, and big-endian loads and stores.
 * Every getter returns 0, or -EBADMSG and leaves the cursor where it was when too few bytes are left or the
 * encoding is not a number's. Not thread-safe; a cursor is a local variable. */
#pragma once

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

struct cursor {
        const uint8_t *pos, *end;
};

/* No bytes may be anywhere, at NULL as well, to which C lets nobody add even zero. */
static inline struct cursor cursor_of(const void *data, size_t len)
{
        return (struct cursor){.pos = data, .end = len > 0 ? (const uint8_t *)data + len : data};
}

static inline size_t cursor_left(const struct cursor *c)
{
        return (size_t)(c->end - c->pos);
}

static inline uint16_t load_be16(const void *p)
{
        uint16_t v;
        memcpy(&v, p, sizeof(v));
        return __builtin_bswap16(v);
}

static inline uint32_t load_be32(const void *p)
{
        uint32_t v;
        memcpy(&v, p, sizeof(v));
        return __builtin_bswap32(v);
}

static inline uint64_t load_be64(const void *p)
{
        uint64_t v;
        memcpy(&v, p, sizeof(v));
        return __builtin_bswap64(v);
}

static inline void store_be16(void *p, uint16_t v)
{
        v = __builtin_bswap16(v);
        memcpy(p, &v, sizeof(v));
}

static inline void store_be32(void *p, uint32_t v)
{
        v = __builtin_bswap32(v);
        memcpy(p, &v, sizeof(v));
}

static inline void store_be64(void *p, uint64_t v)
{
        v = __builtin_bswap64(v);
        memcpy(p, &v, sizeof(v));
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the loads and stores above swap bytes");

/* @n bytes in place: *ret points into the cursor's memory. */
static inline must_check int cursor_take(struct cursor *c, size_t n, const uint8_t **ret)
{
        if (cursor_left(c) < n)
                return -EBADMSG;
        *ret = c->pos;
        c->pos += n;
        return 0;
}

static inline must_check int cursor_get_int8(struct cursor *c, int8_t *ret)
{
        const uint8_t *p;

        if (cursor_take(c, 1, &p) < 0)
                return -EBADMSG;
        *ret = (int8_t)*p;
        return 0;
}

static inline must_check int cursor_get_int16(struct cursor *c, int16_t *ret)
{
        const uint8_t *p;

        if (cursor_take(c, 2, &p) < 0)
                return -EBADMSG;
        *ret = (int16_t)load_be16(p);
        return 0;
}

static inline must_check int cursor_get_int32(struct cursor *c, int32_t *ret)
{
        const uint8_t *p;

        if (cursor_take(c, 4, &p) < 0)
                return -EBADMSG;
        *ret = (int32_t)load_be32(p);
        return 0;
}

static inline must_check int cursor_get_int64(struct cursor *c, int64_t *ret)
{
        const uint8_t *p;

        if (cursor_take(c, 8, &p) < 0)
                return -EBADMSG;
        *ret = (int64_t)load_be64(p);
        return 0;
}

/* Base-128 varint of at most @bits (32 or 64) bits; more than that, or a tenth byte that overflows, is
 * refused. */
static inline must_check int cursor_get_varint_bits(struct cursor *c, unsigned bits, uint64_t *ret)
{
        const uint8_t *p = c->pos;
        uint64_t v = 0;

        for (unsigned shift = 0; shift < bits && p < c->end; shift += 7) {
                uint64_t group = *p & 0x7f;

                if (shift + 7 > bits && group >> (bits - shift) != 0)
                        return -EBADMSG;
                v |= group << shift;
                if (!(*p++ & 0x80)) {
                        c->pos = p;
                        *ret = v;
                        return 0;
                }
        }
        return -EBADMSG;
}

static inline must_check int cursor_get_uvarint(struct cursor *c, uint32_t *ret)
{
        uint64_t v;

        if (cursor_get_varint_bits(c, 32, &v) < 0)
                return -EBADMSG;
        *ret = (uint32_t)v;
        return 0;
}

/* Zig-zag: 0, -1, 1, -2 … are 0, 1, 2, 3 … on the wire. */
static inline must_check int cursor_get_varint(struct cursor *c, int32_t *ret)
{
        uint64_t v;

        if (cursor_get_varint_bits(c, 32, &v) < 0)
                return -EBADMSG;
        *ret = (int32_t)((uint32_t)(v >> 1) ^ -(uint32_t)(v & 1));
        return 0;
}

static inline must_check int cursor_get_varlong(struct cursor *c, int64_t *ret)
{
        uint64_t v;

        if (cursor_get_varint_bits(c, 64, &v) < 0)
                return -EBADMSG;
        *ret = (int64_t)(v >> 1 ^ -(v & 1));
        return 0;
}
