#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/replica_assignment.h"

static const int32_t five[] = {0, 1, 2, 3, 4};

static void check_assignment(const struct assignment_request *r, const int32_t *expected)
{
        char error[ASSIGNMENT_TEXT_SIZE];
        int32_t ids[64];
        enum assignment_fault fault;

        assert_int_equal(assignment_make(r, ids, error, &fault), 0);
        assert_memory_equal(ids, expected,
                            (size_t)r->n_partitions * (size_t)r->replication_factor * sizeof(int32_t));
}

/* The example of Kafka's own source: 10 partitions, RF 3, 5 brokers, everything from 0. */
static void replicas_are_placed_as_kafka_places_them(void **state)
{
        const int32_t expected[] = {0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 0, 4, 0, 1,
                                    0, 2, 3, 1, 3, 4, 2, 4, 0, 3, 0, 1, 4, 1, 2};
        struct assignment_request r = {
                .brokers = five, .n_brokers = 5, .n_partitions = 10, .replication_factor = 3};

        (void)state;
        check_assignment(&r, expected);
}

static void a_random_start_turns_the_wheel(void **state)
{
        const int32_t expected[] = {3, 0, 1, 4, 1, 2};
        struct assignment_request r = {.brokers = five,
                                       .n_brokers = 5,
                                       .n_partitions = 2,
                                       .replication_factor = 3,
                                       .start_index = 8,
                                       .start_shift = 5};

        (void)state;
        check_assignment(&r, expected);
}

static void added_partitions_go_on_where_the_old_ones_ended(void **state)
{
        /* partition 5 is the sixth: the shift has grown by one */
        const int32_t expected[] = {0, 2, 3};
        struct assignment_request r = {.brokers = five,
                                       .n_brokers = 5,
                                       .n_partitions = 1,
                                       .replication_factor = 3,
                                       .start_partition = 5};

        (void)state;
        check_assignment(&r, expected);
}

static void one_broker_takes_everything(void **state)
{
        const int32_t one[] = {42}, expected[] = {42, 42, 42};
        struct assignment_request r = {.brokers = one,
                                       .n_brokers = 1,
                                       .n_partitions = 3,
                                       .replication_factor = 1,
                                       .start_index = 17,
                                       .start_shift = 9};

        (void)state;
        check_assignment(&r, expected);
}

static void replicas_of_a_partition_are_on_different_brokers(void **state)
{
        char error[ASSIGNMENT_TEXT_SIZE];
        int32_t ids[5 * 40];
        enum assignment_fault fault;

        (void)state;
        for (uint32_t start = 0; start < 7; start++)
                for (int32_t rf = 1; rf <= 5; rf++) {
                        struct assignment_request r = {.brokers = five,
                                                       .n_brokers = 5,
                                                       .n_partitions = 40,
                                                       .replication_factor = rf,
                                                       .start_index = start,
                                                       .start_shift = start * 3};

                        assert_int_equal(assignment_make(&r, ids, error, &fault), 0);
                        for (int32_t p = 0; p < 40; p++)
                                for (int32_t i = 0; i < rf; i++)
                                        for (int32_t k = 0; k < i; k++)
                                                assert_int_not_equal(ids[p * rf + i], ids[p * rf + k]);
                }
}

static void preferred_leaders_are_spread_evenly(void **state)
{
        char error[ASSIGNMENT_TEXT_SIZE];
        int32_t ids[3 * 50], leads[5] = {0};
        enum assignment_fault fault;
        struct assignment_request r = {.brokers = five,
                                       .n_brokers = 5,
                                       .n_partitions = 50,
                                       .replication_factor = 3,
                                       .start_index = 3,
                                       .start_shift = 1};

        (void)state;
        assert_int_equal(assignment_make(&r, ids, error, &fault), 0);
        for (int p = 0; p < 50; p++)
                leads[ids[p * 3]]++;
        for (int b = 0; b < 5; b++)
                assert_int_equal(leads[b], 10);
}

