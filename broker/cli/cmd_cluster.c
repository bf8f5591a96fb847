/* stepdown cluster: brokers, controller and the health of partitions, as the controller sees them. */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "cli/cli.h"
#include "cli/verbs.h"
#include "endpoints.h"
#include "http_client.h"

struct cluster_options {
        const char *endpoints;
        int64_t timeout_ms;
        bool json;
};

#define AT(m) offsetof(struct cluster_options, m)

static const struct cli_option options[] = {
        {"endpoints", CLI_STRING, AT(endpoints), "URL,…",
         "admin listeners to ask, tried in order (default: $STEPDOWN_ENDPOINTS or http://127.0.0.1:9644)", 0,
         0},
        {"timeout", CLI_DURATION_MS, AT(timeout_ms), "TIME", "how long to wait for each of them (default 5s)",
         0, 0},
        {"json", CLI_FLAG, AT(json), NULL, "the controller's answer as it came", 0, 0},
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "printed"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no admin listener answered, or there is no active controller"},
        {0, NULL},
};

/* One endpoint after the other until one answers 200. */
struct asking {
        const struct cluster_options *o;
        struct loop *loop;
        struct http_client *client;
        struct http_call *call;
        struct endpoints endpoints;
        int next;
        int status; /* exit status */
        char last[400];
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

static void ask_next(struct asking *a);

static void on_reply(const struct http_reply *r, void *userdata)
{
        struct asking *a = userdata;
        json_t *v = NULL;

        a->call = NULL;
        if (r->error < 0)
                (void)snprintf(a->last, sizeof(a->last), "%.200s: %.150s", r->url ? r->url : "", r->detail);
        else if (r->status != 200)
                (void)snprintf(a->last, sizeof(a->last), "%.200s: HTTP %d %.150s", r->url, r->status,
                               r->body);
        else if (!(v = json_loadb(r->body, r->body_len, 0, NULL)) || !is_cluster(v))
                (void)snprintf(a->last, sizeof(a->last), "%.200s: the answer is not a cluster view", r->url);
        else {
                if (a->o->json)
                        (void)fwrite(r->body, 1, r->body_len, stdout);
                else
                        print_cluster(v);
                a->status = CLI_OK;
        }
        json_decref(v);
        if (a->status == CLI_OK)
                loop_stop(a->loop);
        else
                ask_next(a);
}

static void ask_next(struct asking *a)
{
        char url[400];

        while (a->next < a->endpoints.n) {
                (void)snprintf(url, sizeof(url), "%s/v1/cluster", endpoints_get(&a->endpoints, a->next++));
                if (http_client_call(a->client, "GET", url, NULL, on_reply, a, &a->call) == 0)
                        return;
        }
        loop_stop(a->loop);
}

static int ask(struct asking *a)
{
        struct http_limits limits = {
                .connect_ms = MIN(a->o->timeout_ms, INT64_C(2000)),
                .total_ms = a->o->timeout_ms,
                .body_bytes = (size_t)16 << 20,
                .redirects = 3,
        };
        int r;

        r = loop_new("cluster", &a->loop);
        if (r == 0)
                r = http_client_new(a->loop, &limits, NULL, &a->client);
        if (r == 0) {
                ask_next(a);
                r = loop_run(a->loop);
        }
        a->client = http_client_free(a->client);
        a->loop = loop_free(a->loop);
        return r;
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct cluster_options o = {.timeout_ms = 5000};
        struct asking a = {.o = &o, .status = CLI_UNAVAILABLE};
        int n = 0, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (!o.endpoints)
                o.endpoints = getenv("STEPDOWN_ENDPOINTS");
        if (!o.endpoints)
                o.endpoints = "http://127.0.0.1:9644";
        if (n > 0 || endpoints_parse(&a.endpoints, o.endpoints) < 0) {
                fprintf(stderr, "stepdown cluster: %s\n",
                        n > 0 ? "no argument is expected; try 'stepdown cluster --help'"
                              : "--endpoints is a list of http://host:port");
                return CLI_USAGE;
        }
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || ask(&a) < 0)
                return CLI_FAILED;
        curl_global_cleanup();
        if (a.status != CLI_OK)
                fprintf(stderr, "stepdown cluster: no answer from a controller (last: %s)\n", a.last);
        return a.status;
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
