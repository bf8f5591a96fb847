/* net/server.c: the listener's limits and the coarse timer. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net_fixture.h"

static void a_slow_loris_is_closed_within_the_frame_timeout_while_others_are_served(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int64_t began_ms, took_ms;
        int loris, good;

        (void)state;
        fixture_init(&f);
        f.limits.frame_timeout_ms = 200;
        fixture_start(&f, "127.0.0.1");
        loris = client_connect(&f);
        good = client_connect(&f);
        began_ms = clock_mono_ms();
        client_send_prefix(loris, 1000);
        for (;;) { /* a byte now and then does not buy it time */
                struct pollfd p = {.fd = loris, .events = POLLIN};

                if (poll(&p, 1, 10) == 1)
                        break;
                (void)send(loris, "x", 1, MSG_NOSIGNAL);
                client_send_frame(good, "served");
                client_expect_frame(good, "served");
                assert_true(clock_mono_ms() - began_ms < DEADLINE_MS);
        }
        took_ms = clock_mono_ms() - began_ms;
        client_expect_closed(loris);
        assert_true(took_ms >= 190);
        assert_true(closed_because("slow-frame") >= 1);
        assert_int_equal(net_server_connections(f.server), 1);
        (void)close(loris);
        (void)close(good);
}

static void half_a_prefix_is_a_slow_frame_too(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.limits.frame_timeout_ms = 50;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send(fd, "\0\0", 2);
        client_expect_closed(fd);
        (void)close(fd);
}

static void an_idle_connection_is_closed_but_not_one_that_waits_for_its_answer(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int idle, waiting;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        f.limits.idle_timeout_ms = 100;
        fixture_start(&f, "127.0.0.1");
        waiting = client_connect(&f);
        client_send_frame(waiting, "long poll");
        fixture_wait_held(&f, 1);
        idle = client_connect(&f);
        client_expect_closed(idle);
        assert_int_equal(net_server_connections(f.server), 1);
        answer(fixture_take(&f, 0), "at last");
        client_expect_frame(waiting, "at last");
        client_expect_closed(waiting); /* and now it is idle */
        (void)close(idle);
        (void)close(waiting);
}

static void a_peer_that_never_takes_its_answers_is_closed(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int64_t before;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_BIG;
        f.big_bytes = 16 << 20;
        f.limits.idle_timeout_ms = 200;
        fixture_start(&f, "127.0.0.1");
        before = closed_because("stalled");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "2");
        fixture_wait_connections(&f, 1);
        fixture_wait_connections(&f, 0);
        assert_int_equal(closed_because("stalled"), before + 1);
        (void)close(fd);
}

static void connections_over_the_limit_are_closed_and_room_is_given_back(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int a, b, c;

        (void)state;
        fixture_init(&f);
        f.limits.max_connections = 2;
        fixture_start(&f, "127.0.0.1");
        a = client_connect(&f);
        b = client_connect(&f);
        fixture_wait_connections(&f, 2);
        c = client_connect(&f);
        client_expect_closed(c);
        (void)close(c);
        client_send_frame(a, "a");
        client_expect_frame(a, "a");

        (void)close(b);
        fixture_wait_connections(&f, 1);
        c = client_connect(&f);
        client_send_frame(c, "c");
        client_expect_frame(c, "c");
        (void)close(a);
        (void)close(c);
}

static void running_out_of_descriptors_delays_connections_and_loses_none(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        struct rlimit before, none_left;
        struct pollfd p = {.events = POLLIN};
        int fd, next;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "before");
        client_expect_frame(fd, "before");
        (void)close(fd);
        fixture_wait_connections(&f, 0);

        fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        next = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        assert_true(next >= 0);
        (void)close(next);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        none_left = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_left), 0);

        struct sockaddr_in sa = {.sin_family = AF_INET,
                                 .sin_port = htons(net_server_port(f.server)),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        client_send_frame(fd, "patience");
        p.fd = fd;
        assert_int_equal(poll(&p, 1, 250), 0); /* neither answered nor closed */
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);

        assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
        client_expect_frame(fd, "patience");
        (void)close(fd);
}

static void stop_accepting(void *userdata)
{
        net_server_stop_accepting(userdata);
}

static void after_stop_accepting_connections_live_on_and_new_ones_are_refused(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        int fd, other;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        fixture_wait_connections(&f, 1);
        assert_int_equal(loop_call(f.loop, stop_accepting, f.server), 0);

        sa.sin_port = htons(net_server_port(f.server));
        other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(other, (struct sockaddr *)&sa, sizeof(sa)), -1);
        assert_int_equal(errno, ECONNREFUSED);
        client_send_frame(fd, "still here");
        client_expect_frame(fd, "still here");
        (void)close(fd);
        (void)close(other);
}

static void it_serves_ipv6_and_names_the_peer(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
        struct net_request *r;
        int fd;

        (void)state;
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
                skip(); /* no IPv6 here */
        (void)close(fd);
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "::1");
        sa.sin6_port = htons(net_server_port(f.server));
        fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
        client_send_frame(fd, "six");
        fixture_wait_held(&f, 1);
        r = fixture_take(&f, 0);
        assert_memory_equal(r->peer, "[::1]:", 6);
        answer(r, "yes");
        client_expect_frame(fd, "yes");
        (void)close(fd);
}

static void a_port_in_use_is_refused_and_an_unknown_host_too(void **state)
{
        const struct net_ops ops = {.on_request = (void (*)(struct net_request *, void *))abort};
        cleanup_with(fixture_done) struct fixture f;
        struct net_server *second;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        assert_int_equal(net_server_new(f.loop, "127.0.0.1", net_server_port(f.server), NULL, &ops, &second),
                         -EADDRINUSE);
        assert_int_equal(net_server_new(f.loop, "300.1.1.1", 0, NULL, &ops, &second), -EADDRNOTAVAIL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_slow_loris_is_closed_within_the_frame_timeout_while_others_are_served),
                cmocka_unit_test(half_a_prefix_is_a_slow_frame_too),
                cmocka_unit_test(an_idle_connection_is_closed_but_not_one_that_waits_for_its_answer),
                cmocka_unit_test(a_peer_that_never_takes_its_answers_is_closed),
                cmocka_unit_test(connections_over_the_limit_are_closed_and_room_is_given_back),
                cmocka_unit_test(running_out_of_descriptors_delays_connections_and_loses_none),
                cmocka_unit_test(after_stop_accepting_connections_live_on_and_new_ones_are_refused),
                cmocka_unit_test(it_serves_ipv6_and_names_the_peer),
                cmocka_unit_test(a_port_in_use_is_refused_and_an_unknown_host_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
