/* One connection: its states, its life, and one bounded unit of its work. */
#include <assert.h>
#include <stdio.h>

#include "base/slog.h"
#include "net/net_internal.h"

static const struct {
        const char *name;
        unsigned next; /* bits of the states that may follow */
} conn_states[N_CONN_STATES] = {
        [CONN_OPEN] = {"open", 1U << CONN_DRAINING | 1U << CONN_CLOSED},
        [CONN_DRAINING] = {"draining", 1U << CONN_CLOSED},
        [CONN_CLOSED] = {"closed", 0},
};

void conn_set_state(struct net_conn *c, enum conn_state to)
{
        assert(conn_states[c->state].next & 1U << to);
        slog_debug("net-connection-state", conn_states[to].name, SL_STR("peer", c->peer),
                   SL_STR("from", conn_states[c->state].name));
        c->state = to;
}

struct net_conn *conn_unref(struct net_conn *c)
{
        if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
                return NULL;
        assert(c->fd < 0 && list_empty(&c->requests));
        (void)pthread_mutex_destroy(&c->lock);
        (void)budget_unref(c->budget);
        free(c);
        return NULL;
}

/* Requests the loop has an answer for, or that wait for their turn, are freed here; the others are cut loose,
 * and whoever holds them finds `closed` set and frees them. Unlinking stands under the lock: once it is
 * released they may be gone. */
static void conn_drop_requests(struct net_conn *c)
{
        struct list answered = LIST_INIT(answered);

        pthread_mutex_lock(&c->lock);
        c->closed = true;
        list_for_each_safe (it, tmp, &c->requests) {
                struct net_request *r = list_entry(it, struct net_request, node);

                list_remove(&r->node);
                if (!r->collected && !r->waits && r->outcome == REQUEST_PENDING)
                        continue;
                list_remove(&r->done_node);
                list_push_back(&answered, &r->node);
        }
        pthread_mutex_unlock(&c->lock);

        list_for_each_safe (it, tmp, &answered) {
                struct net_request *r = list_entry(it, struct net_request, node);

                list_remove(&r->node);
                (void)request_free(r);
        }
}

void conn_close(struct net_conn *c, enum close_reason why)
{
        if (c->state == CONN_CLOSED)
                return;
        slog_debug("net-connection-closed", "connection closed", SL_STR("peer", c->peer),
                   SL_STR("reason", close_reason_name(why)));
        conn_set_state(c, CONN_CLOSED);
        atomic_store(&c->gone, true);
        net_metrics_closed(why);
        metric_add(&net_metrics[NET_CONNECTIONS], -1);
        (void)atomic_fetch_sub(&c->server->n_conns, 1);

        c->source = loop_fd_remove(c->source);
        closep(&c->fd);
        c->fd = -1;
        list_remove(&c->server_node);
        list_remove(&c->partial_node);
        list_remove(&c->ending_node);
        c->server = NULL;
        buf_done(&c->frame);
        buf_done(&c->stash);
        conn_uncharge(c);
        conn_drop_requests(c);
        (void)conn_unref(c);
}

/* The frame's clock runs only while we are willing to read: back-pressure is ours, not the peer's fault. */
static void conn_update_timers(struct net_conn *c)
{
        struct net_server *s = c->server;
        bool timed = conn_mid_frame(c) && conn_may_read(c) && c->stash.len == 0;

        if (!timed) {
                list_remove(&c->partial_node);
        } else if (!list_linked(&c->partial_node)) {
                c->frame_since_ms = c->frame_active_ms = loop_now_ms(c->loop);
                list_push_back(&s->partials, &c->partial_node);
        }
        if (c->active_ms == loop_now_ms(c->loop)) {
                list_remove(&c->server_node);
                list_push_back(&s->conns, &c->server_node);
        }
}

void conn_ending(struct net_conn *c)
{
        if (list_linked(&c->ending_node))
                return;
        c->ending_since_ms = loop_now_ms(c->loop);
        list_push_back(&c->server->ending, &c->ending_node);
}

/* Who is not read because of others' answers is woken when those have left. */
static void conn_update_paused(struct net_conn *c)
{
        if (c->state != CONN_OPEN || !conn_blocked(c))
                list_remove(&c->paused_node);
        else if (!list_linked(&c->paused_node))
                list_push_back(&c->server->paused, &c->paused_node);
}

