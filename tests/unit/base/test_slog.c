#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/fs.h"
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
        struct capture *c = *state;

        assert_true(dup2(c->pipe[0], STDERR_FILENO) >= 0); /* the reading end: writing fails */
        errno = EAGAIN;
        slog_info("x", "y");
        assert_int_equal(errno, EAGAIN);
        assert_true(dup2(c->pipe[1], STDERR_FILENO) >= 0);
        slog_info("x", "y", SL_ERR(-9999));
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

/* A datagram socket where sd_journal_sendv() looks for journald's, in a mount namespace of this process's
 * own. -EPERM where the machine grants no namespace. */
static int open_fake_journal(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
        cleanup_with(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                return -EPERM;
        if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("tmpfs", "/run", "tmpfs", 0, NULL) < 0)
                return -EPERM;
        if (fs_mkdir_p("/run/systemd/journal", 0755) < 0)
                return -EIO;
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* JOURNAL_STREAM as systemd sets it for the stderr of now, or of another inode. */
static void init_as_service(bool own_stderr)
{
        struct stat st;
        char stream[64];

        (void)fstat(STDERR_FILENO, &st);
        st.st_ino += own_stderr ? 0 : 1;
        (void)snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        (void)setenv("JOURNAL_STREAM", stream, 1);
        slog_init("tester");
        (void)unsetenv("JOURNAL_STREAM");
}

/* Exit statuses of the child below. */
enum { JOURNAL_OK, JOURNAL_UNTESTABLE, JOURNAL_DIFFERS, JOURNAL_ON_STDERR, JOURNAL_NOT_ON_STDERR };

static int emit_to_fake_journal(void **state)
{
        static const char wanted[] = "MESSAGE=drain started drain.id=\"a b\" broker=7 _9=hidden\nPRIORITY=6\n"
                                     "SYSLOG_IDENTIFIER=tester\nEVENT=drain-started\nDRAIN_ID=a b\nBROKER=7\n"
                                     "MESSAGE_ID=00112233445566778899aabbccddeeff\nX__9=hidden\n";
        char got[1024] = "";
        int journal;

        journal = open_fake_journal();
        if (journal < 0)
                return JOURNAL_UNTESTABLE;
        init_as_service(false);
        slog_info("x", "stderr was redirected since");
        if (!*captured(state))
                return JOURNAL_NOT_ON_STDERR;
        init_as_service(true);
        slog_info("drain-started", "drain started", SL_STR("drain.id", "a b"), SL_INT("broker", 7),
                  SL_MESSAGE_ID("00112233445566778899aabbccddeeff"), SL_STR("_9", "hidden"));
        (void)!recv(journal, got, sizeof(got) - 1, 0);
        if (*captured(state))
                return JOURNAL_ON_STDERR;
        return strcmp(got, wanted) == 0 ? JOURNAL_OK : JOURNAL_DIFFERS;
}

static void journal_fields_are_upper_case_and_complete(void **state)
{
        int status;
        pid_t child = fork(); /* its own process: namespaces and libsystemd's socket are for life */

        assert_true(child >= 0);
        if (child == 0)
                _exit(emit_to_fake_journal(state));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == JOURNAL_UNTESTABLE)
                skip();
        assert_int_equal(WEXITSTATUS(status), JOURNAL_OK);
}

static void without_a_journal_the_event_goes_to_stderr(void **state)
{
        if (access("/run/systemd/journal/socket", F_OK) == 0)
                skip();
        init_as_service(true);
        slog_info("x", "nobody listens");
        assert_non_null(strstr(captured(state), "\"message\":\"nobody listens\"}\n"));
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
                SLOG_TEST(without_a_journal_the_event_goes_to_stderr),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
