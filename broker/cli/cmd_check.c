/* stepdown check: what would happen if a broker stopped now (D10). Changes nothing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/admin_ask.h"
#include "cli/verbs.h"
#include "sidecar_config.h"

#define LISTED 10 /* partitions a risk; --json has up to 100 */

struct options {
        struct admin_options where;
        int64_t deadline_ms;
        const char *config;
        bool ignore_rf1, strict;
};

static const struct cli_option options[] = {
        {"deadline", CLI_DURATION_MS, offsetof(struct options, deadline_ms), "TIME",
         "the drain's budget, e.g. 25min (default: drain.deadline of the sidecar on this host, if it is this "
         "broker's)",
         0, 0},
        {"ignore-rf1", CLI_FLAG, offsetof(struct options, ignore_rf1), NULL,
         "partitions with one replica are no reason to say no", 0, 0},
        {"strict", CLI_FLAG, offsetof(struct options, strict), NULL,
         "a partition with one in-sync copy left is a reason to say no", 0, 0},
        {"config", CLI_STRING, offsetof(struct options, config), "FILE",
         "the sidecar's configuration (default " SIDECAR_CONFIG_DEFAULT ")", 0, 0},
        ADMIN_OPTIONS(struct options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "it can be stopped: clients would notice nothing but the moves"},
        {CLI_FAILED, "there is no such broker"},
        {CLI_USAGE, "the command line or the sidecar's configuration is wrong"},
        {CLI_UNAVAILABLE, "no admin listener answered, or there is no active controller"},
        {CLI_INCOMPLETE, "not now, but waiting helps: replicas catch up, or another broker drains"},
        {CLI_RISK, "stopping it does harm that does not go away by itself, or the budget is too short"},
        {0, NULL},
};

/* Worst first. */
static const char *const risks[] = {"unavailable", "single_replica", "below_min_isr", "one_copy_left"};

static const struct {
        const char *name, *text;
        bool by_itself; /* it goes away when one waits */
} waits[] = {
        {"catch_up", "until live replicas are in sync", true},
        {"drained_return", "until draining brokers are back in sync", true},
        {"offline_return", "until replicas that are offline return", false},
        {"never", "always: there are too few replicas", false},
};

/* --- what is asked --- */

static int load_budget(const struct cli_verb *self, struct options *o, int32_t broker)
{
        cleanup_with(sidecar_config_donep) struct sidecar_config config = {0};
        cleanup_with(freep) char *error = NULL;
        const char *path = o->config ? o->config : SIDECAR_CONFIG_DEFAULT;
        struct drain_params params;

        if (!o->config && access(path, R_OK) < 0)
                return 0;
        if (sidecar_config_load(path, NULL, &config, &error) < 0) {
                (void)fprintf(stderr, "stepdown %s: %s\n", self->name, error ? error : "out of memory");
                return -1;
        }
        if (config.broker_id >= 0 && config.broker_id != broker)
                return 0; /* it is another broker's limit */
        sidecar_config_params(&config, o->deadline_ms, &params);
        o->deadline_ms = params.deadline_ms; /* cut to what the platform's limit leaves (L2) */
        return 0;
}

static bool is_check(const json_t *v)
{
        return json_is_integer(json_object_get(v, "broker")) && json_is_object(json_object_get(v, "risks")) &&
               json_is_object(json_object_get(v, "estimate"));
}

/* --- what is said --- */

static bool counts(const struct options *o, const char *risk)
{
        if (strcmp(risk, "one_copy_left") == 0)
                return o->strict;
        return strcmp(risk, "single_replica") != 0 || !o->ignore_rf1;
}

/* The exit status that follows from the risks alone. */
static int judge_risks(const struct options *o, const json_t *v)
{
        int status = CLI_OK;

        for (size_t i = 0; i < ARRAY_SIZE(risks); i++) {
                const json_t *risk = json_object_get(json_object_get(v, "risks"), risks[i]);
                int64_t by_itself = 0;

                if (!risk || !counts(o, risks[i]))
                        continue;
                for (size_t w = 0; w < ARRAY_SIZE(waits); w++)
                        if (waits[w].by_itself)
                                by_itself += admin_int(json_object_get(risk, "goes_away"), waits[w].name);
                if (by_itself < admin_int(risk, "partitions"))
                        return CLI_RISK;
                status = CLI_INCOMPLETE;
        }
        return status;
}

static int judge(const struct options *o, const json_t *v)
{
        const json_t *budget = json_object_get(v, "budget");
        int status = judge_risks(o, v);

        if (status == CLI_RISK || (budget && strcmp(admin_text(budget, "why"), "too_short") == 0))
                return CLI_RISK;
        if (json_array_size(json_object_get(v, "draining")) > 0)
                return CLI_INCOMPLETE; /* one at a time (D3) */
        return status;
}

static void print_ids(const json_t *list)
{
        json_t *id;
        size_t i;

        json_array_foreach(list, i, id)
                printf(i > 0 ? ",%" PRId64 : "%" PRId64, (int64_t)json_integer_value(id));
}

