/* client/kclient.c, kclient_conn.c, kclient_io.c against a scripted broker. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "client_fixture.h"
#include "wire/error.h"

#define API_VERSIONS 18

/* A port nobody listens on: the broker's own, after it is gone. */
static void given_no_broker(struct fixture *f)
{
        broker_stop(f);
}

static void pipelined_requests_are_answered_in_order_with_at_most_max_inflight_at_the_broker(void **state)
{
        const struct kclient_options o = {.client_id = "test", .max_inflight = 3};
        struct outcome got[10];
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, &o);
        f.behaviour = BROKER_HOLDS;
        for (int i = 0; i < 10; i++)
                ask(&f, &got[i], 5000);
        run_until_held(&f, 3);
        run_for(&f, 30);
        assert_int_equal(f.n_held, 3);

        for (int i = 0; i < 10; i++) {
                run_until_held(&f, i + 1);
                broker_answer(&f, i);
                run_until_called(&f, &got[i]);
                assert_int_equal(got[i].r, 0);
                assert_int_equal(got[i].number, i + 1);
        }
        assert_true(kclient_connected(f.client));
}

static void a_refused_connection_is_tried_until_the_deadline_and_then_named(void **state)
{
        struct outcome got;
        cleanup_with(fixture_done) struct fixture f;
        int64_t began_ms;

        (void)state;
        fixture_init(&f, NULL);
        given_no_broker(&f);
        began_ms = clock_mono_ms();
        ask(&f, &got, 250);
        run_until_called(&f, &got);
        assert_int_equal(got.r, -ECONNREFUSED);
        assert_true(clock_mono_ms() - began_ms >= 250);
}

static void an_unanswered_request_times_out_takes_the_connection_along_and_spares_the_queued(void **state)
{
        const struct kclient_options o = {.max_inflight = 2, .reconnect_backoff_ms = 10};
        struct outcome hung, behind, queued;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, &o);
        f.behaviour = BROKER_HOLDS;
        ask(&f, &hung, 150);
        ask(&f, &behind, 5000);
        ask(&f, &queued, 5000);
        run_until_held(&f, 2);
        f.behaviour = BROKER_ANSWERS;
        run_until_called(&f, &hung);
        assert_int_equal(hung.r, -ETIMEDOUT);
        run_until_called(&f, &behind);
        assert_int_equal(behind.r, -ECONNRESET);
        run_until_called(&f, &queued);
        assert_int_equal(queued.r, 0);
        assert_int_equal(queued.number, 3);
}

static void deadlines_expire_by_time_not_by_order(void **state)
{
        struct outcome late, soon, middle;
        cleanup_with(fixture_done) struct fixture f;
        int64_t began_ms;

        (void)state;
        fixture_init(&f, NULL);
        given_no_broker(&f);
        began_ms = clock_mono_ms();
        ask(&f, &late, 5000);
        ask(&f, &soon, 60);
        ask(&f, &middle, 120);
        run_until_called(&f, &soon);
        assert_int_equal(middle.calls, 0);
        run_until_called(&f, &middle);
        assert_int_equal(late.calls, 0);
        assert_true(clock_mono_ms() - began_ms < 5000);
}

static void it_reconnects_after_the_broker_restarts(void **state)
{
        const struct kclient_options o = {.reconnect_backoff_ms = 20};
        struct outcome in_flight, while_down;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, &o);
        f.behaviour = BROKER_HOLDS;
        ask(&f, &in_flight, 5000);
        run_until_held(&f, 1);
        broker_stop(&f);
        run_until_called(&f, &in_flight);
        assert_int_equal(in_flight.r, -ECONNRESET); /* outcome unknown: never sent again by itself */
        assert_false(kclient_connected(f.client));

        ask(&f, &while_down, 5000);
        run_for(&f, 100);
        assert_int_equal(while_down.calls, 0);
        f.behaviour = BROKER_ANSWERS;
        broker_start(&f);
        run_until_called(&f, &while_down);
        assert_int_equal(while_down.r, 0);
        assert_int_equal(f.n_seen, 2);
}

