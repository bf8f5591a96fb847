/* Three passes: collect the text of each key from the file, the environment and the overrides (the last one
 * wins and remembers where it stood), then parse each text by its row, then store. Sentences name place,
 * thing and fix. */
#include "base/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "base/buf.h"
#include "base/parse.h"

struct setting {
        char *text;   /* NULL: not given */
        char *origin; /* "/etc/x.yaml:12", "environment variable X", "--set" */
        size_t line;  /* in the file, 0 elsewhere */
};

struct loader {
        const struct config_row *rows;
        size_t n_rows;
        const char *path, *env_prefix;
        struct setting *settings; /* one a row */
        char *error;
};

static int fail(struct loader *l, const char *fmt, ...) printf_like(2, 3);

static int fail(struct loader *l, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        if (!l->error && vasprintf(&l->error, fmt, ap) < 0)
                l->error = NULL;
        va_end(ap);
        return -EINVAL;
}

/* --- finding rows --- */

/* Edit distance (Levenshtein) with one row of memory. Keys longer than the row are never near. */
static size_t edit_distance(const char *a, const char *b)
{
        size_t row[128], n = strlen(b);

        if (n >= ARRAY_SIZE(row))
                return SIZE_MAX;
        for (size_t j = 0; j <= n; j++)
                row[j] = j;
        for (size_t i = 1; a[i - 1]; i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= n; j++) {
                        size_t above = row[j], cost = a[i - 1] == b[j - 1] ? 0 : 1;

                        row[j] = MIN(MIN(above, row[j - 1]) + 1, diagonal + cost);
                        diagonal = above;
                }
        }
        return row[n];
}

void config_nearer(const char *key, const char *candidate, size_t *best, const char **found)
{
        size_t d = edit_distance(key, candidate);

        if (*best == SIZE_MAX)
                *best = MAX(strlen(key) / 3, (size_t)2) + 1; /* farther than this is no slip of the finger */
        if (d >= *best)
                return;
        *best = d;
        *found = candidate;
}

static const char *nearest_key(const struct loader *l, const char *key)
{
        size_t best = SIZE_MAX;
        const char *found = NULL;

        for (size_t i = 0; i < l->n_rows; i++)
                config_nearer(key, l->rows[i].key, &best, &found);
        return found;
}

static int find_row(struct loader *l, const char *origin, const char *key, size_t *ret)
{
        const char *near;

        for (size_t i = 0; i < l->n_rows; i++)
                if (strcmp(l->rows[i].key, key) == 0) {
                        *ret = i;
                        return 0;
                }
        near = nearest_key(l, key);
        if (near)
                return fail(l, "%s: unknown key '%s'; did you mean '%s'?", origin, key, near);
        return fail(l, "%s: unknown key '%s'; the reference manual lists the known ones", origin, key);
}

static int set_text(struct loader *l, size_t row, const char *origin, const char *text)
{
        cleanup_with(freep) char *t = strdup(text), *o = strdup(origin);

        if (!t || !o)
                return -ENOMEM;
        free(l->settings[row].text);
        free(l->settings[row].origin);
        l->settings[row].text = TAKE_PTR(t);
        l->settings[row].origin = TAKE_PTR(o);
        return 0;
}

/* --- the file --- */

struct yaml_reader {
        yaml_parser_t parser;
        yaml_event_t event;
        bool has_event;
        char *origin; /* file and line of the event */
};

static void reader_done(struct yaml_reader *y)
{
        if (y->has_event)
                yaml_event_delete(&y->event);
        yaml_parser_delete(&y->parser);
        free(y->origin);
}

static int next_event(struct loader *l, struct yaml_reader *y)
{
        if (y->has_event)
                yaml_event_delete(&y->event);
        y->has_event = false;
        if (!yaml_parser_parse(&y->parser, &y->event))
                return fail(l, "%s:%zu: not valid YAML: %s", l->path, y->parser.problem_mark.line + 1,
                            y->parser.problem ? y->parser.problem : "unreadable");
        y->has_event = true;
        free(y->origin);
        if (asprintf(&y->origin, "%s:%zu", l->path, y->event.start_mark.line + 1) < 0) {
                y->origin = NULL;
                return -ENOMEM;
        }
        return 0;
}

static const char *scalar_text(const struct yaml_reader *y)
{
        return (const char *)y->event.data.scalar.value;
}

