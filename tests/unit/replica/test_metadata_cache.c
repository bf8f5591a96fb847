/* metadata_cache: what UpdateMetadata says, and the answers to Metadata requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "replica/metadata_cache.h"
#include "wire/error.h"
#include "wire/metadata.h"
#include "wire/update_metadata.h"

static const struct uuid id_a = {.bytes = {1}}, id_b = {.bytes = {2}};

static int setup(void **state)
{
        struct metadata_cache *m;

        assert_int_equal(metadata_cache_new("cluster-1", "CLIENT", &m), 0);
        *state = m;
        return 0;
}

static int teardown(void **state)
{
        (void)metadata_cache_free(*state);
        return 0;
}

/* Brokers 1 … n, each with an inter-broker and a client listener. */
static void apply(struct metadata_cache *m, int32_t n_brokers, const char *topic, const struct uuid *id,
                  int32_t partition, int32_t leader, int32_t epoch)
{
        static int32_t replicas[] = {1, 2, 3}, isr[] = {1, 2};
        struct update_metadata_request_endpoint endpoints[3][2];
        struct update_metadata_request_live_broker brokers[3];
        struct update_metadata_request_partition_state p;
        struct update_metadata_request_topic_state t;
        struct update_metadata_request req;

        wire_init(&update_metadata_request_wire, &req);
        wire_init_struct(&update_metadata_request_topic_state_wire, &t);
        wire_init_struct(&update_metadata_request_partition_state_wire, &p);
        for (int32_t i = 0; i < n_brokers; i++) {
                wire_init_struct(&update_metadata_request_live_broker_wire, &brokers[i]);
                for (int32_t j = 0; j < 2; j++)
                        endpoints[i][j] = (struct update_metadata_request_endpoint){
                                .port = 9000 + 10 * i + j,
                                .host = wire_str(j ? "public" : "internal"),
                                .listener = wire_str(j ? "CLIENT" : "REPLICATION")};
                brokers[i].id = n_brokers - i; /* in no order */
                brokers[i].rack = i == 0 ? wire_str("east") : WIRE_NULL_STR;
                brokers[i].endpoints.items = endpoints[i];
                brokers[i].endpoints.n = 2;
        }
        p.partition_index = partition;
        p.leader = leader;
        p.leader_epoch = epoch;
        p.replicas.items = replicas;
        p.replicas.n = 3;
        p.isr.items = isr;
        p.isr.n = 2;
        t.topic_name = wire_str(topic);
        t.topic_id = *id;
        t.partition_states.items = &p;
        t.partition_states.n = 1;
        req.controller_id = 2;
        req.live_brokers.items = brokers;
        req.live_brokers.n = n_brokers;
        req.topic_states.items = &t;
        req.topic_states.n = topic ? 1 : 0;
        assert_int_equal(metadata_cache_apply(m, &req, 8), 0);
}

static void ask(struct metadata_cache *m, const struct metadata_request_topic *topics, int32_t n,
                int16_t version, struct arena *a, struct metadata_response *ret)
{
        struct metadata_request req;

        wire_init(&metadata_request_wire, &req);
        req.topics.items = (struct metadata_request_topic *)(uintptr_t)topics;
        req.topics.n = n;
        arena_init(a, 0);
        assert_int_equal(metadata_cache_fill_response(m, &req, version, a, ret), 0);
}

static void the_leaders_client_endpoint_is_found(void **state)
{
        struct metadata_leader l;

        apply(*state, 3, "a", &id_a, 0, 1, 7);
        assert_true(metadata_cache_leader(*state, wire_str("a"), 0, &l));
        assert_int_equal(l.leader_id, 1);
        assert_int_equal(l.leader_epoch, 7);
        assert_true(l.alive);
        assert_string_equal(l.broker.host, "public");
        assert_int_equal(l.broker.port, 9021);
        assert_false(metadata_cache_leader(*state, wire_str("a"), 1, &l));
        assert_false(metadata_cache_leader(*state, wire_str("b"), 0, &l));
}

