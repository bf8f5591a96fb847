#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "controller/drain_core.h"

/* Broker 1 drains. Replicas 1, 2, 3 by default alive, ISR as given. */
static struct election_replica replicas[3];
static int32_t isr[3];

static struct drain_partition partition(int32_t leader, int n_isr, const int32_t *ids)
{
        for (int32_t i = 0; i < 3; i++)
                replicas[i] = (struct election_replica){
                        .id = i + 1, .assigned = true, .alive = true, .draining = i == 0};
        memcpy(isr, ids, (size_t)n_isr * sizeof(*ids));
        return (struct drain_partition){
                .state = {.has_state = true,
                          .leader = leader,
                          .isr = isr,
                          .n_isr = n_isr,
                          .replicas = replicas,
                          .n_replicas = 3},
                .broker_id = 1,
                .factor = 3,
                .min_isr = 2,
                .zk_available = true,
        };
}

static const int32_t all[] = {1, 2, 3}, alone[] = {1}, two[] = {1, 2}, others[] = {2, 3};

static void check(const struct drain_partition *p, enum drain_need need, enum drain_reason reason)
{
        struct drain_verdict v;

        drain_partition_judge(p, &v);
        assert_int_equal(v.need, need);
        if (v.leads || v.in_isr || v.single)
                assert_int_equal(v.reason, reason);
}

static void a_led_partition_says_why_it_is_still_led(void **state)
{
        struct drain_partition p = partition(1, 3, all);
        struct drain_verdict v;

        (void)state;
        drain_partition_judge(&p, &v);
        assert_true(v.leads && !v.in_isr && !v.single && !v.stuck);
        check(&p, DRAIN_NEED_MOVE, DRAIN_REASON_QUEUED);

        p.busy = true;
        check(&p, DRAIN_NEED_WAIT, DRAIN_REASON_QUEUED);

        p.busy = false;
        p.write_failed = true;
        check(&p, DRAIN_NEED_MOVE, DRAIN_REASON_ZK_WRITE_FAILED);

        p = partition(1, 1, alone);
        check(&p, DRAIN_NEED_WAIT, DRAIN_REASON_NO_OTHER_IN_SYNC); /* R6 */
        drain_partition_judge(&p, &v);
        assert_true(v.stuck); /* R44: it does not keep the pass from ending */

        p = partition(1, 2, two);
        replicas[1].draining = true;
        check(&p, DRAIN_NEED_WAIT, DRAIN_REASON_ONLY_SHUTTING_DOWN); /* R21 */
        replicas[1].draining = false;
        replicas[1].alive = false;
        check(&p, DRAIN_NEED_WAIT, DRAIN_REASON_ONLY_SHUTTING_DOWN);
}

static void a_single_replica_is_listed_and_not_counted(void **state)
{
        struct drain_partition p = partition(1, 1, alone);
        struct drain_verdict v;

        (void)state; /* R16 */
        p.factor = 1;
        p.state.n_replicas = 1;
        drain_partition_judge(&p, &v);
        assert_true(v.single && !v.leads && !v.in_isr);
        assert_int_equal(v.reason, DRAIN_REASON_SINGLE_REPLICA);
        assert_int_equal(v.need, DRAIN_NEED_NOTHING);
}

static void a_follower_is_stopped_before_it_leaves_the_isr(void **state)
{
        struct drain_partition p = partition(2, 3, all);
        struct drain_verdict v;

        (void)state; /* R11 */
        check(&p, DRAIN_NEED_STOP, DRAIN_REASON_STOP_REPLICA_PENDING);
        p.stop_sent = true;
        check(&p, DRAIN_NEED_WAIT, DRAIN_REASON_STOP_REPLICA_PENDING);
        p.stopped = true;
        check(&p, DRAIN_NEED_SHRINK, DRAIN_REASON_QUEUED);
        p.busy = true;
        check(&p, DRAIN_NEED_WAIT, DRAIN_REASON_QUEUED);
        p = partition(2, 2, others);
        p.stop_sent = p.stopped = true;
        drain_partition_judge(&p, &v);
        assert_int_equal(v.need, DRAIN_NEED_NOTHING); /* R24 */
        assert_false(v.in_isr);
}

