/* Bodies of the admin API: what is whole is taken, what is odd is refused as a whole (L1). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "api_json.h"

static struct blocked_partition blocked[BLOCKED_MAX];

static int parse(const char *body, struct drain_answer *ret)
{
        return api_parse_drain(body, strlen(body), 1, blocked, ret);
}

static void a_whole_answer_is_taken(void **state)
{
        struct drain_answer a;

        (void)state;
        assert_int_equal(parse("{\"broker\":1,\"epoch\":4294967297,\"drain_id\":\"d\",\"state\":\"draining\","
                               "\"leaders_remaining\":3,\"moved\":4,\"rf1_led\":2,\"blocked_total\":2,"
                               "\"controller\":2,\"controller_epoch\":7,\"blocked\":["
                               "{\"topic\":\"t\",\"partition\":5,\"reason\":\"queued\",\"leads\":true},"
                               "{\"topic\":\"u\",\"partition\":6,\"reason\":\"queued\",\"leads\":false}]}",
                               &a),
                         0);
        assert_int_equal(a.state, CONTROLLER_DRAINING);
        assert_int_equal(a.epoch, INT64_C(4294967297));
        assert_int_equal(a.remaining, 3);
        assert_int_equal(a.moved, 4);
        assert_int_equal(a.generation, 7);
        assert_int_equal(a.n_blocked, 1); /* the other one is only followed */
        assert_string_equal(a.blocked[0].topic, "t");
        assert_false(a.zookeeper_down);
}

static void L1_a_missing_or_odd_count_is_never_zero(void **state)
{
        static const char *const bodies[] = {
                "",
                "null",
                "[]",
                "{}",
                "{\"broker\":1,\"state\":\"drained\"}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":null}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":\"0\"}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":0.0}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":-1}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":4294967296}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":0,\"leaders_remaining\":5}",
                "{\"broker\":2,\"state\":\"drained\",\"leaders_remaining\":0}",
                "{\"broker\":1,\"state\":\"finished\",\"leaders_remaining\":0}",
                "{\"broker\":1,\"leaders_remaining\":0}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":0,\"blocked\":{}}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":0,\"blocked\":[7]}",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":0",
                "{\"broker\":1,\"state\":\"drained\",\"leaders_remaining\":0} x",
        };
        struct drain_answer a;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++)
                assert_int_equal(parse(bodies[i], &a), -EBADMSG);
}

static void truncation_at_every_byte_is_refused(void **state)
{
        static const char whole[] =
                "{\"broker\":1,\"epoch\":3,\"state\":\"drained\",\"leaders_remaining\":0}";
        struct drain_answer a;

        (void)state;
        assert_int_equal(parse(whole, &a), 0);
        for (size_t n = 0; n < sizeof(whole) - 1; n++)
                assert_int_equal(api_parse_drain(whole, n, 1, blocked, &a), -EBADMSG);
}

static void no_drain_needs_no_counts(void **state)
{
        struct drain_answer a;

        (void)state;
        assert_int_equal(parse("{\"broker\":1,\"state\":\"none\"}", &a), 0);
        assert_int_equal(a.state, CONTROLLER_NONE);
        assert_int_equal(a.epoch, DRAIN_UNKNOWN);
}

static void either_word_for_a_lost_zookeeper_is_understood(void **state)
{
        struct drain_answer a;

        (void)state;
        assert_int_equal(parse("{\"broker\":1,\"state\":\"draining\",\"leaders_remaining\":0,"
                               "\"error\":\"zookeeper_unavailable\"}",
                               &a),
                         0);
        assert_true(a.zookeeper_down);
        assert_int_equal(parse("{\"broker\":1,\"state\":\"draining\",\"leaders_remaining\":0,"
                               "\"zookeeper_available\":false}",
                               &a),
                         0);
        assert_true(a.zookeeper_down);
}

static void a_long_list_is_kept_to_its_ceiling(void **state)
{
        json_t *o = json_pack("{s:i, s:s, s:i, s:[]}", "broker", 1, "state", "draining", "leaders_remaining",
                              500, "blocked");
        struct drain_answer a;
        char *text;

        (void)state;
        for (int i = 0; i < 500; i++)
                assert_int_equal(json_array_append_new(json_object_get(o, "blocked"),
                                                       json_pack("{s:s, s:i, s:s}", "topic", "t", "partition",
                                                                 i, "reason", "queued")),
                                 0);
        text = json_dumps(o, 0);
        assert_int_equal(parse(text, &a), 0);
        assert_int_equal(a.n_blocked, BLOCKED_MAX);
        free(text);
        json_decref(o);
}

