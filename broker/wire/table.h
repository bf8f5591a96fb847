/* The rows that describe a message, and the macros that write them. Private to wire/ and its tests.
 *
 * A row reads: struct, member, type, first version, last version, options. Numbers are the schema's own, so
 * that a table can be compared with it line by line; versions outside the message's range are simply never
 * asked for.
 *
 *     FIELD(fetch_request, max_bytes, INT32, 3, LAST, DEFAULT(INT32_MAX), IGNORABLE),
 *     ARRAY(fetch_request_forgotten_topic, partitions, INT32, 7, LAST),
 *     ARRAY_OF(fetch_request, topics, fetch_request_topic, 0, LAST),
 *     STRUCT(fetch_request, replica_state, fetch_request_replica_state, 15, LAST, TAG(1)),
 *
 * A member whose C type does not fit its wire type does not compile. Invariants that the compiler cannot see
 * are held by tests/unit/wire/test_tables.c: tags ascend within a struct, a tagged field exists only in
 * flexible versions, a null default is nullable, child tables form no cycle (so nesting is bounded). */
#pragma once

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"
#include "wire/codec.h"
#include "wire/types.h"

enum wire_type {
        WIRE_BOOL,
        WIRE_INT8,
        WIRE_INT16,
        WIRE_INT32,
        WIRE_INT64,
        WIRE_UUID,
        WIRE_STRING,
        WIRE_BYTES,
        WIRE_RECORDS,
        WIRE_STRUCT,     /* embedded in its parent */
        WIRE_STRUCT_PTR, /* a pointer in its parent, NULL for null; one byte of presence on the wire */
        N_WIRE_TYPES,
};

struct wire_field {
        const char *name;
        const struct wire_struct *child; /* of structs and arrays of structs */
        int64_t default_int;             /* of integers and bools */
        uint32_t offset;
        int16_t first, last; /* versions that carry it */
        int16_t nullable;    /* 1 + the first version in which it may be null; 0: never */
        int16_t tagged;      /* 1 + its tag; 0: not a tagged field */
        uint8_t type;        /* enum wire_type; of an array: its elements' */
        bool array;
        bool default_null; /* string, bytes, records, array: the default is null, not empty */
        bool ignorable;    /* may be dropped silently by a version that cannot carry it */
        bool strict_bool;  /* any byte but 0 and 1 is an error */
};

struct wire_struct {
        const char *name;
        const struct wire_field *fields;
        size_t n_fields, size;
};

struct wire_message {
        struct wire_struct body;
        int16_t api_key, min_version, max_version;
        int16_t first_flexible; /* NEVER: none */
};

#define LAST  INT16_MAX
#define NEVER INT16_MAX

/* Options of a row. */
#define NULL_FROM(version) .nullable = (version) + 1
#define TAG(number)        .tagged = (number) + 1
#define DEFAULT(value)     .default_int = (value)
#define DEFAULT_NULL       .default_null = true
#define IGNORABLE          .ignorable = true
#define ZERO_OR_ONE        .strict_bool = true

/* 1, or no valid C: the expression is never evaluated. */
#define WIRE_FITS_BOOL(x)    _Generic((x), bool : 1)
#define WIRE_FITS_INT8(x)    _Generic((x), int8_t : 1)
#define WIRE_FITS_INT16(x)   _Generic((x), int16_t : 1)
#define WIRE_FITS_INT32(x)   _Generic((x), int32_t : 1)
#define WIRE_FITS_INT64(x)   _Generic((x), int64_t : 1)
#define WIRE_FITS_UUID(x)    _Generic((x), struct uuid : 1)
#define WIRE_FITS_STRING(x)  _Generic((x), struct wire_str : 1)
#define WIRE_FITS_BYTES(x)   _Generic((x), struct wire_bytes : 1)
#define WIRE_FITS_RECORDS(x) _Generic((x), struct wire_bytes : 1)

