/* The encoding half of the interpreter: a struct and a table in, bytes out. One pass: the size of a tagged
 * field is put in front of it afterwards, so nothing is visited twice however large the message is. */
#include "wire/cursor.h"
#include "wire/table.h"

#include <assert.h>

struct encoder {
        struct buf *out;
        int16_t version;
        bool flexible;
};

#define UVARINT_MAX_BYTES 5

static int encode_struct(struct encoder *e, const struct wire_struct *s, const void *value);

/* Room for @n more bytes; they count as written. */
static int put(struct encoder *e, size_t n, uint8_t **ret)
{
        int r;

        if (e->out->cap - e->out->len < n) {
                r = buf_reserve(e->out, n);
                if (r < 0)
                        return r;
        }
        *ret = e->out->data + e->out->len;
        e->out->len += n;
        return 0;
}

static int put_bytes(struct encoder *e, const void *data, size_t n)
{
        uint8_t *p;
        int r;

        if (n == 0)
                return 0; /* an empty slice may point nowhere */
        r = put(e, n, &p);
        if (r < 0)
                return r;
        memcpy(p, data, n);
        return 0;
}

static int put_int8(struct encoder *e, int8_t v)
{
        return put_bytes(e, &v, 1);
}

static int put_int16(struct encoder *e, int16_t v)
{
        uint8_t *p;
        int r = put(e, 2, &p);

        if (r == 0)
                store_be16(p, (uint16_t)v);
        return r;
}

static int put_int32(struct encoder *e, int32_t v)
{
        uint8_t *p;
        int r = put(e, 4, &p);

        if (r == 0)
                store_be32(p, (uint32_t)v);
        return r;
}

static int put_int64(struct encoder *e, int64_t v)
{
        uint8_t *p;
        int r = put(e, 8, &p);

        if (r == 0)
                store_be64(p, (uint64_t)v);
        return r;
}

static size_t format_uvarint(uint32_t v, uint8_t out[UVARINT_MAX_BYTES])
{
        size_t n = 0;

        for (; v >= 0x80; v >>= 7)
                out[n++] = (uint8_t)(v | 0x80);
        out[n++] = (uint8_t)v;
        return n;
}

static int put_uvarint(struct encoder *e, uint32_t v)
{
        uint8_t bytes[UVARINT_MAX_BYTES];

        return put_bytes(e, bytes, format_uvarint(v, bytes));
}

/* Of arrays, bytes and records (@is_string false) or strings. Below zero is null. */
static int encode_length(struct encoder *e, bool is_string, bool nullable, int32_t len)
{
        if (len < 0 && !nullable)
                return -EINVAL;
        if (is_string && len > WIRE_MAX_STRING)
                return -EINVAL;
        if (e->flexible)
                return put_uvarint(e, len < 0 ? 0 : (uint32_t)len + 1);
        return is_string ? put_int16(e, (int16_t)MAX(len, -1)) : put_int32(e, MAX(len, -1));
}

static int encode_slice(struct encoder *e, bool is_string, bool nullable, const void *data, int32_t len)
{
        int r;

        r = encode_length(e, is_string, nullable, len);
        if (r < 0 || len <= 0)
                return r;
        return put_bytes(e, data, (size_t)len);
}

static int encode_struct_ptr(struct encoder *e, const struct wire_field *f, bool nullable, const void *value)
{
        int r;

        if (!value)
                return nullable ? put_int8(e, -1) : -EINVAL;
        r = put_int8(e, 1);
        if (r < 0)
                return r;
        return encode_struct(e, f->child, value);
}

