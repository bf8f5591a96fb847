/* The bound on topics created on first use. Not thread-safe: the net loop's. Internal to api/. */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "wire/types.h"

struct auto_create {
        struct map *recent; /* names passed on in the current window -> any pointer */
        int64_t since_ms;   /* when it began */
};

int auto_create_init(struct auto_create *a) must_check; /* -ENOMEM */
void auto_create_done(struct auto_create *a);
/* Is the controller to be asked for @name now? true counts as having asked. */
bool auto_create_wants(struct auto_create *a, struct wire_str name, int64_t now_ms);
