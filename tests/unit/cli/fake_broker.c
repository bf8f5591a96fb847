/* A broker that answers as it is told: for tests of the command line.
 *
 * Prints {"port":N}. Each line on standard input is a script that replaces the one before:
 *     {"names": {"x": 1},                       numbers for "$x" in answers, besides "$port"
 *      "versions": {"ElectLeaders": [0, 1]},    what ApiVersions says, null: nothing; default: all we know
 *      "answers": {"ElectLeaders": [{…}, …]}}   bodies, one a request; the last one stays
 * and is acknowledged by {"ready":true}; {"mark":true} is no script and comes back behind the requests so
 * far. "close" as an answer cuts the connection, "hold" never answers. Each request is printed as one line,
 * {"api":NAME,"version":V,"body":{…}}, before it is answered. Ends with its standard input. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/net.h"
#include "wire/api_versions.h"
#include "wire_json.h"

#define API_VERSIONS 18

struct fake {
        pthread_mutex_t lock;
        json_t *script, *names;
        struct net_server *server;
        struct loop *loop;
};

/* Two threads print: with the lock, but for the first line. */
static void print_line(json_t *j)
{
        json_dumpf(j, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        putchar('\n');
        fflush(stdout);
        json_decref(j);
}

static void reply(struct net_request *q, const struct wire_api *api, const struct wire_request_header *h,
                  const void *body)
{
        struct buf out = {0};

        if (wire_encode_response(api->response, h->api_version, h->correlation_id, body, &out) < 0) {
                fprintf(stderr, "fake_broker: the answer of %s cannot be encoded at version %d\n", api->name,
                        h->api_version);
                abort();
        }
        net_request_reply(q, &out);
        buf_done(&out);
}

/* 1: @ret has the range; 0: not advertised. */
static int range_of(const struct fake *f, const struct wire_api *api,
                    struct api_versions_response_api_key *ret)
{
        json_t *range = json_object_get(json_object_get(f->script, "versions"), api->name);

        *ret = (struct api_versions_response_api_key){
                .api_key = api->key, .min_version = api->serve_min, .max_version = api->serve_max};
        if (json_is_array(range)) {
                ret->min_version = (int16_t)json_integer_value(json_array_get(range, 0));
                ret->max_version = (int16_t)json_integer_value(json_array_get(range, 1));
        }
        return !json_is_null(range);
}

static void answer_versions(const struct fake *f, struct net_request *q, const struct wire_request_header *h,
                            struct arena *a)
{
        struct api_versions_response res;
        const struct wire_api *apis;
        size_t n;

        apis = wire_api_all(&n);
        wire_init(&api_versions_response_wire, &res);
        res.api_keys.items = WIRE_NEW(a, api_versions_response_api_key, n);
        for (size_t i = 0; i < n; i++)
                res.api_keys.n += range_of(f, &apis[i], &res.api_keys.items[res.api_keys.n]);
        reply(q, wire_api_find(API_VERSIONS), h, &res);
}

/* The first of the list, which is then dropped unless it is the last. */
static json_t *next_answer(const struct fake *f, const struct wire_api *api)
{
        json_t *list = json_object_get(json_object_get(f->script, "answers"), api->name);
        json_t *answer = json_incref(json_array_get(list, 0));

        if (json_array_size(list) > 1)
                json_array_remove(list, 0);
        return answer;
}

static void answer_scripted(const struct fake *f, struct net_request *q, const struct wire_api *api,
                            const struct wire_request_header *h, struct arena *a)
{
        json_t *answer = next_answer(f, api);
        const char *word = json_string_value(answer);
        void *body = arena_alloc(a, 1, wire_struct_size(api->response));

        if (!answer)
                fprintf(stderr, "fake_broker: the script has no answer for %s\n", api->name);
        if (word && strcmp(word, "hold") == 0) {
                /* it stays open until the connection or we end */
        } else if (!answer || word) {
                net_request_abort(q);
        } else {
                wire_from_json(api->response, answer, f->names, a, body);
                reply(q, api, h, body);
        }
        json_decref(answer);
}

static void take(const struct fake *f, struct net_request *q, struct arena *a)
{
        struct wire_request_header h;
        const struct wire_api *api;
        size_t consumed;
        void *body;

        if (wire_decode_request_header(q->frame.data, q->frame.len, &h, &consumed) < 0 ||
            !(api = wire_api_find(h.api_key))) {
                fprintf(stderr, "fake_broker: not a request that we know\n");
                abort();
        }
        body = arena_alloc(a, 1, wire_struct_size(api->request));
        if (wire_decode(api->request, h.api_version, q->frame.data + consumed, q->frame.len - consumed, a,
                        body) < 0) {
                fprintf(stderr, "fake_broker: a malformed %s of version %d\n", api->name, h.api_version);
                abort();
        }
        if (h.api_key == API_VERSIONS) {
                answer_versions(f, q, &h, a);
                return;
        }
        print_line(json_pack("{s:s, s:i, s:o}", "api", api->name, "version", h.api_version, "body",
                             wire_to_json(api->request, h.api_version, body)));
        answer_scripted(f, q, api, &h, a);
}

static void on_request(struct net_request *q, void *userdata)
{
        struct fake *f = userdata;
        struct arena a;

        arena_init(&a, 0);
        pthread_mutex_lock(&f->lock);
        take(f, q, &a);
        pthread_mutex_unlock(&f->lock);
        arena_done(&a);
}

static void use_script(struct fake *f, const char *line, size_t len)
{
        json_error_t why;
        json_t *script = json_loadb(line, len, 0, &why);

        if (!script) {
                fprintf(stderr, "fake_broker: script: %s\n", why.text);
                exit(1);
        }
        pthread_mutex_lock(&f->lock);
        if (json_object_get(script, "mark")) {
                print_line(script);
                pthread_mutex_unlock(&f->lock);
                return;
        }
        json_decref(f->script);
        json_decref(f->names);
        f->script = script;
        f->names = json_object_get(script, "names") ? json_incref(json_object_get(script, "names"))
                                                    : json_object();
        json_object_set_new(f->names, "port", json_integer(net_server_port(f->server)));
        print_line(json_pack("{s:b}", "ready", 1));
        pthread_mutex_unlock(&f->lock);
}

int main(void)
{
        struct fake f = {.script = json_object(), .names = json_object()};
        struct net_ops ops = {.on_request = on_request, .userdata = &f};
        struct net_limits limits;
        char *line = NULL;
        size_t room = 0;
        ssize_t n;

        pthread_mutex_init(&f.lock, NULL);
        net_limits_default(&limits);
        if (loop_new("fake-broker", &f.loop) < 0 ||
            net_server_new(f.loop, "127.0.0.1", 0, &limits, &ops, &f.server) < 0 ||
            loop_thread_start(f.loop) < 0)
                return 1;
        print_line(json_pack("{s:i}", "port", (int)net_server_port(f.server)));
        while ((n = getline(&line, &room, stdin)) > 0)
                use_script(&f, line, (size_t)n);
        _Exit(0); /* what is held is never answered */
}
