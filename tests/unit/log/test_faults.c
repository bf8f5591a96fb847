/* The disk fails: the n-th system call that changes it gives an error, for every n. Linked with --wrap. */
#include "log_testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/slog.h"

static struct {
        int left;  /* calls until the one that fails; < 0: none does */
        int error; /* its errno */
        bool sticky, only_data, fired;
} fault = {.left = -1};

/* What happens while a sync is going on, and how many there were. */
static struct {
        void (*during)(void *userdata);
        void *userdata;
        int n;
} syncs;

static void note_sync(void)
{
        void (*during)(void *userdata) = syncs.during;

        syncs.n++;
        syncs.during = NULL;
        if (during)
                during(syncs.userdata);
}

static bool fails(bool data)
{
        if (fault.left < 0 || (fault.only_data && !data))
                return false;
        if (fault.left > 0) {
                fault.left--;
                return false;
        }
        fault.fired = true;
        if (!fault.sticky)
                fault.left = -1;
        errno = fault.error;
        return true;
}

ssize_t __real_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at);
ssize_t __real_write(int fd, const void *p, size_t n);
ssize_t __wrap_write(int fd, const void *p, size_t n);
int __real_ftruncate64(int fd, off_t n);
int __wrap_ftruncate64(int fd, off_t n);
int __real_truncate64(const char *path, off_t n);
int __wrap_truncate64(const char *path, off_t n);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

ssize_t __wrap_pwrite64(int fd, const void *p, size_t n, off_t at)
{
        if (fails(true)) { /* half of it, as a full disk does */
                int error = errno;

                if (n > 1)
                        (void)!__real_pwrite64(fd, p, n / 2, at);
                errno = error;
                return -1;
        }
        return __real_pwrite64(fd, p, n, at);
}

ssize_t __wrap_write(int fd, const void *p, size_t n)
{
        return fd > 2 && fails(false) ? -1 : __real_write(fd, p, n);
}

int __wrap_ftruncate64(int fd, off_t n)
{
        return fails(false) ? -1 : __real_ftruncate64(fd, n);
}

int __wrap_truncate64(const char *path, off_t n)
{
        return fails(false) ? -1 : __real_truncate64(path, n);
}

int __wrap_fdatasync(int fd)
{
        note_sync();
        return fails(false) ? -1 : __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
        return fails(false) ? -1 : __real_fsync(fd);
}

int __wrap_rename(const char *from, const char *to)
{
        return fails(false) ? -1 : __real_rename(from, to);
}

static void arm(int n, int error, bool sticky, bool only_data)
{
        fault.left = n;
        fault.error = error;
        fault.sticky = sticky;
        fault.only_data = only_data;
        fault.fired = false;
}

static void disarm(void)
{
        fault.left = -1;
}

static int quiet_setup(void **state)
{
        slog_set_level((enum slog_level)0); /* every failure here is meant */
        return memdir_setup(state);
}

static int quiet_teardown(void **state)
{
        disarm();
        return tmpdir_teardown(state);
}

static void a_full_disk_leaves_nothing_torn_and_service_resumes(void **state)
{
        static const int errors[] = {ENOSPC, EDQUOT, EFBIG};
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        int64_t size;

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                append_many(l, 3, (struct made){.value_bytes = 100}, 1);
                size = partition_log_size_bytes(l);
                arm(0, errors[i], true, true);
                for (int k = 0; k < 3; k++)
                        assert_int_equal(append_made(l, &(struct made){.value_bytes = 100}, 1, NULL),
                                         -ENOSPC);
                disarm();
                assert_int_equal(partition_log_size_bytes(l), size);
                assert_int_equal(file_size(last_file(tmpdir_path(state, "t-0"), ".log")), size);
                assert_int_equal(partition_log_end_offset(l), (int64_t)i * 4 + 3);
                assert_int_equal(append_made(l, &(struct made){0}, 1, NULL), 0);
                assert_int_equal(check_readable(l, 1 << 20), (int)i * 4 + 4);
        }
        partition_log_free(l);
}

static void a_resend_after_a_full_disk_is_no_duplicate(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        struct made m = {.producer_id = 3, .n_records = 2};
        struct log_append_info info;

        arm(0, ENOSPC, true, true);
        assert_int_equal(append_made(l, &m, 1, NULL), -ENOSPC);
        disarm();
        assert_int_equal(append_made(l, &m, 1, &info), 0);
        assert_false(info.duplicate);
        assert_int_equal(append_made(l, &m, 1, &info), 0);
        assert_true(info.duplicate);
        partition_log_free(l);
}

/* KAFKA-10778 */
static void after_an_io_error_nothing_is_appended_until_the_log_is_opened_again(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        struct log_append_info info;
        struct buf b = {0};

        append_many(l, 3, (struct made){0}, 1);
        arm(0, EIO, false, true);
        assert_int_equal(append_made(l, &(struct made){0}, 1, NULL), -EIO);
        disarm();
        assert_int_equal(append_made(l, &(struct made){0}, 1, NULL), -EIO);
        make_batch(&b, &(struct made){.base_offset = 3, .epoch = 1});
        assert_int_equal(partition_log_append_follower(l, b.data, b.len, &info), -EIO);
        assert_int_equal(partition_log_truncate_to(l, 0), -EIO);
        assert_int_equal(partition_log_flush(l), -EIO);
        assert_int_equal(partition_log_retain(l, 0, 0), -EIO);
        assert_int_equal(partition_log_close(l), -EIO);
        assert_int_equal(check_readable(l, 1 << 20), 3); /* reading goes on */
        partition_log_free(l);

        l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);
        assert_int_equal(partition_log_end_offset(l), 3);
        append_many(l, 1, (struct made){0}, 1);
        buf_done(&b);
        partition_log_free(l);
}

