/* throttle_core: the token bucket of replication. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replica/throttle_core.h"

#define SECOND INT64_C(1000000)
#define MIB    INT64_C(1048576)

static struct throttle_core at_rate(int64_t rate)
{
        struct throttle_core t;

        throttle_core_init(&t, 0);
        throttle_core_set_rate(&t, rate, 0);
        return t;
}

/* Takes all it can get of @want at a time for @us, looking again when it was told to: how much. */
static int64_t drink(struct throttle_core *t, int64_t want, int64_t us)
{
        int64_t sum = 0, now = t->at_us, until = now + us;

        while (now < until) {
                int64_t n = throttle_core_take(t, want, now), ms = throttle_core_wait_ms(t, want, now);

                sum += n;
                if (n == 0)
                        assert_true(ms > 0 && ms <= THROTTLE_MAX_WAIT_MS); /* no busy loop, no long sleep */
                now += ms * 1000;
        }
        return sum;
}

static void without_a_limit_everything_goes(void **state)
{
        struct throttle_core t;

        (void)state;
        throttle_core_init(&t, 0);
        assert_int_equal(throttle_core_take(&t, MIB, 0), MIB);
        assert_int_equal(throttle_core_wait_ms(&t, MIB, 0), 0);
        throttle_core_give_back(&t, -5 * MIB);
        assert_int_equal(throttle_core_take(&t, MIB, 0), MIB);
        throttle_core_set_rate(&t, INT64_MAX, 0);
        assert_int_equal(throttle_core_take(&t, INT64_MAX, 0), INT64_MAX);
}

static void over_time_the_rate_goes(void **state)
{
        static const int64_t rates[] = {1, 7, 999, 100 * 1000, 2 * MIB, 1000 * MIB, INT64_C(1) << 40};
        static const int64_t wants[] = {1, 4096, MIB};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
                for (size_t k = 0; k < ARRAY_SIZE(wants); k++) {
                        struct throttle_core t = at_rate(rates[i]);

                        if (rates[i] / wants[k] < 1000) /* else it would be a million calls */
                                assert_in_range(drink(&t, wants[k], 20 * SECOND), 19 * rates[i],
                                                21 * rates[i]);
                }
}

static void crumbs_are_not_handed_out(void **state)
{
        struct throttle_core t = at_rate(1000);

        (void)state;
        assert_int_equal(throttle_core_take(&t, 500, 99 * 1000), 0);
        assert_int_equal(throttle_core_wait_ms(&t, 500, 99 * 1000), 2); /* rounded up */
        assert_int_equal(throttle_core_take(&t, 500, 101 * 1000), 101);
        assert_int_equal(throttle_core_take(&t, 3, 104 * 1000), 3); /* unless no more is wanted */
}

static void what_was_not_used_is_given_back(void **state)
{
        struct throttle_core t = at_rate(1000);

        (void)state;
        assert_int_equal(throttle_core_take(&t, 600, SECOND), 600);
        throttle_core_give_back(&t, 600);
        assert_int_equal(throttle_core_take(&t, 5000, SECOND), 1000);
}

/* A batch is never cut: it goes, and is waited for afterwards. */
static void a_batch_larger_than_the_rate_goes_and_is_paid_for(void **state)
{
        struct throttle_core t = at_rate(1000);
        int64_t taken;

        (void)state;
        taken = throttle_core_take(&t, MIB, SECOND);
        assert_int_equal(taken, 1000);
        throttle_core_give_back(&t, taken - 10000); /* ten seconds' worth */
        assert_int_equal(throttle_core_take(&t, 1, 9 * SECOND), 0);
        assert_int_equal(throttle_core_wait_ms(&t, MIB, 9 * SECOND), THROTTLE_MAX_WAIT_MS);
        assert_int_equal(throttle_core_take(&t, MIB, 10 * SECOND + SECOND / 10), 100);
}

static void a_rest_saves_up_no_more_than_a_second(void **state)
{
        struct throttle_core t = at_rate(1000);

        (void)state;
        assert_int_equal(throttle_core_take(&t, MIB, 3600 * SECOND), 1000);
        assert_int_equal(throttle_core_take(&t, MIB, 3600 * SECOND), 0);
        throttle_core_set_rate(&t, INT64_C(1) << 40, 3600 * SECOND);
        assert_int_equal(throttle_core_take(&t, INT64_MAX, INT64_MAX / 2), INT64_C(1) << 40);
}

static void a_changed_rate_holds_at_once(void **state)
{
        struct throttle_core t = at_rate(100);

        (void)state;
        throttle_core_give_back(&t, -10000);
        assert_int_equal(throttle_core_take(&t, 1, SECOND), 0);
        throttle_core_set_rate(&t, 100 * MIB, SECOND);
        assert_true(throttle_core_take(&t, MIB, SECOND + SECOND / 10) > 0);
        throttle_core_set_rate(&t, THROTTLE_NONE, SECOND);
        assert_int_equal(throttle_core_take(&t, MIB, SECOND), MIB);
        throttle_core_set_rate(&t, 10, SECOND); /* and what went without a limit is not held against it */
        assert_int_equal(throttle_core_take(&t, MIB, 2 * SECOND), 10);
}

static void a_rate_of_zero_stops_it(void **state)
{
        struct throttle_core t = at_rate(0);

        (void)state;
        assert_int_equal(throttle_core_take(&t, 1, 3600 * SECOND), 0);
        assert_int_equal(throttle_core_wait_ms(&t, 1, 3600 * SECOND), THROTTLE_MAX_WAIT_MS);
}

static void a_clock_that_stands_still_or_goes_back_harms_nothing(void **state)
{
        struct throttle_core t = at_rate(1000);

        (void)state;
        assert_int_equal(throttle_core_take(&t, 1000, SECOND), 1000);
        assert_int_equal(throttle_core_take(&t, 1000, 0), 0);
        assert_int_equal(throttle_core_take(&t, 1000, 2 * SECOND), 1000);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_limit_everything_goes),
                cmocka_unit_test(over_time_the_rate_goes),
                cmocka_unit_test(crumbs_are_not_handed_out),
                cmocka_unit_test(what_was_not_used_is_given_back),
                cmocka_unit_test(a_batch_larger_than_the_rate_goes_and_is_paid_for),
                cmocka_unit_test(a_rest_saves_up_no_more_than_a_second),
                cmocka_unit_test(a_changed_rate_holds_at_once),
                cmocka_unit_test(a_rate_of_zero_stops_it),
                cmocka_unit_test(a_clock_that_stands_still_or_goes_back_harms_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
