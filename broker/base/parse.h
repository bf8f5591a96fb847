/* Strict parsers for text from people and files. All return 0, -EINVAL (not of the form, trailing
 * bytes included) or -ERANGE, and write *ret only on success. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

int parse_int64(const char *s, int64_t min, int64_t max, int64_t *ret) must_check;
int parse_int32(const char *s, int32_t min, int32_t max, int32_t *ret) must_check;
int parse_bool(const char *s, bool *ret) must_check; /* true|false|yes|no|1|0 */
/* "250ms", "30s", "25min", "1h", "7d", or a bare number of @bare_unit_ms; result in milliseconds. */
int parse_duration_ms(const char *s, int64_t bare_unit_ms, int64_t *ret) must_check;
/* "host:port" or "[v6]:port" (written without the brackets); port 0 is allowed. Host longer than 255:
 * -ERANGE. */
int parse_host_port(const char *s, char host[256], uint16_t *ret_port) must_check;
