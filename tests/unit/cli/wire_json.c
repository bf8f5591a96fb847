#include "wire_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *struct_to_json(const struct wire_struct *s, int16_t version, const void *body);
static void struct_from_json(const struct wire_struct *s, const json_t *j, const json_t *names,
                             struct arena *a, void *ret);

/* --- out --- */

static json_t *string_to_json(const struct wire_str *s)
{
        return s->len < 0 ? json_null() : json_stringn(s->data, (size_t)s->len);
}

static json_t *uuid_to_json(const struct uuid *id)
{
        char text[UUID_TEXT_SIZE];

        uuid_format(id, text);
        return json_string(text);
}

static json_t *value_to_json(const struct wire_field *f, int16_t version, const void *v)
{
        switch ((enum wire_type)f->type) {
        case WIRE_BOOL:
                return json_boolean(*(const bool *)v);
        case WIRE_INT8:
                return json_integer(*(const int8_t *)v);
        case WIRE_INT16:
                return json_integer(*(const int16_t *)v);
        case WIRE_INT32:
                return json_integer(*(const int32_t *)v);
        case WIRE_INT64:
                return json_integer(*(const int64_t *)v);
        case WIRE_STRING:
                return string_to_json(v);
        case WIRE_UUID:
                return uuid_to_json(v);
        case WIRE_STRUCT:
                return struct_to_json(f->child, version, v);
        default:
                return json_string("(not shown)");
        }
}

static json_t *array_to_json(const struct wire_field *f, int16_t version, const struct wire_any_array *a)
{
        json_t *list = a->n < 0 ? json_null() : json_array();

        for (int32_t i = 0; i < a->n; i++)
                json_array_append_new(
                        list,
                        value_to_json(f, version, (const char *)a->items + (size_t)i * wire_value_size(f)));
        return list;
}

static json_t *struct_to_json(const struct wire_struct *s, int16_t version, const void *body)
{
        json_t *o = json_object();

        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *f = &s->fields[i];
                const void *v = wire_member(f, body);

                if (wire_field_in(f, version))
                        json_object_set_new(o, f->name,
                                            f->array ? array_to_json(f, version, v)
                                                     : value_to_json(f, version, v));
        }
        return o;
}

json_t *wire_to_json(const struct wire_message *m, int16_t version, const void *body)
{
        return struct_to_json(&m->body, version, body);
}

/* --- in --- */

static void wrong(const char *where, const char *what)
{
        fprintf(stderr, "fake_broker: the script's %s is %s\n", where, what);
        abort();
}

static int64_t number(const struct wire_field *f, const json_t *j, const json_t *names)
{
        if (json_is_string(j) && json_string_value(j)[0] == '$')
                j = json_object_get(names, json_string_value(j) + 1);
        if (!json_is_integer(j) && !json_is_boolean(j))
                wrong(f->name, "not a number");
        return json_is_boolean(j) ? json_is_true(j) : json_integer_value(j);
}

static struct wire_str string(const struct wire_field *f, const json_t *j, struct arena *a)
{
        if (json_is_null(j))
                return WIRE_NULL_STR;
        if (!json_is_string(j))
                wrong(f->name, "not a string");
        return wire_str(arena_strndup(a, json_string_value(j), json_string_length(j)));
}

static void value_from_json(const struct wire_field *f, const json_t *j, const json_t *names, struct arena *a,
                            void *ret)
{
        switch ((enum wire_type)f->type) {
        case WIRE_BOOL:
                *(bool *)ret = number(f, j, names) != 0;
                break;
        case WIRE_INT8:
                *(int8_t *)ret = (int8_t)number(f, j, names);
                break;
        case WIRE_INT16:
                *(int16_t *)ret = (int16_t)number(f, j, names);
                break;
        case WIRE_INT32:
                *(int32_t *)ret = (int32_t)number(f, j, names);
                break;
        case WIRE_INT64:
                *(int64_t *)ret = number(f, j, names);
                break;
        case WIRE_STRING:
                *(struct wire_str *)ret = string(f, j, a);
                break;
        case WIRE_UUID:
                if (!json_is_string(j) || uuid_parse(json_string_value(j), ret) < 0)
                        wrong(f->name, "not an id");
                break;
        case WIRE_STRUCT:
                struct_from_json(f->child, j, names, a, ret);
                break;
        default:
                wrong(f->name, "of a type that scripts cannot have");
        }
}

static void array_from_json(const struct wire_field *f, const json_t *j, const json_t *names, struct arena *a,
                            struct wire_any_array *ret)
{
        size_t n = json_array_size(j), size = wire_value_size(f);

        if (json_is_null(j)) {
                *ret = (struct wire_any_array){.n = -1};
                return;
        }
        if (!json_is_array(j))
                wrong(f->name, "not a list");
        *ret = (struct wire_any_array){.items = arena_alloc(a, n + 1, size), .n = (int32_t)n};
        for (size_t i = 0; i < n; i++)
                value_from_json(f, json_array_get(j, i), names, a, (char *)ret->items + i * size);
}

static const struct wire_field *field_of(const struct wire_struct *s, const char *name)
{
        for (size_t i = 0; i < s->n_fields; i++)
                if (strcmp(s->fields[i].name, name) == 0)
                        return &s->fields[i];
        wrong(name, "no member of the message");
        return NULL;
}

static void struct_from_json(const struct wire_struct *s, const json_t *j, const json_t *names,
                             struct arena *a, void *ret)
{
        const char *name;
        json_t *value;

        wire_init_struct(s, ret);
        json_object_foreach((json_t *)j, name, value)
        {
                const struct wire_field *f = field_of(s, name);

                if (f->array)
                        array_from_json(f, value, names, a, wire_member(f, ret));
                else
                        value_from_json(f, value, names, a, wire_member(f, ret));
        }
}

void wire_from_json(const struct wire_message *m, const json_t *j, const json_t *names, struct arena *a,
                    void *ret)
{
        struct_from_json(&m->body, j, names, a, ret);
}
