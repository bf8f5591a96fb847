#include "testing.h"

#include <string.h>

#include "base/arena.h"

static void memory_is_zeroed_aligned_and_distinct(void **state)
{
        struct arena a;
        uint8_t *seen[200];

        (void)state;
        arena_init(&a, 0);
        for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
                seen[i] = arena_alloc(&a, 1, 100);
                assert_non_null(seen[i]);
                assert_int_equal((uintptr_t)seen[i] % 16, 0);
                for (size_t k = 0; k < 100; k++)
                        assert_int_equal(seen[i][k], 0);
                memset(seen[i], (int)i, 100); /* overlap would show in a later block's zeroes or below */
        }
        for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
                assert_int_equal(seen[i][99], i);
        arena_done(&a);
}

static void an_overflowing_count_is_refused(void **state)
{
        struct arena a;

        (void)state;
        arena_init(&a, 0);
        assert_null(arena_alloc(&a, SIZE_MAX / 2, 4));
        assert_null(arena_alloc(&a, SIZE_MAX, 1));
        assert_null(arena_strndup(&a, "x", SIZE_MAX));
        arena_done(&a);
}

static void the_limit_holds_over_all_chunks_and_is_free_again_after_done(void **state)
{
        struct arena a;

        (void)state;
        arena_init(&a, 10000);
        assert_non_null(arena_alloc(&a, 1, 6000));
        assert_null(arena_alloc(&a, 1, 6000));
        assert_non_null(arena_alloc(&a, 1, 3900));
        assert_null(arena_alloc(&a, 1, 20000));

        arena_done(&a);
        assert_non_null(arena_alloc(&a, 1, 9000));
        arena_done(&a);
}

static void an_empty_array_is_not_a_failure(void **state)
{
        struct arena a;
        void *p, *q;

        (void)state;
        arena_init(&a, 0);
        p = arena_alloc(&a, 0, 8);
        q = arena_alloc(&a, 0, 8);
        assert_non_null(p);
        assert_non_null(q);
        assert_ptr_not_equal(p, q);
        arena_done(&a);
}

static void strndup_copies_n_bytes_and_ends_them(void **state)
{
        struct arena a;

        (void)state;
        arena_init(&a, 0);
        assert_string_equal(arena_strndup(&a, "topic-name", 5), "topic");
        assert_string_equal(arena_strndup(&a, NULL, 0), "");
        arena_done(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(memory_is_zeroed_aligned_and_distinct),
                cmocka_unit_test(an_overflowing_count_is_refused),
                cmocka_unit_test(the_limit_holds_over_all_chunks_and_is_free_again_after_done),
                cmocka_unit_test(an_empty_array_is_not_a_failure),
                cmocka_unit_test(strndup_copies_n_bytes_and_ends_them),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
