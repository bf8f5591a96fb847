/* Answers: taken from any thread, put back in the order of the requests, and written in batches. */
#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "net/net_internal.h"

#define FLUSH_IOVS   64
#define FLUSH_ROUNDS 16 /* a peer that reads as fast as we write must not hold the loop */

static void request_drop_frame(struct net_request *r)
{
        budget_charge_request(r->conn->budget, 0, r->charged);
        r->charged = 0;
        buf_done(&r->frame);
}

struct net_request *request_free(struct net_request *r)
{
        struct net_conn *c = r->conn;

        request_drop_frame(r);
        budget_charge_response(c->budget, 0, r->response.cap);
        (void)atomic_fetch_sub(&c->unsent_bytes, r->response.cap);
        buf_done(&r->response);
        free(r);
        (void)conn_unref(c);
        return NULL;
}

/* [any thread] The one way a request ends for its handler. The lock decides between the living connection,
 * whose loop collects the answer, and a closed one, whose loop may be gone already and must not be touched.
 */
static void request_settle(struct net_request *r, enum request_outcome outcome, struct buf *response)
{
        struct net_conn *c = r->conn;
        bool closed;

        request_drop_frame(r); /* the answer may wait long for its turn; the question need not */
        if (response)
                r->response = buf_take(response);
        budget_charge_response(c->budget, r->response.cap, 0);
        (void)atomic_fetch_add(&c->unsent_bytes, r->response.cap);

        pthread_mutex_lock(&c->lock);
        closed = c->closed;
        if (!closed) {
                r->outcome = outcome;
                list_push_back(&c->done, &r->done_node);
                if (!c->posted && !c->in_pass) {
                        c->posted = true;
                        loop_post_task(c->loop, &conn_ref(c)->task);
                }
        }
        pthread_mutex_unlock(&c->lock);

        if (closed)
                (void)request_free(r);
}

/* Take over what was answered since the last time. At the end of a pass this is also where answers given
 * inside on_request() arrive: without a task of their own, so that one write carries them all. */
void conn_collect(struct net_conn *c, bool end_of_pass, bool from_task)
{
        struct list done = LIST_INIT(done);

        pthread_mutex_lock(&c->lock);
        list_splice_back(&done, &c->done);
        if (end_of_pass)
                c->in_pass = false;
        if (from_task)
                c->posted = false;
        pthread_mutex_unlock(&c->lock);

        list_for_each_safe (it, tmp, &done) {
                struct net_request *r = list_entry(it, struct net_request, done_node);

                list_remove(&r->done_node);
                r->collected = true;
                if (r->outcome != REQUEST_ABORTED || c->state != CONN_OPEN)
                        continue;
                conn_set_state(c, CONN_DRAINING);
                conn_ending(c);
        }
}

static void conn_retire(struct net_conn *c, struct net_request *r)
{
        list_remove(&r->node);
        c->n_requests--;
        c->head_sent = 0;
        (void)request_free(r);
}

static struct net_request *conn_head(struct net_conn *c)
{
        struct net_request *r;

        if (list_empty(&c->requests))
                return NULL;
        r = list_entry(c->requests.next, struct net_request, node);
        return r->collected ? r : NULL;
}

/* Drop answers without bytes at the head of the queue; an aborted one ends the connection there. */
static int conn_skip_silent(struct net_conn *c)
{
        struct net_request *r;

        while ((r = conn_head(c)) && r->response.len == 0) {
                if (r->outcome == REQUEST_ABORTED)
                        return CONN_FAIL(CLOSE_ABORTED);
                conn_retire(c, r);
        }
        return 0;
}

static int conn_gather(struct net_conn *c, struct iovec iov[static FLUSH_IOVS])
{
        size_t skip = c->head_sent;
        int n = 0;

        list_for_each (it, &c->requests) {
                struct net_request *r = list_entry(it, struct net_request, node);

                if (!r->collected || r->outcome == REQUEST_ABORTED || n == FLUSH_IOVS)
                        break;
                if (r->response.len == 0)
                        continue;
                iov[n++] = (struct iovec){.iov_base = r->response.data + skip,
                                          .iov_len = r->response.len - skip};
                skip = 0;
        }
        return n;
}

static void conn_sent(struct net_conn *c, size_t n)
{
        metric_add(&net_metrics[NET_BYTES_OUT], (int64_t)n);
        while (n > 0) {
                struct net_request *r = conn_head(c);
                size_t left;

                assert(r);
                left = r->response.len - c->head_sent;
                if (n < left) {
                        c->head_sent += n;
                        return;
                }
                n -= left;
                conn_retire(c, r);
        }
}

int conn_flush(struct net_conn *c)
{
        struct iovec iov[FLUSH_IOVS];

        for (int round = 0; round < FLUSH_ROUNDS; round++) {
                struct msghdr m = {.msg_iov = iov};
                ssize_t n;
                int r;

                r = conn_skip_silent(c);
                if (r < 0)
                        return r;
                m.msg_iovlen = (size_t)conn_gather(c, iov);
                if (m.msg_iovlen == 0)
                        return 0;
                n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : CONN_FAIL(CLOSE_ERROR);
                conn_sent(c, (size_t)n);
                c->active_ms = loop_now_ms(c->loop);
        }
        return 0;
}

struct buf net_request_take_frame(struct net_request *r)
{
        budget_charge_request(r->conn->budget, 0, r->charged);
        r->charged = 0;
        return buf_take(&r->frame);
}

void net_request_charge(struct net_request *r, size_t bytes)
{
        budget_charge_request(r->conn->budget, bytes, 0);
        r->charged += bytes;
}

bool net_request_abandoned(const struct net_request *r)
{
        return atomic_load(&r->conn->gone);
}

bool net_request_is_next(const struct net_request *r)
{
        return r->conn->requests.next == &r->node;
}

void net_request_wait_turn(struct net_request *r)
{
        r->waits = true;
}

bool conn_hand_on_waiting(struct net_conn *c)
{
        struct net_server *s = c->server;
        struct net_request *r;

        if (list_empty(&c->requests))
                return false;
        r = list_entry(c->requests.next, struct net_request, node);
        if (!r->waits)
                return false;
        r->waits = false;
        pthread_mutex_lock(&c->lock);
        c->in_pass = true;
        pthread_mutex_unlock(&c->lock);
        s->ops.on_request(r, s->ops.userdata);
        return true;
}

void net_request_reply(struct net_request *r, struct buf *response)
{
        request_settle(r, REQUEST_ANSWERED, response);
}

void net_request_done(struct net_request *r)
{
        request_settle(r, REQUEST_SILENT, NULL);
}

void net_request_abort(struct net_request *r)
{
        request_settle(r, REQUEST_ABORTED, NULL);
}
