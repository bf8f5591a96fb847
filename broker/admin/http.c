/* libmicrohttpd glue: collect the body, route, suspend while the controller works, answer. */
#include "admin/http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/parse.h"
#include "base/slog.h"
#include "controller/controller.h"

#define BODY_MAX_BYTES   (64 * 1024)
#define IDLE_TIMEOUT_S   15
#define CONNECTION_LIMIT 256
#define CROWDED          192 /* from so many on, a new connection takes the place of an idle one */

/* The path of a route may hold one "{id}". Returns false when @path is not of its form. */
static bool route_matches(const struct http_route *route, const char *path, int32_t *ret_id)
{
        const char *hole = strstr(route->path, "{id}"), *rest;
        char digits[16];
        size_t prefix, n;

        *ret_id = -1;
        if (!hole)
                return strcmp(route->path, path) == 0;
        prefix = (size_t)(hole - route->path);
        if (strncmp(route->path, path, prefix) != 0)
                return false;
        rest = path + prefix;
        n = strcspn(rest, "/");
        if (n == 0 || n >= sizeof(digits) || strcmp(rest + n, hole + strlen("{id}")) != 0)
                return false;
        memcpy(digits, rest, n);
        digits[n] = '\0';
        return parse_int32(digits, 0, INT32_MAX, ret_id) == 0;
}

static struct http_request *http_request_free(struct http_request *r)
{
        if (!r)
                return NULL;
        free(r->uri);
        free(r->path);
        free(r->location);
        (void)cluster_view_free(r->view);
        buf_done(&r->body);
        buf_done(&r->answer);
        free(r);
        return NULL;
}

/* Called with the request line as it came, before on_access() is; the result is the latter's context. */
static void *on_uri(void *cls, const char *uri, struct MHD_Connection *c)
{
        struct http_request *r = calloc(1, sizeof(*r));

        if (!r)
                return NULL;
        r->admin = cls;
        r->connection = c;
        buf_init(&r->body, BODY_MAX_BYTES);
        buf_init(&r->answer, 0);
        r->uri = strdup(uri);
        if (!r->uri)
                return http_request_free(r);
        return r;
}

/* --- connections: one that asks gets an answer, however many do not ask --- */

struct http_peer {
        struct list node; /* on admin.peers: the longest without an answered request comes first */
        int fd;
        bool waiting; /* for the controller's answer */
};

static struct http_peer *peer_of(struct MHD_Connection *c)
{
        const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

        return i ? i->socket_context : NULL;
}

/* Idle clients, and those that send a byte now and then, must not keep the drain API from working: with many
 * connections the one that was longest without an answered request is closed for the new one. */
static void make_room(struct admin *a)
{
        int64_t suppressed;

        if (a->n_peers < CROWDED)
                return;
        list_for_each (it, &a->peers) {
                struct http_peer *p = list_entry(it, struct http_peer, node);

                if (p->waiting)
                        continue;
                (void)shutdown(p->fd, SHUT_RDWR); /* libmicrohttpd sees its end, and closes it */
                list_remove(&p->node);            /* not twice */
                if (slog_gate_pass(&a->crowd_gate, clock_mono_ms(), &suppressed))
                        slog_warning("admin-connections-crowded",
                                     "many connections to the admin listener; the longest idle one is closed",
                                     SL_INT("connections", a->n_peers), SL_INT("suppressed", suppressed));
                return;
        }
}

static void on_connection(void *cls, struct MHD_Connection *c, void **ctx,
                          enum MHD_ConnectionNotificationCode what)
{
        const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct http_peer *p = *ctx;
        struct admin *a = cls;

        if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
                if (!p)
                        return;
                list_remove(&p->node);
                free(p);
                a->n_peers--;
                *ctx = NULL;
                return;
        }
        p = i ? calloc(1, sizeof(*p)) : NULL;
        if (!p)
                return; /* then it is not counted, and libmicrohttpd's own limits hold */
        make_room(a);
        p->fd = i->connect_fd;
        list_push_back(&a->peers, &p->node);
        a->n_peers++;
        *ctx = p;
}

/* --- answers --- */

void http_wait_begin(struct http_request *r)
{
        pthread_mutex_lock(&r->admin->lock);
        r->admin->pending++;
        r->waiting = true;
        pthread_mutex_unlock(&r->admin->lock);
        if (peer_of(r->connection))
                peer_of(r->connection)->waiting = true;
        MHD_suspend_connection(r->connection);
}

