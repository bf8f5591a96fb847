/* The rules of the drain slot, as plain functions (D3, D8). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/slot_core.h"

static struct znode_slot *s;
static struct slot_peer peers[3];
static size_t n_peers;
static struct slot_now now;

static int setup(void **state)
{
        (void)state;
        s = calloc(1, sizeof(*s));
        n_peers = 3;
        for (int32_t i = 0; i < 3; i++)
                peers[i] = (struct slot_peer){.id = i + 1, .epoch = 100 + i};
        now = (struct slot_now){.mono_ms = 1000000, .wall_ms = 5000, .lease_ms = 60000};
        return s ? 0 : -1;
}

static int teardown(void **state)
{
        (void)state;
        free(s);
        return 0;
}

static void pass(int64_t ms)
{
        now.mono_ms += ms;
        now.wall_ms += ms;
}

static enum slot_verdict take_as(struct slot_ask a, const char *id)
{
        const struct slot_holder *holder;

        a.epoch = a.epoch ? a.epoch : 99 + a.broker;
        a.named_epoch = a.named_epoch ? a.named_epoch : -1;
        a.drain_id = id;
        return slot_take(s, &a, peers, n_peers, &now, &holder);
}

static enum slot_verdict take(int32_t broker, const char *id)
{
        return take_as((struct slot_ask){.broker = broker}, id);
}

static bool settle(void)
{
        return slot_settle(s, peers, n_peers, &now);
}

static void one_holds_and_the_next_waits_in_the_order_of_asking(void **state)
{
        (void)state;
        assert_int_equal(take(1, "a"), SLOT_GRANTED);
        assert_int_equal(take(1, "a"), SLOT_GRANTED); /* again */
        assert_int_equal(take(2, "b"), SLOT_HELD);
        assert_int_equal(s->n_holders, 1);
        assert_int_equal(slot_waiter_of(s, 2)->since_ms, 5000);
        pass(SLOT_PATIENCE_MS + 1);
        assert_true(settle()); /* it has given up */
        assert_null(slot_waiter_of(s, 2));
}

static void the_lease_begins_anew_when_the_broker_goes_down_and_when_it_is_back(void **state)
{
        (void)state;
        (void)take(1, "a");
        pass(59000);
        n_peers = 0;
        assert_true(settle());
        assert_int_equal(s->holders[0].state, SLOT_DOWN);
        pass(59000);
        n_peers = 3;
        peers[0].epoch = 200;
        peers[0].missing = 9;
        assert_true(settle());
        assert_int_equal(s->holders[0].state, SLOT_RETURNING);
        assert_true(slot_id_is_over(s, 1, -1, "a"));
        for (int32_t left = 8; left > 0; left--) { /* it catches up, slowly */
                pass(59000);
                peers[0].missing = left;
                (void)settle();
                assert_int_equal(s->n_holders, 1);
        }
        pass(60000); /* and then no more */
        assert_true(settle());
        assert_int_equal(s->n_holders, 0);
}

static void it_is_free_when_the_broker_is_in_every_isr_again(void **state)
{
        (void)state;
        (void)take(1, "a");
        peers[0] = (struct slot_peer){.id = 1, .epoch = 200, .missing = 0};
        assert_true(settle());
        assert_true(settle());
        assert_int_equal(s->n_holders, 0);
        assert_int_equal(take(1, "a"), SLOT_OVER); /* a late duplicate */
        assert_int_equal(take_as((struct slot_ask){.broker = 1, .epoch = 200, .named_epoch = 200}, "a"),
                         SLOT_GRANTED); /* the next life, by the same name */
}

static void renewals_are_written_now_and_then(void **state)
{
        int written = 0;

        (void)state;
        (void)take(1, "a");
        for (int i = 0; i < 120; i++) {
                pass(1000);
                slot_renew(s, 1, &now);
                written += settle();
        }
        assert_int_equal(s->n_holders, 1);
        assert_in_range(written, 6, 9);
}

static void another_controllers_slot_gets_a_whole_lease_whatever_the_clocks_say(void **state)
{
        (void)state;
        (void)take(1, "a");
        pass(30000);
        slot_set_ages(s, &now);
        now = (struct slot_now){.mono_ms = 77, .wall_ms = 10, .lease_ms = 60000}; /* another machine */
        slot_adopt(s, 0, &now);
        pass(59999);
        (void)settle();
        assert_int_equal(s->n_holders, 1);
        pass(1);
        assert_true(settle());
        assert_int_equal(s->n_holders, 0);
        assert_int_equal(s->ended[0].how, SLOT_END_EXPIRED);
}

