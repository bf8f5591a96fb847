/* The drain slot (D3, D8) with a real ZooKeeper and fake brokers. */
#include "cluster_fixture.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "wire/error.h"
#include "zk/znode_slot.h"
#include "zk_faults.h"

static struct cluster *c;
static struct drain_seen seen;
static struct znode_slot slot;

static int begin(int64_t lease_ms)
{
        c = cluster_new();
        fixture_slot_lease_ms = lease_ms;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        return 0;
}

static int setup(void **state)
{
        (void)state;
        return begin(60000);
}

static int setup_short(void **state)
{
        (void)state;
        return begin(600);
}

static int teardown(void **state)
{
        (void)state;
        zk_faults_clear();
        cluster_free(c);
        return 0;
}

static void topic(const char *name, int32_t n, int16_t rf, const int32_t *ids)
{
        assert_int_equal(make_topic(c, name, n, rf, ids), KAFKA_NONE);
}

struct rejoin_want {
        const char *topic;
        int32_t partition, id;
};

static bool rejoined(void *userdata)
{
        const struct rejoin_want *w = userdata;
        const char *name = w->topic;
        int32_t partition = w->partition, id = w->id;
        struct znode_state st;
        struct proposal p = {.topic = name, .partition = partition};
        int32_t version;

        assert_true(read_state(c, name, partition, &st, &version));
        p.leader = st.leader;
        p.leader_epoch = st.leader_epoch;
        p.partition_epoch = version;
        for (size_t i = 0; i < st.n_isr; i++)
                p.isr[p.n_isr++] = st.isr[i];
        p.isr[p.n_isr++] = id;
        return propose_isr(c, &p) == KAFKA_NONE; /* not while the epoch's renewal is being written */
}

/* What the leader does when a follower has caught up. */
static void rejoin(const char *name, int32_t partition, int32_t id)
{
        struct rejoin_want w = {name, partition, id};

        wait_until(rejoined, &w);
}

static void read_slot(struct znode_slot *ret)
{
        cleanup_with(freep) struct seen *node = calloc(1, sizeof(*node));

        assert_non_null(node);
        assert_int_equal(do_get(c->admin, ZNODE_SLOT, node), 0);
        assert_int_equal(znode_slot_decode(node->data, strlen(node->data), ret), 0);
}

static bool slot_is_free(void *userdata)
{
        (void)userdata;
        read_slot(&slot);
        return slot.n_holders == 0;
}

struct holder_want {
        int32_t broker;
        enum slot_state state;
};

static bool holder_is(void *userdata)
{
        struct holder_want *w = userdata;

        read_slot(&slot);
        return slot.n_holders == 1 && slot.holders[0].broker == w->broker &&
               slot.holders[0].state == w->state;
}

static void wait_holder(int32_t broker, enum slot_state state)
{
        struct holder_want w = {broker, state};

        wait_until(holder_is, &w);
}

/* --- one at a time --- */