/* A request that waited goes on: the lock orders the answer's bytes before the HTTP thread's reading of them.
 */
static void answered(struct http_request *r)
{
        struct admin *a = r->admin;
        bool waited = r->waiting;

        pthread_mutex_lock(&a->lock);
        r->answered = true;
        pthread_mutex_unlock(&a->lock);
        if (!waited)
                return;
        MHD_resume_connection(r->connection);
        pthread_mutex_lock(&a->lock);
        if (--a->pending == 0)
                pthread_cond_broadcast(&a->idle);
        pthread_mutex_unlock(&a->lock);
}

void http_reply_text(struct http_request *r, unsigned status, const char *content_type, struct buf *text)
{
        r->status = status;
        r->content_type = content_type;
        r->answer = buf_take(text);
        answered(r);
}

void http_reply_rendered(struct http_request *r, struct cluster_view *view,
                         void (*render)(struct http_request *r, const struct cluster_view *view))
{
        r->view = view;
        r->render = render;
        answered(r);
}

void http_reply_json(struct http_request *r, unsigned status, json_t *body)
{
        cleanup_with(freep) char *text = body ? json_dumps(body, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
        struct buf b;

        json_decref(body);
        buf_init(&b, 0);
        if (!text || buf_append_str(&b, text) < 0 || buf_append(&b, "\n", 1) < 0)
                status = MHD_HTTP_INTERNAL_SERVER_ERROR;
        http_reply_text(r, status, "application/json", &b);
}

void http_reply_error(struct http_request *r, unsigned status, const char *code, const char *message)
{
        http_reply_json(r, status, json_pack("{s:s, s:s}", "error", code, "message", message));
}

/* What was asked for, with its query, to be asked for elsewhere. Not the decoded path: it would be another
 * one. */
static const char *target(const struct http_request *r)
{
        for (const char *c = r->uri; *c; c++)
                if (*c <= ' ' || *c > '~')
                        return r->path;
        return r->uri[0] == '/' ? r->uri : r->path;
}

void http_reply_to_controller(struct http_request *r)
{
        struct controller_location where;

        r->retry_after_s = 1;
        if (controller_locate(r->admin->env.controller, &where) < 0 || where.admin_host[0] == '\0') {
                http_reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "no_controller",
                                 "no active controller is known; ask again");
                return;
        }
        if (where.id == r->admin->env.broker_id) {
                http_reply_error(
                        r, MHD_HTTP_SERVICE_UNAVAILABLE, "controller_loading",
                        "this broker was just elected controller and reads the cluster's state; ask again");
                return;
        }
        if (asprintf(&r->location, "http://%s%s%s:%u%s", strchr(where.admin_host, ':') ? "[" : "",
                     where.admin_host, strchr(where.admin_host, ':') ? "]" : "", where.admin_port,
                     target(r)) < 0)
                r->location = NULL;
        http_reply_json(r, MHD_HTTP_TEMPORARY_REDIRECT,
                        json_pack("{s:s, s:s, s:i}", "error", "not_controller", "message",
                                  "another broker is the controller; see Location", "controller",
                                  (int)where.id));
}

static bool token_ok(const struct http_request *r)
{
        const char *want = r->admin->env.token;
        const char *got =
                MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
        size_t n = want ? strlen(want) : 0;
        unsigned char differ = 0;

        if (!want)
                return true;
        if (!got || strncmp(got, "Bearer ", 7) != 0 || strlen(got + 7) != n)
                return false;
        for (size_t i = 0; i < n; i++) /* in constant time */
                differ |= (unsigned char)(got[7 + i] ^ want[i]);
        return differ == 0;
}

/* Decoded, a path would end at such a byte and pass for another one. */
static bool holds_nul(const char *uri)
{
        const char *at = strstr(uri, "%00"), *query = strchr(uri, '?');

        return at && (!query || at < query);
}

