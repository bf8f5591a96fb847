/* Bytes that another implementation wrote are understood, and written again as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden.h"

#include "wire/alter_configs.h"
#include "wire/api_versions.h"
#include "wire/cursor.h"
#include "wire/describe_configs.h"
#include "wire/fetch.h"
#include "wire/find_coordinator.h"
#include "wire/incremental_alter_configs.h"
#include "wire/init_producer_id.h"
#include "wire/list_offsets.h"
#include "wire/metadata.h"
#include "wire/produce.h"

#define CORRELATION_ID 0x01020304

static const struct uuid topic_id = {
        {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}};

struct fixture {
        struct arena arena;
        struct buf out;
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        arena_init(&f->arena, 0);
        buf_init(&f->out, 0);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        arena_done(&f->arena);
        buf_done(&f->out);
        free(f);
        return 0;
}

static void assert_str(struct wire_str s, const char *expected)
{
        assert_true(wire_str_equal(s, expected));
}

/* Decode header and body of the frame, encode them again, compare; the body is left in @ret. */
static void read_request(struct fixture *f, const struct wire_message *m, int16_t version,
                         const char *client_id, const uint8_t *frame, size_t len, void *ret)
{
        struct wire_request_header h;
        size_t n;

        assert_int_equal(load_be32(frame), len - 4);
        assert_int_equal(wire_decode_request_header(frame + 4, len - 4, &h, &n), 0);
        assert_int_equal(h.api_key, wire_api_key(m));
        assert_int_equal(h.api_version, version);
        assert_int_equal(h.correlation_id, CORRELATION_ID);
        assert_str(h.client_id, client_id);
        assert_int_equal(wire_decode(m, version, frame + 4 + n, len - 4 - n, &f->arena, ret), 0);

        assert_int_equal(wire_encode_request(m, version, CORRELATION_ID, client_id, ret, &f->out), 0);
        assert_int_equal(f->out.len, len);
        assert_memory_equal(f->out.data, frame, len);
}

static void read_response(struct fixture *f, const struct wire_message *m, int16_t version,
                          const uint8_t *frame, size_t len, void *ret)
{
        int32_t correlation_id;

        assert_int_equal(load_be32(frame), len - 4);
        assert_int_equal(
                wire_decode_response(m, version, frame + 4, len - 4, &f->arena, &correlation_id, ret), 0);
        assert_int_equal(correlation_id, CORRELATION_ID);

        assert_int_equal(wire_encode_response(m, version, CORRELATION_ID, ret, &f->out), 0);
        assert_int_equal(f->out.len, len);
        assert_memory_equal(f->out.data, frame, len);
}

