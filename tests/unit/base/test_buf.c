#include "testing.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

static void appended_bytes_come_back_in_order(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};

        (void)state;
        for (int i = 0; i < 10000; i++)
                assert_int_equal(buf_append(&b, &(uint8_t){(uint8_t)i}, 1), 0);
        assert_int_equal(b.len, 10000);
        for (int i = 0; i < 10000; i++)
                assert_int_equal(b.data[i], (uint8_t)i);
}

static void the_ceiling_refuses_one_byte_more_and_keeps_the_content(void **state)
{
        struct buf b;

        (void)state;
        buf_init(&b, 100);
        for (int i = 0; i < 10; i++)
                assert_int_equal(buf_append_str(&b, "0123456789"), 0);
        assert_int_equal(buf_append(&b, "x", 1), -EMSGSIZE);
        assert_int_equal(buf_printf(&b, "%d", 1), -EMSGSIZE);
        assert_int_equal(buf_reserve(&b, SIZE_MAX), -EMSGSIZE);
        assert_int_equal(b.len, 100);
        assert_string_equal(buf_cstr(&b) + 90, "0123456789"); /* the NUL is not content */
        buf_done(&b);
        assert_int_equal(b.ceiling, 100);
}

static void consume_drops_from_the_front(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};

        (void)state;
        assert_int_equal(buf_append_str(&b, "header|body"), 0);
        buf_consume(&b, 7);
        assert_string_equal(buf_cstr(&b), "body");
        buf_consume(&b, 100);
        assert_int_equal(b.len, 0);
        buf_consume(&b, 1);
        assert_int_equal(b.len, 0);
}

static void printf_appends_text_of_any_length(void **state)
{
        cleanup_with(buf_donep) struct buf b = {0};

        (void)state;
        assert_int_equal(buf_printf(&b, "[%s,%d]", "topic", 3), 0);
        assert_int_equal(buf_printf(&b, "%0500d", 7), 0);
        assert_int_equal(b.len, 9 + 500);
        assert_memory_equal(b.data, "[topic,3]000", 12);
        assert_int_equal(b.data[508], '7');
}

static void take_moves_the_memory_out(void **state)
{
        struct buf b = {.ceiling = 64}, taken;

        (void)state;
        assert_int_equal(buf_append_str(&b, "x"), 0);
        taken = buf_take(&b);
        assert_int_equal(taken.len, 1);
        assert_null(b.data);
        assert_int_equal(b.len, 0);
        assert_int_equal(b.ceiling, 64);
        buf_done(&taken);
        assert_string_equal(buf_cstr(&b), "");
        buf_done(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(appended_bytes_come_back_in_order),
                cmocka_unit_test(the_ceiling_refuses_one_byte_more_and_keeps_the_content),
                cmocka_unit_test(consume_drops_from_the_front),
                cmocka_unit_test(printf_appends_text_of_any_length),
                cmocka_unit_test(take_moves_the_memory_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
