#include "zk_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"

static void two_thousand_pipelined_sets_complete_in_order_and_quickly(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new(), got;
        int64_t start_ms;
        char text[32];

        (void)state;
        client_connected(c);
        assert_int_equal(do_create(c, "/n", "", false), 0);

        /* Each carries the version its predecessor makes: any reordering is a conflict. */
        start_ms = clock_mono_ms();
        for (int i = 0; i < 2000; i++) {
                (void)snprintf(text, sizeof(text), "%d", i);
                assert_int_equal(zk_set(c->z, c->loop, "/n", text, i, on_seen, s), 0);
        }
        seen_wait_calls(s, 2000);

        assert_int_equal(s->r, 0);
        assert_int_equal(s->stat.version, 2000);
        assert_int_equal(do_get(c, "/n", &got), 0);
        assert_string_equal(got.data, "1999");
        print_message("2000 sets in %lld ms\n", (long long)(clock_mono_ms() - start_ms));
        seen_free(s);
        client_free(c);
}

static void operations_of_every_kind_return_what_the_server_has(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new(), got;

        (void)state;
        /* Not connected yet: they wait for the session. */
        assert_int_equal(do_create(c, "/a", "hello", false), 0);
        assert_int_equal(do_create(c, "/a", "again", false), -EEXIST);
        assert_int_equal(do_create(c, "/x/y", "", false), -ENOENT);
        assert_int_equal(do_create(c, "/a/b", NULL, false), 0);
        assert_int_equal(do_get(c, "/a", &got), 0);
        assert_string_equal(got.data, "hello");
        assert_int_equal(got.stat.num_children, 1);
        assert_int_equal(do_get(c, "/a/b", &got), 0);
        assert_false(got.has_data);
        assert_int_equal(do_exists(c, "/none", &got), -ENOENT);
        assert_int_equal(do_set(c, "/a", "new", 7), -ESTALE);
        assert_int_equal(do_delete(c, "/a", -1), -ENOTEMPTY);
        assert_int_equal(zk_children(c->z, c->loop, "/a", NULL, on_seen, s), 0);
        assert_int_equal(seen_wait(s), 0);
        assert_int_equal(s->n_children, 1);
        assert_int_equal(zk_sync(c->z, c->loop, on_seen, s), 0);
        seen_wait_calls(s, 2);
        assert_int_equal(s->r, 0);
        assert_int_equal(zk_children(c->z, c->loop, "/", NULL, on_seen, s), 0);
        seen_wait_calls(s, 3);
        assert_int_equal(s->n_children, 1);
        assert_int_equal(do_delete(c, "/a/b", 0), 0);
        assert_int_equal(do_delete(c, "/a", -1), 0);
        seen_free(s);
        client_free(c);
}

static void a_created_path_is_returned_without_the_chroot(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new();

        (void)state;
        assert_int_equal(zk_create(c->z, c->loop, "/seq_", "x", false, true, on_seen, s), 0);
        assert_int_equal(seen_wait(s), 0);
        assert_string_equal(s->data, "/seq_0000000000");
        seen_free(s);
        client_free(c);
}

static void malformed_arguments_are_refused_at_once(void **state)
{
        struct client *c = client_new(6000, 0);
        char *big = calloc(1, 1000002);
        struct zk_op op = {ZK_OP_SET, "/a", big, -1};
        struct zk *none = NULL;
        struct zk_options o = {.connect = "127.0.0.1:x", .session_timeout_ms = 1, .event_loop = c->loop};

        (void)state;
        assert_int_equal(zk_get(c->z, c->loop, "a", NULL, on_seen, NULL), -EINVAL);
        assert_int_equal(zk_get(c->z, c->loop, "/a/", NULL, on_seen, NULL), -EINVAL);
        assert_int_equal(zk_get(c->z, c->loop, "/a//b", NULL, on_seen, NULL), -EINVAL);
        assert_int_equal(zk_get(c->z, c->loop, "", NULL, on_seen, NULL), -EINVAL);
        memset(big, 'x', 1000001);
        assert_int_equal(zk_set(c->z, c->loop, "/a", big, -1, on_seen, NULL), -EINVAL);
        assert_int_equal(zk_multi(c->z, c->loop, &op, 1, on_seen, NULL), -EINVAL);
        assert_int_equal(zk_multi(c->z, c->loop, &op, 0, on_seen, NULL), -EINVAL);
        assert_int_equal(zk_new(&o, &none), -EINVAL);
        o.connect = "";
        assert_int_equal(zk_new(&o, &none), -EINVAL);
        o.connect = "a:1,,b:2";
        assert_int_equal(zk_new(&o, &none), -EINVAL);
        free(big);
        client_free(c);
}

