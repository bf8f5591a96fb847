#include "log_testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/slog.h"

static struct partition_log *open_small(void **state, bool clean)
{
        struct log_config c = small_config();

        c.segment_bytes = 1500;
        return open_log(tmpdir_path(state, "t-0"), &c, 0, clean);
}

static int append(struct partition_log *l, int16_t epoch, int32_t sequence, struct log_append_info *ret)
{
        return append_made(
                l,
                &(struct made){
                        .producer_id = 7, .producer_epoch = epoch, .n_records = 2, .sequence = sequence},
                0, ret);
}

/* Batches of two records, sequences 0, 2, …, 2n-2. */
static void append_sequences(struct partition_log *l, int n)
{
        append_many(l, n, (struct made){.producer_id = 7, .n_records = 2}, 0);
}

static void check_duplicates(struct partition_log *l, int n)
{
        struct log_append_info info;

        for (int i = n - 5; i < n; i++) {
                assert_int_equal(append(l, 0, i * 2, &info), 0);
                assert_true(info.duplicate);
                assert_int_equal(info.first_offset, i * 2);
                assert_int_equal(info.last_offset, i * 2 + 1);
        }
        assert_int_equal(append(l, 0, (n - 6) * 2, &info), -EILSEQ);
        assert_int_equal(append(l, 0, n * 2 + 1, &info), -EILSEQ);
        assert_int_equal(partition_log_end_offset(l), n * 2);
}

static void a_batch_sent_twice_is_stored_once_and_a_gap_is_refused(void **state)
{
        struct partition_log *l = open_small(state, false);
        struct log_append_info info;

        append_sequences(l, 8);
        check_duplicates(l, 8);
        assert_int_equal(append(l, 0, 16, &info), 0);
        assert_false(info.duplicate);
        assert_int_equal(append(l, 2, 5, &info), -EILSEQ);
        assert_int_equal(append(l, 2, 0, &info), 0);
        assert_int_equal(append(l, 1, 0, &info), -ESTALE);
        partition_log_free(l);
}

static void producers_are_known_after_a_clean_reopen(void **state)
{
        for (int n = 8; n < 60; n += 17) {
                struct partition_log *l = open_small(state, false);

                append_sequences(l, n);
                partition_log_free(l);
                l = open_small(state, true);
                check_duplicates(l, n);
                assert_int_equal(partition_log_truncate_fully_and_start_at(l, 0), 0);
                partition_log_free(l);
        }
}

static void producers_are_known_after_a_crash(void **state)
{
        struct partition_log *l = open_small(state, false);

        append_sequences(l, 50);
        partition_log_unref(l);
        l = open_small(state, false);
        check_duplicates(l, 50);
        partition_log_free(l);
}

static void a_follower_knows_the_producers_of_what_it_copied(void **state)
{
        struct partition_log *l = open_small(state, false);

        for (int i = 0; i < 10; i++) /* whatever the sequence: a follower does not judge */
                assert_int_equal(follow_made(l, &(struct made){.base_offset = i * 2,
                                                               .n_records = 2,
                                                               .producer_id = 7,
                                                               .sequence = i * 2}),
                                 0);
        check_duplicates(l, 10);
        assert_int_equal(follow_made(l, &(struct made){.base_offset = 20, .producer_id = 7, .sequence = 999}),
                         0);
        partition_log_free(l);
}

static void truncation_takes_producers_back(void **state)
{
        for (int64_t cut = 20; cut <= 80; cut += 6) {
                struct partition_log *l = open_small(state, false);
                struct log_append_info info;

                append_sequences(l, 50);
                assert_int_equal(partition_log_truncate_to(l, cut), 0);
                check_duplicates(l, (int)cut / 2);
                assert_int_equal(append(l, 0, (int32_t)cut, &info), 0); /* again, not a duplicate */
                assert_false(info.duplicate);
                /* all of it gone: nobody is known, so that any sequence will do */
                assert_int_equal(partition_log_truncate_to(l, 0), 0);
                assert_int_equal(append(l, 0, 33, &info), 0);
                assert_int_equal(partition_log_truncate_fully_and_start_at(l, 0), 0);
                partition_log_free(l);
        }
}

