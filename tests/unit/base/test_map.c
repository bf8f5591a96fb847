#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"

static int numbers[4096]; /* values to point at */

static void put_refuses_a_present_key_and_set_replaces_it(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();
        void *old = &numbers[9];

        (void)state;
        assert_int_equal(map_put_str(m, "a", &numbers[0]), 0);
        assert_int_equal(map_put_str(m, "a", &numbers[1]), -EEXIST);
        assert_ptr_equal(map_get_str(m, "a"), &numbers[0]);
        assert_int_equal(map_set(m, "a", 1, &numbers[2], &old), 0);
        assert_ptr_equal(old, &numbers[0]);
        assert_ptr_equal(map_get_str(m, "a"), &numbers[2]);
        assert_int_equal(map_set(m, "b", 1, &numbers[3], &old), 0);
        assert_null(old);
        assert_int_equal(map_count(m), 2);
}

static void keys_are_bytes_and_their_length_counts(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();
        char key[3] = {'a', '\0', 'b'};

        (void)state;
        assert_int_equal(map_put(m, key, 3, &numbers[0]), 0);
        assert_int_equal(map_put(m, key, 2, &numbers[1]), 0);
        assert_int_equal(map_put(m, key, 0, &numbers[2]), 0);
        assert_null(map_get(m, key, 1));
        key[0] = 'x'; /* the map holds copies */
        assert_null(map_get(m, key, 3));
        key[0] = 'a';
        assert_ptr_equal(map_get(m, key, 3), &numbers[0]);
        assert_ptr_equal(map_get(m, key, 2), &numbers[1]);
        assert_ptr_equal(map_get(m, "", 0), &numbers[2]);
}

static void an_empty_map_answers(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();
        size_t cursor = 0;

        (void)state;
        assert_null(map_get_str(m, "a"));
        assert_null(map_remove_int(m, 1));
        assert_false(map_next(m, &cursor, NULL, NULL, NULL));
        map_clear(m);
        assert_int_equal(map_count(m), 0);
        assert_null(map_free(NULL));
}

/* The model is an array indexed by key. Few keys make for many removals inside clusters of the index. */
static void random_puts_and_removes_agree_with_a_model(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();
        static void *model[ARRAY_SIZE(numbers)];
        uint32_t seed = 12345;

        (void)state;
        for (int step = 0; step < 300000; step++) {
                uint32_t k, range = step % 100000 < 50000 ? 40 : ARRAY_SIZE(numbers);

                seed = seed * 1664525 + 1013904223;
                k = (seed >> 8) % range;
                if (seed >> 31) {
                        assert_int_equal(map_put_int(m, k, &numbers[k]), model[k] ? -EEXIST : 0);
                        model[k] = &numbers[k];
                } else {
                        assert_ptr_equal(map_remove_int(m, k), model[k]);
                        model[k] = NULL;
                }
                k = (seed >> 4) % range;
                assert_ptr_equal(map_get_int(m, k), model[k]);
        }
        for (size_t k = 0; k < ARRAY_SIZE(model); k++)
                assert_ptr_equal(map_get_int(m, (int64_t)k), model[k]);
}

static void the_cursor_visits_each_entry_once(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();
        static int visits[ARRAY_SIZE(numbers)];
        size_t cursor = 0, len;
        const void *key;
        void *value;

        (void)state;
        for (int64_t i = 0; i < 1000; i++)
                assert_int_equal(map_put_int(m, i, &numbers[i]), 0);
        while (map_next(m, &cursor, &key, &len, &value)) {
                int64_t k;

                assert_int_equal(len, sizeof(k));
                memcpy(&k, key, sizeof(k));
                assert_ptr_equal(value, &numbers[k]);
                visits[k]++;
        }
        for (int i = 0; i < 1000; i++)
                assert_int_equal(visits[i], 1);
}

static void removing_what_the_cursor_returned_skips_and_repeats_nothing(void **state)
{
        (void)state;
        for (int every = 1; every <= 3; every++) {
                cleanup_with(map_freep) struct map *m = map_new();
                static int visits[1000];
                size_t cursor = 0, len, seen = 0;
                const void *key;
                void *value;

                memset(visits, 0, sizeof(visits));
                for (int64_t i = 0; i < 1000; i++)
                        assert_int_equal(map_put_int(m, i, &numbers[i]), 0);
                while (map_next(m, &cursor, &key, &len, &value)) {
                        visits[(int *)value - numbers]++;
                        if (seen++ % (size_t)every == 0)
                                assert_ptr_equal(map_remove(m, key, len), value); /* with its own memory */
                }
                assert_int_equal(seen, 1000);
                for (int i = 0; i < 1000; i++)
                        assert_int_equal(visits[i], 1);
                assert_int_equal(map_count(m), 1000 - (1000 + every - 1) / every);
        }
}

static void a_key_stays_where_it_is_while_the_map_grows(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();
        const void *key, *again = NULL, *other;
        size_t cursor = 0;
        void *value;

        (void)state;
        assert_int_equal(map_put_str(m, "first", &numbers[0]), 0);
        assert_true(map_next(m, &cursor, &key, NULL, NULL));
        for (int64_t i = 0; i < 500; i++)
                assert_int_equal(map_put_int(m, i, &numbers[1]), 0);
        cursor = 0;
        while (map_next(m, &cursor, &other, NULL, &value))
                if (value == &numbers[0])
                        again = other;
        assert_ptr_equal(key, again);
}

static void clear_empties_and_the_map_can_be_used_again(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();

        (void)state;
        for (int round = 0; round < 3; round++) {
                for (int64_t i = 0; i < 100; i++)
                        assert_int_equal(map_put_int(m, i, &numbers[i]), 0);
                map_clear(m);
                assert_int_equal(map_count(m), 0);
                assert_null(map_get_int(m, 5));
        }
}

/* Iteration order must not depend on the per-process seed: seeded simulations have to repeat. */
static void iteration_order_follows_from_the_calls_alone(void **state)
{
        cleanup_with(map_freep) struct map *m = map_new();
        size_t cursor = 0, at = 0;
        char order[16] = "";
        const void *key;

        (void)state;
        assert_int_equal(map_put_str(m, "a", &numbers[0]), 0);
        assert_int_equal(map_put_str(m, "b", &numbers[0]), 0);
        assert_int_equal(map_put_str(m, "c", &numbers[0]), 0);
        assert_int_equal(map_put_str(m, "d", &numbers[0]), 0);
        assert_non_null(map_remove_str(m, "b"));
        while (map_next(m, &cursor, &key, NULL, NULL))
                order[at++] = *(const char *)key;
        assert_string_equal(order, "cda");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(put_refuses_a_present_key_and_set_replaces_it),
                cmocka_unit_test(keys_are_bytes_and_their_length_counts),
                cmocka_unit_test(an_empty_map_answers),
                cmocka_unit_test(random_puts_and_removes_agree_with_a_model),
                cmocka_unit_test(the_cursor_visits_each_entry_once),
                cmocka_unit_test(removing_what_the_cursor_returned_skips_and_repeats_nothing),
                cmocka_unit_test(a_key_stays_where_it_is_while_the_map_grows),
                cmocka_unit_test(clear_empties_and_the_map_can_be_used_again),
                cmocka_unit_test(iteration_order_follows_from_the_calls_alone),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
