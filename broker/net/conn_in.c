/* Input of a connection: prefix, body, request. Bytes are read into the server's one scratch buffer, so an
 * idle connection holds no memory; only a frame that is not complete yet gets a buffer, and that grows with
 * what has arrived. Large bodies are read straight into it. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/slog.h"
#include "net/net_internal.h"

static _Atomic uint64_t next_request_id = 1;

bool conn_may_read(const struct net_conn *c)
{
        return c->state == CONN_OPEN && c->n_requests < c->server->limits.max_inflight &&
               atomic_load(&c->unsent_bytes) < c->server->limits.max_unsent_bytes &&
               !list_linked(&c->queue_node) && !conn_blocked(c);
}

static uint32_t read_be32(const uint8_t p[static 4])
{
        return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int conn_refuse_length(struct net_conn *c, int32_t length)
{
        int64_t suppressed;

        if (slog_gate_pass(&c->server->gate_length, loop_now_ms(c->loop), &suppressed))
                slog_warning("net-frame-refused", "frame length refused, closing the connection",
                             SL_STR("peer", c->peer), SL_INT("length", length),
                             SL_INT("max_bytes", c->server->limits.max_frame_bytes),
                             SL_INT("suppressed", suppressed));
        return CONN_FAIL(CLOSE_BAD_LENGTH);
}

/* The handler may answer at once, and even free the server. */
static int conn_deliver(struct net_conn *c)
{
        struct net_server *s = c->server;
        struct net_request *r;

        r = calloc(1, sizeof(*r));
        if (!r)
                return CONN_FAIL(CLOSE_NO_MEMORY);
        r->frame = buf_take(&c->frame);
        r->charged = c->frame_charged;
        c->frame_charged = 0;
        c->prefix_len = c->frame_len = 0;
        list_remove(&c->partial_node);
        r->conn = conn_ref(c);
        r->peer = c->peer;
        r->received_us = clock_mono_us();
        r->id = atomic_fetch_add_explicit(&next_request_id, 1, memory_order_relaxed);
        list_init(&r->done_node);
        list_push_back(&c->requests, &r->node);
        c->n_requests++;
        c->frames_left--;
        metric_add(&net_metrics[NET_REQUESTS], 1);
        metric_add(&net_metrics[NET_BYTES_IN], (int64_t)(r->frame.len + sizeof(c->prefix)));
        s->ops.on_request(r, s->ops.userdata);
        return 0;
}

static ssize_t feed_prefix(struct net_conn *c, const uint8_t *data, size_t len)
{
        size_t n = MIN(len, sizeof(c->prefix) - c->prefix_len);
        int32_t length;

        memcpy(c->prefix + c->prefix_len, data, n);
        c->prefix_len += n;
        if (c->prefix_len < sizeof(c->prefix))
                return (ssize_t)n;

        length = (int32_t)read_be32(c->prefix);
        if (length <= 0 || (size_t)length > c->server->limits.max_frame_bytes)
                return conn_refuse_length(c, length);
        c->frame_len = (size_t)length;
        buf_init(&c->frame, c->frame_len);
        conn_admit(c);
        return (ssize_t)n;
}

static ssize_t feed_body(struct net_conn *c, const uint8_t *data, size_t len)
{
        size_t n = MIN(len, c->frame_len - c->frame.len);
        int r;

        if (buf_append(&c->frame, data, n) < 0)
                return CONN_FAIL(CLOSE_NO_MEMORY);
        if (c->frame.len == c->frame_len) {
                r = conn_deliver(c);
                if (r < 0)
                        return r;
        }
        return (ssize_t)n;
}

/* Returns how many bytes of @data were taken: all, unless back-pressure or the bound of this pass intervened.
 */
