/* net/budget.c: what all connections together hold, and who goes on when that is little. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_fixture.h"

#include "base/clock.h"
#include "net/net_internal.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static void setup(struct fixture *f, enum handler handler)
{
        fixture_init(f);
        f->handler = (int)handler;
        f->limits.max_frame_bytes = MIB;
        f->limits.max_queued_request_bytes = 4 * MIB;
        f->limits.max_queued_response_bytes = 16 * MIB;
        f->limits.frame_timeout_ms = f->limits.idle_timeout_ms = f->limits.stall_timeout_ms = 60000;
}

static size_t request_bytes(void)
{
        return (size_t)atomic_load(&net_metrics[NET_QUEUED_REQUEST_BYTES].value);
}

static size_t response_bytes(void)
{
        return (size_t)atomic_load(&net_metrics[NET_UNSENT_RESPONSE_BYTES].value);
}

static void wait_until(size_t (*what)(void), size_t at_most)
{
        int64_t until_ms = clock_mono_ms() + DEADLINE_MS;

        while (what() > at_most) {
                assert_true(clock_mono_ms() < until_ms);
                (void)poll(NULL, 0, 1);
        }
}

static int64_t frames_queued(void)
{
        return atomic_load(&net_metrics[NET_FRAMES_QUEUED].value);
}

static void wait_queued(int64_t n)
{
        int64_t until_ms = clock_mono_ms() + DEADLINE_MS;

        while (frames_queued() < n) {
                assert_true(clock_mono_ms() < until_ms);
                (void)poll(NULL, 0, 1);
        }
}

/* A frame of @length of which @sent bytes are sent. */
static int begin_frame(const struct fixture *f, size_t length, size_t sent)
{
        cleanup_with(freep) char *bytes = calloc(1, sent + 1);
        int fd = client_connect(f);

        assert_non_null(bytes);
        client_send_prefix(fd, (int32_t)length);
        client_send(fd, bytes, sent);
        return fd;
}

static void end_frame(int fd, size_t rest)
{
        cleanup_with(freep) char *bytes = calloc(1, rest + 1);

        assert_non_null(bytes);
        client_send(fd, bytes, rest);
}

static bool is_open(int fd)
{
        char byte;

        return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static void half_sent_frames_hold_what_is_allowed_and_small_ones_pass(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int64_t queued = frames_queued();
        int fds[40], small;

        (void)state;
        setup(&f, HANDLER_ECHO);
        fixture_start(&f, "127.0.0.1");
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                fds[i] = begin_frame(&f, MIB, 100 * KIB);
        wait_queued(queued + 36);

        assert_true(request_bytes() <= 4 * MIB + ARRAY_SIZE(fds) * 64 * KIB);
        small = client_connect(&f);
        client_send_frame(small, "others are served");
        client_expect_frame(small, "others are served");
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                assert_true(is_open(fds[i])); /* held back, not closed */

        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) /* and each of them can be completed */
                end_frame(fds[i], MIB - 100 * KIB);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
                uint8_t prefix[4];

                assert_int_equal(recv(fds[i], prefix, sizeof(prefix), MSG_WAITALL), sizeof(prefix));
                (void)close(fds[i]);
        }
        (void)close(small);
        wait_until(request_bytes, 0);
}

static void the_shortest_goes_on_first(void **state)
{
        static const size_t lengths[] = {900, 500, 700, 300};
        cleanup_with(fixture_done) struct fixture f;
        int64_t queued = frames_queued();
        int full[4], fds[ARRAY_SIZE(lengths)];

        (void)state;
        setup(&f, HANDLER_HOLD);
        fixture_start(&f, "127.0.0.1");
        for (size_t i = 0; i < ARRAY_SIZE(full); i++)
                full[i] = begin_frame(&f, MIB, MIB);
        fixture_wait_held(&f, 4); /* all memory is with the handler */
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                fds[i] = begin_frame(&f, lengths[i] * KIB, lengths[i] * KIB);
                wait_queued(queued + (int64_t)i + 1);
        }

        net_request_done(fixture_take(&f, 0));
        fixture_wait_held(&f, 6);
        assert_int_equal(f.held[4]->frame.len, 300 * KIB);
        assert_int_equal(f.held[5]->frame.len, 500 * KIB);
        assert_int_equal(fixture_held(&f), 6); /* 700 KiB do not fit beside them */
        for (size_t i = 0; i < ARRAY_SIZE(full); i++)
                (void)close(full[i]);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                (void)close(fds[i]);
}

static void who_stands_still_while_others_wait_is_cut_off(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int64_t slow = closed_because("slow-frame"), queued = frames_queued();
        int still[4], waiting;

        (void)state;
        setup(&f, HANDLER_ECHO);
        f.limits.stall_timeout_ms = 100;
        fixture_start(&f, "127.0.0.1");
        for (size_t i = 0; i < ARRAY_SIZE(still); i++)
                still[i] = begin_frame(&f, MIB, 10);
        (void)poll(NULL, 0, 300); /* nobody waits: that is their business */
        for (size_t i = 0; i < ARRAY_SIZE(still); i++)
                assert_true(is_open(still[i]));

        waiting = begin_frame(&f, 100 * KIB, 100 * KIB);
        wait_queued(queued + 1);
        for (size_t i = 0; i < ARRAY_SIZE(still); i++) {
                client_expect_closed(still[i]);
                (void)close(still[i]);
        }
        assert_int_equal(closed_because("slow-frame") - slow, 4);
        assert_int_equal(recv(waiting, &(uint8_t){0}, 1, MSG_WAITALL), 1);
        (void)close(waiting);
}

