/* stepdown-sidecar: options, configuration, and the daemon. */
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "sidecar.h"

#define OVERRIDES_MAX 64
#define HELP_COLUMN   26

struct options {
        const char *config;
        bool config_given, check, help, version;
        const char *overrides[OVERRIDES_MAX + 1];
        size_t n_overrides;
};

struct option_row {
        const char *name, *arg, *help;
        int (*set)(struct options *o, const char *value);
};

static int set_config(struct options *o, const char *value)
{
        o->config = value;
        o->config_given = true;
        return 0;
}

static int set_override(struct options *o, const char *value)
{
        if (o->n_overrides == OVERRIDES_MAX)
                return -E2BIG;
        o->overrides[o->n_overrides++] = value;
        return 0;
}

static int set_check(struct options *o, const char *value)
{
        (void)value;
        o->check = true;
        return 0;
}

static int set_help(struct options *o, const char *value)
{
        (void)value;
        o->help = true;
        return 0;
}

static int set_version(struct options *o, const char *value)
{
        (void)value;
        o->version = true;
        return 0;
}

static const struct option_row option_rows[] = {
        {"--config", "FILE", "configuration file (default " SIDECAR_CONFIG_DEFAULT ")", set_config},
        {"--set", "KEY=VALUE", "override one key; may be repeated", set_override},
        {"--check-config", NULL, "check the configuration and exit", set_check},
        {"--help", NULL, "print this help and every configuration key", set_help},
        {"--version", NULL, "print the version", set_version},
};

static int usage_error(const char *what, const char *argument)
{
        (void)fprintf(stderr, "stepdown-sidecar: %s '%s'; see stepdown-sidecar --help\n", what, argument);
        return -EINVAL;
}

static int parse_option(struct options *o, int argc, char **argv, int *at)
{
        const char *arg = argv[*at];
        size_t name_len = strcspn(arg, "=");
        const char *value = arg[name_len] == '=' ? arg + name_len + 1 : NULL;

        for (size_t i = 0; i < ARRAY_SIZE(option_rows); i++) {
                const struct option_row *row = &option_rows[i];

                if (strlen(row->name) != name_len || strncmp(row->name, arg, name_len) != 0)
                        continue;
                if (!row->arg && value)
                        return usage_error("this option takes no value:", arg);
                if (row->arg && !value && *at + 1 < argc)
                        value = argv[++*at];
                if (row->arg && !value)
                        return usage_error("a value is missing for", arg);
                return row->set(o, value) < 0 ? usage_error("too many of", arg) : 0;
        }
        return usage_error("unknown argument", arg);
}

static void print_help(void)
{
        printf("usage: stepdown-sidecar [OPTIONS]\n\n"
               "Keeps a broker from being stopped before its partition leadership is handed "
               "over.\n\noptions:\n");
        for (size_t i = 0; i < ARRAY_SIZE(option_rows); i++) {
                const struct option_row *row = &option_rows[i];
                int used = printf("  %s%s%s", row->name, row->arg ? " " : "", row->arg ? row->arg : "");

                printf("%*s%s\n", MAX(HELP_COLUMN - used, 2), "", row->help);
        }
        printf("\nconfiguration keys (YAML; environment " SIDECAR_ENV_PREFIX "KEY):\n\n");
        config_print_help(sidecar_config_rows, sidecar_config_n_rows);
}

static int run(const struct sidecar_config *config)
{
        cleanup_with(sidecar_freep) struct sidecar *s = NULL;
        int r;

        slog_init("stepdown-sidecar");
        (void)signal(SIGPIPE, SIG_IGN); /* a reader of our standard error may go away */
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return 1;
        r = sidecar_new(config, &s);
        if (r < 0) {
                slog_error("sidecar-failed",
                           "could not start; see the error, the socket and the state directory",
                           SL_STR("socket", config->control_socket), SL_STR("state_dir", config->state_dir),
                           SL_ERR(r));
                return 1;
        }
        r = sidecar_run(s);
        s = sidecar_free(s);
        curl_global_cleanup();
        return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
        cleanup_with(sidecar_config_donep) struct sidecar_config config = {0};
        struct options o = {.config = SIDECAR_CONFIG_DEFAULT};
        cleanup_with(freep) char *error = NULL;

        for (int i = 1; i < argc; i++)
                if (parse_option(&o, argc, argv, &i) < 0)
                        return 64;
        if (o.help || o.version) {
                if (o.help)
                        print_help();
                else
                        printf("stepdown-sidecar " STEPDOWN_VERSION "\n");
                return 0;
        }
        /* Without a file where nobody named one, defaults and environment do. */
        if (!o.config_given && access(o.config, F_OK) < 0)
                o.config = NULL;
        if (sidecar_config_load(o.config, o.overrides, &config, &error) < 0) {
                (void)fprintf(stderr, "stepdown-sidecar: %s\n", error ? error : "out of memory");
                return 78; /* EX_CONFIG */
        }
        if (o.check) {
                printf("configuration is valid\n");
                return 0;
        }
        return run(&config);
}
