/* Drains, with a real ZooKeeper and fake brokers. */
#include "cluster_fixture.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "wire/error.h"
#include "zk_faults.h"

static struct cluster *c;
static struct drain_seen seen;

static int begin(int64_t stop_timeout_ms)
{
        c = cluster_new();
        fixture_stop_timeout_ms = stop_timeout_ms;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        return 0;
}

static int setup(void **state)
{
        (void)state;
        return begin(60000);
}

static int setup_impatient(void **state)
{
        (void)state;
        return begin(500);
}

static int teardown(void **state)
{
        (void)state;
        zk_faults_clear();
        cluster_free(c);
        return 0;
}

static struct fake_broker *broker(int32_t id)
{
        return c->nodes[id].broker;
}

static void topic(const char *name, int32_t n, int16_t rf, const int32_t *ids)
{
        assert_int_equal(make_topic(c, name, n, rf, ids), KAFKA_NONE);
}

/* Leave only @id in the ISR, as a leader does whose followers lag. */
static void shrink_to(const char *name, int32_t leader)
{
        struct proposal p = {.topic = name, .leader = leader, .isr = {leader}, .n_isr = 1};

        assert_int_equal(propose_isr(c, &p), KAFKA_NONE);
}

/* The leader proposes itself and @other (0: nobody). */
static void set_isr(const char *name, int32_t partition, int32_t leader, int32_t other)
{
        struct znode_state st;
        struct proposal p = {.topic = name,
                             .partition = partition,
                             .leader = leader,
                             .isr = {leader, other},
                             .n_isr = other ? 2 : 1};
        int32_t version;

        assert_true(read_state(c, name, partition, &st, &version));
        p.leader_epoch = st.leader_epoch;
        p.partition_epoch = version;
        assert_int_equal(propose_isr(c, &p), KAFKA_NONE);
}

struct isr_want {
        const char *topic;
        int32_t partition, id;
        bool in;
};

static bool isr_is(void *userdata)
{
        struct isr_want *w = userdata;
        struct znode_state st = state_of(c, w->topic, w->partition);

        return isr_has(&st, w->id) == w->in;
}

static void wait_isr(const char *name, int32_t partition, int32_t id, bool in)
{
        struct isr_want w = {name, partition, id, in};

        wait_until(isr_is, &w);
}

struct count_want {
        int32_t id;
        enum told_kind kind;
        const char *topic;
        int n;
};

static bool counted(void *userdata)
{
        struct count_want *w = userdata;

        return fake_broker_count(broker(w->id), w->kind, w->topic) >= w->n;
}

static void wait_count_told(int32_t id, enum told_kind kind, const char *name, int n)
{
        struct count_want w = {id, kind, name, n};

        wait_until(counted, &w);
}

static bool fetches_again(void *userdata)
{
        return fake_broker_fetches(broker(*(int32_t *)userdata), "t", 0);
}

/* --- moving --- */

static void leaders_move_inside_the_isr_and_the_broker_leaves_every_isr(void **state)
{
        const int32_t ids[] = {2, 1, 3, 2, 3, 1, 1, 2, 3, 3, 2, 1};
        struct znode_state st;

        (void)state;
        topic("t", 4, 3, ids);
        drain_start(c, 2, c->nodes[2].epoch, "d1", &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        assert_string_equal(seen.status.drain_id, "d1");
        assert_int_equal(seen.status.leaders_initial, 2);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);

        assert_int_equal(seen.status.leaders_remaining, 0);
        assert_int_equal(seen.status.isr_remaining, 0);
        assert_int_equal(seen.status.leaders_moved, 2);
        assert_int_equal(seen.status.n_blocked, 0);
        for (int32_t p = 0; p < 4; p++) { /* I3 */
                st = state_of(c, "t", p);
                assert_false(isr_has(&st, 2));
                assert_true(isr_has(&st, st.leader));
                assert_int_equal(st.n_isr, 2);
                assert_int_equal(st.leader_epoch, 1);
        }
        /* D6: one each; assignment order among equals */
        assert_int_not_equal(state_of(c, "t", 0).leader, state_of(c, "t", 1).leader);
}

