/* libcurl tells which descriptors and which timer it wants (two callbacks); the loop tells libcurl what
 * happened; finished transfers are collected after each step, outside of libcurl's callbacks, so that the
 * user's function may start and cancel calls. Redirects are followed here, not by libcurl: method, body and
 * token must survive them, and the time limit is one for all hops. */
#include "http_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/slog.h"

struct http_client {
        struct loop *loop;
        struct loop_timer *timer;
        struct http_limits limits;
        CURLM *multi;
        struct curl_slist *headers;
        struct list calls;
};

struct http_call {
        struct list node;
        struct http_client *client;
        CURL *easy;
        char *url, *method, *request_body;
        struct buf body;
        char detail[CURL_ERROR_SIZE];
        int64_t deadline_ms;
        int hops;
        bool body_too_big;
        http_reply_fn fn;
        void *userdata;
};

static const struct {
        CURLcode code;
        int error;
} curl_errors[] = {
        {CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT},
        {CURLE_COULDNT_CONNECT, -ECONNREFUSED},
        {CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH},
        {CURLE_GOT_NOTHING, -ECONNRESET},
        {CURLE_RECV_ERROR, -ECONNRESET},
        {CURLE_SEND_ERROR, -ECONNRESET},
        {CURLE_PARTIAL_FILE, -ECONNRESET},
        {CURLE_FILESIZE_EXCEEDED, -EFBIG},
        {CURLE_OUT_OF_MEMORY, -ENOMEM},
        {CURLE_WEIRD_SERVER_REPLY, -EBADMSG},
        {CURLE_PEER_FAILED_VERIFICATION, -EACCES},
        {CURLE_URL_MALFORMAT, -EINVAL},
        {CURLE_UNSUPPORTED_PROTOCOL, -EINVAL},
};

static int error_of(CURLcode code)
{
        for (size_t i = 0; i < ARRAY_SIZE(curl_errors); i++)
                if (curl_errors[i].code == code)
                        return curl_errors[i].error;
        return -EIO;
}

static struct http_call *call_free(struct http_call *call)
{
        if (!call)
                return NULL;
        list_remove(&call->node);
        if (call->easy) {
                (void)curl_multi_remove_handle(call->client->multi,
                                               call->easy); /* harmless if it is not in */
                curl_easy_cleanup(call->easy);
        }
        buf_done(&call->body);
        free(call->url);
        free(call->method);
        free(call->request_body);
        free(call);
        return NULL;
}
DEFINE_FREEP(struct http_call, call_free)

struct http_call *http_call_cancel(struct http_call *call)
{
        return call_free(call);
}

static size_t on_body(char *data, size_t size, size_t n, void *userdata)
{
        struct http_call *call = userdata;

        if (buf_append(&call->body, data, size * n) < 0) {
                call->body_too_big = true;
                return 0; /* ends the transfer with CURLE_WRITE_ERROR */
        }
        return size * n;
}

static int set_method(struct http_call *call)
{
        CURLcode r = CURLE_OK;

        if (strcmp(call->method, "GET") != 0)
                r = curl_easy_setopt(call->easy, CURLOPT_CUSTOMREQUEST, call->method);
        if (r == CURLE_OK && call->request_body) {
                r = curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                     (curl_off_t)strlen(call->request_body));
                if (r == CURLE_OK)
                        r = curl_easy_setopt(call->easy, CURLOPT_POSTFIELDS, call->request_body);
        }
        return r == CURLE_OK ? 0 : -ENOMEM;
}

#define SET(option, value)                                                                                   \
        do {                                                                                                 \
                if (curl_easy_setopt(call->easy, option, value) != CURLE_OK)                                 \
                        return -EINVAL;                                                                      \
        } while (0)

/* Start, or start again after a redirect, with the time that is left. */
static int call_begin(struct http_call *call)
{
        struct http_client *c = call->client;
        int64_t left_ms = MAX(call->deadline_ms - clock_mono_ms(), INT64_C(1));

        SET(CURLOPT_URL, call->url);
        SET(CURLOPT_TIMEOUT_MS, (long)left_ms);
        SET(CURLOPT_CONNECTTIMEOUT_MS, (long)MIN(c->limits.connect_ms, left_ms));
        buf_consume(&call->body, call->body.len);
        return curl_multi_add_handle(c->multi, call->easy) == CURLM_OK ? 0 : -ENOMEM;
}

