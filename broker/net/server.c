/* The listener: accepting, limits, and the one coarse timer that finds slow and idle connections. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/slog.h"
#include "net/net_internal.h"

#define ACCEPT_PAUSE_MS 100

void net_limits_default(struct net_limits *ret)
{
        *ret = (struct net_limits){
                .max_frame_bytes = 100 * 1024 * 1024,
                .max_unsent_bytes = 16 * 1024 * 1024,
                .max_queued_request_bytes = 512 * 1024 * 1024,
                .max_queued_response_bytes = 512 * 1024 * 1024,
                .max_inflight = 64,
                .max_connections = 10000,
                .frame_timeout_ms = 30 * 1000,
                .idle_timeout_ms = 10 * 60 * 1000,
                .stall_timeout_ms = 3 * 1000,
        };
}

static void server_refuse(struct net_server *s, const char *peer)
{
        int64_t suppressed;

        net_metrics_closed(CLOSE_OVER_LIMIT);
        if (slog_gate_pass(&s->gate_limit, loop_now_ms(s->loop), &suppressed))
                slog_warning("net-connection-limit", "too many connections, closing the new one",
                             SL_STR("peer", peer), SL_INT("max_connections", s->limits.max_connections),
                             SL_INT("suppressed", suppressed));
}

static void server_adopt(struct net_server *s, int accepted, const struct sockaddr_storage *sa)
{
        cleanup_with(closep) int fd = accepted;
        char peer[NET_PEER_BYTES];

        addr_format(sa, peer);
        metric_add(&net_metrics[NET_ACCEPTED], 1);
        if (net_server_connections(s) >= s->limits.max_connections) {
                server_refuse(s, peer);
                return;
        }
        /* neither option decides whether the connection works: a failure is not worth losing it */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
        if (!conn_new(s, fd, peer)) {
                net_metrics_closed(CLOSE_NO_MEMORY);
                slog_error("net-connection-failed", "no memory for a connection, closing it",
                           SL_STR("peer", peer));
                return;
        }
        (void)TAKE_FD(fd);
}

/* Out of descriptors or memory: the pending connection stays in the backlog and would wake us for ever, so
 * the listener sleeps. Said once an episode, which ends with the next connection accepted. */
static int server_pause_accepting(struct net_server *s, int error)
{
        if (!s->accept_failing)
                slog_error("net-accept-paused", "cannot accept connections, trying again until it works",
                           SL_ERR(error), SL_INT("connections", net_server_connections(s)),
                           SL_INT("retry_ms", ACCEPT_PAUSE_MS));
        s->accept_failing = true;
        loop_timer_arm(s->accept_timer, ACCEPT_PAUSE_MS, 0);
        return loop_fd_set_events(s->source, 0);
}

static bool accept_error_is_of_one(int error)
{
        /* accept(2): errors already pending on the new socket concern that connection alone */
        return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN ||
               error == ENOPROTOOPT || error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH ||
               error == EOPNOTSUPP || error == ENETUNREACH || error == EPERM;
}

