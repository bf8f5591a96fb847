/* The JSON documents that --json prints. */
#pragma once

#include <jansson.h>

#include "wire/types.h"

json_t *json_out_str(struct wire_str s); /* null for null */
json_t *json_out_ids(const int32_t *ids, int32_t n);
/* One document and a newline on standard output; releases @j. */
void json_out_print(json_t *j);