static int call_setup(struct http_call *call)
{
        struct http_client *c = call->client;

        SET(CURLOPT_PRIVATE, (char *)call);
        SET(CURLOPT_ERRORBUFFER, call->detail);
        SET(CURLOPT_NOSIGNAL, 1L);
        SET(CURLOPT_PROTOCOLS_STR, "http,https");
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        SET(CURLOPT_PROXY, "");
        SET(CURLOPT_USERAGENT, "stepdown/" STEPDOWN_VERSION);
        SET(CURLOPT_FOLLOWLOCATION, 0L);
        SET(CURLOPT_HTTPHEADER, c->headers);
        SET(CURLOPT_WRITEFUNCTION, on_body);
        SET(CURLOPT_WRITEDATA, (void *)call);
        SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)c->limits.body_bytes);
        return set_method(call);
}

/* --- redirects --- */

static bool downgrades(const char *from, const char *to)
{
        return strncasecmp(from, "https:", 6) == 0 && strncasecmp(to, "https:", 6) != 0;
}

/* Returns 1 when the call goes on elsewhere, 0 when @status is no redirect, -errno. */
static int follow_redirect(struct http_call *call, long status)
{
        char *to = NULL, *copy;
        int r;

        if (status != 307 && status != 308)
                return 0;
        if (curl_easy_getinfo(call->easy, CURLINFO_REDIRECT_URL, &to) != CURLE_OK || !to)
                return -EBADMSG;
        if (call->hops >= call->client->limits.redirects)
                return -ELOOP;
        if (downgrades(call->url, to)) /* the token would leave in clear text */
                return -EPROTO;
        copy = strdup(to);
        if (!copy)
                return -ENOMEM;
        free(call->url);
        call->url = copy;
        call->hops++;
        r = call_begin(call);
        return r < 0 ? r : 1;
}

static void call_finish(struct http_call *finished, int error, long status)
{
        cleanup_with(call_freep) struct http_call *call = finished;
        const char *body = buf_cstr(&call->body);
        struct http_reply reply = {
                .error = error == 0 && !body ? -ENOMEM : error,
                .detail = call->detail,
                .status = (int)status,
                .url = call->url,
                .body = body ? body : "",
                .body_len = body ? call->body.len : 0,
        };

        list_remove(&call->node); /* out of reach: the user's function may free the client's other calls */
        (void)curl_multi_remove_handle(call->client->multi, call->easy);
        call->fn(&reply, call->userdata);
}

static void on_transfer_done(struct http_call *call, CURLcode code)
{
        long status = 0;
        int r;

        (void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 stays 0 */
        if (code != CURLE_OK) {
                call_finish(call, call->body_too_big ? -EFBIG : error_of(code), status);
                return;
        }
        (void)curl_multi_remove_handle(call->client->multi, call->easy); /* before it is added again */
        r = follow_redirect(call, status);
        if (r == 1)
                return;
        if (r < 0 && call->detail[0] == '\0')
                (void)snprintf(call->detail, sizeof(call->detail), "redirect from %s not followed: %s",
                               call->url, strerrordesc_np(-r));
        call_finish(call, r, status);
}

static void collect_finished(struct http_client *c)
{
        CURLMsg *m;
        int left;

        /* on_transfer_done() may change what is queued, but libcurl's queue is its own: ask anew each time.
         */
        while ((m = curl_multi_info_read(c->multi, &left))) {
                CURLcode code = m->data.result;
                char *call = NULL;

                if (m->msg != CURLMSG_DONE)
                        continue;
                if (curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call) == CURLE_OK && call)
                        on_transfer_done((struct http_call *)(void *)call, code);
        }
}

/* --- libcurl and the loop --- */

static void step(struct http_client *c, curl_socket_t fd, int what)
{
        int running;

        (void)curl_multi_socket_action(c->multi, fd, what, &running); /* errors show in the transfers */
        collect_finished(c);
}

static int on_timer(struct loop *l, void *userdata)
{
        (void)l;
        step(userdata, CURL_SOCKET_TIMEOUT, 0);
        return 0;
}

static int on_fd(struct loop *l, int fd, uint32_t events, void *userdata)
{
        int what = 0;

        (void)l;
        if (events & EPOLLIN)
                what |= CURL_CSELECT_IN;
        if (events & EPOLLOUT)
                what |= CURL_CSELECT_OUT;
        if (events & (EPOLLERR | EPOLLHUP))
                what |= CURL_CSELECT_ERR;
        step(userdata, fd, what);
        return 0;
}

