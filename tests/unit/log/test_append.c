#include "log_testing.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "wire/crc32c.h"

static void what_a_leader_appends_is_read_back_with_offset_and_epoch_stamped(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        cleanup_with(buf_donep) struct buf out = {0};
        struct log_append_info info;
        struct record_batch b;
        size_t n;

        assert_int_equal(append_made(l, &(struct made){.n_records = 3, .timestamp_ms = 100}, 7, &info), 0);
        assert_int_equal(info.first_offset, 0);
        assert_int_equal(info.last_offset, 2);
        assert_int_equal(info.n_records, 3);
        assert_int_equal(info.max_timestamp, 102);
        assert_false(info.duplicate);
        assert_int_equal(append_made(l, &(struct made){.n_records = 2}, 7, &info), 0);
        assert_int_equal(info.first_offset, 3);
        assert_int_equal(partition_log_end_offset(l), 5);

        assert_int_equal(partition_log_read(l, 4, 5, 1 << 20, true, &out, &n), 0);
        assert_int_equal(record_batch_parse(out.data, out.len, &b), 0);
        assert_int_equal(b.base_offset, 3);
        assert_int_equal(b.leader_epoch, 7);
        assert_int_equal(b.size, n);
        partition_log_free(l);
}

static void bad_batches_are_refused_and_leave_nothing(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;
        struct buf b = {0}, two = {0};
        struct log_append_info info;

        c.max_message_bytes = 500;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        make_batch(&b, &(struct made){.n_records = 2});
        make_batch(&two, &(struct made){0});
        make_batch(&two, &(struct made){0});

        assert_int_equal(partition_log_append_leader(l, two.data, two.len, 0, 0, &info), -EINVAL);
        assert_int_equal(partition_log_append_leader(l, b.data, b.len - 1, 0, 0, &info), -EBADMSG);
        assert_int_equal(partition_log_append_leader(l, b.data, 5, 0, 0, &info), -EBADMSG);
        assert_int_equal(partition_log_append_leader(l, b.data, 0, 0, 0, &info), -EBADMSG);
        b.data[65] ^= 1;
        assert_int_equal(partition_log_append_leader(l, b.data, b.len, 0, 0, &info), -EBADMSG);
        b.data[65] ^= 1;
        b.data[16] = 1;
        assert_int_equal(partition_log_append_leader(l, b.data, b.len, 0, 0, &info), -EPROTO);
        assert_int_equal(append_made(l, &(struct made){.value_bytes = 600}, 0, NULL), -EMSGSIZE);
        assert_int_equal(append_made(l, &(struct made){.attributes = RECORD_ATTR_CONTROL}, 0, NULL), -EINVAL);
        assert_int_equal(append_made(l, &(struct made){.attributes = 6}, 0, NULL), -ENOPROTOOPT);

        assert_int_equal(partition_log_end_offset(l), 0);
        assert_int_equal(partition_log_size_bytes(l), 0);
        buf_done(&b);
        buf_done(&two);
        partition_log_free(l);
}

static void a_follower_takes_whole_batches_over_and_ignores_a_torn_last_one(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        struct log_append_info info;
        struct buf b = {0};
        size_t whole;

        make_batch(&b, &(struct made){.n_records = 2, .base_offset = 0, .epoch = 1});
        make_batch(&b, &(struct made){.n_records = 3, .base_offset = 2, .epoch = 4});
        whole = b.len;
        make_batch(&b, &(struct made){.n_records = 3, .base_offset = 5, .epoch = 4});

        assert_int_equal(partition_log_append_follower(l, b.data, b.len - 1, &info), 0);
        assert_int_equal(info.first_offset, 0);
        assert_int_equal(info.last_offset, 4);
        assert_int_equal(info.n_records, 5);
        assert_int_equal(partition_log_size_bytes(l), whole);
        assert_int_equal(partition_log_latest_epoch(l), 4);
        assert_int_equal(partition_log_epoch_for_offset(l, 2), 1);
        assert_int_equal(partition_log_epoch_for_offset(l, 3), 4);

        /* what is not whole is nothing */
        assert_int_equal(partition_log_append_follower(l, b.data + whole, 30, &info), 0);
        assert_int_equal(info.n_records, 0);
        assert_int_equal(check_readable(l, 1 << 20), 2);
        buf_done(&b);
        partition_log_free(l);
}

static void a_follower_refuses_gaps_damage_and_epochs_that_go_back(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        struct log_append_info info;
        struct buf b = {0};
        size_t first;

        assert_int_equal(follow_made(l, &(struct made){.base_offset = 1}), -ERANGE);
        assert_int_equal(follow_made(l, &(struct made){.base_offset = 0, .epoch = 5}), 0);
        assert_int_equal(follow_made(l, &(struct made){.base_offset = 0, .epoch = 5}), -ERANGE);
        assert_int_equal(follow_made(l, &(struct made){.base_offset = 1, .epoch = 4}), -EBADMSG);

        /* nothing of an answer with a damaged batch is taken, not even what stands before it */
        make_batch(&b, &(struct made){.base_offset = 1, .epoch = 5});
        first = b.len;
        make_batch(&b, &(struct made){.base_offset = 2, .epoch = 5});
        b.data[first + 65] ^= 1;
        assert_int_equal(partition_log_append_follower(l, b.data, b.len, &info), -EBADMSG);
        assert_int_equal(partition_log_end_offset(l), 1);
        buf_done(&b);
        partition_log_free(l);
}