/* One value, or one element of an array; @nullable is the value's own. */
static int encode_value(struct encoder *e, const struct wire_field *f, bool nullable, const void *value)
{
        const struct wire_bytes *bytes = value;
        const struct wire_str *str = value;

        switch ((enum wire_type)f->type) {
        case WIRE_BOOL:
                return put_int8(e, *(const bool *)value ? 1 : 0);
        case WIRE_INT8:
                return put_int8(e, *(const int8_t *)value);
        case WIRE_INT16:
                return put_int16(e, *(const int16_t *)value);
        case WIRE_INT32:
                return put_int32(e, *(const int32_t *)value);
        case WIRE_INT64:
                return put_int64(e, *(const int64_t *)value);
        case WIRE_UUID:
                return put_bytes(e, ((const struct uuid *)value)->bytes, sizeof(struct uuid));
        case WIRE_STRING:
                return encode_slice(e, true, nullable, str->data, str->len);
        case WIRE_BYTES:
        case WIRE_RECORDS:
                return encode_slice(e, false, nullable, bytes->data, bytes->len);
        case WIRE_STRUCT:
                return encode_struct(e, f->child, value);
        case WIRE_STRUCT_PTR:
                return encode_struct_ptr(e, f, nullable, *(void *const *)value);
        case N_WIRE_TYPES:
                break;
        }
        assert(false);
        return -EINVAL;
}

static int encode_array(struct encoder *e, const struct wire_field *f, bool nullable,
                        const struct wire_any_array *a)
{
        size_t size = wire_value_size(f);
        int r;

        r = encode_length(e, false, nullable, a->n);
        if (r < 0)
                return r;
        for (int32_t i = 0; i < a->n; i++) {
                r = encode_value(e, f, false, (const char *)a->items + (size_t)i * size);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int encode_field(struct encoder *e, const struct wire_field *f, const void *parent)
{
        bool nullable = wire_field_nullable(f, e->version);
        const void *member = wire_member(f, parent);

        return f->array ? encode_array(e, f, nullable, member) : encode_value(e, f, nullable, member);
}

/* Tag, size, content: the content is written first and moved up by the few bytes its size needs. */
static int encode_tagged(struct encoder *e, const struct wire_field *f, const void *parent)
{
        uint8_t prefix[UVARINT_MAX_BYTES], *unused;
        size_t start, size, n;
        int r;

        r = put_uvarint(e, (uint32_t)(f->tagged - 1));
        if (r < 0)
                return r;
        start = e->out->len;
        r = encode_field(e, f, parent);
        if (r < 0)
                return r;

        size = e->out->len - start;
        if (size > (size_t)INT32_MAX)
                return -EMSGSIZE;
        n = format_uvarint((uint32_t)size, prefix);
        r = put(e, n, &unused);
        if (r < 0)
                return r;
        memmove(e->out->data + start + n, e->out->data + start, size);
        memcpy(e->out->data + start, prefix, n);
        return 0;
}

static bool is_sent_tagged(const struct encoder *e, const struct wire_field *f, const void *parent)
{
        return f->tagged && wire_field_in(f, e->version) && !wire_is_default(f, wire_member(f, parent));
}

/* Ascending, as the tables list them; a default is left out (KIP-482). */
static int encode_tags(struct encoder *e, const struct wire_struct *s, const void *value)
{
        uint32_t n = 0;
        int r;

        for (size_t i = 0; i < s->n_fields; i++)
                n += is_sent_tagged(e, &s->fields[i], value);
        r = put_uvarint(e, n);
        if (r < 0 || n == 0)
                return r;

        for (size_t i = 0; i < s->n_fields; i++) {
                if (!is_sent_tagged(e, &s->fields[i], value))
                        continue;
                r = encode_tagged(e, &s->fields[i], value);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int encode_struct(struct encoder *e, const struct wire_struct *s, const void *value)
{
        int r;

        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *f = &s->fields[i];

                if (!wire_field_in(f, e->version)) {
                        if (!f->ignorable && !wire_is_default(f, wire_member(f, value)))
                                return -EINVAL;
                        continue;
                }
                if (f->tagged)
                        continue;
                r = encode_field(e, f, value);
                if (r < 0)
                        return r;
        }
        return e->flexible ? encode_tags(e, s, value) : 0;
}

int wire_encode(const struct wire_message *m, int16_t version, const void *body, struct buf *out)
{
        struct encoder e = {.out = out, .version = version, .flexible = wire_is_flexible(m, version)};
        size_t before = out->len;
        int r;

        if (version < m->min_version || version > m->max_version)
                return -EPROTONOSUPPORT;
        r = encode_struct(&e, &m->body, body);
        if (r < 0)
                out->len = before;
        return r;
}