static void route(struct http_request *r)
{
        if (r->refused) {
                http_reply_error(r, MHD_HTTP_CONTENT_TOO_LARGE, "body_too_large",
                                 "a request body has at most 64 KiB");
                return;
        }
        for (size_t i = 0; i < admin_n_routes; i++) {
                if (holds_nul(r->uri) || !route_matches(&admin_routes[i], r->path, &r->id))
                        continue;
                (void)snprintf(r->allow + strlen(r->allow), sizeof(r->allow) - strlen(r->allow), "%s%s%s",
                               r->allow[0] ? ", " : "", admin_routes[i].method,
                               strcmp(admin_routes[i].method, "GET") == 0 ? ", HEAD" : "");
                if (strcmp(admin_routes[i].method, r->method) != 0 &&
                    !(strcmp(r->method, "HEAD") == 0 && strcmp(admin_routes[i].method, "GET") == 0))
                        continue;
                r->route = &admin_routes[i];
                if (r->route->changes && !token_ok(r)) {
                        r->challenge = true;
                        http_reply_error(r, MHD_HTTP_UNAUTHORIZED, "unauthorized",
                                         "this needs the bearer token of admin.token.file");
                        return;
                }
                r->route->handle(r);
                return;
        }
        if (r->allow[0] != '\0')
                http_reply_error(r, MHD_HTTP_METHOD_NOT_ALLOWED, "method_not_allowed",
                                 "that path does not take this method");
        else
                http_reply_error(r, MHD_HTTP_NOT_FOUND, "no_such_path",
                                 "see /v1/broker, /v1/brokers/{id}, /v1/brokers/{id}/drain, "
                                 "/v1/brokers/{id}/check, /v1/drains, /v1/cluster, /v1/partitions, /livez, "
                                 "/readyz, /metrics");
}

static enum MHD_Result send_answer(struct http_request *r)
{
        struct MHD_Response *resp;
        enum MHD_Result ok;
        char seconds[16];

