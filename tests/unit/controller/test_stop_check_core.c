#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "controller/stop_check_core.h"

/* A partition as a line of text: every replica in the assignment's order, a letter and its broker. Broker 1
 * is the one that would stop.
 *   i in the ISR   o out of it, alive   D draining, in the ISR   d draining, out of it
 *   X dead, in the ISR   x dead, out of it   b restarted, still in the ISR
 *   l in the ISR, leaves the assignment     n in the ISR, not assigned at all */
struct row {
        const char *replicas;
        int32_t leader, min_isr;
        enum stop_risk risk;
        enum stop_wait wait;
        enum stop_risk before;
        int32_t left;
        bool never_safe;
};

static const struct row rows[] = {
        /* all is well */
        {"i1 i2 i3", 1, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SAFE, 2, false},
        {"i2 i1 i3", 2, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SAFE, 2, false},
        {"i1 i2 i3", 1, 0, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SAFE, 2, false},
        /* acks=all would be rejected */
        {"i1 i2 o3", 1, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_CATCH_UP, STOP_SAFE, 1, false},
        {"i2 i1 o3", 2, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_CATCH_UP, STOP_SAFE, 1, false},
        {"i1 i2 d3", 1, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_DRAINED, STOP_SAFE, 1, false},
        {"i1 i2 D3", 1, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_DRAINED, STOP_SAFE, 1, false},
        {"i1 i2 x3", 1, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_OFFLINE, STOP_SAFE, 1, false},
        {"i1 i2 X3", 1, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_OFFLINE, STOP_SAFE, 1, false},
        {"i1 i2 b3", 1, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_CATCH_UP, STOP_SAFE, 1, false},
        {"i1 i2", 1, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_NEVER, STOP_SAFE, 1, true},
        {"i1 i2 i3", 1, 3, STOP_BELOW_MIN_ISR, STOP_WAIT_NEVER, STOP_SAFE, 2, true},
        {"i1 i2 i3 o4 x5", 1, 3, STOP_BELOW_MIN_ISR, STOP_WAIT_CATCH_UP, STOP_SAFE, 2, false},
        {"i1 i2 o3 x4 x5", 1, 4, STOP_BELOW_MIN_ISR, STOP_WAIT_OFFLINE, STOP_BELOW_MIN_ISR, 1, false},
        {"i1 i2 o3 o4 d5", 1, 4, STOP_BELOW_MIN_ISR, STOP_WAIT_DRAINED, STOP_BELOW_MIN_ISR, 1, false},
        /* it is so already, and gets no better */
        {"i1 i2 o3", 1, 3, STOP_BELOW_MIN_ISR, STOP_WAIT_NEVER, STOP_BELOW_MIN_ISR, 1, true},
        /* nobody could lead */
        {"i1 o2 o3", 1, 2, STOP_UNAVAILABLE, STOP_WAIT_CATCH_UP, STOP_BELOW_MIN_ISR, 0, false},
        {"i1 o2", 1, 1, STOP_UNAVAILABLE, STOP_WAIT_CATCH_UP, STOP_ONE_COPY, 0, false},
        {"i1 D2", 1, 1, STOP_UNAVAILABLE, STOP_WAIT_DRAINED, STOP_ONE_COPY, 0, false}, /* R21 */
        {"i1 x2 x3", 1, 1, STOP_UNAVAILABLE, STOP_WAIT_OFFLINE, STOP_ONE_COPY, 0, false},
        {"i1 l2", 1, 1, STOP_SINGLE_REPLICA, STOP_WAIT_NEVER, STOP_SAFE, 0, true},
        {"i1 l2 o3", 1, 1, STOP_UNAVAILABLE, STOP_WAIT_CATCH_UP, STOP_ONE_COPY, 0, false},
        {"i1 o3 n2", 1, 1, STOP_UNAVAILABLE, STOP_WAIT_CATCH_UP, STOP_ONE_COPY, 0, false},
        {"i1 b2", 1, 1, STOP_UNAVAILABLE, STOP_WAIT_CATCH_UP, STOP_ONE_COPY, 0, false},
        {"i1 o2", 1, 2, STOP_UNAVAILABLE, STOP_WAIT_CATCH_UP, STOP_BELOW_MIN_ISR, 0, true},
        /* one copy left */
        {"i1 i2", 1, 1, STOP_ONE_COPY, STOP_WAIT_NEVER, STOP_SAFE, 1, false},
        {"i1 i2 o3", 1, 1, STOP_ONE_COPY, STOP_WAIT_CATCH_UP, STOP_SAFE, 1, false},
        {"i2 i1 x3", 2, 1, STOP_ONE_COPY, STOP_WAIT_OFFLINE, STOP_SAFE, 1, false},
        /* RF = 1 (R16) */
        {"i1", 1, 1, STOP_SINGLE_REPLICA, STOP_WAIT_NEVER, STOP_SAFE, 0, true},
        {"D1", 1, 1, STOP_SINGLE_REPLICA, STOP_WAIT_NEVER, STOP_SAFE, 0, true},
        {"i1", 1, 2, STOP_SINGLE_REPLICA, STOP_WAIT_NEVER, STOP_BELOW_MIN_ISR, 0, true},
        {"x1", -1, 1, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SINGLE_REPLICA, 0, true},
        /* not in sync here: nothing is taken away */
        {"o1 i2 i3", 2, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SAFE, 2, false},
        {"o1 i2 o3", 2, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_BELOW_MIN_ISR, 1, false},
        {"o1 X2 X3", -1, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_UNAVAILABLE, 0, false},
        {"b1 i2 i3", 2, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SAFE, 2, false},
        /* its own drain has taken it out: that is what its stop means */
        {"d1 i2 i3", 2, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SAFE, 2, false},
        {"d1 i2 o3", 2, 2, STOP_BELOW_MIN_ISR, STOP_WAIT_CATCH_UP, STOP_BELOW_MIN_ISR, 1, false},
        {"D1 o2 o3", 1, 1, STOP_UNAVAILABLE, STOP_WAIT_CATCH_UP, STOP_ONE_COPY, 0, false},
        /* somebody else's partition */
        {"i2 o3", 2, 2, STOP_SAFE, STOP_WAIT_NOTHING, STOP_SAFE, 0, false},
};