static void a_damaged_snapshot_is_dropped_for_an_older_one(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};
        struct partition_log *l = open_small(state, false);
        char path[512];

        slog_set_level(SLOG_ERROR);
        append_sequences(l, 50);
        partition_log_free(l);
        (void)snprintf(path, sizeof(path), "%s", last_file(tmpdir_path(state, "t-0"), ".snapshot"));
        file_read(path, &b);
        for (size_t i = 0; i < b.len; i++) {
                for (int clean = 0; clean < 2; clean++) {
                        b.data[i] ^= 4;
                        file_write(path, b.data, b.len);
                        b.data[i] ^= 4;
                        l = open_small(state, clean);
                        check_duplicates(l, 50);
                        partition_log_unref(l);
                }
        }
        while (count_files(tmpdir_path(state, "t-0"), ".snapshot") > 0) /* or none at all */
                assert_int_equal(unlink(last_file(tmpdir_path(state, "t-0"), ".snapshot")), 0);
        l = open_small(state, false);
        check_duplicates(l, 50);
        partition_log_free(l);
}

static void snapshots_go_with_their_segments(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.segment_bytes = 1000;
        c.retention_bytes = 2000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        for (int i = 0; i < 10; i++) {
                append_many(l, 20, (struct made){.producer_id = 7, .sequence = i * 20}, 0);
                assert_true(partition_log_retain(l, 1000000, 1000) >= 0);
                partition_log_free(l);
                l = open_log(tmpdir_path(state, "t-0"), &c, 0, true);
                assert_true(count_files(tmpdir_path(state, "t-0"), ".snapshot") <=
                            count_files(tmpdir_path(state, "t-0"), ".log") + 1);
        }
        partition_log_free(l);
}

static void producers_expire_with_retention(void **state)
{
        struct partition_log *l = open_small(state, false);
        struct log_append_info info;
        struct log_config c;

        log_config_default(&c);
        append_sequences(l, 3); /* at 0, 10, 20 */
        assert_int_equal(partition_log_retain(l, c.producer_id_expiration_ms + 20, 0), 0);
        assert_int_equal(append(l, 0, 99, &info), -EILSEQ);
        assert_int_equal(partition_log_retain(l, c.producer_id_expiration_ms + 21, 0), 0);
        assert_int_equal(append(l, 0, 99, &info), 0);
        partition_log_free(l);
}

static void sequences_wrap(void **state)
{
        struct partition_log *l = open_small(state, false);
        struct log_append_info info;

        assert_int_equal(append(l, 0, INT32_MAX - 2, &info), 0);
        assert_int_equal(append(l, 0, INT32_MAX, &info), 0); /* MAX and 0 */
        assert_int_equal(append(l, 0, 0, &info), -EILSEQ);
        assert_int_equal(append(l, 0, 1, &info), 0);
        partition_log_free(l);
        l = open_small(state, true);
        assert_int_equal(append(l, 0, INT32_MAX, &info), 0);
        assert_true(info.duplicate);
        assert_int_equal(append(l, 0, 3, &info), 0);
        partition_log_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, memdir_setup, tmpdir_teardown)
                T(a_batch_sent_twice_is_stored_once_and_a_gap_is_refused),
                T(producers_are_known_after_a_clean_reopen),
                T(producers_are_known_after_a_crash),
                T(a_follower_knows_the_producers_of_what_it_copied),
                T(truncation_takes_producers_back),
                T(a_damaged_snapshot_is_dropped_for_an_older_one),
                T(snapshots_go_with_their_segments),
                T(producers_expire_with_retention),
                T(sequences_wrap),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
