/* The decoding half of the interpreter: bytes and a table in, a struct out. */
#include "wire/cursor.h"
#include "wire/table.h"

#include <assert.h>

struct decoder {
        struct cursor c;
        struct arena *arena;
        int16_t version;
        bool flexible;
};

static int decode_struct(struct decoder *d, const struct wire_struct *s, void *ret);

/* Compact lengths are the number plus one, so that zero is null; old ones are -1 for null. *ret: -1 for null.
 */
static int decode_compact_length(struct cursor *c, int32_t *ret)
{
        uint32_t n;

        if (cursor_get_uvarint(c, &n) < 0 || n > (uint32_t)INT32_MAX)
                return -EBADMSG;
        *ret = (int32_t)n - 1;
        return 0;
}

/* Of arrays, bytes and records (@is_string false) or strings. */
static int decode_length(struct decoder *d, bool is_string, int32_t *ret)
{
        int16_t n;

        if (d->flexible)
                return decode_compact_length(&d->c, ret);
        if (!is_string)
                return cursor_get_int32(&d->c, ret) < 0 || *ret < -1 ? -EBADMSG : 0;
        if (cursor_get_int16(&d->c, &n) < 0 || n < -1)
                return -EBADMSG;
        *ret = n;
        return 0;
}

/* String, bytes or records. */
static int decode_slice(struct decoder *d, bool is_string, bool nullable, const uint8_t **ret_data,
                        int32_t *ret_len)
{
        int32_t len;

        if (decode_length(d, is_string, &len) < 0)
                return -EBADMSG;
        if (is_string && len > WIRE_MAX_STRING)
                return -EBADMSG;
        *ret_len = len;
        *ret_data = NULL;
        if (len >= 0)
                return cursor_take(&d->c, (size_t)len, ret_data);
        return nullable ? 0 : -EBADMSG;
}

static int decode_bool(struct decoder *d, const struct wire_field *f, bool *ret)
{
        int8_t v;

        if (cursor_get_int8(&d->c, &v) < 0)
                return -EBADMSG;
        if (f->strict_bool && v != 0 && v != 1)
                return -EBADMSG;
        *ret = v != 0;
        return 0;
}

static int decode_string(struct decoder *d, bool nullable, struct wire_str *ret)
{
        const uint8_t *data;
        int r;

        r = decode_slice(d, true, nullable, &data, &ret->len);
        if (r < 0)
                return r;
        ret->data = (const char *)data;
        return 0;
}

static int decode_uuid(struct decoder *d, struct uuid *ret)
{
        const uint8_t *p;

        if (cursor_take(&d->c, sizeof(ret->bytes), &p) < 0)
                return -EBADMSG;
        memcpy(ret->bytes, p, sizeof(ret->bytes));
        return 0;
}

/* A nullable struct is preceded by one signed byte, -1 for null, and not by a varint as everything else that
 * can be null in flexible versions. */
static int decode_struct_ptr(struct decoder *d, const struct wire_field *f, bool nullable, void **ret)
{
        int8_t presence;
        void *value;
        int r;

        *ret = NULL;
        if (cursor_get_int8(&d->c, &presence) < 0)
                return -EBADMSG;
        if (presence < 0)
                return nullable ? 0 : -EBADMSG;

        value = arena_alloc(d->arena, 1, f->child->size);
        if (!value)
                return -ENOMEM;
        r = decode_struct(d, f->child, value);
        if (r < 0)
                return r;
        *ret = value;
        return 0;
}

/* One value, or one element of an array; @nullable is the value's own. */
static int decode_value(struct decoder *d, const struct wire_field *f, bool nullable, void *ret)
{
        struct wire_bytes *bytes = ret;

        switch ((enum wire_type)f->type) {
        case WIRE_BOOL:
                return decode_bool(d, f, ret);
        case WIRE_INT8:
                return cursor_get_int8(&d->c, ret);
        case WIRE_INT16:
                return cursor_get_int16(&d->c, ret);
        case WIRE_INT32:
                return cursor_get_int32(&d->c, ret);
        case WIRE_INT64:
                return cursor_get_int64(&d->c, ret);
        case WIRE_UUID:
                return decode_uuid(d, ret);
        case WIRE_STRING:
                return decode_string(d, nullable, ret);
        case WIRE_BYTES:
        case WIRE_RECORDS:
                return decode_slice(d, false, nullable, &bytes->data, &bytes->len);
        case WIRE_STRUCT:
                return decode_struct(d, f->child, ret);
        case WIRE_STRUCT_PTR:
                return decode_struct_ptr(d, f, nullable, ret);
        case N_WIRE_TYPES:
                break;
        }
        assert(false);
        return -EBADMSG;
}

