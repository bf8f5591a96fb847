/* Bytes of an established connection: pipelined requests out, answers in, matched by order and correlation
 * id. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "client/kclient_internal.h"

#define READ_BYTES    (64 * 1024) /* a wake-up */
#define KEEP_IN_BYTES (1024 * 1024)
#define SEND_IOVS     16

static void kclient_admit(struct kclient *c)
{
        while (c->n_inflight < c->options.max_inflight && !list_empty(&c->waiting)) {
                struct kreq *q = list_entry(c->waiting.next, struct kreq, node);

                list_remove(&q->node);
                list_push_back(&c->sending, &q->node);
                q->stage = KREQ_SENDING;
                c->n_inflight++;
        }
}

static size_t kclient_gather(struct kclient *c, struct iovec iov[static SEND_IOVS])
{
        size_t n = 0;

        list_for_each (it, &c->sending) {
                struct kreq *q = list_entry(it, struct kreq, node);

                if (n == SEND_IOVS)
                        break;
                iov[n++] = (struct iovec){.iov_base = q->frame.data + q->written,
                                          .iov_len = q->frame.len - q->written};
        }
        return n;
}

static void kclient_wrote(struct kclient *c, size_t n)
{
        while (n > 0) {
                struct kreq *q = list_entry(c->sending.next, struct kreq, node);
                size_t took = MIN(n, q->frame.len - q->written);

                n -= took;
                q->written += took;
                if (q->written < q->frame.len)
                        return;
                buf_done(&q->frame);
                list_remove(&q->node);
                list_push_back(&c->sent, &q->node);
                q->stage = KREQ_SENT;
        }
}

/* A broken connection is noted, not handled: this runs inside kclient_request(), which must not call back. */
static void kclient_break(struct kclient *c, int error)
{
        c->broken = error;
        kclient_schedule(c, clock_mono_ms());
}

static void kclient_watch(struct kclient *c)
{
        uint32_t events = list_empty(&c->sending) ? EPOLLIN : EPOLLIN | EPOLLOUT;
        int r;

        if (events == c->events)
                return;
        r = loop_fd_set_events(c->source, events);
        if (r < 0)
                kclient_break(c, r);
        else
                c->events = events;
}

void kclient_send(struct kclient *c)
{
        struct iovec iov[SEND_IOVS];

        if (c->broken)
                return;
        kclient_admit(c);
        while (!list_empty(&c->sending)) {
                struct msghdr m = {.msg_iov = iov, .msg_iovlen = kclient_gather(c, iov)};
                ssize_t n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno != EAGAIN)
                        kclient_break(c, -errno);
                if (n < 0)
                        break;
                kclient_wrote(c, (size_t)n);
        }
        if (!c->broken)
                kclient_watch(c);
}

#define ARENA_MAX_BYTES ((size_t)256 * 1024 * 1024)

/* Memory for a decoded answer: an element of a few bytes may become a struct of a hundred, not of a million.
 * Large answers carry records, which are not copied. */
static size_t arena_limit(size_t frame_len)
{
        return MIN(32 * frame_len + 64 * 1024, ARENA_MAX_BYTES);
}

/* Decode for @q and call it back. -EBADMSG: the answer is malformed, and so is the connection. */
static int kreq_decode(struct kreq *q, const uint8_t *frame, size_t len)
{
        cleanup_with(arena_donep) struct arena arena = {0};
        int32_t correlation_id;
        void *response;
        int r = -ENOMEM;

        arena_init(&arena, arena_limit(len));
        response = arena_alloc(&arena, 1, wire_struct_size(q->api->response));
        if (response)
                r = wire_decode_response(q->api->response, q->version, frame, len, &arena, &correlation_id,
                                         response);
        kreq_answer(q, r, r == 0 ? response : NULL, &arena);
        return r == -ENOMEM ? 0 : r;
}

static int32_t read_be32(const uint8_t *p)
{
        return (int32_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]);
}

static int kclient_on_answer(struct kclient *c, const uint8_t *frame, size_t len, struct list *finished)
{
        struct kreq *q;

        if (list_empty(&c->sent))
                return -EBADMSG; /* nobody asked */
        q = list_entry(c->sent.next, struct kreq, node);
        c->n_inflight--;
        if (read_be32(frame) != q->correlation_id) {
                kreq_finish(q, -EBADMSG, finished);
                return -EBADMSG;
        }
        list_remove(&q->node);
        list_remove(&q->deadline_node);
        q->stage = KREQ_FINISHED;
        c->healthy = true;
        c->backoff_ms = c->options.reconnect_backoff_ms;
        if (q->raw_fn) {
                q->raw_fn(0, frame, len, q->userdata);
                q->raw_fn = NULL;
        }
        if (!q->fn) {
                kreq_answer(q, 0, NULL, NULL);
                return 0;
        }
        return kreq_decode(q, frame, len);
}

/* A length no answer can have: the request at the head will never get its own. */
static int kclient_refuse_length(struct kclient *c, struct list *finished)
{
        if (!list_empty(&c->sent))
                kreq_finish(list_entry(c->sent.next, struct kreq, node), -EBADMSG, finished);
        return -EBADMSG;
}

/* Take whole answers off @in; *ret_at: bytes taken. Stops when a callback dropped the connection. */
static int kclient_parse(struct kclient *c, const struct buf *in, size_t *ret_at, struct list *finished)
{
        uint64_t generation = c->generation;
        size_t at = 0;

        while (c->generation == generation && in->len - at >= 4) {
                int32_t len = read_be32(in->data + at);
                int r;

                if (len < 4 || (size_t)len > c->options.max_response_bytes)
                        return kclient_refuse_length(c, finished);
                if (in->len - at - 4 < (size_t)len)
                        break;
                r = kclient_on_answer(c, in->data + at + 4, (size_t)len, finished);
                if (r < 0)
                        return c->generation == generation ? r : 0;
                at += 4 + (size_t)len;
        }
        *ret_at = at;
        return 0;
}

static int kclient_process(struct kclient *c, struct list *finished)
{
        /* Callbacks may drop the connection, and with it its buffer, while they look at their answer. */
        cleanup_with(buf_donep) struct buf in = buf_take(&c->in);
        uint64_t generation = c->generation;
        size_t at = 0;
        int r;

        r = kclient_parse(c, &in, &at, finished);
        if (r < 0 || c->generation != generation)
                return r;
        buf_consume(&in, at);
        if (in.len > 0 || in.cap <= KEEP_IN_BYTES)
                c->in = buf_take(&in);
        kclient_send(c); /* answers made room in flight */
        return c->broken;
}

int kclient_on_readable(struct kclient *c, struct list *finished)
{
        ssize_t n;
        int r;

        r = buf_reserve(&c->in, READ_BYTES);
        if (r < 0)
                return r;
        n = recv(c->fd, c->in.data + c->in.len, READ_BYTES, MSG_DONTWAIT);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 0 : -errno;
        if (n == 0)
                return -ECONNRESET;
        c->in.len += (size_t)n;
        return kclient_process(c, finished);
}