static void back_off_doubles_up_to_its_maximum(void **state)
{
        const struct kclient_options o = {.reconnect_backoff_ms = 20, .reconnect_backoff_max_ms = 80};
        struct outcome got;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, &o);
        f.behaviour = BROKER_CLOSES;
        f.n_seen = 0;
        for (int i = 0; i < 3; i++) { /* each is sent once, on a connection of its own */
                ask(&f, &got, 5000);
                run_until_called(&f, &got);
                assert_int_equal(got.r, -ECONNRESET);
        }
        int64_t began_ms = clock_mono_ms();

        f.behaviour = BROKER_ANSWERS;
        ask(&f, &got, 5000); /* after failures at 20, 40: the third back-off is 80 ms */
        run_until_called(&f, &got);
        assert_int_equal(got.r, 0);
        assert_true(clock_mono_ms() - began_ms >= 70);
        assert_true(clock_mono_ms() - began_ms < 2000);
}

static void a_connection_closed_while_idle_is_made_anew_at_once(void **state)
{
        const struct kclient_options o = {.reconnect_backoff_ms = 60000, .reconnect_backoff_max_ms = 60000};
        struct outcome got;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, &o);
        ask(&f, &got, 5000);
        run_until_called(&f, &got);
        broker_stop(&f);
        run_for(&f, 20);
        assert_false(kclient_connected(f.client));
        broker_start(&f);
        ask(&f, &got, 5000);
        run_until_called(&f, &got);
        assert_int_equal(got.r, 0);
}

static void free_cancels_what_is_in_flight_and_what_is_queued_exactly_once(void **state)
{
        const struct kclient_options o = {.max_inflight = 1};
        struct outcome sent, queued;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, &o);
        f.behaviour = BROKER_HOLDS;
        ask(&f, &sent, 5000);
        ask(&f, &queued, 5000);
        run_until_held(&f, 1);
        f.client = kclient_free(f.client);
        assert_int_equal(sent.calls, 1);
        assert_int_equal(sent.r, -ECANCELED);
        assert_int_equal(queued.calls, 1);
        assert_int_equal(queued.r, -ECANCELED);
}

static void free_while_connecting_cancels(void **state)
{
        struct outcome got;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, NULL);
        ask(&f, &got, 5000);
        f.client = kclient_free(f.client);
        assert_int_equal(got.calls, 1);
        assert_int_equal(got.r, -ECANCELED);
}

static void free_later_inside(int r, const void *response, struct arena *arena, void *userdata)
{
        struct outcome *o = userdata;

        kclient_free_later(TAKE_PTR(o->f->client));
        on_outcome(r, response, arena, userdata);
}

static void free_later_is_safe_inside_a_callback(void **state)
{
        cleanup_with(fixture_done) struct fixture f;
        const struct api_versions_request body = {0};
        struct outcome first = {.f = &f}, second;

        (void)state;
        fixture_init(&f, NULL);
        f.behaviour = BROKER_HOLDS;
        assert_int_equal(kclient_request(f.client, wire_api_find(API_VERSIONS), 0, &body, 5000,
                                         free_later_inside, &first),
                         0);
        ask(&f, &second, 5000);
        run_until_held(&f, 2);
        broker_answer(&f, 0);
        run_until_called(&f, &second);
        assert_int_equal(first.calls, 1);
        assert_int_equal(first.r, 0);
        assert_int_equal(second.r, -ECANCELED);
}

static void malformed(enum behaviour b)
{
        const struct kclient_options o = {.reconnect_backoff_ms = 10};
        struct outcome bad, behind, next;
        cleanup_with(fixture_done) struct fixture f;

        fixture_init(&f, &o);
        f.behaviour = BROKER_HOLDS;
        ask(&f, &bad, 5000);
        ask(&f, &behind, 5000);
        run_until_held(&f, 2);
        f.behaviour = b;
        broker_answer(&f, 0);
        run_until_called(&f, &bad);
        assert_int_equal(bad.r, -EBADMSG);
        run_until_called(&f, &behind);
        assert_int_equal(behind.r, -ECONNRESET);
        f.behaviour = BROKER_ANSWERS;
        ask(&f, &next, 5000);
        run_until_called(&f, &next);
        assert_int_equal(next.r, 0);
}

