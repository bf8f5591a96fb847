/* /brokers/topics/T, lists of partitions, configurations. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "zk/znode.h"
#include "zk/znode_json.h"

#define MAX_TOPIC  249
#define MAX_ENTITY 1024

/* --- /brokers/topics/T --- */

void znode_topic_done(struct znode_topic *t)
{
        for (size_t i = 0; i < t->n_partitions; i++) {
                free(t->partitions[i].replicas);
                free(t->partitions[i].adding);
                free(t->partitions[i].removing);
        }
        free(t->partitions);
        *t = (struct znode_topic){0};
}

/* One of the three maps of partition -> ids: which member of an assignment it is. */
struct field {
        const char *key;
        size_t ids, n;
};

static const struct field replicas_field = {"partitions", offsetof(struct znode_assignment, replicas),
                                            offsetof(struct znode_assignment, n_replicas)};
static const struct field change_fields[] = {
        {"adding_replicas", offsetof(struct znode_assignment, adding),
         offsetof(struct znode_assignment, n_adding)},
        {"removing_replicas", offsetof(struct znode_assignment, removing),
         offsetof(struct znode_assignment, n_removing)},
};

static int32_t **field_ids(const struct field *f, struct znode_assignment *a)
{
        return (int32_t **)((char *)a + f->ids);
}

static size_t *field_n(const struct field *f, struct znode_assignment *a)
{
        return (size_t *)((char *)a + f->n);
}

/* @skip_empty: Kafka lists only partitions that change. */
static int put_map(const struct znode_topic *t, const struct field *f, bool skip_empty, struct buf *out)
{
        const char *comma = "";
        int r;

        r = buf_printf(out, "\"%s\":{", f->key);
        for (size_t i = 0; r >= 0 && i < t->n_partitions; i++) {
                struct znode_assignment *a = &t->partitions[i];

                if (skip_empty && *field_n(f, a) == 0)
                        continue;
                r = buf_printf(out, "%s\"%d\":", comma, a->partition);
                if (r >= 0)
                        r = znode_put_ids(out, *field_ids(f, a), *field_n(f, a));
                comma = ",";
        }
        return r < 0 ? r : buf_append_str(out, "},");
}

int znode_topic_encode(const struct znode_topic *t, struct buf *out)
{
        char id[UUID_TEXT_SIZE];
        int r;

        r = buf_append_str(out, "{");
        if (r >= 0)
                r = put_map(t, &change_fields[1], true, out);
        if (r >= 0)
                r = put_map(t, &replicas_field, false, out);
        if (r >= 0 && !uuid_is_zero(&t->id)) {
                uuid_format(&t->id, id);
                r = buf_printf(out, "\"topic_id\":\"%s\",", id);
        }
        if (r >= 0)
                r = put_map(t, &change_fields[0], true, out);
        if (r >= 0)
                r = buf_printf(out, "\"version\":%d}", uuid_is_zero(&t->id) ? 2 : 3);
        return r;
}

static int compare_partition(const void *a, const void *b)
{
        int32_t x = ((const struct znode_assignment *)a)->partition;
        int32_t y = ((const struct znode_assignment *)b)->partition;

        return (x > y) - (x < y);
}

static int decode_replicas(json_t *map, struct znode_topic *t)
{
        const char *key;
        json_t *value;
        int r;

        if (!json_is_object(map))
                return -EBADMSG;
        if (json_object_size(map) == 0)
                return 0;
        t->partitions = calloc(json_object_size(map), sizeof(*t->partitions));
        if (!t->partitions)
                return -ENOMEM;
        json_object_foreach(map, key, value)
        {
                struct znode_assignment *a = &t->partitions[t->n_partitions++];

                if (parse_int32(key, 0, INT32_MAX, &a->partition) < 0)
                        return -EBADMSG;
                r = znode_ids(value, &a->replicas, &a->n_replicas);
                if (r < 0)
                        return r;
        }
        qsort(t->partitions, t->n_partitions, sizeof(*t->partitions), compare_partition);
        for (size_t i = 1; i < t->n_partitions; i++)
                if (t->partitions[i].partition == t->partitions[i - 1].partition)
                        return -EBADMSG; /* "1" and "01" */
        return 0;
}

