/* leader_core: the high watermark, who joins the ISR, who leaves it, and what the controller's answers do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "replica/leader_core.h"
#include "wire/error.h"

#define LAG 1000

static const int32_t three[] = {1, 2, 3};

static struct leader_start start_of(int32_t epoch, const int32_t *isr, int32_t n_isr, int64_t leo, int64_t hw)
{
        return (struct leader_start){
                .self = 1,
                .epoch = epoch,
                .partition_epoch = 10,
                .min_isr = 1,
                .replicas = three,
                .n_replicas = 3,
                .isr = isr,
                .n_isr = n_isr,
                .lag_max_ms = LAG,
                .leo = leo,
                .hw = hw,
                .now_ms = 0,
                .may_commit = true,
        };
}

/* Broker 1 leads epoch 5 of {1,2,3} with this ISR, log end and HW, at time 0. */
static struct leader leading(const int32_t *isr, int32_t n_isr, int64_t leo, int64_t hw)
{
        struct leader l = {0};
        struct leader_effects e;
        struct leader_start s = start_of(5, isr, n_isr, leo, hw);

        assert_int_equal(leader_begin(&l, &s, &e), 0);
        return l;
}

static struct leader_effects fetch(struct leader *l, int32_t follower, int64_t offset, int64_t now_ms)
{
        struct leader_effects e;
        struct leader_fetch f = {
                .follower_id = follower, .offset = offset, .broker_epoch = 70 + follower, .now_ms = now_ms};

        assert_int_equal(leader_on_fetch(l, &f, &e), 0);
        return e;
}

static struct leader_effects append(struct leader *l, int64_t leo, int64_t now_ms)
{
        struct leader_effects e;

        leader_on_append(l, leo, now_ms, &e);
        return e;
}

static struct leader_effects tick(struct leader *l, int64_t now_ms)
{
        struct leader_effects e;

        leader_on_tick(l, now_ms, &e);
        return e;
}

static struct leader_effects answer(struct leader *l, int16_t error, const int32_t *isr, int32_t n,
                                    int32_t partition_epoch)
{
        struct leader_effects e;
        struct leader_isr_result a = {.proposal = l->proposal,
                                      .error = error,
                                      .leader_epoch = l->epoch,
                                      .partition_epoch = partition_epoch,
                                      .isr = isr,
                                      .n_isr = n,
                                      .now_ms = 0};

        leader_on_isr_result(l, &a, &e);
        return e;
}

static bool in_isr(const struct leader *l, int32_t id)
{
        return leader_find_replica(l, id)->in_isr;
}

static bool proposed(const struct leader *l, int32_t id)
{
        return leader_find_replica(l, id)->in_proposal;
}

/* --- high watermark --- */

static void the_hw_is_the_smallest_end_in_the_isr(void **state)
{
        struct leader l = leading(three, 3, 0, 0);

        (void)state;
        append(&l, 10, 0);
        assert_false(fetch(&l, 2, 7, 1).hw_moved); /* 3 has not been heard of */
        assert_true(fetch(&l, 3, 4, 2).hw_moved);
        assert_int_equal(l.hw, 4);
        fetch(&l, 3, 10, 3);
        assert_int_equal(l.hw, 7);
        leader_done(&l);
}

static void a_lone_leader_commits_at_once(void **state)
{
        /* KAFKA-420: nobody fetches, so append and becoming leader must move it. */
        struct leader l = leading((int32_t[]){1}, 1, 5, 0);

        (void)state;
        assert_int_equal(l.hw, 5);
        assert_true(append(&l, 6, 0).hw_moved);
        assert_int_equal(l.hw, 6);
        leader_done(&l);
}

static void the_hw_never_moves_back(void **state)
{
        struct leader l = leading(three, 3, 10, 8);

        (void)state;
        fetch(&l, 2, 3, 0);
        assert_false(fetch(&l, 3, 10, 0).hw_moved);
        assert_int_equal(l.hw, 8);
        leader_done(&l);
}

static void the_hw_stands_below_min_isr(void **state)
{
        /* KAFKA-15583 */
        struct leader l = leading((int32_t[]){1}, 1, 0, 0);
        struct leader_effects e;

        (void)state;
        leader_set_min_isr(&l, 2, 0, &e);
        assert_false(append(&l, 3, 0).hw_moved);
        assert_int_equal(l.hw, 0);
        leader_set_min_isr(&l, 1, 0, &e);
        assert_true(e.hw_moved);
        assert_int_equal(l.hw, 3);
        leader_done(&l);
}

