/* What the tables know without any bytes: sizes and defaults. */
#include "wire/table.h"

#include <assert.h>

static const struct {
        uint8_t memory, encoded; /* bytes; encoded: the fewest */
} type_sizes[N_WIRE_TYPES] = {
        [WIRE_BOOL] = {sizeof(bool), 1},
        [WIRE_INT8] = {sizeof(int8_t), 1},
        [WIRE_INT16] = {sizeof(int16_t), 2},
        [WIRE_INT32] = {sizeof(int32_t), 4},
        [WIRE_INT64] = {sizeof(int64_t), 8},
        [WIRE_UUID] = {sizeof(struct uuid), 16},
        [WIRE_STRING] = {sizeof(struct wire_str), 2},
        [WIRE_BYTES] = {sizeof(struct wire_bytes), 4},
        [WIRE_RECORDS] = {sizeof(struct wire_bytes), 4},
        [WIRE_STRUCT_PTR] = {sizeof(void *), 1},
};

size_t wire_value_size(const struct wire_field *f)
{
        return f->type == WIRE_STRUCT ? f->child->size : type_sizes[f->type].memory;
}

static size_t struct_min_encoding(const struct wire_struct *s, int16_t version, bool flexible)
{
        size_t n = flexible ? 1 : 0; /* the number of tagged fields */

        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *f = &s->fields[i];

                if (f->tagged || !wire_field_in(f, version))
                        continue;
                if (f->array)
                        n += flexible ? 1 : 4;
                else
                        n += wire_min_encoding(f, version, flexible);
        }
        return n;
}

size_t wire_min_encoding(const struct wire_field *f, int16_t version, bool flexible)
{
        bool has_length = f->type == WIRE_STRING || f->type == WIRE_BYTES || f->type == WIRE_RECORDS;

        if (f->type == WIRE_STRUCT)
                return struct_min_encoding(f->child, version, flexible);
        return has_length && flexible ? 1 : type_sizes[f->type].encoded;
}

void wire_set_default(const struct wire_field *f, void *member)
{
        int32_t null_or_empty = f->default_null ? -1 : 0;

        if (f->array) {
                *(struct wire_any_array *)member = (struct wire_any_array){.n = null_or_empty};
                return;
        }
        switch ((enum wire_type)f->type) {
        case WIRE_BOOL:
                *(bool *)member = f->default_int != 0;
                break;
        case WIRE_INT8:
                *(int8_t *)member = (int8_t)f->default_int;
                break;
        case WIRE_INT16:
                *(int16_t *)member = (int16_t)f->default_int;
                break;
        case WIRE_INT32:
                *(int32_t *)member = (int32_t)f->default_int;
                break;
        case WIRE_INT64:
                *(int64_t *)member = f->default_int;
                break;
        case WIRE_UUID:
                *(struct uuid *)member = (struct uuid){};
                break;
        case WIRE_STRING:
                *(struct wire_str *)member = (struct wire_str){.len = null_or_empty};
                break;
        case WIRE_BYTES:
        case WIRE_RECORDS:
                *(struct wire_bytes *)member = (struct wire_bytes){.len = null_or_empty};
                break;
        case WIRE_STRUCT:
                wire_init_struct(f->child, member);
                break;
        case WIRE_STRUCT_PTR:
                *(void **)member = NULL;
                break;
        case N_WIRE_TYPES:
                assert(false);
        }
}

static bool struct_is_default(const struct wire_struct *s, const void *value)
{
        for (size_t i = 0; i < s->n_fields; i++)
                if (!wire_is_default(&s->fields[i], wire_member(&s->fields[i], value)))
                        return false;
        return true;
}

/* Lengths below zero all mean null. */
static bool length_is_default(const struct wire_field *f, int32_t len)
{
        return f->default_null ? len < 0 : len == 0;
}

bool wire_is_default(const struct wire_field *f, const void *member)
{
        if (f->array)
                return length_is_default(f, ((const struct wire_any_array *)member)->n);

        switch ((enum wire_type)f->type) {
        case WIRE_BOOL:
                return *(const bool *)member == (f->default_int != 0);
        case WIRE_INT8:
                return *(const int8_t *)member == f->default_int;
        case WIRE_INT16:
                return *(const int16_t *)member == f->default_int;
        case WIRE_INT32:
                return *(const int32_t *)member == f->default_int;
        case WIRE_INT64:
                return *(const int64_t *)member == f->default_int;
        case WIRE_UUID:
                return memcmp(member, &(struct uuid){}, sizeof(struct uuid)) == 0;
        case WIRE_STRING:
                return length_is_default(f, ((const struct wire_str *)member)->len);
        case WIRE_BYTES:
        case WIRE_RECORDS:
                return length_is_default(f, ((const struct wire_bytes *)member)->len);
        case WIRE_STRUCT:
                return struct_is_default(f->child, member);
        case WIRE_STRUCT_PTR:
                return *(void *const *)member == NULL;
        case N_WIRE_TYPES:
                break;
        }
        assert(false);
        return false;
}

void wire_init_struct(const struct wire_struct *s, void *element)
{
        for (size_t i = 0; i < s->n_fields; i++)
                wire_set_default(&s->fields[i], wire_member(&s->fields[i], element));
}

void *wire_new_array(const struct wire_struct *s, size_t n, struct arena *a)
{
        char *items = arena_alloc(a, MAX(n, (size_t)1), s->size);

        if (!items)
                return NULL;
        wire_init_struct(s, items);
        for (size_t i = 1; i < n; i++)
                memcpy(items + i * s->size, items, s->size);
        return items;
}

void wire_init(const struct wire_message *m, void *body)
{
        memset(body, 0, m->body.size);
        wire_init_struct(&m->body, body);
}

int16_t wire_api_key(const struct wire_message *m)
{
        return m->api_key;
}

const char *wire_name(const struct wire_message *m)
{
        return m->body.name;
}

int16_t wire_min_version(const struct wire_message *m)
{
        return m->min_version;
}

int16_t wire_max_version(const struct wire_message *m)
{
        return m->max_version;
}

bool wire_is_flexible(const struct wire_message *m, int16_t version)
{
        return version >= m->first_flexible;
}

size_t wire_struct_size(const struct wire_message *m)
{
        return m->body.size;
}
