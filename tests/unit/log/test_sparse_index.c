#include "log_testing.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "log/sparse_index.h"

static void entries_are_found_in_memory_and_in_the_file(void **state)
{
        const char *path = tmpdir_path(state, "0.index");
        struct sparse_index x;

        sparse_index_init(&x, OFFSET_INDEX_ENTRY);
        assert_int_equal(sparse_index_reset(&x, path), 0);
        for (int32_t i = 1; i <= 1000; i++)
                offset_index_append(&x, path, i * 10, i * 100);
        for (int round = 0; round < 2; round++) {
                int32_t position, offset;

                for (int32_t o = 0; o < 10100; o += 7) {
                        assert_int_equal(offset_index_floor(&x, path, o, &position), 0);
                        assert_int_equal(position, MIN(o / 10, 1000) * 100);
                }
                assert_int_equal(offset_index_last(&x, path, &offset, &position), 0);
                assert_int_equal(offset, 10000);
                /* then from the file alone */
                assert_int_equal(sparse_index_write(&x, path), 0);
                assert_int_equal(file_size(path), 8000);
                sparse_index_done(&x);
        }
        sparse_index_done(&x);
}

static void the_bytes_are_kafkas(void **state)
{
        const char *offsets = tmpdir_path(state, "0.index"), *times = tmpdir_path(state, "0.timeindex");
        cleanup_with(buf_donep) struct buf a = {0}, b = {0};
        struct sparse_index x, t;

        sparse_index_init(&x, OFFSET_INDEX_ENTRY);
        sparse_index_init(&t, TIME_INDEX_ENTRY);
        offset_index_append(&x, offsets, 0x01020304, 0x05060708);
        time_index_append(&t, times, 0x0102030405060708, 0x090a0b0c);
        assert_int_equal(sparse_index_write(&x, offsets), 0);
        assert_int_equal(sparse_index_write(&t, times), 0);
        file_read(offsets, &a);
        file_read(times, &b);
        assert_int_equal(a.len, 8);
        assert_memory_equal(a.data, "\1\2\3\4\5\6\7\10", 8);
        assert_int_equal(b.len, 12);
        assert_memory_equal(b.data, "\1\2\3\4\5\6\7\10\11\12\13\14", 12);
        sparse_index_done(&x);
        sparse_index_done(&t);
}

static void only_entries_that_grow_are_kept(void **state)
{
        const char *path = tmpdir_path(state, "0.timeindex");
        struct sparse_index x;
        int64_t timestamp;
        int32_t offset;

        sparse_index_init(&x, TIME_INDEX_ENTRY);
        assert_int_equal(time_index_last(&x, path, &timestamp, &offset), -ENOENT);
        time_index_append(&x, path, 100, 5);
        time_index_append(&x, path, 100, 6);
        time_index_append(&x, path, 99, 7);
        time_index_append(&x, path, 101, 5);
        assert_int_equal(x.n, 1);
        time_index_append(&x, path, 101, 6);
        assert_int_equal(time_index_last(&x, path, &timestamp, &offset), 0);
        assert_int_equal(timestamp, 101);
        assert_int_equal(time_index_floor(&x, path, 99, &timestamp, &offset), -ENOENT);
        assert_int_equal(time_index_floor(&x, path, 100, &timestamp, &offset), 0);
        assert_int_equal(offset, 5);
        sparse_index_done(&x);
}

static void truncation_drops_entries_from_memory_and_file(void **state)
{
        const char *path = tmpdir_path(state, "0.index");

        for (int32_t at = 0; at <= 310; at += 5) {
                struct sparse_index x;
                int32_t want = MAX((at + 9) / 10 - 1, 0), offset = 0, position;

                want = MIN(want, 300);
                sparse_index_init(&x, OFFSET_INDEX_ENTRY);
                assert_int_equal(sparse_index_reset(&x, path), 0);
                for (int32_t i = 1; i <= 300; i++)
                        offset_index_append(&x, path, i * 10, i);
                assert_int_equal(sparse_index_truncate(&x, path, at), 0);
                assert_int_equal(x.n, want);
                if (want > 0)
                        assert_int_equal(offset_index_last(&x, path, &offset, &position), 0);
                assert_int_equal(offset, want * 10);
                /* what is appended after it stands behind it in the file */
                offset_index_append(&x, path, 5000, 77);
                assert_int_equal(sparse_index_write(&x, path), 0);
                assert_int_equal(file_size(path), (want + 1) * 8);
                sparse_index_done(&x);
                assert_int_equal(offset_index_floor(&x, path, 9999, &position), 0);
                assert_int_equal(position, 77);
                sparse_index_done(&x);
        }
}

static void a_file_that_is_no_index_is_refused(void **state)
{
        static const uint8_t zeros[24];
        const char *path = tmpdir_path(state, "0.index");
        struct sparse_index x;

        sparse_index_init(&x, OFFSET_INDEX_ENTRY);
        assert_int_equal(sparse_index_load(&x, path), -ENOENT);
        file_write(path, zeros, 9);
        assert_int_equal(sparse_index_load(&x, path), -EBADMSG);
        file_write(path, zeros, 24); /* as after a power loss: the size came to the disk, the bytes did not */
        assert_int_equal(sparse_index_load(&x, path), -EBADMSG);
        file_write(path, "\xff\xff\xff\xff\0\0\0\0", 8);
        assert_int_equal(sparse_index_load(&x, path), -EBADMSG);
        file_write(path, "", 0);
        assert_int_equal(sparse_index_load(&x, path), 0);
        sparse_index_done(&x);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(entries_are_found_in_memory_and_in_the_file, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(the_bytes_are_kafkas, tmpdir_setup, tmpdir_teardown),
                cmocka_unit_test_setup_teardown(only_entries_that_grow_are_kept, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(truncation_drops_entries_from_memory_and_file, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_file_that_is_no_index_is_refused, tmpdir_setup,
                                                tmpdir_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
