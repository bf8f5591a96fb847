/* The tables of settings, and what may be set. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "settings.h"

static void assert_says(enum settings_scope scope, const char *name, const char *value, const char *sentence)
{
        char error[256] = "";

        assert_int_equal(settings_check(scope, name, value, error), -EINVAL);
        assert_string_equal(error, sentence);
}

static void the_tables_agree_with_themselves(void **state)
{
        char error[256];

        (void)state;
        for (int scope = 0; scope < N_SETTINGS_SCOPES; scope++)
                for (size_t i = 0; i < settings_count(scope); i++) {
                        const struct setting *s = settings_at(scope, i);

                        assert_int_equal(settings_check(scope, s->name, s->default_text, error), 0);
                        assert_ptr_equal(settings_find(scope, s->name), s);
                        if (i > 0)
                                assert_true(strcmp(settings_at(scope, i - 1)->name, s->name) < 0);
                        if (s->broker_key)
                                assert_non_null(broker_config_row(s->broker_key));
                }
}

static void a_default_comes_from_the_broker_s_file(void **state)
{
        static const char *const overrides[] = {"broker.id=1", "zookeeper.connect=h:1",
                                                "log.retention.ms=5000", NULL};
        struct broker_config c = {0};
        char text[64], *error = NULL;

        (void)state;
        assert_int_equal(broker_config_load(NULL, overrides, &c, &error), 0);
        for (size_t i = 0; i < settings_count(SETTINGS_TOPIC); i++) {
                const struct setting *s = settings_at(SETTINGS_TOPIC, i);
                bool ours = strcmp(s->name, "retention.ms") == 0;

                /* With nothing in the file both tables say the same. */
                assert_int_equal(settings_default(s, &c, text, sizeof(text)),
                                 ours ? SOURCE_FILE : SOURCE_DEFAULT);
                assert_string_equal(text, ours ? "5000" : s->default_text);
        }
        broker_config_done(&c);
}

static void what_is_wrong_is_named_with_its_remedy(void **state)
{
        (void)state;
        assert_says(SETTINGS_TOPIC, "retention.msec", "1",
                    "Unknown topic config name: retention.msec; did you mean retention.ms?");
        assert_says(SETTINGS_TOPIC, "quite.another", NULL, "Unknown topic config name: quite.another");
        assert_says(SETTINGS_TOPIC, "retention.ms", "-2",
                    "retention.ms: '-2' is not a whole number from -1 to 9223372036854775807");
        assert_says(SETTINGS_TOPIC, "cleanup.policy", "compact",
                    "cleanup.policy: 'compact' is not valid; it must be 'delete': this broker keeps logs by "
                    "deletion only");
        assert_says(SETTINGS_TOPIC, "preallocate", "maybe",
                    "preallocate: 'maybe' is not valid; it must be one of true, false");
        assert_says(SETTINGS_TOPIC, "min.cleanable.dirty.ratio", "1.5",
                    "min.cleanable.dirty.ratio: '1.5' is not valid; it must be a number from 0 to 1");
        assert_says(SETTINGS_BROKER, "broker.id", "2",
                    "broker.id cannot be changed while the broker runs: set it in the broker's configuration "
                    "file and restart it");
        assert_says(SETTINGS_BROKER, "leader.replication.throttled.rat", "2",
                    "Unknown dynamic broker config name: leader.replication.throttled.rat; did you mean "
                    "leader.replication.throttled.rate?");
}

static void values_arrive_where_they_belong(void **state)
{
        struct broker_dynamic d = BROKER_DYNAMIC_DEFAULTS;
        struct topic_config t = {0};
        char error[256];

        (void)state;
        assert_int_equal(topic_config_set(&t, "min.insync.replicas", "2", error), 0);
        assert_int_equal(topic_config_set(&t, "segment.bytes", "2048", error), 0);
        assert_int_equal(topic_config_set(&t, "leader.replication.throttled.replicas", "0:1", error), 0);
        assert_int_equal(topic_config_set(&t, "compression.type", "zstd", error), 0);
        assert_int_equal(t.min_insync_replicas, 2);
        assert_int_equal(t.log.segment_bytes, 2048);
        assert_string_equal(t.leader_throttled, "0:1");
        assert_null(t.follower_throttled);
        assert_int_equal(broker_dynamic_set(&d, "follower.replication.throttled.rate", "7", error), 0);
        assert_int_equal(d.follower_throttle, 7);
        assert_int_equal(d.leader_throttle, INT64_MAX);
        assert_int_equal(broker_dynamic_set(&d, "follower.replication.throttled.rate", "-1", error), -EINVAL);
        assert_int_equal(d.follower_throttle, 7);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_tables_agree_with_themselves),
                cmocka_unit_test(a_default_comes_from_the_broker_s_file),
                cmocka_unit_test(what_is_wrong_is_named_with_its_remedy),
                cmocka_unit_test(values_arrive_where_they_belong),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
