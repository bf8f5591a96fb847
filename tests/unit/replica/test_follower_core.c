/* follower_core: what a follower does with an answer, and where it cuts its log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replica/follower_core.h"
#include "wire/error.h"

static const struct follower_log at_100 = {.start_offset = 10, .end_offset = 100, .hw = 80};

static enum follower_action on(int16_t error, int64_t fetch_offset, int32_t diverging_epoch)
{
        struct follower_answer a = {.error = error,
                                    .fetch_offset = fetch_offset,
                                    .diverging_epoch = diverging_epoch,
                                    .diverging_end_offset = 50,
                                    .records_bytes = 1};

        return follower_on_answer(&at_100, &a);
}

static void records_at_the_logs_end_are_appended(void **state)
{
        (void)state;
        assert_int_equal(on(KAFKA_NONE, 100, -1), FOLLOWER_APPEND);
}

static void records_for_another_offset_are_ignored(void **state)
{
        /* KAFKA-13266 */
        (void)state;
        assert_int_equal(on(KAFKA_NONE, 90, -1), FOLLOWER_IGNORE);
        assert_int_equal(on(KAFKA_NONE, 90, 3), FOLLOWER_IGNORE);
}

static void divergence_comes_before_records(void **state)
{
        /* KAFKA-14704 */
        (void)state;
        assert_int_equal(on(KAFKA_NONE, 100, 3), FOLLOWER_TRUNCATE);
}

static void errors_have_their_actions(void **state)
{
        (void)state;
        assert_int_equal(on(KAFKA_OFFSET_OUT_OF_RANGE, 100, -1), FOLLOWER_FIND_RANGE);
        assert_int_equal(on(KAFKA_UNKNOWN_LEADER_EPOCH, 100, -1), FOLLOWER_RETRY_SOON);
        assert_int_equal(on(KAFKA_FENCED_LEADER_EPOCH, 100, -1), FOLLOWER_RETRY_SOON); /* KAFKA-7786 */
        assert_int_equal(on(KAFKA_NOT_LEADER_OR_FOLLOWER, 100, -1), FOLLOWER_RETRY_SOON);
        assert_int_equal(on(KAFKA_STORAGE_ERROR, 100, -1), FOLLOWER_RETRY_LATER);
        assert_int_equal(on(KAFKA_UNKNOWN_SERVER_ERROR, 100, -1), FOLLOWER_RETRY_LATER);
}

static void the_cut_is_where_the_shared_epoch_ends_for_both(void **state)
{
        (void)state;
        /* ours of that epoch ends later: the leader's end counts */
        assert_int_equal(follower_truncation_offset(&at_100, 4, 60, 4, 95), 60);
        /* ours ends earlier: what follows is of another epoch */
        assert_int_equal(follower_truncation_offset(&at_100, 4, 60, 4, 40), 40);
        /* never beyond our log */
        assert_int_equal(follower_truncation_offset(&at_100, 4, 500, 4, 100), 100);
}

static void an_epoch_that_we_do_not_know_cuts_to_our_older_one(void **state)
{
        /* KIP-279: cut to the end of our largest epoch below the leader's, then ask with that. */
        (void)state;
        assert_int_equal(follower_truncation_offset(&at_100, 4, 60, 2, 30), 30);
        assert_int_equal(follower_truncation_offset(&at_100, 4, 20, 2, 30), 30);
}

static void without_any_older_epoch_the_leaders_end_counts(void **state)
{
        (void)state;
        assert_int_equal(follower_truncation_offset(&at_100, 4, 60, -1, -1), 60);
        assert_int_equal(follower_truncation_offset(&at_100, 4, 600, -1, -1), 100);
}

static void the_high_watermark_plays_no_part_in_the_cut(void **state)
{
        /* KAFKA-1211: an HW of 80 neither saves nor costs a record. */
        struct follower_log low = {.end_offset = 100, .hw = 0}, high = {.end_offset = 100, .hw = 100};

        (void)state;
        assert_int_equal(follower_truncation_offset(&low, 4, 60, 4, 95), 60);
        assert_int_equal(follower_truncation_offset(&high, 4, 60, 4, 95), 60);
}

static void out_of_range_is_resolved_by_the_leaders_range(void **state)
{
        int64_t offset;

        (void)state;
        assert_int_equal(follower_on_range(&at_100, 0, 70, &offset), FOLLOWER_RANGE_TRUNCATE);
        assert_int_equal(offset, 70);
        assert_int_equal(follower_on_range(&at_100, 150, 200, &offset), FOLLOWER_RANGE_RESTART);
        assert_int_equal(offset, 150);
        assert_int_equal(follower_on_range(&at_100, 0, 200, &offset), FOLLOWER_RANGE_REFETCH);
        assert_int_equal(offset, 100);
        assert_int_equal(follower_on_range(&at_100, 0, 5, &offset), FOLLOWER_RANGE_RESTART);
        assert_int_equal(offset, 5);
}

static void the_hw_follows_the_leaders_within_our_log(void **state)
{
        (void)state;
        assert_int_equal(follower_high_watermark(&at_100, 90), 90);
        assert_int_equal(follower_high_watermark(&at_100, 900), 100);
        assert_int_equal(follower_high_watermark(&at_100, 20), 80); /* I7 */
}

static void the_pause_doubles_up_to_its_maximum(void **state)
{
        (void)state;
        assert_int_equal(follower_backoff_ms(1, 10, 1000), 10);
        assert_int_equal(follower_backoff_ms(2, 10, 1000), 20);
        assert_int_equal(follower_backoff_ms(7, 10, 1000), 640);
        assert_int_equal(follower_backoff_ms(1000000, 10, 1000), 1000);
        assert_int_equal(follower_backoff_ms(1, 10, 5), 5);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(records_at_the_logs_end_are_appended),
                cmocka_unit_test(records_for_another_offset_are_ignored),
                cmocka_unit_test(divergence_comes_before_records),
                cmocka_unit_test(errors_have_their_actions),
                cmocka_unit_test(the_cut_is_where_the_shared_epoch_ends_for_both),
                cmocka_unit_test(an_epoch_that_we_do_not_know_cuts_to_our_older_one),
                cmocka_unit_test(without_any_older_epoch_the_leaders_end_counts),
                cmocka_unit_test(the_high_watermark_plays_no_part_in_the_cut),
                cmocka_unit_test(out_of_range_is_resolved_by_the_leaders_range),
                cmocka_unit_test(the_hw_follows_the_leaders_within_our_log),
                cmocka_unit_test(the_pause_doubles_up_to_its_maximum),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