/* A list of scalars becomes "a,b,c", which is how Kafka's properties write lists. */
static int read_list(struct loader *l, struct yaml_reader *y, const char *key, struct buf *out)
{
        int r;

        for (;;) {
                r = next_event(l, y);
                if (r < 0)
                        return r;
                if (y->event.type == YAML_SEQUENCE_END_EVENT)
                        return 0;
                if (y->event.type != YAML_SCALAR_EVENT)
                        return fail(l, "%s: the list of '%s' may hold plain values only", y->origin, key);
                r = out->len > 0 ? buf_append(out, ",", 1) : 0;
                if (r == 0)
                        r = buf_append_str(out, scalar_text(y));
                if (r < 0)
                        return r;
        }
}

static int read_value(struct loader *l, struct yaml_reader *y, const char *key, struct buf *out)
{
        int r;

        r = next_event(l, y);
        if (r < 0)
                return r;
        switch (y->event.type) {
        case YAML_SCALAR_EVENT:
                return buf_append_str(out, scalar_text(y));
        case YAML_SEQUENCE_START_EVENT:
                return read_list(l, y, key, out);
        case YAML_MAPPING_START_EVENT:
                return fail(l, "%s: '%s' holds a nested mapping; write flat keys such as '%s.name: value'",
                            y->origin, key, key);
        default:
                return fail(l, "%s: '%s' needs a plain value or a list of them", y->origin, key);
        }
}

static int read_pair(struct loader *l, struct yaml_reader *y)
{
        cleanup_with(buf_donep) struct buf value = {0};
        cleanup_with(freep) char *origin = NULL;
        struct setting *s;
        size_t row, line = y->event.start_mark.line + 1;
        int r;

        if (y->event.type != YAML_SCALAR_EVENT)
                return fail(l, "%s: a key must be a plain word", y->origin);
        r = find_row(l, y->origin, scalar_text(y), &row);
        if (r < 0)
                return r;
        s = &l->settings[row];
        if (s->text)
                return fail(l, "%s: '%s' was set in line %zu already; remove one of them", y->origin,
                            l->rows[row].key, s->line);
        origin = strdup(y->origin); /* the key's line, whatever the value spans */
        if (!origin)
                return -ENOMEM;
        r = read_value(l, y, l->rows[row].key, &value);
        if (r < 0)
                return r;
        s->line = line;
        return buf_cstr(&value) ? set_text(l, row, origin, buf_cstr(&value)) : -ENOMEM;
}

/* Inside the document: one mapping, or nothing at all. */
static int read_document(struct loader *l, struct yaml_reader *y)
{
        int r;

        r = next_event(l, y);
        if (r < 0)
                return r;
        if (y->event.type == YAML_SCALAR_EVENT && *scalar_text(y) == '\0')
                return 0;
        if (y->event.type != YAML_MAPPING_START_EVENT)
                return fail(l, "%s: expected lines of the form 'key: value'", y->origin);
        for (;;) {
                r = next_event(l, y);
                if (r < 0)
                        return r;
                if (y->event.type == YAML_MAPPING_END_EVENT)
                        return 0;
                r = read_pair(l, y);
                if (r < 0)
                        return r;
        }
}

static int read_stream(struct loader *l, struct yaml_reader *y)
{
        bool seen = false;
        int r;

        for (;;) {
                r = next_event(l, y);
                if (r < 0)
                        return r;
                if (y->event.type == YAML_STREAM_END_EVENT)
                        return 0;
                if (y->event.type != YAML_DOCUMENT_START_EVENT)
                        continue;
                if (seen)
                        return fail(l, "%s: a second YAML document; put all keys into one", y->origin);
                seen = true;
                r = read_document(l, y);
                if (r < 0)
                        return r;
        }
}

static int read_path(struct loader *l)
{
        cleanup_with(reader_done) struct yaml_reader y = {0};
        FILE *f;
        int r;

        if (!yaml_parser_initialize(&y.parser))
                return -ENOMEM;
        f = fopen(l->path, "re");
        if (!f) {
                r = -errno;
                (void)fail(l, "%s: cannot be read: %s", l->path, strerror(-r));
                return r;
        }
        yaml_parser_set_input_file(&y.parser, f);
        r = read_stream(l, &y);
        (void)fclose(f); /* only read from */
        return r;
}

/* --- environment and flags --- */

static char *env_name(const char *prefix, const char *key)
{
        char *name, *c;

        if (asprintf(&name, "%s%s", prefix, key) < 0)
                return NULL;
        for (c = name + strlen(prefix); *c; c++)
                *c = *c == '.' || *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        return name;
}