/* R7: outside the ISR as well, or it would fetch its way back in. */
static void a_follower_outside_the_isr_is_stopped_too(void **state)
{
        struct drain_partition p = partition(2, 2, others);

        (void)state;
        check(&p, DRAIN_NEED_STOP, DRAIN_REASON_STOP_REPLICA_PENDING);
}

static void without_zookeeper_nothing_is_called_done(void **state)
{
        struct drain_partition p = partition(1, 3, all);
        struct drain_verdict v;

        (void)state; /* I16 */
        p.zk_available = false;
        p.busy = true;
        drain_partition_judge(&p, &v);
        assert_true(v.leads && v.stuck);
        assert_int_equal(v.reason, DRAIN_REASON_ZK_UNAVAILABLE);
        p = partition(2, 3, all);
        p.zk_available = false;
        p.stop_sent = p.stopped = true;
        drain_partition_judge(&p, &v);
        assert_true(v.in_isr && v.stuck);
        assert_int_equal(v.reason, DRAIN_REASON_ZK_UNAVAILABLE);
}

static void a_topic_being_deleted_does_not_count(void **state)
{
        struct drain_partition p = partition(1, 1, alone);
        struct drain_verdict v;

        (void)state;
        p.deleting = true;
        drain_partition_judge(&p, &v);
        assert_int_equal(v.need, DRAIN_NEED_NOTHING);
        assert_false(v.leads);
}

static void a_factor_at_or_below_min_isr_can_never_be_safe(void **state)
{
        struct drain_partition p = partition(1, 3, all);
        struct drain_verdict v;

        (void)state;
        drain_partition_judge(&p, &v);
        assert_false(v.never_safe);
        p.min_isr = 3;
        drain_partition_judge(&p, &v);
        assert_true(v.never_safe);
}

static void what_keeps_a_replica_in_the_isr_is_named(void **state)
{
        struct drain_partition p = partition(1, 3, all);

        (void)state; /* R23 */
        assert_string_equal(drain_not_removed_because(&p), "the broker still leads the partition");
        p = partition(-1, 1, alone);
        assert_string_equal(drain_not_removed_because(&p), "it is the last member of the ISR");
        p = partition(-1, 3, all);
        assert_string_equal(drain_not_removed_because(&p),
                            "the partition has no leader that could go on without it");
        p = partition(2, 2, others);
        assert_null(drain_not_removed_because(&p));
        p = partition(2, 3, all);
        assert_null(drain_not_removed_because(&p));
}

static void the_state_of_a_drain_follows_from_its_totals(void **state)
{
        (void)state;
        assert_int_equal(drain_state_of(&(struct drain_totals){.leaders = 3, .moving = 1}), DRAIN_DRAINING);
        assert_int_equal(drain_state_of(&(struct drain_totals){.leaders = 1, .told = true}),
                         DRAIN_INCOMPLETE);
        assert_int_equal(drain_state_of(&(struct drain_totals){.in_isr = 1, .told = true}), DRAIN_INCOMPLETE);
        assert_int_equal(drain_state_of(&(struct drain_totals){.single = 9, .told = true}), DRAIN_DRAINED);
        assert_int_equal(drain_state_of(&(struct drain_totals){.told = false}), DRAIN_DRAINING);
}

static void every_state_and_reason_has_a_name(void **state)
{
        (void)state;
        for (int i = 0; i < N_DRAIN_STATES; i++)
                assert_non_null(drain_state_name((enum drain_state)i));
        for (int i = 0; i < N_DRAIN_REASONS; i++) {
                assert_non_null(drain_reason_name((enum drain_reason)i));
                assert_non_null(drain_reason_help((enum drain_reason)i));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_led_partition_says_why_it_is_still_led),
                cmocka_unit_test(a_single_replica_is_listed_and_not_counted),
                cmocka_unit_test(a_follower_is_stopped_before_it_leaves_the_isr),
                cmocka_unit_test(a_follower_outside_the_isr_is_stopped_too),
                cmocka_unit_test(without_zookeeper_nothing_is_called_done),
                cmocka_unit_test(a_topic_being_deleted_does_not_count),
                cmocka_unit_test(a_factor_at_or_below_min_isr_can_never_be_safe),
                cmocka_unit_test(what_keeps_a_replica_in_the_isr_is_named),
                cmocka_unit_test(the_state_of_a_drain_follows_from_its_totals),
                cmocka_unit_test(every_state_and_reason_has_a_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
