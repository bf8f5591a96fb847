/* fetcher_core: lanes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replica/fetcher_core.h"

static void an_idle_fetcher_uses_one_lane(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};

        (void)state;
        assert_int_equal(fetch_lanes_place(&l, LANE_ANY, false, 0), LANE_COLD);
        assert_int_equal(fetch_lanes_send(&l, LANE_COLD, 1000), 500);
        assert_false(l.misplaced);
}

static void a_partition_that_is_added_goes_out_at_once(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};

        (void)state;
        (void)fetch_lanes_send(&l, LANE_COLD, 1000);
        assert_int_equal(fetch_lanes_place(&l, LANE_ANY, false, 0), LANE_NEW);
        /* and waits so short that the next one need not wait for it */
        assert_true(fetch_lanes_send(&l, LANE_NEW, 1100) <= 20);
}

static void data_moves_a_partition_to_the_hot_lane(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};

        (void)state;
        (void)fetch_lanes_send(&l, LANE_COLD, 1000);
        fetch_lanes_returned(&l, LANE_COLD, 1100);
        assert_int_equal(fetch_lanes_place(&l, LANE_COLD, true, 0), LANE_HOT);
        assert_int_equal(fetch_lanes_place(&l, LANE_COLD, false, 0), LANE_COLD);
}

static void all_waits_of_a_round_end_together(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};

        (void)state;
        (void)fetch_lanes_send(&l, LANE_COLD, 1000);
        assert_int_equal(fetch_lanes_send(&l, LANE_HOT, 1200), 300);
        fetch_lanes_returned(&l, LANE_HOT, 1300);
        assert_int_equal(fetch_lanes_send(&l, LANE_HOT, 1300), 200);
        assert_int_equal(fetch_lanes_send(&l, LANE_NEW, 1498), 2);
}

static void lanes_wait_for_each_other_to_regroup(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};
        bool regroup;

        (void)state;
        (void)fetch_lanes_send(&l, LANE_COLD, 1000);
        (void)fetch_lanes_place(&l, LANE_ANY, false, 0);
        (void)fetch_lanes_send(&l, LANE_NEW, 1000);
        fetch_lanes_returned(&l, LANE_COLD, 1500);
        assert_false(fetch_lanes_may_send(&l, 1500, &regroup)); /* NEW is still out */
        fetch_lanes_returned(&l, LANE_NEW, 1503);
        assert_true(fetch_lanes_may_send(&l, 1503, &regroup));
        assert_true(regroup);
        assert_int_equal(fetch_lanes_place(&l, LANE_ANY, false, 0), LANE_COLD);
        /* a short round: where partitions came, more will */
        assert_int_equal(fetch_lanes_send(&l, LANE_COLD, 1503), 100);
        fetch_lanes_returned(&l, LANE_COLD, 1603);
        assert_true(fetch_lanes_may_send(&l, 1603, &regroup));
        assert_int_equal(fetch_lanes_send(&l, LANE_COLD, 1603), 500);
}

static void a_lane_that_hangs_holds_up_nobody_for_long(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};
        bool regroup;

        (void)state;
        (void)fetch_lanes_send(&l, LANE_COLD, 1000);
        (void)fetch_lanes_place(&l, LANE_ANY, false, 0);
        (void)fetch_lanes_send(&l, LANE_NEW, 1000);
        fetch_lanes_returned(&l, LANE_NEW, 1500);
        assert_false(fetch_lanes_may_send(&l, 1501, &regroup));
        assert_true(fetch_lanes_may_send(&l, 1500 + 15, &regroup));
        assert_int_equal(fetch_lanes_place(&l, LANE_ANY, false, 0), LANE_NEW); /* COLD hangs */
        assert_true(fetch_lanes_send(&l, LANE_NEW, 1515) >= 1);
}

static void lanes_in_order_are_not_held(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};
        bool regroup;

        (void)state;
        (void)fetch_lanes_send(&l, LANE_COLD, 1000);
        (void)fetch_lanes_send(&l, LANE_HOT, 1000);
        fetch_lanes_returned(&l, LANE_HOT, 1500);
        assert_true(fetch_lanes_may_send(&l, 1500, &regroup));
        assert_false(regroup);
}

static void hot_partitions_are_spread_over_lanes(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};

        (void)state;
        fetch_lanes_resize(&l, 12);
        for (uint32_t shard = 0; shard < 12; shard++)
                assert_int_equal(fetch_lanes_place(&l, LANE_COLD, true, shard), LANE_HOT); /* not worth two */
        fetch_lanes_resize(&l, 200);
        assert_int_equal(l.n_hot, 4);
        assert_int_not_equal(fetch_lanes_place(&l, LANE_COLD, true, 1),
                             fetch_lanes_place(&l, LANE_COLD, true, 2));
        assert_int_equal(fetch_lanes_place(&l, LANE_COLD, true, 1),
                         fetch_lanes_place(&l, LANE_COLD, true, 5));
        fetch_lanes_resize(&l, 1000000);
        assert_int_equal(l.n_hot, FETCH_HOT_LANES_MAX);
}

static void with_all_lanes_out_the_shortest_is_waited_for(void **state)
{
        struct fetch_lanes l = {.wait_max_ms = 500};

        (void)state;
        for (int i = 0; i < N_FETCH_LANES; i++)
                l.busy[i] = true;
        assert_int_equal(fetch_lanes_place(&l, LANE_ANY, false, 0), LANE_NEW);
}

static void heat_passes(void **state)
{
        (void)state;
        assert_true(fetch_lanes_is_hot(1000, 1500));
        assert_false(fetch_lanes_is_hot(1000, 5000));
        assert_false(fetch_lanes_is_hot(INT64_MIN / 2, 5000));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_idle_fetcher_uses_one_lane),
                cmocka_unit_test(a_partition_that_is_added_goes_out_at_once),
                cmocka_unit_test(data_moves_a_partition_to_the_hot_lane),
                cmocka_unit_test(all_waits_of_a_round_end_together),
                cmocka_unit_test(lanes_wait_for_each_other_to_regroup),
                cmocka_unit_test(a_lane_that_hangs_holds_up_nobody_for_long),
                cmocka_unit_test(lanes_in_order_are_not_held),
                cmocka_unit_test(hot_partitions_are_spread_over_lanes),
                cmocka_unit_test(with_all_lanes_out_the_shortest_is_waited_for),
                cmocka_unit_test(heat_passes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
