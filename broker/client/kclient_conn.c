/* Connecting, backing off, losing the connection. Nothing here calls a requester back: finished requests are
 * collected on a list, and whoever entered from the loop answers them last. */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/slog.h"
#include "client/kclient_internal.h"

static void kclient_close_socket(struct kclient *c)
{
        c->source = loop_fd_remove(c->source);
        closep(&c->fd);
        c->fd = -1;
        c->events = 0;
        c->broken = 0;
        c->generation++;
        buf_done(&c->in);
}

static void kclient_forget_addrs(struct kclient *c)
{
        if (c->addrs)
                freeaddrinfo(c->addrs);
        c->addrs = c->addr = NULL;
}

void kclient_attempt_cancel(struct kclient *c)
{
        c->resolving = resolve_cancel(c->resolving);
        kclient_forget_addrs(c);
        kclient_close_socket(c);
}

static void kclient_back_off(struct kclient *c)
{
        kclient_set_state(c, KC_BACKOFF);
        c->retry_due_ms = clock_mono_ms() + c->backoff_ms;
        c->backoff_ms = MIN(c->backoff_ms * 2, c->options.reconnect_backoff_max_ms);
        /* a fail-fast client's waiting requests are failed from the timer, never from inside
         * kclient_request() */
        kclient_schedule(c, c->fail_fast ? clock_mono_ms() : c->retry_due_ms);
}

void kclient_drop(struct kclient *c, struct list *finished)
{
        kclient_attempt_cancel(c);
        c->n_inflight = 0;
        list_for_each_safe (it, tmp, &c->sent) /* the broker may have acted on them: outcome unknown */
                kreq_finish(list_entry(it, struct kreq, node), -ECONNRESET, finished);
        while (!list_empty(&c->sending)) { /* back to the front, in order; no whole frame has left */
                struct kreq *q = list_entry(c->sending.prev, struct kreq, node);

                list_remove(&q->node);
                q->stage = KREQ_WAITING;
                q->written = 0;
                list_push_front(&c->waiting, &q->node);
        }
        if (c->state != KC_IDLE)
                kclient_set_state(c, KC_IDLE);
}

void kclient_lost(struct kclient *c, struct list *finished)
{
        /* A broker that closes a connection it has served and that nobody waits on is not in trouble. */
        bool quiet = c->healthy && list_empty(&c->sent);

        kclient_drop(c, finished);
        if (!quiet)
                kclient_back_off(c);
        kclient_kick(c);
}

static int kclient_finish_connect(struct kclient *c)
{
        socklen_t len = sizeof(int);
        int error = 0;

        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
                return -errno;
        if (error != 0)
                return -error;
        kclient_set_state(c, KC_CONNECTED);
        kclient_forget_addrs(c);
        c->last_error = 0;
        c->healthy = false;
        kclient_kick(c);
        return 0;
}

static int kclient_on_ready(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct list finished = LIST_INIT(finished);
        struct kclient *c = userdata;
        int r = 0;

        (void)l;
        (void)fd;
        if (c->state == KC_CONNECTING) {
                r = kclient_finish_connect(c);
                if (r < 0)
                        kclient_attempt_failed(c, r);
                return 0;
        }
        /* read first: what the broker said before it hung up still counts */
        if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
                r = kclient_on_readable(c, &finished);
        if (r == 0 && c->state == KC_CONNECTED && events & EPOLLOUT)
                kclient_send(c);
        if (c->broken || r < 0) {
                slog_debug("client-connection-lost", "connection lost", SL_STR("host", c->host),
                           SL_INT("port", c->port), SL_ERR(c->broken ? c->broken : r));
                kclient_lost(c, &finished);
        }
        kreq_answer_all(&finished);
        return 0;
}

static int kclient_open_socket(struct kclient *c)
{
        const struct addrinfo *ai = c->addr;
        int r;

        c->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (c->fd < 0)
                return -errno;
        (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1},
                         sizeof(int)); /* slower without, not wrong */
        (void)setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
        if (connect(c->fd, ai->ai_addr, ai->ai_addrlen) < 0 && errno != EINPROGRESS && errno != EINTR)
                return -errno;
        c->events = EPOLLOUT; /* a connection made at once is found by the first wake-up too */
        r = loop_add_fd(c->loop, c->fd, c->events, kclient_on_ready, c, &c->source);
        if (r < 0)
                return r;
        c->connect_due_ms = clock_mono_ms() + c->options.connect_timeout_ms;
        kclient_schedule(c, c->connect_due_ms);
        return 0;
}

/* Try addresses until one takes the attempt up, or all have failed. */
static void kclient_connect_next(struct kclient *c)
{
        for (; c->addr; c->addr = c->addr->ai_next) {
                int r = kclient_open_socket(c);

                if (r == 0)
                        return;
                c->last_error = r;
                kclient_close_socket(c);
        }
        kclient_forget_addrs(c);
        slog_debug("client-connect-failed", "cannot connect, backing off", SL_STR("host", c->host),
                   SL_INT("port", c->port), SL_ERR(c->last_error), SL_INT("backoff_ms", c->backoff_ms));
        kclient_back_off(c);
}

void kclient_attempt_failed(struct kclient *c, int error)
{
        assert(c->state == KC_CONNECTING);
        c->last_error = error;
        kclient_close_socket(c);
        c->addr = c->addr->ai_next;
        kclient_connect_next(c);
}

static void kclient_connect(struct kclient *c, struct addrinfo *found)
{
        kclient_set_state(c, KC_CONNECTING);
        c->addrs = c->addr = found;
        kclient_connect_next(c);
}

static void kclient_on_resolved(int r, struct addrinfo *found, void *userdata)
{
        struct kclient *c = userdata;

        c->resolving = resolve_cancel(c->resolving);
        if (r == 0) {
                kclient_connect(c, found);
                return;
        }
        c->last_error = r;
        kclient_back_off(c);
}

/* Names are looked up afresh at every attempt: a restarted pod comes back with another address. */
static void kclient_begin(struct kclient *c)
{
        struct addrinfo *found = NULL;
        int r;

        if (resolve_literal(c->host, c->port, &found) == 0) {
                kclient_connect(c, found);
                return;
        }
        kclient_set_state(c, KC_RESOLVING);
        r = resolve_start(c->loop, c->host, c->port, kclient_on_resolved, c, &c->resolving);
        if (r < 0) {
                c->last_error = r;
                kclient_back_off(c);
        }
}

void kclient_kick(struct kclient *c)
{
        if (c->state == KC_IDLE && !list_empty(&c->waiting) && !c->free_posted)
                kclient_begin(c);
        else if (c->state == KC_CONNECTED)
                kclient_send(c);
}
