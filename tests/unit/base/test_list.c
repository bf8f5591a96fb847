#include "testing.h"

#include "base/list.h"

struct item {
        int value;
        struct list node;
};

static void push(struct list *l, struct item *items, int n)
{
        for (int i = 0; i < n; i++) {
                items[i].value = i;
                list_push_back(l, &items[i].node);
        }
}

static void assert_values(struct list *l, const int *values, size_t n)
{
        size_t i = 0;

        list_for_each (it, l) {
                assert_true(i < n);
                assert_int_equal(list_entry(it, struct item, node)->value, values[i++]);
        }
        assert_int_equal(i, n);
}

static void nodes_stand_in_the_order_of_pushing(void **state)
{
        struct list l = LIST_INIT(l);
        struct item items[3], first = {.value = 9};

        (void)state;
        push(&l, items, 3);
        list_push_front(&l, &first.node);
        assert_values(&l, (const int[]){9, 0, 1, 2}, 4);
}

static void removing_twice_is_harmless(void **state)
{
        struct list l = LIST_INIT(l);
        struct item items[3];

        (void)state;
        push(&l, items, 3);
        assert_true(list_linked(&items[1].node));
        list_remove(&items[1].node);
        list_remove(&items[1].node);
        assert_false(list_linked(&items[1].node));
        assert_values(&l, (const int[]){0, 2}, 2);
}

static void the_safe_walk_survives_removal_of_each_node(void **state)
{
        struct list l = LIST_INIT(l);
        struct item items[5];
        int n = 0;

        (void)state;
        push(&l, items, 5);
        list_for_each_safe (it, next, &l) {
                list_remove(it);
                n++;
        }
        assert_int_equal(n, 5);
        assert_true(list_empty(&l));
}

static void splicing_empties_the_source(void **state)
{
        struct list a = LIST_INIT(a), b = LIST_INIT(b);
        struct item items_a[2], items_b[2];

        (void)state;
        push(&a, items_a, 2);
        push(&b, items_b, 2);
        list_splice_back(&a, &b);
        assert_true(list_empty(&b));
        assert_values(&a, (const int[]){0, 1, 0, 1}, 4);
        list_splice_back(&a, &b);
        assert_values(&a, (const int[]){0, 1, 0, 1}, 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nodes_stand_in_the_order_of_pushing),
                cmocka_unit_test(removing_twice_is_harmless),
                cmocka_unit_test(the_safe_walk_survives_removal_of_each_node),
                cmocka_unit_test(splicing_empties_the_source),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
