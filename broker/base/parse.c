/* Nothing is skipped and nothing is guessed: a text either is of the form or it is refused. */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* Digits, one '-' allowed in front; *ret_end is the first byte after them. -EINVAL or -ERANGE. */
static int scan_int64(const char *s, int64_t *ret, const char **ret_end)
{
        const char *digits = *s == '-' ? s + 1 : s;
        char *end;
        long long v;

        if (!isdigit((unsigned char)*digits)) /* refuses blanks and '+', which strtoll() would take */
                return -EINVAL;
        errno = 0;
        v = strtoll(s, &end, 10);
        *ret_end = end;
        if (errno == ERANGE)
                return -ERANGE;
        *ret = v;
        return 0;
}

int parse_int64(const char *s, int64_t min, int64_t max, int64_t *ret)
{
        const char *end = NULL;
        int64_t v = 0;
        int r;

        r = scan_int64(s, &v, &end);
        if (end && *end)
                return -EINVAL;
        if (r < 0)
                return r;
        if (v < min || v > max)
                return -ERANGE;
        *ret = v;
        return 0;
}

int parse_int32(const char *s, int32_t min, int32_t max, int32_t *ret)
{
        int64_t v;
        int r;

        r = parse_int64(s, min, max, &v);
        if (r < 0)
                return r;
        *ret = (int32_t)v;
        return 0;
}

int parse_bool(const char *s, bool *ret)
{
        static const struct {
                const char *word;
                bool value;
        } words[] = {
                {"true", true}, {"false", false}, {"yes", true}, {"no", false}, {"1", true}, {"0", false},
        };

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (strcmp(s, words[i].word) == 0) {
                        *ret = words[i].value;
                        return 0;
                }
        return -EINVAL;
}

int parse_duration_ms(const char *s, int64_t bare_unit_ms, int64_t *ret)
{
        static const struct {
                const char *name;
                int64_t ms;
        } units[] = {
                {"ms", 1}, {"s", 1000}, {"min", 60 * 1000}, {"h", 3600 * 1000}, {"d", 24 * 3600 * 1000},
        };
        const char *end = NULL;
        int64_t v = 0, unit_ms = 0, ms;
        int r;

        if (*s == '-')
                return -EINVAL;
        r = scan_int64(s, &v, &end);
        if (r == -EINVAL)
                return r;
        if (*end == '\0')
                unit_ms = bare_unit_ms;
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (strcmp(end, units[i].name) == 0)
                        unit_ms = units[i].ms;
        if (unit_ms == 0)
                return -EINVAL;
        if (r < 0 || __builtin_mul_overflow(v, unit_ms, &ms))
                return -ERANGE;
        *ret = ms;
        return 0;
}

int parse_host_port(const char *s, char host[256], uint16_t *ret_port)
{
        const char *colon = strrchr(s, ':'), *first = s, *last = colon;
        int64_t port;
        size_t len;
        int r;

        if (!colon)
                return -EINVAL;
        if (*s == '[') {
                first = s + 1;
                last = strchr(s, ']');
                if (!last || last + 1 != colon)
                        return -EINVAL;
        } else if (memchr(s, ':', (size_t)(colon - s))) {
                return -EINVAL; /* an IPv6 address without brackets: where it ends would be a guess */
        }
        len = (size_t)(last - first);
        if (len == 0)
                return -EINVAL;
        if (len > 255)
                return -ERANGE;
        r = parse_int64(colon + 1, 0, UINT16_MAX, &port);
        if (r < 0)
                return r;
        memcpy(host, first, len);
        host[len] = '\0';
        *ret_port = (uint16_t)port;
        return 0;
}
