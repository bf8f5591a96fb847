#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/estimate_core.h"

static void without_a_measured_drain_the_default_is_used_and_said(void **state)
{
        struct znode_drain none[] = {{.replicas = 500, .busy_ms = 10},
                                     {.drained_ms = 1, .replicas = 0, .busy_ms = 5}};
        struct drain_estimate e;

        (void)state;
        drain_estimate(NULL, 0, 1000, &e);
        assert_false(e.measured);
        assert_int_equal(e.ms, ESTIMATE_DEFAULT_BASE_MS + 1000 * 1000 / ESTIMATE_DEFAULT_PER_SECOND);
        drain_estimate(none, 2, 1000, &e); /* not drained, or nothing to drain: neither measures anything */
        assert_false(e.measured);
        drain_estimate(none, 2, 0, &e);
        assert_int_equal(e.ms, 0);
}

static void the_rate_is_that_of_all_measured_drains_together(void **state)
{
        struct znode_drain past[] = {
                {.drained_ms = 1, .replicas = 100, .busy_ms = 100},
                {.drained_ms = 1, .replicas = 10000, .busy_ms = 2000},
        };
        struct drain_estimate e;

        (void)state;
        drain_estimate(past, 2, 2020, &e);
        assert_true(e.measured);
        assert_int_equal(e.drains, 2);
        assert_int_equal(e.rate_milli, 10100 * 1000000LL / 2100);
        assert_int_equal(e.base_ms, 100);
        assert_in_range(e.ms, 519, 520); /* 100 + 2020 / 4.81 a ms */
}

static void only_the_last_ones_count(void **state)
{
        struct znode_drain past[ESTIMATE_DRAINS + 5];
        struct drain_estimate e;

        (void)state;
        for (int i = 0; i < ESTIMATE_DRAINS + 5; i++)
                past[i] = (struct znode_drain){
                        .drained_ms = 1, .replicas = 1000, .busy_ms = i < 5 ? 1000000 : 1000};
        drain_estimate(past, ESTIMATE_DRAINS + 5, 1000, &e);
        assert_int_equal(e.drains, ESTIMATE_DRAINS);
        assert_int_equal(e.ms, 2000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(without_a_measured_drain_the_default_is_used_and_said),
                cmocka_unit_test(the_rate_is_that_of_all_measured_drains_together),
                cmocka_unit_test(only_the_last_ones_count),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
