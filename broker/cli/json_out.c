#include "cli/json_out.h"

#include <stdio.h>

json_t *json_out_str(struct wire_str s)
{
        return s.len < 0 ? json_null() : json_stringn(s.data ? s.data : "", (size_t)s.len);
}

json_t *json_out_ids(const int32_t *ids, int32_t n)
{
        json_t *a = json_array();

        for (int32_t i = 0; i < n; i++)
                (void)json_array_append_new(a, json_integer(ids[i]));
        return a;
}

void json_out_print(json_t *j)
{
        (void)json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(j);
}