static void a_multi_applies_all_and_returns_the_stat_of_its_set(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new(), got;
        const struct zk_op ops[] = {
                {ZK_OP_CREATE_EPHEMERAL, "/e", NULL, 0},
                {ZK_OP_SET, "/e", "data", 0},
                {ZK_OP_CHECK, "/e", NULL, 1},
        };

        (void)state;
        assert_int_equal(zk_multi(c->z, c->loop, ops, ARRAY_SIZE(ops), on_seen, s), 0);
        assert_int_equal(seen_wait(s), 0);
        assert_int_equal(s->n_ops, 3);
        for (int i = 0; i < 3; i++)
                assert_int_equal(s->op_results[i], 0);
        /* The czxid of the create comes back in the stat of the set: the broker epoch (KIP-380). */
        assert_int_equal(s->stat.version, 1);
        assert_int_equal(s->stat.ephemeral_owner, zk_session_id(c->z));
        assert_int_equal(do_get(c, "/e", &got), 0);
        assert_int_equal(got.stat.czxid, s->stat.czxid);
        assert_string_equal(got.data, "data");
        seen_free(s);
        client_free(c);
}

static void a_failing_multi_names_the_operation_and_changes_nothing(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new(), got;
        const struct zk_op ops[] = {
                {ZK_OP_SET, "/n", "new", -1},
                {ZK_OP_CHECK, "/n", NULL, 99},
                {ZK_OP_DELETE, "/n", NULL, -1},
        };

        (void)state;
        assert_int_equal(do_create(c, "/n", "old", false), 0);
        assert_int_equal(zk_multi(c->z, c->loop, ops, ARRAY_SIZE(ops), on_seen, s), 0);
        assert_int_equal(seen_wait(s), -ESTALE);
        assert_int_equal(s->op_results[0], 0);
        assert_int_equal(s->op_results[1], -ESTALE);
        assert_int_equal(s->op_results[2], -ECANCELED);
        assert_int_equal(do_get(c, "/n", &got), 0);
        assert_string_equal(got.data, "old");
        seen_free(s);
        client_free(c);
}

#define N_STATES  10000
#define PER_MULTI 250

