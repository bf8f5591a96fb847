/* What one request, or many, may cost: limits of Produce, Fetch and ListOffsets over real logs. Broker 1 of
 * {1, 2, 3}. */
#include <poll.h>
#include <string.h>

#include "replica_testing.h"

#include "base/clock.h"
#include "wire/list_offsets.h"
#include "wire/record_batch.h"

struct reader { /* a fetch by somebody who may leave, with memory for so much of an answer */
        _Atomic bool gone;
        _Atomic int answered, empty_handed;
        _Atomic int64_t bytes;
        _Atomic int error;
        size_t room;
};

static int setup(void **state)
{
        struct node *n = calloc(1, sizeof(*n));

        assert_non_null(n);
        node_init(n, 1);
        node_start(n);
        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5}), KAFKA_NONE);
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

static void on_done(struct replica_response *r, void *userdata)
{
        const struct fetch_response *body = r ? r->body : NULL;
        struct reader *x = userdata;

        if (body) {
                atomic_store(&x->bytes, body->responses.items[0].partitions.items[0].records.len);
                atomic_store(&x->error, body->responses.items[0].partitions.items[0].error_code);
        } else {
                atomic_store(&x->empty_handed, 1);
        }
        (void)replica_response_free(r);
        atomic_store(&x->answered, 1);
}

static bool is_abandoned(void *userdata)
{
        return atomic_load(&((struct reader *)userdata)->gone);
}

static size_t response_room(void *userdata)
{
        return ((struct reader *)userdata)->room;
}

static void read_as(struct node *n, int32_t replica_id, int32_t max_wait_ms, struct reader *x)
{
        const struct replica_call call = {.version = 12,
                                          .on_done = on_done,
                                          .is_abandoned = is_abandoned,
                                          .response_room = response_room,
                                          .userdata = x};
        struct fetch_request_partition p;
        struct fetch_request_topic t;
        struct fetch_request req;

        wire_init(&fetch_request_wire, &req);
        wire_init_struct(&fetch_request_topic_wire, &t);
        wire_init_struct(&fetch_request_partition_wire, &p);
        p.partition_max_bytes = 1 << 20;
        t.topic = wire_str(TOPIC);
        t.partitions.items = &p;
        t.partitions.n = 1;
        req.replica_id = replica_id;
        req.max_wait_ms = max_wait_ms;
        req.min_bytes = 1;
        req.max_bytes = 1 << 20;
        req.topics.items = &t;
        req.topics.n = 1;
        replica_manager_fetch(n->rm, &req, &call);
}

static void commit_one(struct node *n)
{
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        follow(n, 2, 1, 5);
        follow(n, 3, 1, 5);
}

static void a_wait_ends_when_no_more_could_come(void **state)
{
        struct node *n = *state;

        commit_one(n);
        assert_true(fetch_now(n, &(struct ask){.max_wait_ms = 60000, .min_bytes = INT32_MAX, .max_bytes = 10},
                              NULL) > 0);
        assert_true(fetch_now(n,
                              &(struct ask){.max_wait_ms = 60000,
                                            .min_bytes = INT32_MAX,
                                            .max_bytes = INT32_MAX,
                                            .partition_max_bytes = 10},
                              NULL) > 0);
}

static void who_has_gone_is_waited_for_no_longer(void **state)
{
        struct reader x = {.room = SIZE_MAX / 4}, y = x;
        int64_t until_ms = clock_mono_ms() + 10000;
        struct node *n = *state;
        struct replica_counts counts;

        read_as(n, -1, INT32_MAX, &x);
        read_as(n, -1, INT32_MAX, &y);
        replica_manager_get_counts(n->rm, &counts);
        assert_int_equal(counts.fetch_waiting, 2);
        atomic_store(&x.gone, true);
        while (!atomic_load(&x.answered)) {
                assert_true(clock_mono_ms() < until_ms);
                (void)poll(NULL, 0, 1);
        }
        assert_true(atomic_load(&x.empty_handed));
        assert_false(atomic_load(&y.answered));
        replica_manager_get_counts(n->rm, &counts);
        assert_int_equal(counts.fetch_waiting, 1);
        node_stop(n); /* answers y, which goes with this frame */
        assert_true(atomic_load(&y.answered));
}

static void an_answer_is_no_larger_than_there_is_memory_for(void **state)
{
        struct reader none = {.room = 0}, some = {.room = 1}, follower = {.room = 0};
        struct node *n = *state;

        commit_one(n);
        commit_one(n);
        read_as(n, -1, 0, &none);
        assert_true(atomic_load(&none.answered));
        assert_int_equal(atomic_load(&none.error), KAFKA_NONE);
        assert_int_equal(atomic_load(&none.bytes), 0);
        read_as(n, -1, 0, &some); /* a batch comes whole or not at all */
        assert_true(atomic_load(&some.bytes) > 60);
        read_as(n, 2, 0, &follower); /* replication goes on */
        assert_true(atomic_load(&follower.bytes) > atomic_load(&some.bytes));
}

/* --- Produce --- */

static void take_error(struct replica_response *r, void *userdata)
{
        const struct produce_response *body = r->body;

        *(int16_t *)userdata = body->responses.items[0].partition_responses.items[0].error_code;
        (void)replica_response_free(r);
}

