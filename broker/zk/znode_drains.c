/* The format of /stepdown/drains: a table of members; see the header. */
#include "zk/znode_drains.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "zk/znode_json.h"

#define MAX_ITEMS 1000 /* more is not ours */

enum member_type { TEXT, INT32, INT64 };

#define AT(m)      offsetof(struct znode_drain, m)
#define SIZE_OF(m) sizeof(((struct znode_drain *)NULL)->m)

static const struct member {
        const char *name;
        enum member_type type;
        size_t offset, size;
        int64_t absent;
} members[] = {
        {"drain_id", TEXT, AT(id), SIZE_OF(id), 0},
        {"broker", INT32, AT(broker), 0, -1},
        {"epoch", INT64, AT(epoch), 0, -1},
        {"reason", TEXT, AT(reason), SIZE_OF(reason), 0},
        {"requested_by", TEXT, AT(requested_by), SIZE_OF(requested_by), 0},
        {"verdict", TEXT, AT(verdict), SIZE_OF(verdict), 0},
        {"started_ms", INT64, AT(started_ms), 0, 0},
        {"deadline_ms", INT64, AT(deadline_ms), 0, 0},
        {"drained_ms", INT64, AT(drained_ms), 0, 0},
        {"ended_ms", INT64, AT(ended_ms), 0, 0},
        {"busy_ms", INT64, AT(busy_ms), 0, 0},
        {"leaders", INT32, AT(leaders), 0, 0},
        {"replicas", INT32, AT(replicas), 0, 0},
        {"preferred", INT32, AT(preferred), 0, -1},
        {"preferred_led", INT32, AT(preferred_led), 0, -1},
        {"returned_ms", INT64, AT(returned_ms), 0, 0},
        {"moved", INT32, AT(moved), 0, 0},
        {"remaining", INT32, AT(remaining), 0, -1},
        {"isr_remaining", INT32, AT(isr_remaining), 0, 0},
        {"rf1", INT32, AT(single), 0, 0},
        {"controller", INT32, AT(controller), 0, -1},
};

/* --- writing --- */

static int put_member(const struct znode_drain *d, const struct member *m, struct buf *out)
{
        const char *at = (const char *)d + m->offset;
        int r = buf_printf(out, "%s\"%s\":", m == members ? "" : ",", m->name);

        if (r < 0)
                return r;
        if (m->type == TEXT)
                return znode_put_string(out, at);
        if (m->type == INT32)
                return buf_printf(out, "%" PRId32, *(const int32_t *)(const void *)at);
        return buf_printf(out, "%" PRId64, *(const int64_t *)(const void *)at);
}

static int put_reasons(const struct znode_drain *d, struct buf *out)
{
        int r = buf_append_str(out, ",\"reasons\":{");

        for (size_t i = 0; r == 0 && i < d->n_reasons; i++) {
                r = i > 0 ? buf_append_str(out, ",") : 0;
                if (r == 0)
                        r = znode_put_string(out, d->reasons[i].name);
                if (r == 0)
                        r = buf_printf(out, ":%" PRId32, d->reasons[i].n);
        }
        return r < 0 ? r : buf_append_str(out, "}");
}

static int put_left(const struct znode_drain *d, struct buf *out)
{
        int r = buf_append_str(out, ",\"left\":[");

        for (size_t i = 0; r == 0 && i < d->n_left; i++) {
                r = buf_append_str(out, i > 0 ? ",{\"topic\":" : "{\"topic\":");
                if (r == 0)
                        r = znode_put_string(out, d->left[i].topic);
                if (r == 0)
                        r = buf_printf(out, ",\"partition\":%" PRId32 ",\"reason\":", d->left[i].partition);
                if (r == 0)
                        r = znode_put_string(out, d->left[i].reason);
                if (r == 0)
                        r = buf_append_str(out, "}");
        }
        return r < 0 ? r : buf_append_str(out, "]");
}

static int put_drain(const struct znode_drain *d, struct buf *out)
{
        int r = buf_append_str(out, "{");

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(members); i++)
                r = put_member(d, &members[i], out);
        if (r == 0 && d->n_reasons > 0)
                r = put_reasons(d, out);
        if (r == 0 && d->n_left > 0)
                r = put_left(d, out);
        return r < 0 ? r : buf_append_str(out, "}");
}