/* R12, KAFKA-7482: it must learn that it does not lead; R9: and must not fetch because of that. */
static void the_old_leader_hears_of_it_and_stops_fetching(void **state)
{
        const int32_t ids[] = {2, 1, 3};
        struct told lai, stop;

        (void)state;
        topic("t", 1, 3, ids);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_false(fake_broker_leads(broker(2), "t", 0));
        assert_false(fake_broker_fetches(broker(2), "t", 0));
        assert_true(fake_broker_last(broker(2), TOLD_LAI, "t", 0, &lai));
        assert_int_not_equal(lai.leader, 2);
        assert_true(fake_broker_last(broker(2), TOLD_STOP, "t", 0, &stop));
        assert_true(stop.seq > lai.seq);
        assert_false(stop.delete_partition);
        assert_int_equal(stop.leader_epoch, lai.leader_epoch);
}

/* D6: its clients are sent on to leaders that have been told before. */
static void the_new_leader_is_told_before_the_old_one(void **state)
{
        int moved = 0;

        (void)state;
        topic("t", 30, 3, NULL);
        zk_faults_record_sends();
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        for (int32_t p = 0; p < 30; p++) {
                struct znode_state st = state_of(c, "t", p);
                int to_old = zk_faults_sent_at(c->nodes[2].epoch, p, 1);

                if (to_old < 0)
                        continue; /* it followed */
                moved++;
                assert_in_range(zk_faults_sent_at(c->nodes[st.leader].epoch, p, 1), 1, to_old - 1);
        }
        assert_int_equal(moved, seen.status.leaders_moved);
}

static void a_thousand_partitions_drain_and_stay_led_in_sync_throughout(void **state)
{
        int32_t led[4] = {0}, n_led;
        int64_t began;

        (void)state;
        topic("big", 1000, 3, NULL);
        n_led = fake_broker_n_led(broker(3));
        assert_in_range(n_led, 333, 334);
        began = clock_mono_ms();
        drain_start(c, 3, -1, NULL, &seen);
        assert_int_equal(seen.status.leaders_initial, n_led);
        while (seen.status.state != DRAIN_DRAINED) { /* looked at all the while */
                struct znode_state st = state_of(c, "big", (int32_t)(clock_mono_us() % 1000));

                assert_true(st.leader > 0 && isr_has(&st, st.leader));
                drain_get(c, 3, &seen);
                assert_true(clock_mono_ms() - began < DEADLINE_MS);
        }
        print_message("1000 partitions drained in %d ms\n", (int)(clock_mono_ms() - began));
        for (int32_t p = 0; p < 1000; p++) {
                struct znode_state st = state_of(c, "big", p);

                led[st.leader]++;
                assert_false(isr_has(&st, 3));
                assert_int_equal(st.n_isr, 2);
        }
        assert_int_equal(led[3], 0);
        assert_int_equal(led[1] + led[2], 1000);
        assert_true(led[1] >= 499 && led[1] <= 501); /* D6: even */
        assert_int_equal(fake_broker_n_led(broker(3)), 0);
}

#define PACED 1200

static void paced_topic(void)
{
        static int32_t ids[PACED * 3];

        for (int32_t i = 0; i < PACED; i++) {
                ids[3 * i] = 3;
                ids[3 * i + 1] = 1 + i % 2;
                ids[3 * i + 2] = 2 - i % 2;
        }
        topic("paced", PACED, 3, ids);
        wait_count_told(1, TOLD_UM, "paced", PACED);
}

static int compare_seq(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (llabs(x) > llabs(y)) - (llabs(x) < llabs(y));
}

