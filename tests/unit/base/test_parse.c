#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"

static void int64_takes_plain_numbers_only(void **state)
{
        static const struct {
                const char *text;
                int result;
                int64_t value;
        } cases[] = {
                {"0", 0, 0},
                {"-9223372036854775808", 0, INT64_MIN},
                {"9223372036854775807", 0, INT64_MAX},
                {"9223372036854775808", -ERANGE, 0},
                {"99999999999999999999x", -EINVAL, 0},
                {"", -EINVAL, 0},
                {"-", -EINVAL, 0},
                {"+1", -EINVAL, 0},
                {" 1", -EINVAL, 0},
                {"1 ", -EINVAL, 0},
                {"0x10", -EINVAL, 0},
                {"1.5", -EINVAL, 0},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t v = 77;

                assert_int_equal(parse_int64(cases[i].text, INT64_MIN, INT64_MAX, &v), cases[i].result);
                assert_int_equal(v, cases[i].result == 0 ? cases[i].value : 77); /* written on success only */
        }
}

static void ranges_are_inclusive(void **state)
{
        int32_t v = 0;

        (void)state;
        assert_int_equal(parse_int32("5", 5, 10, &v), 0);
        assert_int_equal(parse_int32("10", 5, 10, &v), 0);
        assert_int_equal(parse_int32("4", 5, 10, &v), -ERANGE);
        assert_int_equal(parse_int32("11", 5, 10, &v), -ERANGE);
        assert_int_equal(parse_int32("2147483648", INT32_MIN, INT32_MAX, &v), -ERANGE);
        assert_int_equal(v, 10);
}

static void booleans_are_six_words(void **state)
{
        bool b = false;

        (void)state;
        assert_int_equal(parse_bool("yes", &b), 0);
        assert_true(b);
        assert_int_equal(parse_bool("0", &b), 0);
        assert_false(b);
        assert_int_equal(parse_bool("True", &b), -EINVAL);
        assert_int_equal(parse_bool("", &b), -EINVAL);
}

static void durations_have_units_or_the_callers(void **state)
{
        static const struct {
                const char *text;
                int result;
                int64_t value;
        } cases[] = {
                {"250ms", 0, 250},
                {"30s", 0, 30000},
                {"25min", 0, 1500000},
                {"1h", 0, 3600000},
                {"7d", 0, 604800000},
                {"12", 0, 12000},
                {"0", 0, 0},
                {"-1", -EINVAL, 0},
                {"1 s", -EINVAL, 0},
                {"s", -EINVAL, 0},
                {"1sec", -EINVAL, 0},
                {"1.5s", -EINVAL, 0},
                {"", -EINVAL, 0},
                {"9223372036854775807s", -ERANGE, 0},
                {"99999999999999999999ms", -ERANGE, 0},
                {"99999999999999999999q", -EINVAL, 0},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t v = 77;

                assert_int_equal(parse_duration_ms(cases[i].text, 1000, &v), cases[i].result);
                assert_int_equal(v, cases[i].result == 0 ? cases[i].value : 77);
        }
}

static void host_and_port_are_split_at_the_last_colon(void **state)
{
        static const struct {
                const char *text;
                int result;
                const char *host;
                uint16_t port;
        } cases[] = {
                {"broker1:9092", 0, "broker1", 9092},
                {"[::1]:0", 0, "::1", 0},
                {"[fe80::1%eth0]:65535", 0, "fe80::1%eth0", 65535},
                {"::1:9092", -EINVAL, "", 0},
                {"host", -EINVAL, "", 0},
                {":9092", -EINVAL, "", 0},
                {"[]:1", -EINVAL, "", 0},
                {"[::1]", -EINVAL, "", 0},
                {"[::1]x:1", -EINVAL, "", 0},
                {"host:", -EINVAL, "", 0},
                {"host:65536", -ERANGE, "", 0},
                {"host:-1", -ERANGE, "", 0},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char host[256] = "";
                uint16_t port = 0;

                assert_int_equal(parse_host_port(cases[i].text, host, &port), cases[i].result);
                assert_string_equal(host, cases[i].host);
                assert_int_equal(port, cases[i].port);
        }
}

static void a_host_of_256_bytes_does_not_fit(void **state)
{
        char text[300], host[256];
        uint16_t port;

        (void)state;
        memset(text, 'h', sizeof(text));
        memcpy(text + 255, ":1", 3);
        assert_int_equal(parse_host_port(text, host, &port), 0);
        assert_int_equal(strlen(host), 255);
        memset(text, 'h', sizeof(text));
        memcpy(text + 256, ":1", 3);
        assert_int_equal(parse_host_port(text, host, &port), -ERANGE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(int64_takes_plain_numbers_only),
                cmocka_unit_test(ranges_are_inclusive),
                cmocka_unit_test(booleans_are_six_words),
                cmocka_unit_test(durations_have_units_or_the_callers),
                cmocka_unit_test(host_and_port_are_split_at_the_last_colon),
                cmocka_unit_test(a_host_of_256_bytes_does_not_fit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