static void min_isr_is_never_more_than_the_replicas(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 0, 0);

        (void)state;
        l.min_isr = 7;
        assert_int_equal(leader_effective_min_isr(&l), 3);
        leader_done(&l);
}

static void the_hw_stands_without_the_lease(void **state)
{
        /* F2 */
        struct leader l = leading((int32_t[]){1}, 1, 0, 0);

        (void)state;
        l.may_commit = false;
        assert_false(append(&l, 3, 0).hw_moved);
        l.may_commit = true;
        assert_true(append(&l, 4, 0).hw_moved);
        leader_done(&l);
}

static void the_hw_waits_for_a_replica_that_is_about_to_join(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);

        (void)state;
        fetch(&l, 2, 5, 100); /* proposed; while that is under way, 3 catches up as well */
        fetch(&l, 3, 5, 100);
        answer(&l, KAFKA_NONE, (int32_t[]){1, 2}, 2, 11);
        append(&l, 6, 150);
        assert_false(fetch(&l, 2, 6, 200).hw_moved); /* 3 was caught up 100 ms ago */
        assert_int_equal(l.hw, 5);
        assert_true(fetch(&l, 3, 6, 300).hw_moved);
        assert_int_equal(l.hw, 6);
        leader_done(&l);
}

static void the_hw_does_not_wait_for_who_no_longer_fetches(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);

        (void)state;
        l.lag_max_ms = 30000;
        fetch(&l, 2, 5, 100);
        fetch(&l, 3, 5, 100);
        answer(&l, KAFKA_NONE, (int32_t[]){1, 2}, 2, 11);
        append(&l, 6, 1000); /* 3 died at 101 */
        assert_true(fetch(&l, 2, 6, 1101).hw_moved);
        leader_done(&l);
}

static void the_hw_does_not_wait_for_a_replica_that_the_controller_refused(void **state)
{
        /* A drained broker still fetches, is refused, and is stopped in the end: producers must not notice
         * (R10, KAFKA-14140). */
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);

        (void)state;
        l.lag_max_ms = 30000;
        fetch(&l, 2, 5, 0);
        answer(&l, KAFKA_INELIGIBLE_REPLICA, NULL, 0, 0);
        assert_true(append(&l, 6, 10).hw_moved);
        fetch(&l, 2, 6, 1050); /* the pause is over: proposed once more */
        assert_false(append(&l, 7, 1051).hw_moved);
        answer(&l, KAFKA_INELIGIBLE_REPLICA, NULL, 0, 0);
        assert_int_equal(l.hw, 7);
        assert_true(append(&l, 8, 2100).hw_moved);
        leader_done(&l);
}

static void a_new_leader_waits_until_every_member_has_fetched_once(void **state)
{
        struct leader l = leading((int32_t[]){1, 2}, 2, 10, 4);

        (void)state;
        assert_int_equal(l.hw, 4);
        assert_false(append(&l, 12, 0).hw_moved);
        assert_true(fetch(&l, 2, 12, 0).hw_moved);
        assert_int_equal(l.hw, 12);
        leader_done(&l);
}

static void going_on_leading_keeps_what_is_known_of_followers(void **state)
{
        struct leader l = leading(three, 3, 10, 0);
        struct leader_start s = start_of(6, (int32_t[]){1, 2}, 2, 10, 0);
        struct leader_effects e;

        (void)state;
        fetch(&l, 2, 10, 0);
        fetch(&l, 3, 2, 0);
        assert_int_equal(l.hw, 2);
        s.was_leader = true;
        s.hw = 2;
        assert_int_equal(leader_begin(&l, &s, &e), 0); /* the controller took 3 out */
        assert_true(e.hw_moved);
        assert_int_equal(l.hw, 10);
        leader_done(&l);
}

static void what_followers_have_is_not_known_after_an_epoch_that_was_missed(void **state)
{
        /* Epoch 6 was another's: 2 cut its log there before it came back to us with 7 */
        struct leader l = leading(three, 3, 10, 0);
        struct leader_start s = start_of(7, three, 3, 10, 0);
        struct leader_effects e;

        (void)state;
        fetch(&l, 2, 10, 0);
        s.was_leader = true;
        assert_int_equal(leader_begin(&l, &s, &e), 0);
        assert_false(fetch(&l, 3, 10, 0).hw_moved);
        assert_int_equal(l.hw, 0);
        assert_true(fetch(&l, 2, 7, 0).hw_moved);
        assert_int_equal(l.hw, 7);
        leader_done(&l);
}

