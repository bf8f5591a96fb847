/* Any Kafka message as JSON and back, by its table: members under their names in the table, nulls as null,
 * bytes not supported. For tests that script a broker. */
#pragma once

#include <jansson.h>

#include "wire/table.h"

/* What @version carries. */
json_t *wire_to_json(const struct wire_message *m, int16_t version, const void *body);
/* Members that are missing have their defaults. A string "$NAME" for a number is looked up in @names.
 * Aborts, naming the member, on one that the table does not know or that has another type: the script is
 * wrong. */
void wire_from_json(const struct wire_message *m, const json_t *j, const json_t *names, struct arena *a,
                    void *ret);
