/* The body of PUT /v1/brokers/{id}/drain. Any thread; no state. Internal to admin/ and its fuzz target. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "controller/controller.h"

#define DRAIN_BODY_ERROR_SIZE 256

struct drain_body {
        int64_t epoch;       /* -1: not given */
        int64_t deadline_ms; /* from now; 0: none */
        bool replace, force, cluster_shutdown;
        char drain_id[DRAIN_TEXT_SIZE], reason[DRAIN_TEXT_SIZE], requested_by[DRAIN_TEXT_SIZE];
};

/* No bytes are an empty object. -EINVAL with an error code and a sentence that can stand in JSON. */
int drain_body_parse(const void *data, size_t len, struct drain_body *ret, const char **ret_code,
                     char error[DRAIN_BODY_ERROR_SIZE]) must_check;