static void a_newer_isr_of_the_same_epoch_keeps_the_epochs_start(void **state)
{
        struct leader l = leading(three, 3, 10, 0);
        struct leader_start s = start_of(5, (int32_t[]){1, 2}, 2, 20, 0);
        struct leader_effects e;

        (void)state;
        s.was_leader = true;
        s.partition_epoch = 11;
        assert_int_equal(leader_begin(&l, &s, &e), 0);
        assert_int_equal(l.epoch_start_offset, 10);
        assert_int_equal(l.partition_epoch, 11);
        leader_done(&l);
}

/* --- expand --- */

static void a_follower_joins_once_it_has_reached_the_hw(void **state)
{
        struct leader l = leading((int32_t[]){1, 2}, 2, 10, 0);

        (void)state;
        fetch(&l, 2, 10, 0);
        assert_int_equal(l.hw, 10);
        append(&l, 20, 0);
        assert_false(fetch(&l, 3, 9, 0).propose);
        assert_true(fetch(&l, 3, 10, 0).propose);
        assert_true(proposed(&l, 1) && proposed(&l, 2) && proposed(&l, 3));
        assert_int_equal(leader_isr_size(&l), 2); /* not before the controller said so */
        assert_int_equal(leader_maximal_isr_size(&l), 3);
        answer(&l, KAFKA_NONE, three, 3, 11);
        assert_true(in_isr(&l, 3));
        assert_int_equal(l.partition_epoch, 11);
        leader_done(&l);
}

static void nobody_joins_below_the_start_of_the_epoch(void **state)
{
        /* KAFKA-7128: HW 4 is old, the previous leader committed up to 10, where our epoch starts. */
        struct leader l = leading((int32_t[]){1, 2}, 2, 10, 4);

        (void)state;
        assert_false(fetch(&l, 3, 4, 0).propose);
        assert_false(fetch(&l, 3, 9, 0).propose);
        assert_true(fetch(&l, 3, 10, 0).propose);
        leader_done(&l);
}

static void only_one_proposal_is_in_flight(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);

        (void)state;
        assert_true(fetch(&l, 2, 5, 0).propose);
        assert_false(fetch(&l, 3, 5, 0).propose);
        answer(&l, KAFKA_NONE, (int32_t[]){1, 2}, 2, 11);
        assert_true(fetch(&l, 3, 5, 0).propose);
        leader_done(&l);
}

static void a_stranger_does_not_join(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);
        struct leader_effects e;
        struct leader_fetch f = {.follower_id = 9, .offset = 5};

        (void)state;
        assert_int_equal(leader_on_fetch(&l, &f, &e), -ENOENT);
        assert_false(e.propose);
        leader_done(&l);
}

static void the_broker_epoch_is_of_the_fetch_that_caught_up(void **state)
{
        /* KAFKA-15221 */
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);

        (void)state;
        fetch(&l, 2, 5, 0);
        assert_int_equal(leader_find_replica(&l, 2)->broker_epoch, 72);
        leader_done(&l);
}

/* --- shrink --- */

static void who_falls_behind_leaves(void **state)
{
        struct leader l = leading(three, 3, 0, 0);

        (void)state;
        append(&l, 10, 0);
        fetch(&l, 2, 10, 500);
        assert_false(tick(&l, LAG).propose);
        assert_true(tick(&l, LAG + 1).propose); /* 3 was last heard of at 0, as a member */
        assert_true(proposed(&l, 1) && proposed(&l, 2) && !proposed(&l, 3));
        assert_int_equal(leader_maximal_isr_size(&l), 3); /* until it is committed, 3 counts */
        leader_done(&l);
}

static void who_has_everything_is_never_stuck(void **state)
{
        /* KAFKA-7152: an idle partition, whose follower may fetch rarely. */
        struct leader l = leading(three, 3, 10, 10);

        (void)state;
        fetch(&l, 2, 10, 0);
        fetch(&l, 3, 10, 0);
        assert_false(tick(&l, 100 * LAG).propose);
        leader_done(&l);
}