static void a_broker_tells_its_own_view(void **state)
{
        static const char body[] =
                "{\"broker\":3,\"epoch\":9,\"state\":\"running\",\"leaders\":12,\"leaders_rf1\":1,"
                "\"in_sync\":true,\"controller\":2,\"pid\":77,\"zookeeper\":\"disconnected\"}";
        struct broker_answer a;

        (void)state;
        assert_int_equal(api_parse_broker(body, strlen(body), &a), 0);
        assert_int_equal(a.broker, 3);
        assert_int_equal(a.leaders, 12);
        assert_true(a.in_sync);
        assert_true(a.zookeeper_down);
        assert_int_equal(api_parse_broker("{\"broker\":3}", 12, &a), -EBADMSG);
}

static void admin_listeners_of_the_cluster_become_base_urls(void **state)
{
        static const char body[] = "{\"controller\":2,\"brokers\":[{\"id\":1,\"admin\":\"10.0.0.1:9644\"},"
                                   "{\"id\":2,\"admin\":\"\"},{\"id\":3,\"admin\":\"[::1]:9644\"}]}";
        struct cluster_answer a = {0};

        (void)state;
        assert_int_equal(api_parse_cluster(body, strlen(body), &a), 0);
        assert_int_equal(a.n_brokers, 3);
        assert_string_equal(a.brokers[0].admin, "http://10.0.0.1:9644");
        assert_string_equal(a.brokers[1].admin, "");
        assert_string_equal(a.brokers[2].admin, "http://[::1]:9644");
}

static void what_is_sent_is_within_what_the_api_takes(void **state)
{
        char reason[1000];
        struct drain_ask ask = {.drain_id = "d", .reason = reason, .requested_by = "a\xff", .epoch = -1};
        json_t *o;
        char *text;

        (void)state;
        memset(reason, 'x', sizeof(reason));
        memcpy(reason + 253, "\xe2\x82\xac", 3); /* a character across the limit */
        reason[999] = '\0';
        text = api_format_ask(&ask);
        assert_non_null(text);
        o = json_loads(text, 0, NULL);
        assert_non_null(o);
        assert_int_equal(json_string_length(json_object_get(o, "reason")), 253);
        assert_string_equal(json_string_value(json_object_get(o, "requested_by")), "a?");
        assert_int_equal(json_integer_value(json_object_get(o, "deadline_ms")), 1);
        json_decref(o);
        free(text);
}

static void endpoints_are_normalised_or_refused(void **state)
{
        static const struct {
                const char *in, *out;
        } rows[] = {
                {"127.0.0.1:80", "http://127.0.0.1:80"},
                {"http://h:1/", "http://h:1"},
                {"HTTPS://h:1", "https://h:1"},
                {"[::1]:5", "http://[::1]:5"},
                {"h", NULL},
                {"http://h", NULL},
                {"http://u@h:1", NULL},
                {"http://h:1/path", NULL},
                {"ftp://h:1", NULL},
                {"", NULL},
        };
        char out[320];

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int r = endpoint_normalise(rows[i].in, out, sizeof(out));

                assert_int_equal(r == 0, rows[i].out != NULL);
                if (rows[i].out)
                        assert_string_equal(out, rows[i].out);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_whole_answer_is_taken),
                cmocka_unit_test(L1_a_missing_or_odd_count_is_never_zero),
                cmocka_unit_test(truncation_at_every_byte_is_refused),
                cmocka_unit_test(no_drain_needs_no_counts),
                cmocka_unit_test(either_word_for_a_lost_zookeeper_is_understood),
                cmocka_unit_test(a_long_list_is_kept_to_its_ceiling),
                cmocka_unit_test(a_broker_tells_its_own_view),
                cmocka_unit_test(admin_listeners_of_the_cluster_become_base_urls),
                cmocka_unit_test(what_is_sent_is_within_what_the_api_takes),
                cmocka_unit_test(endpoints_are_normalised_or_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
