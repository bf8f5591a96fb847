/* HTTP replies of the admin API as results: URL and body out, checked structs in. */
#include "controller_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api_json.h"
#include "base/parse.h"

struct controller_client {
        struct http_client *http;
};

enum want { WANT_DRAIN, WANT_BROKER, WANT_CLUSTER };

struct controller_call {
        struct http_call *http;
        enum want want;
        int32_t broker;
        controller_result_fn fn;
        void *userdata;
};

static const struct {
        const char *method;
} drain_calls[] = {
        [DRAIN_CALL_PUT] = {"PUT"},
        [DRAIN_CALL_GET] = {"GET"},
        [DRAIN_CALL_DELETE] = {"DELETE"},
};

int endpoint_normalise(const char *text, char *out, size_t size)
{
        const char *scheme = "http", *rest = text;
        char host_port[300], host[256];
        uint16_t port;
        size_t len;
        int n;

        if (strncasecmp(text, "http://", 7) == 0) {
                rest = text + 7;
        } else if (strncasecmp(text, "https://", 8) == 0) {
                scheme = "https";
                rest = text + 8;
        }
        len = strlen(rest);
        while (len > 0 && rest[len - 1] == '/')
                len--;
        if (len >= sizeof(host_port))
                return -ENAMETOOLONG;
        memcpy(host_port, rest, len);
        host_port[len] = '\0';
        /* parse_host_port() accepts no path, user or query: such a URL would mean something else than it says
         */
        if (strpbrk(host_port, "/@?#\\ ") || parse_host_port(host_port, host, &port) < 0)
                return -EINVAL;
        n = snprintf(out, size, "%s://%s", scheme, host_port);
        return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* "scheme://host:port" of a URL. */
static void base_of(const char *url, char *out, size_t size)
{
        const char *host = strstr(url, "://");
        size_t len = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : 0;

        if (len >= size)
                len = 0;
        memcpy(out, url, len);
        out[len] = '\0';
}

static bool is_success(int status)
{
        return status == 200 || status == 201 || status == 202;
}

/* Memory that results point into; lives on the stack of on_reply(). */
struct room {
        char base[320], code[64], message[768];
        struct slot_info slot;
        struct drain_answer drain;
        struct broker_answer broker;
        struct blocked_partition blocked[BLOCKED_MAX];
};

static int parse_success(const struct controller_call *call, const struct http_reply *reply,
                         struct room *room, struct cluster_answer *cluster, struct controller_result *res)
{
        int r;

        switch (call->want) {
        case WANT_DRAIN:
                r = api_parse_drain(reply->body, reply->body_len, call->broker, room->blocked, &room->drain);
                res->drain = r == 0 ? &room->drain : NULL;
                return r;
        case WANT_BROKER:
                r = api_parse_broker(reply->body, reply->body_len, &room->broker);
                res->broker = r == 0 ? &room->broker : NULL;
                return r;
        case WANT_CLUSTER:
                r = cluster ? api_parse_cluster(reply->body, reply->body_len, cluster) : -ENOMEM;
                res->cluster = r == 0 ? cluster : NULL;
                return r;
        }
        return -EBADMSG;
}

/* D1: the broker is drained already, under another id: that is an answer, one joins. */
static bool joins_other_drain(const struct controller_call *call, const struct http_reply *reply,
                              struct room *room, struct controller_result *res)
{
        if (reply->status != 409 || call->want != WANT_DRAIN ||
            api_parse_drain(reply->body, reply->body_len, call->broker, room->blocked, &room->drain) < 0 ||
            room->drain.drain_id[0] == '\0')
                return false;
        res->drain = &room->drain;
        return true;
}

static void read_refusal(const struct controller_call *call, const struct http_reply *reply,
                         struct room *room, struct controller_result *res)
{
        char said[256];

        api_parse_refusal(reply->body, reply->body_len, room->code, said);
        (void)snprintf(room->message, sizeof(room->message), "%s answers %d %s%s%s", room->base,
                       reply->status, room->code, said[0] ? ": " : "", said);
        res->zookeeper_down = strstr(room->code, "zookeeper") != NULL;
        res->drain_ended = strcmp(room->code, "drain_ended") == 0;
        res->slot_held = strcmp(room->code, "slot_held") == 0;
        api_parse_holder(reply->body, reply->body_len, &room->slot);
        res->slot = &room->slot;
        res->unsafe = strcmp(room->code, "unsafe") == 0;
        if (res->unsafe) {
                api_parse_unsafe(reply->body, reply->body_len, room->blocked, &res->n_blocked,
                                 &res->blocked_total, &res->remaining);
                res->blocked = room->blocked;
        }
        if (res->slot_held || res->unsafe) /* it says it all, and it is no failure */
                text_copy(room->message, sizeof(room->message), said);
        /* Any web server answers 404: only the API's own says that the broker is unknown (L1, L3). */
        if (reply->status == 404 && call->want == WANT_DRAIN && strcmp(room->code, "unknown_broker") != 0)
                res->error = -EBADMSG;
}

static void read_reply(const struct controller_call *call, const struct http_reply *reply, struct room *room,
                       struct cluster_answer *cluster, struct controller_result *res)
{
        if (reply->error < 0) {
                res->error = reply->error;
                (void)snprintf(room->message, sizeof(room->message), "%s: %s%s%s", room->base,
                               strerrordesc_np(-reply->error), reply->detail[0] ? ": " : "", reply->detail);
        } else if (is_success(reply->status)) {
                res->error = parse_success(call, reply, room, cluster, res);
                if (res->error < 0)
                        (void)snprintf(room->message, sizeof(room->message),
                                       "%s answers %d with a body that is not of the admin API", room->base,
                                       reply->status);
        } else if (!joins_other_drain(call, reply, room, res)) {
                read_refusal(call, reply, room, res);
        }
}

static void on_reply(const struct http_reply *reply, void *userdata)
{
        cleanup_with(freep) struct controller_call *call = userdata;
        cleanup_with(freep) struct cluster_answer *cluster =
                call->want == WANT_CLUSTER ? calloc(1, sizeof(*cluster)) : NULL;
        cleanup_with(freep) struct room *room = calloc(1, sizeof(*room));
        struct controller_result res = {.http_status = reply->status, .message = "", .base = ""};

        if (!room) {
                res.error = -ENOMEM;
                res.message = "out of memory";
        } else {
                base_of(reply->url, room->base, sizeof(room->base));
                res.base = room->base;
                res.message = room->message;
                read_reply(call, reply, room, cluster, &res);
        }
        call->fn(&res, call->userdata);
}

static int start(struct controller_client *c, const char *method, const char *url, const char *body,
                 const struct controller_call *proto, struct controller_call **ret)
{
        cleanup_with(freep) struct controller_call *call = malloc(sizeof(*call));
        int r;

        if (!call)
                return -ENOMEM;
        *call = *proto;
        r = http_client_call(c->http, method, url, body, on_reply, call, &call->http);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(call);
        return 0;
}

/* Whatever somebody chose as an id, in a URL. */
static void url_escape(const char *text, char *out, size_t size)
{
        size_t n = 0;

        for (const char *p = text; *p && n + 4 < size; p++) {
                unsigned char b = (unsigned char)*p;
                bool plain = (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z') || (b >= '0' && b <= '9') ||
                             b == '-' || b == '_' || b == '.' || b == '~';

                if (plain)
                        out[n++] = *p;
                else
                        n += (size_t)snprintf(out + n, size - n, "%%%02X", b);
        }
        out[n] = '\0';
}

int controller_call_drain(struct controller_client *c, enum drain_call call, const char *base, int32_t broker,
                          const struct drain_ask *ask, controller_result_fn fn, void *userdata,
                          struct controller_call **ret)
{
        struct controller_call proto = {.want = WANT_DRAIN, .broker = broker, .fn = fn, .userdata = userdata};
        cleanup_with(freep) char *body = NULL;
        char url[512 + 3 * DRAIN_TEXT_MAX], id[3 * DRAIN_TEXT_MAX];

        if (call == DRAIN_CALL_PUT) {
                body = api_format_ask(ask);
                if (!body)
                        return -ENOMEM;
        }
        url_escape(call == DRAIN_CALL_GET && ask ? ask->drain_id : "", id, sizeof(id));
        (void)snprintf(url, sizeof(url), "%s/v1/brokers/%" PRId32 "/drain%s%s", base, broker,
                       id[0] ? "?drain_id=" : "", id);
        return start(c, drain_calls[call].method, url, body, &proto, ret);
}

int controller_call_broker(struct controller_client *c, const char *base, controller_result_fn fn,
                           void *userdata, struct controller_call **ret)
{
        struct controller_call proto = {.want = WANT_BROKER, .fn = fn, .userdata = userdata};
        char url[512];

        (void)snprintf(url, sizeof(url), "%s/v1/broker", base);
        return start(c, "GET", url, NULL, &proto, ret);
}

int controller_call_cluster(struct controller_client *c, const char *base, controller_result_fn fn,
                            void *userdata, struct controller_call **ret)
{
        struct controller_call proto = {.want = WANT_CLUSTER, .fn = fn, .userdata = userdata};
        char url[512];

        (void)snprintf(url, sizeof(url), "%s/v1/cluster", base);
        return start(c, "GET", url, NULL, &proto, ret);
}

struct controller_call *controller_call_cancel(struct controller_call *call)
{
        if (call) {
                (void)http_call_cancel(call->http);
                free(call);
        }
        return NULL;
}

int controller_client_new(struct loop *loop, const struct http_limits *limits, const char *token,
                          struct controller_client **ret)
{
        cleanup_with(freep) struct controller_client *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        r = http_client_new(loop, limits, token, &c->http);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

struct controller_client *controller_client_free(struct controller_client *c)
{
        if (c) {
                (void)http_client_free(c->http);
                free(c);
        }
        return NULL;
}
