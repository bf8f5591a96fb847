#include "log_testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/slog.h"

static int quiet_setup(void **state)
{
        slog_set_level(SLOG_ERROR); /* thousands of cuts are reported here */
        return memdir_setup(state);
}

/* The whole batches in the first @n bytes of @data: their number and the offset behind them. */
static int whole_batches(const struct buf *data, size_t n, int64_t *ret_end)
{
        struct record_batch_iter it = record_batch_iter(data->data, n);
        struct record_batch b;
        int batches = 0;

        *ret_end = 0;
        while (record_batch_iter_next(&it, &b) > 0) {
                *ret_end = record_batch_last_offset(&b) + 1;
                batches++;
        }
        return batches;
}

static void a_log_is_the_same_after_a_clean_reopen(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;
        int64_t bytes, offset, timestamp;

        c.segment_bytes = 3000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        for (int i = 0; i < 4; i++) {
                append_many(l, 50, (struct made){.n_records = 2, .timestamp_ms = 1000 + i * 500}, i);
                bytes = partition_log_size_bytes(l);
                assert_int_equal(partition_log_flush(l), 0);
                partition_log_free(l);

                l = open_log(tmpdir_path(state, "t-0"), &c, (i + 1) * 100, true);
                assert_int_equal(partition_log_end_offset(l), (i + 1) * 100);
                assert_int_equal(partition_log_recovery_point(l), (i + 1) * 100);
                assert_int_equal(partition_log_size_bytes(l), bytes);
                assert_int_equal(partition_log_latest_epoch(l), i);
                assert_int_equal(check_readable(l, 500), (i + 1) * 50);
                assert_int_equal(partition_log_find_timestamp(l, 1000 + i * 500, 1000, &offset, &timestamp),
                                 0);
                assert_int_equal(offset, i * 100);
        }
        partition_log_free(l);
}

/* After a crash nothing but the .log files is certain. */
static void crash(struct partition_log *l)
{
        partition_log_unref(l); /* writes nothing */
}

static void every_cut_of_the_tail_gives_back_every_whole_batch_before_it(void **state)
{
        cleanup_with(buf_donep) struct buf whole = {0};
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        char path[512];

        for (int i = 0; i < 12; i++)
                append_many(l, 1,
                            (struct made){.n_records = 1 + i % 4, .value_bytes = i * 7, .timestamp_ms = i},
                            i / 3);
        crash(l);
        (void)snprintf(path, sizeof(path), "%s", last_file(tmpdir_path(state, "t-0"), ".log"));
        file_read(path, &whole);
        for (size_t cut = 0; cut <= whole.len; cut++) {
                int64_t end;
                int n = whole_batches(&whole, cut, &end);

                for (int clean = 0; clean < 2; clean++) { /* even if the marker lies */
                        file_write(path, whole.data, cut);
                        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, clean);
                        assert_int_equal(partition_log_end_offset(l), end);
                        assert_int_equal(check_readable(l, 100), n);
                        assert_int_equal(partition_log_latest_epoch(l), n == 0 ? -1 : (n - 1) / 3);
                        /* and it goes on from there */
                        append_many(l, 1, (struct made){0}, 9);
                        assert_int_equal(partition_log_end_offset(l), end + 1);
                        partition_log_free(l);
                }
        }
}

static void every_damaged_byte_cuts_the_log_before_its_batch(void **state)
{
        cleanup_with(buf_donep) struct buf whole = {0};
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        char path[512];

        append_many(l, 8, (struct made){.n_records = 2, .value_bytes = 20}, 3);
        crash(l);
        (void)snprintf(path, sizeof(path), "%s", last_file(tmpdir_path(state, "t-0"), ".log"));
        file_read(path, &whole);
        for (size_t i = 0; i < whole.len; i++) {
                int64_t before, size = (int64_t)(whole.len / 8);
                int32_t in_batch = (int32_t)((int64_t)i % size);
                int64_t end;

                before = (int64_t)i / size * 2;
                whole.data[i] ^= 0x41;
                file_write(path, whole.data, whole.len);
                whole.data[i] ^= 0x41;
                l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
                end = partition_log_end_offset(l);
                /* Base offset and leader epoch stand outside the checksum: they must still go up. */
                if (in_batch < 8 || (in_batch >= 12 && in_batch < 16))
                        assert_true(end >= before);
                else
                        assert_int_equal(end, before);
                partition_log_free(l);
        }
}

