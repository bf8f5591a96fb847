/* What the interpreter takes for granted about the tables, and the API table itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fill.h"

#include "base/clock.h"
#include "wire/error.h"
#include "wire/fetch.h"
#include "wire/metadata.h"

#define MAX_NESTING 8

static void check_field(const struct wire_message *m, const struct wire_field *f)
{
        bool has_child = f->type == WIRE_STRUCT || f->type == WIRE_STRUCT_PTR;

        assert_true(f->first <= f->last);
        assert_true(f->first <= m->max_version && f->last >= m->min_version); /* a row that is never used */
        assert_int_equal(has_child, f->child != NULL);
        if (f->default_null)
                assert_true(f->nullable && f->nullable - 1 <= MAX(f->first, m->min_version));
        if (f->tagged)
                assert_true(f->first >= m->first_flexible && f->last == LAST);
        if (f->strict_bool)
                assert_int_equal(f->type, WIRE_BOOL);
}

static void check_struct(const struct wire_message *m, const struct wire_struct *s, int nesting)
{
        size_t end = 0; /* of the member before */
        int tag = 0;

        assert_true(nesting < MAX_NESTING); /* so there is no cycle */
        for (size_t i = 0; i < s->n_fields; i++) {
                const struct wire_field *f = &s->fields[i];

                check_field(m, f);
                assert_true(f->offset >= end); /* rows stand in the order of the members, none twice */
                end = f->offset + (f->array ? sizeof(struct wire_any_array) : wire_value_size(f));
                if (f->tagged) {
                        assert_true(f->tagged > tag);
                        tag = f->tagged;
                }
                if (f->child)
                        check_struct(m, f->child, nesting + 1);
        }
        assert_true(end <= s->size);
        /* no member that has no row, up to padding */
        assert_true(s->size - end < 8);
}

static void every_table_keeps_its_promises(void **state)
{
        const struct wire_message *m;

        (void)state;
        for (size_t cursor = 0; (m = next_message(&cursor));) {
                assert_true(m->min_version >= 0 && m->min_version <= m->max_version);
                check_struct(m, &m->body, 0);
        }
}

static void requests_and_responses_of_an_api_agree(void **state)
{
        const struct wire_api *apis;
        size_t n;

        (void)state;
        apis = wire_api_all(&n);
        for (size_t i = 0; i < n; i++) {
                const struct wire_api *a = &apis[i];

                assert_ptr_equal(wire_api_find(a->key), a);
                assert_true(i == 0 || a[-1].key < a->key);
                assert_int_equal(wire_api_key(a->request), a->key);
                assert_int_equal(wire_api_key(a->response), a->key);
                assert_int_equal(wire_min_version(a->request), a->serve_min);
                assert_int_equal(wire_max_version(a->request), a->serve_max);
                assert_int_equal(wire_min_version(a->response), a->serve_min);
                assert_int_equal(wire_max_version(a->response), a->serve_max);
                assert_int_equal(a->request->first_flexible, a->response->first_flexible);
                assert_true(a->advertise_max == -1 || a->advertise_max == a->serve_max);
                assert_memory_equal(wire_name(a->request), a->name, strlen(a->name));
        }
        assert_null(wire_api_find(8));
        assert_null(wire_api_find(-1));
        assert_null(wire_api_find(INT16_MAX));
}

/* clients.md, finding 1: librdkafka 2.0.2 turns compression and idempotence off unless these begin at 0. */
static void ranges_that_old_librdkafka_looks_at_begin_at_zero(void **state)
{
        static const int16_t keys[] = {0, 3, 10, 18, 22};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                assert_int_equal(wire_api_find(keys[i])->advertise_min, 0);
        assert_int_equal(wire_api_find(1)->advertise_min, 4);
        assert_int_equal(wire_api_find(0)->serve_min, 3);
}

