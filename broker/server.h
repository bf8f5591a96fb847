/* The broker as a whole: puts the modules together, starts them in order, and takes them down in order.
 *
 * Everything here runs on the control loop, which is the main thread's. */
#pragma once

#include "base/loop.h"
#include "config.h"

struct server;

/* @c is borrowed. Begins to start: while the loop runs, the logs are opened and recovered (which may take
 * long after a crash), the listeners opened, and the broker registered. What goes wrong ends the loop:
 * server_result(). */
int server_new(struct loop *control_loop, const struct broker_config *c, struct server **ret) must_check;
/* Begin the stop (R31): hand over leadership, then end; the loop is stopped when all is done. A second call
 * ends the hand-over at once. While logs are still being loaded the process ends here. @why: for the log. */
void server_stop(struct server *s, const char *why);
/* 0: stopped as asked; else -errno of what ended it, already logged. -EOWNERDEAD: the ZooKeeper session was
 * lost and is not to be, or could not be, replaced (F1). */
int server_result(const struct server *s);
struct server *server_free(struct server *s);
DEFINE_FREEP(struct server, server_free)
