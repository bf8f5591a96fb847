/* stepdown broker: is a broker there, in sync, and what does it lead: what a rolling upgrade waits for. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"
#include "cli/admin_ask.h"
#include "cli/verbs.h"

#define LISTED 10

struct options {
        struct admin_options where;
};

static const struct cli_option options[] = {
        ADMIN_OPTIONS(struct options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "it is registered and every replica on it is in sync"},
        {CLI_FAILED, "there is no such broker"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no admin listener answered, or there is no active controller"},
        {CLI_INCOMPLETE, "it is not registered, or catches up"},
        {0, NULL},
};

static bool is_broker(const json_t *v)
{
        return json_is_integer(json_object_get(v, "broker")) &&
               json_is_boolean(json_object_get(v, "registered")) &&
               json_is_array(json_object_get(v, "catching_up"));
}

static void print_ids(const json_t *list)
{
        json_t *id;
        size_t i;

        json_array_foreach(list, i, id)
                printf(i > 0 ? ",%" PRId64 : "%" PRId64, (int64_t)json_integer_value(id));
}

static void print_catching_up(const json_t *v)
{
        const json_t *list = json_object_get(v, "catching_up"), *p;
        int64_t total = admin_int(v, "catching_up_total");
        size_t i;

        json_array_foreach(list, i, p)
        {
                if (i == LISTED)
                        break;
                printf("    [%s,%" PRId64 "] leader %" PRId64 " isr ", admin_text(p, "topic"),
                       admin_int(p, "partition"), admin_int(p, "leader"));
                print_ids(json_object_get(p, "isr"));
                printf("\n");
        }
        if (total > (int64_t)MIN(json_array_size(list), (size_t)LISTED))
                printf("    and %" PRId64 " more\n",
                       total - (int64_t)MIN(json_array_size(list), (size_t)LISTED));
}

static void print_broker(const json_t *v)
{
        const json_t *drain = json_object_get(v, "drain");
        int64_t id = admin_int(v, "broker"), since_ms = admin_int(v, "since_ms");
        char ago[32];

        if (!admin_flag(v, "registered"))
                printf("broker %" PRId64 ": not registered\n", id);
        else {
                admin_format_ms(MAX(clock_real_ms() - since_ms, INT64_C(0)), ago);
                printf("broker %" PRId64 ": registered %s ago at %s, epoch %" PRId64 "%s\n", id, ago,
                       admin_text(v, "address"), admin_int(v, "epoch"),
                       admin_flag(v, "is_controller") ? ", the controller" : "");
        }
        if (!admin_flag(v, "is_controller"))
                printf("  controller %" PRId64 "\n", admin_int(v, "controller"));
        printf("  leads %" PRId64 ", first replica of %" PRId64 ", of them %" PRId64 " led by others\n",
               admin_int(v, "leaders"), admin_int(v, "preferred"), admin_int(v, "preferred_elsewhere"));
        printf("  replicas %" PRId64 ", in sync %" PRId64 ", catching up %" PRId64 "\n",
               admin_int(v, "replicas"), admin_int(v, "in_sync"), admin_int(v, "catching_up_total"));
        print_catching_up(v);
        if (strcmp(admin_text(drain, "state"), "none") != 0 && admin_text(drain, "state")[0])
                printf("  drain %s: %s, %" PRId64 " moved\n", admin_text(drain, "drain_id"),
                       admin_text(drain, "state"), admin_int(drain, "moved"));
        if (!admin_flag(v, "zookeeper_available"))
                printf("  ZooKeeper does not answer the controller: this is what was last known\n");
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct options o = {.where = ADMIN_DEFAULTS};
        char path[100];
        json_t *v = NULL;
        int32_t broker;
        int n = 0, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n != 1 || parse_int32(argv[1], 0, INT32_MAX, &broker) < 0)
                return cli_usage(self, "say which broker, by its id");
        (void)snprintf(path, sizeof(path), "/v1/brokers/%" PRId32, broker);
        r = admin_ask(self->name, &o.where, path, is_broker, &v);
        if (r != CLI_OK)
                return r;
        if (!o.where.json)
                print_broker(v);
        r = admin_flag(v, "caught_up") ? CLI_OK : CLI_INCOMPLETE;
        json_decref(v);
        return r;
}

const struct cli_verb cli_verb_broker = {
        .name = "broker",
        .synopsis = "BROKER [--json] [--endpoints URL,…]",
        .summary = "show whether a broker is registered and in sync, and what it leads",
        .details = "Asks the active controller through any broker's admin listener.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
