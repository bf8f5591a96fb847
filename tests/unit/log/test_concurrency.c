/* Reading, flushing and unlinking beside an appender that also truncates and retains. Meant to be run under
 * TSan, too. */
#include "log_testing.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/slog.h"

#define RUN_MS 1500

/* cmocka's assertions jump out of the test, which only its own thread can do. */
#define CHECK(condition)                                                                                     \
        do {                                                                                                 \
                if (!(condition)) {                                                                          \
                        print_error("%s:%d: %s\n", __FILE__, __LINE__, #condition);                          \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

struct shared {
        struct partition_log *log;
        pthread_mutex_t lock; /* the partition's */
        int64_t deadline;
        atomic_llong reads, batches;
};

/* Every batch is whole, right, and behind the one before. */
static void check_bytes(struct shared *s, const struct buf *b, int64_t offset, int64_t bound)
{
        struct record_batch_iter it = record_batch_iter(b->data, b->len);
        struct record_batch batch;
        int64_t next = -1;

        while (record_batch_iter_next(&it, &batch) > 0) {
                CHECK(record_batch_check(&batch) == 0);
                if (next < 0)
                        CHECK(batch.base_offset <= offset);
                else
                        CHECK(batch.base_offset == next);
                next = record_batch_last_offset(&batch) + 1;
                CHECK(next <= bound);
                atomic_fetch_add(&s->batches, 1);
        }
        CHECK(it.pos == it.end);
}

static void *reader(void *userdata)
{
        struct shared *s = userdata;
        struct partition_log *l = partition_log_ref(s->log);
        unsigned seed = (unsigned)(uintptr_t)&seed;

        while (clock_mono_ms() < s->deadline) {
                cleanup_with(buf_donep) struct buf b = {0};
                int64_t start, end, at, o, t;
                size_t n = 0;
                int r;

                pthread_mutex_lock(&s->lock);
                start = partition_log_start_offset(l);
                end = partition_log_end_offset(l);
                pthread_mutex_unlock(&s->lock);
                at = start + (end > start ? rand_r(&seed) % (end - start) : 0);
                r = partition_log_read(l, at, end, 5000, true, &b, &n);
                CHECK(r == 0 || r == -ERANGE); /* retention and truncation are faster */
                if (r == 0)
                        check_bytes(s, &b, at, end);
                (void)partition_log_bytes_between(l, at, end);
                r = partition_log_find_timestamp(l, at, end, &o, &t);
                CHECK(r == 0);
                atomic_fetch_add(&s->reads, 1);
        }
        partition_log_unref(l);
        return NULL;
}

static void *flusher(void *userdata)
{
        struct shared *s = userdata;
        struct partition_log *l = partition_log_ref(s->log);

        while (clock_mono_ms() < s->deadline) {
                CHECK(partition_log_flush(l) == 0);
                (void)partition_log_reap(l);
        }
        partition_log_unref(l);
        return NULL;
}

static void change(struct shared *s, int i)
{
        struct partition_log *l = s->log;
        int64_t end = partition_log_end_offset(l);

        append_many(l, 1,
                    (struct made){.n_records = 1 + i % 3,
                                  .value_bytes = i % 200,
                                  .timestamp_ms = end,
                                  .producer_id = 5,
                                  .sequence = (int32_t)end},
                    i / 500);
        if (i % 301 == 300)
                assert_int_equal(partition_log_truncate_to(l, MAX(end - 20, partition_log_start_offset(l))),
                                 0);
        if (i % 101 == 100)
                assert_true(partition_log_retain(l, 0, partition_log_end_offset(l)) >= 0);
}

static void readers_and_flushers_run_beside_appends_truncation_and_retention(void **state)
{
        struct log_config c = small_config();
        struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER, .deadline = clock_mono_ms() + RUN_MS};
        pthread_t threads[4];
        int i = 0;

        slog_set_level(SLOG_ERROR);
        c.segment_bytes = 20000;
        c.retention_bytes = 100000;
        s.log = open_log(tmpdir_path(state, "t-0"), &c, 0, false);
        for (int t = 0; t < 3; t++)
                assert_int_equal(pthread_create(&threads[t], NULL, reader, &s), 0);
        assert_int_equal(pthread_create(&threads[3], NULL, flusher, &s), 0);
        while (clock_mono_ms() < s.deadline) {
                pthread_mutex_lock(&s.lock);
                change(&s, i++);
                pthread_mutex_unlock(&s.lock);
        }
        for (int t = 0; t < 4; t++)
                assert_int_equal(pthread_join(threads[t], NULL), 0);
        assert_true(s.reads > 50 && s.batches > 50 && i > 100);
        assert_true(partition_log_recovery_point(s.log) > 0);
        check_readable(s.log, 1 << 20);
        partition_log_free(s.log);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, tmpdir_setup, tmpdir_teardown)
                T(readers_and_flushers_run_beside_appends_truncation_and_retention),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