#define READ_REQUEST(message, version, client_id, ret)                                                       \
        read_request(*state, &message##_wire, version, client_id, message##_v##version,                      \
                     sizeof(message##_v##version), ret)
#define READ_RESPONSE(message, version, ret)                                                                 \
        read_response(*state, &message##_wire, version, message##_v##version, sizeof(message##_v##version),  \
                      ret)

static void api_versions_requests(void **state)
{
        struct api_versions_request r;

        READ_REQUEST(api_versions_request, 3, "rdkafka", &r);
        assert_str(r.client_software_name, "librdkafka");
        assert_str(r.client_software_version, "2.0.2");
}

/* KIP-511: what a client gets that asks in a version we do not know. */
static void the_api_versions_answer_to_an_unknown_version(void **state)
{
        struct api_versions_response r;

        READ_RESPONSE(api_versions_response, 0, &r);
        assert_int_equal(r.error_code, 35);
        assert_int_equal(r.api_keys.n, 1);
        assert_int_equal(r.api_keys.items[0].api_key, 18);
        assert_int_equal(r.api_keys.items[0].max_version, 4);
}

static void api_versions_responses_with_every_tag_and_header_v0(void **state)
{
        struct api_versions_response r;

        READ_RESPONSE(api_versions_response, 3, &r);
        assert_int_equal(r.api_keys.n, 2);
        assert_int_equal(r.throttle_time_ms, 7);
        assert_str(r.supported_features.items[0].name, "metadata.version");
        assert_int_equal(r.supported_features.items[0].max_version, 19);
        assert_int_equal(r.finalized_features_epoch, 5);
        assert_int_equal(r.finalized_features.items[0].max_version_level, 14);
        assert_true(r.zk_migration_ready);
}

static void metadata_requests_for_all_topics(void **state)
{
        struct metadata_request r;

        READ_REQUEST(metadata_request, 1, "c", &r);
        assert_int_equal(r.topics.n, -1);
        assert_true(r.allow_auto_topic_creation); /* the default of a field that v1 lacks */
}

static void metadata_requests_by_topic_id(void **state)
{
        struct metadata_request r;

        READ_REQUEST(metadata_request, 12, "c", &r);
        assert_int_equal(r.topics.n, 1);
        assert_true(uuid_equal(&r.topics.items[0].topic_id, &topic_id));
        assert_int_equal(r.topics.items[0].name.len, -1);
        assert_false(r.allow_auto_topic_creation);
        assert_true(r.include_topic_authorized_operations);
}

static void metadata_responses(void **state)
{
        const struct metadata_response_partition *p;
        struct metadata_response r;

        READ_RESPONSE(metadata_response, 12, &r);
        assert_int_equal(r.brokers.n, 2);
        assert_str(r.brokers.items[0].host, "b1.example");
        assert_int_equal(r.brokers.items[0].rack.len, -1);
        assert_str(r.brokers.items[1].rack, "r2");
        assert_str(r.cluster_id, "cl");
        assert_int_equal(r.controller_id, 2);
        assert_str(r.topics.items[0].name, "orders");
        p = &r.topics.items[0].partitions.items[0];
        assert_int_equal(p->partition_index, 3);
        assert_int_equal(p->leader_epoch, 9);
        assert_int_equal(p->replica_nodes.n, 2);
        assert_int_equal(p->isr_nodes.items[0], 1);
        assert_int_equal(p->offline_replicas.items[0], 2);
}

static void assert_produce_request(const struct produce_request *r)
{
        const struct produce_request_partition *p = &r->topic_data.items[0].partition_data.items[0];

        assert_int_equal(r->transactional_id.len, -1);
        assert_int_equal(r->acks, -1);
        assert_int_equal(r->timeout_ms, 30000);
        assert_str(r->topic_data.items[0].name, "orders");
        assert_int_equal(p->index, 3);
        assert_int_equal(p->records.len, 7);
        assert_memory_equal(p->records.data, "RECORDS", 7);
}

static void produce_requests_of_the_old_kind(void **state)
{
        struct produce_request r;

        READ_REQUEST(produce_request, 7, "c", &r);
        assert_produce_request(&r);
}

static void produce_requests_of_the_flexible_kind(void **state)
{
        struct produce_request r;

        READ_REQUEST(produce_request, 9, "c", &r);
        assert_produce_request(&r);
}

/* D9: the new leader and where it listens. */
static void produce_responses_that_name_the_new_leader(void **state)
{
        const struct produce_response_partition *p;
        struct produce_response r;

        READ_RESPONSE(produce_response, 10, &r);
        p = &r.responses.items[0].partition_responses.items[0];
        assert_int_equal(p->error_code, 6);
        assert_int_equal(p->base_offset, -1);
        assert_int_equal(p->current_leader.leader_id, 2);
        assert_int_equal(p->current_leader.leader_epoch, 10);
        assert_int_equal(r.node_endpoints.items[0].node_id, 2);
        assert_str(r.node_endpoints.items[0].host, "b2.example");
        assert_int_equal(r.node_endpoints.items[0].port, 9093);
}

static void fetch_requests_by_name(void **state)
{
        struct fetch_request r;

        READ_REQUEST(fetch_request, 11, "c", &r);
        assert_int_equal(r.replica_id, -1);
        assert_int_equal(r.max_bytes, 52428800);
        assert_int_equal(r.isolation_level, 1);
        assert_str(r.topics.items[0].topic, "orders");
        assert_int_equal(r.topics.items[0].partitions.items[0].fetch_offset, 42);
        assert_int_equal(r.topics.items[0].partitions.items[0].last_fetched_epoch, -1);
}

static void fetch_requests_of_a_follower_by_id(void **state)
{
        struct fetch_request r;

        READ_REQUEST(fetch_request, 17, "c", &r);
        assert_int_equal(r.replica_id, -1);
        assert_int_equal(r.replica_state.replica_id, 2);
        assert_int_equal(r.replica_state.replica_epoch, 77);
        assert_true(uuid_equal(&r.topics.items[0].topic_id, &topic_id));
        assert_int_equal(r.topics.items[0].partitions.items[0].last_fetched_epoch, 8);
}

static void fetch_responses_with_a_diverging_epoch(void **state)
{
        const struct fetch_response_partition *p;
        struct fetch_response r;

        READ_RESPONSE(fetch_response, 16, &r);
        p = &r.responses.items[0].partitions.items[0];
        assert_int_equal(p->high_watermark, 50);
        assert_int_equal(p->diverging_epoch.epoch, 7);
        assert_int_equal(p->diverging_epoch.end_offset, 33);
        assert_int_equal(p->current_leader.leader_id, 2);
        assert_int_equal(p->snapshot_id.epoch, -1);
        assert_int_equal(p->aborted_transactions.n, -1);
        assert_int_equal(p->records.len, 0);
        assert_str(r.node_endpoints.items[0].rack, "r");
}

static void init_producer_id_requests(void **state)
{
        struct init_producer_id_request r;

        READ_REQUEST(init_producer_id_request, 4, "c", &r);
        assert_int_equal(r.transactional_id.len, -1);
        assert_int_equal(r.transaction_timeout_ms, 60000);
        assert_int_equal(r.producer_id, -1);
}

static void find_coordinator_requests_with_several_keys(void **state)
{
        struct find_coordinator_request r;

        READ_REQUEST(find_coordinator_request, 4, "c", &r);
        assert_int_equal(r.coordinator_keys.n, 2);
        assert_str(r.coordinator_keys.items[1], "g2");
}

static void list_offsets_requests(void **state)
{
        struct list_offsets_request r;

        READ_REQUEST(list_offsets_request, 7, "c", &r);
        assert_int_equal(r.topics.items[0].partitions.items[0].timestamp, -1);
        assert_int_equal(r.topics.items[0].partitions.items[0].current_leader_epoch, 9);
}

/* librdkafka up to 2.15.0 leaves three bytes behind "all topics" (clients.md, finding 5). */
static void the_stray_bytes_of_librdkafka_are_ignored(void **state)
{
        static const uint8_t body[] = {0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00};
        struct fixture *f = *state;
        struct metadata_request r;

        assert_int_equal(wire_decode(&metadata_request_wire, 12, body, sizeof(body), &f->arena, &r), 0);
        assert_int_equal(r.topics.n, -1);
}

static void describe_configs_requests_with_and_without_names(void **state)
{
        struct describe_configs_request r;

        READ_REQUEST(describe_configs_request, 4, "c", &r);
        assert_int_equal(r.resources.n, 2);
        assert_str(r.resources.items[0].configuration_keys.items[0], "retention.ms");
        assert_int_equal(r.resources.items[1].resource_type, 4);
        assert_int_equal(r.resources.items[1].configuration_keys.n, -1);
        assert_true(r.include_synonyms);
        assert_false(r.include_documentation);
}

static void describe_configs_responses_with_synonyms(void **state)
{
        struct describe_configs_response r;
        const struct describe_configs_response_config *c;

        READ_RESPONSE(describe_configs_response, 4, &r);
        assert_int_equal(r.throttle_time_ms, 7);
        c = &r.results.items[0].configs.items[0];
        assert_str(c->value, "5000");
        assert_int_equal(c->config_source, 1);
        assert_int_equal(c->config_type, 5);
        assert_int_equal(c->documentation.len, -1);
        assert_str(c->synonyms.items[0].name, "log.retention.ms");
        assert_int_equal(c->synonyms.items[0].source, 5);
}

static void alter_configs_requests(void **state)
{
        struct alter_configs_request r;

        READ_REQUEST(alter_configs_request, 2, "c", &r);
        assert_str(r.resources.items[0].resource_name, "orders");
        assert_str(r.resources.items[0].configs.items[0].value, "5000");
        assert_false(r.validate_only);
}

static void incremental_alter_configs_requests(void **state)
{
        struct incremental_alter_configs_request r;

        READ_REQUEST(incremental_alter_configs_request, 1, "c", &r);
        assert_int_equal(r.resources.n, 2);
        assert_int_equal(r.resources.items[0].configs.items[1].config_operation, 1);
        assert_int_equal(r.resources.items[0].configs.items[1].value.len, -1);
        assert_int_equal(r.resources.items[1].resource_name.len, 0);
        assert_true(r.validate_only);
}

static void incremental_alter_configs_responses(void **state)
{
        struct incremental_alter_configs_response r;

        READ_RESPONSE(incremental_alter_configs_response, 1, &r);
        assert_int_equal(r.responses.items[0].error_code, 40);
        assert_str(r.responses.items[0].error_message, "bad");
        assert_str(r.responses.items[0].resource_name, "orders");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(api_versions_requests),
                TEST(the_api_versions_answer_to_an_unknown_version),
                TEST(api_versions_responses_with_every_tag_and_header_v0),
                TEST(metadata_requests_for_all_topics),
                TEST(metadata_requests_by_topic_id),
                TEST(metadata_responses),
                TEST(produce_requests_of_the_old_kind),
                TEST(produce_requests_of_the_flexible_kind),
                TEST(produce_responses_that_name_the_new_leader),
                TEST(fetch_requests_by_name),
                TEST(fetch_requests_of_a_follower_by_id),
                TEST(fetch_responses_with_a_diverging_epoch),
                TEST(init_producer_id_requests),
                TEST(find_coordinator_requests_with_several_keys),
                TEST(list_offsets_requests),
                TEST(describe_configs_requests_with_and_without_names),
                TEST(describe_configs_responses_with_synonyms),
                TEST(alter_configs_requests),
                TEST(incremental_alter_configs_requests),
                TEST(incremental_alter_configs_responses),
                TEST(the_stray_bytes_of_librdkafka_are_ignored),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