static void a_follower_that_keeps_up_with_a_busy_log_stays(void **state)
{
        /* KAFKA-4485: never at the end, but each time where the end was when it last asked. */
        struct leader l = leading((int32_t[]){1, 2}, 2, 0, 0);

        (void)state;
        for (int64_t t = 1; t < 10; t++) {
                append(&l, 10 * t, t * LAG / 2);
                fetch(&l, 2, 10 * (t - 1), t * LAG / 2);
                assert_false(tick(&l, t * LAG / 2).propose);
        }
        leader_done(&l);
}

static void a_committed_shrink_moves_the_hw(void **state)
{
        /* KAFKA-13091: producers wait for exactly this. */
        struct leader l = leading((int32_t[]){1, 2}, 2, 0, 0);

        (void)state;
        append(&l, 10, 0);
        assert_true(tick(&l, LAG + 1).propose);
        assert_false(append(&l, 11, LAG + 2).hw_moved);
        l.replicas[1].last_caught_up_ms = INT64_MIN / 2;
        assert_true(answer(&l, KAFKA_NONE, (int32_t[]){1}, 1, 11).hw_moved);
        assert_int_equal(l.hw, 11);
        leader_done(&l);
}

/* --- the controller's answers --- */

static void a_refused_proposal_is_forgotten_and_not_repeated_at_once(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);

        (void)state;
        assert_true(fetch(&l, 2, 5, 0).propose);
        answer(&l, KAFKA_INELIGIBLE_REPLICA, NULL, 0, 0);
        assert_int_equal(l.isr_state, ISR_STEADY);
        assert_int_equal(leader_maximal_isr_size(&l), 1);
        assert_false(fetch(&l, 2, 5, 1).propose);
        assert_true(fetch(&l, 2, 5, 5000).propose);
        leader_done(&l);
}

static void a_fenced_proposal_waits_for_the_controllers_word(void **state)
{
        static const int16_t fenced[] = {KAFKA_FENCED_LEADER_EPOCH, KAFKA_INVALID_UPDATE_VERSION,
                                         KAFKA_UNKNOWN_TOPIC_OR_PARTITION, KAFKA_INVALID_REQUEST};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(fenced); i++) {
                struct leader l = leading((int32_t[]){1}, 1, 5, 5);
                struct leader_start s = start_of(6, (int32_t[]){1}, 1, 5, 5);
                struct leader_effects e;

                fetch(&l, 2, 5, 0);
                assert_false(answer(&l, fenced[i], NULL, 0, 0).retry);
                assert_int_equal(l.isr_state, ISR_AWAITS_CONTROLLER);
                assert_int_equal(leader_maximal_isr_size(&l), 2); /* it may have been applied */
                s.was_leader = true;
                assert_int_equal(leader_begin(&l, &s, &e), 0); /* KAFKA-12751: not frozen for ever */
                assert_true(fetch(&l, 2, 5, 0).propose);
                leader_done(&l);
        }
}

static void a_failed_proposal_is_sent_again(void **state)
{
        /* KAFKA-14010, 14154 */
        static const int16_t failed[] = {KAFKA_NOT_CONTROLLER, KAFKA_REQUEST_TIMED_OUT,
                                         KAFKA_UNKNOWN_SERVER_ERROR};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(failed); i++) {
                struct leader l = leading((int32_t[]){1}, 1, 5, 5);

                fetch(&l, 2, 5, 0);
                assert_true(answer(&l, failed[i], NULL, 0, 0).retry);
                assert_int_equal(l.isr_state, ISR_PROPOSED);
                answer(&l, KAFKA_NONE, (int32_t[]){1, 2}, 2, 11);
                assert_int_equal(l.isr_state, ISR_STEADY);
                leader_done(&l);
        }
}

static void an_answer_to_an_older_proposal_is_ignored(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);
        struct leader_start s = start_of(6, (int32_t[]){1}, 1, 5, 5);
        struct leader_effects e;
        struct leader_isr_result late = {
                .leader_epoch = 6, .partition_epoch = 99, .isr = three, .n_isr = 3, .error = KAFKA_NONE};

        (void)state;
        fetch(&l, 2, 5, 0);
        late.proposal = l.proposal;
        s.was_leader = true;
        assert_int_equal(leader_begin(&l, &s, &e), 0);
        leader_on_isr_result(&l, &late, &e);
        assert_int_equal(leader_isr_size(&l), 1);
        assert_int_equal(l.partition_epoch, 10);
        fetch(&l, 3, 5, 0); /* nor is it taken for the answer to the next one */
        leader_on_isr_result(&l, &late, &e);
        assert_int_equal(l.isr_state, ISR_PROPOSED);
        assert_int_equal(leader_isr_size(&l), 1);
        leader_done(&l);
}