static void refusals_say_what_kafka_says(void **state)
{
        const struct {
                int32_t partitions, rf;
                enum assignment_fault fault;
                const char *text;
        } rows[] = {
                {0, 1, ASSIGNMENT_BAD_PARTITIONS, "number of partitions must be larger than 0"},
                {-3, 1, ASSIGNMENT_BAD_PARTITIONS, "number of partitions must be larger than 0"},
                {1, 0, ASSIGNMENT_BAD_FACTOR, "replication factor must be larger than 0"},
                {1, 6, ASSIGNMENT_BAD_FACTOR, "replication factor: 6 larger than available brokers: 5"},
        };
        char error[ASSIGNMENT_TEXT_SIZE];
        int32_t ids[8];
        enum assignment_fault fault;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct assignment_request r = {.brokers = five,
                                               .n_brokers = 5,
                                               .n_partitions = rows[i].partitions,
                                               .replication_factor = rows[i].rf};

                assert_int_equal(assignment_make(&r, ids, error, &fault), -EINVAL);
                assert_int_equal(fault, rows[i].fault);
                assert_string_equal(error, rows[i].text);
        }
}

static void an_assignment_by_hand_is_checked(void **state)
{
        const struct {
                int32_t ids[3], n, first_factor;
                int r;
                const char *text;
        } rows[] = {
                {{0, 1, 2}, 3, 3, 0, NULL},
                {{0}, 0, 3, -EINVAL, "replication factor must be larger than 0"},
                {{1, 2, 1}, 3, 3, -EINVAL, "duplicate brokers in replica assignment: 1,2,1"},
                {{1, 9, 2},
                 3,
                 3,
                 -EINVAL,
                 "some specified brokers not available. specified brokers: 1,9,2 available broker: "
                 "0,1,2,3,4"},
                {{1, 2}, 2, 3, -EINVAL, "partition 7 has different replication factor: 1,2"},
        };
        char error[ASSIGNMENT_TEXT_SIZE];
        enum assignment_fault fault;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(assignment_check(7, rows[i].ids, rows[i].n, rows[i].first_factor, five, 5,
                                                  error, &fault),
                                 rows[i].r);
                if (rows[i].text)
                        assert_string_equal(error, rows[i].text);
        }
}

static void topic_names_follow_kafkas_rule(void **state)
{
        const char *good[] = {"a", "a.b", "A_b-9", "...", "__consumer_offsets"};
        const char *bad[] = {"", ".", "..", "a b", "a/b", "caf\xc3\xa9", "a\nb"};
        char error[ASSIGNMENT_TEXT_SIZE], longest[251];

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_int_equal(topic_name_check(good[i], strlen(good[i]), error), 0);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(topic_name_check(bad[i], strlen(bad[i]), error), -EINVAL);
        memset(longest, 'x', sizeof(longest));
        assert_int_equal(topic_name_check(longest, 249, error), 0);
        assert_int_equal(topic_name_check(longest, 250, error), -EINVAL);
        assert_true(topic_names_collide("a.b_c", "a_b.c"));
        assert_true(topic_names_collide("same", "same"));
        assert_false(topic_names_collide("a.b", "a.bc"));
        assert_false(topic_names_collide("a.b", "a-b"));
}

static void names_that_collide_fold_into_one(void **state)
{
        char a[TOPIC_NAME_FOLDED_SIZE], b[TOPIC_NAME_FOLDED_SIZE], longest[400];

        (void)state;
        topic_name_fold("a.b_c", a);
        topic_name_fold("a_b.c", b);
        assert_string_equal(a, b);
        topic_name_fold("a-b_c", b);
        assert_string_not_equal(a, b);
        memset(longest, '.', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        topic_name_fold(longest, a);
        assert_int_equal(strlen(a), TOPIC_NAME_FOLDED_SIZE - 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(replicas_are_placed_as_kafka_places_them),
                cmocka_unit_test(a_random_start_turns_the_wheel),
                cmocka_unit_test(added_partitions_go_on_where_the_old_ones_ended),
                cmocka_unit_test(one_broker_takes_everything),
                cmocka_unit_test(replicas_of_a_partition_are_on_different_brokers),
                cmocka_unit_test(preferred_leaders_are_spread_evenly),
                cmocka_unit_test(refusals_say_what_kafka_says),
                cmocka_unit_test(an_assignment_by_hand_is_checked),
                cmocka_unit_test(topic_names_follow_kafkas_rule),
                cmocka_unit_test(names_that_collide_fold_into_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
