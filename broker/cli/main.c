/* stepdown: finds the verb and runs it. */
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "cli/cli.h"
#include "cli/verbs.h"

static void print_help(FILE *to)
{
        (void)fprintf(to, "usage: stepdown VERB [OPTIONS]\n       stepdown VERB --help\n       stepdown "
                          "--version\n\nverbs:\n");
        for (size_t i = 0; i < cli_n_verbs; i++)
                (void)fprintf(to, "  %-19s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
}

int main(int argc, char **argv)
{
        const char *name = argc > 1 ? argv[1] : NULL;

        slog_init("stepdown");
        if (!name) {
                print_help(stderr);
                return CLI_USAGE;
        }
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
                print_help(stdout);
                return CLI_OK;
        }
        if (strcmp(name, "--version") == 0) {
                printf("stepdown " STEPDOWN_VERSION "\n");
                return CLI_OK;
        }
        for (size_t i = 0; i < cli_n_verbs; i++)
                if (strcmp(cli_verbs[i]->name, name) == 0)
                        return cli_verbs[i]->run(cli_verbs[i], argc - 1, argv + 1);
        (void)fprintf(stderr, "stepdown: unknown verb '%s'; see stepdown --help\n", name);
        return CLI_USAGE;
}
