/* KIP-73, the leader's side, over real logs: broker 1 leads, 2 is in sync, 3 is not. */
#include "replica_testing.h"

#define MANY INT64_MAX

static int setup(void **state)
{
        static const int32_t isr[] = {1, 2};
        struct node *n = calloc(1, sizeof(*n));
        struct outcome o;

        assert_non_null(n);
        node_init(n, 1);
        node_start(n);
        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5, .isr = isr, .n_isr = 2}), KAFKA_NONE);
        outcome_init(&o);
        produce_to(n, TOPIC, 0, 1, 0, &(struct batch){.value_bytes = 5000}, &o);
        outcome_done(&o);
        follow(n, 2, 1, 5); /* committed: who has not got it is behind */
        *state = n;
        return 0;
}

static int teardown(void **state)
{
        struct node *n = *state;

        node_done(n);
        free(n);
        return 0;
}

static void throttle(struct node *n, const char *leaders, int64_t rate)
{
        const struct replica_topic_config c = {.min_isr = 1, .leader_throttled = leaders};

        assert_int_equal(replica_manager_set_topic_config(n->rm, TOPIC, &c), 0);
        replica_manager_set_throttles(n->rm, rate, MANY);
}

/* What broker @id (0: a consumer) gets now of what is there. */
static int32_t given(struct node *n, int32_t id)
{
        return fetch_now(n, &(struct ask){.replica_id = id, .epoch = 5}, NULL);
}

static void only_who_is_not_in_sync_is_held_back(void **state)
{
        struct node *n = *state;

        throttle(n, "0:1", 0);
        assert_int_equal(given(n, 3), 0);
        assert_true(given(n, 2) > 5000);
        assert_true(given(n, 0) > 5000);
        assert_int_equal(given(n, 3), 0);
        throttle(n, "0:1", MANY);
        assert_true(given(n, 3) > 5000);
}

static void only_what_the_topic_names_is_held_back(void **state)
{
        static const struct {
                const char *leaders;
                bool counts;
        } lists[] = {{"*", true}, {"1:1,0:1", true}, {"0:2,1:1", false}, {"", false}, {NULL, false}};
        struct node *n = *state;

        for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
                throttle(n, lists[i].leaders, 0);
                assert_true((given(n, 3) == 0) == lists[i].counts);
        }
}

/* Large batches go whole, or never. */
static void a_batch_larger_than_the_rate_gets_through(void **state)
{
        struct node *n = *state;
        struct outcome o;

        throttle(n, "*", 10);
        for (int32_t got = 0; got == 0;) { /* its first byte is there within a tenth of a second */
                outcome_init(&o);
                fetch(n, &(struct ask){.replica_id = 3, .epoch = 5, .max_wait_ms = 60000, .min_bytes = 1},
                      &o);
                outcome_await(&o);
                got = fetched(&o)->records.len;
                outcome_done(&o);
        }
        assert_int_equal(given(n, 3), 0); /* and is paid for */
        assert_true(given(n, 2) > 5000);
}

/* Neither at once, which would be a busy loop, nor when the follower's patience is over. */
static void a_request_that_is_held_back_ends_soon(void **state)
{
        struct node *n = *state;
        struct outcome o;

        throttle(n, "*", 0);
        outcome_init(&o);
        fetch(n, &(struct ask){.replica_id = 3, .epoch = 5, .max_wait_ms = 60000, .min_bytes = 1}, &o);
        assert_false(outcome_arrived(&o));
        outcome_await(&o);
        assert_int_equal(fetched(&o)->error_code, KAFKA_NONE);
        assert_int_equal(fetched(&o)->records.len, 0);
        outcome_done(&o);
}

/* Who is about to be let in is waited for by acks=all. */
static void who_has_caught_up_is_not_held_back_any_more(void **state)
{
        struct node *n = *state;
        struct outcome o;

        throttle(n, "*", 0);
        assert_int_equal(given(n, 3), 0);
        follow(n, 3, 1, 5);
        assert_true(proposal_arrived(n));
        outcome_init(&o);
        produce_to(n, TOPIC, 0, 1, 0, &(struct batch){.value_bytes = 3000}, &o);
        outcome_done(&o);
        assert_true(fetch_now(n, &(struct ask){.replica_id = 3, .epoch = 5, .offset = 1}, NULL) > 3000);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(only_who_is_not_in_sync_is_held_back),
                TEST(only_what_the_topic_names_is_held_back),
                TEST(a_batch_larger_than_the_rate_gets_through),
                TEST(a_request_that_is_held_back_ends_soon),
                TEST(who_has_caught_up_is_not_held_back_any_more),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
