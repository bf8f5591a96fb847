/* client/: every allocation fails once; each request accepted is answered exactly once. */
#include "client_fixture.h"

#include "tests/support/alloc_torture.h"

#define API_VERSIONS 18

struct tally {
        struct loop *loop;
        int answers;
};

static void on_answer(int r, const void *response, struct arena *arena, void *userdata)
{
        struct tally *t = userdata;

        (void)arena;
        assert_true(r < 0 || response);
        t->answers++;
        loop_stop(t->loop);
}

static int give_up(struct loop *l, void *userdata)
{
        (void)userdata;
        loop_stop(l);
        return 0;
}

/* Returns whether an allocation failed on the way. */
static bool one_run(const struct fixture *broker, const char *host, int n)
{
        const struct kclient_options o = {.client_id = "torture", .reconnect_backoff_ms = 1};
        const struct api_versions_request body = {0};
        cleanup_with(loop_freep) struct loop *l = NULL;
        struct kclient *c = NULL;
        struct loop_timer *guard = NULL;
        struct tally t = {0};
        bool accepted = false, hit;

        assert_int_equal(loop_new("torture", &l), 0);
        t.loop = l;
        torture_arm(n);
        if (loop_add_timer(l, give_up, NULL, &guard) == 0 && kclient_new(l, host, broker->port, &o, &c) == 0)
                accepted =
                        kclient_request(c, wire_api_find(API_VERSIONS), 0, &body, 2000, on_answer, &t) == 0;
        if (accepted) {
                loop_timer_arm(guard, DEADLINE_MS, 0);
                assert_int_equal(loop_run(l), 0);
        }
        hit = torture_disarm();
        assert_true(accepted || hit);
        assert_int_equal(t.answers, accepted);
        c = kclient_free(c);
        assert_int_equal(t.answers, accepted);
        guard = loop_timer_remove(guard);
        return hit;
}

static void torture(const char *host)
{
        struct fixture broker;
        bool hit = true;

        fixture_init(&broker, NULL);
        assert_int_equal(loop_thread_start(broker.loop), 0);
        for (int n = 1; hit; n++)
                hit = one_run(&broker, host, n);
        loop_stop(broker.loop);
        loop_thread_join(broker.loop);
        fixture_done(&broker);
}

static void asking_an_address_survives_every_allocation_failing(void **state)
{
        (void)state;
        torture("127.0.0.1");
}

static void asking_a_name_survives_every_allocation_failing(void **state)
{
        (void)state;
        torture("localhost");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(asking_an_address_survives_every_allocation_failing),
                cmocka_unit_test(asking_a_name_survives_every_allocation_failing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
