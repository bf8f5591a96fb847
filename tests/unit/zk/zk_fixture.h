/* Shared by the tests of zk/: one real ZooKeeper a test program, a loop thread, blocking calls on top of the
 * asynchronous ones, and a client that takes a session over to kill it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <zookeeper/zookeeper.h>

#include "base/loop.h"
#include "zk/zk.h"

#define DEADLINE_MS 20000 /* of every wait: long enough for a loaded machine, short enough to end */

/* argv[1] of the test program: path of tests/support/zookeeper. */
void fixture_use_helper(const char *path);
int fixture_server_start(void **state); /* cmocka group set-up and tear-down */
int fixture_server_stop(void **state);
const char *fixture_address(void); /* host:port */
void fixture_server_signal(int sig);
int fixture_server_go_on(void **state); /* tear-down: a failed test may have left it stopped */

/* Poll @ready every few ms until it says so; fails the test at the deadline. */
void wait_until(bool (*ready)(void *userdata), void *userdata);

/* A session under test: a chroot of its own, events counted. */
struct client {
        struct zk *z;
        struct loop *loop;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int events[4]; /* by enum zk_event */
};
struct client *client_new(int64_t session_timeout_ms, int64_t op_timeout_ms);
struct client *client_new_at(const char *connect, int64_t session_timeout_ms, int64_t op_timeout_ms);
void client_free(struct client *c);
void client_wait_event(struct client *c, enum zk_event e, int count); /* until it came @count times */
void client_connected(struct client *c);

/* What a callback saw, copied. */
struct seen {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int calls, r;
        char data[4096];
        bool has_data;
        struct zk_stat stat;
        size_t n_children, n_ops;
        int op_results[64];
        struct zk_stat op_stats[64];
        int watch_calls;
        char watch_path[256];
};
struct seen *seen_new(void);
void seen_free(struct seen *s);
void on_seen(const struct zk_result *res, void *userdata);
void on_seen_watch(const char *path, void *userdata);
int seen_wait(struct seen *s);                   /* until called; r */
void seen_wait_calls(struct seen *s, int calls); /* until called that often */
void seen_wait_watch(struct seen *s, int calls);

/* Blocking helpers; each asserts that the call was accepted and returns the result's r. */
int do_create(struct client *c, const char *path, const char *data, bool ephemeral);
int do_set(struct client *c, const char *path, const char *data, int32_t version);
int do_get(struct client *c, const char *path, struct seen *ret);
int do_exists(struct client *c, const char *path, struct seen *ret);
int do_delete(struct client *c, const char *path, int32_t version);

/* Test-only: end the session of @z at the server by closing a second client with its id and password. The
 * password is the server's secret made from the id, so it is computed, not asked for. Whether the victim
 * hears at once depends on who held the session last; either way it expires. */
void zk_test_kill_session(const char *address, int64_t session_id);

/* A TCP proxy before the server, to lose what a network can lose. */
struct proxy;
struct proxy *proxy_new(void);
void proxy_free(struct proxy *p);
const char *proxy_address(const struct proxy *p);
void proxy_swallow_replies(struct proxy *p); /* requests still pass */
void proxy_refuse(struct proxy *p);          /* cut every connection and let none through */
void proxy_accept(struct proxy *p);          /* the end of that */
/* Cut every connection; the next one is told that its session has expired, though it lives on at the server
 * until its time is over (as in ZOOKEEPER-2985). Later ones pass again. */
void proxy_cut_and_feign_expiry(struct proxy *p);
