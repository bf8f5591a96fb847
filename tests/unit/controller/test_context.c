#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "controller/context.h"

static struct ctx ctx;

static int setup(void **state)
{
        (void)state;
        ctx = (struct ctx){0};
        return ctx_init(&ctx);
}

static int teardown(void **state)
{
        (void)state;
        ctx_done(&ctx);
        return 0;
}

/* A topic of @n partitions on brokers 1, 2, 3, each led by (number % 3) + 1 with all in sync. */
static struct ctx_topic *add(const char *name, int32_t n)
{
        int32_t replicas[] = {1, 2, 3};
        struct znode_assignment *rows = calloc((size_t)n, sizeof(*rows));
        struct znode_topic z = {.partitions = rows, .n_partitions = (size_t)n};
        struct ctx_topic *t;

        assert_non_null(rows);
        z.id.bytes[0] = 1;
        (void)snprintf((char *)z.id.bytes, sizeof(z.id.bytes), "%s", name);
        for (int32_t i = 0; i < n; i++)
                rows[i] = (struct znode_assignment){.partition = i, .replicas = replicas, .n_replicas = 3};
        assert_int_equal(ctx_topic_add(&ctx, name, &z, &t), 0);
        free(rows);
        for (int32_t i = 0; i < n; i++) {
                int32_t *isr = calloc(3, sizeof(*isr));

                assert_non_null(isr);
                for (int k = 0; k < 3; k++)
                        isr[k] = replicas[k];
                ctx_partition_set_state(&ctx, t->partitions[i], i % 3 + 1, 0, 1, 0, &isr, 3);
                assert_null(isr);
        }
        return t;
}

static void counts_of_leaders_follow_every_change(void **state)
{
        struct ctx_topic *t = add("t", 6);
        struct ctx_partition *p = ctx_topic_partition(t, 0);

        (void)state;
        assert_int_equal(ctx_broker(&ctx, 1)->leaders, 2);
        assert_int_equal(ctx_broker(&ctx, 1)->leaders_multi, 2);
        assert_int_equal(ctx_broker(&ctx, 1)->n_hosted, 6);
        ctx_partition_set_state(&ctx, p, 2, 1, 1, 1, &p->isr, p->n_isr);
        assert_int_equal(ctx_broker(&ctx, 1)->leaders, 1);
        assert_int_equal(ctx_broker(&ctx, 2)->leaders, 3);
        ctx_partition_set_state(&ctx, p, -1, 2, 1, 2, &p->isr, p->n_isr);
        assert_int_equal(ctx_broker(&ctx, 2)->leaders, 2);
        ctx_topic_forget(&ctx, t);
        for (int32_t id = 1; id <= 3; id++) {
                assert_int_equal(ctx_broker(&ctx, id)->leaders, 0);
                assert_int_equal(ctx_broker(&ctx, id)->n_hosted, 0);
        }
}

/* A leader that is no replica and no known broker, as a tool or a bug may write it. */
static void a_leader_nobody_knows_is_not_counted(void **state)
{
        struct ctx_topic *t = add("t", 1);
        struct ctx_partition *p = ctx_topic_partition(t, 0);

        (void)state;
        ctx_partition_set_state(&ctx, p, 99, 1, 1, 1, &p->isr, p->n_isr);
        assert_non_null(ctx_broker_make(&ctx, 99));
        ctx_partition_set_state(&ctx, p, 1, 2, 1, 2, &p->isr, p->n_isr);
        assert_int_equal(ctx_broker(&ctx, 99)->leaders, 0);
        assert_int_equal(ctx_broker(&ctx, 1)->leaders, 1);
        assert_false(ctx_partition_online(&ctx, p));
}

static void a_forgotten_partition_lives_as_long_as_somebody_holds_it(void **state)
{
        struct ctx_topic *t = add("t", 2);
        struct ctx_partition *p = ctx_topic_partition(t, 1);
        uint32_t index = p->index;
        struct ctx_topic *again;

        (void)state;
        ctx_partition_ref(p);
        ctx_topic_forget(&ctx, t);
        assert_null(ctx_topic(&ctx, "t"));
        assert_ptr_equal(ctx_partition(&ctx, index), p);
        assert_true(p->topic->forgotten);
        again = add("t", 4); /* under the same name, with numbers of its own */
        for (int32_t i = 0; i < 4; i++)
                assert_int_not_equal(again->partitions[i]->index, index);
        ctx_partition_unref(&ctx, p);
        assert_null(ctx_partition(&ctx, index));
}

static void names_ids_and_numbers_find_what_they_name(void **state)
{
        struct ctx_topic *t = add("some.topic", 2);

        (void)state;
        assert_ptr_equal(ctx_topic(&ctx, "some.topic"), t);
        assert_ptr_equal(ctx_topic_n(&ctx, "some.topicX", 10), t);
        assert_null(ctx_topic_n(&ctx, "some.topic", 9));
        assert_ptr_equal(ctx_topic_by_id(&ctx, &t->id), t);
        assert_null(ctx_topic_partition(t, 2));
        assert_null(ctx_topic_partition(t, -1));
        assert_int_equal(ctx_slot(t->partitions[0], 3)->broker_id, 3);
        assert_null(ctx_slot(t->partitions[0], 4));
}