static int16_t produce_batch(struct node *n, int16_t version, int16_t attributes)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        struct record_spec record = {.key = WIRE_NULL_BYTES,
                                     .value = {.data = (const uint8_t *)"v", .len = 1}};
        cleanup_with(buf_donep) struct buf data = {0};
        struct produce_request_partition p = {.index = 0};
        struct produce_request_topic t = {.name = wire_str(TOPIC)};
        struct produce_request req;
        int16_t error = -2;

        buf_init(&data, 0);
        spec.attributes = attributes;
        assert_int_equal(record_batch_build(&spec, &record, 1, &data), 0);
        wire_init(&produce_request_wire, &req);
        p.records = (struct wire_bytes){.data = data.data, .len = (int32_t)data.len};
        t.partition_data.items = &p;
        t.partition_data.n = 1;
        req.acks = 1;
        req.topic_data.items = &t;
        req.topic_data.n = 1;
        replica_manager_produce(
                n->rm, &req,
                &(struct replica_call){.version = version, .on_done = take_error, .userdata = &error});
        return error;
}

static void zstd_is_for_clients_that_know_it(void **state)
{
        struct node *n = *state;

        assert_int_equal(produce_batch(n, 6, RECORD_ZSTD), KAFKA_UNSUPPORTED_COMPRESSION_TYPE);
        assert_int_equal(produce_batch(n, 7, RECORD_ZSTD), KAFKA_NONE);
        assert_int_equal(produce_batch(n, 6, RECORD_LZ4), KAFKA_NONE);
}

static void nothing_is_appended_for_a_transaction_that_nobody_would_end(void **state)
{
        struct node *n = *state;

        assert_int_equal(produce_batch(n, 9, RECORD_ATTR_TRANSACTIONAL), KAFKA_INVALID_TXN_STATE);
        assert_int_equal(fetch_now(n, &(struct ask){.replica_id = 2, .epoch = 5}, NULL), 0);
}

/* --- ListOffsets --- */

static void list(struct node *n, int16_t version, const int64_t *timestamps, int32_t n_timestamps,
                 struct arena *a, struct list_offsets_response *ret)
{
        struct list_offsets_request_partition p[4];
        struct list_offsets_request_topic t;
        struct list_offsets_request req;

        wire_init(&list_offsets_request_wire, &req);
        wire_init_struct(&list_offsets_request_topic_wire, &t);
        for (int32_t i = 0; i < n_timestamps; i++) {
                wire_init_struct(&list_offsets_request_partition_wire, &p[i]);
                p[i].timestamp = timestamps[i];
        }
        t.name = wire_str(TOPIC);
        t.partitions.items = p;
        t.partitions.n = n_timestamps;
        req.replica_id = -1;
        req.topics.items = &t;
        req.topics.n = 1;
        arena_init(a, 0);
        assert_int_equal(replica_manager_list_offsets(n->rm, &req, version, a, ret), 0);
}

static void a_question_of_a_later_version_is_unsupported(void **state)
{
        static const struct {
                int64_t timestamp;
                int16_t version, error;
        } cases[] = {
                {-3, 6, KAFKA_UNSUPPORTED_VERSION},
                {-3, 7, KAFKA_NONE},
                {-4, 7, KAFKA_UNSUPPORTED_VERSION},
                {-4, 8, KAFKA_NONE},
                {-5, 8, KAFKA_UNSUPPORTED_VERSION},
                {-5, 9, KAFKA_NONE},
                {-6, 9, KAFKA_UNSUPPORTED_VERSION},
                {INT64_MIN, 9, KAFKA_UNSUPPORTED_VERSION},
                {-2, 1, KAFKA_NONE},
                {INT64_MAX, 1, KAFKA_NONE},
        };
        struct node *n = *state;

        commit_one(n);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct list_offsets_response res;
                struct arena a;

                list(n, cases[i].version, &cases[i].timestamp, 1, &a, &res);
                assert_int_equal(res.topics.items[0].partitions.items[0].error_code, cases[i].error);
                arena_done(&a);
        }
}

static void a_partition_named_again_is_an_invalid_request_each_time(void **state)
{
        struct list_offsets_response res;
        struct node *n = *state;
        struct arena a;

        commit_one(n);
        list(n, 7, (const int64_t[]){-1, -2, -3}, 3, &a, &res);
        for (int i = 0; i < 3; i++) {
                assert_int_equal(res.topics.items[0].partitions.items[i].error_code, KAFKA_INVALID_REQUEST);
                assert_int_equal(res.topics.items[0].partitions.items[i].offset, -1);
        }
        arena_done(&a);
}

static void the_largest_timestamp_is_found_whatever_the_order(void **state)
{
        struct list_offsets_response res;
        struct node *n = *state;
        struct outcome o;
        struct arena a;

        for (int i = 0; i < 3; i++) { /* 1000; 1000 and 1001 and 1002; 1000 and 1001 */
                outcome_init(&o);
                produce_to(n, TOPIC, 0, 1, 1000, &(struct batch){.n_records = (int[]){1, 3, 2}[i]}, &o);
                outcome_done(&o);
        }
        follow(n, 2, 6, 5);
        follow(n, 3, 6, 5);
        list(n, 7, (const int64_t[]){-3}, 1, &a, &res);
        assert_int_equal(res.topics.items[0].partitions.items[0].timestamp, 1002);
        assert_int_equal(res.topics.items[0].partitions.items[0].offset, 3);
        assert_int_equal(res.topics.items[0].partitions.items[0].leader_epoch, 5);
        arena_done(&a);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_wait_ends_when_no_more_could_come),
                TEST(who_has_gone_is_waited_for_no_longer),
                TEST(an_answer_is_no_larger_than_there_is_memory_for),
                TEST(zstd_is_for_clients_that_know_it),
                TEST(nothing_is_appended_for_a_transaction_that_nobody_would_end),
                TEST(a_question_of_a_later_version_is_unsupported),
                TEST(a_partition_named_again_is_an_invalid_request_each_time),
                TEST(the_largest_timestamp_is_found_whatever_the_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