static void an_answer_cut_short_is_bad_and_the_connection_is_replaced(void **state)
{
        (void)state;
        malformed(BROKER_ANSWERS_GARBAGE);
}

static void an_answer_with_another_correlation_id_is_bad_and_the_connection_is_replaced(void **state)
{
        (void)state;
        malformed(BROKER_ANSWERS_WRONG_ID);
}

static void an_answer_that_promises_two_gigabytes_is_bad_and_the_connection_is_replaced(void **state)
{
        (void)state;
        malformed(BROKER_ANSWERS_HUGE_LENGTH);
}

static void an_answer_of_megabytes_arrives_whole_with_others_behind_it(void **state)
{
        struct outcome got[4];
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, NULL);
        f.behaviour = BROKER_ANSWERS_MANY_KEYS;
        for (int i = 0; i < 4; i++)
                ask(&f, &got[i], 8000);
        for (int i = 0; i < 4; i++) {
                run_until_called(&f, &got[i]);
                assert_int_equal(got[i].r, 0);
                assert_int_equal(got[i].n_keys, 500000);
        }
}

static void disconnect_fails_the_sent_and_keeps_the_queued(void **state)
{
        const struct kclient_options o = {.max_inflight = 1};
        struct outcome sent, queued;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, &o);
        f.behaviour = BROKER_HOLDS;
        ask(&f, &sent, 5000);
        ask(&f, &queued, 5000);
        run_until_held(&f, 1);
        f.behaviour = BROKER_ANSWERS;
        kclient_disconnect(f.client);
        assert_int_equal(sent.calls, 1);
        assert_int_equal(sent.r, -ECONNRESET);
        assert_int_equal(queued.calls, 0);
        run_until_called(&f, &queued);
        assert_int_equal(queued.r, 0);
}

static void requests_that_had_not_left_whole_go_again_in_order(void **state)
{
        enum { N = 1000 };
        const struct kclient_options o = {.max_inflight = N};
        cleanup_with(freep) struct outcome *got = calloc(N, sizeof(*got));
        cleanup_with(freep) char *name = calloc(1, 30001);
        cleanup_with(fixture_done) struct fixture f;
        struct api_versions_request body = {.client_software_version = wire_str("1")};
        int n_reset = 0;

        (void)state;
        assert_true(got && name);
        memset(name, 'n', 30000);
        body.client_software_name = wire_str(name);
        fixture_init(&f, &o);
        f.behaviour = BROKER_HOLDS; /* and then reads no further: thirty megabytes fit into no socket */
        for (int i = 0; i < N; i++) {
                got[i].f = &f;
                assert_int_equal(kclient_request(f.client, wire_api_find(API_VERSIONS), 3, &body, 9000,
                                                 on_outcome, &got[i]),
                                 0);
        }
        run_until_held(&f, 64);
        run_for(&f, 50);
        kclient_disconnect(f.client);
        f.behaviour = BROKER_ANSWERS;
        f.n_seen = 0;
        for (int i = 0; i < N; i++) {
                run_until_called(&f, &got[i]);
                if (got[i].r == 0)
                        assert_int_equal(got[i].number, i - n_reset + 1);
                else
                        assert_int_equal(got[i].r, -ECONNRESET);
                n_reset += got[i].r != 0;
        }
        assert_in_range(n_reset, 64, N - 1);
}

static void disconnect_and_ask(int r, const void *response, struct arena *arena, void *userdata)
{
        const struct api_versions_response *v = response;
        struct outcome *o = userdata;

        kclient_disconnect(o->f->client);
        assert_int_equal(v->api_keys.items[1].api_key, API_VERSIONS); /* the answer outlives its connection */
        on_outcome(r, response, arena, userdata);
}