static void a_second_broker_is_told_who_holds_the_slot_and_until_when(void **state)
{
        (void)state;
        topic("t", 3, 3, NULL);
        drain_start(c, 2, c->nodes[2].epoch, "two", &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        drain_start(c, 3, -1, "three", &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_int_equal(seen.holder.broker, 2);
        assert_int_equal(seen.holder.epoch, c->nodes[2].epoch);
        assert_string_equal(seen.holder.drain_id, "two");
        assert_true(seen.holder.expires_ms > clock_real_ms() + 30000);
        assert_true(seen.holder.since_ms <= clock_real_ms());
        drain_get(c, 3, &seen);
        assert_int_equal(seen.status.state, DRAIN_WAITING);
        read_slot(&slot);
        assert_int_equal(slot.n_holders, 1);
        assert_int_equal(slot.n_waiting, 1);
        assert_int_equal(slot.waiting[0].broker, 3);
}

/* Whoever is stopped by SIGTERM waits in the same way; an error that makes a Kafka broker try again. */
static void controlled_shutdown_waits_its_time_and_names_the_holder(void **state)
{
        struct shutdown_seen shut;

        (void)state;
        topic("t", 3, 3, NULL);
        controlled_shutdown(cluster_active(c), 2, c->nodes[2].epoch, &shut);
        assert_int_equal(shut.error, KAFKA_NONE);
        controlled_shutdown(cluster_active(c), 3, c->nodes[3].epoch, &shut);
        assert_int_equal(shut.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_int_equal(shut.holder, 2);
        assert_int_not_equal(state_of(c, "t", 0).leader, 2);
}

static void the_slot_is_kept_while_the_broker_is_down_and_until_it_is_in_sync(void **state)
{
        const int32_t ids[] = {2, 3, 3, 2};

        (void)state;
        topic("t", 2, 2, ids);
        drain_start(c, 2, -1, "two", &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        node_stop(c, 2);
        wait_holder(2, SLOT_DOWN);
        drain_start(c, 3, -1, "three", &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_int_equal(seen.holder.state, SLOT_DOWN);
        node_start(c, 2, NODE_BROKER);
        wait_holder(2, SLOT_RETURNING);
        rejoin("t", 0, 2);
        drain_start(c, 3, -1, "three", &seen); /* back in one of two ISRs */
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        rejoin("t", 1, 2);
        drain_start_granted(c, 3, "three", &seen);
        drain_wait(c, 3, DRAIN_DRAINED, &seen);
        assert_int_equal(state_of(c, "t", 0).leader, 2);
}

static void a_lease_that_runs_out_frees_the_slot_and_ends_the_drain(void **state)
{
        const int32_t ids[] = {2, 3};

        (void)state;
        topic("t", 1, 2, ids);
        drain_start(c, 2, -1, "two", &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        wait_until(slot_is_free, NULL);
        assert_int_equal(slot.n_ended, 1);
        assert_int_equal(slot.ended[0].how, SLOT_END_EXPIRED);
        drain_get(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_NONE);
        rejoin("t", 0, 2);                   /* it may */
        drain_start(c, 2, -1, "two", &seen); /* and its old drain is over */
        assert_true(seen.status.stale && seen.status.ended);
}

static void who_drains_and_asks_keeps_the_lease(void **state)
{
        int64_t until = clock_mono_ms() + 1500; /* two and a half leases */

        (void)state;
        topic("t", 3, 3, NULL);
        drain_start(c, 2, -1, "two", &seen);
        while (clock_mono_ms() < until) {
                drain_start(c, 2, -1, "two", &seen);
                assert_int_equal(seen.error, KAFKA_NONE);
                assert_int_not_equal(seen.status.state, DRAIN_NONE);
        }
        wait_until(slot_is_free, NULL); /* and nobody asks any more */
}

/* --- undone, taken over --- */

static void an_undone_drain_keeps_the_slot_until_its_memberships_are_back(void **state)
{
        const int32_t ids[] = {2, 3};

        (void)state;
        topic("t", 1, 2, ids);
        drain_start(c, 2, -1, "two", &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        drain_undo(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_NONE);
        drain_start(c, 3, -1, "three", &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_int_equal(seen.holder.state, SLOT_RETURNING);
        rejoin("t", 0, 2);
        wait_until(slot_is_free, NULL);
        drain_start(c, 2, -1, "two", &seen); /* a late duplicate */
        assert_true(seen.status.stale && seen.status.ended);
        read_slot(&slot);
        assert_int_equal(slot.ended[0].how, SLOT_END_UNDONE);
        drain_start_granted(c, 3, "three", &seen);
}

static void a_takeover_undoes_the_drain_of_the_holder_and_is_recorded(void **state)
{
        (void)state;
        topic("t", 3, 3, NULL);
        drain_start(c, 2, -1, "two", &seen);
        drain_replace(c, 3, "three", &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        assert_string_equal(seen.status.drain_id, "three");
        drain_get(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_NONE);
        read_slot(&slot);
        assert_int_equal(slot.ended[0].how, SLOT_END_REPLACED);
        assert_non_null(strstr(slot.ended[0].note, "broker 3 by me: test"));
}

/* --- through failovers (R28) --- */

static void a_drained_broker_does_not_get_leadership_back_from_a_new_controller(void **state)
{
        const int32_t ids[] = {3, 2};

        (void)state;
        topic("t", 1, 2, ids);
        fake_broker_hold(c->nodes[2].broker, TOLD_STOP, true); /* it stays in the ISR for now */
        drain_start(c, 2, -1, "two", &seen);
        node_stop(c, 1); /* the controller */
        (void)cluster_active(c);
        drain_get(c, 2, &seen);
        assert_string_equal(seen.status.drain_id, "two");
        node_stop(c, 3); /* the leader: only the one that drains is left */
        wait_leader(c, "t", 0, -1);
        assert_int_equal(cluster_active_id(c), 2);
        drain_undo(c, 2, &seen);
        wait_leader(c, "t", 0, 2);
}

/* R28 as it stands in KAFKA-340: brokers 0 and 1 (here 1 and 2), two replicas, 1 leads and is controller. */
static void the_case_of_R28_does_not_bring_leadership_back(void **state)
{
        const int32_t ids[] = {1, 2};
        struct shutdown_seen shut;
        struct znode_state st;

        (void)state;
        node_stop(c, 3);
        wait_live(c, 1, 2);
        topic("t", 1, 2, ids);
        controlled_shutdown(c->nodes[1].controller, 2, c->nodes[2].epoch, &shut);
        assert_int_equal(shut.error, KAFKA_NONE);
        assert_int_equal(shut.n, 0);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        node_stop(c, 1); /* SIGTERM */
        wait_active(c, 2);
        drain_wait(c, 2, DRAIN_DRAINED, &seen); /* still known to drain */
        wait_leader(c, "t", 0, -1);
        st = state_of(c, "t", 0);
        assert_int_equal(st.n_isr, 1);
        assert_int_equal(st.isr[0], 1);
}

static void the_slot_of_a_broker_that_is_down_survives_its_controller(void **state)
{
        (void)state;
        topic("t", 3, 3, NULL);
        drain_start(c, 1, -1, "one", &seen);
        drain_wait(c, 1, DRAIN_DRAINED, &seen);
        node_stop(c, 1);
        (void)cluster_active(c);
        drain_start(c, 2, -1, "two", &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_int_equal(seen.holder.broker, 1);
        wait_holder(1, SLOT_DOWN);
}

static void garbage_in_its_znode_is_nobodys_slot(void **state)
{
        (void)state;
        topic("t", 3, 3, NULL);
        drain_start(c, 2, -1, "two", &seen);
        assert_int_equal(do_set(c->admin, ZNODE_SLOT, "{\"version\":7", -1), 0);
        drain_undo(c, 2, &seen); /* written over: during a term the controller's memory is the truth */
        read_slot(&slot);
        assert_int_equal(do_set(c->admin, ZNODE_SLOT, "[]", -1), 0);
        assert_int_equal(do_delete(c->admin, ZNODE_CONTROLLER, -1), 0);
        (void)cluster_active(c);
        drain_start_granted(c, 3, "three", &seen);
}

/* --- the gate (D4) --- */

static void a_broker_that_is_needed_waits_until_another_is_in_sync(void **state)
{
        const int32_t ids[] = {2, 3};
        struct proposal alone = {.topic = "t", .leader = 2, .isr = {2}, .n_isr = 1};

        (void)state;
        topic("t", 1, 2, ids);
        assert_int_equal(propose_isr(c, &alone), KAFKA_NONE);
        fixture_gate = true;
        drain_start(c, 2, -1, "two", &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_true(seen.status.unsafe);
        assert_int_equal(seen.gate, 1);
        assert_int_equal(seen.holder.broker, -1); /* nothing has begun, and nobody is kept from it */
        drain_get(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_WAITING);
        rejoin("t", 0, 3);
        drain_start(c, 2, -1, "two", &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        wait_leader(c, "t", 0, 3);
}

static void who_is_needed_goes_at_once_by_force(void **state)
{
        const int32_t ids[] = {2, 3};
        struct proposal alone = {.topic = "t", .leader = 2, .isr = {2}, .n_isr = 1};

        (void)state;
        topic("t", 1, 2, ids);
        assert_int_equal(propose_isr(c, &alone), KAFKA_NONE);
        drain_start(c, 2, -1, "two", &seen); /* with a reason */
        assert_int_equal(seen.error, KAFKA_NONE);
        drain_wait(c, 2, DRAIN_INCOMPLETE, &seen);
        assert_int_equal(state_of(c, "t", 0).leader, 2);
}

static void what_can_never_be_safe_holds_nobody_up(void **state)
{
        const int32_t one[] = {2};

        (void)state;
        topic("single", 1, 1, one);
        fixture_gate = true;
        drain_start(c, 2, -1, "two", &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        assert_int_equal(seen.gate, 0);
        assert_int_equal(seen.status.single_replica, 1);
}

/* --- all of the cluster (D8) --- */

static void when_all_live_brokers_ask_nobody_waits_and_nothing_moves(void **state)
{
        const int32_t ids[] = {3, 1, 2};
        struct shutdown_seen shut;

        (void)state;
        topic("t", 1, 3, ids);
        drain_start(c, 1, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        drain_start(c, 2, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED); /* two of three are not all */
        controlled_shutdown(cluster_active(c), 3, -1, &shut);
        assert_int_equal(shut.error, KAFKA_NONE);
        assert_int_equal(shut.n, 0);
        for (int32_t id = 1; id < 3; id++) {
                drain_start(c, id, -1, NULL, &seen);
                assert_int_equal(seen.error, KAFKA_NONE);
                assert_int_equal(seen.status.state, DRAIN_CLUSTER_STOP);
        }
        assert_int_equal(state_of(c, "t", 0).leader, 3);
        read_slot(&slot);
        assert_true(slot.cluster_stop);
        assert_int_equal(slot.n_holders, 3);
}

/* The first to stop is the controller, and gone before the last one asks. */
static void a_cluster_stop_is_recognised_across_a_failover(void **state)
{
        (void)state;
        topic("t", 3, 3, NULL);
        drain_start(c, 1, -1, NULL, &seen);
        drain_start(c, 2, -1, NULL, &seen);
        node_stop(c, 1);
        (void)cluster_active(c);
        drain_start(c, 3, -1, NULL, &seen);
        assert_int_equal(seen.status.state, DRAIN_CLUSTER_STOP);
        drain_start(c, 2, -1, NULL, &seen);
        assert_int_equal(seen.status.state, DRAIN_CLUSTER_STOP);
        node_start(c, 1, NODE_BROKER); /* the cluster is started again */
        drain_get(c, 1, &seen);
        assert_int_equal(seen.status.state, DRAIN_NONE);
}

static void an_explicit_cluster_stop_needs_no_majority(void **state)
{
        (void)state;
        topic("t", 3, 3, NULL);
        drain_cluster_stop(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_CLUSTER_STOP);
        drain_start(c, 3, -1, NULL, &seen);
        assert_int_equal(seen.status.state, DRAIN_CLUSTER_STOP);
        drain_undo(c, 2, &seen);
        drain_get(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_NONE);
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_SHORT(name) cmocka_unit_test_setup_teardown(name, setup_short, teardown)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(a_second_broker_is_told_who_holds_the_slot_and_until_when),
                TEST(controlled_shutdown_waits_its_time_and_names_the_holder),
                TEST(the_slot_is_kept_while_the_broker_is_down_and_until_it_is_in_sync),
                TEST_SHORT(a_lease_that_runs_out_frees_the_slot_and_ends_the_drain),
                TEST_SHORT(who_drains_and_asks_keeps_the_lease),
                TEST(an_undone_drain_keeps_the_slot_until_its_memberships_are_back),
                TEST(a_takeover_undoes_the_drain_of_the_holder_and_is_recorded),
                TEST(a_drained_broker_does_not_get_leadership_back_from_a_new_controller),
                TEST(the_case_of_R28_does_not_bring_leadership_back),
                TEST(the_slot_of_a_broker_that_is_down_survives_its_controller),
                TEST(garbage_in_its_znode_is_nobodys_slot),
                TEST(a_broker_that_is_needed_waits_until_another_is_in_sync),
                TEST(who_is_needed_goes_at_once_by_force),
                TEST(what_can_never_be_safe_holds_nobody_up),
                TEST(when_all_live_brokers_ask_nobody_waits_and_nothing_moves),
                TEST(a_cluster_stop_is_recognised_across_a_failover),
                TEST(an_explicit_cluster_stop_needs_no_majority),
        };

        if (argc < 2)
                return 2;
        fixture_use_helper(argv[1]);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
