/* Numbers of variable length: what they mean, and where they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/cursor.h"

#define CURSOR(...) cursor_of((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void unsigned_varints_are_little_endian_groups_of_seven_bits(void **state)
{
        struct cursor c = CURSOR(0, 0x7f, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x80, 0x00);
        static const uint32_t expected[] = {0, 127, 128, UINT32_MAX, 0};
        uint32_t v;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                assert_int_equal(cursor_get_uvarint(&c, &v), 0);
                assert_int_equal(v, expected[i]);
        }
        assert_int_equal(cursor_get_uvarint(&c, &v), -EBADMSG);
}

static void signed_varints_zig_zag(void **state)
{
        struct cursor c =
                CURSOR(0, 1, 2, 3, 0x80, 0x01, 0xfe, 0xff, 0xff, 0xff, 0x0f, 0xff, 0xff, 0xff, 0xff, 0x0f);
        static const int32_t expected[] = {0, -1, 1, -2, 64, INT32_MAX, INT32_MIN};
        int32_t v;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                assert_int_equal(cursor_get_varint(&c, &v), 0);
                assert_int_equal(v, expected[i]);
        }
}

static void long_varints_reach_both_ends_of_64_bits(void **state)
{
        struct cursor c = CURSOR(0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* max */
                                 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, /* min */
                                 0x13);
        static const int64_t expected[] = {INT64_MAX, INT64_MIN, -10};
        int64_t v;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
                assert_int_equal(cursor_get_varlong(&c, &v), 0);
                assert_int_equal(v, expected[i]);
        }
}

static void varints_with_more_bits_than_the_number_are_refused(void **state)
{
        struct cursor bit_32 = CURSOR(0x80, 0x80, 0x80, 0x80, 0x10);
        struct cursor six_bytes = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
        struct cursor bit_64 = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02);
        struct cursor eleven_bytes = CURSOR(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00);
        uint32_t u;
        int64_t v;

        (void)state;
        assert_int_equal(cursor_get_uvarint(&bit_32, &u), -EBADMSG);
        assert_int_equal(cursor_get_uvarint(&six_bytes, &u), -EBADMSG);
        assert_int_equal(cursor_get_varlong(&bit_64, &v), -EBADMSG);
        assert_int_equal(cursor_get_varlong(&eleven_bytes, &v), -EBADMSG);
}

static void a_getter_that_fails_leaves_the_cursor_where_it_was(void **state)
{
        struct cursor c = CURSOR(0x80);
        const uint8_t *p, *before = c.pos;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint32_t u;

        (void)state;
        assert_int_equal(cursor_get_uvarint(&c, &u), -EBADMSG);
        assert_int_equal(cursor_get_int16(&c, &i16), -EBADMSG);
        assert_int_equal(cursor_get_int32(&c, &i32), -EBADMSG);
        assert_int_equal(cursor_get_int64(&c, &i64), -EBADMSG);
        assert_int_equal(cursor_take(&c, 2, &p), -EBADMSG);
        assert_int_equal(cursor_take(&c, SIZE_MAX, &p), -EBADMSG);
        assert_ptr_equal(c.pos, before);
}

static void nothing_may_be_anywhere(void **state)
{
        struct cursor c = cursor_of(NULL, 0);
        const uint8_t *p;

        (void)state;
        assert_int_equal(cursor_left(&c), 0);
        assert_int_equal(cursor_take(&c, 1, &p), -EBADMSG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(unsigned_varints_are_little_endian_groups_of_seven_bits),
                cmocka_unit_test(signed_varints_zig_zag),
                cmocka_unit_test(long_varints_reach_both_ends_of_64_bits),
                cmocka_unit_test(varints_with_more_bits_than_the_number_are_refused),
                cmocka_unit_test(a_getter_that_fails_leaves_the_cursor_where_it_was),
                cmocka_unit_test(nothing_may_be_anywhere),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