#define WIRE_MEMBER(s, m)       (((struct s *)0)->m)
#define WIRE_OFFSET(s, m, fits) ((fits)*offsetof(struct s, m))
#define WIRE_ROW(m, from, to)   .name = #m, .first = (from), .last = (to)
#define FIELD(s, m, t, from, to, ...)                                                                        \
        {                                                                                                    \
                WIRE_ROW(m, from, to), .type = WIRE_##t,                                                     \
                                       .offset = WIRE_OFFSET(s, m, WIRE_FITS_##t(WIRE_MEMBER(s, m)))         \
                                               __VA_OPT__(, ) __VA_ARGS__                                    \
        }
#define ARRAY(s, m, t, from, to, ...)                                                                        \
        {                                                                                                    \
                WIRE_ROW(m, from, to), .type = WIRE_##t, .array = true,                                      \
                                       .offset = WIRE_OFFSET(s, m, WIRE_FITS_##t(*WIRE_MEMBER(s, m).items))  \
                                               __VA_OPT__(, ) __VA_ARGS__                                    \
        }
#define ARRAY_OF(s, m, element, from, to, ...)                                                               \
        {                                                                                                    \
                WIRE_ROW(m, from, to),                                                                       \
                        .type = WIRE_STRUCT, .array = true, .child = &element##_wire,                        \
                        .offset = WIRE_OFFSET(s, m, _Generic(*WIRE_MEMBER(s, m).items, struct element : 1))  \
                                __VA_OPT__(, ) __VA_ARGS__                                                   \
        }
#define STRUCT(s, m, inner, from, to, ...)                                                                   \
        {                                                                                                    \
                WIRE_ROW(m, from, to),                                                                       \
                        .type = WIRE_STRUCT, .child = &inner##_wire,                                         \
                        .offset = WIRE_OFFSET(s, m, _Generic(WIRE_MEMBER(s, m), struct inner : 1))           \
                                __VA_OPT__(, ) __VA_ARGS__                                                   \
        }
#define STRUCT_PTR(s, m, inner, from, to, ...)                                                               \
        {                                                                                                    \
                WIRE_ROW(m, from, to),                                                                       \
                        .type = WIRE_STRUCT_PTR, .child = &inner##_wire,                                     \
                        .offset = WIRE_OFFSET(s, m, _Generic(WIRE_MEMBER(s, m), struct inner * : 1))         \
                                __VA_OPT__(, ) __VA_ARGS__                                                   \
        }

#define STRUCT_TABLE(s)                                                                                      \
        {                                                                                                    \
                .name = #s, .fields = s##_fields, .n_fields = ARRAY_SIZE(s##_fields),                        \
                .size = sizeof(struct s)                                                                     \
        }
/* @text: the schema's name, e.g. "FetchRequest". */
#define MESSAGE(s, text, key, min, max, flexible)                                                            \
        {                                                                                                    \
                .body = {.name = (text),                                                                     \
                         .fields = s##_fields,                                                               \
                         .n_fields = ARRAY_SIZE(s##_fields),                                                 \
                         .size = sizeof(struct s)},                                                          \
                .api_key = (key), .min_version = (min), .max_version = (max), .first_flexible = (flexible)   \
        }

/* Kafka limits strings to what the old 16-bit length can say, in compact form too. */
#define WIRE_MAX_STRING INT16_MAX

/* The layout that every WIRE_ARRAY member shares: the interpreter sees the items through it. */
struct wire_any_array {
        void *items;
        int32_t n;
};

static inline bool wire_field_in(const struct wire_field *f, int16_t version)
{
        return f->first <= version && version <= f->last;
}

static inline bool wire_field_nullable(const struct wire_field *f, int16_t version)
{
        return f->nullable && version >= f->nullable - 1;
}

static inline void *wire_member(const struct wire_field *f, const void *parent)
{
        return (char *)parent + f->offset;
}

/* sizeof one value (or array element) in memory. */
size_t wire_value_size(const struct wire_field *f);
/* The fewest bytes that one value (array element) takes at @version. */
size_t wire_min_encoding(const struct wire_field *f, int16_t version, bool flexible);
/* Give the member of @f at @member its default, or ask whether it has it. */
void wire_set_default(const struct wire_field *f, void *member);
bool wire_is_default(const struct wire_field *f, const void *member);