static void leader_and_isr_is_known_before_update_metadata(void **state)
{
        struct metadata_leader l;

        (void)state;
        apply(*state, 3, "a", &id_a, 0, 1, 7); /* D9 */
        metadata_cache_lead(*state, wire_str("a"), 0, 2, 8);
        assert_true(metadata_cache_leader(*state, wire_str("a"), 0, &l));
        assert_int_equal(l.leader_id, 2);
        assert_int_equal(l.leader_epoch, 8);
        assert_int_equal(l.broker.port, 9011);
        metadata_cache_lead(*state, wire_str("a"), 0, 3, 8); /* not later: a repeated or late request */
        metadata_cache_lead(*state, wire_str("a"), 1, 3, 9);
        metadata_cache_lead(*state, wire_str("b"), 0, 3, 9);
        assert_true(metadata_cache_leader(*state, wire_str("a"), 0, &l));
        assert_int_equal(l.leader_id, 2);
        assert_false(metadata_cache_leader(*state, wire_str("a"), 1, &l));
        assert_false(metadata_cache_leader(*state, wire_str("b"), 0, &l));
        apply(*state, 3, "a", &id_a, 0, 2, 8);
        assert_true(metadata_cache_leader(*state, wire_str("a"), 0, &l));
        assert_int_equal(l.leader_id, 2);
}

static void ids_and_names_lead_to_each_other(void **state)
{
        char name[TOPIC_NAME_SIZE];
        struct uuid id;

        apply(*state, 1, "a", &id_a, 0, 1, 7);
        assert_true(metadata_cache_topic_name(*state, &id_a, name));
        assert_string_equal(name, "a");
        assert_true(metadata_cache_topic_id(*state, wire_str("a"), &id));
        assert_true(uuid_equal(&id, &id_a));
        assert_false(metadata_cache_topic_name(*state, &id_b, name));
}

static void a_topic_made_anew_has_its_new_id_only(void **state)
{
        char name[TOPIC_NAME_SIZE];

        apply(*state, 1, "a", &id_a, 0, 1, 7);
        apply(*state, 1, "a", &id_b, 0, 1, 0);
        assert_false(metadata_cache_topic_name(*state, &id_a, name));
        assert_true(metadata_cache_topic_name(*state, &id_b, name));
}

static void leader_minus_two_removes_a_partition_and_the_topic_with_the_last(void **state)
{
        apply(*state, 1, "a", &id_a, 0, 1, 7);
        apply(*state, 1, "a", &id_a, 4, 1, 7); /* a gap in between is fine */
        assert_int_equal(metadata_cache_partition_count(*state, wire_str("a")), 2);
        apply(*state, 1, "a", &id_a, 0, -2, 8);
        assert_int_equal(metadata_cache_partition_count(*state, wire_str("a")), 1);
        apply(*state, 1, "a", &id_a, 4, -2, 8);
        assert_int_equal(metadata_cache_partition_count(*state, wire_str("a")), -1);
        apply(*state, 1, "a", &id_a, 4, -2, 8); /* twice is fine */
}

static void the_whole_cluster_is_answered_when_nothing_is_named(void **state)
{
        struct metadata_response r;
        struct arena a;

        apply(*state, 3, "a", &id_a, 0, 1, 7);
        apply(*state, 3, "b", &id_b, 0, 2, 3);
        ask(*state, NULL, -1, 12, &a, &r);
        assert_int_equal(r.topics.n, 2);
        assert_int_equal(r.brokers.n, 3);
        assert_int_equal(r.brokers.items[0].node_id, 1);
        assert_int_equal(r.controller_id, 2);
        assert_true(wire_str_equal(r.cluster_id, "cluster-1"));
        assert_true(wire_str_equal(r.brokers.items[2].rack, "east"));
        assert_int_equal(r.brokers.items[0].rack.len, -1);
        arena_done(&a);
        ask(*state, NULL, 0, 12, &a, &r); /* none */
        assert_int_equal(r.topics.n, 0);
        arena_done(&a);
        ask(*state, NULL, 0, 0, &a, &r); /* at v0 empty means all */
        assert_int_equal(r.topics.n, 2);
        arena_done(&a);
}

static void partitions_carry_replicas_and_isr(void **state)
{
        struct metadata_request_topic q = {.name = wire_str("a")};
        struct metadata_response r;
        struct arena a;

        apply(*state, 3, "a", &id_a, 0, 1, 7);
        ask(*state, &q, 1, 12, &a, &r);
        assert_int_equal(r.topics.items[0].error_code, KAFKA_NONE);
        assert_int_equal(r.topics.items[0].partitions.n, 1);
        assert_int_equal(r.topics.items[0].partitions.items[0].leader_id, 1);
        assert_int_equal(r.topics.items[0].partitions.items[0].leader_epoch, 7);
        assert_int_equal(r.topics.items[0].partitions.items[0].replica_nodes.n, 3);
        assert_int_equal(r.topics.items[0].partitions.items[0].isr_nodes.n, 2);
        assert_int_equal(r.topics.items[0].partitions.items[0].isr_nodes.items[1], 2);
        arena_done(&a);
}

