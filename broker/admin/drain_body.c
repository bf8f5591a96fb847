#include "admin/drain_body.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define YEAR_MS (INT64_C(1000) * 86400 * 365)

static void json_freep(json_t **j)
{
        json_decref(*j);
}

static int fail(char error[DRAIN_BODY_ERROR_SIZE], const char *sentence)
{
        (void)snprintf(error, DRAIN_BODY_ERROR_SIZE, "%s", sentence);
        return -EINVAL;
}

static int take_text(const json_t *v, char *to, char error[DRAIN_BODY_ERROR_SIZE])
{
        if (!json_is_string(v) || json_string_length(v) >= DRAIN_TEXT_SIZE)
                return fail(error, "drain_id, reason and requested_by are strings of at most 255 bytes");
        memcpy(to, json_string_value(v), json_string_length(v) + 1);
        return 0;
}

static int take_member(const char *key, const json_t *v, struct drain_body *ret,
                       char error[DRAIN_BODY_ERROR_SIZE])
{
        const struct {
                const char *key;
                char *text;
                int64_t *number;
                bool *flag;
        } members[] = {
                {"drain_id", .text = ret->drain_id},
                {"reason", .text = ret->reason},
                {"requested_by", .text = ret->requested_by},
                {"epoch", .number = &ret->epoch},
                {"deadline_ms", .number = &ret->deadline_ms},
                {"replace", .flag = &ret->replace},
                {"force", .flag = &ret->force},
                {"cluster_shutdown", .flag = &ret->cluster_shutdown},
        };
        size_t i = 0;

        while (i < ARRAY_SIZE(members) && strcmp(members[i].key, key) != 0)
                i++;
        if (i == ARRAY_SIZE(members))
                return fail(error, "unknown member; known are epoch, drain_id, reason, requested_by, "
                                   "deadline_ms, replace, force, cluster_shutdown");
        if (members[i].text)
                return take_text(v, members[i].text, error);
        if (members[i].number) {
                if (!json_is_integer(v))
                        return fail(error, "epoch and deadline_ms are integers");
                *members[i].number = json_integer_value(v);
                return 0;
        }
        if (!json_is_boolean(v))
                return fail(error, "replace, force and cluster_shutdown are true or false");
        *members[i].flag = json_is_true(v);
        return 0;
}

static int take_object(json_t *o, struct drain_body *ret, char error[DRAIN_BODY_ERROR_SIZE])
{
        const char *key;
        json_t *v;
        int r;

        if (!json_is_object(o))
                return fail(error, "the body must be a JSON object");
        json_object_foreach(o, key, v)
        {
                r = take_member(key, v, ret, error);
                if (r < 0)
                        return r;
        }
        if (ret->force && ret->reason[0] == '\0')
                return fail(error, "force needs a reason, which is recorded");
        if (ret->deadline_ms < 0 || ret->deadline_ms > YEAR_MS)
                return fail(error, "deadline_ms is a number of milliseconds from now, at most a year");
        return 0;
}

/* The parser quotes what it could not read, whatever bytes that was. */
static void say_what_is_wrong(const json_error_t *e, char error[DRAIN_BODY_ERROR_SIZE])
{
        (void)snprintf(error, DRAIN_BODY_ERROR_SIZE, "the body is not JSON: line %d, column %d: %s", e->line,
                       e->column, e->text);
        for (char *p = error; *p; p++)
                if (*p < ' ' || *p > '~')
                        *p = '?';
}

int drain_body_parse(const void *data, size_t len, struct drain_body *ret, const char **ret_code,
                     char error[DRAIN_BODY_ERROR_SIZE])
{
        cleanup_with(json_freep) json_t *o = NULL;
        json_error_t e;

        *ret = (struct drain_body){.epoch = -1};
        o = len > 0 ? json_loadb(data, len, JSON_REJECT_DUPLICATES, &e) : json_object();
        if (!o) {
                *ret_code = "bad_json";
                say_what_is_wrong(&e, error);
                return -EINVAL;
        }
        *ret_code = "bad_request";
        return take_object(o, ret, error);
}