static void print_item(const json_t *p)
{
        printf("    [%s,%" PRId64 "] leader %" PRId64 " isr ", admin_text(p, "topic"),
               admin_int(p, "partition"), admin_int(p, "leader"));
        print_ids(json_object_get(p, "isr"));
        printf(" replicas ");
        print_ids(json_object_get(p, "replicas"));
        printf(" min.insync.replicas %" PRId64 "%s\n", admin_int(p, "min_isr"),
               admin_flag(p, "already") ? ", so already" : "");
}

static void print_risk(const char *name, const json_t *risk)
{
        const json_t *list = json_object_get(risk, "list"), *p;
        int64_t n = admin_int(risk, "partitions");
        size_t i;

        printf("%s: %" PRId64 " partition%s: %s\n", name, n, n == 1 ? "" : "s",
               admin_text(risk, "explanation"));
        for (i = 0; i < ARRAY_SIZE(waits); i++) {
                int64_t of = admin_int(json_object_get(risk, "goes_away"), waits[i].name);

                if (of > 0)
                        printf("  %" PRId64 " %s\n", of, waits[i].text);
        }
        json_array_foreach(list, i, p)
        {
                if (i == LISTED)
                        break;
                print_item(p);
        }
        if (n > (int64_t)MIN(json_array_size(list), (size_t)LISTED))
                printf("    and %" PRId64 " more\n", n - (int64_t)MIN(json_array_size(list), (size_t)LISTED));
}

static void print_estimate(const json_t *v)
{
        const json_t *e = json_object_get(v, "estimate"), *b = json_object_get(v, "budget");
        static const struct {
                const char *why, *text;
        } budgets[] = {
                {"", "it suffices"},
                {"too_short", "it is too short"},
                {"stuck", "not known to suffice: some leaderships cannot move now"},
                {"another_drain", "not known to suffice: another broker drains first"},
        };
        char time[32];

        admin_format_ms(admin_int(e, "ms"), time);
        printf("drain: %" PRId64 " leaders to move, %" PRId64 " replicas to leave, about %s (",
               admin_int(v, "leaders"), admin_int(v, "replicas"), time);
        if (strcmp(admin_text(e, "source"), "measured") == 0)
                printf("measured: %.0f replicas a second in the last %" PRId64 " drains)\n",
                       json_number_value(json_object_get(e, "replicas_per_second")), admin_int(e, "drains"));
        else
                printf("assumed: no drain of this cluster has been measured)\n");
        if (admin_int(v, "stuck") > 0)
                printf("  %" PRId64 " of them cannot move before other replicas are in sync\n",
                       admin_int(v, "stuck"));
        if (!b)
                return;
        admin_format_ms(admin_int(b, "ms"), time);
        for (size_t i = 0; i < ARRAY_SIZE(budgets); i++)
                if (strcmp(admin_text(b, "why"), budgets[i].why) == 0)
                        printf("budget: %s; %s\n", time, budgets[i].text);
}

static void print_draining(const json_t *v)
{
        const json_t *d;
        size_t i;

        json_array_foreach(json_object_get(v, "draining"), i, d)
                printf("broker %" PRId64 " is %s (drain %s); brokers go one at a time\n",
                       admin_int(d, "broker"), admin_text(d, "state"), admin_text(d, "drain_id"));
        if (strcmp(admin_text(v, "drain_state"), "none") != 0)
                printf("its own drain is under way: %s\n", admin_text(v, "drain_state"));
}

static void print_check(const json_t *v, int status)
{
        const json_t *all = json_object_get(v, "risks");

        printf("broker %" PRId64 ": %s\n", admin_int(v, "broker"),
               status == CLI_OK           ? "it can be stopped"
               : status == CLI_INCOMPLETE ? "not now; waiting helps"
                                          : "stopping it does harm");
        for (size_t i = 0; i < ARRAY_SIZE(risks); i++)
                if (json_object_get(all, risks[i]))
                        print_risk(risks[i], json_object_get(all, risks[i]));
        if (admin_int(v, "unclean") > 0)
                printf("unclean.leader.election.enable would lose messages of %" PRId64 " of these\n",
                       admin_int(v, "unclean"));
        if (admin_int(v, "delays") > 0)
                printf("%" PRId64 " partitions wait for its replicas to catch up\n", admin_int(v, "delays"));
        print_estimate(v);
        print_draining(v);
        if (!admin_flag(v, "zookeeper_available"))
                printf("ZooKeeper does not answer the controller: this is what was last known\n");
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
        if (load_budget(self, &o, broker) < 0)
                return CLI_USAGE;
        (void)snprintf(path, sizeof(path), "/v1/brokers/%" PRId32 "/check", broker);
        if (o.deadline_ms > 0)
                (void)snprintf(path + strlen(path), sizeof(path) - strlen(path), "?budget_ms=%" PRId64,
                               o.deadline_ms);
        r = admin_ask(self->name, &o.where, path, is_check, &v);
        if (r != CLI_OK)
                return r;
        r = judge(&o, v);
        if (!o.where.json)
                print_check(v, r);
        json_decref(v);
        return r;
}

const struct cli_verb cli_verb_check = {
        .name = "check",
        .synopsis = "BROKER [--deadline TIME] [--ignore-rf1] [--strict] [--json] [--endpoints URL,…]",
        .summary = "say what would happen if a broker stopped now",
        .details = "Asks the active controller through any broker's admin listener, and changes nothing.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
