/* Table-driven YAML configuration: one flat map of keys to scalars (or lists of scalars, joined by ',').
 *
 * Kafka's own key names. A row names its member by offset; the same table prints the reference manual.
 * Unknown keys are errors that name file, line and the nearest known key. Environment variables
 * (prefix + key upper-cased, '.' and '-' as '_') override the file, flags `--set key=value` override both. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

enum config_type {
        CONFIG_STRING,      /* char * (owned) */
        CONFIG_INT32,       /* int32_t, within min..max */
        CONFIG_INT64,       /* int64_t, within min..max */
        CONFIG_BOOL,        /* bool */
        CONFIG_DURATION_MS, /* int64_t; "30s" or a bare number of milliseconds */
        CONFIG_ENUM,        /* int; one of `choices`, the index is stored */
};

struct config_row {
        const char *key;
        enum config_type type;
        size_t offset;
        const char *default_text; /* NULL: required */
        int64_t min, max; /* both 0: all that the type holds (durations: from 0); a negative min admits -1 for
                             "no limit" */
        const char *const *choices; /* NULL-terminated */
        bool reloadable;
        const char *help;
};

/* Fill @target from defaults, @path (NULL: none), the environment and @overrides ("key=value",
 * NULL-terminated list or NULL). On failure returns -EINVAL or -errno of the file and *ret_error (if not
 * NULL) gets an allocated sentence naming the thing and the fix ("/etc/x.yaml:12: unknown key 'broker.idd';
 * did you mean 'broker.id'?"); @target must be zeroed before and be given to config_done() afterwards either
 * way. */
int config_load(const struct config_row *rows, size_t n_rows, const char *path, const char *env_prefix,
                const char *const *overrides, void *target, char **ret_error) must_check;
void config_done(const struct config_row *rows, size_t n_rows, void *target);
/* Reference manual of the table on stdout: key, type, default, reloadable, help. */
void config_print_help(const struct config_row *rows, size_t n_rows);
/* A row's value as text that config_load() would read again, durations in milliseconds; the text's length
 * (cut off at @size). */
size_t config_row_text(const struct config_row *row, const void *target, char *out, size_t size);
/* Is @candidate likelier than what was found so far to be what the author of @key meant? Then *found becomes
 * it. *best: SIZE_MAX at first. */
void config_nearer(const char *key, const char *candidate, size_t *best, const char **found);
