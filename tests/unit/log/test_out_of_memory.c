/* The n-th allocation fails, for every n: nothing crashes, leaks or is torn. Linked with --wrap. */
#include "log_testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "log/log_manager.h"

static int left = -1; /* allocations until the one that fails; < 0: none does */
static bool fired;

static bool fails(void)
{
        if (left < 0 || left-- > 0)
                return false;
        fired = true;
        return true;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
char *__wrap_strdup(const char *s);

void *__wrap_malloc(size_t n)
{
        return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
        return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
        return fails() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
        return fails() ? NULL : __real_strdup(s);
}

#define N_BATCHES 16

static struct buf batches[N_BATCHES];

static void make_batches(void)
{
        for (int i = 0; i < N_BATCHES; i++)
                make_batch(&batches[i], &(struct made){.base_offset = i * 2,
                                                       .n_records = 2,
                                                       .value_bytes = 60,
                                                       .timestamp_ms = i * 5,
                                                       .producer_id = 1 + i % 3,
                                                       .sequence = i / 3 * 2});
}

static int64_t live(struct partition_log *l)
{
        struct log_append_info info;
        int64_t sure = 0, o, t;

        for (int i = 0; i < N_BATCHES; i++) {
                struct buf out = {0};
                size_t n;
                int r = partition_log_append_leader(l, batches[i].data, batches[i].len, i / 5, 0, &info);

                assert_true(r == 0 || r == -ENOMEM || r == -EILSEQ); /* the last: the one before it failed */
                if (r == 0)
                        sure = info.last_offset + 1;
                r = partition_log_read(l, 0, sure, 500, true, &out, &n);
                assert_true(r == 0 || r == -ENOMEM);
                buf_done(&out);
        }
        (void)!partition_log_find_timestamp(l, 30, sure, &o, &t);
        (void)!partition_log_flush(l);
        (void)!partition_log_retain(l, 0, 10);
        return sure;
}

static void no_memory_is_an_error_and_no_more(void **state)
{
        struct log_config c = small_config();
        int n;

        slog_set_level((enum slog_level)0);
        c.segment_bytes = 900;
        c.retention_bytes = 1500;
        make_batches();
        fired = true;
        for (n = 0; fired; n++) {
                struct partition_log *l = NULL;
                int64_t sure = 0;
                char dir[256];
                int r;

                (void)snprintf(dir, sizeof(dir), "%s-%d", tmpdir_path(state, "t"), n);
                fired = false;
                left = n;
                r = partition_log_open(dir, &c, 0, false, &l);
                assert_true(r == 0 || r == -ENOMEM);
                if (r == 0) {
                        sure = live(l);
                        partition_log_free(l);
                }
                if (!fired) { /* and once more, for the loading */
                        r = partition_log_open(dir, &c, 0, n % 2, &l);
                        assert_true(r == 0 || r == -ENOMEM);
                        if (r == 0)
                                (void)!partition_log_truncate_to(l, 8);
                        sure = MIN(sure, 8);
                        if (r == 0)
                                partition_log_free(l);
                }
                left = -1;
                l = open_log(dir, &c, 0, false);
                assert_true(partition_log_end_offset(l) >= sure);
                check_readable(l, 1 << 20);
                partition_log_free(l);
        }
        assert_true(n > 100);
        for (int i = 0; i < N_BATCHES; i++)
                buf_done(&batches[i]);
}

static void a_manager_without_memory_says_so_or_works(void **state)
{
        struct log_manager_options o = {.log_dirs = tmpdir_path(state, "d"),
                                        .broker_id = 1,
                                        .recovery_threads = 1,
                                        .defaults = small_config()};
        struct partition_log *l;
        int n;

        slog_set_level((enum slog_level)0);
        fired = true;
        for (n = 0; fired; n++) {
                struct log_manager *m = NULL;
                char *error = NULL;
                int r;

                fired = false;
                left = n;
                r = log_manager_open(&o, "c", &m, &error);
                assert_true(r == 0 || r == -ENOMEM);
                free(error);
                if (r < 0)
                        continue;
                for (int32_t p = 0; p < 3; p++)
                        (void)!log_manager_get(m, "t", p, true, &l);
                (void)!log_manager_write_hw_checkpoint(m, &(struct log_hw){"t", 1, 0}, 1);
                (void)!log_manager_delete(m, "t", n % 3);
                (void)!log_manager_close_clean(m);
        }
        left = -1;
        assert_true(n > 50);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(no_memory_is_an_error_and_no_more, memdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test_setup_teardown(a_manager_without_memory_says_so_or_works, memdir_setup,
                                                tmpdir_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