static int decode_array(struct decoder *d, const struct wire_field *f, bool nullable,
                        struct wire_any_array *ret)
{
        size_t size = wire_value_size(f);
        int32_t n;
        char *items;
        int r;

        if (decode_length(d, false, &n) < 0)
                return -EBADMSG;
        *ret = (struct wire_any_array){.n = n};
        if (n < 0)
                return nullable ? 0 : -EBADMSG;
        if (n == 0)
                return 0;
        /* A count is only believed if the bytes that are left can hold as many of the smallest elements:
         * what we allocate is then within a constant factor of what was sent. */
        if ((size_t)n > cursor_left(&d->c) / MAX(wire_min_encoding(f, d->version, d->flexible), (size_t)1))
                return -EBADMSG;

        items = arena_alloc(d->arena, (size_t)n, size);
        if (!items)
                return -ENOMEM;
        ret->items = items;
        for (int32_t i = 0; i < n; i++) {
                r = decode_value(d, f, false, items + (size_t)i * size);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_field(struct decoder *d, const struct wire_field *f, void *parent)
{
        bool nullable = wire_field_nullable(f, d->version);
        void *member = wire_member(f, parent);

        return f->array ? decode_array(d, f, nullable, member) : decode_value(d, f, nullable, member);
}

static const struct wire_field *find_tagged(const struct wire_struct *s, uint32_t tag, int16_t version)
{
        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *f = &s->fields[i];

                if (f->tagged && (uint32_t)(f->tagged - 1) == tag && wire_field_in(f, version))
                        return f;
        }
        return NULL;
}

/* One tagged field. It must fill the size it states: whoever reads past it or short of it disagrees with us
 * about the schema, and what follows would be misread. */
static int decode_tagged(struct decoder *d, const struct wire_struct *s, void *ret)
{
        const struct wire_field *f;
        struct cursor rest;
        uint32_t tag, size;
        const uint8_t *p;
        int r;

        if (cursor_get_uvarint(&d->c, &tag) < 0 || cursor_get_uvarint(&d->c, &size) < 0 ||
            cursor_take(&d->c, size, &p) < 0)
                return -EBADMSG;
        f = find_tagged(s, tag, d->version);
        if (!f)
                return 0; /* from a newer peer: KIP-482 says skip */

        rest = d->c;
        d->c = cursor_of(p, size);
        r = decode_field(d, f, ret);
        if (r == 0 && cursor_left(&d->c) > 0)
                r = -EBADMSG;
        d->c = rest;
        return r;
}

static int decode_tags(struct decoder *d, const struct wire_struct *s, void *ret)
{
        uint32_t n;
        int r;

        if (cursor_get_uvarint(&d->c, &n) < 0)
                return -EBADMSG;
        for (uint32_t i = 0; i < n; i++) {
                r = decode_tagged(d, s, ret);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_struct(struct decoder *d, const struct wire_struct *s, void *ret)
{
        int r;

        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *f = &s->fields[i];

                if (f->tagged || !wire_field_in(f, d->version)) {
                        wire_set_default(f, wire_member(f, ret));
                        continue;
                }
                r = decode_field(d, f, ret);
                if (r < 0)
                        return r;
        }
        return d->flexible ? decode_tags(d, s, ret) : 0;
}

int wire_decode(const struct wire_message *m, int16_t version, const void *data, size_t len, struct arena *a,
                void *ret)
{
        struct decoder d = {.c = cursor_of(data, len),
                            .arena = a,
                            .version = version,
                            .flexible = wire_is_flexible(m, version)};

        if (version < m->min_version || version > m->max_version)
                return -EPROTONOSUPPORT;
        memset(ret, 0, m->body.size);
        return decode_struct(&d, &m->body, ret);
}