static int server_on_acceptable(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct net_server *s = userdata;

        (void)l;
        (void)events;
        for (int i = 0; i < NET_ACCEPTS_PER_PASS; i++) {
                struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
                socklen_t len = sizeof(sa);
                int accepted = accept4(fd, (struct sockaddr *)&sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

                if (accepted < 0 && errno == EAGAIN)
                        return 0;
                if (accepted < 0 && accept_error_is_of_one(errno))
                        continue;
                if (accepted < 0)
                        return server_pause_accepting(s, -errno);
                s->accept_failing = false;
                server_adopt(s, accepted, &sa);
        }
        return 0;
}

static int server_on_accept_timer(struct loop *l, void *userdata)
{
        struct net_server *s = userdata;

        (void)l;
        return s->source ? loop_fd_set_events(s->source, EPOLLIN) : 0;
}

static void server_close_slow(struct net_server *s, int64_t now_ms)
{
        while (!list_empty(&s->partials)) {
                struct net_conn *c = list_entry(s->partials.next, struct net_conn, partial_node);

                if (now_ms - c->frame_since_ms < s->limits.frame_timeout_ms)
                        return;
                slog_info("net-frame-slow", "frame did not complete in time, closing the connection",
                          SL_STR("peer", c->peer), SL_INT("timeout_ms", s->limits.frame_timeout_ms),
                          SL_INT("received_bytes", c->frame.len), SL_INT("frame_bytes", c->frame_len));
                conn_close(c, CLOSE_SLOW_FRAME);
        }
}

/* No more will come, and what is owed does not leave: held by a handler, or not taken. */
static void server_close_ending(struct net_server *s, int64_t now_ms)
{
        while (!list_empty(&s->ending)) {
                struct net_conn *c = list_entry(s->ending.next, struct net_conn, ending_node);
                int64_t since_ms = MAX(c->ending_since_ms, c->active_ms);

                if (now_ms - c->ending_since_ms < s->limits.frame_timeout_ms)
                        return;
                if (now_ms - since_ms >= s->limits.frame_timeout_ms) {
                        conn_close(c, CLOSE_HALF_CLOSED);
                        continue;
                }
                c->ending_since_ms = since_ms;
                list_remove(&c->ending_node);
                list_push_back(&s->ending, &c->ending_node);
        }
}

/* Is the next move the handler's? Then the peer is waiting for us, not idle. */
static bool conn_owes_answer(const struct net_conn *c)
{
        return !list_empty(&c->requests) &&
               !list_entry(c->requests.next, struct net_request, node)->collected;
}

static void server_close_idle(struct net_server *s, int64_t now_ms)
{
        while (!list_empty(&s->conns)) {
                struct net_conn *c = list_entry(s->conns.next, struct net_conn, server_node);

                if (now_ms - c->active_ms < s->limits.idle_timeout_ms)
                        return;
                if (conn_owes_answer(c)) {
                        c->active_ms = now_ms;
                        list_remove(&c->server_node);
                        list_push_back(&s->conns, &c->server_node);
                        continue;
                }
                conn_close(c, c->n_requests > 0 ? CLOSE_STALLED : CLOSE_IDLE);
        }
}

static int server_on_tick(struct loop *l, void *userdata)
{
        struct net_server *s = userdata;

        server_close_slow(s, loop_now_ms(l));
        server_close_idle(s, loop_now_ms(l));
        server_close_ending(s, loop_now_ms(l));
        server_press(s, loop_now_ms(l));
        return 0;
}

static int server_start(struct net_server *s)
{
        int64_t tick_ms =
                MIN(MIN(s->limits.frame_timeout_ms, s->limits.idle_timeout_ms), s->limits.stall_timeout_ms) /
                8;
        int r;

        r = loop_add_timer(s->loop, server_on_accept_timer, s, &s->accept_timer);
        if (r < 0)
                return r;
        r = loop_add_timer(s->loop, server_on_tick, s, &s->tick);
        if (r < 0)
                return r;
        r = loop_add_fd(s->loop, s->fd, EPOLLIN, server_on_acceptable, s, &s->source);
        if (r < 0)
                return r;
        tick_ms = MAX(MIN(tick_ms, (int64_t)1000), (int64_t)1);
        loop_timer_arm(s->tick, tick_ms, tick_ms);
        return 0;
}

int net_server_new(struct loop *l, const char *host, uint16_t port, const struct net_limits *limits,
                   const struct net_ops *ops, struct net_server **ret)
{
        cleanup_with(net_server_freep) struct net_server *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        assert(ops->on_request);
        s->loop = l;
        s->ops = *ops;
        s->fd = -1;
        list_init(&s->conns);
        list_init(&s->partials);
        list_init(&s->ending);
        list_init(&s->queued);
        list_init(&s->paused);
        if (limits)
                s->limits = *limits;
        else
                net_limits_default(&s->limits);
        net_metrics_register();
        s->budget = budget_new(&s->limits);
        if (!s->budget)
                return -ENOMEM;

        r = addr_listen(host, port, &s->fd, &s->port);
        if (r < 0)
                return r;
        r = server_start(s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

uint16_t net_server_port(const struct net_server *s)
{
        return s->port;
}

void net_server_stop_accepting(struct net_server *s)
{
        s->source = loop_fd_remove(s->source);
        s->accept_timer = loop_timer_remove(s->accept_timer);
        closep(&s->fd);
        s->fd = -1;
}

struct net_server *net_server_free(struct net_server *s)
{
        if (!s)
                return NULL;
        net_server_stop_accepting(s);
        s->tick = loop_timer_remove(s->tick);
        while (!list_empty(&s->conns))
                conn_close(list_entry(s->conns.next, struct net_conn, server_node), CLOSE_SERVER_STOPPED);
        (void)budget_unref(s->budget);
        free(s);
        return NULL;
}

int net_server_connections(const struct net_server *s)
{
        return atomic_load(&((struct net_server *)s)->n_conns);
}
