/* client/kclient_call.c: blocking calls against a scripted broker on a thread of its own. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "client_fixture.h"
#include "wire/error.h"
#include "wire/metadata.h"

#define API_VERSIONS 18
#define METADATA     3
#define PRODUCE      0

static void fixture_threaded(struct fixture *f)
{
        fixture_init(f, NULL);
        f->client = kclient_free(f->client);
        assert_int_equal(loop_thread_start(f->loop), 0);
}

static void fixture_threaded_done(struct fixture *f)
{
        loop_stop(f->loop);
        loop_thread_join(f->loop);
        fixture_done(f);
}

static void it_asks_and_decodes_into_the_callers_arena(void **state)
{
        const struct metadata_request body = {.topics.n = -1};
        cleanup_with(fixture_threaded_done) struct fixture f;
        cleanup_with(arena_donep) struct arena arena = {0};
        struct metadata_response got;

        (void)state;
        arena_init(&arena, 0);
        fixture_threaded(&f);
        assert_int_equal(kclient_call("127.0.0.1", f.port, "cli", wire_api_find(METADATA), 4, &body, 5000,
                                      &arena, &got),
                         0);
        assert_int_equal(got.controller_id, 7);
        assert_true(wire_str_equal(got.cluster_id, "a cluster")); /* the slice lives as long as the arena */
}

static void a_host_that_refuses_is_reported_at_once(void **state)
{
        const struct metadata_request body = {.topics.n = -1};
        cleanup_with(fixture_done) struct fixture f;
        cleanup_with(arena_donep) struct arena arena = {0};
        int64_t began_ms = clock_mono_ms();
        struct metadata_response got;

        (void)state;
        arena_init(&arena, 0);
        fixture_init(&f, NULL);
        broker_stop(&f);
        assert_int_equal(kclient_call("127.0.0.1", f.port, NULL, wire_api_find(METADATA), 4, &body, 30000,
                                      &arena, &got),
                         -ECONNREFUSED);
        assert_true(clock_mono_ms() - began_ms < 10000);
}

static void a_broker_that_closes_or_hangs_ends_the_call(void **state)
{
        const struct metadata_request body = {.topics.n = -1};
        cleanup_with(fixture_threaded_done) struct fixture f;
        cleanup_with(arena_donep) struct arena arena = {0};
        struct metadata_response got;

        (void)state;
        arena_init(&arena, 0);
        fixture_threaded(&f);
        f.behaviour = BROKER_CLOSES;
        assert_int_equal(kclient_call("127.0.0.1", f.port, NULL, wire_api_find(METADATA), 4, &body, 5000,
                                      &arena, &got),
                         -ECONNRESET);
        f.behaviour = BROKER_HOLDS;
        assert_int_equal(
                kclient_call("127.0.0.1", f.port, NULL, wire_api_find(METADATA), 4, &body, 100, &arena, &got),
                -ETIMEDOUT);
}

static int negotiate(struct fixture *f, int16_t key, int16_t max_version, int16_t *ret_version)
{
        const struct metadata_request body = {.topics.n = -1};
        cleanup_with(arena_donep) struct arena arena = {0};
        struct metadata_response got;

        arena_init(&arena, 0);
        return kclient_call_negotiated("127.0.0.1", f->port, "cli", wire_api_find(key), max_version, &body,
                                       5000, &arena, ret_version, &got);
}

static void negotiation_picks_the_highest_version_both_know(void **state)
{
        cleanup_with(fixture_threaded_done) struct fixture f;
        int16_t version = -1;

        (void)state;
        fixture_threaded(&f);
        f.behaviour = BROKER_ANSWERS_UNSUPPORTED_FIRST; /* error 35 to v0, answered at v3 (KIP-511) */
        assert_int_equal(negotiate(&f, METADATA, 12, &version), 0);
        assert_int_equal(version, 9);
        assert_int_equal(negotiate(&f, METADATA, 5, &version), 0);
        assert_int_equal(version, 5);
}

static void negotiation_fails_when_nothing_is_common(void **state)
{
        cleanup_with(fixture_threaded_done) struct fixture f;
        int16_t version = -1;

        (void)state;
        fixture_threaded(&f);
        f.behaviour = BROKER_ANSWERS_UNSUPPORTED_FIRST;
        f.metadata_min = 8;
        assert_int_equal(negotiate(&f, METADATA, 7, &version), -EPROTONOSUPPORT);
        assert_int_equal(negotiate(&f, PRODUCE, 7, &version), -EPROTONOSUPPORT); /* not on the list at all */
        assert_int_equal(version, -1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_asks_and_decodes_into_the_callers_arena),
                cmocka_unit_test(a_host_that_refuses_is_reported_at_once),
                cmocka_unit_test(a_broker_that_closes_or_hangs_ends_the_call),
                cmocka_unit_test(negotiation_picks_the_highest_version_both_know),
                cmocka_unit_test(negotiation_fails_when_nothing_is_common),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
