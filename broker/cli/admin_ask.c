#include "cli/admin_ask.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loop.h"
#include "endpoints.h"
#include "http_client.h"

#define DEFAULT_ENDPOINT "http://127.0.0.1:9644"
#define BODY_BYTES       ((size_t)16 << 20)

struct asking {
        const struct admin_options *o;
        const char *path;
        admin_accept_fn accept;
        struct loop *loop;
        struct http_client *client;
        struct http_call *call;
        struct endpoints endpoints;
        int next;
        int status; /* exit status */
        json_t *body;
        char last[400];
};

static void ask_next(struct asking *a);

/* 404 is the controller's word: the next endpoint would say the same. */
static bool take(struct asking *a, const struct http_reply *r)
{
        json_t *body = r->error < 0 ? NULL : json_loadb(r->body, r->body_len, 0, NULL);
        const char *message = admin_text(body, "message");

        if (r->error < 0) {
                (void)snprintf(a->last, sizeof(a->last), "%.200s: %.150s", r->url ? r->url : "", r->detail);
        } else if (r->status == 404 && strcmp(admin_text(body, "error"), "unknown_broker") == 0) {
                (void)snprintf(a->last, sizeof(a->last), "%s", message);
                a->status = CLI_FAILED;
        } else if (r->status != 200) {
                (void)snprintf(a->last, sizeof(a->last), "%.200s: HTTP %d %.150s", r->url, r->status,
                               message[0] ? message : r->body);
        } else if (!body || !a->accept(body)) {
                (void)snprintf(a->last, sizeof(a->last), "%.200s: the answer is not what was asked for",
                               r->url);
        } else {
                if (a->o->json)
                        (void)fwrite(r->body, 1, r->body_len, stdout);
                a->body = json_incref(body);
                a->status = CLI_OK;
        }
        json_decref(body);
        return a->status != CLI_UNAVAILABLE;
}

static void on_reply(const struct http_reply *r, void *userdata)
{
        struct asking *a = userdata;

        a->call = NULL;
        if (take(a, r))
                loop_stop(a->loop);
        else
                ask_next(a);
}

static void ask_next(struct asking *a)
{
        char url[600];

        while (a->next < a->endpoints.n) {
                (void)snprintf(url, sizeof(url), "%s%s", endpoints_get(&a->endpoints, a->next++), a->path);
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
                .body_bytes = BODY_BYTES,
                .redirects = 3,
        };
        int r;

        r = loop_new("admin", &a->loop);
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

int admin_ask(const char *verb, const struct admin_options *o, const char *path, admin_accept_fn accept,
              json_t **ret)
{
        struct asking a = {.o = o, .path = path, .accept = accept, .status = CLI_UNAVAILABLE};
        const char *endpoints = o->endpoints ? o->endpoints : getenv("STEPDOWN_ENDPOINTS");

        if (endpoints_parse(&a.endpoints, endpoints ? endpoints : DEFAULT_ENDPOINT) < 0) {
                (void)fprintf(stderr, "stepdown %s: --endpoints is a list of http://host:port\n", verb);
                return CLI_USAGE;
        }
        if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || ask(&a) < 0) {
                (void)fprintf(stderr, "stepdown %s: not enough memory to ask\n", verb);
                return CLI_FAILED;
        }
        curl_global_cleanup();
        if (a.status == CLI_UNAVAILABLE)
                (void)fprintf(stderr, "stepdown %s: no answer from a controller (last: %s)\n", verb, a.last);
        else if (a.status != CLI_OK)
                (void)fprintf(stderr, "stepdown %s: %s\n", verb, a.last);
        else
                *ret = a.body;
        return a.status;
}

int64_t admin_int(const json_t *o, const char *key)
{
        return json_integer_value(json_object_get(o, key));
}

const char *admin_text(const json_t *o, const char *key)
{
        const char *s = json_string_value(json_object_get(o, key));

        return s ? s : "";
}

bool admin_flag(const json_t *o, const char *key)
{
        return json_is_true(json_object_get(o, key));
}

void admin_format_ms(int64_t ms, char out[32])
{
        if (ms < 1000)
                (void)snprintf(out, 32, "%" PRId64 " ms", ms);
        else if (ms < 120000)
                (void)snprintf(out, 32, "%" PRId64 ".%" PRId64 " s", ms / 1000, ms % 1000 / 100);
        else
                (void)snprintf(out, 32, "%" PRId64 " min", ms / 60000);
}