/* R5: what makes a partition's gap is how many are between LeaderAndIsr and UpdateMetadata with it. */
static void few_partitions_are_on_their_way_to_a_new_leader_at_a_time(void **state)
{
        static int64_t events[2 * PACED]; /* told to lead or follow anew; negative: and clients can know */
        int under_way = 0, most = 0;
        struct told t;

        (void)state;
        paced_topic();
        drain_start(c, 3, -1, NULL, &seen);
        drain_wait(c, 3, DRAIN_DRAINED, &seen);
        wait_count_told(1, TOLD_UM, "paced", 2 * PACED);
        for (int32_t i = 0; i < PACED; i++) {
                assert_true(fake_broker_last(broker(1), TOLD_LAI, "paced", i, &t));
                assert_int_equal(t.leader_epoch, 1);
                events[2 * i] = t.seq;
                assert_true(fake_broker_last(broker(1), TOLD_UM, "paced", i, &t));
                assert_int_equal(t.leader_epoch, 1);
                events[2 * i + 1] = -t.seq;
        }
        qsort(events, 2 * PACED, sizeof(events[0]), compare_seq);
        for (int i = 0; i < 2 * PACED; i++) {
                under_way += events[i] > 0 ? 1 : -1;
                most = MAX(most, under_way);
        }
        print_message("at most %d of %d partitions under way\n", most, PACED);
        assert_in_range(most, 1, 400);
}

static void a_broker_that_does_not_answer_slows_a_drain_down_and_does_not_stop_it(void **state)
{
        int64_t began = clock_mono_ms();

        (void)state;
        paced_topic();
        fake_broker_hold(broker(2), TOLD_UM, true);
        drain_start(c, 3, -1, NULL, &seen);
        while (seen.status.leaders_remaining > 0) {
                drain_get(c, 3, &seen);
                assert_true(clock_mono_ms() - began < DEADLINE_MS);
        }
        assert_int_not_equal(seen.status.state, DRAIN_DRAINED); /* broker 2 does not know yet */
        /* 1,200 in steps of 100 each 50 ms, but for the first ones */
        assert_true(clock_mono_ms() - began >= 400);
        fake_broker_hold(broker(2), TOLD_UM, false);
        fake_broker_release(broker(2));
        drain_wait(c, 3, DRAIN_DRAINED, &seen);
}

/* The controller may be what stops next: then only its successor would tell the new leaders, after an
 * election. */
static void it_is_not_called_drained_before_the_new_leaders_know(void **state)
{
        const int32_t ids[] = {2, 3};

        (void)state;
        topic("t", 1, 2, ids);
        fake_broker_hold(broker(3), TOLD_LAI, true);
        drain_start(c, 2, -1, NULL, &seen);
        wait_leader(c, "t", 0, 3);
        wait_isr("t", 0, 2, false);
        do {
                drain_get(c, 2, &seen);
                assert_int_equal(seen.status.state, DRAIN_DRAINING);
        } while (seen.status.leaders_remaining > 0);
        fake_broker_release(broker(3));
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_true(fake_broker_leads(broker(3), "t", 0));
}

/* --- followers --- */

/* R11, D7: an acks=all producer must not wait for a follower that has left, nor the leader take it back. */
static void stop_replica_is_acknowledged_before_the_isr_shrinks(void **state)
{
        const int32_t ids[] = {1, 2, 3};
        struct znode_state st;
        struct told stop, shrunk;

        (void)state;
        topic("t", 1, 3, ids);
        fake_broker_hold(broker(2), TOLD_STOP, true);
        drain_start(c, 2, -1, NULL, &seen);
        assert_int_equal(seen.status.state, DRAIN_DRAINING);
        assert_int_equal(seen.status.isr_remaining, 1);
        assert_int_equal(seen.status.n_blocked, 1);
        assert_int_equal(seen.blocked[0].reason, DRAIN_REASON_STOP_REPLICA_PENDING);
        assert_false(seen.blocked[0].leads);
        st = state_of(c, "t", 0);
        assert_true(isr_has(&st, 2));

        fake_broker_release(broker(2));
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        st = state_of(c, "t", 0);
        assert_false(isr_has(&st, 2));
        wait_count_told(1, TOLD_LAI, "t", 2);
        assert_true(fake_broker_last(broker(2), TOLD_STOP, "t", 0, &stop));
        assert_true(fake_broker_last(broker(1), TOLD_LAI, "t", 0, &shrunk));
        assert_int_equal(shrunk.n_isr, 2);
        assert_true(stop.seq < shrunk.seq);
}

