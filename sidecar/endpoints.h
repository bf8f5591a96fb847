/* The admin listeners that are known: configured ones first, learnt ones behind. Grows only, to a ceiling. */
#pragma once

#include <stdint.h>

#include "base/util.h"

#define ENDPOINTS_MAX 64

struct endpoints {
        int n;
        char base[ENDPOINTS_MAX][320]; /* "scheme://host:port" */
        int32_t broker[ENDPOINTS_MAX]; /* whose it is; -1: not known */
};

/* Fill from a list separated by commas or spaces. -EINVAL: one of them is no endpoint, or there is none. */
int endpoints_parse(struct endpoints *e, const char *list) must_check;
/* Index of @text, added if new; -1 when it is no endpoint or the ceiling is reached. */
int endpoints_add(struct endpoints *e, const char *text);
void endpoints_set_broker(struct endpoints *e, int at, int32_t broker); /* @at -1: nothing happens */
int endpoints_of_broker(const struct endpoints *e, int32_t broker);     /* index, or -1 */
const char *endpoints_get(const struct endpoints *e, int at);
