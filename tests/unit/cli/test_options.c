/* Option tables: what is taken, what is refused, what stays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/cli.h"

struct values {
        bool flag;
        const char *text, *maybe;
        int32_t number;
        int64_t time_ms;
};

static const struct cli_option rows[] = {
        {"flag", CLI_FLAG, offsetof(struct values, flag), NULL, "a flag", 0, 0},
        {"text", CLI_STRING, offsetof(struct values, text), "TEXT", "a text", 0, 0},
        {"maybe", CLI_MAYBE, offsetof(struct values, maybe), NULL, "a text or nothing", 0, 0},
        {"old.number", CLI_INT32, offsetof(struct values, number), "N", NULL, -5, 10},
        {"number", CLI_INT32, offsetof(struct values, number), "N", "a number", -5, 10},
        {"time", CLI_DURATION_MS, offsetof(struct values, time_ms), "TIME", "a time", 0, 0},
};

static int never_run(const struct cli_verb *self, int argc, char **argv)
{
        (void)self;
        (void)argc;
        (void)argv;
        return CLI_FAILED;
}

static const struct cli_verb verb = {.name = "test",
                                     .synopsis = "",
                                     .summary = "a test",
                                     .options = rows,
                                     .n_options = ARRAY_SIZE(rows),
                                     .run = never_run};

/* @words: NULL-terminated, without the verb's name. */
static int parse(char **words, struct values *v, char *argv[16], int *n_args)
{
        int argc = 1;

        argv[0] = (char[]){"test"};
        for (; *words; words++)
                argv[argc++] = *words;
        return cli_parse(&verb, argc, argv, v, n_args);
}

#define WORDS(...) ((char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static void options_take_their_values_after_a_space_or_an_equals_sign(void **state)
{
        struct values v = {0};
        char *argv[16], text[] = "--text", value[] = "a=b", number[] = "--number=-5", time[] = "--time=2min",
                        flag[] = "--flag";
        int n;

        (void)state;
        assert_int_equal(parse(WORDS(text, value, number, time, flag), &v, argv, &n), 0);
        assert_string_equal(v.text, "a=b");
        assert_int_equal(v.number, -5);
        assert_int_equal(v.time_ms, 120000);
        assert_true(v.flag);
        assert_int_equal(n, 0);
}

static void positional_arguments_come_to_the_front_in_order(void **state)
{
        struct values v = {0};
        char *argv[16], one[] = "one", flag[] = "--flag", dash[] = "-", end[] = "--", two[] = "--two";
        int n;

        (void)state;
        assert_int_equal(parse(WORDS(one, flag, dash, end, two), &v, argv, &n), 0);
        assert_int_equal(n, 3);
        assert_string_equal(argv[1], "one");
        assert_string_equal(argv[2], "-");
        assert_string_equal(argv[3], "--two");
}

static void what_is_not_named_keeps_its_value(void **state)
{
        struct values v = {.number = 7, .text = "before"};
        char *argv[16];
        int n;

        (void)state;
        assert_int_equal(parse(WORDS(), &v, argv, &n), 0);
        assert_int_equal(v.number, 7);
        assert_string_equal(v.text, "before");
}

static void an_option_may_go_without_its_value(void **state)
{
        char *argv[16], maybe[] = "--maybe", equals[] = "--maybe=", value[] = "value", flag[] = "--flag";
        struct values v = {0};
        int n;

        (void)state;
        assert_int_equal(parse(WORDS(maybe, value), &v, argv, &n), 0);
        assert_string_equal(v.maybe, "value");
        assert_int_equal(parse(WORDS(maybe, flag), &v, argv, &n), 0);
        assert_string_equal(v.maybe, "");
        assert_true(v.flag);
        assert_int_equal(parse(WORDS(maybe), &v, argv, &n), 0);
        assert_string_equal(v.maybe, "");
        assert_int_equal(parse(WORDS(equals), &v, argv, &n), 0);
        assert_string_equal(v.maybe, "");
}

static void another_spelling_is_taken_and_not_shown(void **state)
{
        char *argv[16], number[] = "--old.number=3", *text = NULL;
        struct values v = {0};
        size_t len;
        FILE *f;
        int n;

        (void)state;
        assert_int_equal(parse(WORDS(number), &v, argv, &n), 0);
        assert_int_equal(v.number, 3);
        f = open_memstream(&text, &len);
        assert_non_null(f);
        cli_print_verb_help(&verb, f);
        assert_int_equal(fclose(f), 0);
        assert_non_null(strstr(text, "--number N"));
        assert_null(strstr(text, "old.number"));
        free(text);
}

static void bad_options_are_refused(void **state)
{
        static const char *const bad[] = {"--nothing",   "--flag=1",  "--number=11",  "--number=-6",
                                          "--number=1x", "--number=", "--time=never", "--text",
                                          "-x",          "--fla"};
        FILE *quiet = freopen("/dev/null", "w", stderr);

        (void)state;
        assert_non_null(quiet);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct values v = {0};
                char *argv[16], word[32];
                int n;

                (void)snprintf(word, sizeof(word), "%s", bad[i]);
                assert_int_equal(parse(WORDS(word), &v, argv, &n), -EINVAL);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(options_take_their_values_after_a_space_or_an_equals_sign),
                cmocka_unit_test(positional_arguments_come_to_the_front_in_order),
                cmocka_unit_test(what_is_not_named_keeps_its_value),
                cmocka_unit_test(an_option_may_go_without_its_value),
                cmocka_unit_test(another_spelling_is_taken_and_not_shown),
                cmocka_unit_test(bad_options_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