static void a_broker_that_never_acknowledges_leaves_the_isr_after_the_timeout(void **state)
{
        const int32_t ids[] = {1, 2, 3};

        (void)state;
        topic("t", 1, 3, ids);
        fake_broker_hold(broker(2), TOLD_STOP, true);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen); /* R19: nothing waits for ever */
        wait_isr("t", 0, 2, false);
}

static void a_fenced_stop_replica_is_sent_again(void **state)
{
        const int32_t ids[] = {1, 2, 3};

        (void)state;
        topic("t", 1, 3, ids);
        fake_broker_partition_error(broker(2), TOLD_STOP, KAFKA_FENCED_LEADER_EPOCH);
        drain_start(c, 2, -1, NULL, &seen);
        wait_count_told(2, TOLD_STOP, "t", 2);
        assert_int_equal(state_of(c, "t", 0).n_isr, 3);
        fake_broker_partition_error(broker(2), TOLD_STOP, KAFKA_NONE);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
}

/* --- what cannot move --- */

static void a_leader_alone_in_its_isr_stays_with_its_reason_and_moves_by_itself_later(void **state)
{
        const int32_t ids[] = {2, 3, 1};
        struct proposal expand = {.topic = "t", .leader = 2, .isr = {2, 3}, .n_isr = 2, .partition_epoch = 1};

        (void)state;
        topic("t", 1, 3, ids);
        shrink_to("t", 2);
        drain_start(c, 2, -1, "d", &seen);
        drain_wait(c, 2, DRAIN_INCOMPLETE, &seen);
        assert_int_equal(seen.status.leaders_remaining, 1);
        assert_int_equal(seen.status.by_reason[DRAIN_REASON_NO_OTHER_IN_SYNC], 1);
        assert_string_equal(seen.blocked[0].topic, "t");
        assert_true(seen.blocked[0].leads);
        assert_int_equal(state_of(c, "t", 0).leader, 2);                   /* R6 */
        assert_int_equal(state_of(c, "t", 0).n_isr, 1);                    /* R22 */
        assert_int_equal(fake_broker_count(broker(2), TOLD_STOP, "t"), 0); /* R20 */

        /* the draining leader may still admit others (KAFKA-705, KAFKA-999) */
        assert_int_equal(propose_isr(c, &expand), KAFKA_NONE);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_int_equal(state_of(c, "t", 0).leader, 3);
}

