/* api/auto_create.c: how many names the controller is asked to create. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "api/auto_create.h"

static int setup(void **state)
{
        static struct auto_create a;

        *state = &a;
        return auto_create_init(&a);
}

static int teardown(void **state)
{
        auto_create_done(*state);
        return 0;
}

static void a_name_is_passed_on_once_a_window(void **state)
{
        assert_true(auto_create_wants(*state, wire_str("a"), 10000));
        assert_false(auto_create_wants(*state, wire_str("a"), 10001));
        assert_true(auto_create_wants(*state, wire_str("b"), 11000));
        assert_false(auto_create_wants(*state, wire_str("a"), 11999));
        assert_true(auto_create_wants(*state, wire_str("a"), 12000));
}

static void a_window_has_room_for_so_many_names(void **state)
{
        int wanted = 0;
        char name[16];

        for (int i = 0; i < 100000; i++) {
                (void)snprintf(name, sizeof(name), "t%d", i);
                wanted += auto_create_wants(*state, wire_str(name), 10000);
        }
        assert_int_equal(wanted, 500);
        assert_true(auto_create_wants(*state, wire_str(name), 12000));
}

static void no_name_is_no_topic(void **state)
{
        assert_false(auto_create_wants(*state, WIRE_NULL_STR, 10000));
        assert_false(auto_create_wants(*state, wire_str(""), 10000));
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_name_is_passed_on_once_a_window),
                TEST(a_window_has_room_for_so_many_names),
                TEST(no_name_is_no_topic),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
