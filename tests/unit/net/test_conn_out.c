/* net/conn_out.c: answers from any thread, in any order, for connections alive or gone. */
#include <stdio.h>
#include <string.h>

#include "net_fixture.h"

static void responses_leave_in_request_order_however_they_complete(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "2");
        client_send_frame(fd, "3");
        fixture_wait_held(&f, 3);

        answer(fixture_take(&f, 1), "two");
        answer(fixture_take(&f, 2), "three");
        answer(fixture_take(&f, 0), "one");

        client_expect_frame(fd, "one");
        client_expect_frame(fd, "two");
        client_expect_frame(fd, "three");
        (void)close(fd);
}

static void a_request_answered_with_nothing_leaves_no_bytes_and_no_gap(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        for (int i = 0; i < 3; i++)
                client_send_frame(fd, "q");
        fixture_wait_held(&f, 3);

        answer(fixture_take(&f, 2), "three");
        net_request_done(fixture_take(&f, 1));
        answer(fixture_take(&f, 0), "one");

        client_expect_frame(fd, "one");
        client_expect_frame(fd, "three");
        (void)close(fd);
}

static void a_request_that_waits_its_turn_is_handed_on_when_all_before_it_have_left(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_IN_TURN;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "2");
        client_send_frame(fd, "wait");
        client_send_frame(fd, "wait");
        client_send_frame(fd, "3");
        fixture_wait_held(&f, 3); /* what comes later is not held back */
        fixture_wait_waiting(&f, 2);

        answer(fixture_take(&f, 1), "two");
        answer(fixture_take(&f, 2), "three");
        assert_int_equal(fixture_held(&f), 3);
        answer(fixture_take(&f, 0), "one");
        client_expect_frame(fd, "one");
        client_expect_frame(fd, "two");
        fixture_wait_held(&f, 4);
        assert_int_equal(fixture_held(&f), 4); /* one at a time */
        answer(fixture_take(&f, 3), "first in turn");
        client_expect_frame(fd, "first in turn");
        fixture_wait_held(&f, 5);
        answer(fixture_take(&f, 4), "second in turn");
        client_expect_frame(fd, "second in turn");
        client_expect_frame(fd, "three");
        (void)close(fd);
}

static void requests_that_are_answered_when_their_turn_comes_leave_without_another_event(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_IN_TURN;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        for (int i = 0; i < 3; i++)
                client_send_frame(fd, "wait");
        fixture_wait_waiting(&f, 3);

        f.handler = HANDLER_ECHO; /* answers inside the call that hands it on */
        answer(fixture_take(&f, 0), "one");
        client_expect_frame(fd, "one");
        for (int i = 0; i < 3; i++)
                client_expect_frame(fd, "wait");
        (void)close(fd);
}

static void a_request_that_waits_its_turn_goes_with_its_connection(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_IN_TURN;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "wait");
        fixture_wait_waiting(&f, 1);

        client_reset(fd);
        fixture_wait_connections(&f, 0);
        answer(fixture_take(&f, 0), "into the void");
        assert_int_equal(fixture_held(&f), 1); /* and the sanitizer finds no leak */
}

static void abort_lets_earlier_answers_leave_and_then_closes(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        for (int i = 0; i < 3; i++)
                client_send_frame(fd, "q");
        fixture_wait_held(&f, 3);

        net_request_abort(fixture_take(&f, 1));
        answer(fixture_take(&f, 2), "never seen");
        assert_int_equal(net_server_connections(f.server), 1);
        answer(fixture_take(&f, 0), "one");

        client_expect_frame(fd, "one");
        client_expect_closed(fd);
        fixture_wait_connections(&f, 0);
        (void)close(fd);
}

static void an_answer_for_a_connection_that_died_is_dropped(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        struct net_request *r;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "2");
        client_send_frame(fd, "3");
        fixture_wait_held(&f, 3);
        client_reset(fd);
        fixture_wait_connections(&f, 0);

        r = fixture_take(&f, 0);
        assert_memory_equal(r->peer, "127.0.0.1:", 10); /* valid until answered, whatever became of it */
        answer(r, "too late");
        net_request_done(fixture_take(&f, 1));
        net_request_abort(fixture_take(&f, 2));
}

static void an_answer_after_server_and_loop_are_gone_is_dropped(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "2");
        fixture_wait_held(&f, 2);
        answer(fixture_take(&f, 1), "answered, and waiting for its turn");
        fixture_stop_server(&f);
        fixture_stop_loop(&f);
        answer(fixture_take(&f, 0), "too late");
        client_expect_closed(fd);
        (void)close(fd);
}

