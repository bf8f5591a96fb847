#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/util.h"
#include "controller/isr_core.h"
#include "wire/error.h"

/* Partition of 1, 2, 3, 4: led by 1 in epoch 5, ISR 1 2, version 9. 3 lives; 4 drains; 5 is dead and
 * assigned. */
static const int32_t isr[] = {1, 2};
static const struct isr_member members[] = {
        {.id = 1, .epoch = 11, .assigned = true, .alive = true},
        {.id = 2, .epoch = 12, .assigned = true, .alive = true},
        {.id = 3, .epoch = 13, .assigned = true, .alive = true},
        {.id = 4, .epoch = 14, .assigned = true, .alive = true, .draining = true},
        {.id = 5, .epoch = -1, .assigned = true},
};
static const struct isr_current current = {.leader = 1,
                                           .leader_epoch = 5,
                                           .partition_epoch = 9,
                                           .isr = isr,
                                           .n_isr = 2,
                                           .members = members,
                                           .n_members = 5};

struct row {
        const char *name;
        int32_t from, leader_epoch, partition_epoch;
        int32_t isr[4];
        int n_isr;
        int16_t version, error;
        bool unchanged;
};

static void proposals_are_judged_in_kafkas_order(void **state)
{
        const struct row rows[] = {
                {"an expansion", 1, 5, 9, {1, 2, 3}, 3, 3, KAFKA_NONE, false},
                {"a shrink", 1, 5, 9, {1}, 1, 3, KAFKA_NONE, false},
                {"KAFKA-14154: a leader epoch ahead of ours",
                 1,
                 6,
                 9,
                 {1},
                 1,
                 3,
                 KAFKA_NOT_CONTROLLER,
                 false},
                {"KAFKA-14154: a version ahead of ours", 1, 5, 10, {1}, 1, 3, KAFKA_NOT_CONTROLLER, false},
                {"ahead goes before fenced", 1, 4, 10, {1}, 1, 3, KAFKA_NOT_CONTROLLER, false},
                {"an old leader epoch", 1, 4, 9, {1}, 1, 3, KAFKA_FENCED_LEADER_EPOCH, false},
                {"KAFKA-14144: what is so already, whatever the version",
                 1,
                 5,
                 7,
                 {2, 1},
                 2,
                 3,
                 KAFKA_NONE,
                 true},
                {"an old version", 1, 5, 8, {1}, 1, 3, KAFKA_INVALID_UPDATE_VERSION, false},
                {"somebody who does not lead", 2, 5, 9, {1, 2, 3}, 3, 3, KAFKA_INVALID_REQUEST, false},
                {"R22: the empty ISR", 1, 5, 9, {0}, 0, 3, KAFKA_INVALID_REQUEST, false},
                {"without its leader", 1, 5, 9, {2}, 1, 3, KAFKA_INVALID_REQUEST, false},
                {"twice the same", 1, 5, 9, {1, 1}, 2, 3, KAFKA_INVALID_REQUEST, false},
                {"a stranger", 1, 5, 9, {1, 2, 9}, 3, 3, KAFKA_INVALID_REQUEST, false},
                {"KAFKA-14140: a draining one joins",
                 1,
                 5,
                 9,
                 {1, 2, 4},
                 3,
                 2,
                 KAFKA_INELIGIBLE_REPLICA,
                 false},
                {"a dead one joins", 1, 5, 9, {1, 2, 5}, 3, 3, KAFKA_INELIGIBLE_REPLICA, false},
                {"the same, asked by an older leader",
                 1,
                 5,
                 9,
                 {1, 2, 4},
                 3,
                 1,
                 KAFKA_OPERATION_NOT_ATTEMPTED,
                 false},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct isr_proposal p = {.broker_id = rows[i].from,
                                         .leader_epoch = rows[i].leader_epoch,
                                         .partition_epoch = rows[i].partition_epoch,
                                         .isr = rows[i].isr,
                                         .n_isr = rows[i].n_isr,
                                         .version = rows[i].version};
                bool unchanged;
                int16_t error = isr_proposal_check(&current, &p, &unchanged);

                if (error != rows[i].error || unchanged != rows[i].unchanged)
                        fail_msg("%s: %s%s", rows[i].name, kafka_error_name(error),
                                 unchanged ? " unchanged" : "");
        }
}

/* Only those that are added are looked at (our reading of KAFKA-14140): a member that is dead or drains must
 * not keep the leader from shrinking, nor a draining leader from admitting others. */
static void members_that_stay_are_not_judged(void **state)
{
        const struct isr_member with_dead[] = {
                {.id = 1, .epoch = 11, .assigned = true, .alive = true, .draining = true},
                {.id = 2, .epoch = -1, .assigned = true},
                {.id = 3, .epoch = 13, .assigned = true, .alive = true},
        };
        const int32_t isr3[] = {1, 2, 3}, shrunk[] = {1, 2}, grown[] = {1, 2, 3};
        struct isr_current cur = {.leader = 1, .isr = isr3, .n_isr = 3, .members = with_dead, .n_members = 3};
        struct isr_proposal p = {.broker_id = 1, .isr = shrunk, .n_isr = 2, .version = 3};
        bool unchanged;

        (void)state;
        assert_int_equal(isr_proposal_check(&cur, &p, &unchanged), KAFKA_NONE);
        cur.isr = shrunk;
        cur.n_isr = 2;
        p.isr = grown;
        p.n_isr = 3;
        assert_int_equal(isr_proposal_check(&cur, &p, &unchanged), KAFKA_NONE);
}

static void an_epoch_of_an_earlier_life_is_refused(void **state)
{
        const int32_t grown[] = {1, 2, 3};
        int64_t epochs[] = {11, -1, 12};
        struct isr_proposal p = {.broker_id = 1,
                                 .leader_epoch = 5,
                                 .partition_epoch = 9,
                                 .isr = grown,
                                 .n_isr = 3,
                                 .epochs = epochs,
                                 .version = 3};
        bool unchanged;

        (void)state; /* KAFKA-15221, KIP-903 */
        assert_int_equal(isr_proposal_check(&current, &p, &unchanged), KAFKA_INELIGIBLE_REPLICA);
        epochs[2] = 13;
        assert_int_equal(isr_proposal_check(&current, &p, &unchanged), KAFKA_NONE);
        epochs[2] = -1;
        assert_int_equal(isr_proposal_check(&current, &p, &unchanged), KAFKA_NONE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(proposals_are_judged_in_kafkas_order),
                cmocka_unit_test(members_that_stay_are_not_judged),
                cmocka_unit_test(an_epoch_of_an_earlier_life_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
