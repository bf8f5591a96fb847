/* Parsing and printing of a verb's option table. */
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

#define HELP_COLUMN 26

static const struct cli_option *find_option(const struct cli_verb *verb, const char *name, size_t len)
{
        for (size_t i = 0; i < verb->n_options; i++)
                if (strlen(verb->options[i].name) == len && strncmp(verb->options[i].name, name, len) == 0)
                        return &verb->options[i];
        return NULL;
}

static int complain(const struct cli_verb *verb, const char *what, const char *argument)
{
        (void)fprintf(stderr, "stepdown %s: %s '%s'; see stepdown %s --help\n", verb->name, what, argument,
                      verb->name);
        return -EINVAL;
}

int cli_usage(const struct cli_verb *verb, const char *sentence, ...)
{
        va_list args;

        (void)fprintf(stderr, "stepdown %s: ", verb->name);
        va_start(args, sentence);
        (void)vfprintf(stderr, sentence, args);
        va_end(args);
        (void)fprintf(stderr, "; see stepdown %s --help\n", verb->name);
        return CLI_USAGE;
}

static int store_int32(const struct cli_option *o, const char *value, void *at)
{
        bool bounded = o->min != 0 || o->max != 0;

        return parse_int32(value, bounded ? (int32_t)o->min : INT32_MIN,
                           bounded ? (int32_t)o->max : INT32_MAX, at);
}

static int store(const struct cli_option *o, const char *value, void *target)
{
        void *at = (char *)target + o->offset;

        switch (o->type) {
        case CLI_FLAG:
                *(bool *)at = true;
                return 0;
        case CLI_STRING:
        case CLI_MAYBE:
                *(const char **)at = value;
                return 0;
        case CLI_INT32:
                return store_int32(o, value, at);
        case CLI_DURATION_MS:
                return parse_duration_ms(value, 1000, at);
        }
        return -EINVAL;
}

/* argv[*at] begins with "--". Moves *at past a value of its own. */
static int parse_one(const struct cli_verb *verb, int argc, char **argv, int *at, void *target)
{
        const char *arg = argv[*at], *name = arg + 2;
        size_t len = strcspn(name, "=");
        const char *value = name[len] == '=' ? name + len + 1 : NULL;
        const struct cli_option *o = find_option(verb, name, len);

        if (!o)
                return complain(verb, "unknown option", arg);
        if (o->type == CLI_FLAG && value)
                return complain(verb, "this option takes no value:", arg);
        if (o->type == CLI_MAYBE && !value)
                value = *at + 1 < argc && argv[*at + 1][0] != '-' ? argv[++*at] : "";
        if (o->type != CLI_FLAG && !value) {
                if (*at + 1 >= argc)
                        return complain(verb, "a value is missing for", arg);
                value = argv[++*at];
        }
        return store(o, value, target) < 0 ? complain(verb, "not a valid value:", arg) : 0;
}

int cli_parse(const struct cli_verb *verb, int argc, char **argv, void *target, int *ret_n_args)
{
        bool options_end = false;
        int n = 0;

        for (int i = 1; i < argc; i++) {
                if (!options_end && strcmp(argv[i], "--") == 0) {
                        options_end = true;
                } else if (!options_end && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
                        cli_print_verb_help(verb, stdout);
                        return 1;
                } else if (!options_end && strncmp(argv[i], "--", 2) == 0) {
                        if (parse_one(verb, argc, argv, &i, target) < 0)
                                return -EINVAL;
                } else if (!options_end && argv[i][0] == '-' && argv[i][1] != '\0') {
                        return complain(verb, "unknown option", argv[i]);
                } else {
                        argv[++n] = argv[i];
                }
        }
        *ret_n_args = n;
        return 0;
}

/* Columns of UTF-8 text: every byte but the continuation ones. */
static int columns(const char *s)
{
        int n = 0;

        for (; *s; s++)
                n += ((unsigned char)*s & 0xc0) != 0x80;
        return n;
}

static void print_option(FILE *to, const char *name, const char *arg, const char *help)
{
        int used = 4 + columns(name) + (arg ? 1 + columns(arg) : 0);

        (void)fprintf(to, "  --%s%s%s", name, arg ? " " : "", arg ? arg : "");
        if (used >= HELP_COLUMN)
                (void)fprintf(to, "\n%*s%s\n", HELP_COLUMN, "", help);
        else
                (void)fprintf(to, "%*s%s\n", HELP_COLUMN - used, "", help);
}

void cli_print_verb_help(const struct cli_verb *verb, FILE *to)
{
        (void)fprintf(to, "usage: stepdown %s %s\n\n%s\n", verb->name, verb->synopsis, verb->summary);
        if (verb->details)
                (void)fprintf(to, "\n%s\n", verb->details);
        (void)fprintf(to, "\noptions:\n");
        for (size_t i = 0; i < verb->n_options; i++)
                if (verb->options[i].help)
                        print_option(to, verb->options[i].name, verb->options[i].arg, verb->options[i].help);
        print_option(to, "help", NULL, "print this help");
        for (const struct cli_exit_row *e = verb->exits; e && e->help; e++)
                (void)fprintf(to, "%s  %3d  %s\n", e == verb->exits ? "\nexit status:\n" : "", e->status,
                              e->help);
}
