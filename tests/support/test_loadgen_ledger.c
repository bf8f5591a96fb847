/* loadgen_ledger.c and loadgen_payload.c: the verifier is only worth what it notices. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "loadgen.h"

static struct ledger_totals sum(struct ledger *l, bool final)
{
        struct ledger_totals t;

        ledger_sum(l, 1000000, final, &t);
        return t;
}

static void send_and_ack(struct ledger *l, int32_t partition, int n)
{
        for (int i = 0; i < n; i++) {
                uint64_t number = ledger_next(l, partition);

                ledger_sent(l, partition);
                ledger_acked(l, partition, number, 1000, 10);
        }
}

static void everything_acknowledged_and_read_in_order_is_fine(void **state)
{
        cleanup_with(ledger_freep) struct ledger *l = ledger_new(2);
        struct ledger_totals t;

        (void)state;
        for (int32_t p = 0; p < 2; p++) {
                send_and_ack(l, p, 1000);
                for (uint64_t i = 0; i < 1000; i++)
                        ledger_consumed(l, p, i);
        }
        t = sum(l, true);
        assert_int_equal(t.acked, 2000);
        assert_int_equal(t.consumed, 2000);
        assert_int_equal(t.lost + t.unread + t.out_of_order + t.duplicated + t.failed, 0);
}

static void each_number_missing_is_lost_once_the_consumer_has_passed_it(void **state)
{
        (void)state;
        for (uint64_t hole = 0; hole < 200; hole++) {
                cleanup_with(ledger_freep) struct ledger *l = ledger_new(1);

                send_and_ack(l, 0, 200);
                for (uint64_t i = 0; i < 200; i++) {
                        if (i == hole)
                                continue;
                        ledger_consumed(l, 0, i);
                        assert_int_equal(sum(l, false).lost, i > hole);
                }
                assert_int_equal(sum(l, true).lost, 1);
                ledger_consumed(l, 0, hole); /* late, but there */
                assert_int_equal(sum(l, true).lost, 0);
                assert_int_equal(sum(l, true).out_of_order, hole == 199 ? 0 : 1);
        }
}

static void what_was_never_acknowledged_cannot_be_lost(void **state)
{
        cleanup_with(ledger_freep) struct ledger *l = ledger_new(1);

        (void)state;
        send_and_ack(l, 0, 3);
        ledger_sent(l, 0); /* number 3: fails */
        ledger_failed(l, 0);
        send_and_ack(l, 0, 1);
        for (uint64_t i = 0; i < 5; i++)
                if (i != 3)
                        ledger_consumed(l, 0, i);
        assert_int_equal(sum(l, true).lost, 0);
        assert_int_equal(sum(l, true).failed, 1);
        ledger_consumed(l, 0, 5); /* written, though never acknowledged: no harm either */
        assert_int_equal(sum(l, true).lost, 0);
}

static void a_number_read_again_is_a_duplicate_and_not_out_of_order(void **state)
{
        cleanup_with(ledger_freep) struct ledger *l = ledger_new(1);

        (void)state;
        send_and_ack(l, 0, 3);
        ledger_consumed(l, 0, 0);
        ledger_consumed(l, 0, 1);
        ledger_consumed(l, 0, 0);
        ledger_consumed(l, 0, 2);
        assert_int_equal(sum(l, true).duplicated, 1);
        assert_int_equal(sum(l, true).out_of_order, 0);
        assert_int_equal(sum(l, true).consumed, 3);
}

static void a_gap_is_the_longest_time_between_two_acks_of_one_partition(void **state)
{
        cleanup_with(ledger_freep) struct ledger *l = ledger_new(3);
        struct ledger_totals t;

        (void)state;
        ledger_acked(l, 0, 0, 1000, 5);
        ledger_acked(l, 1, 0, 500000, 5); /* the time before the first ack is no gap */
        ledger_acked(l, 0, 1, 4000, 5);
        ledger_acked(l, 0, 2, 5000, 5);
        ledger_acked(l, 1, 1, 500100, 5);
        t = sum(l, true);
        assert_int_equal(t.max_gap_us, 3000);
        assert_int_equal(t.gap_p50_us, 3000); /* of two partitions; the third was never written */
        assert_int_equal(t.gap_p99_us, 3000);
}

static void gaps_count_between_reset_and_freeze_only(void **state)
{
        cleanup_with(ledger_freep) struct ledger *l = ledger_new(1);

        (void)state;
        ledger_acked(l, 0, 0, 1000, 5);
        ledger_acked(l, 0, 1, 91000, 5);
        ledger_gaps_reset(l, 100000);
        assert_int_equal(sum(l, false).max_gap_us, 0);
        ledger_acked(l, 0, 2, 102000, 5);
        assert_int_equal(sum(l, false).max_gap_us, 2000);
        for (int i = 0; i < 4; i++)
                ledger_sent(l, 0);
        ledger_gaps_freeze(l, 110000); /* one message waits: its gap counts as far as it got */
        assert_int_equal(sum(l, false).max_gap_us, 8000);
        ledger_acked(l, 0, 3, 900000, 5);
        assert_int_equal(sum(l, false).max_gap_us, 8000);
}

static void a_message_of_another_run_or_changed_in_one_byte_is_not_taken(void **state)
{
        uint8_t p[100];
        uint64_t number = 0;

        (void)state;
        payload_fill(p, sizeof(p), 42, 7, 12345, 99);
        assert_true(payload_check(p, sizeof(p), 42, 7, &number));
        assert_int_equal(number, 12345);
        assert_false(payload_check(p, sizeof(p), 43, 7, &number));
        assert_false(payload_check(p, sizeof(p), 42, 8, &number));
        assert_false(payload_check(p, 31, 42, 7, &number));
        for (size_t i = PAYLOAD_MIN_BYTES; i < sizeof(p); i++) {
                p[i] ^= 1;
                assert_false(payload_check(p, sizeof(p), 42, 7, &number));
                assert_true(payload_is_of_run(p, sizeof(p), 42));
                p[i] ^= 1;
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_acknowledged_and_read_in_order_is_fine),
                cmocka_unit_test(each_number_missing_is_lost_once_the_consumer_has_passed_it),
                cmocka_unit_test(what_was_never_acknowledged_cannot_be_lost),
                cmocka_unit_test(a_number_read_again_is_a_duplicate_and_not_out_of_order),
                cmocka_unit_test(a_gap_is_the_longest_time_between_two_acks_of_one_partition),
                cmocka_unit_test(gaps_count_between_reset_and_freeze_only),
                cmocka_unit_test(a_message_of_another_run_or_changed_in_one_byte_is_not_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
