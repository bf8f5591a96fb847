/* The command line `stepdown`: one table of verbs, one table of options a verb.
 *
 * --help, --version and shell completion are printed from these tables, so a row carries its own help text. A
 * verb lives in cmd_<verb>.c, exports one `const struct cli_verb`, and gets a line in the table of verbs.c.
 * Runs on the main thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/util.h"

/* Exit statuses every verb shares (sysexits.h where it has one). A verb may document more. */
enum cli_exit {
        CLI_OK = 0,
        CLI_FAILED = 1,
        CLI_USAGE = 64,       /* EX_USAGE */
        CLI_UNAVAILABLE = 69, /* EX_UNAVAILABLE: nobody who could answer was reachable */
        CLI_INCOMPLETE = 75,  /* EX_TEMPFAIL: trying again later may succeed */
        CLI_BROKER_GONE = 76, /* the broker ended meanwhile */
        CLI_RISK = 80,        /* it would do harm */
};

enum cli_option_type {
        CLI_FLAG,        /* bool, no argument */
        CLI_STRING,      /* const char *, points into argv */
        CLI_MAYBE,       /* const char *; "" when no value follows (next is an option, or the end) */
        CLI_INT32,       /* int32_t, within min..max */
        CLI_DURATION_MS, /* int64_t; "25min", "30s", a bare number is seconds */
};

struct cli_option {
        const char *name; /* without the dashes; given as --name VALUE or --name=VALUE */
        enum cli_option_type type;
        size_t offset;    /* of the member in the verb's options struct */
        const char *arg;  /* what --help calls the argument; NULL for flags */
        const char *help; /* NULL: another spelling, taken but not shown */
        int64_t min, max; /* CLI_INT32; both 0: any */
};

struct cli_exit_row {
        int status;
        const char *help;
};

struct cli_verb {
        const char *name;
        const char *synopsis; /* what follows the name, e.g. "list|create TOPIC [OPTIONS]" */
        const char *summary;  /* one line */
        const char *details;  /* a paragraph for `stepdown VERB --help`, or NULL */
        const struct cli_option *options;
        size_t n_options;
        const struct cli_exit_row *exits; /* ends with a row whose help is NULL; may be NULL */
        /* @argv[0] is the verb's name. Returns the exit status. */
        int (*run)(const struct cli_verb *self, int argc, char **argv);
        const char *actions; /* "list|create": what the first argument may be; NULL: anything or nothing */
};

/* Fill @target from @argv by the verb's rows. Positional arguments are moved to the front of @argv (from
 * index 1) and counted in *ret_n_args. Returns 0; 1 after printing --help (the verb ends with CLI_OK);
 * -EINVAL after one line on stderr that names the option (the verb ends with CLI_USAGE). Members not named
 * keep their values. */
int cli_parse(const struct cli_verb *verb, int argc, char **argv, void *target, int *ret_n_args) must_check;
void cli_print_verb_help(const struct cli_verb *verb, FILE *to);
/* One line, "stepdown VERB: SENTENCE; see stepdown VERB --help", on stderr. Returns CLI_USAGE. */
int cli_usage(const struct cli_verb *verb, const char *sentence, ...) printf_like(2, 3);
