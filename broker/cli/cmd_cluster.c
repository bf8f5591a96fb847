/* stepdown cluster: brokers, controller and the health of partitions, as the controller sees them. */
#include <stdio.h>
#include <string.h>

#include "cli/admin_ask.h"
#include "cli/verbs.h"

struct options {
        struct admin_options where;
};

static const struct cli_option options[] = {
        ADMIN_OPTIONS(struct options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "printed"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no admin listener answered, or there is no active controller"},
        {0, NULL},
};

static void print_broker(const json_t *b, json_int_t controller)
{
        json_int_t id = json_integer_value(json_object_get(b, "id"));
        const char *state = json_string_value(json_object_get(b, "drain_state"));
        char address[300];

        (void)snprintf(address, sizeof(address), "%s:%lld", json_string_value(json_object_get(b, "host")),
                       (long long)json_integer_value(json_object_get(b, "port")));
        printf("%6lld%s  %-24s %-24s %8lld %9lld  %s\n", (long long)id, id == controller ? "*" : " ", address,
               json_string_value(json_object_get(b, "admin")),
               (long long)json_integer_value(json_object_get(b, "leaders")),
               (long long)json_integer_value(json_object_get(b, "replicas")),
               state && strcmp(state, "none") != 0 ? state : "serving");
}

static void print_cluster(const json_t *v)
{
        json_int_t controller = json_integer_value(json_object_get(v, "controller"));
        json_t *b;
        size_t i;

        printf("cluster %s: %lld topics, %lld partitions, %lld under-replicated, %lld offline\n",
               json_string_value(json_object_get(v, "cluster_id")),
               (long long)json_integer_value(json_object_get(v, "topics")),
               (long long)json_integer_value(json_object_get(v, "partitions")),
               (long long)json_integer_value(json_object_get(v, "under_replicated")),
               (long long)json_integer_value(json_object_get(v, "offline")));
        printf("broker   address                  admin                     leaders  replicas  state   (* "
               "controller)\n");
        json_array_foreach(json_object_get(v, "brokers"), i, b) print_broker(b, controller);
}

static bool is_cluster(const json_t *v)
{
        json_t *b;
        size_t i;

        if (!json_is_string(json_object_get(v, "cluster_id")) ||
            !json_is_array(json_object_get(v, "brokers")))
                return false;
        json_array_foreach(json_object_get(v, "brokers"), i,
                           b) if (!json_is_string(json_object_get(b, "host")) ||
                                  !json_is_string(json_object_get(b, "admin"))) return false;
        return true;
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct options o = {.where = ADMIN_DEFAULTS};
        json_t *v = NULL;
        int n = 0, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n > 0)
                return cli_usage(self, "no argument is expected");
        r = admin_ask(self->name, &o.where, "/v1/cluster", is_cluster, &v);
        if (r == CLI_OK && !o.where.json)
                print_cluster(v);
        json_decref(v);
        return r;
}

const struct cli_verb cli_verb_cluster = {
        .name = "cluster",
        .synopsis = "[--json] [--endpoints URL,…]",
        .summary = "show brokers, the controller, and how partitions fare",
        .details = "Asks the active controller through any broker's admin listener.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