static void a_failed_sync_is_not_tried_again(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);

        append_many(l, 3, (struct made){0}, 1);
        arm(0, EIO, false, false);
        assert_int_equal(partition_log_flush(l), -EIO);
        disarm();
        /* the kernel may have dropped the pages: a second sync that succeeds would prove nothing */
        assert_int_equal(partition_log_flush(l), -EIO);
        assert_int_equal(partition_log_recovery_point(l), 0);
        partition_log_free(l);
}

static void truncate_and_append(void *userdata)
{
        assert_int_equal(partition_log_truncate_to(userdata, 4), 0);
        append_many(userdata, 10, (struct made){0}, 2);
}

/* It must not vouch for bytes that came after it looked. */
static void a_flush_that_a_truncation_overtakes_does_not_move_the_recovery_point(void **state)
{
        struct partition_log *l = open_log(tmpdir_path(state, "t-0"), NULL, 0, false);

        append_many(l, 6, (struct made){0}, 1);
        syncs.userdata = l;
        syncs.during = truncate_and_append;
        assert_int_equal(partition_log_flush(l), 0);
        assert_null(syncs.during);
        assert_int_equal(partition_log_end_offset(l), 14);
        assert_int_equal(partition_log_recovery_point(l), 0);
        assert_int_equal(partition_log_flush(l), 0);
        assert_int_equal(partition_log_recovery_point(l), 14);
        partition_log_free(l);
}

/* The manager's checkpoint may still say 40: after a crash nothing below it is looked at. */
static void a_segment_sealed_below_a_checkpointed_recovery_point_is_synced_first(void **state)
{
        struct log_config c = small_config();
        struct partition_log *l;
        int64_t sealed = 0;

        c.segment_bytes = 1000;
        l = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        append_many(l, 40, (struct made){.value_bytes = 40}, 1);
        assert_int_equal(partition_log_flush(l), 0);
        syncs.n = 0;
        append_many(l, 20, (struct made){.value_bytes = 40}, 1);
        assert_int_equal(syncs.n, 0);
        assert_int_equal(partition_log_truncate_to(l, 50), 0); /* above it: none needed */
        assert_int_equal(syncs.n, 0);
        assert_int_equal(partition_log_truncate_to(l, 5), 0);
        assert_true(syncs.n > 0);
        while (partition_log_end_offset(l) < 80) {
                size_t n = count_files(tmpdir_path(state, "t-0"), ".log");
                int64_t end = partition_log_end_offset(l);

                syncs.n = 0;
                append_many(l, 1, (struct made){.value_bytes = 40}, 2);
                if (count_files(tmpdir_path(state, "t-0"), ".log") == n)
                        continue;
                assert_int_equal(syncs.n > 0, end <= 40);
                sealed++;
        }
        assert_true(sealed > 4);
        partition_log_free(l);
}

/* One life of a log under a fault. Returns how many records are there for certain. */
static int64_t live(struct partition_log *l)
{
        int64_t sure = 0;

        for (int i = 0; i < 24; i++) {
                struct made m = {.n_records = 2,
                                 .value_bytes = 60,
                                 .producer_id = 9,
                                 .sequence = (int32_t)sure,
                                 .timestamp_ms = i};

                if (append_made(l, &m, i / 8, NULL) == 0)
                        sure += 2;
                if (i == 10)
                        (void)!partition_log_flush(l);
                if (i == 16 && partition_log_truncate_to(l, 20) == 0)
                        sure = MIN(sure, 20);
                if (i == 16)
                        sure = MIN(sure, 20);
                assert_true(partition_log_end_offset(l) >= 0);
        }
        return sure;
}

static void every_single_failure_is_survived(void **state)
{
        static const int errors[] = {ENOSPC, EIO};
        struct log_config c = small_config();
        char dir[256];
        int n = 0;

        c.segment_bytes = 900;
        for (size_t e = 0; e < ARRAY_SIZE(errors); e++) {
                bool fired = true;

                for (n = 0; fired; n++) {
                        struct partition_log *l = NULL;
                        int64_t sure = 0;

                        (void)snprintf(dir, sizeof(dir), "%s-%zu-%d", tmpdir_path(state, "t"), e, n);
                        arm(n, errors[e], false, false);
                        if (partition_log_open(dir, &c, 0, false, &l) == 0) {
                                sure = live(l);
                                assert_true(partition_log_end_offset(l) >= sure);
                                if (n % 2)
                                        partition_log_free(l);
                                else
                                        partition_log_unref(l);
                        }
                        fired = fault.fired;
                        disarm();
                        l = open_log(dir, &c, 0, false);
                        assert_true(partition_log_end_offset(l) >= sure);
                        check_readable(l, 300);
                        append_many(l, 1, (struct made){.producer_id = 10}, 9);
                        partition_log_free(l);
                }
                assert_true(n > 50); /* it was worth it */
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, quiet_setup, quiet_teardown)
                T(a_full_disk_leaves_nothing_torn_and_service_resumes),
                T(a_resend_after_a_full_disk_is_no_duplicate),
                T(after_an_io_error_nothing_is_appended_until_the_log_is_opened_again),
                T(a_failed_sync_is_not_tried_again),
                T(a_flush_that_a_truncation_overtakes_does_not_move_the_recovery_point),
                T(a_segment_sealed_below_a_checkpointed_recovery_point_is_synced_first),
                T(every_single_failure_is_survived),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