/* R20, R21: never "leader:1, isr:0". By D3 its turn does not even come; taken by force, it still stays. */
static void the_last_of_two_is_not_drained_after_the_first(void **state)
{
        const int32_t ids[] = {2, 3};
        struct znode_state st;

        (void)state;
        topic("t", 1, 2, ids);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_int_equal(state_of(c, "t", 0).leader, 3);
        drain_start(c, 3, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_int_equal(seen.holder.broker, 2);
        drain_replace(c, 3, "three", &seen);
        drain_wait(c, 3, DRAIN_INCOMPLETE, &seen);
        st = state_of(c, "t", 0);
        assert_int_equal(st.leader, 3);
        assert_int_equal(st.n_isr, 1);
        assert_int_equal(st.isr[0], 3);
        assert_int_equal(seen.status.by_reason[DRAIN_REASON_NO_OTHER_IN_SYNC], 1);
}

/* D3: the second waits, and is not masked meanwhile. */
static void of_two_that_ask_together_one_drains_and_hands_over_to_the_other(void **state)
{
        const int32_t ids[] = {2, 3, 3, 2};

        (void)state;
        topic("t", 2, 2, ids);
        drain_start(c, 2, -1, NULL, &seen);
        drain_start(c, 3, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        assert_int_equal(seen.status.state, DRAIN_WAITING);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_int_equal(state_of(c, "t", 0).leader, 3);
        assert_int_equal(state_of(c, "t", 1).leader, 3);
}

static void single_replicas_are_listed_and_not_counted(void **state)
{
        const int32_t ids[] = {2};

        (void)state; /* R16 */
        topic("single", 1, 1, ids);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_int_equal(seen.status.leaders_remaining, 0);
        assert_int_equal(seen.status.single_replica, 1);
        assert_int_equal(state_of(c, "single", 0).leader, 2);
}

/* --- while it drains --- */

static void a_draining_replica_is_not_taken_into_the_isr(void **state)
{
        const int32_t ids[] = {1, 2, 3};
        struct proposal p = {.topic = "t", .leader = 1, .isr = {1, 3, 2}, .n_isr = 3};
        struct znode_state st;

        (void)state; /* D7, KAFKA-14140 */
        topic("t", 1, 3, ids);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        st = state_of(c, "t", 0);
        p.leader_epoch = st.leader_epoch;
        p.partition_epoch = 1;
        assert_int_equal(propose_isr(c, &p), KAFKA_INELIGIBLE_REPLICA);
        drain_undo(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_NONE);
}

static void a_new_topic_avoids_a_draining_broker(void **state)
{
        (void)state;
        drain_start(c, 2, -1, NULL, &seen);
        topic("t", 6, 2, NULL);
        for (int32_t p = 0; p < 6; p++) {
                struct znode_state st = state_of(c, "t", p);

                assert_false(isr_has(&st, 2));
        }
        drain_get(c, 2, &seen);
        assert_int_equal(seen.status.leaders_remaining, 0);
        assert_int_equal(fake_broker_count(broker(2), TOLD_LAI, "t"), 0);
}

static void a_failure_elsewhere_does_not_bring_leadership_back(void **state)
{
        const int32_t ids[] = {3, 2, 1};

        (void)state;
        topic("t", 1, 3, ids);
        fake_broker_hold(broker(2), TOLD_STOP, true); /* it is still in the ISR */
        drain_start(c, 2, -1, NULL, &seen);
        node_stop(c, 3);
        wait_leader(c, "t", 0, 1);
}

/* linkedin/kafka#187: what is being deleted is neither counted nor waited for. */
static void a_topic_deleted_meanwhile_does_not_hold_a_drain_up(void **state)
{
        const int32_t ids[] = {2, 1, 1, 2, 3, 2};

        (void)state;
        topic("gone", 3, 2, ids);
        shrink_to("gone", 2);
        fake_broker_hold(broker(2), TOLD_STOP, true);
        drain_start(c, 2, -1, NULL, &seen);
        assert_int_equal(seen.status.leaders_remaining, 1);
        assert_int_equal(do_create(c->admin, "/admin/delete_topics/gone", NULL, false), 0);
        wait_told(c, 1, TOLD_UM, "gone", 0, -2);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_int_equal(seen.status.leaders_remaining, 0);
        fake_broker_release(broker(2));
        topic("gone2", 2, 2, NULL);
        drain_get(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_DRAINED);
}

/* --- undo, epochs, identity --- */

static void undo_brings_the_followers_back(void **state)
{
        const int32_t ids[] = {1, 2, 3, 2, 1, 3};
        struct proposal p = {.topic = "t", .leader = 1, .isr = {1, 3, 2}, .n_isr = 3};
        struct znode_state st;
        int32_t version, two = 2;

        (void)state; /* D2 */
        topic("t", 2, 3, ids);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_false(fake_broker_fetches(broker(2), "t", 0));
        drain_undo(c, 2, &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        wait_until(fetches_again, &two);

        assert_true(read_state(c, "t", 0, &st, &version));
        p.leader_epoch = st.leader_epoch;
        p.partition_epoch = version;
        assert_int_equal(propose_isr(c, &p), KAFKA_NONE);
        node_stop(c, 1);
        (void)cluster_active(c);
        wait_leader(c, "t", 0, 2); /* it may lead again: second in the assignment */
}

/* Undone before anything else: what was waiting for a candidate moves on. */
static void undo_helps_another_drain_on(void **state)
{
        const int32_t ids[] = {3, 2};

        (void)state;
        topic("t", 1, 2, ids);
        fake_broker_hold(broker(2), TOLD_STOP, true);
        drain_start(c, 2, -1, NULL, &seen);
        drain_start(c, 3, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_OPERATION_NOT_ATTEMPTED);
        drain_undo(c, 2, &seen);
        fake_broker_release(broker(2));
        drain_start_granted(c, 3, "three", &seen); /* its turn: the first is in every ISR */
        wait_leader(c, "t", 0, 2);
}

static void an_earlier_life_is_answered_stale(void **state)
{
        const int32_t ids[] = {2, 1};
        struct shutdown_seen shut;

        (void)state; /* D2, KIP-380 */
        topic("t", 1, 2, ids);
        drain_start(c, 2, c->nodes[2].epoch - 1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        assert_true(seen.status.stale);
        assert_int_equal(seen.status.state, DRAIN_NONE);
        controlled_shutdown(cluster_active(c), 2, c->nodes[2].epoch - 1, &shut);
        assert_int_equal(shut.error, KAFKA_STALE_BROKER_EPOCH);
        assert_int_equal(state_of(c, "t", 0).leader, 2);
}

static void an_unknown_broker_is_said_to_be_unknown(void **state)
{
        struct shutdown_seen shut;

        (void)state; /* R36 */
        drain_start(c, 77, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_BROKER_NOT_AVAILABLE);
        controlled_shutdown(cluster_active(c), 77, -1, &shut);
        assert_int_equal(shut.error, KAFKA_BROKER_NOT_AVAILABLE);
}

static void the_same_drain_may_be_asked_for_again_and_another_not(void **state)
{
        (void)state; /* D1 */
        drain_start(c, 2, -1, "one", &seen);
        drain_start(c, 2, -1, "one", &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        drain_start(c, 2, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        assert_string_equal(seen.status.drain_id, "one");
        drain_start(c, 2, -1, "two", &seen);
        assert_int_equal(seen.error, KAFKA_INVALID_REQUEST);
        assert_string_equal(seen.status.drain_id, "one");
}

static void a_new_life_of_the_broker_ends_its_drain(void **state)
{
        (void)state; /* D2, R14 */
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        node_stop(c, 2);
        wait_live(c, 1, 2);
        node_start(c, 2, NODE_BROKER);
        wait_live(c, 1, 3);
        drain_get(c, 2, &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        assert_int_equal(seen.status.state, DRAIN_NONE);
        assert_int_equal(seen.status.broker_epoch, c->nodes[2].epoch);
}

/* "Unknown" means "done" to who asks, so it must not be said when nobody can know. */
static void an_unknown_broker_is_not_called_unknown_while_zookeeper_is_silent(void **state)
{
        (void)state;
        zk_faults_lapse_lease(true);
        drain_start(c, 77, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_UNKNOWN_SERVER_ERROR);
        assert_false(seen.has_status);
}

/* An epoch newer than what the controller knows: it looks again instead of draining the wrong life. */
static void a_drain_of_a_life_just_begun_is_served(void **state)
{
        (void)state;
        node_stop(c, 3);
        node_start(c, 3, NODE_BROKER);
        drain_start(c, 3, c->nodes[3].epoch, "new", &seen);
        assert_int_equal(seen.error, KAFKA_NONE);
        assert_int_equal(seen.status.broker_epoch, c->nodes[3].epoch);
        assert_string_equal(seen.status.drain_id, "new");
        drain_start(c, 3, c->nodes[3].epoch + 1000, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_UNKNOWN_SERVER_ERROR);
}

/* --- ControlledShutdown --- */

static void controlled_shutdown_answers_what_is_left_after_the_pass(void **state)
{
        const int32_t ids[] = {2, 1, 3, 2, 3, 1};
        struct shutdown_seen shut;

        (void)state; /* R25, R27 */
        topic("t", 2, 3, ids);
        topic("stuck", 1, 3, ids);
        shrink_to("stuck", 2);
        controlled_shutdown(cluster_active(c), 2, c->nodes[2].epoch, &shut);
        assert_int_equal(shut.error, KAFKA_NONE);
        assert_int_equal(shut.n, 1);
        assert_string_equal(shut.remaining[0].topic, "stuck");
        assert_int_not_equal(state_of(c, "t", 0).leader, 2);
        assert_int_not_equal(state_of(c, "t", 1).leader, 2);

        assert_int_equal(propose_isr(c, &(struct proposal){.topic = "stuck",
                                                           .leader = 2,
                                                           .isr = {2, 1},
                                                           .n_isr = 2,
                                                           .partition_epoch = 1}),
                         KAFKA_NONE);
        controlled_shutdown(cluster_active(c), 2, -1, &shut); /* -1: unknown, not checked */
        assert_int_equal(shut.error, KAFKA_NONE);
        assert_int_equal(shut.n, 0);
}

/* --- ZooKeeper, and the controller itself --- */

static void without_zookeeper_everything_remains_and_is_said_to(void **state)
{
        const int32_t ids[] = {2, 1, 2, 3};
        struct shutdown_seen shut;

        (void)state; /* I16 */
        topic("t", 2, 2, ids);
        zk_faults_lapse_lease(true);
        /* D3: the slot cannot be written, so nothing begins. */
        controlled_shutdown(cluster_active(c), 2, -1, &shut);
        assert_int_equal(shut.error, KAFKA_UNKNOWN_SERVER_ERROR);
        drain_start(c, 2, -1, NULL, &seen);
        assert_int_equal(seen.error, KAFKA_UNKNOWN_SERVER_ERROR);
        assert_false(seen.status.zookeeper_available);
        zk_faults_lapse_lease(false);
        for (int32_t p = 0; p < 2; p++)
                set_isr("t", p, 2, 0);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_INCOMPLETE, &seen);
        zk_faults_lapse_lease(true);
        drain_get(c, 2, &seen);
        assert_false(seen.status.zookeeper_available);
        assert_int_equal(seen.status.by_reason[DRAIN_REASON_ZK_UNAVAILABLE], 2);
        assert_int_not_equal(seen.status.state, DRAIN_DRAINED);
        zk_faults_lapse_lease(false);
        set_isr("t", 0, 2, 1);
        set_isr("t", 1, 2, 3);
        drain_wait(c, 2, DRAIN_DRAINED, &seen); /* by itself */
}

static void a_conflict_in_the_middle_keeps_nobody_else(void **state)
{
        struct znode_state st;

        (void)state;
        topic("t", 300, 3, NULL);
        for (int32_t p = 0; p < 300; p += 100) { /* versions the controller does not know */
                st = state_of(c, "t", p);
                write_state(c, "t", p, &st);
        }
        zk_faults_refuse("/t/partitions/7", -EIO, 2);
        zk_faults_lose_replies("/t/partitions/150/state", 1);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        for (int32_t p = 0; p < 300; p++) {
                st = state_of(c, "t", p);
                assert_int_not_equal(st.leader, 2);
                assert_false(isr_has(&st, 2));
        }
}

static void on_shut(int16_t error, const struct controller_partition *remaining, size_t n,
                    const struct slot_holder *holder, void *userdata)
{
        (void)remaining;
        (void)holder;
        (void)n;
        atomic_store((_Atomic int *)userdata, error);
}

static bool answered(void *userdata)
{
        return atomic_load((_Atomic int *)userdata) != -99;
}

/* R28, KAFKA-10193: who waits is told; the new controller finds the slot and goes on without being asked. */
static void a_new_controller_goes_on_by_itself(void **state)
{
        const int32_t ids[] = {3, 1, 2, 2, 3, 1};
        _Atomic int answer = -99;
        int32_t successor;

        (void)state;
        topic("t", 2, 3, ids);
        fake_broker_hold(broker(3), TOLD_STOP, true);
        drain_start(c, 3, -1, "d", &seen);
        controller_controlled_shutdown(c->nodes[1].controller, 3, -1, 0, on_shut, &answer);
        assert_int_equal(do_delete(c->admin, ZNODE_CONTROLLER, -1), 0);
        wait_until(answered, &answer);
        assert_int_equal(answer, KAFKA_NOT_CONTROLLER);

        (void)cluster_active(c);
        successor = cluster_active_id(c);
        assert_true(successor > 0);
        fake_broker_release(broker(3));
        drain_get(c, 3, &seen);
        assert_string_equal(seen.status.drain_id, "d");
        assert_int_equal(seen.status.leaders_initial, 1);
        drain_wait(c, 3, DRAIN_DRAINED, &seen);
        assert_int_equal(seen.status.leaders_moved, 1);
        assert_false(({
                struct znode_state st = state_of(c, "t", 1);
                isr_has(&st, 3);
        }));
}

static void the_controllers_own_broker_drains_like_any_other(void **state)
{
        const int32_t ids[] = {1, 2, 3, 2, 1, 3};

        (void)state;
        topic("t", 2, 3, ids);
        drain_start(c, 1, c->nodes[1].epoch, NULL, &seen);
        drain_wait(c, 1, DRAIN_DRAINED, &seen);
        assert_int_equal(seen.status.leaders_moved, 1);
        node_stop(c, 1);
        (void)cluster_active(c);
        assert_int_not_equal(state_of(c, "t", 0).leader, 1);
        wait_live(c, 2, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(leaders_move_inside_the_isr_and_the_broker_leaves_every_isr),
                TEST(the_old_leader_hears_of_it_and_stops_fetching),
                TEST(the_new_leader_is_told_before_the_old_one),
                TEST(a_thousand_partitions_drain_and_stay_led_in_sync_throughout),
                TEST(few_partitions_are_on_their_way_to_a_new_leader_at_a_time),
                TEST(a_broker_that_does_not_answer_slows_a_drain_down_and_does_not_stop_it),
                TEST(it_is_not_called_drained_before_the_new_leaders_know),
                TEST(stop_replica_is_acknowledged_before_the_isr_shrinks),
                cmocka_unit_test_setup_teardown(
                        a_broker_that_never_acknowledges_leaves_the_isr_after_the_timeout, setup_impatient,
                        teardown),
                TEST(a_fenced_stop_replica_is_sent_again),
                TEST(a_leader_alone_in_its_isr_stays_with_its_reason_and_moves_by_itself_later),
                TEST(the_last_of_two_is_not_drained_after_the_first),
                TEST(of_two_that_ask_together_one_drains_and_hands_over_to_the_other),
                TEST(single_replicas_are_listed_and_not_counted),
                TEST(a_draining_replica_is_not_taken_into_the_isr),
                TEST(a_new_topic_avoids_a_draining_broker),
                TEST(a_failure_elsewhere_does_not_bring_leadership_back),
                TEST(a_topic_deleted_meanwhile_does_not_hold_a_drain_up),
                TEST(undo_brings_the_followers_back),
                TEST(undo_helps_another_drain_on),
                TEST(an_earlier_life_is_answered_stale),
                TEST(an_unknown_broker_is_said_to_be_unknown),
                TEST(an_unknown_broker_is_not_called_unknown_while_zookeeper_is_silent),
                TEST(a_drain_of_a_life_just_begun_is_served),
                TEST(the_same_drain_may_be_asked_for_again_and_another_not),
                TEST(a_new_life_of_the_broker_ends_its_drain),
                TEST(controlled_shutdown_answers_what_is_left_after_the_pass),
                TEST(without_zookeeper_everything_remains_and_is_said_to),
                TEST(a_conflict_in_the_middle_keeps_nobody_else),
                TEST(a_new_controller_goes_on_by_itself),
                TEST(the_controllers_own_broker_drains_like_any_other),
        };

        if (argc < 2)
                return 2;
        fixture_use_helper(argv[1]);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
