#include "zk/znode_json.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "zk/znode.h"

/* Blank out a comma after an element that only white space separates from the closing bracket, outside
 * strings. */
static void drop_trailing_commas(char *s, size_t len)
{
        bool in_string = false;
        size_t comma = SIZE_MAX; /* the last thing seen is a comma after an element, here */
        char last = '[';

        for (size_t i = 0; i < len; i++) {
                char c = s[i];

                if (in_string) {
                        if (c == '\\')
                                i++;
                        else if (c == '"')
                                in_string = false;
                        continue;
                }
                if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
                        continue;
                if ((c == ']' || c == '}') && comma != SIZE_MAX)
                        s[comma] = ' ';
                comma = c == ',' && last != '[' && last != '{' && last != ',' ? i : SIZE_MAX;
                in_string = c == '"';
                last = c;
        }
}

static json_t *load(const char *s, size_t len, bool any)
{
        return json_loadb(s, len, any ? JSON_DECODE_ANY : 0, NULL);
}

int znode_parse(const char *s, size_t len, bool any, bool lenient, json_t **ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;

        if (!s || len == 0)
                return -EBADMSG;
        j = load(s, len, any);
        if (!j && lenient) {
                cleanup_with(freep) char *copy = malloc(len);

                if (!copy)
                        return -ENOMEM;
                memcpy(copy, s, len);
                drop_trailing_commas(copy, len);
                j = load(copy, len, any);
        }
        if (!j || (!any && !json_is_object(j)))
                return -EBADMSG;
        *ret = TAKE_PTR(j);
        return 0;
}

int znode_int64(const json_t *j, int64_t min, int64_t max, int64_t *ret)
{
        int64_t v;

        if (json_is_integer(j))
                v = json_integer_value(j);
        else if (!json_is_string(j) || parse_int64(json_string_value(j), min, max, &v) < 0)
                return -EBADMSG;
        if (v < min || v > max)
                return -EBADMSG;
        *ret = v;
        return 0;
}

int znode_int32(const json_t *j, int32_t min, int32_t max, int32_t *ret)
{
        int64_t v;
        int r;

        r = znode_int64(j, min, max, &v);
        if (r < 0)
                return r;
        *ret = (int32_t)v;
        return 0;
}

int znode_string(const json_t *j, size_t max_len, char **ret)
{
        size_t len;

        if (!json_is_string(j))
                return -EBADMSG;
        len = json_string_length(j);
        if (len == 0 || len > max_len)
                return -EBADMSG;
        *ret = strdup(json_string_value(j));
        return *ret ? 0 : -ENOMEM;
}

int znode_ids(const json_t *j, int32_t **ret, size_t *ret_n)
{
        cleanup_with(freep) int32_t *ids = NULL;
        size_t n;
        int r;

        if (!json_is_array(j))
                return -EBADMSG;
        n = json_array_size(j);
        if (n > 0) {
                ids = calloc(n, sizeof(*ids));
                if (!ids)
                        return -ENOMEM;
        }
        for (size_t i = 0; i < n; i++) {
                r = znode_int32(json_array_get(j, i), 0, INT32_MAX, &ids[i]);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(ids);
        *ret_n = n;
        return 0;
}

bool znode_text_valid(const char *s, size_t len)
{
        cleanup_with(json_decrefp) json_t *j = memchr(s, 0, len) ? NULL : json_stringn(s, len);

        return j;
}

int znode_put_string(struct buf *out, const char *s)
{
        size_t plain;
        int r;

        r = buf_append_str(out, "\"");
        if (r < 0)
                return r;
        for (; *s; s += plain) {
                for (plain = 0;
                     s[plain] && (unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\';
                     plain++)
                        ;
                r = buf_append(out, s, plain);
                if (r < 0)
                        return r;
                if (!s[plain])
                        break;
                r = buf_printf(out, "\\u%04x", (unsigned char)s[plain]);
                if (r < 0)
                        return r;
                plain++;
        }
        return buf_append_str(out, "\"");
}

int znode_put_ids(struct buf *out, const int32_t *ids, size_t n)
{
        int r;

        r = buf_append_str(out, "[");
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                r = buf_printf(out, "%s%d", i > 0 ? "," : "", ids[i]);
                if (r < 0)
                        return r;
        }
        return buf_append_str(out, "]");
}