static ssize_t conn_feed(struct net_conn *c, const uint8_t *data, size_t len)
{
        size_t at = 0;

        while (at < len && conn_may_read(c) && c->frames_left > 0) {
                ssize_t n = c->frame_len == 0 ? feed_prefix(c, data + at, len - at)
                                              : feed_body(c, data + at, len - at);
                if (n < 0)
                        return n;
                at += (size_t)n;
        }
        return (ssize_t)at;
}

/* Feed and keep the rest for the next pass. Handlers may close the connection, and free the memory behind
 * @data with it: nothing is touched after that. */
static int conn_feed_or_stash(struct net_conn *c, const uint8_t *data, size_t len)
{
        ssize_t n = conn_feed(c, data, len);

        if (n < 0)
                return (int)n;
        if (c->state == CONN_OPEN && buf_append(&c->stash, data + n, len - (size_t)n) < 0)
                return CONN_FAIL(CLOSE_NO_MEMORY);
        return 0;
}

static int conn_feed_stash(struct net_conn *c)
{
        cleanup_with(buf_donep) struct buf stash = buf_take(&c->stash);

        return conn_feed_or_stash(c, stash.data, stash.len);
}

/* The peer has sent its last byte; what it is still owed leaves before we close. */
static int conn_eof(struct net_conn *c)
{
        if (conn_mid_frame(c)) {
                slog_debug("net-frame-truncated", "peer closed in the middle of a frame",
                           SL_STR("peer", c->peer));
                return CONN_FAIL(CLOSE_TRUNCATED);
        }
        if (c->n_requests == 0)
                return CONN_FAIL(CLOSE_EOF);
        conn_set_state(c, CONN_DRAINING);
        conn_ending(c);
        return 0;
}

/* Where the next bytes go: the rest of a frame begun (room grows with what arrived), then the scratch buffer.
 */
static int conn_prepare_read(struct net_conn *c, struct iovec iov[static 2])
{
        size_t left = c->frame_len - c->frame.len, direct = 0, scratch = NET_SCRATCH_BYTES;
        int n = 0;

        if (c->frame_len > 0) {
                direct = MIN(left, (size_t)NET_SCRATCH_BYTES);
                if (buf_reserve(&c->frame, direct) < 0)
                        return CONN_FAIL(CLOSE_NO_MEMORY);
                iov[n++] = (struct iovec){.iov_base = c->frame.data + c->frame.len, .iov_len = direct};
        }
        if (budget_short_of_requests(c->budget))
                scratch = NET_SHORT_READ_BYTES; /* what cannot be handed on has to be put aside */
        if (direct == left && (direct < scratch || direct == 0))
                iov[n++] = (struct iovec){.iov_base = c->server->scratch, .iov_len = scratch - direct};
        return n;
}

static int conn_receive(struct net_conn *c)
{
        struct iovec iov[2];
        size_t direct;
        ssize_t n;
        int r;

        r = conn_prepare_read(c, iov);
        if (r < 0)
                return r;
        n = readv(c->fd, iov, r);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : CONN_FAIL(CLOSE_ERROR);
        if (n == 0)
                return conn_eof(c);

        c->active_ms = c->frame_active_ms = loop_now_ms(c->loop);
        direct = c->frame_len > 0 ? MIN((size_t)n, iov[0].iov_len) : 0;
        if (direct > 0) {
                c->frame.len += direct;
                if (c->frame.len == c->frame_len) {
                        r = conn_deliver(c);
                        if (r < 0 || c->state == CONN_CLOSED)
                                return r;
                }
        }
        return conn_feed_or_stash(c, c->server->scratch, (size_t)n - direct);
}

int conn_input(struct net_conn *c, bool readable)
{
        int r;

        c->frames_left = NET_FRAMES_PER_PASS;
        if (c->stash.len > 0) {
                r = conn_feed_stash(c);
                if (r < 0)
                        return r;
        }
        if (c->state != CONN_OPEN || !readable || c->stash.len > 0 || !conn_may_read(c))
                return 0;
        return conn_receive(c);
}