static void a_frame_taken_by_its_handler_is_no_longer_counted(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        setup(&f, HANDLER_TAKE);
        fixture_start(&f, "127.0.0.1");
        fd = begin_frame(&f, MIB, MIB);
        fixture_wait_held(&f, 1);
        wait_until(request_bytes, 0);
        answer(fixture_take(&f, 0), "done");
        client_expect_frame(fd, "done");
        (void)close(fd);
}

static void what_a_handler_charges_goes_with_the_answer(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        struct net_request *r;
        int fd;

        (void)state;
        setup(&f, HANDLER_HOLD);
        fixture_start(&f, "127.0.0.1");
        fd = begin_frame(&f, 100, 100);
        fixture_wait_held(&f, 1);
        r = fixture_take(&f, 0);
        net_request_charge(r, 3 * MIB);
        assert_true(request_bytes() >= 3 * MIB);
        answer(r, "done");
        client_expect_frame(fd, "done");
        assert_int_equal(request_bytes(), 0);
        (void)close(fd);
}

/* Answers of 8 MiB to peers that read nothing: what the kernel does not take waits with us. */
static void peers_that_never_read_hold_what_is_allowed(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fds[10], other;

        (void)state;
        setup(&f, HANDLER_BIG);
        f.big_bytes = 8 * MIB;
        fixture_start(&f, "127.0.0.1");
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
                fds[i] = client_connect(&f);
                for (int k = 0; k < 20; k++)
                        client_send_frame(fds[i], "give me much");
        }
        (void)poll(NULL, 0, 500); /* it stays so */
        assert_true(response_bytes() <= 16 * MIB + 8 * MIB + MIB);

        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                (void)close(fds[i]); /* with answers unread: a reset */
        other = client_connect(&f);
        client_send_frame(other, "and me");
        assert_int_equal(recv(other, &(uint8_t){0}, 1, MSG_WAITALL), 1);
        (void)close(other);
}

static void a_peer_that_takes_nothing_while_memory_is_short_is_cut_off(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int64_t stalled = closed_because("stalled");
        int fd, other;

        (void)state;
        setup(&f, HANDLER_BIG);
        f.big_bytes = 20 * MIB;
        f.limits.stall_timeout_ms = 200;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "give me much");
        wait_until(response_bytes, 20 * MIB + MIB);
        other = client_connect(&f);
        client_send_frame(other, "and me"); /* not read before there is room */
        assert_int_equal(recv(other, &(uint8_t){0}, 1, MSG_WAITALL), 1);
        assert_true(closed_because("stalled") > stalled); /* soon the other one as well */
        (void)close(fd);
        (void)close(other);
}

static void the_room_for_a_large_answer_is_what_is_left(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        struct net_request *r;
        int fd;

        (void)state;
        setup(&f, HANDLER_HOLD);
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "how much?");
        fixture_wait_held(&f, 1);
        r = fixture_take(&f, 0);
        assert_int_equal(net_response_room(r), 8 * MIB);
        answer(r, "");
        (void)close(fd);
}

static void a_peer_that_sent_its_last_byte_is_not_owed_an_answer_for_ever(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int64_t before = closed_because("half-closed");
        struct net_request *r;
        int fd;

        (void)state;
        setup(&f, HANDLER_HOLD);
        f.limits.frame_timeout_ms = 300;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "and goodbye");
        fixture_wait_held(&f, 1);
        r = fixture_take(&f, 0);
        assert_false(net_request_abandoned(r));
        (void)close(fd);

        fixture_wait_connections(&f, 0);
        assert_true(net_request_abandoned(r));
        assert_int_equal(closed_because("half-closed") - before, 1);
        net_request_done(r);
}

static void a_peer_that_leaves_while_nothing_is_read_is_noticed(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        setup(&f, HANDLER_HOLD);
        f.limits.frame_timeout_ms = 300;
        f.limits.max_inflight = 2;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "2");
        client_send_frame(fd, "3");
        fixture_wait_held(&f, 2);
        (void)shutdown(fd, SHUT_WR);
        fixture_wait_connections(&f, 0);
        assert_int_equal(fixture_held(&f), 2);
        (void)close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(half_sent_frames_hold_what_is_allowed_and_small_ones_pass),
                cmocka_unit_test(the_shortest_goes_on_first),
                cmocka_unit_test(who_stands_still_while_others_wait_is_cut_off),
                cmocka_unit_test(a_frame_taken_by_its_handler_is_no_longer_counted),
                cmocka_unit_test(what_a_handler_charges_goes_with_the_answer),
                cmocka_unit_test(peers_that_never_read_hold_what_is_allowed),
                cmocka_unit_test(a_peer_that_takes_nothing_while_memory_is_short_is_cut_off),
                cmocka_unit_test(the_room_for_a_large_answer_is_what_is_left),
                cmocka_unit_test(a_peer_that_sent_its_last_byte_is_not_owed_an_answer_for_ever),
                cmocka_unit_test(a_peer_that_leaves_while_nothing_is_read_is_noticed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
