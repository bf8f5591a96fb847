/* net/conn_in.c: frames out of bytes, and what hostile bytes may cost. */
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net_fixture.h"

static _Atomic size_t largest_allocation;

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_realloc(void *p, size_t n);

static void note_size(size_t n)
{
        size_t seen = largest_allocation;

        while (n > seen && !__atomic_compare_exchange_n((size_t *)&largest_allocation, &seen, n, false,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                continue;
}

void *__wrap_malloc(size_t n)
{
        note_size(n);
        return __real_malloc(n);
}

void *__wrap_realloc(void *p, size_t n)
{
        note_size(n);
        return __real_realloc(p, n);
}

static void a_refused_length_closes_that_connection_only_and_allocates_nothing(void **state)
{
        const int32_t lengths[] = {INT32_MAX, 100 * 1024 * 1024 + 1, 0, -1, INT32_MIN};
        cleanup_with(fixture_done) struct fixture f;
        int good, bad;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        good = client_connect(&f);
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                int64_t before = closed_because("bad-length");

                largest_allocation = 0;
                bad = client_connect(&f);
                client_send_prefix(bad, lengths[i]);
                client_expect_closed(bad);
                fixture_wait_connections(&f, 1);
                assert_int_equal(closed_because("bad-length"), before + 1);
                assert_true(largest_allocation < 64 * 1024);
                (void)close(bad);

                client_send_frame(good, "still here");
                client_expect_frame(good, "still here");
        }
        (void)close(good);
}

static void a_buffer_grows_with_what_arrived_not_with_what_was_promised(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        char bytes[1000] = {0};
        int fd, other;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        largest_allocation = 0;
        fd = client_connect(&f);
        other = client_connect(&f);
        client_send_prefix(fd, 90 * 1024 * 1024);
        for (int i = 0; i < 10; i++) {
                client_send(fd, bytes, sizeof(bytes));
                /* same loop, and these bytes came first: once the other is answered they have been read */
                client_send_frame(other, "x");
                client_expect_frame(other, "x");
        }
        assert_true(largest_allocation < 1024 * 1024);
        (void)close(fd);
        (void)close(other);
}

static void frames_cut_at_any_byte_arrive_whole(void **state)
{
        const char stream[] = "\0\0\0\5first\0\0\0\1x\0\0\0\6second";
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        for (size_t cut = 0; cut < sizeof(stream); cut++) {
                int fd = client_connect(&f);

                client_send(fd, stream, cut);
                if (cut >= 9)
                        client_expect_frame(fd, "first"); /* so the rest comes in another read */
                client_send(fd, stream + cut, sizeof(stream) - 1 - cut);
                if (cut < 9)
                        client_expect_frame(fd, "first");
                client_expect_frame(fd, "x");
                client_expect_frame(fd, "second");
                (void)close(fd);
        }
}

static void a_frame_larger_than_any_buffer_of_ours_arrives_whole_with_the_next_behind_it(void **state)
{
        const size_t sizes[] = {65531, 65532, 65533, 65536, 65540, 1 << 20, 3000001};
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                cleanup_with(freep) char *body = calloc(1, sizes[i] + 1);
                int fd = client_connect(&f);

                assert_non_null(body);
                for (size_t k = 0; k < sizes[i]; k++)
                        body[k] = (char)('a' + k % 26);
                client_send_frame(fd, body);
                client_send_frame(fd, "behind");
                client_expect_frame(fd, body);
                client_expect_frame(fd, "behind");
                (void)close(fd);
        }
}

static void a_thousand_pipelined_requests_are_answered_in_order(void **state)
{
        cleanup_with(buf_donep) struct buf all = {0};
        cleanup_with(fixture_done) struct fixture f;
        char body[32];
        int fd, other;

        (void)state;
        fixture_init(&f);
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        other = client_connect(&f);
        for (int i = 0; i < 1000; i++) {
                const uint8_t prefix[4] = {0, 0, 0, 11};

                (void)snprintf(body, sizeof(body), "request%04d", i);
                assert_int_equal(buf_append(&all, prefix, 4), 0);
                assert_int_equal(buf_append_str(&all, body), 0);
        }
        client_send(fd, all.data, all.len);
        client_send_frame(other, "me too");
        client_expect_frame(other, "me too");
        for (int i = 0; i < 1000; i++) {
                (void)snprintf(body, sizeof(body), "request%04d", i);
                client_expect_frame(fd, body);
        }
        (void)close(fd);
        (void)close(other);
}