static void a_dead_leader_is_none(void **state)
{
        struct metadata_request_topic q = {.name = wire_str("a")};
        struct metadata_response r;
        struct arena a;

        apply(*state, 3, "a", &id_a, 0, 3, 7);
        apply(*state, 2, "b", &id_b, 0, 1, 7); /* 3 is gone */
        ask(*state, &q, 1, 12, &a, &r);
        assert_int_equal(r.topics.items[0].partitions.items[0].error_code, KAFKA_LEADER_NOT_AVAILABLE);
        assert_int_equal(r.topics.items[0].partitions.items[0].leader_id, -1);
        arena_done(&a);
}

static void what_is_unknown_is_said_to_be(void **state)
{
        struct metadata_request_topic q[] = {{.name = wire_str("nope")},
                                             {.name = wire_str("no/pe")},
                                             {.name = WIRE_NULL_STR, .topic_id = id_b},
                                             {.name = WIRE_NULL_STR, .topic_id = id_a}};
        struct metadata_response r;
        struct arena a;

        apply(*state, 3, "a", &id_a, 0, 1, 7);
        ask(*state, q, 4, 12, &a, &r);
        assert_int_equal(r.topics.items[0].error_code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        assert_true(wire_str_equal(r.topics.items[0].name, "nope"));
        assert_int_equal(r.topics.items[1].error_code, KAFKA_INVALID_TOPIC_EXCEPTION);
        assert_int_equal(r.topics.items[2].error_code, KAFKA_UNKNOWN_TOPIC_ID);
        assert_int_equal(r.topics.items[2].name.len, -1);
        assert_int_equal(r.topics.items[3].error_code, KAFKA_NONE);
        assert_true(wire_str_equal(r.topics.items[3].name, "a"));
        arena_done(&a);
}

static void counts_and_brokers_are_current(void **state)
{
        struct metadata_counts c;
        struct metadata_broker b[2];

        apply(*state, 3, "a", &id_a, 0, -1, 7);
        metadata_cache_get_counts(*state, &c);
        assert_int_equal(c.brokers, 3);
        assert_int_equal(c.partitions, 1);
        assert_int_equal(c.leaderless, 1);
        assert_int_equal(c.under_replicated, 1);
        assert_int_equal(metadata_cache_brokers(*state, b, 2), 3);
        assert_int_equal(b[1].id, 2);
        assert_true(metadata_cache_controller(*state, &b[0]));
        apply(*state, 1, NULL, &id_a, 0, 0, 0);
        assert_false(metadata_cache_controller(*state, &b[0])); /* 2 is not alive */
}

static void names_follow_kafkas_rule(void **state)
{
        char longest[TOPIC_NAME_SIZE + 1];

        (void)state;
        memset(longest, 'a', sizeof(longest));
        assert_true(topic_name_valid((struct wire_str){longest, TOPIC_NAME_SIZE - 1}));
        assert_false(topic_name_valid((struct wire_str){longest, TOPIC_NAME_SIZE}));
        assert_true(topic_name_valid(wire_str("My.topic_1-x")));
        assert_false(topic_name_valid(wire_str("")));
        assert_false(topic_name_valid(wire_str(".")));
        assert_false(topic_name_valid(wire_str("..")));
        assert_false(topic_name_valid(wire_str("a b")));
        assert_false(topic_name_valid((struct wire_str){"a\0b", 3}));
        assert_false(topic_name_valid(WIRE_NULL_STR));
}

struct reading {
        struct metadata_cache *m;
        _Atomic bool stop;
};

static void *read_for_ever(void *userdata)
{
        struct reading *x = userdata;
        struct metadata_leader l;

        while (!atomic_load(&x->stop)) {
                struct metadata_response r;
                struct arena a;

                if (metadata_cache_leader(x->m, wire_str("a"), 0, &l))
                        assert_int_equal(l.leader_id, l.leader_epoch % 3 + 1); /* both of one update */
                ask(x->m, NULL, -1, 12, &a, &r);
                arena_done(&a);
        }
        return NULL;
}

static void readers_see_whole_updates(void **state)
{
        struct reading x = {.m = *state};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, read_for_ever, &x), 0);
        for (int32_t i = 0; i < 2000; i++)
                apply(*state, 3, "a", &id_a, 0, i % 3 + 1, i);
        atomic_store(&x.stop, true);
        pthread_join(thread, NULL);
}

