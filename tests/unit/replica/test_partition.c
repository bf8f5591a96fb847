/* One partition, driven directly: what the replica manager's own order of doing things would hide. */
#include "replica_testing.h"

#include <errno.h>
#include <string.h>

#include "replica/partition.h"
#include "wire/record_batch.h"

struct fixture {
        struct node node; /* for its directory and log manager */
        struct partition_env env;
        struct partition *p;
};

static const int32_t three[] = {1, 2, 3};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));
        struct partition_log *log;

        assert_non_null(f);
        node_init(&f->node, 1);
        node_start(&f->node);
        f->env = (struct partition_env){.broker_id = 1, .lag_max_ms = 1000};
        assert_int_equal(log_manager_get(f->node.logs, "direct", 0, true, &log), 0);
        assert_int_equal(partition_new(&f->env, "direct", 0, log, 0, &f->p), 0);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        (void)partition_unref(f->p);
        node_done(&f->node);
        free(f);
        return 0;
}

static int16_t assign(struct partition *p, int32_t leader, int32_t epoch, int32_t partition_epoch,
                      int32_t n_isr, enum partition_outcome *ret)
{
        const struct partition_assignment a = {.leader = leader,
                                               .leader_epoch = epoch,
                                               .partition_epoch = partition_epoch,
                                               .replicas = three,
                                               .n_replicas = 3,
                                               .isr = three,
                                               .n_isr = n_isr};
        struct partition_effects e;
        enum replica_role old;

        return partition_apply(p, &a, 0, ret, &old, &e);
}

static void apply(struct partition *p, int32_t leader, int32_t epoch)
{
        enum partition_outcome outcome;

        assert_int_equal(assign(p, leader, epoch, epoch, 3, &outcome), KAFKA_NONE);
}

static struct partition_append append(struct partition *p)
{
        cleanup_with(buf_donep) struct buf data;
        struct partition_append a;
        struct partition_effects e;

        buf_init(&data, 0);
        make_batch(&data, &(struct batch){0});
        partition_produce(p, data.data, data.len, -1, &a, &e);
        return a;
}

/* @n records of idempotent producer 7 from @sequence on; the error. */
static int16_t append_sequence(struct partition *p, int32_t sequence, int32_t n)
{
        cleanup_with(buf_donep) struct buf data = {0};
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        struct record_spec records[8] = {0};
        struct partition_append a;
        struct partition_effects e;

        spec.producer_id = 7;
        spec.producer_epoch = 0;
        spec.base_sequence = sequence;
        for (int32_t i = 0; i < n; i++)
                records[i] = (struct record_spec){
                        .timestamp_ms = 1000, .key = WIRE_NULL_BYTES, .value = WIRE_NULL_BYTES};
        assert_int_equal(record_batch_build(&spec, records, (size_t)n, &data), 0);
        partition_produce(p, data.data, data.len, -1, &a, &e);
        return a.error;
}

static void a_gap_behind_a_refused_batch_has_its_reason(void **state)
{
        struct fixture *f = *state;
        struct partition_effects e;
        enum partition_outcome outcome;

        apply(f->p, 1, 5);
        assert_int_equal(append_sequence(f->p, 0, 3), KAFKA_NONE);
        partition_set_min_isr(f->p, 2, 0, &e);
        assert_int_equal(assign(f->p, 1, 6, 6, 1, &outcome), KAFKA_NONE);
        assert_int_equal(append_sequence(f->p, 3, 5), KAFKA_NOT_ENOUGH_REPLICAS);
        assert_int_equal(assign(f->p, 1, 7, 7, 2, &outcome), KAFKA_NONE); /* between the two requests */

        assert_int_equal(append_sequence(f->p, 8, 2), KAFKA_NOT_ENOUGH_REPLICAS);
        assert_int_equal(append_sequence(f->p, 3, 5), KAFKA_NONE);
        assert_int_equal(append_sequence(f->p, 8, 2), KAFKA_NONE);
        f->p->refusal_ms -= 2001; /* much later a gap is a gap */
        assert_int_equal(append_sequence(f->p, 20, 2), KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER);
}