static void a_truncated_frame_is_never_handed_on(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int64_t before;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        before = closed_because("truncated-frame");
        fd = client_connect(&f);
        client_send_prefix(fd, 100);
        client_send(fd, "short", 5);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        client_expect_closed(fd);
        fixture_wait_connections(&f, 0);
        assert_int_equal(closed_because("truncated-frame"), before + 1);
        assert_int_equal(fixture_held(&f), 0);
        (void)close(fd);
}

static void a_peer_that_shut_its_sending_half_still_gets_its_answers(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "last words");
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        fixture_wait_held(&f, 1);
        answer(fixture_take(&f, 0), "heard");
        client_expect_frame(fd, "heard");
        client_expect_closed(fd);
        (void)close(fd);
}

/* Send until the kernel takes no more for a while: nobody reads at the other end. */
static size_t send_until_stuck(int fd)
{
        const struct timeval patience = {.tv_usec = 200 * 1000};
        cleanup_with(freep) char *body = calloc(1, 64 * 1024 - 4);
        const uint8_t prefix[4] = {0, 0, 255, 252};
        size_t sent = 0;

        assert_non_null(body);
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)), 0);
        while (sent < (size_t)1 << 30) {
                if (send(fd, prefix, 4, MSG_NOSIGNAL) < 4)
                        return sent;
                if (send(fd, body, 64 * 1024 - 4, MSG_NOSIGNAL) < 64 * 1024 - 4)
                        return sent;
                sent += 64 * 1024;
        }
        fail_msg("the server never stopped reading");
        return sent;
}

static void too_many_unanswered_requests_stop_the_reading_until_one_is_answered(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        f.limits.max_inflight = 2;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        (void)send_until_stuck(fd);
        assert_int_equal(fixture_held(&f), 2);

        answer(fixture_take(&f, 0), "one");
        client_expect_frame(fd, "one");
        fixture_wait_held(&f, 3);
        (void)close(fd);
}

static void requests_already_read_wait_for_room_as_well(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        f.limits.max_inflight = 2;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send(fd, "\0\0\0\1a\0\0\0\1b\0\0\0\1c\0\0\0\1d", 20); /* one read takes all four */
        fixture_wait_held(&f, 2);
        for (int i = 0; i < 4; i++) {
                char name[2] = {(char)('a' + i), 0};

                assert_true(fixture_held(&f) <= i + 2);
                fixture_wait_held(&f, i + 1);
                answer(fixture_take(&f, i), name);
                client_expect_frame(fd, name);
        }
        (void)close(fd);
}

static void unread_answers_stop_the_reading(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        size_t sent;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_BIG;
        f.big_bytes = 1 << 20;
        f.limits.max_unsent_bytes = 4 << 20;
        f.limits.max_inflight = 1000000;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        sent = send_until_stuck(fd);
        assert_true(sent < (size_t)64 << 20);
        (void)close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_refused_length_closes_that_connection_only_and_allocates_nothing),
                cmocka_unit_test(a_buffer_grows_with_what_arrived_not_with_what_was_promised),
                cmocka_unit_test(frames_cut_at_any_byte_arrive_whole),
                cmocka_unit_test(
                        a_frame_larger_than_any_buffer_of_ours_arrives_whole_with_the_next_behind_it),
                cmocka_unit_test(a_thousand_pipelined_requests_are_answered_in_order),
                cmocka_unit_test(a_truncated_frame_is_never_handed_on),
                cmocka_unit_test(a_peer_that_shut_its_sending_half_still_gets_its_answers),
                cmocka_unit_test(too_many_unanswered_requests_stop_the_reading_until_one_is_answered),
                cmocka_unit_test(requests_already_read_wait_for_room_as_well),
                cmocka_unit_test(unread_answers_stop_the_reading),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