static struct stop_verdict judge(const struct row *row, struct stop_check_partition *p)
{
        static struct election_replica replicas[ZNODE_MAX_REPLICAS];
        static int32_t isr[ZNODE_MAX_REPLICAS];
        struct stop_verdict v;

        p->state.has_state = true;
        p->state.leader = row->leader;
        p->state.replicas = replicas;
        p->state.isr = isr;
        p->state.n_replicas = p->state.n_isr = 0;
        p->broker_id = 1;
        p->min_isr = row->min_isr;
        for (const char *s = row->replicas; *s; s += s[2] ? 3 : 2) {
                int32_t id = s[1] - '0';

                replicas[p->state.n_replicas++] = (struct election_replica){
                        .id = id,
                        .assigned = *s != 'n',
                        .alive = !strchr("Xx", *s),
                        .draining = strchr("Dd", *s) != NULL,
                        .bounced = *s == 'b',
                        .leaving = *s == 'l',
                };
                if (strchr("iDXbln", *s))
                        isr[p->state.n_isr++] = id;
        }
        stop_check_judge(p, &v);
        return v;
}

static void each_partition_gets_the_verdict_of_the_table(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct stop_check_partition p = {0};
                struct stop_verdict v = judge(&rows[i], &p);

                if (v.risk != rows[i].risk || v.wait != rows[i].wait || v.before != rows[i].before ||
                    v.left != rows[i].left || v.never_safe != rows[i].never_safe)
                        fail_msg("\"%s\" leader %d min %d: %s, %s, before %s, left %d, never safe %d",
                                 rows[i].replicas, rows[i].leader, rows[i].min_isr, stop_risk_name(v.risk),
                                 stop_wait_name(v.wait), stop_risk_name(v.before), v.left, v.never_safe);
        }
}

/* Whatever is named as the way out has to be one: with these replicas in sync the risk is gone. */
static void what_is_waited_for_takes_the_risk_away(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                static const char *const heal[N_STOP_WAITS] = {[STOP_WAIT_CATCH_UP] = "ob",
                                                               [STOP_WAIT_DRAINED] = "obDd",
                                                               [STOP_WAIT_OFFLINE] = "obDdXx"};
                char text[64];
                struct row better = rows[i];
                struct stop_check_partition p = {0};

                if (!heal[rows[i].wait])
                        continue;
                (void)snprintf(text, sizeof(text), "%s", rows[i].replicas);
                for (char *s = text; *s; s += s[2] ? 3 : 2)
                        if (s[1] != '1' && strchr(heal[rows[i].wait], *s))
                                *s = 'i';
                better.replicas = text;
                assert_true(judge(&better, &p).risk < rows[i].risk);
        }
}

static void a_topic_that_is_deleted_or_not_yet_written_is_no_risk(void **state)
{
        static const struct row alone = {.replicas = "i1 o2", .leader = 1, .min_isr = 2};
        struct stop_check_partition p = {.deleting = true};
        struct stop_verdict v;

        (void)state;
        assert_int_equal(judge(&alone, &p).risk, STOP_SAFE);
        p.deleting = false;
        assert_int_equal(judge(&alone, &p).risk, STOP_UNAVAILABLE);
        p.state.has_state = false;
        stop_check_judge(&p, &v);
        assert_int_equal(v.risk, STOP_SAFE);
}

static void a_replica_that_catches_up_is_told_when_it_is_needed(void **state)
{
        static const struct row needed = {.replicas = "o1 i2 o3", .leader = 2, .min_isr = 2};
        static const struct row not_needed = {.replicas = "o1 i2 i3", .leader = 2, .min_isr = 2};
        struct stop_check_partition p = {0};

        (void)state;
        assert_true(judge(&needed, &p).delays);
        assert_false(judge(&not_needed, &p).delays);
}

