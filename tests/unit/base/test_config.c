#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/fs.h"

struct target {
        int32_t broker_id;
        int64_t segment_bytes, retention_ms, timeout_ms;
        bool enable;
        int policy;
        char *log_dirs, *rack;
};

static const char *const policies[] = {"shutdown", "reconnect", NULL};

#define AT(member) offsetof(struct target, member)
static const struct config_row rows[] = {
        {"broker.id", CONFIG_INT32, AT(broker_id), NULL, 0, INT32_MAX, .help = "Number of this broker"},
        {"log.segment.bytes", CONFIG_INT64, AT(segment_bytes), "1073741824", 14, INT32_MAX,
         .help = "Size of a segment"},
        {"log.retention.ms", CONFIG_DURATION_MS, AT(retention_ms), "7d", -1, INT64_MAX, .reloadable = true,
         .help = "R"},
        {"request.timeout.ms", CONFIG_DURATION_MS, AT(timeout_ms), "30s", 1, 3600000, .help = "T"},
        {"controlled.shutdown.enable", CONFIG_BOOL, AT(enable), "true", .help = "E"},
        {"session.policy", CONFIG_ENUM, AT(policy), "shutdown", .choices = policies, .help = "P"},
        {"log.dirs", CONFIG_STRING, AT(log_dirs), "/var/lib/stepdown", .help = "D"},
        {"broker.rack", CONFIG_STRING, AT(rack), "", .help = "K"},
};

struct loaded {
        struct target target;
        char *error;
        int result;
};

static void loaded_done(struct loaded *l)
{
        config_done(rows, ARRAY_SIZE(rows), &l->target);
        free(l->error);
}

/* Loads @yaml (NULL: no file) from a file named c.yaml. */
static void load(void **state, const char *yaml, const char *const *overrides, struct loaded *ret)
{
        const char *path = yaml ? tmpdir_path(state, "c.yaml") : NULL;

        if (yaml)
                assert_int_equal(fs_write_atomic(path, yaml, strlen(yaml)), 0);
        *ret = (struct loaded){0};
        ret->result = config_load(rows, ARRAY_SIZE(rows), path, "TEST_STEPDOWN_", overrides, &ret->target,
                                  &ret->error);
}

static void assert_refused(void **state, const char *yaml, const char *const *overrides, const char *sentence)
{
        cleanup_with(loaded_done) struct loaded l;

        load(state, yaml, overrides, &l);
        assert_int_equal(l.result, -EINVAL);
        assert_non_null(l.error);
        if (!strstr(l.error, sentence))
                fail_msg("wanted \"%s\" in \"%s\"", sentence, l.error);
}

static void defaults_hold_where_the_file_is_silent(void **state)
{
        cleanup_with(loaded_done) struct loaded l;

        load(state, "# only this\nbroker.id: 3\n", NULL, &l);
        assert_int_equal(l.result, 0);
        assert_null(l.error);
        assert_int_equal(l.target.broker_id, 3);
        assert_int_equal(l.target.segment_bytes, 1073741824);
        assert_int_equal(l.target.retention_ms, 7 * 24 * 3600 * 1000);
        assert_int_equal(l.target.timeout_ms, 30000);
        assert_true(l.target.enable);
        assert_int_equal(l.target.policy, 0);
        assert_string_equal(l.target.log_dirs, "/var/lib/stepdown");
        assert_string_equal(l.target.rack, "");
}

static void every_type_is_read_from_the_file(void **state)
{
        cleanup_with(loaded_done) struct loaded l;

        load(state,
             "broker.id: 0\nlog.segment.bytes: 1000\nlog.retention.ms: -1\nrequest.timeout.ms: 1500\n"
             "controlled.shutdown.enable: no\nsession.policy: reconnect\nlog.dirs: [/a, '/b "
             "c']\nbroker.rack: \"x: y\"\n",
             NULL, &l);
        assert_int_equal(l.result, 0);
        assert_int_equal(l.target.segment_bytes, 1000);
        assert_int_equal(l.target.retention_ms, -1); /* Kafka's "no limit" */
        assert_int_equal(l.target.timeout_ms, 1500);
        assert_false(l.target.enable);
        assert_int_equal(l.target.policy, 1);
        assert_string_equal(l.target.log_dirs, "/a,/b c");
        assert_string_equal(l.target.rack, "x: y");
}

