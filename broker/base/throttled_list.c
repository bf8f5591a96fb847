#include "base/throttled_list.h"

#include <ctype.h>
#include <string.h>

#define SPACE " \t\r\n"

/* A whole number of at most 31 bits at *at, which is moved past it. */
static bool take_number(const char **at, int32_t *ret)
{
        const char *p = *at;
        int64_t n = 0;

        if (!isdigit((unsigned char)*p))
                return false;
        for (; isdigit((unsigned char)*p); p++) {
                n = n * 10 + (*p - '0');
                if (n > INT32_MAX)
                        return false;
        }
        *at = p;
        *ret = (int32_t)n;
        return true;
}

/* One "p:b" at *at, which is moved past it and past the comma behind it. */
static bool take_replica(const char **at, int32_t *ret_partition, int32_t *ret_broker)
{
        const char *p = *at + strspn(*at, SPACE);

        if (!take_number(&p, ret_partition) || *p != ':')
                return false;
        p++;
        if (!take_number(&p, ret_broker))
                return false;
        p += strspn(p, SPACE);
        if (*p != '\0' && (*p != ',' || p[1] == '\0'))
                return false;
        *at = *p == ',' ? p + 1 : p;
        return true;
}

static bool is_all(const char *list)
{
        list += strspn(list, SPACE);
        return list[0] == '*' && list[1 + strspn(list + 1, SPACE)] == '\0';
}

static bool is_empty(const char *list)
{
        return list[strspn(list, SPACE)] == '\0';
}

bool throttled_list_valid(const char *list)
{
        int32_t partition, broker;

        if (is_all(list) || is_empty(list))
                return true;
        while (*list)
                if (!take_replica(&list, &partition, &broker))
                        return false;
        return true;
}

bool throttled_list_has(const char *list, int32_t partition, int32_t broker)
{
        int32_t p, b;

        if (!list)
                return false;
        if (is_all(list))
                return true;
        while (*list && take_replica(&list, &p, &b))
                if (p == partition && b == broker)
                        return true;
        return false;
}
