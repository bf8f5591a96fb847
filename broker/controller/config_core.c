/* Merging changes into a configuration: pure. */
#include "controller/config_core.h"

#include <stdio.h>
#include <string.h>

#include "wire/error.h"

#define SPACE " \t"

static bool same_name(const struct wire_str a, const struct wire_str b)
{
        return a.len == b.len && memcmp(a.data, b.data, (size_t)a.len) == 0;
}

static int16_t check_change(const struct incremental_alter_configs_request_config *k,
                            char error[CONFIG_TEXT_SIZE])
{
        if (k->name.len <= 0 || !znode_text_valid(k->name.data, (size_t)k->name.len) ||
            (k->value.len > 0 && !znode_text_valid(k->value.data, (size_t)k->value.len))) {
                (void)snprintf(error, CONFIG_TEXT_SIZE,
                               "a name or value is not valid text (UTF-8 without NUL)");
                return KAFKA_INVALID_CONFIG;
        }
        if (k->config_operation < 0 || k->config_operation >= N_CONFIG_OPS) {
                (void)snprintf(error, CONFIG_TEXT_SIZE,
                               "%.*s: there is no operation %d; it is 0 (set), 1 (delete), 2 (append) or 3 "
                               "(subtract)",
                               MIN(k->name.len, 100), k->name.data, k->config_operation);
                return KAFKA_INVALID_REQUEST;
        }
        if (k->value.len < 0 && k->config_operation != CONFIG_DELETE) {
                (void)snprintf(error, CONFIG_TEXT_SIZE, "Null value not supported for : %.*s",
                               MIN(k->name.len, 100), k->name.data);
                return KAFKA_INVALID_REQUEST;
        }
        return KAFKA_NONE;
}

int16_t config_changes_check(const struct incremental_alter_configs_request_resource *in,
                             char error[CONFIG_TEXT_SIZE])
{
        if (in->configs.n > CONFIG_MAX_CHANGES) {
                (void)snprintf(error, CONFIG_TEXT_SIZE, "too many settings of one resource: at most %d",
                               CONFIG_MAX_CHANGES);
                return KAFKA_INVALID_REQUEST;
        }
        for (int32_t i = 0; i < in->configs.n; i++) {
                const struct incremental_alter_configs_request_config *k = &in->configs.items[i];
                int16_t code = check_change(k, error);

                if (code != KAFKA_NONE)
                        return code;
                for (int32_t j = 0; j < i; j++)
                        if (same_name(in->configs.items[j].name, k->name)) {
                                (void)snprintf(error, CONFIG_TEXT_SIZE,
                                               "Error due to duplicate config keys: %.*s",
                                               MIN(k->name.len, 100), k->name.data);
                                return KAFKA_INVALID_REQUEST;
                        }
        }
        return KAFKA_NONE;
}

/* --- lists --- */

/* The next element of the list at *at, which is moved behind it; false: there is none. White space around
 * elements does not count. */
static bool next_element(const char **at, const char **ret, size_t *ret_len)
{
        const char *p = *at;
        size_t n;

        while (p && *p) {
                p += strspn(p, SPACE);
                n = strcspn(p, ",");
                *ret = p;
                *ret_len = n;
                p = p[n] ? p + n + 1 : NULL;
                *at = p;
                while (*ret_len > 0 && strchr(SPACE, (*ret)[*ret_len - 1]))
                        --*ret_len;
                if (*ret_len > 0)
                        return true;
        }
        return false;
}

static bool list_has(const char *list, const char *s, size_t len)
{
        const char *e;
        size_t n;

        while (next_element(&list, &e, &n))
                if (n == len && memcmp(e, s, n) == 0)
                        return true;
        return false;
}

static char *put_element(char *to, char *at, const char *s, size_t len)
{
        if (at > to)
                *at++ = ',';
        memcpy(at, s, len);
        return at + len;
}

/* @add: @list and what of @change is not in it; else @list without what is in @change. */
static char *combine(struct arena *a, const char *list, const char *change, bool add)
{
        char *to = arena_alloc(a, strlen(list) + strlen(change) + 2, 1), *at = to;
        const char *from = list, *e;
        size_t n;

        if (!to)
                return NULL;
        while (next_element(&from, &e, &n))
                if (add || !list_has(change, e, n))
                        at = put_element(to, at, e, n);
        for (from = change; add && next_element(&from, &e, &n);)
                if (!list_has(list, e, n))
                        at = put_element(to, at, e, n);
        *at = '\0';
        return to;
}