static void environment_beats_file_and_override_beats_both(void **state)
{
        cleanup_with(loaded_done) struct loaded l;

        assert_int_equal(setenv("TEST_STEPDOWN_BROKER_ID", "2", 1), 0);
        assert_int_equal(setenv("TEST_STEPDOWN_LOG_DIRS", "/env", 1), 0);
        load(state, "broker.id: 1\nlog.dirs: /file\n", (const char *[]){"broker.id=9", "broker.id=10", NULL},
             &l);
        assert_int_equal(unsetenv("TEST_STEPDOWN_LOG_DIRS"), 0);
        assert_int_equal(l.result, 0);
        assert_int_equal(l.target.broker_id, 10);
        assert_string_equal(l.target.log_dirs, "/env");

        assert_int_equal(setenv("TEST_STEPDOWN_BROKER_ID", "two", 1), 0);
        assert_refused(state, "broker.id: 1\n", NULL,
                       "environment variable TEST_STEPDOWN_BROKER_ID: 'broker.id' is 'two'");
        assert_int_equal(unsetenv("TEST_STEPDOWN_BROKER_ID"), 0);
}

static void an_override_may_hold_equals_signs_or_nothing(void **state)
{
        cleanup_with(loaded_done) struct loaded l;

        load(state, NULL, (const char *[]){"broker.id=1", "broker.rack=a=b", "log.dirs=", NULL}, &l);
        assert_int_equal(l.result, 0);
        assert_string_equal(l.target.rack, "a=b");
        assert_string_equal(l.target.log_dirs, "");
        assert_refused(state, NULL, (const char *[]){"broker.id", NULL},
                       "--set broker.id: write it as --set key=value");
        assert_refused(state, NULL, (const char *[]){"=1", NULL}, "write it as");
}

static void an_unknown_key_names_file_line_and_the_nearest_key(void **state)
{
        assert_refused(state, "broker.id: 1\n\nlog.segment.byte: 5\n", NULL,
                       "c.yaml:3: unknown key 'log.segment.byte'; did you mean 'log.segment.bytes'?");
        assert_refused(state, NULL, (const char *[]){"borker.id=1", NULL},
                       "--set: unknown key 'borker.id'; did you mean 'broker.id'?");
        assert_refused(state, "completely.different: 1\n", NULL,
                       "unknown key 'completely.different'; the reference");
}

static void values_out_of_range_name_the_range_and_the_line(void **state)
{
        assert_refused(
                state, "broker.id: 1\nlog.segment.bytes: 13\n", NULL,
                "c.yaml:2: 'log.segment.bytes' is '13', but must be a whole number from 14 to 2147483647");
        assert_refused(state, "broker.id: 2147483648\n", NULL, "from 0 to 2147483647");
        assert_refused(state, "broker.id: 1x\n", NULL, "c.yaml:1: 'broker.id' is '1x'");
        assert_refused(state, "broker.id: 1\nrequest.timeout.ms: 2h\n", NULL,
                       "from 1 to 3600000 milliseconds");
        assert_refused(state, "broker.id: 1\nrequest.timeout.ms: -1\n", NULL, "must be a duration such as");
        assert_refused(state, "broker.id: 1\nlog.retention.ms: -2\n", NULL, "'log.retention.ms' is '-2'");
        assert_refused(state, "broker.id: 1\nsession.policy: restart\n", NULL,
                       "must be one of: shutdown, reconnect");
        assert_refused(state, "broker.id: 1\ncontrolled.shutdown.enable: on\n", NULL,
                       "must be true or false");
}

static void a_missing_required_key_says_how_to_give_it(void **state)
{
        assert_refused(
                state, "log.dirs: /x\n", NULL,
                "required key 'broker.id' is missing (Number of this broker); add 'broker.id: …' or set "
                "TEST_STEPDOWN_BROKER_ID");
        assert_refused(state, "", NULL, "required key 'broker.id'"); /* an empty file is a file */
        assert_refused(state, "# nothing\n", NULL, "required key 'broker.id'");
}