static void all_within_ten_seconds_are_a_cluster_stop_and_two_of_three_are_not(void **state)
{
        (void)state;
        assert_int_equal(take(1, "a"), SLOT_GRANTED);
        assert_int_equal(take(2, "b"), SLOT_HELD);
        pass(9000);
        assert_int_equal(take(2, "b"), SLOT_HELD);
        assert_int_equal(take(3, "c"), SLOT_GRANTED);
        assert_true(s->cluster_stop);
        assert_int_equal(take(2, "b"), SLOT_GRANTED);
        assert_int_equal(s->n_holders, 3);
        /* the cluster is started again: nothing is left to wait for */
        for (int i = 0; i < 3; i++)
                peers[i].epoch = 300 + i;
        assert_true(settle());
        assert_false(s->cluster_stop);
        assert_int_equal(s->n_holders, 0);
}

static void a_third_that_asks_later_or_is_only_down_makes_no_cluster_stop(void **state)
{
        (void)state;
        (void)take(1, "a");
        (void)take(2, "b");
        pass(SLOT_STOP_WINDOW_MS + 1);
        (void)take(2, "b");
        assert_int_equal(take(3, "c"), SLOT_HELD);
        /* 3 has crashed: the two that live are not the whole cluster */
        (void)teardown(NULL);
        (void)setup(NULL);
        n_peers = 2;
        (void)take(1, "a");
        assert_int_equal(take_as((struct slot_ask){.broker = 2, .some_missing = true}, "b"), SLOT_HELD);
        assert_int_equal(take(2, "b"), SLOT_GRANTED);
}

/* The first has drained and is down, and another controller reads what it left, by ZooKeeper's clock. */
static void a_stop_is_recognised_by_a_successor_unless_it_is_long_ago(void **state)
{
        (void)state;
        for (int64_t age = 2000; age < 100000; age += 90000) {
                (void)teardown(NULL);
                (void)setup(NULL);
                (void)take(1, "a");
                (void)take(2, "b");
                n_peers = 2;
                memmove(peers, peers + 1, 2 * sizeof(peers[0]));
                (void)settle();
                slot_set_ages(s, &now);
                now = (struct slot_now){.mono_ms = 500, .wall_ms = 10, .lease_ms = 60000};
                slot_adopt(s, age, &now);
                (void)take(2, "b");
                assert_int_equal(take(3, "c"), age < 10000 ? SLOT_GRANTED : SLOT_HELD);
        }
}

static void a_takeover_is_recorded_with_who_and_why(void **state)
{
        (void)state;
        (void)take(1, "a");
        assert_int_equal(take_as((struct slot_ask){.broker = 2,
                                                   .replace = true,
                                                   .requested_by = "op",
                                                   .reason = "fire"},
                                 "b"),
                         SLOT_GRANTED);
        assert_int_equal(s->n_holders, 1);
        assert_int_equal(s->holders[0].broker, 2);
        assert_string_equal(s->ended[0].note, "taken over for broker 2 by op: fire");
}

static void only_the_last_ended_drains_are_remembered(void **state)
{
        (void)state;
        for (int i = 0; i < ZNODE_SLOT_MAX_ENDED + 5; i++) {
                char id[16] = {(char)('a' + i % 26), (char)('a' + i / 26)};

                assert_int_equal(take(1, id), SLOT_GRANTED);
                assert_true(slot_undo(s, 1, "", &now));
                s->n_holders = 0;
        }
        assert_int_equal(s->n_ended, ZNODE_SLOT_MAX_ENDED);
        assert_false(slot_id_is_over(s, 1, -1, "aa"));
        assert_true(slot_id_is_over(s, 1, -1, "fa"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(one_holds_and_the_next_waits_in_the_order_of_asking),
                TEST(the_lease_begins_anew_when_the_broker_goes_down_and_when_it_is_back),
                TEST(it_is_free_when_the_broker_is_in_every_isr_again),
                TEST(renewals_are_written_now_and_then),
                TEST(another_controllers_slot_gets_a_whole_lease_whatever_the_clocks_say),
                TEST(all_within_ten_seconds_are_a_cluster_stop_and_two_of_three_are_not),
                TEST(a_third_that_asks_later_or_is_only_down_makes_no_cluster_stop),
                TEST(a_stop_is_recognised_by_a_successor_unless_it_is_long_ago),
                TEST(a_takeover_is_recorded_with_who_and_why),
                TEST(only_the_last_ended_drains_are_remembered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
