/* The daemon's control socket: a unix stream socket, one JSON object a line (docs/man/stepdown-sidecar.8).
 *
 * Only root and the daemon's own user are served (SO_PEERCRED). A client that vanishes or does not read costs
 * nothing but its own connection. On its loop's thread only. */
#pragma once

#include <jansson.h>

#include "base/loop.h"
#include "base/util.h"

struct control_server;
struct control_peer;

/* A request came. Answer with control_reply(). @request is borrowed. */
typedef void (*control_request_fn)(struct control_peer *p, const json_t *request, void *userdata);

/* Listen on @path; what an earlier process left there is removed. -EADDRINUSE: another one serves it; -errno.
 */
int control_server_new(struct loop *loop, const char *path, control_request_fn fn, void *userdata,
                       struct control_server **ret) must_check;
struct control_server *control_server_free(struct control_server *s); /* removes the socket */
DEFINE_FREEP(struct control_server, control_server_free)

void control_reply(struct control_peer *p, json_t *line); /* takes the reference over; NULL: out of memory */
void control_subscribe(struct control_peer *p);           /* gets what is published from now on */
void control_publish(struct control_server *s, const json_t *line);
