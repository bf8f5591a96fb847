/* net/: every allocation fails once; the worst that may happen is a connection closed. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/support/alloc_torture.h"
#include "net/net.h"

#define BIG_BYTES (200 * 1024)

static void echo(struct net_request *r, void *userdata)
{
        cleanup_with(buf_donep) struct buf out = {0};
        uint32_t prefix = htonl((uint32_t)r->frame.len);

        (void)userdata;
        if (buf_append(&out, &prefix, sizeof(prefix)) < 0 ||
            buf_append(&out, r->frame.data, r->frame.len) < 0)
                net_request_abort(r);
        else
                net_request_reply(r, &out);
}

static void arm_task(void *n)
{
        torture_arm((int)(intptr_t)n);
}

static void disarm_task(void *hit)
{
        *(bool *)hit = torture_disarm();
}

static void free_server_task(void *s)
{
        (void)net_server_free(s);
}

/* Whether the frame came back; otherwise the connection must be over. */
static bool round_trip(int fd, const uint8_t *frame, size_t n)
{
        cleanup_with(freep) uint8_t *back = malloc(n);
        ssize_t got;

        assert_non_null(back);
        if (send(fd, frame, n, MSG_NOSIGNAL) != (ssize_t)n)
                return false;
        got = recv(fd, back, n, MSG_WAITALL);
        if (got != (ssize_t)n) {
                assert_true(got >= 0 || errno == ECONNRESET);
                return false;
        }
        assert_memory_equal(back, frame, n);
        return true;
}

static bool visit(const struct net_server *s, const uint8_t *big)
{
        const uint8_t small[] = {0, 0, 0, 2, 'h', 'i'};
        struct sockaddr_in sa = {.sin_family = AF_INET,
                                 .sin_port = htons(net_server_port(s)),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        const struct timeval timeout = {.tv_sec = 10};
        cleanup_with(closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)), 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        return round_trip(fd, small, sizeof(small)) && round_trip(fd, big, 4 + BIG_BYTES) &&
               round_trip(fd, small, sizeof(small));
}

static void starting_a_server_survives_every_allocation_failing(void **state)
{
        const struct net_ops ops = {.on_request = echo};
        bool hit = true;

        (void)state;
        for (int n = 1; hit; n++) {
                cleanup_with(loop_freep) struct loop *l = NULL;
                struct net_server *s = NULL;
                int r;

                assert_int_equal(loop_new("torture", &l), 0);
                torture_arm(n);
                r = net_server_new(l, "127.0.0.1", 0, NULL, &ops, &s);
                hit = torture_disarm();
                assert_true(r == 0 || hit);
                s = net_server_free(s);
        }
}

static void serving_survives_every_allocation_failing(void **state)
{
        const struct net_ops ops = {.on_request = echo};
        cleanup_with(freep) uint8_t *big = calloc(1, 4 + BIG_BYTES);
        const uint32_t prefix = htonl(BIG_BYTES);
        bool hit = true, served;

        (void)state;
        assert_non_null(big);
        memcpy(big, &prefix, 4);
        for (int n = 1; hit; n++) {
                cleanup_with(loop_freep) struct loop *l = NULL;
                struct net_server *s;

                assert_int_equal(loop_new("torture", &l), 0);
                assert_int_equal(net_server_new(l, "127.0.0.1", 0, NULL, &ops, &s), 0);
                assert_int_equal(loop_thread_start(l), 0);
                assert_int_equal(loop_call(l, arm_task, (void *)(intptr_t)n), 0);
                served = visit(s, big);
                assert_int_equal(loop_call(l, disarm_task, &hit), 0);
                assert_true(served || hit);
                assert_true(visit(s, big)); /* and goes on serving */
                assert_int_equal(loop_call(l, free_server_task, s), 0);
                loop_stop(l);
                loop_thread_join(l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(starting_a_server_survives_every_allocation_failing),
                cmocka_unit_test(serving_survives_every_allocation_failing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
