/* What all connections of a server together may hold in memory, and what happens when that is little.
 *
 *   requests   A frame of more than NET_SMALL_FRAME_BYTES is read only once its whole length has been set
 *              aside, so that what has begun can also end: were memory given out byte by byte, any number of
 *              half-sent frames could fill it and none could be completed. Those that wait are served by
 *              length, the shortest first. Small frames are counted and never wait, one a connection: what
 *              keeps a cluster alive is small. While others wait, a peer that sends nothing of its frame is
 * cut off. responses  Past half of the limit a connection that has not taken its answers is not read, past
 * the limit none is; a peer that takes nothing meanwhile is cut off. Handlers with large answers ask
 *              net_response_room() first.
 *
 * Connections are back-pressured, not closed; only who stands still and so holds up others is. */
#include "base/slog.h"
#include "net/net_internal.h"

struct net_budget *budget_new(const struct net_limits *limits)
{
        struct net_budget *b = calloc(1, sizeof(*b));

        if (!b)
                return NULL;
        atomic_init(&b->refs, 1);
        /* A frame that is allowed must fit, also beside many small ones. */
        b->max_requests = MAX(limits->max_queued_request_bytes, 2 * limits->max_frame_bytes);
        b->max_responses = MAX(limits->max_queued_response_bytes, (size_t)1);
        return b;
}

struct net_budget *budget_ref(struct net_budget *b)
{
        (void)atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
        return b;
}

struct net_budget *budget_unref(struct net_budget *b)
{
        if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
                free(b);
        return NULL;
}

static void charge(_Atomic size_t *total, enum net_metric which, size_t more, size_t less)
{
        if (more == less)
                return;
        (void)atomic_fetch_add(total, more - less); /* unsigned: wraps to a subtraction */
        metric_add(&net_metrics[which], (int64_t)more - (int64_t)less);
}

void budget_charge_request(struct net_budget *b, size_t more, size_t less)
{
        charge(&b->requests, NET_QUEUED_REQUEST_BYTES, more, less);
}

void budget_charge_response(struct net_budget *b, size_t more, size_t less)
{
        charge(&b->responses, NET_UNSENT_RESPONSE_BYTES, more, less);
}

size_t net_response_room(const struct net_request *r)
{
        const struct net_budget *b = r->conn->budget;
        size_t used = atomic_load(&b->responses), soft = b->max_responses / 2;

        return used < soft ? soft - used : 0;
}

static bool frame_fits(const struct net_budget *b, size_t len)
{
        size_t used = atomic_load(&b->requests);

        return used < b->max_requests && len <= b->max_requests - used;
}

bool budget_short_of_requests(const struct net_budget *b)
{
        return atomic_load(&b->requests) > b->max_requests / 2;
}

/* The shortest first; from the back, so that a crowd of equals is joined at once. */
static void queue_insert(struct net_server *s, struct net_conn *c)
{
        struct list *at = s->queued.prev;

        while (at != &s->queued && list_entry(at, struct net_conn, queue_node)->frame_len > c->frame_len)
                at = at->prev;
        list_insert_after_(at, &c->queue_node);
}

void conn_admit(struct net_conn *c)
{
        struct net_server *s = c->server;

        if (c->frame_len > NET_SMALL_FRAME_BYTES && !frame_fits(c->budget, c->frame_len)) {
                queue_insert(s, c);
                metric_add(&net_metrics[NET_FRAMES_QUEUED], 1);
                return;
        }
        c->frame_charged = c->frame_len;
        budget_charge_request(c->budget, c->frame_charged, 0);
}

void conn_charge_stash(struct net_conn *c)
{
        budget_charge_request(c->budget, c->stash.cap, c->stash_charged);
        c->stash_charged = c->stash.cap;
}

void conn_uncharge(struct net_conn *c)
{
        budget_charge_request(c->budget, 0, c->frame_charged + c->stash_charged);
        c->frame_charged = c->stash_charged = 0;
        list_remove(&c->queue_node);
        list_remove(&c->paused_node);
}

bool conn_blocked(const struct net_conn *c)
{
        size_t used = atomic_load(&c->budget->responses), max = c->budget->max_responses;

        if (used >= max || (used >= max / 2 && atomic_load(&c->unsent_bytes) > 0))
                return true;
        /* Small frames do not wait, so whoever has a request with a handler must. */
        return c->n_requests > 0 && atomic_load(&c->budget->requests) >= c->budget->max_requests;
}

void server_relieve(struct net_server *s)
{
        const struct net_budget *b = s->budget;

        while (!list_empty(&s->queued)) {
                struct net_conn *c = list_entry(s->queued.next, struct net_conn, queue_node);

                if (!frame_fits(b, c->frame_len))
                        break;
                list_remove(&c->queue_node);
                conn_admit(c);
                conn_post(c);
        }
        /* Well below the line, so that a crowd is not woken for every answer that leaves. */
        if (atomic_load(&b->responses) >= b->max_responses / 2 - b->max_responses / 8 ||
            atomic_load(&b->requests) >= b->max_requests - b->max_requests / 8)
                return;
        while (!list_empty(&s->paused)) {
                struct net_conn *c = list_entry(s->paused.next, struct net_conn, paused_node);

                list_remove(&c->paused_node);
                conn_post(c);
        }
}

static void cut_off(struct net_conn *c, enum close_reason why, const char *what)
{
        struct net_server *s = c->server;
        int64_t suppressed;

        if (slog_gate_pass(&s->gate_pressure, loop_now_ms(s->loop), &suppressed))
                slog_warning("net-memory-short", what, SL_STR("peer", c->peer),
                             SL_INT("frame_bytes", c->frame_len), SL_INT("received_bytes", c->frame.len),
                             SL_INT("unsent_bytes", atomic_load(&c->unsent_bytes)),
                             SL_INT("request_bytes", atomic_load(&s->budget->requests)),
                             SL_INT("response_bytes", atomic_load(&s->budget->responses)),
                             SL_INT("suppressed", suppressed));
        conn_close(c, why);
}

void server_press(struct net_server *s, int64_t now_ms)
{
        if (!list_empty(&s->queued)) {
                list_for_each_safe (it, tmp, &s->partials) {
                        struct net_conn *c = list_entry(it, struct net_conn, partial_node);

                        if (now_ms - c->frame_active_ms >= s->limits.stall_timeout_ms)
                                cut_off(c, CLOSE_SLOW_FRAME,
                                        "request memory is short and a peer stands still inside a frame; "
                                        "closing its connection");
                }
        }
        if (atomic_load(&s->budget->responses) >= s->budget->max_responses / 2) {
                list_for_each_safe (it, tmp, &s->conns) {
                        struct net_conn *c = list_entry(it, struct net_conn, server_node);

                        if (c->events & EPOLLOUT && now_ms - c->sent_ms >= s->limits.stall_timeout_ms)
                                cut_off(c, CLOSE_STALLED,
                                        "response memory is short and a peer takes none of its answers; "
                                        "closing its connection");
                }
        }
        server_relieve(s);
}
