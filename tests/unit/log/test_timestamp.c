#include "log_testing.h"

#include <endian.h>
#include <string.h>
#include <zstd.h>

#include "wire/crc32c.h"

static void check_found(struct partition_log *l, int64_t timestamp, int64_t bound, int64_t want_offset,
                        int64_t want_timestamp)
{
        int64_t o, t;

        assert_int_equal(partition_log_find_timestamp(l, timestamp, bound, &o, &t), 0);
        assert_int_equal(o, want_offset);
        assert_int_equal(t, want_timestamp);
}

static void the_first_record_not_older_is_found_across_segments(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 60, (struct made){.n_records = 5, .timestamp_ms = 1000},
                    0); /* 1000…1004, 1010…1014, … */
        for (int round = 0; round < 2; round++) {
                for (int64_t t = 990; t < 1595; t++) {
                        int64_t batch = t < 1000 ? 0 : (t - 1000) / 10, i = t < 1000 ? 0 : (t - 1000) % 10;

                        if (i > 4) {
                                batch++;
                                i = 0;
                        }
                        check_found(l, t, 300, batch * 5 + i, 1000 + batch * 10 + i);
                }
                check_found(l, 1595, 300, -1, -1);
                check_found(l, 1594, 299, -1, -1); /* the record itself is above the bound */
                check_found(l, 1200, 90, -1, -1);
                partition_log_free(l);
                l = open_log(tmpdir_path(state, "t-0"), &c, 0, true);
        }
        partition_log_free(l);
}

static void timestamps_that_go_back_do_not_hide_records(void **state)
{
        static const int64_t times[] = {500, 100, 900, 200, 200, 900, 50, 1500, 1000};
        struct log_config c = small_config();
        struct partition_log *l;

        c.index_interval_bytes = 1;
        c.segment_bytes = 300;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        for (size_t i = 0; i < ARRAY_SIZE(times); i++)
                append_many(l, 1, (struct made){.timestamp_ms = times[i]}, 0);
        for (int64_t t = 1; t < 1600; t++) {
                int64_t want = -1;

                for (size_t i = ARRAY_SIZE(times); i > 0; i--)
                        if (times[i - 1] >= t)
                                want = (int64_t)i - 1;
                check_found(l, t, 100, want, want < 0 ? -1 : times[want]);
        }
        partition_log_free(l);
}

/* Pack a made batch's records with zstd. */
static void make_compressed(struct buf *out, const struct made *m)
{
        cleanup_with(buf_donep) struct buf plain = {0};
        uint8_t packed[4096], *at;
        uint32_t be;
        size_t n, start = out->len;

        make_batch(&plain, m);
        n = ZSTD_compress(packed, sizeof(packed), plain.data + 61, plain.len - 61, 1);
        assert_false(ZSTD_isError(n));
        assert_int_equal(buf_append(out, plain.data, 61), 0);
        assert_int_equal(buf_append(out, packed, n), 0);
        at = out->data + start;
        be = htobe32((uint32_t)(61 - 12 + n));
        memcpy(at + 8, &be, 4);
        at[22] = RECORD_ZSTD;
        be = htobe32(crc32c(0, at + 21, 61 - 21 + n));
        memcpy(at + 17, &be, 4);
}

static void a_record_inside_a_compressed_batch_is_found(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        struct log_append_info info;
        struct buf b = {0};

        make_compressed(&b, &(struct made){.n_records = 50, .timestamp_ms = 1000});
        assert_int_equal(partition_log_append_leader(l, b.data, b.len, 0, 0, &info), 0);
        assert_int_equal(info.n_records, 50);
        for (int64_t i = 0; i < 50; i++)
                check_found(l, 1000 + i, 50, i, 1000 + i);
        check_found(l, 1050, 50, -1, -1);
        buf_done(&b);

        /* one whose records are no records: the batch's beginning */
        make_compressed(&b, &(struct made){.n_records = 9, .timestamp_ms = 2000});
        memset(b.data + 61, 0x5a, b.len - 61);
        {
                uint32_t be = htobe32(crc32c(0, b.data + 21, b.len - 21));

                memcpy(b.data + 17, &be, 4);
        }
        assert_int_equal(partition_log_append_leader(l, b.data, b.len, 0, 0, &info), 0);
        check_found(l, 2005, 59, 50, 2008);
        buf_done(&b);
        partition_log_free(l);
}

static void a_log_without_timestamps_answers_with_nothing(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);

        check_found(l, 0, 0, -1, -1);
        for (int64_t i = 0; i < 40; i++)
                assert_int_equal(follow_made(l, &(struct made){.base_offset = i, .timestamp_ms = -1}), 0);
        check_found(l, 0, 40, -1, -1);
        partition_log_free(l);
        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, true);
        check_found(l, 0, 40, -1, -1);
        assert_int_equal(check_readable(l, 1), 40);
        partition_log_free(l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, tmpdir_setup, tmpdir_teardown)
                T(the_first_record_not_older_is_found_across_segments),
                T(timestamps_that_go_back_do_not_hide_records),
                T(a_record_inside_a_compressed_batch_is_found),
                T(a_log_without_timestamps_answers_with_nothing),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
