/* Every allocation of the context fails once: nothing leaks, nothing is half there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "controller/context.h"
#include "tests/support/alloc_torture.h"

static int add(struct ctx *c, const char *name, int32_t n, const int32_t *replicas)
{
        struct znode_assignment rows[8];
        struct znode_topic z = {.partitions = rows, .n_partitions = (size_t)n};
        struct ctx_topic *t;
        int r;

        z.id.bytes[0] = (uint8_t)name[0];
        for (int32_t i = 0; i < n; i++)
                rows[i] = (struct znode_assignment){
                        .partition = i, .replicas = (int32_t *)replicas, .n_replicas = 3};
        r = ctx_topic_add(c, name, &z, &t);
        if (r == 0)
                assert_int_equal(t->n_partitions, n);
        else
                assert_null(ctx_topic(c, name));
        return r;
}

/* Returns the first error, after having looked that the counts fit what is there. */
static int scenario(struct ctx *c)
{
        const int32_t here[] = {1, 2, 3}, there[] = {3, 4, 5};
        int32_t n = 0, *ids;
        int r;

        r = ctx_init(c);
        if (r == 0)
                r = add(c, "a", 8, here);
        if (r == 0)
                r = add(c, "b", 5, there);
        if (r == 0) {
                ctx_topic_forget(c, ctx_topic(c, "a"));
                r = add(c, "c", 7, here);
        }
        if (r == 0) {
                ids = ctx_alive_ids(c, true, &n);
                r = ids ? 0 : -ENOMEM;
                free(ids);
        }
        for (int32_t id = 1; c->brokers && id <= 5; id++) {
                struct ctx_broker *b = ctx_broker(c, id);

                for (size_t i = 0; b && i < b->n_hosted; i++)
                        assert_ptr_equal(
                                ctx_partition(c, b->hosted[i].partition)->slots[b->hosted[i].slot].broker, b);
        }
        return r;
}

static void a_failed_allocation_leaves_nothing_behind(void **state)
{
        int n = 0;
        bool hit;

        (void)state;
        do {
                struct ctx c = {0};
                int r;

                torture_arm(++n);
                r = scenario(&c);
                hit = torture_disarm();
                assert_int_equal(r, hit ? -ENOMEM : 0);
                ctx_done(&c);
        } while (hit);
        assert_true(n > 20);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(a_failed_allocation_leaves_nothing_behind)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
