#include "log_testing.h"

#include <errno.h>

#include "log/partition_log_internal.h"

static struct partition_log *log_of(void **state, int64_t retention_ms, int64_t retention_bytes)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.segment_bytes = 1000;
        c.retention_ms = retention_ms;
        c.retention_bytes = retention_bytes;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 40, (struct made){.value_bytes = 100, .timestamp_ms = 1000}, 1); /* 1000 … 1390 */
        append_many(l, 10, (struct made){.value_bytes = 100, .timestamp_ms = 2000}, 2); /* 2000 … 2090 */
        return l;
}

static void segments_whose_time_is_over_go(void **state)
{
        struct partition_log *l = log_of(state, 500, -1);
        int n;
        int64_t end, start;
        int32_t epoch;

        assert_int_equal(partition_log_retain(l, 1500, 50), 0);
        n = partition_log_retain(l, 1700, 50); /* what ends before 1200: records 0 … 19 */
        assert_in_range(n, 1, 4);
        start = partition_log_start_offset(l);
        assert_in_range(start, 10, 20);
        check_readable(l, 1 << 20);
        /* the epoch in which the log begins now begins with it */
        partition_log_end_offset_for_epoch(l, 1, &epoch, &end);
        assert_int_equal(end, 40);
        partition_log_end_offset_for_epoch(l, 0, &epoch, &end);
        assert_int_equal(end, start);
        partition_log_free(l);
}

/* KAFKA-5634 */
static void nothing_above_the_high_watermark_goes(void **state)
{
        struct partition_log *l = log_of(state, 500, 0);

        assert_int_equal(partition_log_retain(l, 1000000, 3), 0);
        assert_true(partition_log_retain(l, 1000000, 25) > 0);
        assert_true(partition_log_start_offset(l) <= 25);
        assert_int_equal(check_readable(l, 1 << 20), 50 - partition_log_start_offset(l));
        partition_log_free(l);
}

static void the_active_segment_goes_by_time_once_an_empty_one_stands_behind_it(void **state)
{
        struct partition_log *l = log_of(state, 500, -1);

        assert_true(partition_log_retain(l, 1000000, 49) > 0); /* the last record is not replicated yet */
        assert_int_equal(partition_log_end_offset(l), 50);
        assert_true(partition_log_start_offset(l) < 50);
        assert_int_equal(partition_log_retain(l, 1000000, 50), 1);
        assert_int_equal(partition_log_start_offset(l), 50);
        assert_int_equal(partition_log_size_bytes(l), 0);
        assert_int_equal(partition_log_retain(l, 1000000, 50), 0);
        append_many(l, 1, (struct made){.timestamp_ms = 1000000}, 2);
        assert_int_equal(partition_log_end_offset(l), 51);
        partition_log_free(l);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        assert_int_equal(partition_log_start_offset(l), 50);
        assert_int_equal(check_readable(l, 1 << 20), 1);
        partition_log_free(l);
}

static void the_oldest_segments_go_when_the_log_is_too_large(void **state)
{
        struct partition_log *l = log_of(state, -1, 3000);

        assert_true(partition_log_retain(l, 1000000, 50) > 0);
        assert_true(partition_log_size_bytes(l) >= 3000);
        assert_true(partition_log_size_bytes(l) < 4000);
        check_readable(l, 1 << 20);
        partition_log_free(l);
}

static void deleted_files_are_renamed_and_unlinked_later_or_at_the_next_start(void **state)
{
        struct partition_log *l = log_of(state, -1, 3000);
        size_t n = (size_t)partition_log_retain(l, 1000000, 50);

        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log.deleted"), n);
        assert_int_equal(partition_log_reap(l), n);
        assert_int_equal(partition_log_reap(l), 0);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".deleted"), 0);

        append_many(l, 20, (struct made){.value_bytes = 100}, 2);
        assert_true(partition_log_retain(l, 1000000, 70) > 0);
        partition_log_unref(l);
        assert_true(count_files(tmpdir_path(state, "t-0"), ".deleted") > 0);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".deleted"), 0);
        check_readable(l, 1 << 20);
        partition_log_free(l);
}

/* A reader that found its segment just before retention renamed, and even unlinked, its files. */
static void a_reader_of_a_deleted_segment_reads_on_or_is_told_so(void **state)
{
        struct partition_log *l = log_of(state, -1, 3000);
        cleanup_with(buf_donep) struct buf b = {0};
        struct batch_meta meta;
        int64_t next;
        struct segment *s = log_segment_for(l, 0, &next);

        assert_true(partition_log_retain(l, 1000000, 50) > 0);
        assert_int_equal(segment_locate(s, 0, &meta), 0);
        assert_int_equal(segment_read(s, meta.position, (size_t)meta.size, &b), 0);
        assert_true(partition_log_reap(l) > 0);
        assert_int_equal(segment_locate(s, 0, &meta), -ENOENT);
        segment_unref(s);
        partition_log_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, tmpdir_setup, tmpdir_teardown)
                T(segments_whose_time_is_over_go),
                T(nothing_above_the_high_watermark_goes),
                T(the_active_segment_goes_by_time_once_an_empty_one_stands_behind_it),
                T(the_oldest_segments_go_when_the_log_is_too_large),
                T(deleted_files_are_renamed_and_unlinked_later_or_at_the_next_start),
                T(a_reader_of_a_deleted_segment_reads_on_or_is_told_so),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
