#include "fill.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

struct filler {
        int16_t version;
        enum fill_style style;
        struct rng *rng;
        struct arena *arena;
};

static void fill_struct(struct filler *f, const struct wire_struct *s, void *ret);
static bool equal_structs(const struct wire_struct *s, const void *x, const void *y);

struct rng rng_from_environment(void)
{
        const char *text = getenv("WIRE_TEST_SEED");
        uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)clock_mono_us();

        printf("WIRE_TEST_SEED=%llu\n", (unsigned long long)seed);
        return (struct rng){.state = seed};
}

/* splitmix64 */
uint64_t rng_next(struct rng *r)
{
        uint64_t z = (r->state += 0x9e3779b97f4a7c15u);

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

static void *random_bytes(struct filler *f, size_t n)
{
        uint8_t *p = arena_alloc(f->arena, n + 1, 1);

        assert(p);
        for (size_t i = 0; i < n; i++)
                p[i] = (uint8_t)rng_next(f->rng);
        return p;
}

/* Mostly small; now and then long enough for a compact length of two bytes. */
static int32_t random_length(struct filler *f, bool nullable)
{
        if (nullable && rng_below(f->rng, 4) == 0)
                return -1;
        return rng_below(f->rng, 16) == 0 ? (int32_t)(100 + rng_below(f->rng, 200))
                                          : (int32_t)rng_below(f->rng, 12);
}

/* Edges turn up as often as anything else. */
static int64_t random_int(struct filler *f)
{
        static const int64_t edges[] = {0,         1,         -1,        INT8_MIN, INT16_MAX,
                                        INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};

        return rng_below(f->rng, 2) ? edges[rng_below(f->rng, ARRAY_SIZE(edges))] : (int64_t)rng_next(f->rng);
}

static void fill_slice(struct filler *f, bool nullable, struct wire_bytes *ret)
{
        int32_t len = random_length(f, nullable);

        *ret = (struct wire_bytes){.len = len};
        if (len >= 0)
                ret->data = random_bytes(f, (size_t)len);
}

static void fill_value(struct filler *f, const struct wire_field *field, bool nullable, void *ret)
{
        struct wire_bytes bytes;

        switch ((enum wire_type)field->type) {
        case WIRE_BOOL:
                *(bool *)ret = rng_below(f->rng, 2);
                break;
        case WIRE_INT8:
                *(int8_t *)ret = (int8_t)random_int(f);
                break;
        case WIRE_INT16:
                *(int16_t *)ret = (int16_t)random_int(f);
                break;
        case WIRE_INT32:
                *(int32_t *)ret = (int32_t)random_int(f);
                break;
        case WIRE_INT64:
                *(int64_t *)ret = random_int(f);
                break;
        case WIRE_UUID:
                memcpy(ret, random_bytes(f, sizeof(struct uuid)), sizeof(struct uuid));
                break;
        case WIRE_STRING:
                fill_slice(f, nullable, &bytes);
                for (int32_t i = 0; i < bytes.len; i++) /* letters, for whoever prints them */
                        ((uint8_t *)bytes.data)[i] = (uint8_t)('a' + bytes.data[i] % 26);
                *(struct wire_str *)ret =
                        (struct wire_str){.data = (const char *)bytes.data, .len = bytes.len};
                break;
        case WIRE_BYTES:
        case WIRE_RECORDS:
                fill_slice(f, nullable, ret);
                break;
        case WIRE_STRUCT:
                fill_struct(f, field->child, ret);
                break;
        case WIRE_STRUCT_PTR:
                *(void **)ret = NULL;
                if (!nullable || rng_below(f->rng, 2)) {
                        *(void **)ret = arena_alloc(f->arena, 1, field->child->size);
                        fill_struct(f, field->child, *(void **)ret);
                }
                break;
        case N_WIRE_TYPES:
                assert(false);
        }
}

static void fill_array(struct filler *f, const struct wire_field *field, bool nullable,
                       struct wire_any_array *ret)
{
        size_t size = wire_value_size(field);

        *ret = (struct wire_any_array){.n = (int32_t)rng_below(f->rng, 4)};
        if (nullable && rng_below(f->rng, 4) == 0)
                ret->n = -1;
        if (ret->n <= 0)
                return;
        ret->items = arena_alloc(f->arena, (size_t)ret->n, size);
        assert(ret->items);
        for (int32_t i = 0; i < ret->n; i++)
                fill_value(f, field, false, (char *)ret->items + (size_t)i * size);
}

static void fill_struct(struct filler *f, const struct wire_struct *s, void *ret)
{
        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *field = &s->fields[i];
                bool nullable = wire_field_nullable(field, f->version);
                void *member = wire_member(field, ret);

                if (!wire_field_in(field, f->version) || (f->style == FILL_NO_TAGS && field->tagged))
                        wire_set_default(field, member);
                else if (field->array)
                        fill_array(f, field, nullable, member);
                else
                        fill_value(f, field, nullable, member);
        }
}

void fill_message(const struct wire_message *m, int16_t version, enum fill_style style, struct rng *r,
                  struct arena *a, void *ret)
{
        struct filler f = {.version = version, .style = style, .rng = r, .arena = a};

        fill_struct(&f, &m->body, ret);
}

static bool equal_slices(const struct wire_bytes *x, const struct wire_bytes *y)
{
        return x->len == y->len && (x->len <= 0 || memcmp(x->data, y->data, (size_t)x->len) == 0);
}

static bool equal_values(const struct wire_field *f, const void *x, const void *y)
{
        const void *px, *py;

        switch ((enum wire_type)f->type) {
        case WIRE_STRING: /* the same layout as bytes */
        case WIRE_BYTES:
        case WIRE_RECORDS:
                return equal_slices(x, y);
        case WIRE_STRUCT:
                return equal_structs(f->child, x, y);
        case WIRE_STRUCT_PTR:
                px = *(void *const *)x;
                py = *(void *const *)y;
                return px && py ? equal_structs(f->child, px, py) : px == py;
        default:
                return memcmp(x, y, wire_value_size(f)) == 0;
        }
}

static bool equal_arrays(const struct wire_field *f, const struct wire_any_array *x,
                         const struct wire_any_array *y)
{
        size_t size = wire_value_size(f);

        if (x->n != y->n)
                return false;
        for (int32_t i = 0; i < x->n; i++)
                if (!equal_values(f, (char *)x->items + (size_t)i * size,
                                  (char *)y->items + (size_t)i * size))
                        return false;
        return true;
}

static bool equal_structs(const struct wire_struct *s, const void *x, const void *y)
{
        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *f = &s->fields[i];
                const void *mx = wire_member(f, x), *my = wire_member(f, y);

                if (f->array ? !equal_arrays(f, mx, my) : !equal_values(f, mx, my))
                        return false;
        }
        return true;
}

bool equal_messages(const struct wire_message *m, const void *x, const void *y)
{
        return equal_structs(&m->body, x, y);
}

const struct wire_message *next_message(size_t *cursor)
{
        size_t n;
        const struct wire_api *apis = wire_api_all(&n);
        size_t i = (*cursor)++;

        if (i / 2 >= n)
                return NULL;
        return i % 2 ? apis[i / 2].response : apis[i / 2].request;
}
