#include "log_testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct partition_log *open_small(void **state, int64_t recovery_point, bool clean)
{
        struct log_config c = small_config();

        c.segment_bytes = 1000;
        return open_log(tmpdir_path(state, "t-0"), &c, recovery_point, clean);
}

static void empty(const char *dir)
{
        while (count_files(dir, "") > 2)
                assert_int_equal(unlink(last_file(dir, "")), 0);
        assert_int_equal(rmdir(dir), 0);
}

static void a_log_truncated_anywhere_is_as_if_the_rest_had_never_come(void **state)
{
        for (int64_t cut = 0; cut <= 62; cut++) {
                struct partition_log *l = open_small(state, 0, false);
                int64_t end = MIN(cut / 2 * 2, 60), offset, timestamp; /* batches of two go whole */

                append_many(l, 15, (struct made){.n_records = 2, .timestamp_ms = 1000}, 1);
                append_many(l, 15, (struct made){.n_records = 2, .timestamp_ms = 2000}, 2);
                assert_int_equal(partition_log_truncate_to(l, cut), 0);
                assert_int_equal(partition_log_end_offset(l), end);
                assert_int_equal(check_readable(l, 200), end / 2);
                assert_int_equal(partition_log_find_timestamp(l, 2000, 100, &offset, &timestamp), 0);
                assert_int_equal(offset, end > 30 ? 30 : -1);
                assert_int_equal(partition_log_latest_epoch(l), end > 30 ? 2 : end > 0 ? 1 : -1);

                append_many(l, 20, (struct made){.n_records = 3, .timestamp_ms = 3000}, 3);
                assert_int_equal(check_readable(l, 200), end / 2 + 20);
                assert_int_equal(partition_log_find_timestamp(l, 3000, 1000, &offset, &timestamp), 0);
                assert_int_equal(offset, end);
                if (cut % 2) /* with and without a clean shutdown */
                        partition_log_free(l);
                else
                        partition_log_unref(l);
                l = open_small(state, 0, cut % 2);
                assert_int_equal(partition_log_end_offset(l), end + 60);
                assert_int_equal(check_readable(l, 200), end / 2 + 20);
                partition_log_free(l);
                empty(tmpdir_path(state, "t-0"));
        }
}

/* KAFKA-10706 */
static void a_truncation_at_the_end_still_forgets_an_epoch_without_data(void **state)
{
        struct partition_log *l = open_small(state, 0, false);

        append_many(l, 10, (struct made){0}, 1);
        assert_int_equal(partition_log_assign_epoch(l, 4, 10), 0);
        assert_int_equal(partition_log_latest_epoch(l), 4);
        assert_int_equal(partition_log_truncate_to(l, 11), 0);
        assert_int_equal(partition_log_latest_epoch(l), 4);
        assert_int_equal(partition_log_truncate_to(l, 10), 0);
        assert_int_equal(partition_log_latest_epoch(l), 1);
        partition_log_free(l);
        l = open_small(state, 10, true);
        assert_int_equal(partition_log_latest_epoch(l), 1); /* in the file, too */
        partition_log_free(l);
}

/* KAFKA-6492 */
static void an_emptied_segment_is_usable(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.index_interval_bytes = 1;
        c.index_max_bytes = 30 * 12;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        for (int i = 0; i < 5; i++) {
                append_many(l, 27, (struct made){.timestamp_ms = i}, i);
                assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 1);
                assert_int_equal(partition_log_truncate_to(l, 0), 0);
                assert_int_equal(partition_log_end_offset(l), 0);
                assert_int_equal(partition_log_size_bytes(l), 0);
        }
        partition_log_free(l);
}

/* KAFKA-9491 */
static void a_log_that_starts_afresh_has_nothing_of_the_old_one(void **state)
{
        static const int64_t starts[] = {1000, 37, 0, 60, 20};

        for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
                struct partition_log *l = open_small(state, 0, false);
                int64_t first, last;

                append_many(l, 30, (struct made){.n_records = 2, .producer_id = 5}, 1);
                assert_int_equal(partition_log_flush(l), 0);
                assert_int_equal(partition_log_truncate_fully_and_start_at(l, starts[i]), 0);
                assert_int_equal(partition_log_start_offset(l), starts[i]);
                assert_int_equal(partition_log_end_offset(l), starts[i]);
                assert_int_equal(partition_log_latest_epoch(l), -1);
                assert_int_equal(partition_log_recovery_point(l), MIN(starts[i], 60));
                assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 1);
                read_range(l, starts[i], starts[i], 1000, true, &first, &last);
                assert_int_equal(first, -1);

                append_many(l, 30, (struct made){.producer_id = 5, .sequence = 900}, 2);
                partition_log_unref(l);
                l = open_small(state, MIN(starts[i], 60), false);
                assert_int_equal(partition_log_start_offset(l), starts[i]);
                assert_int_equal(partition_log_end_offset(l), starts[i] + 30);
                assert_int_equal(check_readable(l, 100), 30);
                partition_log_free(l);
                empty(tmpdir_path(state, "t-0"));
        }
}

