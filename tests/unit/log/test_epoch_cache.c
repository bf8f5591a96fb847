#include "log_testing.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "log/checkpoint.h"
#include "log/epoch_cache_core.h"

static void fill(struct epoch_cache *c, const struct epoch_entry *entries, size_t n)
{
        for (size_t i = 0; i < n; i++)
                assert_int_equal(epoch_cache_assign(c, entries[i].epoch, entries[i].start_offset), 1);
}

static void check_end(const struct epoch_cache *c, int32_t epoch, int64_t leo, int32_t want_epoch,
                      int64_t want_end)
{
        int32_t e;
        int64_t end;

        epoch_cache_end_offset(c, epoch, leo, &e, &end);
        assert_int_equal(e, want_epoch);
        assert_int_equal(end, want_end);
}

static void the_end_of_an_epoch_is_where_the_next_begins(void **state)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache c = {0};

        (void)state;
        check_end(&c, 0, 10, -1, -1); /* nothing is known */
        fill(&c, (struct epoch_entry[]){{2, 0}, {5, 10}, {6, 25}}, 3);

        check_end(&c, 6, 40, 6, 40); /* the latest goes to the log's end */
        check_end(&c, 2, 40, 2, 10);
        check_end(&c, 5, 40, 5, 25);
        check_end(&c, 4, 40, 2, 10);  /* one we never saw: the largest before it (KIP-279) */
        check_end(&c, 7, 40, -1, -1); /* one from our future */
        check_end(&c, 1, 40, 1, 0);   /* one from before our log */
        check_end(&c, -1, 40, -1, -1);
}

/* KIP-279: B led epoch 1 and wrote, C took over in epoch 2 without having B's data. */
static void a_leader_without_data_yet_answers_for_the_epoch_before_it(void **state)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache c = {0};

        (void)state;
        fill(&c, (struct epoch_entry[]){{0, 0}, {2, 5}}, 2); /* KAFKA-7415: recorded when it became leader */
        check_end(&c, 1, 5, 0, 5);
}

static void an_entry_that_contradicts_older_ones_replaces_them(void **state)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache c = {0};

        (void)state;
        fill(&c, (struct epoch_entry[]){{1, 0}, {3, 10}, {5, 20}}, 3);
        assert_int_equal(epoch_cache_assign(&c, 5, 30), 0); /* it began at 20 already */
        assert_int_equal(epoch_cache_assign(&c, 4, 10), 1); /* 3 had no data, 5 is not after 4 */
        assert_int_equal(c.n, 2);
        assert_int_equal(c.entries[1].epoch, 4);
        assert_int_equal(c.entries[1].start_offset, 10);
        assert_int_equal(epoch_cache_assign(&c, -1, 0), -EINVAL);
        assert_int_equal(epoch_cache_assign(&c, 9, -1), -EINVAL);
}

static void truncation_forgets_epochs_at_either_end(void **state)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache c = {0};

        (void)state;
        fill(&c, (struct epoch_entry[]){{1, 0}, {3, 10}, {5, 20}}, 3);
        assert_false(epoch_cache_truncate_from_end(&c, 21));
        assert_true(epoch_cache_truncate_from_end(&c, 20));
        assert_int_equal(epoch_cache_latest(&c), 3);

        assert_true(epoch_cache_truncate_from_start(&c, 15));
        assert_int_equal(c.n, 1);
        assert_int_equal(c.entries[0].start_offset, 15);
        assert_false(epoch_cache_truncate_from_start(&c, 15));
        assert_int_equal(epoch_cache_at(&c, 14), -1);
        assert_int_equal(epoch_cache_at(&c, 15), 3);
}

static void the_checkpoint_gives_back_what_was_written(void **state)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache c = {0}, back = {0};
        cleanup_with(buf_donep) struct buf text = {0};
        const char *path = tmpdir_path(state, "leader-epoch-checkpoint");

        fill(&c, (struct epoch_entry[]){{1, 0}, {3, 10}, {INT32_MAX, INT64_MAX}}, 3);
        assert_int_equal(checkpoint_write_epochs(path, &c), 0);
        file_read(path, &text);
        assert_string_equal(buf_cstr(&text), "0\n3\n1 0\n3 10\n2147483647 9223372036854775807\n");
        assert_int_equal(checkpoint_read_epochs(path, &back), 0);
        assert_int_equal(back.n, 3);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(back.entries[i].epoch, c.entries[i].epoch);
                assert_int_equal(back.entries[i].start_offset, c.entries[i].start_offset);
        }
        assert_int_equal(checkpoint_read_epochs(tmpdir_path(state, "none"), &back), -ENOENT);
}

static void malformed_checkpoints_are_refused(void **state)
{
        static const char *const bad[] = {
                "",
                "0",
                "0\n",
                "0\n1\n",
                "1\n0\n",
                "0\n-1\n",
                "0\n1\n1\n",
                "0\n1\n1 2",
                "0\n2\n1 2\n",
                "0\n0\n1 2\n",
                "0\n1\n1 x\n",
                "0\n1\n1 -2\n",
                "0\n1\n-1 2\n",
                "0\n1\n1  2\n",
                "0\n2\n2 0\n1 5\n",
                "0\n2\n1 5\n2 5\n",
                "x\n0\n",
                "0\n99999999999\n",
                "0\n2000000000\n1 2\n",
                "0\n1\n 1 2\n",
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                cleanup_with(freep) char *text = strdup(bad[i]);
                struct epoch_cache c;
                int line;

                assert_non_null(text);
                assert_int_equal(checkpoint_parse_epochs(text, strlen(text), &c, &line), -EBADMSG);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_end_of_an_epoch_is_where_the_next_begins),
                cmocka_unit_test(a_leader_without_data_yet_answers_for_the_epoch_before_it),
                cmocka_unit_test(an_entry_that_contradicts_older_ones_replaces_them),
                cmocka_unit_test(truncation_forgets_epochs_at_either_end),
                cmocka_unit_test_setup_teardown(the_checkpoint_gives_back_what_was_written, tmpdir_setup,
                                                tmpdir_teardown),
                cmocka_unit_test(malformed_checkpoints_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
