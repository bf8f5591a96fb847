#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>

#include "base/slog.h"

/* stderr goes into a pipe while a test runs: a pipe is neither terminal nor journal, so JSON is written. */
struct capture {
        int saved, pipe[2];
        char text[65536];
};

static int setup(void **state)
{
        struct capture *c = calloc(1, sizeof(*c));

        if (!c || pipe2(c->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
                return -1;
        c->saved = dup(STDERR_FILENO);
        if (c->saved < 0 || dup2(c->pipe[1], STDERR_FILENO) < 0)
                return -1;
        slog_set_level(SLOG_INFO);
        slog_init("tester");
        *state = c;
        return 0;
}

static int teardown(void **state)
{
        struct capture *c = *state;

        (void)dup2(c->saved, STDERR_FILENO);
        closep(&c->saved);
        closep(&c->pipe[0]);
        closep(&c->pipe[1]);
        free(c);
        return 0;
}

/* All that was written since the last call. */
static const char *captured(void **state)
{
        struct capture *c = *state;
        size_t n = 0;
        ssize_t k;

        while ((k = read(c->pipe[0], c->text + n, sizeof(c->text) - 1 - n)) > 0)
                n += (size_t)k;
        c->text[n] = '\0';
        return c->text;
}

static void an_event_is_one_json_object_on_one_line(void **state)
{
        const char *text;

        slog_notice("drain-started", "drain started", SL_INT("broker", 3), SL_STR("drain_id", "d1"),
                    SL_ERR(-ENOENT));
        text = captured(state);
        assert_memory_equal(text, "{\"time\":\"20", 11);
        assert_non_null(strstr(text,
                               "Z\",\"level\":\"notice\",\"ident\":\"tester\",\"event\":\"drain-started\","
                               "\"message\":\"drain started\",\"broker\":3,\"drain_id\":\"d1\","
                               "\"error\":\"ENOENT\"}\n"));
}

static void an_event_without_fields_is_fine_and_a_null_string_is_empty(void **state)
{
        slog_info("x", "y");
        assert_non_null(strstr(captured(state), "\"message\":\"y\"}\n"));
        slog_info("x", "y", SL_STR("s", NULL));
        assert_non_null(strstr(captured(state), "\"s\":\"\"}\n"));
}

static void foreign_bytes_cannot_break_the_line(void **state)
{
        static const struct {
                const char *value, *json;
        } cases[] = {
                {"a\"b\\c", "\"a\\\"b\\\\c\""},
                {"\n\r\t\x01\x7f", "\"\\n\\r\\t\\u0001\\u007f\""},
                {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\""},
                {"\xff|\xc3", "\"\\ufffd|\\ufffd\""},                     /* no such byte; cut short */
                {"\xc0\xaf", "\"\\ufffd\\ufffd\""},                       /* overlong '/' */
                {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            /* a surrogate */
                {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* past the last code point */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                slog_info("x", "y", SL_STR("v", cases[i].value));
                assert_non_null(strstr(captured(state), cases[i].json));
        }
}

static void the_level_filters_and_comes_from_the_environment(void **state)
{
        slog_debug("hidden", "x");
        assert_string_equal(captured(state), "");
        slog_set_level(SLOG_ERROR);
        slog_warning("hidden", "x");
        assert_string_equal(captured(state), "");

        assert_int_equal(setenv("STEPDOWN_LOG_LEVEL", "debug", 1), 0);
        slog_init("tester");
        assert_int_equal(unsetenv("STEPDOWN_LOG_LEVEL"), 0);
        slog_debug("seen", "x");
        assert_non_null(strstr(captured(state), "\"event\":\"seen\""));
}

static void errno_survives_and_unknown_errors_are_numbers(void **state)
{
        errno = EAGAIN;
        slog_info("x", "y", SL_ERR(-9999));
        assert_int_equal(errno, EAGAIN);
        assert_non_null(strstr(captured(state), "\"error\":\"-9999\"}"));
}

static void an_event_too_long_still_says_that_it_happened(void **state)
{
        char *huge = calloc(1, 100001);

        assert_non_null(huge);
        memset(huge, 'x', 100000);
        slog_info("too-long", "a huge one", SL_STR("v", huge));
        assert_non_null(strstr(captured(state), "\"event\":\"too-long\",\"message\":\"a huge one\"}\n"));
        free(huge);
}

static void *emit_many(void *userdata)
{
        for (int i = 0; i < 50; i++)
                slog_info("from-thread", "one of many", SL_STR("pad", userdata), SL_INT("i", i));
        return NULL;
}

static void events_of_several_threads_do_not_mix(void **state)
{
        char pad[61] = "";
        pthread_t threads[4];
        int lines = 0;

        memset(pad, 'p', 60);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, emit_many, pad), 0);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        for (const char *line = captured(state); *line; line = strchr(line, '\n') + 1) {
                assert_memory_equal(line, "{\"time\"", 7);
                assert_int_equal(strchr(line, '\n')[-1], '}');
                lines++;
        }
        assert_int_equal(lines, 200);
}

static void a_terminal_gets_text_without_control_characters(void **state)
{
        struct capture *c = *state;
        cleanup_with(closep) int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), side = -1;
        char text[512] = "";

        /* given a pseudo terminal as stderr */
        assert_true(terminal >= 0);
        assert_int_equal(grantpt(terminal), 0);
        assert_int_equal(unlockpt(terminal), 0);
        side = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(side >= 0);
        assert_true(dup2(side, STDERR_FILENO) >= 0);
        slog_init("tester");

        slog_warning("w-event", "a warning", SL_STR("a", "two words"), SL_INT("n", 5),
                     SL_STR("c", "x\033[2J\n"), SL_MESSAGE_ID("00112233445566778899aabbccddeeff"));

        assert_true(read(terminal, text, sizeof(text) - 1) > 0);
        assert_non_null(strstr(text, " warning w-event: a warning a=\"two words\" n=5 c=x?[2J?\r\n"));
        assert_true(dup2(c->pipe[1], STDERR_FILENO) >= 0);
}

/* Reads back what a live journal stored. Where none runs there is nothing to test against. */
static void journal_fields_are_upper_case_and_complete(void **state)
{
        struct stat st;
        char stream[64], match[96];
        cleanup_with(freep) char *id = NULL;
        sd_journal *j;

        if (access("/run/systemd/journal/socket", W_OK) < 0)
                skip();
        /* given stderr connected to what JOURNAL_STREAM names */
        assert_int_equal(fstat(STDERR_FILENO, &st), 0);
        (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
        slog_init("tester");
        assert_int_equal(unsetenv("JOURNAL_STREAM"), 0);
        assert_true(asprintf(&id, "%d-%ju", getpid(), (uintmax_t)st.st_ino) > 0);

        slog_info("drain-started", "drain started", SL_STR("drain.id", id), SL_INT("broker", 7));

        assert_string_equal(captured(state), ""); /* nothing besides on stderr */
        assert_true(sd_journal_open(&j, SD_JOURNAL_LOCAL_ONLY) >= 0);
        (void)snprintf(match, sizeof(match), "DRAIN_ID=%s", id);
        assert_true(sd_journal_add_match(j, match, 0) >= 0);
        for (int tries = 0; sd_journal_next(j) <= 0; tries++) {
                assert_true(tries < 50);
                assert_true(sd_journal_wait(j, 200000) >= 0);
        }
        const void *data;
        size_t len;
        assert_true(sd_journal_get_data(j, "EVENT", &data, &len) >= 0);
        assert_memory_equal(data, "EVENT=drain-started", len);
        assert_true(sd_journal_get_data(j, "BROKER", &data, &len) >= 0);
        assert_memory_equal(data, "BROKER=7", len);
        assert_true(sd_journal_get_data(j, "PRIORITY", &data, &len) >= 0);
        assert_memory_equal(data, "PRIORITY=6", len);
        sd_journal_close(j);
}

#define SLOG_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                SLOG_TEST(an_event_is_one_json_object_on_one_line),
                SLOG_TEST(an_event_without_fields_is_fine_and_a_null_string_is_empty),
                SLOG_TEST(foreign_bytes_cannot_break_the_line),
                SLOG_TEST(the_level_filters_and_comes_from_the_environment),
                SLOG_TEST(errno_survives_and_unknown_errors_are_numbers),
                SLOG_TEST(an_event_too_long_still_says_that_it_happened),
                SLOG_TEST(events_of_several_threads_do_not_mix),
                SLOG_TEST(a_terminal_gets_text_without_control_characters),
                SLOG_TEST(journal_fields_are_upper_case_and_complete),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