/* --- the merge --- */

struct merge {
        const struct config_rules *rules;
        const struct znode_config *now;
        struct arena *a;
        struct znode_config *out;
        char *error;
};

static void put(struct znode_config *c, char *key, char *value)
{
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->entries[i].key, key) == 0) {
                        c->entries[i].value = value;
                        return;
                }
        c->entries[c->n++] = (struct znode_config_entry){.key = key, .value = value};
}

static void take_away(struct znode_config *c, const char *key)
{
        for (size_t i = 0; i < c->n; i++)
                if (strcmp(c->entries[i].key, key) == 0) {
                        memmove(&c->entries[i], &c->entries[i + 1],
                                (--c->n - i) * sizeof(struct znode_config_entry));
                        return;
                }
}

static int16_t new_value(const struct merge *m, const char *name, enum config_op op, char *value, char **ret)
{
        const char *now = znode_config_get(m->now, name);
        struct config_setting s;

        *ret = value;
        if (op == CONFIG_SET)
                return KAFKA_NONE;
        if (!m->rules->find(m->rules->scope, name, &s, m->rules->userdata) || !s.list) {
                (void)snprintf(m->error, CONFIG_TEXT_SIZE,
                               "Config value %s is not allowed for config key: %s; set it instead",
                               op == CONFIG_APPEND ? "append" : "subtract", name);
                return KAFKA_INVALID_CONFIG;
        }
        *ret = combine(m->a, now ? now : s.value, value, op == CONFIG_APPEND);
        return *ret ? KAFKA_NONE : KAFKA_UNKNOWN_SERVER_ERROR;
}

static int16_t apply(const struct merge *m, const struct incremental_alter_configs_request_config *k)
{
        char *name = arena_strndup(m->a, k->name.data, (size_t)k->name.len), why[256] = "";
        char *value = arena_strndup(m->a, k->value.data ? k->value.data : "", (size_t)MAX(k->value.len, 0));
        enum config_op op = (enum config_op)k->config_operation;
        int16_t code;

        if (!name || !value)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        if (op == CONFIG_DELETE) {
                /* What stands there may go, whoever put it there. */
                if (!znode_config_get(m->now, name) &&
                    m->rules->check(m->rules->scope, name, NULL, why, m->rules->userdata) < 0)
                        goto invalid;
                take_away(m->out, name);
                return KAFKA_NONE;
        }
        if (m->rules->check(m->rules->scope, name, NULL, why, m->rules->userdata) < 0)
                goto invalid;
        code = new_value(m, name, op, value, &value);
        if (code != KAFKA_NONE)
                return code;
        if (m->rules->check(m->rules->scope, name, value, why, m->rules->userdata) < 0)
                goto invalid;
        if (strlen(value) > ZNODE_CONFIG_MAX_VALUE) {
                (void)snprintf(why, sizeof(why), "%.100s: a value has at most %d bytes", name,
                               ZNODE_CONFIG_MAX_VALUE);
                goto invalid;
        }
        put(m->out, name, value);
        return KAFKA_NONE;

invalid:
        (void)snprintf(m->error, CONFIG_TEXT_SIZE, "%s", why);
        return KAFKA_INVALID_CONFIG;
}

static bool is_same(const struct znode_config *a, const struct znode_config *b)
{
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++) {
                const char *other = znode_config_get(b, a->entries[i].key);

                if (!other || strcmp(other, a->entries[i].value) != 0)
                        return false;
        }
        return true;
}

int16_t config_merge(const struct config_rules *rules, const struct znode_config *now,
                     const struct incremental_alter_configs_request_resource *in, struct arena *a,
                     struct znode_config *ret, bool *ret_changed, char error[CONFIG_TEXT_SIZE])
{
        struct merge m = {.rules = rules, .now = now, .a = a, .out = ret, .error = error};
        int16_t code = KAFKA_NONE;

        *ret = (struct znode_config){
                .entries = arena_alloc(a, now->n + (size_t)MAX(in->configs.n, 0) + 1, sizeof(*ret->entries))};
        if (!ret->entries)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        for (size_t i = 0; !rules->replace && i < now->n; i++)
                ret->entries[ret->n++] = now->entries[i];
        for (int32_t i = 0; code == KAFKA_NONE && i < in->configs.n; i++)
                code = apply(&m, &in->configs.items[i]);
        *ret_changed = code == KAFKA_NONE && !is_same(ret, now);
        return code;
}
