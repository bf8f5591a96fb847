#include "log_testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct partition_log *log_of(void **state, int n, struct made m)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.segment_bytes = 4000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, n, m, 0);
        return l;
}

static void a_read_begins_with_the_batch_that_contains_the_offset(void **state)
{
        struct partition_log *l = log_of(state, 300, (struct made){.n_records = 3});
        int64_t first, last;

        for (int64_t o = 0; o < 900; o++) {
                read_range(l, o, 900, 1, true, &first, &last);
                assert_int_equal(first, o / 3 * 3);
                assert_int_equal(last, first + 2);
        }
        assert_int_equal(check_readable(l, 1), 300);
        assert_int_equal(check_readable(l, 1 << 20), 300);
        partition_log_free(l);
}

static void a_read_gives_no_batch_that_reaches_beyond_the_bound(void **state)
{
        struct partition_log *l = log_of(state, 20, (struct made){.n_records = 3});
        int64_t first, last;

        for (int64_t bound = 0; bound <= 60; bound++) {
                read_range(l, 0, bound, 1 << 20, true, &first, &last);
                assert_int_equal(last + 1, bound / 3 == 0 ? 0 : bound / 3 * 3);
                assert_int_equal(first, bound < 3 ? -1 : 0);
        }
        read_range(l, 30, 30, 1 << 20, true, &first, &last);
        assert_int_equal(first, -1);
        read_range(l, 0, 1000, 1 << 20, true, &first, &last); /* a bound beyond the end is the end */
        assert_int_equal(last, 59);
        partition_log_free(l);
}

static void a_read_is_bounded_by_bytes_but_gives_one_batch_when_asked_to(void **state)
{
        struct partition_log *l = log_of(state, 5, (struct made){.value_bytes = 500});
        cleanup_with(buf_donep) struct buf b = {0};
        int64_t first, last;
        size_t n = 99;

        read_range(l, 0, 5, 10, true, &first, &last);
        assert_int_equal(last, 0);
        read_range(l, 0, 5, 10, false, &first, &last);
        assert_int_equal(first, -1);
        read_range(l, 0, 5, 1200, false, &first, &last);
        assert_int_equal(last, 1);
        assert_int_equal(buf_append_str(&b, "before"), 0);
        assert_int_equal(partition_log_read(l, 4, 5, 1 << 20, true, &b, &n), 0);
        assert_int_equal(b.len, 6 + n);
        assert_memory_equal(b.data, "before", 6);
        partition_log_free(l);
}

static void an_offset_outside_the_log_is_refused(void **state)
{
        struct partition_log *l = log_of(state, 5, (struct made){0});
        cleanup_with(buf_donep) struct buf b = {0};
        size_t n = 99;

        assert_int_equal(partition_log_read(l, 6, 6, 100, true, &b, &n), -ERANGE);
        assert_int_equal(partition_log_read(l, -1, 6, 100, true, &b, &n), -ERANGE);
        assert_int_equal(n, 99);
        assert_int_equal(partition_log_read(l, 5, 5, 100, true, &b, &n), 0);
        assert_int_equal(n, 0);
        partition_log_free(l);
}

static void bytes_between_counts_what_reads_would_find(void **state)
{
        struct partition_log *l = log_of(state, 200, (struct made){.n_records = 2});

        for (int64_t from = 0; from <= 400; from += 13) {
                for (int64_t to = 0; to <= 400; to += 7) {
                        int64_t at = from, sum = 0;

                        while (at < to) {
                                cleanup_with(buf_donep) struct buf b = {0};
                                struct record_batch_iter it;
                                struct record_batch batch;
                                size_t n = 0;

                                assert_int_equal(partition_log_read(l, at, to, 1 << 20, true, &b, &n), 0);
                                if (n == 0)
                                        break;
                                sum += (int64_t)n;
                                it = record_batch_iter(b.data, b.len);
                                while (record_batch_iter_next(&it, &batch) > 0)
                                        at = record_batch_last_offset(&batch) + 1;
                        }
                        assert_int_equal(partition_log_bytes_between(l, from, to), sum);
                }
        }
        assert_int_equal(partition_log_bytes_between(l, 0, 1000), partition_log_size_bytes(l));
        partition_log_free(l);
}

/* Change every byte of every index: answers stay right. */
static void damaged_indexes_never_give_a_wrong_answer(void **state)
{
        static const char *const suffixes[] = {".index", ".timeindex"};
        struct log_config c = small_config();

        partition_log_free(log_of(state, 60, (struct made){.n_records = 2, .timestamp_ms = 1000}));
        c.segment_bytes = 4000;
        for (size_t s = 0; s < ARRAY_SIZE(suffixes); s++) {
                cleanup_with(buf_donep) struct buf good = {0};
                char path[512];

                (void)snprintf(path, sizeof(path), "%s/00000000000000000000%s", tmpdir_path(state, "t-0"),
                               suffixes[s]);
                file_read(path, &good);
                assert_true(good.len > 50);
                for (size_t i = 0; i < good.len; i++) {
                        struct partition_log *l;
                        int64_t offset, timestamp;

                        good.data[i] ^= (uint8_t)(1 << (i % 8));
                        file_write(path, good.data, good.len);
                        l = open_log(tmpdir_path(state, "t-0"), &c, 0, true);
                        assert_int_equal(check_readable(l, 1), 60);
                        for (int64_t b = 0; b < 60; b += 7) {
                                assert_int_equal(partition_log_find_timestamp(l, 1000 + b * 10, 120, &offset,
                                                                              &timestamp),
                                                 0);
                                assert_int_equal(offset, b * 2);
                                assert_int_equal(timestamp, 1000 + b * 10);
                        }
                        partition_log_free(l);
                        good.data[i] ^= (uint8_t)(1 << (i % 8));
                }
                file_write(path, good.data, good.len);
        }
}

static void a_log_without_indexes_makes_them_again(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;
        size_t n;

        partition_log_free(log_of(state, 200, (struct made){.n_records = 2, .timestamp_ms = 1000}));
        c.segment_bytes = 4000;
        n = count_files(tmpdir_path(state, "t-0"), ".index");
        assert_true(n > 2);
        while (count_files(tmpdir_path(state, "t-0"), "index") > 0)
                assert_int_equal(unlink(last_file(tmpdir_path(state, "t-0"), "index")), 0);
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, true);
        assert_int_equal(check_readable(l, 1), 200);
        partition_log_free(l);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".index"), n);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".timeindex"), n);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_read_begins_with_the_batch_that_contains_the_offset,
                                                memdir_setup, tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_read_gives_no_batch_that_reaches_beyond_the_bound,
                                                memdir_setup, tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_read_is_bounded_by_bytes_but_gives_one_batch_when_asked_to,
                                                memdir_setup, tmpdir_teardown),
                cmocka_unit_test_setup_teardown(an_offset_outside_the_log_is_refused, memdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(bytes_between_counts_what_reads_would_find, memdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(damaged_indexes_never_give_a_wrong_answer, memdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_log_without_indexes_makes_them_again, memdir_setup,
                                                tmpdir_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
