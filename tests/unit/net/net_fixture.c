#include "net_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"

static void frame(struct buf *out, const void *body, size_t n)
{
        uint32_t prefix = htonl((uint32_t)n);

        assert_int_equal(buf_append(out, &prefix, sizeof(prefix)), 0);
        assert_int_equal(buf_append(out, body, n), 0);
}

void answer(struct net_request *r, const char *body)
{
        cleanup_with(buf_donep) struct buf out = {0};

        frame(&out, body, strlen(body));
        net_request_reply(r, &out);
}

static void hold(struct fixture *f, struct net_request *r)
{
        pthread_mutex_lock(&f->lock);
        assert_true(f->n_held < MAX_HELD);
        f->held[f->n_held++] = r;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->lock);
}

static void answer_big(struct fixture *f, struct net_request *r)
{
        cleanup_with(buf_donep) struct buf out = {0};
        cleanup_with(freep) char *body = calloc(1, f->big_bytes);

        assert_non_null(body);
        frame(&out, body, f->big_bytes);
        net_request_reply(r, &out);
}

static void wait_or_hold(struct fixture *f, struct net_request *r)
{
        if (r->frame.data[0] != 'w' || net_request_is_next(r)) {
                hold(f, r);
                return;
        }
        net_request_wait_turn(r);
        f->n_waiting++;
}

static void on_request(struct net_request *r, void *userdata)
{
        cleanup_with(buf_donep) struct buf out = {0};
        struct fixture *f = userdata;

        switch ((int)f->handler) {
        case HANDLER_HOLD:
                hold(f, r);
                return;
        case HANDLER_BIG:
                answer_big(f, r);
                return;
        case HANDLER_IN_TURN:
                wait_or_hold(f, r);
                return;
        case HANDLER_TAKE:
                out = net_request_take_frame(r);
                hold(f, r);
                return;
        default:
                frame(&out, r->frame.data, r->frame.len);
                net_request_reply(r, &out);
        }
}

void fixture_init(struct fixture *f)
{
        *f = (struct fixture){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
        net_limits_default(&f->limits);
}

void fixture_start(struct fixture *f, const char *host)
{
        const struct net_ops ops = {.on_request = on_request, .userdata = f};

        assert_int_equal(loop_new("net-test", &f->loop), 0);
        assert_int_equal(net_server_new(f->loop, host, 0, &f->limits, &ops, &f->server), 0);
        assert_int_equal(loop_thread_start(f->loop), 0);
}

static void free_server(void *userdata)
{
        struct fixture *f = userdata;

        f->server = net_server_free(f->server);
}

void fixture_stop_server(struct fixture *f)
{
        assert_int_equal(loop_call(f->loop, free_server, f), 0);
}

void fixture_stop_loop(struct fixture *f)
{
        loop_stop(f->loop);
        loop_thread_join(f->loop);
        f->loop = loop_free(f->loop);
}

void fixture_done(struct fixture *f)
{
        if (f->server)
                fixture_stop_server(f);
        if (f->loop)
                fixture_stop_loop(f);
        for (int i = 0; i < f->n_held; i++)
                if (f->held[i])
                        net_request_done(f->held[i]);
}

static struct timespec deadline(void)
{
        struct timespec t;

        (void)clock_gettime(CLOCK_REALTIME, &t);
        t.tv_sec += DEADLINE_MS / 1000;
        return t;
}

void fixture_wait_held(struct fixture *f, int n)
{
        const struct timespec until = deadline();

        pthread_mutex_lock(&f->lock);
        while (f->n_held < n)
                assert_int_equal(pthread_cond_timedwait(&f->changed, &f->lock, &until), 0);
        pthread_mutex_unlock(&f->lock);
}

int fixture_held(struct fixture *f)
{
        int n;

        pthread_mutex_lock(&f->lock);
        n = f->n_held;
        pthread_mutex_unlock(&f->lock);
        return n;
}

struct net_request *fixture_take(struct fixture *f, int i)
{
        struct net_request *r;

        pthread_mutex_lock(&f->lock);
        assert_true(i < f->n_held);
        r = TAKE_PTR(f->held[i]);
        pthread_mutex_unlock(&f->lock);
        assert_non_null(r);
        return r;
}

void fixture_wait_waiting(struct fixture *f, int n)
{
        int64_t until_ms = clock_mono_ms() + DEADLINE_MS;

        while (f->n_waiting < n) {
                assert_true(clock_mono_ms() < until_ms);
                (void)poll(NULL, 0, 1);
        }
}

void fixture_wait_connections(struct fixture *f, int n)
{
        int64_t until_ms = clock_mono_ms() + DEADLINE_MS;

        while (net_server_connections(f->server) != n) {
                assert_true(clock_mono_ms() < until_ms);
                (void)poll(NULL, 0, 1); /* the count has no event of its own */
        }
}

int client_connect(const struct fixture *f)
{
        struct sockaddr_in sa = {.sin_family = AF_INET,
                                 .sin_port = htons(net_server_port(f->server)),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        const struct timeval timeout = {.tv_sec = DEADLINE_MS / 1000};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        return fd;
}

void client_send(int fd, const void *p, size_t n)
{
        const char *at = p;

        while (n > 0) {
                ssize_t k = send(fd, at, n, MSG_NOSIGNAL);

                assert_true(k > 0);
                at += k;
                n -= (size_t)k;
        }
}

void client_send_prefix(int fd, int32_t length)
{
        uint32_t prefix = htonl((uint32_t)length);

        client_send(fd, &prefix, sizeof(prefix));
}

void client_send_frame(int fd, const char *body)
{
        cleanup_with(buf_donep) struct buf out = {0};

        frame(&out, body, strlen(body));
        client_send(fd, out.data, out.len);
}

static void read_full(int fd, void *p, size_t n)
{
        assert_int_equal(recv(fd, p, n, MSG_WAITALL), n);
}

void client_expect_frame(int fd, const char *body)
{
        cleanup_with(freep) char *got = NULL;
        uint32_t prefix;

        read_full(fd, &prefix, sizeof(prefix));
        got = calloc(1, ntohl(prefix) + 1);
        assert_non_null(got);
        read_full(fd, got, ntohl(prefix));
        assert_string_equal(got, body);
}

void client_expect_closed(int fd)
{
        char byte;
        ssize_t n = recv(fd, &byte, 1, 0);

        assert_true(n == 0 || (n < 0 && (errno == ECONNRESET || errno == EPIPE)));
}

void client_reset(int fd)
{
        const struct linger now = {.l_onoff = 1, .l_linger = 0};

        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
        assert_int_equal(close(fd), 0);
}

int64_t closed_because(const char *reason)
{
        cleanup_with(buf_donep) struct buf text = {0};
        char row[128];
        const char *at;

        (void)snprintf(row, sizeof(row), "stepdown_net_connections_closed_total{reason=\"%s\"} ", reason);
        assert_int_equal(metrics_print(&text), 0);
        at = strstr(buf_cstr(&text), row);
        assert_non_null(at);
        return strtoll(at + strlen(row), NULL, 10);
}