/* The leader before refused what comes first: it is on its way. */
static void a_gap_at_a_new_leader_is_asked_to_come_again(void **state)
{
        struct fixture *f = *state;

        apply(f->p, 1, 5);
        assert_int_equal(append_sequence(f->p, 0, 3), KAFKA_NONE);
        apply(f->p, 2, 6);
        apply(f->p, 1, 7);
        assert_int_equal(append_sequence(f->p, 5, 2), KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(append_sequence(f->p, 3, 2), KAFKA_NONE);
        assert_int_equal(append_sequence(f->p, 5, 2), KAFKA_NONE);
}

static void a_new_producer_does_not_begin_behind_its_refused_first_batch(void **state)
{
        struct fixture *f = *state;

        apply(f->p, 1, 6);
        assert_int_equal(append_sequence(f->p, 3, 2), KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(append_sequence(f->p, 0, 3), KAFKA_NONE);
        assert_int_equal(append_sequence(f->p, 3, 2), KAFKA_NONE);
}

static void follower_at(struct partition *p, int32_t id, int64_t offset, int32_t epoch)
{
        const struct partition_fetch f = {.replica_id = id,
                                          .replica_epoch = -1,
                                          .current_leader_epoch = epoch,
                                          .last_fetched_epoch = -1,
                                          .offset = offset};
        struct partition_fetch_state s;
        struct partition_effects e;

        partition_fetch_begin(p, &f, true, 0, &s, &e);
        assert_int_equal(s.error, KAFKA_NONE);
}

static void an_append_of_an_earlier_leadership_is_lost_even_if_the_hw_passes_it(void **state)
{
        /* R73 */
        struct fixture *f = *state;
        struct partition_append a;
        int16_t error;

        apply(f->p, 1, 5);
        a = append(f->p);
        assert_false(partition_ack_state(f->p, a.term, a.required_offset, &error));
        apply(f->p, 2, 6); /* here the log may be cut … */
        apply(f->p, 1, 7);
        follower_at(f->p, 2, 1, 7);
        follower_at(f->p, 3, 1, 7);
        assert_int_equal(partition_high_watermark(f->p), 1); /* … and something else stand at that offset */
        assert_true(partition_ack_state(f->p, a.term, a.required_offset, &error));
        assert_int_equal(error, KAFKA_NOT_LEADER_OR_FOLLOWER);
}

static void an_append_survives_a_new_epoch_of_the_same_leadership(void **state)
{
        struct fixture *f = *state;
        struct partition_append a;
        int16_t error;

        apply(f->p, 1, 5);
        a = append(f->p);
        apply(f->p, 1, 6);
        assert_false(partition_ack_state(f->p, a.term, a.required_offset, &error));
        follower_at(f->p, 2, 1, 6);
        follower_at(f->p, 3, 1, 6);
        assert_true(partition_ack_state(f->p, a.term, a.required_offset, &error));
        assert_int_equal(error, KAFKA_NONE);
}

static void committed_but_below_min_isr_is_said_so(void **state)
{
        /* Code 20: the data stays. */
        struct fixture *f = *state;
        struct partition_append a;
        struct partition_effects e;
        enum partition_outcome outcome;
        int16_t error;

        partition_set_min_isr(f->p, 2, 0, &e);
        assert_int_equal(assign(f->p, 1, 5, 5, 2, &outcome), KAFKA_NONE);
        a = append(f->p);
        follower_at(f->p, 2, 1, 5);
        assert_int_equal(partition_high_watermark(f->p), 1);
        partition_set_min_isr(f->p, 3, 0, &e);
        assert_true(partition_ack_state(f->p, a.term, a.required_offset, &error));
        assert_int_equal(error, KAFKA_NOT_ENOUGH_REPLICAS_AFTER_APPEND);
}

static void another_topic_of_the_same_name_is_refused(void **state)
{
        struct fixture *f = *state;
        struct partition_assignment a = {.topic_id = {.bytes = {1}},
                                         .leader = 1,
                                         .leader_epoch = 5,
                                         .replicas = three,
                                         .n_replicas = 3,
                                         .isr = three,
                                         .n_isr = 3};
        struct partition_effects e;
        enum partition_outcome outcome;
        enum replica_role old;

        assert_int_equal(partition_apply(f->p, &a, 0, &outcome, &old, &e), KAFKA_NONE);
        a.topic_id.bytes[0] = 2;
        a.leader_epoch = 6;
        assert_int_equal(partition_apply(f->p, &a, 0, &outcome, &old, &e), KAFKA_INCONSISTENT_TOPIC_ID);
        assert_int_equal(outcome, PARTITION_REFUSED);
}

static void orders_are_told_apart_by_both_epochs(void **state)
{
        struct fixture *f = *state;
        enum partition_outcome o;

        assert_int_equal(assign(f->p, 1, 5, 10, 3, &o), KAFKA_NONE);
        assert_int_equal(o, PARTITION_LEADS);
        assert_int_equal(assign(f->p, 1, 5, 10, 3, &o), KAFKA_NONE);
        assert_int_equal(o, PARTITION_UNCHANGED);
        assert_int_equal(assign(f->p, 1, 5, 11, 2, &o), KAFKA_NONE);
        assert_int_equal(o, PARTITION_UPDATED);
        assert_int_equal(assign(f->p, 1, 5, 10, 3, &o), KAFKA_STALE_CONTROLLER_EPOCH);
        assert_int_equal(assign(f->p, 2, 5, 12, 3, &o), KAFKA_STALE_CONTROLLER_EPOCH);
        assert_int_equal(assign(f->p, 2, 4, 12, 3, &o), KAFKA_STALE_CONTROLLER_EPOCH);
        assert_int_equal(assign(f->p, 1, 4, 12, 3, &o), KAFKA_STALE_CONTROLLER_EPOCH);
        assert_int_equal(assign(f->p, 2, 6, 12, 3, &o), KAFKA_NONE);
        assert_int_equal(o, PARTITION_FOLLOWS);
        assert_int_equal(partition_stop(f->p, 6), KAFKA_NONE);
        assert_int_equal(assign(f->p, 2, 5, 12, 3, &o), KAFKA_STALE_CONTROLLER_EPOCH);
        assert_int_equal(assign(f->p, 2, 6, 12, 3, &o), KAFKA_NONE); /* undone: it may follow again */
        assert_int_equal(o, PARTITION_FOLLOWS);
}

static void an_answer_of_another_epoch_changes_nothing(void **state)
{
        /* KAFKA-7786 */
        struct fixture *f = *state;
        cleanup_with(buf_donep) struct buf data;
        struct partition_answer a = {.answer = {.diverging_epoch = -1}, .leader_hw = 1};
        struct partition_position pos;
        enum follower_action action;

        buf_init(&data, 0);
        make_batch(&data, &(struct batch){.epoch = 5});
        a.records = (struct wire_bytes){.data = data.data, .len = (int32_t)data.len};
        apply(f->p, 2, 5);
        apply(f->p, 3, 6);
        assert_int_equal(partition_follow_answer(f->p, 5, &a, &action), -ESTALE);
        assert_false(partition_follow_position(f->p, 5, &pos));
        assert_true(partition_follow_position(f->p, 6, &pos));
        assert_int_equal(pos.offset, 0);
        assert_int_equal(partition_follow_answer(f->p, 6, &a, &action), 0);
        assert_true(partition_follow_position(f->p, 6, &pos));
        assert_int_equal(pos.offset, 1);
        assert_int_equal(pos.last_epoch, 5);
}

static void the_leaders_hw_is_not_taken_from_a_divergence(void **state)
{
        /* KAFKA-14704 */
        struct fixture *f = *state;
        struct partition_answer a = {
                .answer = {.diverging_epoch = 5, .diverging_end_offset = 1, .fetch_offset = 2},
                .leader_hw = 2};
        struct partition_position pos;
        enum follower_action action;

        apply(f->p, 1, 5);
        (void)append(f->p);
        (void)append(f->p);
        apply(f->p, 2, 6);
        assert_int_equal(partition_follow_answer(f->p, 6, &a, &action), 0);
        assert_int_equal(action, FOLLOWER_TRUNCATE);
        assert_int_equal(partition_high_watermark(f->p), 0);
        assert_true(partition_follow_position(f->p, 6, &pos));
        assert_int_equal(pos.offset, 1);
}

static void the_hw_goes_down_with_the_log(void **state)
{
        struct fixture *f = *state;
        struct partition_answer a = {
                .answer = {.diverging_epoch = 5, .diverging_end_offset = 1, .fetch_offset = 2}};
        enum follower_action action;

        apply(f->p, 1, 5);
        (void)append(f->p);
        (void)append(f->p);
        follower_at(f->p, 2, 2, 5);
        follower_at(f->p, 3, 2, 5);
        assert_int_equal(partition_high_watermark(f->p), 2);
        apply(f->p, 2, 6); /* elected uncleanly: it lacks what was committed */
        assert_int_equal(partition_follow_answer(f->p, 6, &a, &action), 0);
        assert_int_equal(partition_high_watermark(f->p), 1); /* I7: never beyond the log */
}

static bool lease_of(void *userdata)
{
        return *(const bool *)userdata;
}

static void commits_go_on_when_the_lease_is_back(void **state)
{
        /* F2: a lone leader, whose HW nothing but its own appends moves. */
        struct fixture *f = *state;
        struct partition_effects e;
        enum partition_outcome outcome;
        bool lease = true;

        f->env.lease_valid = lease_of;
        f->env.userdata = &lease;
        assert_int_equal(assign(f->p, 1, 5, 5, 1, &outcome), KAFKA_NONE);
        lease = false;
        partition_tick(f->p, 0, &e);
        assert_int_equal(append(f->p).error, KAFKA_NOT_LEADER_OR_FOLLOWER);
        lease = true;
        assert_int_equal(append(f->p).error, KAFKA_NONE);
        assert_int_equal(partition_high_watermark(f->p), 1);
        f->env.lease_valid = NULL;
}

static void the_new_epoch_is_recorded_before_any_data(void **state)
{
        /* KAFKA-7415 */
        struct fixture *f = *state;

        apply(f->p, 1, 5);
        assert_int_equal(partition_log_latest_epoch(f->p->log), 5);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(an_append_of_an_earlier_leadership_is_lost_even_if_the_hw_passes_it),
                TEST(an_append_survives_a_new_epoch_of_the_same_leadership),
                TEST(committed_but_below_min_isr_is_said_so),
                TEST(another_topic_of_the_same_name_is_refused),
                TEST(orders_are_told_apart_by_both_epochs),
                TEST(an_answer_of_another_epoch_changes_nothing),
                TEST(the_leaders_hw_is_not_taken_from_a_divergence),
                TEST(the_hw_goes_down_with_the_log),
                TEST(commits_go_on_when_the_lease_is_back),
                TEST(the_new_epoch_is_recorded_before_any_data),
                TEST(a_gap_behind_a_refused_batch_has_its_reason),
                TEST(a_gap_at_a_new_leader_is_asked_to_come_again),
                TEST(a_new_producer_does_not_begin_behind_its_refused_first_batch),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
