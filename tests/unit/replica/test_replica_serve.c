/* What one broker serves to those who read: Fetch and ListOffsets, over real logs. Broker 1 of {1, 2, 3}. */
#include "replica_testing.h"

static int setup(void **state)
{
        struct node *n = calloc(1, sizeof(*n));

        assert_non_null(n);
        node_init(n, 1);
        node_start(n);
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

static void lead(struct node *n, int32_t epoch)
{
        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = epoch}), KAFKA_NONE);
}

static void become_follower(struct node *n, int32_t leader, int32_t epoch)
{
        assert_int_equal(lai(n, &(struct lai){.leader = leader, .epoch = epoch}), KAFKA_NONE);
}

static void consumers_see_what_is_committed(void **state)
{
        struct node *n = *state;
        int64_t hw;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        assert_int_equal(fetch_now(n, &(struct ask){.offset = 0}, &hw), 0);
        assert_int_equal(hw, 0);
        follow(n, 2, 1, 5);
        follow(n, 3, 2, 5);
        assert_true(fetch_now(n, &(struct ask){.offset = 0}, &hw) > 0);
        assert_int_equal(hw, 1);
        assert_int_equal(fetch_now(n, &(struct ask){.offset = 1}, NULL),
                         0); /* between HW and end: nothing yet */
        assert_int_equal(fetch_now(n, &(struct ask){.offset = 3}, NULL), -KAFKA_OFFSET_OUT_OF_RANGE);
        /* a follower sees everything */
        assert_true(fetch_now(n, &(struct ask){.replica_id = 2, .offset = 1, .epoch = 5}, NULL) > 0);
}

