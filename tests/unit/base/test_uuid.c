#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/uuid.h"

static void text_is_kafkas_base64url(void **state)
{
        /* Of the value 0x00…01, which Kafka gives its metadata topic, and of bytes that need '-' and '_'. */
        static const struct {
                struct uuid id;
                const char *text;
        } cases[] = {
                {{{0}}, "AAAAAAAAAAAAAAAAAAAAAA"},
                {{{[15] = 1}}, "AAAAAAAAAAAAAAAAAAAAAQ"},
                {{{0xff, 0xff, 0xff, 0xfb, 0xef, 0xbe, [15] = 0xff}}, "____----AAAAAAAAAAAA_w"},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char text[UUID_TEXT_SIZE];
                struct uuid back;

                uuid_format(&cases[i].id, text);
                assert_string_equal(text, cases[i].text);
                assert_int_equal(uuid_parse(text, &back), 0);
                assert_true(uuid_equal(&back, &cases[i].id));
        }
}

static void texts_of_another_form_are_refused(void **state)
{
        static const char *const bad[] = {
                "",
                "AAAAAAAAAAAAAAAAAAAAA",
                "AAAAAAAAAAAAAAAAAAAAAAA",
                "AAAAAAAAAAAAAAAAAAAAA=",
                "AAAAAAAAAAAAAAAAAAAA+A",
                "AAAAAAAAAAAAAAAAAAAAAB", /* spare bits set */
        };
        struct uuid id = {{7}};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(uuid_parse(bad[i], &id), -EINVAL);
        assert_int_equal(id.bytes[0], 7);
}

static void random_ids_differ_round_trip_and_never_look_like_a_flag(void **state)
{
        struct uuid previous = {{0}};

        (void)state;
        for (int i = 0; i < 2000; i++) {
                char text[UUID_TEXT_SIZE];
                struct uuid id, back;

                assert_int_equal(uuid_random(&id), 0);
                assert_false(uuid_is_zero(&id));
                assert_false(uuid_equal(&id, &previous));
                uuid_format(&id, text);
                assert_int_equal(strlen(text), 22);
                assert_int_not_equal(text[0], '-');
                assert_int_equal(uuid_parse(text, &back), 0);
                assert_true(uuid_equal(&id, &back));
                previous = id;
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(text_is_kafkas_base64url),
                cmocka_unit_test(texts_of_another_form_are_refused),
                cmocka_unit_test(random_ids_differ_round_trip_and_never_look_like_a_flag),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
