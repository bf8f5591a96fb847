/* loadgen_partitions: which partitions a run writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "loadgen.h"

static void check(const struct partitions *p, const int32_t *want, int32_t n)
{
        assert_int_equal(p->n, n);
        for (int32_t i = 0; i < n; i++)
                assert_int_equal(p->numbers[i], want[i]);
        assert_int_equal(p->end, want[n - 1] + 1);
}

static void a_list_names_numbers_and_ranges_each_once_in_order(void **state)
{
        struct partitions p;

        (void)state;
        assert_int_equal(partitions_parse("9,3, 5-7\n6", &p), 0);
        check(&p, (int32_t[]){3, 5, 6, 7, 9}, 5);
        partitions_done(&p);
        assert_int_equal(p.n, 0);
}

static void a_bad_list_is_refused(void **state)
{
        static const char *const bad[] = {"", ",", "x", "3-", "-3", "7-5", "1,2x", "1000000", "-1", "1--2"};
        struct partitions p;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(partitions_parse(bad[i], &p), -EINVAL);
}

static void the_first_n_are_counted_from_zero(void **state)
{
        struct partitions p;

        (void)state;
        assert_int_equal(partitions_first(3, &p), 0);
        check(&p, (int32_t[]){0, 1, 2}, 3);
        partitions_done(&p);
}

static void a_file_may_have_one_number_a_line(void **state)
{
        char path[] = "/tmp/test-loadgen-XXXXXX";
        struct partitions p;
        int fd = mkstemp(path);

        (void)state;
        assert_true(fd >= 0);
        assert_int_equal(write(fd, "4\n2\n", 4), 4);
        assert_int_equal(close(fd), 0);
        assert_int_equal(partitions_read(path, &p), 0);
        check(&p, (int32_t[]){2, 4}, 2);
        partitions_done(&p);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(partitions_read(path, &p), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_list_names_numbers_and_ranges_each_once_in_order),
                cmocka_unit_test(a_bad_list_is_refused),
                cmocka_unit_test(the_first_n_are_counted_from_zero),
                cmocka_unit_test(a_file_may_have_one_number_a_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
