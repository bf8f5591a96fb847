#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "zk/znode_drains.h"

static struct znode_drain example(void)
{
        struct znode_drain d = {.id = "roll-7/\"a\"\n",
                                .reason = "kernel \\ upgrade",
                                .requested_by = "systemd",
                                .broker = 2,
                                .controller = 3,
                                .epoch = INT64_C(1) << 40,
                                .verdict = "broker-gone",
                                .started_ms = 1700000000000,
                                .deadline_ms = 1700000060000,
                                .ended_ms = 1700000001000,
                                .busy_ms = 900,
                                .leaders = 10,
                                .replicas = 30,
                                .moved = 8,
                                .remaining = 2,
                                .isr_remaining = 1,
                                .single = 4};

        (void)snprintf(d.reasons[0].name, ZNODE_DRAIN_NAME, "no_other_in_sync_replica");
        d.reasons[0].n = 2;
        d.n_reasons = 1;
        d.left = calloc(2, sizeof(*d.left));
        assert_non_null(d.left);
        d.n_left = 2;
        for (int i = 0; i < 2; i++) {
                (void)snprintf(d.left[i].topic, sizeof(d.left[i].topic), "orders");
                d.left[i].partition = i;
                (void)snprintf(d.left[i].reason, ZNODE_DRAIN_NAME, "no_other_in_sync_replica");
        }
        return d;
}

static void assert_same(const struct znode_drain *a, const struct znode_drain *b)
{
        struct znode_drain x = *a, y = *b;

        assert_int_equal(a->n_left, b->n_left);
        if (a->n_left)
                assert_memory_equal(a->left, b->left, a->n_left * sizeof(*a->left));
        x.left = y.left = NULL;
        assert_memory_equal(&x, &y, sizeof(x));
}

static void a_record_comes_back_as_it_was_written(void **state)
{
        struct znode_drain items[2] = {example(), {.id = "open", .broker = 1, .epoch = -1, .remaining = -1}};
        struct znode_drains back = {0};
        struct buf out;

        (void)state;
        buf_init(&out, 0);
        assert_int_equal(znode_drains_encode(items, 2, &out), 0);
        assert_int_equal(znode_drains_decode((const char *)out.data, out.len, &back), 0);
        assert_int_equal(back.n, 2);
        assert_same(&items[0], &back.items[0]);
        assert_same(&items[1], &back.items[1]);

        /* cut anywhere, it is no record, and nothing is handed out */
        for (size_t n = 0; n < out.len; n++) {
                struct znode_drains none = {0};

                assert_int_equal(znode_drains_decode((const char *)out.data, n, &none), -EBADMSG);
                assert_null(none.items);
        }
        znode_drains_done(&back);
        znode_drain_done(&items[0]);
        buf_done(&out);
}

static void what_is_strange_is_left_out_and_the_rest_is_read(void **state)
{
        static const char text[] =
                "{\"version\":9,\"new\":[],\"drains\":[17,{\"drain_id\":\"a\",\"broker\":\"4\",\"later\":{}},"
                "{\"drain_id\":\"\",\"broker\":1},{\"drain_id\":\"b\",\"broker\":1,\"moved\":\"x\"},"
                "{\"drain_id\":\"c\",\"broker\":1,\"left\":[{\"topic\":\"t\"}]},"
                "{\"drain_id\":\"d\",\"broker\":1,\"moved\":3}]}";
        struct znode_drains d = {0};

        (void)state;
        assert_int_equal(znode_drains_decode(text, sizeof(text) - 1, &d), 0);
        assert_int_equal(d.n, 2);
        assert_string_equal(d.items[0].id, "a");
        assert_int_equal(d.items[0].broker, 4);
        assert_int_equal(d.items[0].remaining, -1); /* unknown is never zero (L1) */
        assert_string_equal(d.items[1].id, "d");
        assert_int_equal(d.items[1].moved, 3);
        znode_drains_done(&d);
}

static void what_is_no_record_is_refused(void **state)
{
        static const char *const bad[] = {"", "[]", "{}", "{\"drains\":{}}", "{\"drains\":[}", "null"};
        struct znode_drains d = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                assert_int_equal(znode_drains_decode(bad[i], strlen(bad[i]), &d), -EBADMSG);
        assert_null(d.items);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_record_comes_back_as_it_was_written),
                cmocka_unit_test(what_is_strange_is_left_out_and_the_rest_is_read),
                cmocka_unit_test(what_is_no_record_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