static void segments_behind_a_bad_batch_are_deleted(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};
        struct log_config c = small_config();
        struct partition_log *l;
        char path[512];
        int64_t end;

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 100, (struct made){0}, 1);
        crash(l);
        assert_true(count_files(tmpdir_path(state, "t-0"), ".log") > 5);
        (void)snprintf(path, sizeof(path), "%s/%020d.log", tmpdir_path(state, "t-0"), 0);
        file_read(path, &b);
        b.data[b.len - 1] ^= 1;
        file_write(path, b.data, b.len);
        end = whole_batches(&b, b.len, &end) - 1;

        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        assert_int_equal(partition_log_end_offset(l), end);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 1);
        assert_int_equal(check_readable(l, 1 << 20), end);
        partition_log_free(l);
}

static void what_is_below_the_recovery_point_is_not_read(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};
        struct log_config c = small_config();
        struct partition_log *l;
        char path[512];

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 100, (struct made){0}, 1);
        assert_int_equal(partition_log_flush(l), 0);
        crash(l);
        (void)snprintf(path, sizeof(path), "%s/%020d.log", tmpdir_path(state, "t-0"), 0);
        file_read(path, &b);
        b.data[b.len - 1] ^= 1;
        file_write(path, b.data, b.len);

        l = open_log(tmpdir_path(state, "t-0"), &c, 100, false);
        assert_int_equal(partition_log_end_offset(l), 100);
        assert_int_equal(partition_log_recovery_point(l), 100);
        partition_log_free(l);
}

/* KAFKA-10101 */
static void recovery_does_not_move_the_recovery_point(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);

        append_many(l, 20, (struct made){0}, 1);
        crash(l);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 7, false);
        assert_int_equal(partition_log_end_offset(l), 20);
        assert_int_equal(partition_log_recovery_point(l), 7);
        assert_int_equal(partition_log_flush(l), 0);
        assert_int_equal(partition_log_recovery_point(l), 20);
        crash(l);
        /* a checkpoint from before a truncation that was lost: no further than the log */
        l = open_log(tmpdir_path(state, "t-0"), NULL, 500, false);
        assert_int_equal(partition_log_recovery_point(l), 20);
        partition_log_free(l);
}

/* A hole between segments: the file's length came to the disk, the unlink of the later ones did not. */
static void a_segment_behind_a_hole_is_deleted(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;
        char path[512];
        int64_t batch;

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 30, (struct made){.value_bytes = 40}, 1);
        batch = partition_log_size_bytes(l) / 30;
        crash(l);
        (void)snprintf(path, sizeof(path), "%s/%020d.log", tmpdir_path(state, "t-0"), 0);
        assert_int_equal(truncate(path, 3 * batch), 0);

        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 1);
        assert_int_equal(partition_log_end_offset(l), 3);
        assert_int_equal(check_readable(l, 1 << 20), 3);
        partition_log_free(l);
}

/* Bytes of before a truncation that happen to fit: correct in themselves, but of an older epoch. */
static void resurrected_bytes_are_cut_by_their_epoch(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);

        for (int i = 0; i < 5; i++)
                make_batch(&b, &(struct made){.base_offset = i, .epoch = i < 3 ? 4 : 2});
        crash(l);
        file_write(last_file(tmpdir_path(state, "t-0"), ".log"), b.data, b.len);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        assert_int_equal(partition_log_end_offset(l), 3);
        assert_int_equal(partition_log_latest_epoch(l), 4);
        partition_log_free(l);
}

static void epochs_come_back_from_the_batches_whatever_happened_to_the_file(void **state)
{
        cleanup_with(buf_donep) struct buf good = {0};
        struct log_config c = small_config();
        struct partition_log *l;
        char path[512];

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        for (int e = 0; e < 6; e++)
                append_many(l, 10, (struct made){0}, e * 2);
        assert_int_equal(partition_log_assign_epoch(l, 20, 60), 0); /* without data */
        assert_int_equal(partition_log_flush(l), 0);
        crash(l);
        (void)snprintf(path, sizeof(path), "%s/leader-epoch-checkpoint", tmpdir_path(state, "t-0"));
        file_read(path, &good);

        for (size_t i = 0; i <= good.len + 1; i++) {
                for (int clean = 0; clean < 2; clean++) {
                        if (i <= good.len) /* cut short, as a power loss may leave it */
                                file_write(path, good.data, i);
                        else
                                (void)unlink(path);
                        l = open_log(tmpdir_path(state, "t-0"), &c, 60, clean);
                        assert_int_equal(partition_log_latest_epoch(l), 10);
                        for (int64_t o = 1; o <= 60; o++)
                                assert_int_equal(partition_log_epoch_for_offset(l, o), (o - 1) / 10 * 2);
                        crash(l);
                        /* and the file is whole again */
                        assert_true(file_size(path) > 10);
                }
        }
}

