#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"

static void an_atomic_write_replaces_the_content_and_leaves_no_temporary_file(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};

        assert_int_equal(fs_write_atomic(tmpdir_path(state, "f"), "long old content", 16), 0);
        assert_int_equal(fs_write_atomic(tmpdir_path(state, "f"), "new", 3), 0);
        assert_int_equal(fs_read_file(tmpdir_path(state, "f"), 100, &b), 0);
        assert_string_equal(buf_cstr(&b), "new");
        assert_int_equal(access(tmpdir_path(state, "f.tmp"), F_OK), -1);
}

static void a_failed_atomic_write_keeps_the_old_content(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};

        /* given a directory where the temporary file belongs */
        assert_int_equal(fs_write_atomic(tmpdir_path(state, "f"), "old", 3), 0);
        assert_int_equal(mkdir(tmpdir_path(state, "f.tmp"), 0755), 0);

        assert_int_equal(fs_write_atomic(tmpdir_path(state, "f"), "new", 3), -EISDIR);
        assert_int_equal(fs_read_file(tmpdir_path(state, "f"), 100, &b), 0);
        assert_string_equal(buf_cstr(&b), "old");
        assert_int_equal(fs_write_atomic(tmpdir_path(state, "no/such/dir"), "x", 1), -ENOENT);

        /* given a directory under the final name: the rename fails, and the temporary file goes */
        assert_int_equal(mkdir(tmpdir_path(state, "d"), 0755), 0);
        assert_int_equal(fs_write_atomic(tmpdir_path(state, "d"), "new", 3), -EISDIR);
        assert_int_equal(access(tmpdir_path(state, "d.tmp"), F_OK), -1);
}

static void reading_stops_at_the_limit(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};
        static char content[50000];

        memset(content, 'x', sizeof(content));
        assert_int_equal(fs_write_atomic(tmpdir_path(state, "f"), content, sizeof(content)), 0);
        assert_int_equal(fs_read_file(tmpdir_path(state, "f"), sizeof(content) - 1, &b), -EFBIG);
        buf_done(&b);
        assert_int_equal(buf_append_str(&b, "before:"), 0);
        assert_int_equal(fs_read_file(tmpdir_path(state, "f"), sizeof(content), &b), 0);
        assert_int_equal(b.len, 7 + sizeof(content)); /* appended */
        assert_int_equal(fs_read_file(tmpdir_path(state, "none"), 10, &b), -ENOENT);
}

static void mkdir_p_makes_the_whole_path_and_accepts_what_is_there(void **state)
{
        struct stat st;

        assert_int_equal(fs_mkdir_p(tmpdir_path(state, "a/b//c/"), 0750), 0);
        assert_int_equal(fs_mkdir_p(tmpdir_path(state, "a/b/c"), 0750), 0);
        assert_int_equal(stat(tmpdir_path(state, "a/b/c"), &st), 0);
        assert_true(S_ISDIR(st.st_mode));
        assert_int_equal(fs_sync_dir(tmpdir_path(state, "a")), 0);

        assert_int_equal(fs_write_atomic(tmpdir_path(state, "file"), "", 0), 0);
        assert_int_equal(fs_mkdir_p(tmpdir_path(state, "file"), 0750), -ENOTDIR);
        assert_int_equal(fs_mkdir_p(tmpdir_path(state, "file/x"), 0750), -ENOTDIR);
}

static void positioned_reads_tell_a_short_file(void **state)
{
        cleanup_with(closep) int fd = open(tmpdir_path(state, "f"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        char got[5] = "";

        assert_true(fd >= 0);
        assert_int_equal(fs_write_full(fd, "abcdef", 6), 0);
        assert_int_equal(fs_pwrite_full(fd, "XY", 2, 3), 0);
        assert_int_equal(fs_pread_full(fd, got, 4, 2), 0);
        assert_string_equal(got, "cXYf");
        assert_int_equal(fs_pread_full(fd, got, 4, 3), -ENODATA);
        assert_int_equal(fs_pread_full(-1, got, 4, 3), -EBADF);
}

#define FS_TEST(f) cmocka_unit_test_setup_teardown(f, tmpdir_setup, tmpdir_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                FS_TEST(an_atomic_write_replaces_the_content_and_leaves_no_temporary_file),
                FS_TEST(a_failed_atomic_write_keeps_the_old_content),
                FS_TEST(reading_stops_at_the_limit),
                FS_TEST(mkdir_p_makes_the_whole_path_and_accepts_what_is_there),
                FS_TEST(positioned_reads_tell_a_short_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
