/* Which lines of a state-change log count, and for what (R52, R63). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/state_log.h"

#define TIME "2013-04-01 10:00:00,123"

static bool parse(const char *line, struct state_change *ret)
{
        return state_log_parse(line, strlen(line), ret);
}

static void a_line_needs_a_time_and_a_partition(void **state)
{
        static const char *const dropped[] = {
                "",
                "[" TIME "] TRACE nothing of a partition",
                "TRACE partition [t,0] without a time",
                "\tat kafka.Foo [t,0]",
                "[2013-04-01 10:00:00.123] [t,0]", /* a full stop */
                "[2013-04-01 10:00:00,12] [t,0]",
                "[" TIME "] [t 0]",
                "[" TIME "] [t,]",
                "[" TIME "] [,0]",
                "[" TIME "] [t,0",
                "[" TIME "] [t,",
                "[" TIME "] [t",
                "[" TIME "] [",
                "[" TIME "] [t,x]",
                "[" TIME "] [t,-1]",
                "[" TIME "] [t!,1]",
        };
        struct state_change c;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(dropped); i++)
                assert_false(parse(dropped[i], &c));
}

static void the_first_time_and_the_first_partition_are_taken(void **state)
{
        struct state_change c;

        (void)state;
        assert_true(parse("1[" TIME "] x [not one] [T.o_p-1,  42] at 2014-04-01 10:00:00,123 [other,1]", &c));
        assert_memory_equal(c.time, TIME, STATE_LOG_TIME_LEN);
        assert_int_equal(c.topic_len, 7);
        assert_memory_equal(c.topic, "T.o_p-1", 7);
        assert_int_equal(c.partition, 42);
}

/* The line is not NUL-terminated: under ASan a step too far is an error. */
static void nothing_beyond_the_line_is_read(void **state)
{
        const char whole[] = "[" TIME "] [topic,12]";
        struct state_change c;

        (void)state;
        for (size_t len = 0; len < sizeof(whole); len++) {
                char *exact = malloc(len + 1);

                assert_non_null(exact);
                memcpy(exact + 1, whole, len);
                assert_int_equal(state_log_parse(exact + 1, len, &c), len == sizeof(whole) - 1);
                free(exact);
        }
}

static void a_number_without_end_is_no_partition_of_ours(void **state)
{
        struct state_log_filter f = {
                .topic = "t", .partitions = (int32_t[]){0, INT32_MAX}, .n_partitions = 2};
        struct state_change c;

        (void)state;
        memcpy(f.start, "0000-00-00 00:00:00,000", sizeof(f.start));
        memcpy(f.end, "9999-12-31 23:59:59,999", sizeof(f.end));
        assert_true(parse("[" TIME "] [t,2147483647]", &c));
        assert_true(state_log_wanted(&f, &c));
        assert_true(parse("[" TIME "] [t,99999999999999999999999999]", &c));
        assert_false(state_log_wanted(&f, &c));
}

static void a_topic_is_compared_whole(void **state)
{
        struct state_log_filter f = {.topic = "to", .end = "9999-12-31 23:59:59,999"};
        struct state_change c;

        (void)state;
        memcpy(f.start, "0000-00-00 00:00:00,000", sizeof(f.start));
        assert_true(parse("[" TIME "] [topic,1]", &c));
        assert_false(state_log_wanted(&f, &c));
        assert_true(parse("[" TIME "] [to,1]", &c));
        assert_true(state_log_wanted(&f, &c));
        assert_true(parse("[" TIME "] [t,1]", &c));
        assert_false(state_log_wanted(&f, &c));
}

static void a_time_cut_short_is_completed(void **state)
{
        static const char rest[] = "9999-12-31 23:59:59,999";
        static const char *const wrong[] = {"", "x", "2013-04-01T10", "2013-04-01 10:00:00,1234", "20130401"};
        char time[STATE_LOG_TIME_LEN + 1];

        (void)state;
        assert_int_equal(state_log_time(TIME, rest, time), 0);
        assert_string_equal(time, TIME);
        assert_int_equal(state_log_time("2013-04-01 1", rest, time), 0);
        assert_string_equal(time, "2013-04-01 13:59:59,999");
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
                assert_int_equal(state_log_time(wrong[i], rest, time), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_line_needs_a_time_and_a_partition),
                cmocka_unit_test(the_first_time_and_the_first_partition_are_taken),
                cmocka_unit_test(nothing_beyond_the_line_is_read),
                cmocka_unit_test(a_number_without_end_is_no_partition_of_ours),
                cmocka_unit_test(a_topic_is_compared_whole),
                cmocka_unit_test(a_time_cut_short_is_completed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