/* A new file for each would be most of the time of a neighbour's drain. */
static void entering_an_epoch_writes_over_the_file_and_a_shorter_text_replaces_it(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        struct stat first, st;
        char path[512];

        (void)snprintf(path, sizeof(path), "%s/leader-epoch-checkpoint", tmpdir_path(state, "t-0"));
        append_many(l, 1, (struct made){0}, 8);
        assert_int_equal(stat(path, &first), 0);
        append_many(l, 1, (struct made){0}, 9);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_ino, first.st_ino);
        assert_int_equal(st.st_size, strlen("0\n2\n8 0\n9 1\n"));

        assert_int_equal(partition_log_truncate_to(l, 1), 0);
        assert_int_equal(file_size(path), strlen("0\n1\n8 0\n"));
        append_many(l, 1, (struct made){0}, 10);
        partition_log_free(l);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 2, true);
        assert_int_equal(partition_log_latest_epoch(l), 10);
        assert_int_equal(partition_log_epoch_for_offset(l, 1), 8);
        partition_log_free(l);
}

static void an_epoch_without_data_is_in_memory_and_its_first_data_brings_it_into_the_file(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        char path[512];

        (void)snprintf(path, sizeof(path), "%s/leader-epoch-checkpoint", tmpdir_path(state, "t-0"));
        assert_int_equal(partition_log_assign_epoch(l, 3, 0), 0);
        assert_int_equal(partition_log_latest_epoch(l), 3);
        assert_int_equal(file_size(path), -1);
        append_many(l, 1, (struct made){0}, 3);
        assert_int_equal(file_size(path), strlen("0\n1\n3 0\n"));
        assert_int_equal(partition_log_assign_epoch(l, 4, 1), 0);
        assert_int_equal(partition_log_assign_epoch(l, 5, 1), 0);
        assert_int_equal(file_size(path), strlen("0\n1\n3 0\n"));
        append_many(l, 1, (struct made){0}, 5);
        assert_int_equal(file_size(path), strlen("0\n2\n3 0\n5 1\n"));
        crash(l);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        assert_int_equal(partition_log_epoch_for_offset(l, 1), 3);
        assert_int_equal(partition_log_epoch_for_offset(l, 2), 5);
        partition_log_free(l);
}

static void an_epoch_that_lost_its_data_is_forgotten(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        int64_t size, end;
        int32_t epoch;

        append_many(l, 5, (struct made){0}, 1);
        size = partition_log_size_bytes(l);
        append_many(l, 5, (struct made){0}, 3);
        crash(l);
        assert_int_equal(truncate(last_file(tmpdir_path(state, "t-0"), ".log"), size), 0);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        partition_log_end_offset_for_epoch(l, 1, &epoch, &end);
        assert_int_equal(end, 5);
        assert_int_equal(partition_log_latest_epoch(l), 1);
        partition_log_free(l);
}

static void leftovers_of_interrupted_operations_are_removed(void **state)
{
        static const char *const leftovers[] = {
                "00000000000000000000.log.deleted", "00000000000000000000.index.deleted",
                "00000000000000000007.log.cleaned", "leader-epoch-checkpoint.tmp",
                "00000000000000000009.index",       "00000000000000000009.timeindex",
        };
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);

        append_many(l, 5, (struct made){0}, 1);
        partition_log_free(l);
        for (size_t i = 0; i < ARRAY_SIZE(leftovers); i++) {
                char path[600];

                (void)snprintf(path, sizeof(path), "%s/%s", tmpdir_path(state, "t-0"), leftovers[i]);
                file_write(path, "x", 1);
        }
        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, true);
        assert_int_equal(check_readable(l, 1 << 20), 5);
        for (size_t i = 0; i < ARRAY_SIZE(leftovers); i++)
                assert_int_equal(count_files(tmpdir_path(state, "t-0"), leftovers[i]), 0);
        partition_log_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, quiet_setup, tmpdir_teardown)
                T(a_log_is_the_same_after_a_clean_reopen),
                T(every_cut_of_the_tail_gives_back_every_whole_batch_before_it),
                T(every_damaged_byte_cuts_the_log_before_its_batch),
                T(segments_behind_a_bad_batch_are_deleted),
                T(what_is_below_the_recovery_point_is_not_read),
                T(recovery_does_not_move_the_recovery_point),
                T(a_segment_behind_a_hole_is_deleted),
                T(resurrected_bytes_are_cut_by_their_epoch),
                T(epochs_come_back_from_the_batches_whatever_happened_to_the_file),
                T(entering_an_epoch_writes_over_the_file_and_a_shorter_text_replaces_it),
                T(an_epoch_without_data_is_in_memory_and_its_first_data_brings_it_into_the_file),
                T(an_epoch_that_lost_its_data_is_forgotten),
                T(leftovers_of_interrupted_operations_are_removed),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