static void an_unclean_election_is_named_where_it_would_happen(void **state)
{
        static const struct row alone = {.replicas = "i1 o2", .leader = 1, .min_isr = 1};
        static const struct row dead = {.replicas = "i1 x2", .leader = 1, .min_isr = 1};
        struct stop_check_partition p = {.state.unclean = true};

        (void)state;
        assert_true(judge(&alone, &p).unclean);
        assert_false(judge(&dead, &p).unclean);
        p.state.unclean = false;
        assert_false(judge(&alone, &p).unclean);
}

static void only_the_leader_would_have_to_move(void **state)
{
        static const struct row led = {.replicas = "i1 i2", .leader = 1, .min_isr = 1};
        static const struct row followed = {.replicas = "i1 i2", .leader = 2, .min_isr = 1};
        static const struct row single = {.replicas = "i1", .leader = 1, .min_isr = 1};
        struct stop_check_partition p = {0};

        (void)state;
        assert_true(judge(&led, &p).leads);
        assert_false(judge(&followed, &p).leads);
        assert_false(judge(&single, &p).leads); /* R16 */
}

static void counts_are_whole_when_lists_are_full(void **state)
{
        struct stop_check_item unavailable[2], below[2];
        struct stop_check sum = {.max = 2};
        struct stop_check_item item = {.topic = "t"};

        (void)state;
        sum.listed[STOP_UNAVAILABLE] = unavailable;
        sum.listed[STOP_BELOW_MIN_ISR] = below;
        assert_int_equal(stop_check_worst(&sum), STOP_SAFE);
        for (int i = 0; i < 5; i++) {
                item.partition = i;
                item.verdict = (struct stop_verdict){
                        .risk = STOP_BELOW_MIN_ISR, .wait = STOP_WAIT_CATCH_UP, .leads = i < 2};
                stop_check_add(&sum, &item);
        }
        assert_int_equal(stop_check_worst(&sum), STOP_BELOW_MIN_ISR);
        item.verdict = (struct stop_verdict){
                .risk = STOP_UNAVAILABLE, .wait = STOP_WAIT_OFFLINE, .before = STOP_UNAVAILABLE};
        stop_check_add(&sum, &item);
        item.verdict = (struct stop_verdict){.risk = STOP_ONE_COPY, .wait = STOP_WAIT_NEVER};
        stop_check_add(&sum, &item);
        item.verdict = (struct stop_verdict){0};
        stop_check_add(&sum, &item);

        assert_int_equal(stop_check_worst(&sum), STOP_UNAVAILABLE);
        assert_int_equal(sum.partitions, 8);
        assert_int_equal(sum.leaders, 2);
        assert_int_equal(sum.by_risk[STOP_BELOW_MIN_ISR], 5);
        assert_int_equal(sum.n_listed[STOP_BELOW_MIN_ISR], 2);
        assert_int_equal(below[1].partition, 1);
        assert_int_equal(sum.n_listed[STOP_UNAVAILABLE], 1);
        assert_int_equal(sum.already[STOP_UNAVAILABLE], 1);
        assert_int_equal(sum.already[STOP_BELOW_MIN_ISR], 0);
}

static void only_what_waiting_can_mend_holds_a_stop_up(void **state)
{
        struct stop_check sum = {0};
        struct stop_check_item item = {.topic = "t"};
        static const struct {
                enum stop_risk risk;
                enum stop_wait wait;
                int worth;
        } cases[] = {
                {STOP_SAFE, STOP_WAIT_NOTHING, 0},          {STOP_ONE_COPY, STOP_WAIT_CATCH_UP, 0},
                {STOP_SINGLE_REPLICA, STOP_WAIT_NEVER, 0},  {STOP_BELOW_MIN_ISR, STOP_WAIT_NEVER, 0},
                {STOP_BELOW_MIN_ISR, STOP_WAIT_DRAINED, 1}, {STOP_BELOW_MIN_ISR, STOP_WAIT_CATCH_UP, 1},
                {STOP_UNAVAILABLE, STOP_WAIT_OFFLINE, 1},
        };
        int want = 0;

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                item.verdict = (struct stop_verdict){.risk = cases[i].risk, .wait = cases[i].wait};
                stop_check_add(&sum, &item);
                want += cases[i].worth;
                assert_int_equal(stop_check_worth_waiting(&sum), want);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_partition_gets_the_verdict_of_the_table),
                cmocka_unit_test(what_is_waited_for_takes_the_risk_away),
                cmocka_unit_test(a_topic_that_is_deleted_or_not_yet_written_is_no_risk),
                cmocka_unit_test(a_replica_that_catches_up_is_told_when_it_is_needed),
                cmocka_unit_test(an_unclean_election_is_named_where_it_would_happen),
                cmocka_unit_test(only_the_leader_would_have_to_move),
                cmocka_unit_test(counts_are_whole_when_lists_are_full),
                cmocka_unit_test(only_what_waiting_can_mend_holds_a_stop_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