        resp = MHD_create_response_from_buffer(r->answer.len, r->answer.data,
                                               r->answer.data ? MHD_RESPMEM_MUST_FREE
                                                              : MHD_RESPMEM_PERSISTENT);
        if (!resp)
                return MHD_NO;
        (void)buf_take(&r->answer); /* it is the response's */
        (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_CONTENT_TYPE, r->content_type);
        (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
        if (r->location)
                (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_LOCATION, r->location);
        if (r->challenge)
                (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
        if (r->status == MHD_HTTP_METHOD_NOT_ALLOWED)
                (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_ALLOW, r->allow);
        if (r->status == MHD_HTTP_TOO_MANY_REQUESTS)
                r->retry_after_s = MAX(r->retry_after_s, 1);
        if (r->retry_after_s > 0 &&
            (r->status == MHD_HTTP_SERVICE_UNAVAILABLE || r->status == MHD_HTTP_TOO_MANY_REQUESTS)) {
                (void)snprintf(seconds, sizeof(seconds), "%d", r->retry_after_s);
                (void)MHD_add_response_header(resp, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
        }
        ok = MHD_queue_response(r->connection, r->status, resp);
        MHD_destroy_response(resp);
        return ok;
}

/* The headers are there, the body is not yet. */
static enum MHD_Result begin(struct http_request *r, const char *url, const char *method)
{
        const char *length =
                MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
        int64_t n;

        r->method = method;
        r->path = strdup(url);
        if (!r->path)
                return MHD_NO;
        if (!length || (parse_int64(length, 0, INT64_MAX, &n) == 0 && n <= BODY_MAX_BYTES))
                return MHD_YES;
        r->refused = r->routed = true; /* answered now: nobody needs to send it first */
        route(r);
        return send_answer(r);
}

static enum MHD_Result on_access(void *cls, struct MHD_Connection *c, const char *url, const char *method,
                                 const char *version, const char *upload, size_t *upload_len, void **ctx)
{
        struct admin *a = cls;
        struct http_request *r = *ctx;
        bool done;

        (void)c;
        (void)version;
        if (!r)
                return MHD_NO; /* no memory for it */
        if (!r->path)
                return begin(r, url, method);
        if (*upload_len > 0) {
                if (r->refused) /* it goes on sending: enough is enough */
                        return MHD_NO;
                r->refused = buf_append(&r->body, upload, *upload_len) < 0;
                *upload_len = 0;
                return MHD_YES;
        }
        if (!r->routed) {
                r->routed = true;
                route(r);
                if (r->waiting)
                        return MHD_YES; /* called again once resumed */
        }
        pthread_mutex_lock(&a->lock);
        done = r->answered;
        pthread_mutex_unlock(&a->lock);
        if (!done)
                return MHD_YES;
        if (r->render) {
                r->waiting = false; /* what follows answers at once */
                r->render(r, r->view);
                r->view = cluster_view_free(r->view);
        }
        return send_answer(r);
}

static void on_completed(void *cls, struct MHD_Connection *c, void **ctx, enum MHD_RequestTerminationCode why)
{
        struct http_peer *p = peer_of(c);
        struct admin *a = cls;

        if (*ctx)
                a->n_large -= ((struct http_request *)*ctx)->large;
        if (p)
                p->waiting = false;
        if (p && why == MHD_REQUEST_TERMINATED_COMPLETED_OK && list_linked(&p->node)) {
                list_remove(&p->node);
                list_push_back(&a->peers, &p->node);
        }
        *ctx = http_request_free(*ctx);
}

static void on_log(void *cls, const char *fmt, va_list ap)
{
        char line[256];

        (void)cls;
        (void)vsnprintf(line, sizeof(line), fmt, ap);
        line[strcspn(line, "\n")] = '\0';
        slog_debug("admin-http", line);
}

/* @host "": every address. A name is looked up, as it is for the Kafka listener. */
static int resolve_listen(const char *host, uint16_t port, struct sockaddr_storage *ret)
{
        const struct addrinfo hints = {
                .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
        struct addrinfo *found = NULL;
        char service[8];

        (void)snprintf(service, sizeof(service), "%u", port);
        if (getaddrinfo(host[0] && strcmp(host, "*") != 0 ? host : NULL, service, &hints, &found) != 0)
                return -EADDRNOTAVAIL;
        memcpy(ret, found->ai_addr, found->ai_addrlen);
        freeaddrinfo(found);
        return 0;
}

int admin_new(const struct admin_env *env, const char *host, uint16_t port, struct admin **ret)
{
        cleanup_with(admin_freep) struct admin *a = calloc(1, sizeof(*a));
        struct sockaddr_storage where = {0};
        const union MHD_DaemonInfo *info;
        unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
        int r;

        if (!a)
                return -ENOMEM;
        a->env = *env;
        list_init(&a->peers);
        (void)pthread_mutex_init(&a->lock, NULL);
        (void)pthread_cond_init(&a->idle, NULL);
        r = resolve_listen(host, port, &where);
        if (r < 0)
                return r;
        errno = 0;
        /* Without MHD_OPTION_LISTENING_ADDRESS_REUSE: it means SO_REUSEPORT, and of two brokers on one port
         * each would get some of the requests. */
        a->daemon = MHD_start_daemon(flags | (where.ss_family == AF_INET6 ? MHD_USE_DUAL_STACK : 0), port,
                                     NULL, NULL, on_access, a, MHD_OPTION_SOCK_ADDR,
                                     (struct sockaddr *)&where, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
                                     MHD_OPTION_URI_LOG_CALLBACK, on_uri, a, MHD_OPTION_NOTIFY_COMPLETED,
                                     on_completed, a, MHD_OPTION_NOTIFY_CONNECTION, on_connection, a,
                                     MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_TIMEOUT_S,
                                     MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTION_LIMIT, MHD_OPTION_END);
        if (!a->daemon)
                return errno ? -errno : -EADDRINUSE;
        info = MHD_get_daemon_info(a->daemon, MHD_DAEMON_INFO_BIND_PORT);
        a->port = info ? info->port : port;
        *ret = TAKE_PTR(a);
        return 0;
}

uint16_t admin_port(const struct admin *a)
{
        return a->port;
}

struct admin *admin_free(struct admin *a)
{
        if (!a)
                return NULL;
        if (a->daemon) {
                int fd = MHD_quiesce_daemon(a->daemon);

                if (fd >= 0)
                        (void)close(fd);
                /* The controller answers all that waits before it stops (KAFKA-10193). */
                pthread_mutex_lock(&a->lock);
                while (a->pending > 0)
                        pthread_cond_wait(&a->idle, &a->lock);
                pthread_mutex_unlock(&a->lock);
                MHD_stop_daemon(a->daemon);
        }
        (void)pthread_cond_destroy(&a->idle);
        (void)pthread_mutex_destroy(&a->lock);
        free(a);
        return NULL;
}