/* How a drain writes (D6): each multi checks the epoch and moves up to 250 partitions. */
static void ten_thousand_states_are_written_in_checked_multis(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new(), got;
        static char paths[N_STATES][32];
        struct zk_op ops[PER_MULTI + 1] = {{ZK_OP_CHECK, "/epoch", NULL, 0}};
        int64_t start_ms;
        int calls = 0;

        (void)state;
        assert_int_equal(do_create(c, "/epoch", "1", false), 0);
        for (int i = 0; i < N_STATES; i++)
                (void)snprintf(paths[i], sizeof(paths[i]), "/state-%d", i);
        for (int round = 0; round < 2; round++) {
                start_ms = clock_mono_ms();
                for (int i = 0; i < N_STATES; i += PER_MULTI) {
                        for (int k = 0; k < PER_MULTI; k++)
                                ops[k + 1] =
                                        (struct zk_op){round == 0 ? ZK_OP_CREATE : ZK_OP_SET, paths[i + k],
                                                       "{\"controller_epoch\":5,\"leader\":1,\"version\":1,"
                                                       "\"leader_epoch\":3,\"isr\":[1,2,3]}",
                                                       0};
                        assert_int_equal(zk_multi(c->z, c->loop, ops, PER_MULTI + 1, on_seen, s), 0);
                        calls++;
                }
                seen_wait_calls(s, calls);
                assert_int_equal(s->r, 0);
        }
        print_message("%d sets in multis of %d: %lld ms\n", N_STATES, PER_MULTI,
                      (long long)(clock_mono_ms() - start_ms));
        assert_int_equal(do_get(c, paths[N_STATES - 1], &got), 0);
        assert_int_equal(got.stat.version, 1);

        /* Another controller has taken over: nothing of the next one is applied. */
        assert_int_equal(do_set(c, "/epoch", "2", -1), 0);
        assert_int_equal(zk_multi(c->z, c->loop, ops, PER_MULTI + 1, on_seen, s), 0);
        seen_wait_calls(s, calls + 1);
        assert_int_equal(s->r, -ESTALE);
        assert_int_equal(s->op_results[0], -ESTALE);
        assert_int_equal(s->op_results[1], -ECANCELED);
        seen_free(s);
        client_free(c);
}

static void a_watch_fires_once_with_the_path_of_the_caller(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new();

        (void)state;
        assert_int_equal(do_create(c, "/n", "0", false), 0);
        assert_int_equal(zk_get(c->z, c->loop, "/n", on_seen_watch, on_seen, s), 0);
        assert_int_equal(seen_wait(s), 0);

        assert_int_equal(do_set(c, "/n", "1", -1), 0);
        seen_wait_watch(s, 1);
        assert_string_equal(s->watch_path, "/n");
        assert_int_equal(do_set(c, "/n", "2", -1), 0);
        assert_int_equal(do_set(c, "/n", "3", -1), 0);
        assert_int_equal(s->watch_calls, 1);

        client_free(c);
        assert_int_equal(s->watch_calls, 1);
        seen_free(s);
}

static void an_exists_watch_waits_for_the_creation_and_a_failed_get_arms_none(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *exists = seen_new(), *get = seen_new(), *children = seen_new();

        (void)state;
        assert_int_equal(do_create(c, "/dir", NULL, false), 0);
        assert_int_equal(zk_exists(c->z, c->loop, "/dir/n", on_seen_watch, on_seen, exists), 0);
        assert_int_equal(zk_get(c->z, c->loop, "/dir/n", on_seen_watch, on_seen, get), 0);
        assert_int_equal(zk_children(c->z, c->loop, "/dir", on_seen_watch, on_seen, children), 0);
        assert_int_equal(seen_wait(exists), -ENOENT);
        assert_int_equal(seen_wait(get), -ENOENT);
        assert_int_equal(seen_wait(children), 0);

        assert_int_equal(do_create(c, "/dir/n", NULL, false), 0);
        seen_wait_watch(exists, 1);
        seen_wait_watch(children, 1);
        client_free(c);
        assert_int_equal(get->watch_calls, 0);
        seen_free(exists);
        seen_free(get);
        seen_free(children);
}

#define TEST(f) cmocka_unit_test_teardown(f, fixture_server_go_on)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(two_thousand_pipelined_sets_complete_in_order_and_quickly),
                TEST(operations_of_every_kind_return_what_the_server_has),
                TEST(a_created_path_is_returned_without_the_chroot),
                TEST(malformed_arguments_are_refused_at_once),
                TEST(a_multi_applies_all_and_returns_the_stat_of_its_set),
                TEST(a_failing_multi_names_the_operation_and_changes_nothing),
                TEST(ten_thousand_states_are_written_in_checked_multis),
                TEST(a_watch_fires_once_with_the_path_of_the_caller),
                TEST(an_exists_watch_waits_for_the_creation_and_a_failed_get_arms_none),
        };

        if (argc < 2)
                return 77;
        fixture_use_helper(argv[1]);
        slog_set_level(argc > 2 ? SLOG_DEBUG : SLOG_ERROR);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