static void a_follower_takes_an_answer_that_spans_several_segments(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;
        struct log_append_info info;
        struct buf b = {0};

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        for (int i = 0; i < 200; i++) /* more than are written at once, too */
                make_batch(&b, &(struct made){.base_offset = i, .epoch = i / 50});
        assert_int_equal(partition_log_append_follower(l, b.data, b.len, &info), 0);
        assert_int_equal(info.last_offset, 199);
        assert_int_equal(check_readable(l, 300), 200);
        assert_true(count_files(tmpdir_path(state, "t-0"), ".log") > 10);
        for (int32_t e = 0; e < 4; e++) {
                int32_t epoch;
                int64_t end;

                partition_log_end_offset_for_epoch(l, e, &epoch, &end);
                assert_int_equal(epoch, e);
                assert_int_equal(end, (e + 1) * 50);
        }
        buf_done(&b);
        partition_log_free(l);
}

static void a_full_segment_is_followed_by_the_next(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 50, (struct made){.n_records = 2}, 0);
        assert_true(count_files(tmpdir_path(state, "t-0"), ".log") >= 4);
        assert_true(partition_log_flush_wanted(l));
        assert_int_equal(check_readable(l, 1 << 20), 50);
        assert_int_equal(partition_log_flush(l), 0);
        assert_false(partition_log_flush_wanted(l));
        assert_int_equal(partition_log_recovery_point(l), 100);
        partition_log_free(l);
}

static void an_old_segment_is_followed_by_the_next(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.segment_ms = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        assert_int_equal(append_made(l, &(struct made){.timestamp_ms = 5000}, 0, NULL), 0);
        assert_int_equal(append_made(l, &(struct made){.timestamp_ms = 6000}, 0, NULL), 0);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 1);
        assert_int_equal(append_made(l, &(struct made){.timestamp_ms = 6001}, 0, NULL), 0);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 2);

        /* the age is that of the first batch after a reopen, too */
        partition_log_free(l);
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, true);
        assert_int_equal(append_made(l, &(struct made){.timestamp_ms = 7001}, 0, NULL), 0);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 2);
        assert_int_equal(append_made(l, &(struct made){.timestamp_ms = 7002}, 0, NULL), 0);
        assert_int_equal(count_files(tmpdir_path(state, "t-0"), ".log"), 3);
        partition_log_free(l);
}

static void a_full_index_ends_the_segment(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.index_interval_bytes = 1;
        c.index_max_bytes = 20 * 12;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 100, (struct made){0}, 0);
        assert_in_range(count_files(tmpdir_path(state, "t-0"), ".log"), 5, 7);
        assert_int_equal(check_readable(l, 100), 100);
        partition_log_free(l);
}

static void a_missing_max_timestamp_is_filled_in(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        struct log_append_info info;
        int64_t offset, timestamp;
        struct buf b = {0};
        uint32_t crc;

        make_batch(&b, &(struct made){.n_records = 3, .timestamp_ms = 500});
        memset(b.data + 35, 0xff, 8);
        crc = htobe32(crc32c(0, b.data + 21, b.len - 21));
        memcpy(b.data + 17, &crc, 4);
        assert_int_equal(partition_log_append_leader(l, b.data, b.len, 0, 0, &info), 0);
        assert_int_equal(info.max_timestamp, 502);
        assert_int_equal(partition_log_find_timestamp(l, 501, 3, &offset, &timestamp), 0);
        assert_int_equal(offset, 1);
        assert_int_equal(timestamp, 501);
        buf_done(&b);
        partition_log_free(l);
}

static void a_leader_of_an_older_epoch_cannot_append(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);

        assert_int_equal(append_made(l, &(struct made){0}, 5, NULL), 0);
        assert_int_equal(append_made(l, &(struct made){0}, 4, NULL), -EPERM);
        assert_int_equal(partition_log_assign_epoch(l, 4, 1), -ESTALE);
        assert_int_equal(partition_log_assign_epoch(l, 5, 1), 0);
        assert_int_equal(partition_log_assign_epoch(l, 6, 1), 0);
        assert_int_equal(append_made(l, &(struct made){0}, 5, NULL), -EPERM);
        partition_log_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(
                        what_a_leader_appends_is_read_back_with_offset_and_epoch_stamped, tmpdir_setup,
                        tmpdir_teardown),
                cmocka_unit_test_setup_teardown(bad_batches_are_refused_and_leave_nothing, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(
                        a_follower_takes_whole_batches_over_and_ignores_a_torn_last_one, tmpdir_setup,
                        tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_follower_refuses_gaps_damage_and_epochs_that_go_back,
                                                tmpdir_setup, tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_follower_takes_an_answer_that_spans_several_segments,
                                                tmpdir_setup, tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_full_segment_is_followed_by_the_next, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(an_old_segment_is_followed_by_the_next, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_full_index_ends_the_segment, tmpdir_setup, tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_missing_max_timestamp_is_filled_in, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_leader_of_an_older_epoch_cannot_append, tmpdir_setup,
                                                tmpdir_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