static int read_environment(struct loader *l)
{
        for (size_t i = 0; i < l->n_rows; i++) {
                cleanup_with(freep) char *name = env_name(l->env_prefix, l->rows[i].key), *origin = NULL;
                const char *value;
                int r;

                if (!name)
                        return -ENOMEM;
                value = getenv(name);
                if (!value)
                        continue;
                if (asprintf(&origin, "environment variable %s", name) < 0) {
                        origin = NULL;
                        return -ENOMEM;
                }
                r = set_text(l, i, origin, value);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_override(struct loader *l, const char *override)
{
        const char *equals = strchr(override, '=');
        cleanup_with(freep) char *key = NULL;
        size_t row;
        int r;

        if (!equals || equals == override)
                return fail(l, "--set %s: write it as --set key=value", override);
        key = strndup(override, (size_t)(equals - override));
        if (!key)
                return -ENOMEM;
        r = find_row(l, "--set", key, &row);
        if (r < 0)
                return r;
        return set_text(l, row, "--set", equals + 1);
}

/* --- values --- */

static void int_bounds(const struct config_row *row, int64_t *ret_min, int64_t *ret_max)
{
        bool bounded = row->min != 0 || row->max != 0;
        bool narrow = row->type == CONFIG_INT32;

        *ret_min = bounded ? row->min : narrow ? INT32_MIN : row->type == CONFIG_DURATION_MS ? 0 : INT64_MIN;
        *ret_max = bounded ? row->max : narrow ? INT32_MAX : INT64_MAX;
        if (narrow) {
                *ret_min = MAX(*ret_min, (int64_t)INT32_MIN);
                *ret_max = MIN(*ret_max, (int64_t)INT32_MAX);
        }
}

static int store_int(struct loader *l, const struct config_row *row, const char *origin, const char *text,
                     void *to)
{
        int64_t min, max, v;
        int r;

        int_bounds(row, &min, &max);
        r = parse_int64(text, min, max, &v);
        if (r < 0)
                return fail(l, "%s: '%s' is '%s', but must be a whole number from %" PRId64 " to %" PRId64,
                            origin, row->key, text, min, max);
        if (row->type == CONFIG_INT32)
                *(int32_t *)to = (int32_t)v;
        else
                *(int64_t *)to = v;
        return 0;
}

/* Kafka writes "no limit" as -1: a bare negative number is taken where the row's range includes it. */
static int store_duration(struct loader *l, const struct config_row *row, const char *origin,
                          const char *text, void *to)
{
        int64_t min, max, v;
        int r;

        int_bounds(row, &min, &max);
        r = parse_duration_ms(text, 1, &v);
        if (r == -EINVAL && min < 0)
                r = parse_int64(text, min, -1, &v);
        if (r < 0 || v < min || v > max)
                return fail(l,
                            "%s: '%s' is '%s', but must be a duration such as 250ms, 30s, 25min or 1h, from "
                            "%" PRId64 " to %" PRId64 " milliseconds",
                            origin, row->key, text, min, max);
        *(int64_t *)to = v;
        return 0;
}

static int store_bool(struct loader *l, const struct config_row *row, const char *origin, const char *text,
                      void *to)
{
        if (parse_bool(text, to) < 0)
                return fail(l, "%s: '%s' is '%s', but must be true or false", origin, row->key, text);
        return 0;
}

static int store_enum(struct loader *l, const struct config_row *row, const char *origin, const char *text,
                      void *to)
{
        cleanup_with(buf_donep) struct buf all = {0};
        int r;

        for (int i = 0; row->choices[i]; i++)
                if (strcmp(text, row->choices[i]) == 0) {
                        *(int *)to = i;
                        return 0;
                }
        for (int i = 0; row->choices[i]; i++) {
                r = buf_printf(&all, "%s%s", i > 0 ? ", " : "", row->choices[i]);
                if (r < 0)
                        return r;
        }
        return fail(l, "%s: '%s' is '%s', but must be one of: %s", origin, row->key, text,
                    buf_cstr(&all) ? buf_cstr(&all) : "");
}

static int store_string(struct loader *l, const struct config_row *row, const char *origin, const char *text,
                        void *to)
{
        char *copy = strdup(text);

        (void)l, (void)row, (void)origin; /* any text will do */
        if (!copy)
                return -ENOMEM;
        free(*(char **)to);
        *(char **)to = copy;
        return 0;
}

static const struct {
        const char *name;
        int (*store)(struct loader *l, const struct config_row *row, const char *origin, const char *text,
                     void *to);
} types[] = {
        [CONFIG_STRING] = {"text", store_string},
        [CONFIG_INT32] = {"int", store_int},
        [CONFIG_INT64] = {"int", store_int},
        [CONFIG_BOOL] = {"bool", store_bool},
        [CONFIG_DURATION_MS] = {"duration", store_duration},
        [CONFIG_ENUM] = {"choice", store_enum},
};

static int missing(struct loader *l, const struct config_row *row)
{
        cleanup_with(freep) char *env = l->env_prefix ? env_name(l->env_prefix, row->key) : NULL;

        return fail(l, "%s: required key '%s' is missing (%s); add '%s: …'%s%s",
                    l->path ? l->path : "configuration", row->key, row->help ? row->help : "no default",
                    row->key, env ? " or set " : "", env ? env : "");
}

static int store_all(struct loader *l, void *target)
{
        for (size_t i = 0; i < l->n_rows; i++) {
                const struct config_row *row = &l->rows[i];
                const struct setting *s = &l->settings[i];
                const char *text = s->text ? s->text : row->default_text;
                int r;

                if (!text)
                        return missing(l, row);
                r = types[row->type].store(l, row, s->text ? s->origin : "default", text,
                                           (char *)target + row->offset);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int load(struct loader *l, const char *const *overrides, void *target)
{
        int r;

        if (l->path) {
                r = read_path(l);
                if (r < 0)
                        return r;
        }
        if (l->env_prefix) {
                r = read_environment(l);
                if (r < 0)
                        return r;
        }
        for (; overrides && *overrides; overrides++) {
                r = read_override(l, *overrides);
                if (r < 0)
                        return r;
        }
        return store_all(l, target);
}

int config_load(const struct config_row *rows, size_t n_rows, const char *path, const char *env_prefix,
                const char *const *overrides, void *target, char **ret_error)
{
        struct loader l = {.rows = rows, .n_rows = n_rows, .path = path, .env_prefix = env_prefix};
        int r;

        l.settings = calloc(n_rows, sizeof(*l.settings));
        if (!l.settings)
                return -ENOMEM;
        r = load(&l, overrides, target);
        if (r < 0 && ret_error)
                *ret_error = l.error ? TAKE_PTR(l.error) : strdup(strerror(-r));
        free(l.error);
        for (size_t i = 0; i < n_rows; i++) {
                free(l.settings[i].text);
                free(l.settings[i].origin);
        }
        free(l.settings);
        return r;
}

void config_done(const struct config_row *rows, size_t n_rows, void *target)
{
        for (size_t i = 0; i < n_rows; i++)
                if (rows[i].type == CONFIG_STRING) {
                        char **p = (char **)((char *)target + rows[i].offset);

                        free(*p);
                        *p = NULL;
                }
}

size_t config_row_text(const struct config_row *row, const void *target, char *out, size_t size)
{
        const void *at = (const char *)target + row->offset;
        const char *text;
        int n;

        switch (row->type) {
        case CONFIG_INT32:
                n = snprintf(out, size, "%" PRId32, *(const int32_t *)at);
                break;
        case CONFIG_INT64:
        case CONFIG_DURATION_MS:
                n = snprintf(out, size, "%" PRId64, *(const int64_t *)at);
                break;
        case CONFIG_BOOL:
                n = snprintf(out, size, "%s", *(const bool *)at ? "true" : "false");
                break;
        case CONFIG_ENUM:
                n = snprintf(out, size, "%s", row->choices[*(const int *)at]);
                break;
        default:
                text = *(char *const *)at;
                n = snprintf(out, size, "%s", text ? text : "");
                break;
        }
        return n < 0 ? 0 : MIN((size_t)n, size - 1);
}

static void print_range(const struct config_row *row)
{
        int64_t min, max;

        if (row->type == CONFIG_ENUM) {
                for (int i = 0; row->choices[i]; i++)
                        printf("%s%s", i > 0 ? "|" : " ", row->choices[i]);
                return;
        }
        if (row->type == CONFIG_STRING || row->type == CONFIG_BOOL || (row->min == 0 && row->max == 0))
                return;
        int_bounds(row, &min, &max);
        printf(" %" PRId64 "..", min);
        if (max != INT64_MAX)
                printf("%" PRId64, max);
}

void config_print_help(const struct config_row *rows, size_t n_rows)
{
        for (size_t i = 0; i < n_rows; i++) {
                const struct config_row *row = &rows[i];

                printf("%s (%s", row->key, types[row->type].name);
                print_range(row);
                if (!row->default_text)
                        printf(", required");
                else
                        printf(", default %s", *row->default_text ? row->default_text : "empty");
                printf("%s)\n    %s\n", row->reloadable ? ", reloadable" : "", row->help ? row->help : "");
        }
}