static void a_callback_may_drop_the_connection_its_answer_came_on(void **state)
{
        const struct api_versions_request body = {0};
        cleanup_with(fixture_done) struct fixture f;
        struct outcome first = {.f = &f}, second, third;

        (void)state;
        fixture_init(&f, NULL);
        assert_int_equal(kclient_request(f.client, wire_api_find(API_VERSIONS), 0, &body, 5000,
                                         disconnect_and_ask, &first),
                         0);
        ask(&f, &second, 5000);
        run_until_called(&f, &first);
        assert_int_equal(first.r, 0);
        run_until_called(&f, &second);
        assert_int_equal(second.r, -ECONNRESET);
        ask(&f, &third, 5000);
        run_until_called(&f, &third);
        assert_int_equal(third.r, 0);
}

static void a_request_without_callback_is_sent_and_its_answer_skipped(void **state)
{
        const struct api_versions_request body = {0};
        struct outcome got;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, NULL);
        assert_int_equal(kclient_request(f.client, wire_api_find(API_VERSIONS), 0, &body, 5000, NULL, NULL),
                         0);
        ask(&f, &got, 5000);
        run_until_called(&f, &got);
        assert_int_equal(got.number, 2);
}

static void names_are_resolved_off_the_loop(void **state)
{
        struct outcome got;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, NULL);
        f.client = kclient_free(f.client);
        assert_int_equal(kclient_new(f.loop, "localhost", f.port, NULL, &f.client), 0);
        ask(&f, &got, 5000);
        run_until_called(&f, &got);
        assert_int_equal(got.r, 0);
}

static void a_name_that_does_not_resolve_fails_at_the_deadline(void **state)
{
        struct outcome got;
        cleanup_with(fixture_done) struct fixture f;

        (void)state;
        fixture_init(&f, NULL);
        f.client = kclient_free(f.client);
        assert_int_equal(kclient_new(f.loop, "no-such-host.invalid", f.port, NULL, &f.client), 0);
        ask(&f, &got, 200);
        run_until_called(&f, &got);
        /* a resolver may also still be trying: then the client is freed under its thread, by fixture_done()
         */
        assert_true(got.r == -EHOSTUNREACH || got.r == -ETIMEDOUT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        pipelined_requests_are_answered_in_order_with_at_most_max_inflight_at_the_broker),
                cmocka_unit_test(a_refused_connection_is_tried_until_the_deadline_and_then_named),
                cmocka_unit_test(
                        an_unanswered_request_times_out_takes_the_connection_along_and_spares_the_queued),
                cmocka_unit_test(deadlines_expire_by_time_not_by_order),
                cmocka_unit_test(it_reconnects_after_the_broker_restarts),
                cmocka_unit_test(back_off_doubles_up_to_its_maximum),
                cmocka_unit_test(a_connection_closed_while_idle_is_made_anew_at_once),
                cmocka_unit_test(free_cancels_what_is_in_flight_and_what_is_queued_exactly_once),
                cmocka_unit_test(free_while_connecting_cancels),
                cmocka_unit_test(free_later_is_safe_inside_a_callback),
                cmocka_unit_test(an_answer_cut_short_is_bad_and_the_connection_is_replaced),
                cmocka_unit_test(an_answer_with_another_correlation_id_is_bad_and_the_connection_is_replaced),
                cmocka_unit_test(an_answer_that_promises_two_gigabytes_is_bad_and_the_connection_is_replaced),
                cmocka_unit_test(an_answer_of_megabytes_arrives_whole_with_others_behind_it),
                cmocka_unit_test(disconnect_fails_the_sent_and_keeps_the_queued),
                cmocka_unit_test(requests_that_had_not_left_whole_go_again_in_order),
                cmocka_unit_test(a_callback_may_drop_the_connection_its_answer_came_on),
                cmocka_unit_test(a_request_without_callback_is_sent_and_its_answer_skipped),
                cmocka_unit_test(names_are_resolved_off_the_loop),
                cmocka_unit_test(a_name_that_does_not_resolve_fails_at_the_deadline),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
