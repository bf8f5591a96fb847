/* stepdown drains: the record of the last drains of the cluster (D12). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/admin_ask.h"
#include "cli/verbs.h"
#include "drain_status.h"

struct options {
        struct admin_options where;
        int32_t broker;
};

static const struct cli_option options[] = {
        {"broker", CLI_INT32, offsetof(struct options, broker), "N", "only drains of this broker", 0,
         INT32_MAX},
        ADMIN_OPTIONS(struct options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "printed"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no admin listener answered, or there is no active controller"},
        {0, NULL},
};

static bool is_list(const json_t *v)
{
        const json_t *list = json_object_get(v, "drains"), *d;
        size_t i;

        if (!json_is_array(list))
                return false;
        json_array_foreach(list, i, d)
        {
                if (!json_is_string(json_object_get(d, "drain_id")) ||
                    !json_is_integer(json_object_get(d, "started_ms")))
                        return false;
        }
        return true;
}

/* Anybody may have asked, in any words: they stay on their line. */
static void print_words(const char *before, const char *s)
{
        if (s[0] == '\0')
                return;
        printf("%s", before);
        for (; *s; s++)
                putchar((unsigned char)*s < 0x20 || *s == 0x7f ? ' ' : *s);
}

static void print_reasons(const json_t *d)
{
        json_t *reasons = json_object_get(d, "by_reason"), *n;
        const char *name;

        json_object_foreach(reasons, name, n)
                printf("  left: %" PRId64 " %s\n", (int64_t)json_integer_value(n), name);
}

static void print_drain(const json_t *d)
{
        const json_t *ended = json_object_get(d, "ended_ms"), *drained = json_object_get(d, "drained_ms");
        const json_t *remaining = json_object_get(d, "remaining");
        int64_t started_ms = admin_int(d, "started_ms");
        const char *verdict = admin_text(d, "verdict");
        char started[32], took[32] = "";

        format_time_utc(started_ms, started);
        if (json_is_integer(drained) || json_is_integer(ended))
                admin_format_ms(
                        MAX(json_integer_value(json_is_integer(drained) ? drained : ended) - started_ms,
                            (json_int_t)0),
                        took);
        printf("%s  broker %" PRId64 "  %s  moved %" PRId64 " of %" PRId64, started, admin_int(d, "broker"),
               verdict[0]                 ? verdict
               : json_is_integer(drained) ? "drained, still there"
                                          : "under way",
               admin_int(d, "moved"), admin_int(d, "leaders"));
        if (json_is_integer(remaining))
                printf(", %" PRId64 " remained", (int64_t)json_integer_value(remaining));
        printf("%s%s\n", took[0] ? ", in " : "", took);
        print_words("  drain ", admin_text(d, "drain_id"));
        print_words(" by ", admin_text(d, "requested_by"));
        print_words(": ", admin_text(d, "reason"));
        printf("\n");
        print_reasons(d);
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct options o = {.where = ADMIN_DEFAULTS, .broker = -1};
        char path[100] = "/v1/drains";
        const json_t *d;
        json_t *v = NULL;
        int n = 0, r;
        size_t i;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n > 0)
                return cli_usage(self, "no argument is expected");
        if (o.broker >= 0)
                (void)snprintf(path, sizeof(path), "/v1/drains?broker=%" PRId32, o.broker);
        r = admin_ask(self->name, &o.where, path, is_list, &v);
        if (r != CLI_OK)
                return r;
        if (!o.where.json) {
                json_array_foreach(json_object_get(v, "drains"), i, d) print_drain(d);
                if (json_array_size(json_object_get(v, "drains")) == 0)
                        printf("no drain is on record\n");
        }
        json_decref(v);
        return CLI_OK;
}

const struct cli_verb cli_verb_drains = {
        .name = "drains",
        .synopsis = "[--broker N] [--json] [--endpoints URL,…]",
        .summary = "show the record of the last drains",
        .details = "Newest first. Asks the active controller through any broker's admin listener.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
