/* What happens to a partition while a write of its state is under way. */
#include "cluster_fixture.h"

#include <errno.h>
#include <pthread.h>

#include "wire/error.h"
#include "zk_faults.h"

static struct cluster *c;
static struct drain_seen seen;

static int setup(void **state)
{
        (void)state;
        c = cluster_new();
        fixture_stop_timeout_ms = 60000;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        zk_faults_clear();
        cluster_free(c);
        return 0;
}

/* A topic of one partition, led by 1, whose ISR holds 1 and what @with names; @ret may propose the next. */
static void topic_with_isr(int16_t rf, const int32_t *ids, struct proposal first, struct proposal *ret)
{
        struct znode_state st;
        int32_t version;

        assert_int_equal(make_topic(c, "t", 1, rf, ids), KAFKA_NONE);
        assert_int_equal(propose_isr(c, &first), KAFKA_NONE);
        assert_true(read_state(c, "t", 0, &st, &version));
        *ret = (struct proposal){
                .topic = "t", .leader = 1, .leader_epoch = st.leader_epoch, .partition_epoch = version};
}

static void *propose(void *userdata)
{
        return (void *)(intptr_t)propose_isr(c, userdata);
}

static bool one_is_held(void *userdata)
{
        (void)userdata;
        return zk_faults_held() == 1;
}

/* @p is accepted by the controller and on its way to ZooKeeper when this returns. */
static pthread_t begin_proposal(struct proposal *p)
{
        pthread_t thread;

        zk_faults_hold("/topics/t/partitions/0/state");
        assert_int_equal(pthread_create(&thread, NULL, propose, p), 0);
        wait_until(one_is_held, NULL);
        return thread;
}

static void end_proposal(pthread_t thread)
{
        void *error;

        zk_faults_release();
        assert_int_equal(pthread_join(thread, &error), 0);
        assert_int_equal((intptr_t)error, KAFKA_NONE);
}

static bool fetches(void *userdata)
{
        return fake_broker_fetches(c->nodes[*(int32_t *)userdata].broker, "t", 0);
}

/* The follower that was stopped waits for a new leader epoch (D2): the write of an ISR does not bring one. */
static void a_drain_undone_meanwhile_still_starts_the_followers_again(void **state)
{
        const int32_t ids[] = {1, 2, 3};
        struct proposal p;
        pthread_t thread;
        int32_t two = 2;

        (void)state;
        topic_with_isr(3, ids, (struct proposal){.topic = "t", .leader = 1, .isr = {1}, .n_isr = 1}, &p);
        drain_start(c, 2, -1, NULL, &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        assert_false(fetches(&two));
        p.isr[0] = 1;
        p.isr[1] = 3;
        p.n_isr = 2;
        thread = begin_proposal(&p);

        drain_undo(c, 2, &seen);
        assert_int_equal(seen.status.state, DRAIN_NONE);
        end_proposal(thread);
        wait_until(fetches, &two);
}

static bool alone(void *userdata)
{
        struct znode_state st = state_of(c, "t", 0);

        (void)userdata;
        return st.n_isr == 1;
}

static void a_broker_that_dies_meanwhile_leaves_the_isr_it_is_written_into(void **state)
{
        const int32_t ids[] = {1, 2};
        struct proposal p;
        pthread_t thread;

        (void)state;
        topic_with_isr(2, ids, (struct proposal){.topic = "t", .leader = 1, .isr = {1}, .n_isr = 1}, &p);
        p.isr[0] = 1;
        p.isr[1] = 2;
        p.n_isr = 2;
        thread = begin_proposal(&p);

        node_stop(c, 2);
        wait_live(c, 1, 2);
        end_proposal(thread);
        wait_until(alone, NULL); /* its leader would wait for it as long as replica.lag.time.max.ms */
        assert_int_equal(state_of(c, "t", 0).isr[0], 1);
}

/* The leader would not propose again before it has heard of a newer state, and there is none. */
static void an_isr_that_was_lost_on_its_way_is_written_after_all(void **state)
{
        const int32_t ids[] = {1, 2, 3};
        struct proposal p;

        (void)state;
        topic_with_isr(3, ids, (struct proposal){.topic = "t", .leader = 1, .isr = {1}, .n_isr = 1}, &p);
        p.isr[0] = 1;
        p.isr[1] = 3;
        p.n_isr = 2;
        zk_faults_refuse("/topics/t/partitions/0/state", -ECONNRESET, 1);
        assert_int_equal(propose_isr(c, &p), KAFKA_NONE);
        assert_int_equal(zk_faults_left(), 0);
        assert_int_equal(state_of(c, "t", 0).n_isr, 2);
}

static bool told_twice(void *userdata)
{
        return fake_broker_count(c->nodes[1].broker, TOLD_LAI, "t") >= *(int *)userdata;
}

static void a_leader_that_proposes_from_an_older_state_is_told_the_newer_one_again(void **state)
{
        const int32_t ids[] = {1, 2, 3};
        struct proposal p;
        int told;

        (void)state;
        topic_with_isr(3, ids, (struct proposal){.topic = "t", .leader = 1, .isr = {1, 2}, .n_isr = 2}, &p);
        wait_told(c, 1, TOLD_LAI, "t", 0, 1);
        told = fake_broker_count(c->nodes[1].broker, TOLD_LAI, "t") + 1;
        p.partition_epoch--;
        p.isr[0] = 1;
        p.n_isr = 1;
        assert_int_equal(propose_isr(c, &p), KAFKA_INVALID_UPDATE_VERSION);
        wait_until(told_twice, &told);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(a_drain_undone_meanwhile_still_starts_the_followers_again),
                TEST(a_broker_that_dies_meanwhile_leaves_the_isr_it_is_written_into),
                TEST(an_isr_that_was_lost_on_its_way_is_written_after_all),
                TEST(a_leader_that_proposes_from_an_older_state_is_told_the_newer_one_again),
        };

        if (argc < 2)
                return 2;
        fixture_use_helper(argv[1]);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