static void names_and_ids_both_find_a_partition(void **state)
{
        struct node *n = *state;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        assert_true(fetch_now(n, &(struct ask){.replica_id = 2, .version = 12, .epoch = 5}, NULL) > 0);
        assert_true(fetch_now(n, &(struct ask){.replica_id = 2, .version = 13, .epoch = 5}, NULL) > 0);
        assert_int_equal(fetch_now(n, &(struct ask){.version = 13, .partition = 4}, NULL),
                         -KAFKA_UNKNOWN_TOPIC_ID);
        assert_int_equal(fetch_now(n, &(struct ask){.version = 12, .partition = 4}, NULL),
                         -KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
}

static void other_epochs_are_fenced(void **state)
{
        struct node *n = *state;

        lead(n, 5);
        assert_int_equal(fetch_now(n, &(struct ask){.epoch = 4}, NULL), -KAFKA_FENCED_LEADER_EPOCH);
        assert_int_equal(fetch_now(n, &(struct ask){.epoch = 6}, NULL), -KAFKA_UNKNOWN_LEADER_EPOCH);
        assert_int_equal(fetch_now(n, &(struct ask){.epoch = 5}, NULL), 0);
        assert_int_equal(fetch_now(n, &(struct ask){.replica_id = 9, .epoch = 5}, NULL),
                         -KAFKA_UNKNOWN_LEADER_EPOCH);
}

static void a_waiting_follower_is_woken_by_an_append(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        fetch(n, &(struct ask){.replica_id = 2, .epoch = 5, .max_wait_ms = 60000, .min_bytes = 1}, &o);
        assert_false(outcome_arrived(&o));
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        assert_true(outcome_arrived(&o)); /* on the producer's thread, before its answer */
        assert_true(fetched(&o)->records.len > 0);
        outcome_done(&o);
}

static void a_waiting_consumer_is_woken_by_the_hw(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        fetch(n, &(struct ask){.max_wait_ms = 60000, .min_bytes = 1}, &o);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        assert_false(outcome_arrived(&o));
        follow(n, 2, 1, 5);
        follow(n, 3, 1, 5);
        assert_true(outcome_arrived(&o));
        assert_true(fetched(&o)->records.len > 0);
        outcome_done(&o);
}

static void traffic_on_other_partitions_does_not_count(void **state)
{
        /* R70 */
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        assert_int_equal(lai(n, &(struct lai){.partition = 1, .leader = 1, .epoch = 5}), KAFKA_NONE);
        outcome_init(&o);
        fetch(n, &(struct ask){.replica_id = 2, .epoch = 5, .max_wait_ms = 60000, .min_bytes = 1}, &o);
        for (int i = 0; i < 5; i++) {
                struct outcome p;

                outcome_init(&p);
                produce_to(n, TOPIC, 1, 1, 0, &(struct batch){.value_bytes = 1000}, &p);
                outcome_done(&p);
        }
        assert_false(outcome_arrived(&o));
        become_follower(n, 2, 6);
        outcome_await(&o);
        outcome_done(&o);
}

static void fewer_bytes_than_asked_for_wait_until_the_time_is_over(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        outcome_init(&o);
        fetch(n, &(struct ask){.replica_id = 2, .epoch = 5, .max_wait_ms = 60, .min_bytes = 100000}, &o);
        assert_false(outcome_arrived(&o));
        outcome_await(&o);
        assert_true(fetched(&o)->records.len > 0); /* what there is */
        outcome_done(&o);
}

static void the_first_batch_comes_even_if_it_is_too_large(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce_to(n, TOPIC, 0, 1, 0, &(struct batch){.value_bytes = 5000}, &o);
        outcome_done(&o);
        assert_true(
                fetch_now(n,
                          &(struct ask){
                                  .replica_id = 2, .epoch = 5, .max_bytes = 10, .partition_max_bytes = 10},
                          NULL) > 5000); /* KIP-74 */
}

static void losing_leadership_answers_fetches_that_wait(void **state)
{
        struct node *n = *state;
        struct outcome o, f;

        lead(n, 5);
        outcome_init(&o);
        outcome_init(&f);
        fetch(n, &(struct ask){.max_wait_ms = 60000, .min_bytes = 1}, &o);
        fetch(n, &(struct ask){.replica_id = 2, .epoch = 5, .max_wait_ms = 60000, .min_bytes = 1}, &f);
        lead(n, 6);
        assert_true(outcome_arrived(&f)); /* its epoch is old now */
        assert_int_equal(fetched(&f)->error_code, KAFKA_FENCED_LEADER_EPOCH);
        assert_false(outcome_arrived(&o));
        become_follower(n, 2, 7);
        assert_true(outcome_arrived(&o));
        assert_int_equal(fetched(&o)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(fetched(&o)->current_leader.leader_id, 2);
        outcome_done(&o);
        outcome_done(&f);
}

static void a_diverging_follower_is_told_where(void **state)
{
        struct node *n = *state;
        struct outcome o;
        struct replica_info i;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        become_follower(n, -1, 6);
        lead(n, 7);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE); /* offset 2 of epoch 7 */
        outcome_init(&o);
        /* 2 has four records of epoch 5; ours end at 2 */
        fetch(n,
              &(struct ask){.replica_id = 2, .offset = 4, .epoch = 7, .last_epoch = 5, .max_wait_ms = 60000},
              &o);
        assert_true(outcome_arrived(&o));
        assert_int_equal(fetched(&o)->error_code, KAFKA_NONE);
        assert_int_equal(fetched(&o)->diverging_epoch.epoch, 5);
        assert_int_equal(fetched(&o)->diverging_epoch.end_offset, 2);
        assert_int_equal(fetched(&o)->records.len, 0);
        outcome_done(&o);
        follow(n, 3, 3, 7);
        info(n, 0, &i);
        assert_int_equal(i.high_watermark, 0); /* KAFKA-13141: 2's offset was no progress */
}

static void sessions_are_not_offered(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        fetch(n, &(struct ask){.offset = 0}, &o);
        assert_int_equal(((const struct fetch_response *)o.response->body)->session_id, 0);
        outcome_done(&o);
}

/* --- every version --- */

struct encoding {
        const struct wire_message *message;
        int16_t version;
        bool done;
};

static void encode_response(struct replica_response *r, void *userdata)
{
        struct encoding *e = userdata;
        struct buf out;

        buf_init(&out, 0);
        assert_non_null(r);
        assert_true(r->failed);
        assert_int_equal(wire_encode_response(e->message, e->version, 1, r->body, &out), 0);
        buf_done(&out);
        (void)replica_response_free(r);
        e->done = true;
}

/* KIP-951: who leads instead is said where the version has room for it, and nowhere else is it in the way. */
static void a_refusal_can_be_encoded_at_every_version(void **state)
{
        struct node *n = *state;
        struct fetch_request_partition fp = {
                .partition = 0, .current_leader_epoch = -1, .last_fetched_epoch = -1};
        struct fetch_request_topic ft = {.topic = wire_str(TOPIC), .topic_id = topic_id_of(TOPIC)};
        struct produce_request_partition pp = {.records = {(const uint8_t *)"x", 1}};
        struct produce_request_topic pt = {.name = wire_str(TOPIC)};
        struct fetch_request fr;
        struct produce_request pr;

        lead(n, 5);
        become_follower(n, 2, 6);
        wire_init(&fetch_request_wire, &fr);
        wire_init(&produce_request_wire, &pr);
        ft.partitions.items = &fp;
        pt.partition_data.items = &pp;
        ft.partitions.n = pt.partition_data.n = fr.topics.n = pr.topic_data.n = 1;
        fr.topics.items = &ft;
        pr.topic_data.items = &pt;
        pr.acks = 1;
        for (int16_t v = 4; v <= 17; v++) {
                struct encoding e = {.message = &fetch_response_wire, .version = v};

                replica_manager_fetch(
                        n->rm, &fr,
                        &(struct replica_call){.version = v, .on_done = encode_response, .userdata = &e});
                assert_true(e.done);
        }
        for (int16_t v = 3; v <= 11; v++) {
                struct encoding e = {.message = &produce_response_wire, .version = v};

                replica_manager_produce(
                        n->rm, &pr,
                        &(struct replica_call){.version = v, .on_done = encode_response, .userdata = &e});
                assert_true(e.done);
        }
}

/* --- ListOffsets --- */

static void offsets_are_listed_by_kind_and_time(void **state)
{
        struct node *n = *state;
        struct outcome o;
        int16_t error;

        lead(n, 5);
        outcome_init(&o);
        produce_to(n, TOPIC, 0, 1, 0, &(struct batch){.n_records = 5}, &o); /* times 1000 … 1004 */
        outcome_done(&o);
        assert_int_equal(list_offset(n, -1, -1, &error), 0); /* a consumer: the HW */
        assert_int_equal(list_offset(n, -1, 2, &error), 5);  /* a follower: the end */
        follow(n, 2, 5, 5);
        follow(n, 3, 5, 5);
        assert_int_equal(list_offset(n, -1, -1, &error), 5);
        assert_int_equal(list_offset(n, -2, -1, &error), 0);
        assert_int_equal(list_offset(n, 1002, -1, &error), 2);
        assert_int_equal(list_offset(n, 2000, -1, &error), -1);
        assert_int_equal(list_offset(n, -3, -1, &error), 4); /* KIP-734 */
        assert_int_equal(error, KAFKA_NONE);
}

static void a_new_leader_does_not_list_an_end_that_goes_back(void **state)
{
        /* KIP-207 */
        struct node *n = *state;
        int16_t error;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        lead(n, 6);
        (void)list_offset(n, -1, -1, &error);
        assert_int_equal(error, KAFKA_OFFSET_NOT_AVAILABLE);
        follow(n, 2, 1, 6);
        follow(n, 3, 1, 6);
        assert_int_equal(list_offset(n, -1, -1, &error), 1);
        assert_int_equal(error, KAFKA_NONE);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(consumers_see_what_is_committed),
                TEST(names_and_ids_both_find_a_partition),
                TEST(other_epochs_are_fenced),
                TEST(a_waiting_follower_is_woken_by_an_append),
                TEST(a_waiting_consumer_is_woken_by_the_hw),
                TEST(traffic_on_other_partitions_does_not_count),
                TEST(fewer_bytes_than_asked_for_wait_until_the_time_is_over),
                TEST(the_first_batch_comes_even_if_it_is_too_large),
                TEST(losing_leadership_answers_fetches_that_wait),
                TEST(a_diverging_follower_is_told_where),
                TEST(sessions_are_not_offered),
                TEST(a_refusal_can_be_encoded_at_every_version),
                TEST(offsets_are_listed_by_kind_and_time),
                TEST(a_new_leader_does_not_list_an_end_that_goes_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
