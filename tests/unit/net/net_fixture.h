/* A server on a loop of its own thread, a handler that answers at once or holds, and plain blocking clients.
 */
#pragma once

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "net/net.h"

#define DEADLINE_MS 10000
#define MAX_HELD    4096

enum handler {
        HANDLER_ECHO,
        HANDLER_HOLD,
        HANDLER_BIG,
        HANDLER_IN_TURN, /* "w…" waits its turn, the rest is held */
        HANDLER_TAKE,    /* takes the frame, and holds */
};

struct fixture {
        struct loop *loop;
        struct net_server *server;
        struct net_limits limits;
        _Atomic int handler;
        size_t big_bytes; /* HANDLER_BIG answers with so many */
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct net_request *held[MAX_HELD];
        int n_held;            /* ever; answered ones are NULL */
        _Atomic int n_waiting; /* HANDLER_IN_TURN: how often a request was told to wait */
};

void fixture_init(
        struct fixture *f); /* default limits, HANDLER_ECHO; change what the test needs, then start */
void fixture_start(struct fixture *f, const char *host);
void fixture_stop_server(struct fixture *f); /* net_server_free() on the loop */
void fixture_stop_loop(struct fixture *f);
void fixture_done(struct fixture *f);
void fixture_wait_held(struct fixture *f, int n);
void fixture_wait_waiting(struct fixture *f, int n);
int fixture_held(struct fixture *f);
void fixture_wait_connections(struct fixture *f, int n);
struct net_request *fixture_take(struct fixture *f, int i);
void answer(struct net_request *r, const char *body); /* with a frame that holds @body */

int client_connect(const struct fixture *f);
void client_send(int fd, const void *p, size_t n);
void client_send_frame(int fd, const char *body);
void client_send_prefix(int fd, int32_t length);
void client_expect_frame(int fd, const char *body);
void client_expect_closed(int fd); /* end of stream or reset, within the deadline */
void client_reset(int fd);         /* close with RST */
int64_t closed_because(const char *reason);