static void a_truncation_below_the_start_starts_afresh(void **state)
{
        struct partition_log *l = open_small(state, 0, false);

        assert_int_equal(partition_log_truncate_fully_and_start_at(l, 100), 0);
        append_many(l, 5, (struct made){0}, 1);
        assert_int_equal(partition_log_truncate_to(l, 50), 0);
        assert_int_equal(partition_log_start_offset(l), 50);
        assert_int_equal(partition_log_end_offset(l), 50);
        assert_int_equal(partition_log_truncate_to(l, -1), -EINVAL);
        partition_log_free(l);
}

/* The checkpoint says 60, a truncation to 20 came after it, and what was then written reached the disk only
 * in part. */
static void what_is_written_after_a_truncation_below_the_recovery_point_is_recovered(void **state)
{
        struct partition_log *l = open_small(state, 0, false);
        char path[512];

        append_many(l, 60, (struct made){.value_bytes = 40}, 1);
        assert_int_equal(partition_log_flush(l), 0);
        assert_int_equal(partition_log_truncate_to(l, 20), 0);
        assert_int_equal(partition_log_recovery_point(l), 20);
        append_many(l, 6, (struct made){.value_bytes = 40}, 2);
        partition_log_unref(l);
        (void)snprintf(path, sizeof(path), "%s", last_file(tmpdir_path(state, "t-0"), ".log"));
        assert_int_equal(truncate(path, file_size(path) - 5), 0);
        l = open_small(state, 60, false);
        assert_int_equal(partition_log_end_offset(l), 25);
        assert_int_equal(check_readable(l, 100), 25);
        partition_log_free(l);
}

/* KIP-101 scenario 2: both crash, the follower's unreplicated tail is of an epoch the new leader never had.
 */
static void two_logs_that_diverged_converge_by_their_epochs(void **state)
{
        struct partition_log *a = open_log(tmpdir_path(state, "a-0"), NULL, 0, false);
        struct partition_log *b = open_log(tmpdir_path(state, "b-0"), NULL, 0, false);
        struct buf data = {0};
        struct log_append_info info;
        int64_t end;
        int32_t epoch;
        size_t n;

        for (int64_t o = 0; o < 5; o++) {
                assert_int_equal(follow_made(a, &(struct made){.base_offset = o, .epoch = 1}), 0);
                assert_int_equal(follow_made(b, &(struct made){.base_offset = o, .epoch = 1}), 0);
        }
        append_many(a, 4, (struct made){.value_bytes = 50}, 2); /* A led epoch 2, alone */
        assert_int_equal(partition_log_assign_epoch(b, 3, 5), 0);
        append_many(b, 7, (struct made){0}, 3);

        /* A follows: its latest epoch is 2, B answers with the end of 1 */
        partition_log_end_offset_for_epoch(b, partition_log_latest_epoch(a), &epoch, &end);
        assert_int_equal(epoch, 1);
        assert_int_equal(end, 5);
        assert_int_equal(partition_log_truncate_to(a, end), 0);
        assert_int_equal(partition_log_read(b, 5, 12, 1 << 20, true, &data, &n), 0);
        assert_int_equal(partition_log_append_follower(a, data.data, data.len, &info), 0);
        buf_done(&data);
        {
                struct buf x = {0}, y = {0};
                size_t nx, ny;

                assert_int_equal(partition_log_read(a, 0, 12, 1 << 20, true, &x, &nx), 0);
                assert_int_equal(partition_log_read(b, 0, 12, 1 << 20, true, &y, &ny), 0);
                assert_int_equal(nx, ny);
                assert_memory_equal(x.data + 16, y.data + 16, 10);
                buf_done(&x);
                buf_done(&y);
        }
        assert_int_equal(partition_log_latest_epoch(a), 3);
        partition_log_free(a);
        partition_log_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, memdir_setup, tmpdir_teardown)
                T(a_log_truncated_anywhere_is_as_if_the_rest_had_never_come),
                T(a_truncation_at_the_end_still_forgets_an_epoch_without_data),
                T(an_emptied_segment_is_usable),
                T(a_log_that_starts_afresh_has_nothing_of_the_old_one),
                T(a_truncation_below_the_start_starts_afresh),
                T(what_is_written_after_a_truncation_below_the_recovery_point_is_recovered),
                T(two_logs_that_diverged_converge_by_their_epochs),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