static int want_timer(CURLM *multi, long timeout_ms, void *userdata)
{
        struct http_client *c = userdata;

        (void)multi;
        if (timeout_ms < 0)
                loop_timer_disarm(c->timer);
        else
                loop_timer_arm(c->timer, timeout_ms, 0);
        return 0;
}

static int want_fd(CURL *easy, curl_socket_t fd, int what, void *userdata, void *source)
{
        struct http_client *c = userdata;
        struct loop_fd *s = source;
        uint32_t events = 0;

        (void)easy;
        if (what == CURL_POLL_REMOVE) {
                (void)loop_fd_remove(s);
                (void)curl_multi_assign(c->multi, fd, NULL); /* cannot fail for a known descriptor */
                return 0;
        }
        if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
                events |= EPOLLIN;
        if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
                events |= EPOLLOUT;
        if (s)
                return loop_fd_set_events(s, events) < 0 ? -1 : 0;
        if (loop_add_fd(c->loop, fd, events, on_fd, c, &s) < 0)
                return -1;
        (void)curl_multi_assign(c->multi, fd, s);
        return 0;
}

/* --- client --- */

static int add_header(struct http_client *c, const char *line)
{
        struct curl_slist *grown = curl_slist_append(c->headers, line);

        if (!grown)
                return -ENOMEM;
        c->headers = grown;
        return 0;
}

static int add_headers(struct http_client *c, const char *token)
{
        cleanup_with(freep) char *line = NULL;
        int r;

        r = add_header(c, "Content-Type: application/json");
        if (r == 0)
                r = add_header(c, "Accept: application/json");
        if (r == 0)
                r = add_header(c, "Expect:"); /* no 100-continue round trip for a short body */
        if (r < 0 || !token)
                return r;
        if (asprintf(&line, "Authorization: Bearer %s", token) < 0) {
                line = NULL;
                return -ENOMEM;
        }
        return add_header(c, line);
}

static int multi_setup(struct http_client *c)
{
        if (curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, want_fd) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, want_timer) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) != CURLM_OK ||
            curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, 16L) != CURLM_OK)
                return -EINVAL;
        return 0;
}

int http_client_new(struct loop *loop, const struct http_limits *limits, const char *token,
                    struct http_client **ret)
{
        cleanup_with(http_client_freep) struct http_client *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->loop = loop;
        c->limits = *limits;
        list_init(&c->calls);
        r = loop_add_timer(loop, on_timer, c, &c->timer);
        if (r < 0)
                return r;
        c->multi = curl_multi_init();
        if (!c->multi)
                return -ENOMEM;
        r = multi_setup(c);
        if (r == 0)
                r = add_headers(c, token);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

struct http_client *http_client_free(struct http_client *c)
{
        if (!c)
                return NULL;
        list_for_each_safe (it, tmp, &c->calls)
                (void)call_free(list_entry(it, struct http_call, node));
        if (c->multi)
                (void)curl_multi_cleanup(c->multi); /* gives its descriptors back through want_fd() */
        curl_slist_free_all(c->headers);
        (void)loop_timer_remove(c->timer);
        free(c);
        return NULL;
}

int http_client_call(struct http_client *c, const char *method, const char *url, const char *body,
                     http_reply_fn fn, void *userdata, struct http_call **ret)
{
        cleanup_with(call_freep) struct http_call *call = calloc(1, sizeof(*call));
        int r;

        if (!call)
                return -ENOMEM;
        list_init(&call->node);
        call->client = c;
        call->fn = fn;
        call->userdata = userdata;
        call->deadline_ms = clock_mono_ms() + c->limits.total_ms;
        buf_init(&call->body, c->limits.body_bytes);
        call->url = strdup(url);
        call->method = strdup(method);
        call->request_body = body ? strdup(body) : NULL;
        call->easy = curl_easy_init();
        if (!call->url || !call->method || (body && !call->request_body) || !call->easy)
                return -ENOMEM;
        r = call_setup(call);
        if (r == 0)
                r = call_begin(call);
        if (r < 0)
                return r;
        list_push_back(&c->calls, &call->node);
        *ret = TAKE_PTR(call);
        return 0;
}