static void other_shapes_of_yaml_are_refused_with_their_line(void **state)
{
        assert_refused(state, "broker.id: 1\nbroker.id: 2\n", NULL,
                       "c.yaml:2: 'broker.id' was set in line 1 already; remove one of them");
        assert_refused(state, "broker.id:\n  nested: 1\n", NULL,
                       "c.yaml:2: 'broker.id' holds a nested mapping");
        assert_refused(state, "log.dirs: [[a]]\n", NULL, "may hold plain values only");
        assert_refused(state, "log.dirs: &a x\nbroker.rack: *a\n", NULL,
                       "c.yaml:2: 'broker.rack' needs a plain value");
        assert_refused(state, "- a\n- b\n", NULL, "c.yaml:1: expected lines of the form 'key: value'");
        assert_refused(state, "broker.id: 1\nlog.dirs: [a\n", NULL, "not valid YAML");
        assert_refused(state, "? [a]\n: 1\n", NULL, "a key must be a plain word");
        assert_refused(state, "broker.id: 1\n---\nbroker.id: 2\n", NULL, "a second YAML document");
}

static void a_file_that_cannot_be_read_gives_its_errno(void **state)
{
        struct target t = {0};
        char *error = NULL;

        assert_int_equal(
                config_load(rows, ARRAY_SIZE(rows), tmpdir_path(state, "none"), NULL, NULL, &t, &error),
                -ENOENT);
        assert_non_null(strstr(error, "/none: cannot be read: No such file or directory"));
        free(error);
        assert_int_equal(config_load(rows, ARRAY_SIZE(rows), NULL, NULL, NULL, &t, NULL), -EINVAL);
        config_done(rows, ARRAY_SIZE(rows), &t);
        config_done(rows, ARRAY_SIZE(rows), &t);
}

static void the_manual_lists_each_key_with_type_range_and_default(void **state)
{
        cleanup_with(buf_donep) struct buf text = {0};
        int saved = dup(STDOUT_FILENO), fd;

        fd = open(tmpdir_path(state, "help"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        (void)fflush(stdout);
        assert_true(dup2(fd, STDOUT_FILENO) >= 0);
        config_print_help(rows, ARRAY_SIZE(rows));
        (void)fflush(stdout);
        assert_true(dup2(saved, STDOUT_FILENO) >= 0);
        closep(&saved);
        closep(&fd);

        assert_int_equal(fs_read_file(tmpdir_path(state, "help"), 10000, &text), 0);
        assert_non_null(strstr(buf_cstr(&text),
                               "broker.id (int 0..2147483647, required)\n    Number of this broker\n"));
        assert_non_null(
                strstr(buf_cstr(&text), "log.retention.ms (duration -1.., default 7d, reloadable)\n    R\n"));
        assert_non_null(
                strstr(buf_cstr(&text), "session.policy (choice shutdown|reconnect, default shutdown)\n"));
        assert_non_null(strstr(buf_cstr(&text), "broker.rack (text, default empty)\n"));
}

#define CONFIG_TEST(f) cmocka_unit_test_setup_teardown(f, tmpdir_setup, tmpdir_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                CONFIG_TEST(defaults_hold_where_the_file_is_silent),
                CONFIG_TEST(every_type_is_read_from_the_file),
                CONFIG_TEST(environment_beats_file_and_override_beats_both),
                CONFIG_TEST(an_override_may_hold_equals_signs_or_nothing),
                CONFIG_TEST(an_unknown_key_names_file_line_and_the_nearest_key),
                CONFIG_TEST(values_out_of_range_name_the_range_and_the_line),
                CONFIG_TEST(a_missing_required_key_says_how_to_give_it),
                CONFIG_TEST(other_shapes_of_yaml_are_refused_with_their_line),
                CONFIG_TEST(a_file_that_cannot_be_read_gives_its_errno),
                CONFIG_TEST(the_manual_lists_each_key_with_type_range_and_default),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