static void partition_numbers_cost_no_memory_and_come_in_any_order(void **state)
{
        static const int32_t numbers[] = {7, INT32_MAX, 0, 3, 100000, 1, INT32_MAX - 1};
        static const int32_t ascending[] = {0, 1, 3, 7, 100000, INT32_MAX - 1, INT32_MAX};
        const struct metadata_request_topic q = {.name = wire_str("a")};
        struct metadata_response res;
        struct metadata_leader l;
        struct arena a;

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
                apply(*state, 3, "a", &id_a, numbers[i], 1, 10 + (int32_t)i);
        apply(*state, 3, "a", &id_a, 3, 2, 99);
        assert_int_equal(metadata_cache_partition_count(*state, wire_str("a")), ARRAY_SIZE(numbers));
        assert_true(metadata_cache_leader(*state, wire_str("a"), INT32_MAX, &l));
        assert_int_equal(l.leader_epoch, 11);
        assert_false(metadata_cache_leader(*state, wire_str("a"), 2, &l));
        assert_false(metadata_cache_leader(*state, wire_str("a"), -1, &l));
        ask(*state, &q, 1, 9, &a, &res);
        assert_int_equal(res.topics.items[0].partitions.n, ARRAY_SIZE(ascending));
        for (size_t i = 0; i < ARRAY_SIZE(ascending); i++)
                assert_int_equal(res.topics.items[0].partitions.items[i].partition_index, ascending[i]);
        assert_int_equal(res.topics.items[0].partitions.items[2].leader_epoch, 99);
        arena_done(&a);

        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) /* -2: deleted */
                apply(*state, 3, "a", &id_a, numbers[i], -2, 100);
        assert_int_equal(metadata_cache_partition_count(*state, wire_str("a")), -1);
}

static void a_topic_named_again_is_answered_once(void **state)
{
        const struct metadata_request_topic q[] = {
                {.name = wire_str("a")},
                {.name = wire_str("none")},
                {.name = wire_str("a")},
                {.name = WIRE_NULL_STR, .topic_id = id_a},
                {.name = WIRE_NULL_STR, .topic_id = id_a},
                {.name = wire_str("none")},
        };
        struct metadata_response res;
        struct arena a;

        apply(*state, 3, "a", &id_a, 0, 1, 7);
        ask(*state, q, ARRAY_SIZE(q), 12, &a, &res);
        assert_int_equal(res.topics.n, 3); /* by name, the unknown one, by id */
        arena_done(&a);
}

static void an_id_is_an_invalid_question_before_version_12(void **state)
{
        const struct metadata_request_topic q = {.name = WIRE_NULL_STR, .topic_id = id_b};
        struct metadata_response res;
        cleanup_with(buf_donep) struct buf out = {0};
        struct arena a;

        apply(*state, 3, "a", &id_a, 0, 1, 7);
        for (int16_t version = 10; version <= 12; version++) {
                ask(*state, &q, 1, version, &a, &res);
                assert_int_equal(res.topics.items[0].error_code,
                                 version < 12 ? KAFKA_INVALID_REQUEST : KAFKA_UNKNOWN_TOPIC_ID);
                assert_int_equal(wire_encode(&metadata_response_wire, version, &res, &out), 0);
                arena_done(&a);
        }
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(the_leaders_client_endpoint_is_found),
                TEST(leader_and_isr_is_known_before_update_metadata),
                TEST(ids_and_names_lead_to_each_other),
                TEST(a_topic_made_anew_has_its_new_id_only),
                TEST(leader_minus_two_removes_a_partition_and_the_topic_with_the_last),
                TEST(the_whole_cluster_is_answered_when_nothing_is_named),
                TEST(partitions_carry_replicas_and_isr),
                TEST(a_dead_leader_is_none),
                TEST(what_is_unknown_is_said_to_be),
                TEST(counts_and_brokers_are_current),
                TEST(names_follow_kafkas_rule),
                TEST(readers_see_whole_updates),
                TEST(partition_numbers_cost_no_memory_and_come_in_any_order),
                TEST(a_topic_named_again_is_answered_once),
                TEST(an_id_is_an_invalid_question_before_version_12),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
