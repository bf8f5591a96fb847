/* A process that appends is killed at any moment, again and again. What it said was appended is there, what
 * it said was flushed is below the recovery point it may start from, and all of it is right. */
#include "log_testing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/slog.h"

#define RUN_MS 4000

#define MAX_RECORDS 20 /* a batch */

struct report { /* what the child says after each step */
        int64_t end_offset, recovery_point, truncated_to;
};

/* Record @offset's value begins with "v<offset>". */
static void check_values(struct partition_log *l)
{
        int64_t at = partition_log_start_offset(l), end = partition_log_end_offset(l);

        while (at < end) {
                cleanup_with(buf_donep) struct buf b = {0};
                struct record_batch_iter it;
                struct record_batch batch;
                size_t n;

                assert_int_equal(partition_log_read(l, at, end, 1 << 20, true, &b, &n), 0);
                it = record_batch_iter(b.data, b.len);
                while (record_batch_iter_next(&it, &batch) > 0) {
                        struct record_iter ri = record_iter(&batch);
                        struct record r;
                        char want[32];

                        assert_int_equal(batch.base_offset, at);
                        while (record_iter_next(&ri, &r) > 0) {
                                int k = snprintf(want, sizeof(want), "v%lld.", (long long)at++);

                                assert_memory_equal(r.value.data, want, (size_t)k);
                        }
                }
        }
}

static void child(const char *dir, int out, int64_t recovery_point, int32_t epoch, unsigned seed)
{
        struct log_config c = small_config();
        struct partition_log *l;

        c.segment_bytes = 20000;
        c.retention_bytes = 200000;
        if (partition_log_open(dir, &c, recovery_point, false, &l) < 0)
                _exit(3);
        if (partition_log_assign_epoch(l, epoch, partition_log_end_offset(l)) < 0)
                _exit(4);
        for (int i = 0;; i++) {
                struct made m = {.n_records = 1 + rand_r(&seed) % MAX_RECORDS,
                                 .value_bytes = 30 + rand_r(&seed) % 300,
                                 .timestamp_ms = i,
                                 .producer_id = epoch + 1};
                struct report rep = {.truncated_to = INT64_MAX};

                m.sequence = (int32_t)(i == 0 ? 0 : -1);
                if (m.sequence < 0)
                        m.producer_id = 0;
                if (append_made(l, &m, epoch, NULL) < 0)
                        _exit(5);
                if (rand_r(&seed) % 50 == 0 && partition_log_flush(l) < 0)
                        _exit(6);
                if (rand_r(&seed) % 100 == 0 && partition_log_retain(l, 0, partition_log_end_offset(l)) < 0)
                        _exit(7);
                if (rand_r(&seed) % 200 == 0) {
                        int64_t start = partition_log_start_offset(l);
                        int64_t cut = MAX(partition_log_end_offset(l) - 30, start);

                        /* Said before it is done: from now on less may be there, by up to a batch, which goes
                         * whole when the cut is inside it. */
                        rep.truncated_to = MAX(cut - MAX_RECORDS, start);
                        if (write(out, &rep, sizeof(rep)) != sizeof(rep) ||
                            partition_log_truncate_to(l, cut) < 0)
                                _exit(8);
                        rep.truncated_to = INT64_MAX;
                }
                rep.end_offset = partition_log_end_offset(l);
                rep.recovery_point = partition_log_recovery_point(l);
                if (write(out, &rep, sizeof(rep)) != sizeof(rep))
                        _exit(9);
        }
}

struct known {
        int64_t end_offset, recovery_point;
        int reports;
};

static void kill_one(const char *dir, struct known *k, int32_t epoch, unsigned *seed)
{
        struct timespec life = {.tv_nsec = 1000000L * (1 + rand_r(seed) % 40)};
        struct report rep;
        int p[2], status;
        pid_t pid;

        assert_int_equal(pipe(p), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void)close(p[0]);
                child(dir, p[1], k->recovery_point, epoch, *seed);
        }
        (void)close(p[1]);
        /* The pipe holds 64 KiB: drain it while the child lives, and let it live at least until it has begun.
         */
        for (int64_t until = -1; until < 0 || clock_mono_ms() < until;) {
                if (read(p[0], &rep, sizeof(rep)) != sizeof(rep))
                        break;
                if (until < 0)
                        until = clock_mono_ms() + life.tv_nsec / 1000000;
                k->reports++;
                k->end_offset =
                        rep.truncated_to != INT64_MAX ? MIN(k->end_offset, rep.truncated_to) : rep.end_offset;
                k->recovery_point = rep.truncated_to != INT64_MAX ? MIN(k->recovery_point, rep.truncated_to)
                                                                  : rep.recovery_point;
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        while (read(p[0], &rep, sizeof(rep)) == sizeof(rep)) {
                k->end_offset =
                        rep.truncated_to != INT64_MAX ? MIN(k->end_offset, rep.truncated_to) : rep.end_offset;
                k->recovery_point = rep.truncated_to != INT64_MAX ? MIN(k->recovery_point, rep.truncated_to)
                                                                  : rep.recovery_point;
        }
        (void)close(p[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status)); /* else the child saw an error: its exit status says which */
}

static void nothing_that_was_appended_is_lost_by_a_killed_process(void **state)
{
        int64_t deadline = clock_mono_ms() + RUN_MS;
        struct known k = {0};
        unsigned seed = (unsigned)clock_real_ms();
        int32_t rounds = 0;

        slog_set_level(SLOG_ERROR);
        print_message("seed %u\n", seed);
        while (clock_mono_ms() < deadline) {
                struct log_config c = small_config();
                struct partition_log *l;

                kill_one(tmpdir_path(state, "t-0"), &k, rounds++, &seed);
                c.segment_bytes = 20000;
                l = open_log(tmpdir_path(state, "t-0"), &c, k.recovery_point, false);
                assert_true(partition_log_end_offset(l) >= k.end_offset);
                assert_true(partition_log_recovery_point(l) <= partition_log_end_offset(l));
                check_readable(l, 100000);
                check_values(l);
                k.end_offset = partition_log_end_offset(l);
                partition_log_unref(l); /* as if this process, too, had been killed */
        }
        print_message("%d kills, %d reports, end offset %lld\n", rounds, k.reports, (long long)k.end_offset);
        assert_true(rounds >= 10 && k.reports > 100);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(nothing_that_was_appended_is_lost_by_a_killed_process,
                                                tmpdir_setup, tmpdir_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