static int conn_update_events(struct net_conn *c)
{
        bool sending = c->n_requests > 0 && list_entry(c->requests.next, struct net_request, node)->collected;
        uint32_t events = 0;

        if (conn_may_read(c) && c->stash.len == 0)
                events |= EPOLLIN;
        else if (c->state == CONN_OPEN && !list_linked(&c->ending_node))
                events |= EPOLLRDHUP; /* a peer that leaves must be noticed although nothing is read */
        if (sending)
                events |= EPOLLOUT;
        if (sending && !(c->events & EPOLLOUT))
                c->sent_ms = loop_now_ms(c->loop);
        if (events == c->events)
                return 0;
        if (loop_fd_set_events(c->source, events) < 0)
                return CONN_FAIL(CLOSE_ERROR);
        c->events = events;
        return 0;
}

void conn_post(struct net_conn *c)
{
        pthread_mutex_lock(&c->lock);
        if (!c->posted) {
                c->posted = true;
                loop_post_task(c->loop, &conn_ref(c)->task);
        }
        pthread_mutex_unlock(&c->lock);
}

static int conn_step(struct net_conn *c, bool readable, bool from_task)
{
        int r, failed;

        pthread_mutex_lock(&c->lock);
        c->in_pass = true;
        pthread_mutex_unlock(&c->lock);

        conn_collect(c, false, from_task);
        failed = conn_input(c, readable);
        do {
                conn_collect(c, true, false);
                if (c->state == CONN_CLOSED)
                        return 0;
                r = conn_flush(c); /* also when the input is at fault: earlier answers leave (best effort) */
                if (failed < 0 || r < 0)
                        return failed < 0 ? failed : r;
        } while (conn_hand_on_waiting(c));
        if (c->state == CONN_DRAINING && c->n_requests == 0)
                return CONN_FAIL(CLOSE_EOF);

        conn_update_timers(c);
        conn_charge_stash(c);
        conn_update_paused(c);
        if (c->stash.len > 0 && conn_may_read(c))
                conn_post(c); /* the socket may stay silent: come back for what is already here */
        return conn_update_events(c);
}

void conn_work(struct net_conn *c, bool readable, bool from_task)
{
        cleanup_with(conn_unrefp) struct net_conn *held = conn_ref(c);
        struct net_server *s;
        int r;

        if (c->state == CONN_CLOSED)
                return;
        r = conn_step(held, readable, from_task);
        s = c->server; /* NULL: closed meanwhile, and the server with it maybe */
        if (r < 0)
                conn_close(c, (enum close_reason)(-1 - r));
        if (s)
                server_relieve(s);
}

static int conn_on_ready(struct loop *l, int fd, uint32_t events, void *userdata)
{
        cleanup_with(conn_unrefp) struct net_conn *c = conn_ref(userdata);

        (void)l;
        (void)fd;
        if (events & EPOLLRDHUP && c->state == CONN_OPEN)
                conn_ending(c);
        conn_work(c, events & EPOLLIN, false);
        /* Hang-ups are reported whether asked for or not; with reading paused nothing else would consume
         * them. */
        if (c->state != CONN_CLOSED && events & (EPOLLERR | EPOLLHUP) && !(events & EPOLLIN))
                conn_close(c, CLOSE_ERROR);
        return 0;
}

static void conn_on_task(void *userdata)
{
        cleanup_with(conn_unrefp) struct net_conn *c = userdata; /* the reference the post took */

        conn_work(c, false, true);
}

struct net_conn *conn_new(struct net_server *s, int fd, const char *peer)
{
        struct net_conn *c = calloc(1, sizeof(*c));

        if (!c)
                return NULL;
        *c = (struct net_conn){
                .refs = 1,
                .loop = s->loop,
                .server = s,
                .fd = fd,
                .events = EPOLLIN,
                .active_ms = loop_now_ms(s->loop),
                .task = {.fn = conn_on_task, .userdata = c},
        };
        (void)snprintf(c->peer, sizeof(c->peer), "%s", peer);
        list_init(&c->requests);
        list_init(&c->done);
        list_init(&c->partial_node);
        list_init(&c->ending_node);
        list_init(&c->queue_node);
        list_init(&c->paused_node);
        buf_init(&c->stash, NET_SCRATCH_BYTES);
        if (pthread_mutex_init(&c->lock, NULL) != 0) {
                free(c);
                return NULL;
        }
        if (loop_add_fd(s->loop, fd, c->events, conn_on_ready, c, &c->source) < 0) {
                (void)pthread_mutex_destroy(&c->lock);
                free(c);
                return NULL;
        }
        c->budget = budget_ref(s->budget);
        list_push_back(&s->conns, &c->server_node);
        (void)atomic_fetch_add(&s->n_conns, 1);
        metric_add(&net_metrics[NET_CONNECTIONS], 1);
        return c;
}