static void an_absurd_assignment_is_refused_and_leaves_nothing(void **state)
{
        int32_t many[ZNODE_MAX_REPLICAS] = {0};
        struct znode_assignment rows[] = {{.partition = 2000000000, .replicas = many, .n_replicas = 1}};
        struct znode_topic z = {.partitions = rows, .n_partitions = 1};
        struct ctx_topic *t;

        (void)state;
        assert_int_equal(ctx_topic_add(&ctx, "far", &z, &t), -EINVAL);
        rows[0].partition = 0;
        rows[0].n_replicas = ZNODE_MAX_REPLICAS;
        assert_int_equal(ctx_topic_add(&ctx, "wide", &z, &t), -EINVAL);
        assert_null(ctx_topic(&ctx, "far"));
        assert_null(ctx_topic(&ctx, "wide"));
}

static void names_that_differ_in_dots_only_collide_until_the_topic_goes(void **state)
{
        struct ctx_topic *dotted = add("a.b", 1), *t;

        (void)state;
        assert_ptr_equal(ctx_topic_colliding(&ctx, "a_b"), dotted);
        assert_ptr_equal(ctx_topic_colliding(&ctx, "a.b"), dotted);
        assert_null(ctx_topic_colliding(&ctx, "a-b"));
        t = add("a_b", 1); /* a tool wrote it in ZooKeeper: the first stays the one that is named */
        assert_ptr_equal(ctx_topic_colliding(&ctx, "a_b"), dotted);
        ctx_topic_forget(&ctx, t);
        assert_ptr_equal(ctx_topic_colliding(&ctx, "a_b"), dotted);
        ctx_topic_forget(&ctx, dotted);
        assert_null(ctx_topic_colliding(&ctx, "a.b"));
}

static void live_brokers_are_listed_with_or_without_the_draining(void **state)
{
        static char mark; /* any drain */
        int32_t n, *ids;

        (void)state;
        for (int32_t id = 3; id >= 1; id--) {
                struct znode_broker info = {0};
                struct ctx_broker *b = ctx_broker_make(&ctx, id);

                assert_non_null(b);
                ctx_broker_set_alive(&ctx, b, 100 + id, &info);
        }
        ctx_broker(&ctx, 2)->drain = (struct drain *)&mark;
        ids = ctx_alive_ids(&ctx, true, &n);
        assert_int_equal(n, 3);
        assert_int_equal(ids[0], 1);
        assert_int_equal(ids[2], 3);
        free(ids);
        ids = ctx_alive_ids(&ctx, false, &n); /* R13 */
        assert_int_equal(n, 2);
        assert_int_equal(ids[1], 3);
        free(ids);
        ctx_broker_set_dead(&ctx, ctx_broker(&ctx, 3));
        assert_int_equal(ctx.n_alive, 2);
        ctx_broker(&ctx, 2)->drain = NULL;
}

static void a_hundred_thousand_partitions_fit(void **state)
{
        int64_t began = clock_mono_ms();

        (void)state;
        for (int i = 0; i < 100; i++) {
                char name[32];

                (void)snprintf(name, sizeof(name), "topic-%d", i);
                (void)add(name, 1000);
        }
        assert_int_equal(ctx.n_partitions, 100000);
        assert_int_equal(ctx_broker(&ctx, 2)->n_hosted, 100000);
        for (int i = 0; i < 100; i += 2) {
                char name[32];

                (void)snprintf(name, sizeof(name), "topic-%d", i);
                ctx_topic_forget(&ctx, ctx_topic(&ctx, name));
        }
        assert_int_equal(ctx.n_partitions, 50000);
        assert_true(clock_mono_ms() - began < 10000);
}

static void a_queue_holds_each_number_once_in_order(void **state)
{
        struct index_queue q = {0};
        uint32_t i;

        (void)state;
        assert_int_equal(index_queue_reserve(&q, 10), 0);
        assert_true(index_queue_push(&q, 7));
        assert_true(index_queue_push(&q, 3));
        assert_false(index_queue_push(&q, 7));
        assert_true(index_queue_push(&q, 9));
        assert_true(index_queue_has(&q, 3));
        assert_true(index_queue_remove(&q, 3));
        assert_false(index_queue_remove(&q, 3));
        assert_int_equal(index_queue_reserve(&q, 1000), 0);
        assert_true(index_queue_push(&q, 999));
        assert_true(index_queue_pop(&q, &i) && i == 7);
        assert_true(index_queue_pop(&q, &i) && i == 9);
        assert_true(index_queue_push(&q, 7));
        assert_true(index_queue_pop(&q, &i) && i == 999);
        assert_true(index_queue_pop(&q, &i) && i == 7);
        assert_false(index_queue_pop(&q, &i));
        assert_int_equal(q.pushed, q.popped);
        for (uint32_t n = 0; n < 3000; n++) { /* around the ring */
                assert_true(index_queue_push(&q, n % 1000));
                assert_true(index_queue_push(&q, (n + 500) % 1000));
                assert_true(index_queue_pop(&q, &i));
                assert_int_equal(i, n % 1000);
                assert_true(index_queue_pop(&q, &i));
        }
        index_queue_done(&q);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(counts_of_leaders_follow_every_change, setup, teardown),
                cmocka_unit_test_setup_teardown(a_leader_nobody_knows_is_not_counted, setup, teardown),
                cmocka_unit_test_setup_teardown(a_forgotten_partition_lives_as_long_as_somebody_holds_it,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(names_ids_and_numbers_find_what_they_name, setup, teardown),
                cmocka_unit_test_setup_teardown(an_absurd_assignment_is_refused_and_leaves_nothing, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(names_that_differ_in_dots_only_collide_until_the_topic_goes,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(live_brokers_are_listed_with_or_without_the_draining, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(a_hundred_thousand_partitions_fit, setup, teardown),
                cmocka_unit_test(a_queue_holds_each_number_once_in_order),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