static int decode_change(json_t *map, const struct field *f, struct znode_topic *t)
{
        const char *key;
        json_t *value;
        int r;

        if (!map || json_is_null(map))
                return 0;
        if (!json_is_object(map))
                return -EBADMSG;
        json_object_foreach(map, key, value)
        {
                struct znode_assignment wanted = {0}, *a;

                if (parse_int32(key, 0, INT32_MAX, &wanted.partition) < 0)
                        return -EBADMSG;
                a = t->n_partitions == 0 ? NULL
                                         : bsearch(&wanted, t->partitions, t->n_partitions, sizeof(wanted),
                                                   compare_partition);
                if (!a)
                        continue; /* of a partition that is not there: nothing to change */
                if (*field_ids(f, a))
                        return -EBADMSG;
                r = znode_ids(value, field_ids(f, a), field_n(f, a));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_topic(json_t *j, struct znode_topic *t)
{
        const json_t *id = json_object_get(j, "topic_id");
        int r;

        r = decode_replicas(json_object_get(j, "partitions"), t);
        for (size_t i = 0; r >= 0 && i < ARRAY_SIZE(change_fields); i++)
                r = decode_change(json_object_get(j, change_fields[i].key), &change_fields[i], t);
        if (r < 0 || !id || json_is_null(id))
                return r;
        if (!json_is_string(id) || uuid_parse(json_string_value(id), &t->id) < 0)
                return -EBADMSG;
        return 0;
}

int znode_topic_decode(const char *s, size_t len, struct znode_topic *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_topic t = {0};
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r < 0)
                return r;
        r = decode_topic(j, &t);
        if (r < 0) {
                znode_topic_done(&t);
                return r;
        }
        *ret = t;
        return 0;
}

/* --- lists of partitions --- */

void znode_partitions_done(struct znode_partition_list *l)
{
        for (size_t i = 0; i < l->n; i++) {
                free(l->items[i].topic);
                free(l->items[i].replicas);
        }
        free(l->items);
        *l = (struct znode_partition_list){0};
}

int znode_partitions_encode(const struct znode_partition_list *l, struct buf *out)
{
        int r;

        r = buf_append_str(out, "{\"version\":1,\"partitions\":[");
        for (size_t i = 0; r >= 0 && i < l->n; i++) {
                const struct znode_partition *p = &l->items[i];

                r = buf_append_str(out, i > 0 ? ",{\"topic\":" : "{\"topic\":");
                if (r >= 0)
                        r = znode_put_string(out, p->topic);
                if (r >= 0)
                        r = buf_printf(out, ",\"partition\":%d", p->partition);
                if (r >= 0 && p->replicas)
                        r = buf_append_str(out, ",\"replicas\":");
                if (r >= 0 && p->replicas)
                        r = znode_put_ids(out, p->replicas, p->n_replicas);
                if (r >= 0)
                        r = buf_append_str(out, "}");
        }
        return r < 0 ? r : buf_append_str(out, "]}");
}

static int decode_partition(const json_t *j, struct znode_partition *p)
{
        const json_t *replicas = json_object_get(j, "replicas");
        int r;

        r = znode_string(json_object_get(j, "topic"), MAX_TOPIC, &p->topic);
        if (r < 0)
                return r;
        r = znode_int32(json_object_get(j, "partition"), 0, INT32_MAX, &p->partition);
        if (r < 0 || !replicas || json_is_null(replicas))
                return r;
        return znode_ids(replicas, &p->replicas, &p->n_replicas);
}

static int decode_partitions(const json_t *list, struct znode_partition_list *l)
{
        size_t n = json_array_size(list);
        int r;

        if (!json_is_array(list))
                return -EBADMSG;
        if (n == 0)
                return 0;
        l->items = calloc(n, sizeof(*l->items));
        if (!l->items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                l->n++;
                r = decode_partition(json_array_get(list, i), &l->items[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int znode_partitions_decode(const char *s, size_t len, struct znode_partition_list *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_partition_list l = {0};
        int r;

        r = znode_parse(s, len, false, true, &j);
        if (r < 0)
                return r;
        r = decode_partitions(json_object_get(j, "partitions"), &l);
        if (r < 0) {
                znode_partitions_done(&l);
                return r;
        }
        *ret = l;
        return 0;
}

/* --- configurations --- */

void znode_config_done(struct znode_config *c)
{
        for (size_t i = 0; i < c->n; i++) {
                free(c->entries[i].key);
                free(c->entries[i].value);
        }
        free(c->entries);
        *c = (struct znode_config){0};
}

const char *znode_config_get(const struct znode_config *c, const char *key)
{
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->entries[i].key, key) == 0)
                        return c->entries[i].value;
        return NULL;
}

int znode_config_encode(const struct znode_config *c, struct buf *out)
{
        int r;

        r = buf_append_str(out, "{\"version\":1,\"config\":{");
        for (size_t i = 0; r >= 0 && i < c->n; i++) {
                r = i > 0 ? buf_append_str(out, ",") : 0;
                if (r >= 0)
                        r = znode_put_string(out, c->entries[i].key);
                if (r >= 0)
                        r = buf_append_str(out, ":");
                if (r >= 0)
                        r = znode_put_string(out, c->entries[i].value);
        }
        return r < 0 ? r : buf_append_str(out, "}}");
}

/* Kafka writes strings; a number or boolean typed by hand means its text. An empty string is a value. */
static int config_value(const json_t *j, char **ret)
{
        char text[32];

        if (json_is_string(j) && json_string_length(j) <= ZNODE_CONFIG_MAX_VALUE) {
                *ret = strdup(json_string_value(j));
        } else if (json_is_integer(j)) {
                (void)snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(j));
                *ret = strdup(text);
        } else if (json_is_boolean(j)) {
                *ret = strdup(json_is_true(j) ? "true" : "false");
        } else {
                return -EBADMSG;
        }
        return *ret ? 0 : -ENOMEM;
}

static int decode_config(json_t *map, struct znode_config *c)
{
        const char *key;
        json_t *value;
        int r;

        if (!map || json_is_null(map))
                return 0;
        if (!json_is_object(map))
                return -EBADMSG;
        if (json_object_size(map) == 0)
                return 0;
        c->entries = calloc(json_object_size(map), sizeof(*c->entries));
        if (!c->entries)
                return -ENOMEM;
        json_object_foreach(map, key, value)
        {
                struct znode_config_entry *e = &c->entries[c->n++];

                e->key = strdup(key);
                if (!e->key)
                        return -ENOMEM;
                r = config_value(value, &e->value);
                if (r < 0)
                        return r;
        }
        return 0;
}

int znode_config_decode(const char *s, size_t len, struct znode_config *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_config c = {0};
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r < 0)
                return r;
        r = decode_config(json_object_get(j, "config"), &c);
        if (r < 0) {
                znode_config_done(&c);
                return r;
        }
        *ret = c;
        return 0;
}

int znode_config_change_encode(const char *entity, struct buf *out)
{
        int r;

        r = buf_append_str(out, "{\"version\":2,\"entity_path\":");
        if (r >= 0)
                r = znode_put_string(out, entity);
        return r < 0 ? r : buf_append_str(out, "}");
}

int znode_config_change_decode(const char *s, size_t len, char **ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        cleanup_with(freep) char *type = NULL, *name = NULL, *path = NULL;
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r < 0)
                return r;
        if (json_object_get(j, "entity_path"))
                return znode_string(json_object_get(j, "entity_path"), MAX_ENTITY, ret);
        r = znode_string(json_object_get(j, "entity_type"), MAX_ENTITY, &type);
        if (r == 0)
                r = znode_string(json_object_get(j, "entity_name"), MAX_ENTITY, &name);
        if (r < 0)
                return r;
        if (asprintf(&path, "%s/%s", type, name) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        *ret = TAKE_PTR(path);
        return 0;
}
