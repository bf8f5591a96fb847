/* A stream socket that carries one JSON object a line, in both directions: the control socket's framing, for
 * the daemon and for its clients. On its loop's thread only. */
#pragma once

#include <jansson.h>

#include "base/loop.h"
#include "base/util.h"

struct json_conn;

struct json_conn_ops {
        /* One line. @o is borrowed. */
        void (*on_message)(struct json_conn *c, json_t *o, void *userdata);
        /* The stream has ended: @error 0 for an orderly end, -EMSGSIZE for a line past the ceiling, -EBADMSG
         * for one that is no JSON object, -errno. Called once; nothing is called after it. */
        void (*on_end)(struct json_conn *c, int error, void *userdata);
};

/* Takes over @fd (a connected, non-blocking stream socket) in every case. @max_in: bytes of a line; @max_out:
 * bytes not yet taken by the peer. @ops must outlive the connection. -ENOMEM, -errno. */
int json_conn_new(struct loop *loop, int fd, size_t max_in, size_t max_out, const struct json_conn_ops *ops,
                  void *userdata, struct json_conn **ret) must_check;
struct json_conn *json_conn_free(struct json_conn *c); /* also inside the callbacks */
DEFINE_FREEP(struct json_conn, json_conn_free)

/* Send @o (borrowed). -ENOBUFS: the peer does not read; -ENOMEM; -errno. The connection is of no use then. */
int json_conn_send(struct json_conn *c, const json_t *o) must_check;
/* Stop reading; on_end comes once what was sent has left. */
void json_conn_finish(struct json_conn *c);
int json_conn_fd(const struct json_conn *c);
