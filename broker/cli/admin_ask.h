/* One GET of the admin interface: one endpoint after the other until one answers. Blocks; main thread. */
#pragma once

#include <jansson.h>

#include "cli/cli.h"

struct admin_options {
        const char *endpoints; /* NULL: $STEPDOWN_ENDPOINTS, or http://127.0.0.1:9644 */
        int64_t timeout_ms;    /* for each of them */
        bool json;
};
#define ADMIN_DEFAULTS                                                                                       \
        {                                                                                                    \
                .timeout_ms = 5000                                                                           \
        }
/* The rows of a verb's table for its member @m. */
#define ADMIN_OPTIONS(type, m)                                                                               \
        {"endpoints",                                                                                        \
         CLI_STRING,                                                                                         \
         offsetof(type, m.endpoints),                                                                        \
         "URL,…",                                                                                            \
         "admin listeners to ask, tried in order (default: $STEPDOWN_ENDPOINTS or http://127.0.0.1:9644)",   \
         0,                                                                                                  \
         0},                                                                                                 \
                {"timeout",                                                                                  \
                 CLI_DURATION_MS,                                                                            \
                 offsetof(type, m.timeout_ms),                                                               \
                 "TIME",                                                                                     \
                 "how long to wait for each of them (default 5s)",                                           \
                 0,                                                                                          \
                 0},                                                                                         \
        {                                                                                                    \
                "json", CLI_FLAG, offsetof(type, m.json), NULL, "the controller's answer as it came", 0, 0   \
        }

/* What an answer has to be to be believed. */
typedef bool (*admin_accept_fn)(const json_t *body);

/* CLI_OK and *ret (json_decref() it); with @o->json its text is printed as it came, too. Otherwise a line on
 * stderr says why: CLI_USAGE (an endpoint is malformed), CLI_FAILED (the broker is not known: 404),
 * CLI_UNAVAILABLE (nobody answered, or no controller). */
int admin_ask(const char *verb, const struct admin_options *o, const char *path, admin_accept_fn accept,
              json_t **ret) must_check;

/* Members of an answer; 0, "" or false when they are missing. */
int64_t admin_int(const json_t *o, const char *key);
const char *admin_text(const json_t *o, const char *key);
bool admin_flag(const json_t *o, const char *key);
/* "25 min", "1.2 s", "300 ms" */
void admin_format_ms(int64_t ms, char out[32]);