static void the_controllers_isr_is_adopted_even_if_it_is_another(void **state)
{
        struct leader l = leading((int32_t[]){1}, 1, 5, 5);

        (void)state;
        fetch(&l, 2, 5, 0);
        answer(&l, KAFKA_NONE, (int32_t[]){1, 3}, 2, 12);
        assert_true(in_isr(&l, 3));
        assert_false(in_isr(&l, 2));
        leader_done(&l);
}

static void the_leader_stays_in_its_isr_whatever_is_said(void **state)
{
        /* I4, R22 */
        struct leader l = leading((int32_t[]){2, 3}, 2, 5, 5);

        (void)state;
        assert_true(in_isr(&l, 1));
        fetch(&l, 2, 5, 0);
        fetch(&l, 3, 5, 0);
        append(&l, 6, 0);
        assert_true(tick(&l, LAG + 1).propose);
        answer(&l, KAFKA_NONE, NULL, 0, 11);
        assert_int_equal(leader_isr_size(&l), 1);
        leader_done(&l);
}

static void an_isr_member_outside_the_assignment_still_counts(void **state)
{
        /* KAFKA-10301: an HW computed without it would lose records on its election. */
        struct leader l = leading((int32_t[]){1, 7}, 2, 5, 0);

        (void)state;
        assert_false(append(&l, 6, 0).hw_moved);
        fetch(&l, 7, 6, 0);
        assert_int_equal(l.hw, 6);
        assert_int_equal(leader_assigned_size(&l), 3);
        leader_done(&l);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_hw_is_the_smallest_end_in_the_isr),
                cmocka_unit_test(a_lone_leader_commits_at_once),
                cmocka_unit_test(the_hw_never_moves_back),
                cmocka_unit_test(the_hw_stands_below_min_isr),
                cmocka_unit_test(min_isr_is_never_more_than_the_replicas),
                cmocka_unit_test(the_hw_stands_without_the_lease),
                cmocka_unit_test(the_hw_waits_for_a_replica_that_is_about_to_join),
                cmocka_unit_test(the_hw_does_not_wait_for_who_no_longer_fetches),
                cmocka_unit_test(the_hw_does_not_wait_for_a_replica_that_the_controller_refused),
                cmocka_unit_test(a_new_leader_waits_until_every_member_has_fetched_once),
                cmocka_unit_test(going_on_leading_keeps_what_is_known_of_followers),
                cmocka_unit_test(what_followers_have_is_not_known_after_an_epoch_that_was_missed),
                cmocka_unit_test(a_newer_isr_of_the_same_epoch_keeps_the_epochs_start),
                cmocka_unit_test(a_follower_joins_once_it_has_reached_the_hw),
                cmocka_unit_test(nobody_joins_below_the_start_of_the_epoch),
                cmocka_unit_test(only_one_proposal_is_in_flight),
                cmocka_unit_test(a_stranger_does_not_join),
                cmocka_unit_test(the_broker_epoch_is_of_the_fetch_that_caught_up),
                cmocka_unit_test(who_falls_behind_leaves),
                cmocka_unit_test(who_has_everything_is_never_stuck),
                cmocka_unit_test(a_follower_that_keeps_up_with_a_busy_log_stays),
                cmocka_unit_test(a_committed_shrink_moves_the_hw),
                cmocka_unit_test(a_refused_proposal_is_forgotten_and_not_repeated_at_once),
                cmocka_unit_test(a_fenced_proposal_waits_for_the_controllers_word),
                cmocka_unit_test(a_failed_proposal_is_sent_again),
                cmocka_unit_test(an_answer_to_an_older_proposal_is_ignored),
                cmocka_unit_test(the_controllers_isr_is_adopted_even_if_it_is_another),
                cmocka_unit_test(the_leader_stays_in_its_isr_whatever_is_said),
                cmocka_unit_test(an_isr_member_outside_the_assignment_still_counts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
