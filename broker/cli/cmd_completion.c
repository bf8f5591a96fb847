/* stepdown completion: shell completion, printed from the tables of verbs and options. */
#include <stdio.h>
#include <string.h>

#include "cli/verbs.h"

static const struct cli_exit_row exits[] = {
        {CLI_OK, "printed"},
        {CLI_USAGE, "the command line is wrong"},
        {0, NULL},
};

/* Some options complete file names; the argument's name in the help says which. */
static bool takes_file(const struct cli_option *o)
{
        return o->arg && (strncmp(o->arg, "FILE", 4) == 0 || strcmp(o->arg, "PATH") == 0 ||
                          strncmp(o->arg, "DIR/", 4) == 0);
}

static void print_options(const struct cli_verb *v)
{
        printf("                options='");
        for (size_t i = 0; i < v->n_options; i++)
                if (v->options[i].help)
                        printf("--%s ", v->options[i].name);
        printf("--help'\n");
}

static void print_pattern(const struct cli_verb *v, bool file)
{
        const char *bar = "";

        printf("                %s='", file ? "files" : "values");
        for (size_t i = 0; i < v->n_options; i++) {
                const struct cli_option *o = &v->options[i];

                if (o->type == CLI_FLAG || o->type == CLI_MAYBE || takes_file(o) != file)
                        continue;
                printf("%s--%s", bar, o->name);
                bar = "|";
        }
        printf("'\n");
}

static void print_verb(const struct cli_verb *v)
{
        printf("        %s)\n", v->name);
        print_options(v);
        print_pattern(v, true);
        print_pattern(v, false);
        if (v->actions) {
                printf("                actions='");
                for (const char *p = v->actions; *p; p++)
                        putchar(*p == '|' ? ' ' : *p);
                printf("'\n");
        }
        printf("                ;;\n");
}

static void print_bash(void)
{
        printf("# bash completion for stepdown\n"
               "_stepdown()\n"
               "{\n"
               "        local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
               "        local options='' files='' values='' actions=''\n"
               "\n"
               "        COMPREPLY=()\n"
               "        if ((COMP_CWORD == 1)); then\n"
               "                mapfile -t COMPREPLY < <(compgen -W '");
        for (size_t i = 0; i < cli_n_verbs; i++)
                printf("%s ", cli_verbs[i]->name);
        printf("--help --version' -- \"$cur\")\n"
               "                return\n"
               "        fi\n"
               "        case ${COMP_WORDS[1]} in\n");
        for (size_t i = 0; i < cli_n_verbs; i++)
                print_verb(cli_verbs[i]);
        printf("        *)\n"
               "                return\n"
               "                ;;\n"
               "        esac\n"
               "        if [[ -n $files && \"|$files|\" == *\"|$prev|\"* ]]; then\n"
               "                mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
               "        elif [[ -n $values && \"|$values|\" == *\"|$prev|\"* ]]; then\n"
               "                return\n"
               "        elif ((COMP_CWORD == 2)) && [[ -n $actions && $cur != -* ]]; then\n"
               "                mapfile -t COMPREPLY < <(compgen -W \"$actions\" -- \"$cur\")\n"
               "        else\n"
               "                mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
               "        fi\n"
               "}\n"
               "complete -o filenames -F _stepdown stepdown\n");
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        int n, r;

        r = cli_parse(self, argc, argv, NULL, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n != 1 || strcmp(argv[1], self->actions) != 0)
                return cli_usage(self, "say bash");
        print_bash();
        return CLI_OK;
}

const struct cli_verb cli_verb_completion = {
        .name = "completion",
        .synopsis = "bash",
        .summary = "print the completion script of a shell",
        .details = "To use it at once: source <(stepdown completion bash)",
        .exits = exits,
        .run = run,
        .actions = "bash",
};
