/* What becomes of a broker whose ZooKeeper session is over (R80–R82, F1). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "session_core.h"

static const struct session_policy reconnect = {
        .policy = SESSION_POLICY_RECONNECT, .max_attempts = 3, .backoff_ms = 500};

static uint32_t dice(uint32_t *seed)
{
        *seed = *seed * 1664525U + 1013904223U;
        return *seed;
}

static void the_policy_shutdown_opens_no_session(void **state)
{
        struct session_policy p = {.policy = SESSION_POLICY_SHUTDOWN, .max_attempts = 3, .backoff_ms = 500};
        struct session_recovery r = {0};

        (void)state;
        assert_int_equal(session_next(&p, &r, 7).verdict, SESSION_NOT_WANTED);
        assert_int_equal(session_next_at_start(&p, &r, 7).verdict, SESSION_TRY);
}

static void after_the_last_attempt_there_is_no_other(void **state)
{
        struct session_recovery r = {0};

        (void)state;
        for (int i = 1; i <= 3; i++) {
                struct session_step s = session_next(&reconnect, &r, 7);

                assert_int_equal(s.verdict, SESSION_TRY);
                assert_int_equal(s.attempt, i);
        }
        assert_int_equal(session_next(&reconnect, &r, 7).verdict, SESSION_EXHAUSTED);
        assert_int_equal(session_next(&reconnect, &r, 7).attempt, 3);
}

static void a_registration_ends_the_count_and_one_that_lasts_the_pauses(void **state)
{
        struct session_recovery r = {0};

        (void)state;
        (void)session_next(&reconnect, &r, 7);
        (void)session_next(&reconnect, &r, UINT32_MAX);
        session_recovered(&r);
        session_lasted(&reconnect, &r, 9999);
        assert_int_equal(session_next(&reconnect, &r, 0).attempt, 1);
        assert_int_equal(r.delay_ms, 500);
        session_recovered(&r);
        session_lasted(&reconnect, &r, 10000);
        assert_int_equal(session_next(&reconnect, &r, 0).attempt, 1);
        assert_int_equal(r.delay_ms, 1);
}

static void while_starting_attempts_are_not_counted_against_the_limit(void **state)
{
        struct session_recovery r = {0};

        (void)state;
        for (int i = 0; i < 10; i++)
                assert_int_equal(session_next_at_start(&reconnect, &r, 7).verdict, SESSION_TRY);
}

/* R81: the sessions of all brokers are lost in the same moment. */
static void a_hundred_brokers_spread_over_the_whole_backoff(void **state)
{
        struct session_policy p = reconnect;
        uint32_t seed = 1, tenths = 0;

        (void)state;
        for (int i = 0; i < 100; i++) {
                struct session_recovery r = {0};
                int64_t delay_ms = session_next(&p, &r, dice(&seed)).delay_ms;

                assert_in_range(delay_ms, 1, 500);
                tenths |= 1U << (delay_ms - 1) / 50;
        }
        assert_int_equal(tenths, (1U << 10) - 1);
}

static void pauses_grow_to_twenty_times_the_backoff_and_no_further(void **state)
{
        struct session_policy p = {
                .policy = SESSION_POLICY_RECONNECT, .max_attempts = INT32_MAX, .backoff_ms = 500};
        struct session_recovery r = {0};
        uint32_t seed = 2;
        int64_t longest = 0;

        (void)state;
        (void)session_next(&p, &r, dice(&seed));
        for (int i = 0; i < 1000; i++) {
                int64_t last = r.delay_ms, now = session_next(&p, &r, dice(&seed)).delay_ms;

                assert_in_range(now, 500, last < 500 ? 1500 : last * 3);
                longest = now > longest ? now : longest;
        }
        assert_in_range(longest, 9000, 10000);
}

static void the_largest_settings_do_not_overflow(void **state)
{
        struct session_policy p = {
                .policy = SESSION_POLICY_RECONNECT, .max_attempts = INT32_MAX, .backoff_ms = 3600000};
        struct session_recovery r = {.attempts = INT32_MAX - 1, .delay_ms = 72000000};

        (void)state;
        assert_in_range(session_next(&p, &r, UINT32_MAX).delay_ms, 3600000, 72000000);
        assert_int_equal(session_next_at_start(&p, &r, UINT32_MAX).attempt, INT32_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_policy_shutdown_opens_no_session),
                cmocka_unit_test(after_the_last_attempt_there_is_no_other),
                cmocka_unit_test(a_registration_ends_the_count_and_one_that_lasts_the_pauses),
                cmocka_unit_test(while_starting_attempts_are_not_counted_against_the_limit),
                cmocka_unit_test(a_hundred_brokers_spread_over_the_whole_backoff),
                cmocka_unit_test(pauses_grow_to_twenty_times_the_backoff_and_no_further),
                cmocka_unit_test(the_largest_settings_do_not_overflow),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
