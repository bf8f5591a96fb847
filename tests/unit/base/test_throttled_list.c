/* base/throttled_list.h */
#include "testing.h"

#include "base/throttled_list.h"

static void lists_of_replicas_are_valid(void **state)
{
        static const char *const good[] = {"",    " ",       "*",    " * ",
                                           "0:1", "0:1,0:2", "12:0", " 0:1 , 1:2147483647 "},
                                 *const bad[] = {"0",       ":1",           "0:",
                                                 "0:1,",    ",0:1",         "0:1,,1:2",
                                                 "0:1 1:2", "a:1",          "-1:1",
                                                 "0:-1",    "*,0:1",        "**",
                                                 "0:1;",    "0:2147483648", "99999999999999999999:1"};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++)
                assert_true(throttled_list_valid(good[i]));
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_false(throttled_list_valid(bad[i]));
}

static void a_replica_is_found_in_its_list(void **state)
{
        (void)state;
        assert_true(throttled_list_has("0:1, 10:2", 0, 1));
        assert_true(throttled_list_has("0:1, 10:2", 10, 2));
        assert_false(throttled_list_has("0:1, 10:2", 1, 0));
        assert_false(throttled_list_has("0:1, 10:2", 0, 2));
        assert_false(throttled_list_has("0:1, 10:2", 1, 2));
        assert_true(throttled_list_has("*", 7, 7));
        assert_false(throttled_list_has("", 0, 0));
        assert_false(throttled_list_has(NULL, 0, 0));
        assert_false(throttled_list_has("0;1", 0, 1));
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_of_replicas_are_valid),
                cmocka_unit_test(a_replica_is_found_in_its_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
