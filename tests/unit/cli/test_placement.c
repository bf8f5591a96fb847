/* Replica lists as people write them. The algorithm's own test is in tests/unit/base. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/placement.h"

static int setup(void **state)
{
        static struct arena a;

        arena_init(&a, 0);
        *state = &a;
        return 0;
}

static int teardown(void **state)
{
        arena_done(*state);
        return 0;
}

static void a_list_is_read_partition_by_partition(void **state)
{
        struct znode_topic t;

        assert_int_equal(placement_parse(*state, "1:2, 2 : 3,3:1", 4, &t), 0);
        assert_int_equal(t.n_partitions, 3);
        for (int32_t i = 0; i < 3; i++) {
                assert_int_equal(t.partitions[i].partition, 4 + i);
                assert_int_equal(t.partitions[i].n_replicas, 2);
                assert_int_equal(t.partitions[i].replicas[0], i + 1);
                assert_int_equal(t.partitions[i].replicas[1], (i + 1) % 3 + 1);
        }
}

static void anything_else_is_refused(void **state)
{
        static const char *const wrong[] = {"",     ",",   "1:",  ":1", "1,",
                                            "1::2", "1:a", "1;2", "-1", "1:99999999999"};
        struct znode_topic t;

        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                assert_int_equal(placement_parse(*state, wrong[i], 0, &t), -EINVAL);
}

static void every_partition_of_a_list_is_checked(void **state)
{
        static const struct {
                const char *list, *why;
        } rows[] = {
                {"1:2,2:2", "duplicate brokers in replica assignment: 2,2"},
                {"1:2,2:9",
                 "some specified brokers not available. specified brokers: 2,9 available broker: 1,2,3"},
                {"1:2,2", "partition 1 has different replication factor: 2"},
        };
        const int32_t brokers[] = {1, 2, 3};
        char error[ASSIGNMENT_TEXT_SIZE];
        struct znode_topic t;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(placement_parse(*state, rows[i].list, 0, &t), 0);
                assert_int_equal(placement_check(&t, brokers, 3, error), -EINVAL);
                assert_string_equal(error, rows[i].why);
        }
        assert_int_equal(placement_parse(*state, "1:2,3:1", 0, &t), 0);
        assert_int_equal(placement_check(&t, brokers, 3, error), 0);
}

static void new_partitions_have_their_numbers_and_replicas(void **state)
{
        const int32_t brokers[] = {10, 20, 30};
        const struct assignment_request r = {.brokers = brokers,
                                             .n_brokers = 3,
                                             .n_partitions = 2,
                                             .replication_factor = 2,
                                             .start_partition = 1};
        struct assignment_request too_many = r;
        char error[ASSIGNMENT_TEXT_SIZE];
        struct znode_topic t;

        assert_int_equal(placement_make(*state, &r, &t, error), 0);
        assert_int_equal(t.n_partitions, 2);
        assert_int_equal(t.partitions[0].partition, 1);
        assert_int_equal(t.partitions[0].replicas[0], 20);
        assert_int_equal(t.partitions[0].replicas[1], 30);
        assert_int_equal(t.partitions[1].partition, 2);
        assert_int_equal(t.partitions[1].replicas[0], 30);
        assert_int_equal(t.partitions[1].replicas[1], 10);

        too_many.replication_factor = 4;
        assert_int_equal(placement_make(*state, &too_many, &t, error), -EINVAL);
        assert_string_equal(error, "replication factor: 4 larger than available brokers: 3");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_list_is_read_partition_by_partition),
                cmocka_unit_test(anything_else_is_refused),
                cmocka_unit_test(every_partition_of_a_list_is_checked),
                cmocka_unit_test(new_partitions_have_their_numbers_and_replicas),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