int znode_drains_encode(const struct znode_drain *items, size_t n, struct buf *out)
{
        int r = buf_append_str(out, "{\"version\":1,\"drains\":[");

        for (size_t i = 0; r == 0 && i < n; i++) {
                r = i > 0 ? buf_append_str(out, ",") : 0;
                if (r == 0)
                        r = put_drain(&items[i], out);
        }
        return r < 0 ? r : buf_append_str(out, "]}");
}

/* --- reading --- */

static int take_text(const json_t *j, char *out, size_t size)
{
        if (!json_is_string(j) || strlen(json_string_value(j)) != json_string_length(j))
                return -EBADMSG;
        (void)snprintf(out, size, "%s", json_string_value(j));
        return 0;
}

static int take_member(const json_t *o, const struct member *m, struct znode_drain *ret)
{
        const json_t *j = json_object_get(o, m->name);
        void *at = (char *)ret + m->offset;

        if (m->type == TEXT)
                return j ? take_text(j, at, m->size) : 0;
        if (m->type == INT32 && !j) {
                *(int32_t *)at = (int32_t)m->absent;
                return 0;
        }
        if (!j) {
                *(int64_t *)at = m->absent;
                return 0;
        }
        return m->type == INT32 ? znode_int32(j, -1, INT32_MAX, at) : znode_int64(j, -1, INT64_MAX, at);
}

static int take_reasons(json_t *o, struct znode_drain *ret)
{
        const char *key;
        json_t *value;

        json_object_foreach(json_object_get(o, "reasons"), key, value)
        {
                if (ret->n_reasons == ZNODE_DRAIN_REASONS)
                        return 0;
                (void)snprintf(ret->reasons[ret->n_reasons].name, ZNODE_DRAIN_NAME, "%s", key);
                if (znode_int32(value, 0, INT32_MAX, &ret->reasons[ret->n_reasons].n) < 0)
                        return -EBADMSG;
                ret->n_reasons++;
        }
        return 0;
}

static int take_left(const json_t *o, struct znode_drain *ret)
{
        const json_t *list = json_object_get(o, "left"), *j;
        size_t n = MIN(json_array_size(list), (size_t)ZNODE_DRAIN_LEFT);

        if (n == 0)
                return 0;
        ret->left = calloc(n, sizeof(*ret->left));
        if (!ret->left)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct znode_drain_left *l = &ret->left[i];

                j = json_array_get(list, i);
                if (take_text(json_object_get(j, "topic"), l->topic, sizeof(l->topic)) < 0 ||
                    znode_int32(json_object_get(j, "partition"), 0, INT32_MAX, &l->partition) < 0 ||
                    take_text(json_object_get(j, "reason"), l->reason, sizeof(l->reason)) < 0)
                        return -EBADMSG;
        }
        ret->n_left = n;
        return 0;
}

static int take_drain(json_t *o, struct znode_drain *ret)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(members); i++)
                r = take_member(o, &members[i], ret);
        if (r == 0)
                r = take_reasons(o, ret);
        if (r == 0)
                r = take_left(o, ret);
        return r < 0 ? r : ret->id[0] && ret->broker >= 0 ? 0 : -EBADMSG;
}

void znode_drain_done(struct znode_drain *d)
{
        free(d->left);
        d->left = NULL;
        d->n_left = 0;
}

void znode_drains_done(struct znode_drains *d)
{
        for (size_t i = 0; i < d->n; i++)
                znode_drain_done(&d->items[i]);
        free(d->items);
        *d = (struct znode_drains){0};
}

int znode_drains_decode(const char *s, size_t len, struct znode_drains *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_drains d = {0};
        json_t *list;
        size_t n;
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r < 0)
                return r;
        list = json_object_get(j, "drains");
        n = json_array_size(list);
        if (!json_is_array(list) || n > MAX_ITEMS)
                return -EBADMSG;
        d.items = calloc(n + 1, sizeof(*d.items));
        if (!d.items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                r = take_drain(json_array_get(list, i), &d.items[d.n]);
                if (r == 0) {
                        d.n++;
                        continue;
                }
                znode_drain_done(&d.items[d.n]);
                memset(&d.items[d.n], 0, sizeof(*d.items));
                if (r == -ENOMEM) {
                        znode_drains_done(&d);
                        return r;
                }
        }
        *ret = d;
        return 0;
}