static void a_large_answer_leaves_in_parts_to_a_slow_reader(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        cleanup_with(freep) char *body = calloc(1, 8 << 20);
        int fd;

        (void)state;
        assert_non_null(body);
        memset(body, 'z', (8 << 20) - 1);
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        client_send_frame(fd, "1");
        client_send_frame(fd, "2");
        fixture_wait_held(&f, 2);
        answer(fixture_take(&f, 0),
               body); /* far more than a socket holds: the loop has to come back for it */
        answer(fixture_take(&f, 1), "small");
        client_expect_frame(fd, body);
        client_expect_frame(fd, "small");
        (void)close(fd);
}

struct answerer {
        struct fixture *f;
        int first, step, until;
};

static void *answer_every_nth(void *userdata)
{
        struct answerer *a = userdata;
        char body[16];

        for (int i = a->first; i < a->until; i += a->step) {
                fixture_wait_held(a->f, i + 1);
                (void)snprintf(body, sizeof(body), "%06d", i);
                answer(fixture_take(a->f, i), body);
        }
        return NULL;
}

static void many_threads_answer_one_connection_in_order(void **state)
{
        enum { N = 2000, N_THREADS = 4 };
        cleanup_with(fixture_done) struct fixture f;
        struct answerer a[N_THREADS];
        pthread_t t[N_THREADS];
        char body[16];
        int fd;

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        fd = client_connect(&f);
        for (int i = 0; i < N_THREADS; i++) {
                a[i] = (struct answerer){.f = &f, .first = i, .step = N_THREADS, .until = N};
                assert_int_equal(pthread_create(&t[i], NULL, answer_every_nth, &a[i]), 0);
        }
        for (int i = 0; i < N; i++)
                client_send_frame(fd, "q");
        for (int i = 0; i < N; i++) {
                (void)snprintf(body, sizeof(body), "%06d", i);
                client_expect_frame(fd, body);
        }
        for (int i = 0; i < N_THREADS; i++)
                assert_int_equal(pthread_join(t[i], NULL), 0);
        (void)close(fd);
}

static void threads_may_answer_while_connections_are_being_reset(void **state)
{
        enum { N_CONNECTIONS = 200, PER_CONNECTION = 5, N = N_CONNECTIONS * PER_CONNECTION, N_THREADS = 3 };
        cleanup_with(fixture_done) struct fixture f;
        struct answerer a[N_THREADS];
        pthread_t t[N_THREADS];

        (void)state;
        fixture_init(&f);
        f.handler = HANDLER_HOLD;
        fixture_start(&f, "127.0.0.1");
        for (int i = 0; i < N_THREADS; i++) {
                a[i] = (struct answerer){.f = &f, .first = i, .step = N_THREADS, .until = N};
                assert_int_equal(pthread_create(&t[i], NULL, answer_every_nth, &a[i]), 0);
        }
        for (int i = 0; i < N_CONNECTIONS; i++) {
                int fd = client_connect(&f);

                for (int k = 0; k < PER_CONNECTION; k++)
                        client_send_frame(fd, "q");
                fixture_wait_held(&f, (i + 1) * PER_CONNECTION);
                client_reset(fd);
        }
        for (int i = 0; i < N_THREADS; i++)
                assert_int_equal(pthread_join(t[i], NULL), 0);
        fixture_wait_connections(&f, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(responses_leave_in_request_order_however_they_complete),
                cmocka_unit_test(a_request_answered_with_nothing_leaves_no_bytes_and_no_gap),
                cmocka_unit_test(a_request_that_waits_its_turn_is_handed_on_when_all_before_it_have_left),
                cmocka_unit_test(
                        requests_that_are_answered_when_their_turn_comes_leave_without_another_event),
                cmocka_unit_test(a_request_that_waits_its_turn_goes_with_its_connection),
                cmocka_unit_test(abort_lets_earlier_answers_leave_and_then_closes),
                cmocka_unit_test(an_answer_for_a_connection_that_died_is_dropped),
                cmocka_unit_test(an_answer_after_server_and_loop_are_gone_is_dropped),
                cmocka_unit_test(a_large_answer_leaves_in_parts_to_a_slow_reader),
                cmocka_unit_test(many_threads_answer_one_connection_in_order),
                cmocka_unit_test(threads_may_answer_while_connections_are_being_reset),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
