/* Input is cut at newlines, never held past its ceiling; output leaves as the socket takes it. */
#include "json_lines.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"

#define READ_BYTES 4096 /* taken in one wake-up: bounds its work */

struct json_conn {
        struct loop *loop;
        struct loop_fd *source;
        int fd;
        size_t max_in;
        struct buf in, out;
        const struct json_conn_ops *ops;
        void *userdata;
        bool finishing; /* no more input is taken */
        bool *gone;     /* set when freed inside a callback */
};

static void end(struct json_conn *c, int error)
{
        const struct json_conn_ops *ops = c->ops;

        c->source = loop_fd_remove(c->source);
        ops->on_end(c, error, c->userdata);
}

static int update_events(struct json_conn *c)
{
        uint32_t events = (c->finishing ? 0 : EPOLLIN) | (c->out.len > 0 ? EPOLLOUT : 0);

        return c->source ? loop_fd_set_events(c->source, events) : 0;
}

/* 0, or -errno of the socket; -EAGAIN is not an error here. */
static int flush(struct json_conn *c)
{
        while (c->out.len > 0) {
                ssize_t n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                buf_consume(&c->out, (size_t)n);
        }
        return 0;
}

/* Hand over one line. 1: go on, 0: the connection is gone, -errno: the line is bad. */
static int deliver(struct json_conn *c, const uint8_t *line, size_t len)
{
        json_t *o = json_loadb((const char *)line, len, JSON_REJECT_DUPLICATES, NULL);
        bool gone = false;

        if (!json_is_object(o)) {
                json_decref(o);
                return -EBADMSG;
        }
        c->gone = &gone;
        c->ops->on_message(c, o, c->userdata);
        json_decref(o);
        if (gone)
                return 0;
        c->gone = NULL;
        return 1;
}

/* As deliver(), for every whole line that is there. */
static int deliver_lines(struct json_conn *c)
{
        while (!c->finishing) {
                const uint8_t *eol = c->in.len > 0 ? memchr(c->in.data, '\n', c->in.len) : NULL;
                size_t len;
                int r;

                if (!eol)
                        return c->in.len >= c->max_in ? -EMSGSIZE : 1;
                len = (size_t)(eol - c->in.data);
                r = deliver(c, c->in.data, len);
                if (r <= 0)
                        return r;
                buf_consume(&c->in, len + 1);
        }
        return 1;
}

/* As deliver(). *ret_eof: the peer has ended its side. */
static int read_some(struct json_conn *c, bool *ret_eof)
{
        uint8_t chunk[READ_BYTES];
        size_t room = MIN(sizeof(chunk), c->max_in - c->in.len);
        ssize_t n = recv(c->fd, chunk, room, MSG_DONTWAIT);

        if (n < 0)
                return errno == EAGAIN || errno == EINTR ? 1 : -errno;
        *ret_eof = n == 0 && room > 0;
        if (n > 0 && buf_append(&c->in, chunk, (size_t)n) < 0)
                return -ENOMEM;
        return deliver_lines(c);
}

static int on_fd(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct json_conn *c = userdata;
        bool eof = false;
        int r = 1;

        (void)l;
        (void)fd;
        if (events & EPOLLOUT)
                r = MIN(flush(c), 0) < 0 ? -EPIPE : 1;
        if (r == 1 && !c->finishing && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                r = read_some(c, &eof);
        if (r == 0)
                return 0; /* freed by its owner */
        if (r == 1 && (eof || (c->finishing && (c->out.len == 0 || (events & EPOLLHUP)))))
                end(c, 0);
        else if (r < 0)
                end(c, r);
        else if (update_events(c) < 0)
                end(c, -EIO);
        return 0;
}

int json_conn_new(struct loop *loop, int fd, size_t max_in, size_t max_out, const struct json_conn_ops *ops,
                  void *userdata, struct json_conn **ret)
{
        struct json_conn *c = calloc(1, sizeof(*c));
        int r;

        if (!c) {
                (void)close(fd);
                return -ENOMEM;
        }
        c->loop = loop;
        c->fd = fd;
        c->max_in = max_in;
        c->ops = ops;
        c->userdata = userdata;
        buf_init(&c->in, max_in + READ_BYTES);
        buf_init(&c->out, max_out);
        r = loop_add_fd(loop, fd, EPOLLIN, on_fd, c, &c->source);
        if (r < 0) {
                (void)json_conn_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

struct json_conn *json_conn_free(struct json_conn *c)
{
        if (!c)
                return NULL;
        if (c->gone)
                *c->gone = true;
        (void)loop_fd_remove(c->source);
        (void)close(c->fd);
        buf_done(&c->in);
        buf_done(&c->out);
        free(c);
        return NULL;
}

int json_conn_send(struct json_conn *c, const json_t *o)
{
        cleanup_with(freep) char *text = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(12));
        int r;

        if (!text)
                return -ENOMEM;
        r = buf_append_str(&c->out, text);
        if (r == 0)
                r = buf_append(&c->out, "\n", 1);
        if (r == 0)
                r = flush(c);
        if (r == 0)
                r = update_events(c);
        return r == -EMSGSIZE ? -ENOBUFS : r;
}

void json_conn_finish(struct json_conn *c)
{
        c->finishing = true;
        (void)shutdown(c->fd,
                       SHUT_RD); /* makes the descriptor readable, so that on_end comes from the loop */
        if (c->source && loop_fd_set_events(c->source, EPOLLIN | EPOLLOUT) < 0)
                return; /* the peer's own end will be seen all the same */
}

int json_conn_fd(const struct json_conn *c)
{
        return c->fd;
}