static void what_a_controller_sends_to_brokers_is_not_advertised(void **state)
{
        static const int16_t keys[] = {4, 5, 6, 7};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                assert_int_equal(wire_api_find(keys[i])->advertise_min, -1);
                assert_int_equal(wire_api_find(keys[i])->advertise_max, -1);
        }
}

/* K3: an Apache Kafka broker gives up on a controller whose ApiVersions does not show them. */
static void what_a_broker_of_apache_kafka_asks_its_controller_is_advertised(void **state)
{
        (void)state;
        assert_int_equal(wire_api_find(56)->advertise_min, 0);
        assert_int_equal(wire_api_find(56)->advertise_max, 3);
        assert_int_equal(wire_api_find(67)->advertise_min, 0);
        assert_int_equal(wire_api_find(67)->advertise_max, 0);
}

static void errors_have_kafkas_names(void **state)
{
        (void)state;
        assert_string_equal(kafka_error_name(0), "NONE");
        assert_string_equal(kafka_error_name(-1), "UNKNOWN_SERVER_ERROR");
        assert_string_equal(kafka_error_name(6), "NOT_LEADER_OR_FOLLOWER");
        assert_string_equal(kafka_error_name(56), "KAFKA_STORAGE_ERROR");
        assert_string_equal(kafka_error_name(107), "INELIGIBLE_REPLICA");
        assert_string_equal(kafka_error_name(4), "UNKNOWN");
        assert_string_equal(kafka_error_name(INT16_MAX), "UNKNOWN");
        assert_string_equal(kafka_error_name(INT16_MIN), "UNKNOWN");
}

/* One topic of @n partitions, each with a tagged field, in an array that stands behind another tagged field.
 */
static int64_t time_fetch_response(int32_t n, struct buf *out)
{
        struct fetch_response_node_endpoint endpoint = {
                .node_id = 1, .host = wire_str("h"), .rack = WIRE_NULL_STR};
        cleanup_with(arena_donep) struct arena a = {};
        struct fetch_response decoded, r;
        struct fetch_response_topic *t;
        int64_t start = clock_mono_us();

        wire_init(&fetch_response_wire, &r);
        t = WIRE_NEW(&a, fetch_response_topic, 1);
        t->partitions.items = WIRE_NEW(&a, fetch_response_partition, (size_t)n);
        t->partitions.n = n;
        for (int32_t i = 0; i < n; i++)
                t->partitions.items[i].current_leader.leader_id = i;
        r.responses.items = t;
        r.responses.n = 1;
        r.node_endpoints.items = &endpoint;
        r.node_endpoints.n = 1;
        assert_int_equal(wire_encode(&fetch_response_wire, 17, &r, out), 0);
        assert_int_equal(wire_decode(&fetch_response_wire, 17, out->data, out->len, &a, &decoded), 0);
        assert_int_equal(decoded.responses.items[0].partitions.items[n - 1].current_leader.leader_id, n - 1);
        return clock_mono_us() - start;
}

/* Something quadratic would take hundreds of times as long for sixteen times as much. */
static void large_messages_take_time_in_proportion(void **state)
{
        cleanup_with(buf_donep) struct buf small = {}, large = {};
        int64_t small_us, large_us;

        (void)state;
        small_us = time_fetch_response(5000, &small);
        large_us = time_fetch_response(80000, &large);
        printf("5,000 partitions: %lld us, 80,000: %lld us\n", (long long)small_us, (long long)large_us);
        assert_in_range(large.len / small.len, 15, 17);
        assert_true(large_us < 100 * MAX(small_us, (int64_t)1000));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_table_keeps_its_promises),
                cmocka_unit_test(requests_and_responses_of_an_api_agree),
                cmocka_unit_test(ranges_that_old_librdkafka_looks_at_begin_at_zero),
                cmocka_unit_test(what_a_controller_sends_to_brokers_is_not_advertised),
                cmocka_unit_test(what_a_broker_of_apache_kafka_asks_its_controller_is_advertised),
                cmocka_unit_test(errors_have_kafkas_names),
                cmocka_unit_test(large_messages_take_time_in_proportion),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
