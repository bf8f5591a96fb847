/* The configuration both programs share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/fs.h"
#include "sidecar_config.h"

static int load(struct sidecar_config *c, char **error, const char *a, const char *b)
{
        const char *overrides[] = {a, b, NULL};

        return sidecar_config_load(NULL, overrides, c, error);
}

static void the_defaults_are_valid(void **state)
{
        struct sidecar_config c = {0};
        char *error = NULL;

        (void)state;
        assert_int_equal(load(&c, &error, NULL, NULL), 0);
        assert_int_equal(c.drain_deadline_ms, 25 * 60 * 1000);
        assert_int_equal(c.deadline_policy, DRAIN_PROCEED);
        assert_int_equal(c.no_controller_ms, 60000);
        assert_int_equal(c.backoff_min_ms, 100);
        assert_int_equal(c.backoff_max_ms, 5000);
        assert_int_equal(c.connect_ms, 2000);
        assert_int_equal(c.request_ms, 5000);
        sidecar_config_done(&c);
}

static void L2_a_deadline_past_the_limit_is_refused_with_both_numbers(void **state)
{
        struct sidecar_config c = {0};
        char *error = NULL;

        (void)state;
        assert_true(load(&c, &error, "drain.deadline=100s", "stop.timeout=90s") < 0);
        assert_non_null(strstr(error, "100 s"));
        assert_non_null(strstr(error, "90 s"));
        free(error);
        sidecar_config_done(&c);
}

static void L2_the_reserve_is_taken_off_the_limit(void **state)
{
        struct sidecar_config c = {0};
        struct drain_params p;
        char *error = NULL;

        (void)state;
        assert_int_equal(load(&c, &error, "stop.timeout=1600s", "drain.reserve=100s"), 0);
        sidecar_config_params(&c, 0, &p);
        assert_int_equal(p.deadline_ms, 1500000);
        assert_int_equal(p.hard_limit_ms, 1500000);
        sidecar_config_params(&c, 9999000, &p); /* asked for more than there is */
        assert_int_equal(p.deadline_ms, 1500000);
        sidecar_config_params(&c, 5000, &p);
        assert_int_equal(p.deadline_ms, 5000);
        sidecar_config_done(&c);
}

static void bad_values_are_refused_with_a_sentence(void **state)
{
        static const char *const bad[] = {
                "admin.endpoints=nowhere",
                "admin.endpoints= ,",
                "deadline.policy=maybe",
                "retry.backoff.min=6s",
                "admin.connect.timeout=6s",
                "admin.token.file=/nonexistent",
                "broker.idd=1",
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct sidecar_config c = {0};
                char *error = NULL;

                assert_true(load(&c, &error, bad[i], NULL) < 0);
                assert_non_null(error);
                free(error);
                sidecar_config_done(&c);
        }
}

static void the_token_is_one_line(void **state)
{
        char path[] = "/tmp/stepdown-token-XXXXXX", override[64];
        struct sidecar_config c = {0};
        int fd = mkstemp(path);
        char *error = NULL;

        (void)state;
        (void)snprintf(override, sizeof(override), "admin.token.file=%s", path);
        assert_int_equal(fs_write_full(fd, "secret\n", 7), 0);
        assert_int_equal(load(&c, &error, override, NULL), 0);
        assert_string_equal(c.token, "secret");
        sidecar_config_done(&c);
        c = (struct sidecar_config){0};
        assert_int_equal(fs_write_full(fd, "X-Evil: 1\n", 10), 0); /* would be a header line of its own */
        assert_true(load(&c, &error, override, NULL) < 0);
        free(error);
        sidecar_config_done(&c);
        (void)close(fd);
        (void)unlink(path);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_defaults_are_valid),
                cmocka_unit_test(L2_a_deadline_past_the_limit_is_refused_with_both_numbers),
                cmocka_unit_test(L2_the_reserve_is_taken_off_the_limit),
                cmocka_unit_test(bad_values_are_refused_with_a_sentence),
                cmocka_unit_test(the_token_is_one_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
