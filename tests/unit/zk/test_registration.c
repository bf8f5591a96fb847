#include "zk_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "zk/registration.h"

struct outcome {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int calls, r;
        int64_t epoch, session;
        char cluster_id[64], error[512];
};

static void outcome_init(struct outcome *o)
{
        *o = (struct outcome){.r = 1};
        (void)pthread_mutex_init(&o->lock, NULL);
        (void)pthread_cond_init(&o->changed, NULL);
}

static void on_registered(const struct zk_registration_result *res, void *userdata)
{
        struct outcome *o = userdata;

        (void)pthread_mutex_lock(&o->lock);
        o->calls++;
        o->r = res->r;
        o->epoch = res->broker_epoch;
        o->session = res->session_id;
        (void)snprintf(o->cluster_id, sizeof(o->cluster_id), "%s", res->cluster_id);
        (void)snprintf(o->error, sizeof(o->error), "%s", res->error ? res->error : "");
        (void)pthread_mutex_unlock(&o->lock);
}

static void on_deregistered(int r, void *userdata)
{
        struct outcome *o = userdata;

        (void)pthread_mutex_lock(&o->lock);
        o->calls++;
        o->r = r;
        (void)pthread_mutex_unlock(&o->lock);
}

static bool called(void *userdata)
{
        struct outcome *o = userdata;
        bool yes;

        (void)pthread_mutex_lock(&o->lock);
        yes = o->calls > 0;
        (void)pthread_mutex_unlock(&o->lock);
        return yes;
}

static char plaintext[] = "PLAINTEXT", host_a[] = "broker-a.example", host_b[] = "broker-b.example";

static void start(struct client *c, int32_t id, char *host, struct outcome *o)
{
        struct znode_endpoint e = {.listener = plaintext, .protocol = plaintext, .host = host, .port = 9092};
        struct znode_broker b = {.endpoints = &e, .n_endpoints = 1, .timestamp_ms = 1700000000000};

        outcome_init(o);
        assert_int_equal(zk_register_broker(c->z, c->loop, id, &b, on_registered, o), 0);
}

static void registered(struct client *c, int32_t id, char *host, struct outcome *o)
{
        start(c, id, host, o);
        wait_until(called, o);
        if (o->r != 0)
                print_message("%s\n", o->error);
        assert_int_equal(o->r, 0);
}

static int deregister(struct client *c, int32_t id)
{
        struct outcome o;

        outcome_init(&o);
        assert_int_equal(zk_deregister_broker(c->z, c->loop, id, on_deregistered, &o), 0);
        wait_until(called, &o);
        return o.r;
}

static int n_chroots;

/* Two clients in one chroot. */
static void two_clients(struct client **a, struct client **b, int64_t timeout_ms)
{
        char connect[256];

        (void)snprintf(connect, sizeof(connect), "%s/reg%d", fixture_address(), n_chroots++);
        *a = client_new_at(connect, timeout_ms, 0);
        *b = client_new_at(connect, timeout_ms, 0);
}

static void a_fresh_cluster_gets_its_paths_its_id_and_its_first_broker(void **state)
{
        struct client *a, *b;
        struct outcome one, two;
        struct znode_broker info;
        struct seen got;

        (void)state;
        two_clients(&a, &b, 6000);
        registered(a, 1, host_a, &one);
        registered(b, 2, host_b, &two);

        assert_int_equal(strlen(one.cluster_id), UUID_TEXT_SIZE - 1);
        assert_string_equal(one.cluster_id, two.cluster_id);
        assert_int_equal(one.session, zk_session_id(a->z));
        assert_int_equal(do_get(b, "/brokers/ids/1", &got), 0);
        assert_int_equal(got.stat.czxid, one.epoch);
        assert_int_equal(got.stat.ephemeral_owner, zk_session_id(a->z));
        assert_int_equal(znode_broker_decode(got.data, strlen(got.data), &info), 0);
        assert_string_equal(info.endpoints[0].host, host_a);
        znode_broker_done(&info);
        assert_int_equal(do_exists(b, "/brokers/topics", &got), 0);
        assert_int_equal(do_exists(b, "/admin/delete_topics", &got), 0);
        assert_int_equal(do_exists(b, "/config/changes", &got), 0);
        assert_int_equal(do_exists(b, "/isr_change_notification", &got), 0);
        assert_int_equal(do_exists(b, "/log_dir_event_notification", &got), 0);
        client_free(a);
        client_free(b);
}

static void registering_again_in_the_same_session_keeps_the_epoch(void **state)
{
        struct client *a, *b;
        struct outcome first, same, moved;
        struct seen got;

        (void)state;
        two_clients(&a, &b, 6000);
        registered(a, 1, host_a, &first);
        registered(a, 1, host_a, &same);
        registered(a, 1, host_b, &moved);

        assert_int_equal(same.epoch, first.epoch);
        assert_int_equal(moved.epoch, first.epoch);
        assert_int_equal(do_get(a, "/brokers/ids/1", &got), 0);
        assert_non_null(strstr(got.data, host_b));
        client_free(a);
        client_free(b);
}

/* KAFKA-7165 / ZOOKEEPER-2985. */
static void a_node_of_an_earlier_session_of_ours_that_stays_is_replaced(void **state)
{
        struct proxy *p = proxy_new();
        struct client *c;
        char connect[256];
        struct outcome first, second;
        struct seen got;
        int64_t start_ms;

        (void)state;
        (void)snprintf(connect, sizeof(connect), "%s/own", proxy_address(p));
        c = client_new_at(connect, 15000, 0);
        registered(c, 1, host_a, &first);

        /* The client hears that its session expired, but at the server it lives for 15 s more. */
        proxy_cut_and_feign_expiry(p);
        client_wait_event(c, ZK_EXPIRED, 1);
        assert_int_equal(zk_reopen(c->z), 0);
        client_wait_event(c, ZK_CONNECTED, 2);
        assert_int_equal(do_get(c, "/brokers/ids/1", &got), 0);
        assert_int_equal(got.stat.ephemeral_owner, first.session);
        start_ms = clock_mono_ms();
        registered(c, 1, host_a, &second);

        assert_true(clock_mono_ms() - start_ms >= 1000); /* R84 b: it is given the time to go */
        assert_true(clock_mono_ms() - start_ms < 8000);  /* but not waited for to the end of its session */
        assert_true(second.epoch > first.epoch);
        assert_int_equal(do_get(c, "/brokers/ids/1", &got), 0);
        assert_int_equal(got.stat.ephemeral_owner, zk_session_id(c->z));
        client_free(c);
        proxy_free(p);
}

static bool node_there(void *userdata)
{
        struct seen got;

        return do_exists(userdata, "/brokers/ids/1", &got) == 0;
}

/* R84 b: everybody waits for the deletion, and the first one wins. The node that takes the place of our old
 * one has the same version; deleting by version at once would hit it. */
static void who_came_first_after_an_own_old_node_keeps_the_id(void **state)
{
        struct proxy *p = proxy_new();
        struct client *c, *other;
        struct outcome first, again;
        struct seen *s = seen_new(), got;
        const struct zk_op swap[] = {
                {ZK_OP_DELETE, "/brokers/ids/1", NULL, -1},
                {ZK_OP_CREATE_EPHEMERAL, "/brokers/ids/1", NULL, 0},
                {ZK_OP_SET, "/brokers/ids/1", "{}", 0},
        };
        char connect[256];

        (void)state;
        (void)snprintf(connect, sizeof(connect), "%s/first", proxy_address(p));
        c = client_new_at(connect, 15000, 0);
        (void)snprintf(connect, sizeof(connect), "%s/first", fixture_address());
        other = client_new_at(connect, 15000, 0);
        registered(c, 1, host_a, &first);
        client_connected(other);
        proxy_cut_and_feign_expiry(p);
        client_wait_event(c, ZK_EXPIRED, 1);
        assert_int_equal(zk_reopen(c->z), 0);
        client_wait_event(c, ZK_CONNECTED, 2);
        start(c, 1, host_a, &again);
        assert_int_equal(zk_multi(other->z, other->loop, swap, ARRAY_SIZE(swap), on_seen, s), 0);
        assert_int_equal(seen_wait(s), 0);
        wait_until(called, &again);

        assert_int_equal(again.r, -EEXIST);
        assert_int_equal(do_get(other, "/brokers/ids/1", &got), 0);
        assert_int_equal(got.stat.ephemeral_owner, zk_session_id(other->z));
        client_free(c);
        client_free(other);
        proxy_free(p);
        seen_free(s);
}

/* KAFKA-14845: the create is done, its reply lost, and then the session. */
static void a_create_whose_reply_was_lost_before_the_expiry_is_recognised_as_ours(void **state)
{
        struct proxy *p = proxy_new();
        struct client *c, *other;
        char connect[256];
        struct outcome warm_up, lost, again;

        (void)state;
        (void)snprintf(connect, sizeof(connect), "%s/lost", proxy_address(p));
        c = client_new_at(connect, 15000, 0);
        (void)snprintf(connect, sizeof(connect), "%s/lost", fixture_address());
        other = client_new_at(connect, 15000, 0);
        registered(other, 7, host_b, &warm_up);
        client_connected(c);

        /* The reply of the very create is what gets lost: the steps before it need theirs. */
        struct seen *s = seen_new();
        proxy_swallow_replies(p);
        assert_int_equal(zk_create(c->z, c->loop, "/brokers/ids/1", "{}", true, false, on_seen, s), 0);
        wait_until(node_there, other);
        start(c, 1, host_a, &lost);
        proxy_cut_and_feign_expiry(p);
        client_wait_event(c, ZK_EXPIRED, 1);
        wait_until(called, &lost);
        assert_int_equal(lost.r, -EOWNERDEAD);
        assert_true(seen_wait(s) < 0);

        assert_int_equal(zk_reopen(c->z), 0);
        registered(c, 1, host_a, &again);

        assert_int_equal(again.session, zk_session_id(c->z));
        assert_int_equal(lost.calls, 1);
        client_free(c);
        client_free(other);
        proxy_free(p);
        seen_free(s);
}

static void a_live_broker_with_the_same_id_is_named_after_a_bounded_wait(void **state)
{
        struct client *a, *b;
        struct outcome first, second;
        char session[32];
        int64_t start_ms;

        (void)state;
        two_clients(&a, &b, 1000);
        registered(a, 1, host_a, &first);
        start_ms = clock_mono_ms();
        start(b, 1, host_b, &second);
        wait_until(called, &second);

        assert_int_equal(second.r, -EEXIST);
        assert_true(clock_mono_ms() - start_ms >= 1000); /* an expiring session gets its time */
        (void)snprintf(session, sizeof(session), "0x%llx", (unsigned long long)zk_session_id(a->z));
        assert_non_null(strstr(second.error, session));
        assert_non_null(strstr(second.error, host_a));
        assert_non_null(strstr(second.error, "9092"));
        assert_non_null(strstr(second.error, "since 2023-11-14T22:13:20Z")); /* host_a's time stamp */
        client_free(a);
        client_free(b);
}

/* A registration that began on @c has got as far as it can: its steps and these round trips alternate. */
static void let_it_wait(struct client *c, const struct outcome *o)
{
        struct seen got;

        for (int i = 0; i < 12; i++)
                assert_int_equal(do_exists(c, "/brokers/ids/1", &got), 0);
        assert_int_equal(o->calls, 0);
}

static void a_dying_predecessor_is_waited_for(void **state)
{
        struct client *a, *b;
        struct outcome first, second;
        int64_t start_ms;

        (void)state;
        two_clients(&a, &b, 10000);
        registered(a, 1, host_a, &first);
        start(b, 1, host_b, &second);
        let_it_wait(b, &second);
        start_ms = clock_mono_ms();
        client_free(a);
        wait_until(called, &second);

        assert_int_equal(second.r, 0);
        assert_true(clock_mono_ms() - start_ms < 5000); /* by the watch: the deadline is 13.5 s away */
        assert_true(second.epoch > first.epoch);
        client_free(b);
}

/* R84 (c). */
static void an_owner_that_changes_while_we_wait_ends_the_wait(void **state)
{
        struct client *a, *b;
        struct outcome first, second;
        struct seen *s = seen_new();
        const struct zk_op swap[] = {
                {ZK_OP_DELETE, "/brokers/ids/1", NULL, -1},
                {ZK_OP_CREATE_EPHEMERAL, "/brokers/ids/1", "{}", 0},
        };
        char connect[256];
        struct client *third;

        (void)state;
        two_clients(&a, &b, 10000);
        (void)snprintf(connect, sizeof(connect), "%s/reg%d", fixture_address(), n_chroots - 1);
        third = client_new_at(connect, 10000, 0);
        registered(a, 1, host_a, &first);
        start(b, 1, host_b, &second);
        let_it_wait(b, &second);
        assert_int_equal(zk_multi(third->z, third->loop, swap, ARRAY_SIZE(swap), on_seen, s), 0);
        assert_int_equal(seen_wait(s), 0);
        wait_until(called, &second);

        assert_int_equal(second.r, -EEXIST);
        assert_non_null(strstr(second.error, "while we waited"));
        client_free(a);
        client_free(b);
        client_free(third);
        seen_free(s);
}

static void expiry_or_close_while_waiting_is_reported_once(void **state)
{
        struct client *a, *b;
        struct outcome first, expired, cancelled;

        (void)state;
        two_clients(&a, &b, 10000);
        registered(a, 1, host_a, &first);
        start(b, 1, host_b, &expired);
        let_it_wait(b, &expired);
        zk_test_kill_session(fixture_address(), zk_session_id(b->z));
        wait_until(called, &expired);
        assert_int_equal(expired.r, -EOWNERDEAD);

        client_wait_event(b, ZK_EXPIRED, 1);
        assert_int_equal(zk_reopen(b->z), 0);
        start(b, 1, host_b, &cancelled);
        let_it_wait(b, &cancelled);
        client_free(b);
        assert_int_equal(cancelled.calls, 1);
        assert_int_equal(cancelled.r, -ECANCELED);
        assert_int_equal(expired.calls, 1);
        client_free(a);
}

static void deregistering_deletes_the_own_node_only(void **state)
{
        struct client *a, *b;
        struct outcome first;
        struct seen got;

        (void)state;
        two_clients(&a, &b, 6000);
        registered(a, 1, host_a, &first);

        assert_int_equal(deregister(b, 1), 0);
        assert_int_equal(do_exists(b, "/brokers/ids/1", &got), 0);
        assert_int_equal(deregister(a, 1), 0);
        assert_int_equal(do_exists(b, "/brokers/ids/1", &got), -ENOENT);
        assert_int_equal(deregister(a, 1), 0);
        client_free(a);
        client_free(b);
}

#define TEST(f) cmocka_unit_test_teardown(f, fixture_server_go_on)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(a_fresh_cluster_gets_its_paths_its_id_and_its_first_broker),
                TEST(registering_again_in_the_same_session_keeps_the_epoch),
                TEST(a_node_of_an_earlier_session_of_ours_that_stays_is_replaced),
                TEST(who_came_first_after_an_own_old_node_keeps_the_id),
                TEST(a_create_whose_reply_was_lost_before_the_expiry_is_recognised_as_ours),
                TEST(a_live_broker_with_the_same_id_is_named_after_a_bounded_wait),
                TEST(a_dying_predecessor_is_waited_for),
                TEST(an_owner_that_changes_while_we_wait_ends_the_wait),
                TEST(expiry_or_close_while_waiting_is_reported_once),
                TEST(deregistering_deletes_the_own_node_only),
        };

        if (argc < 2)
                return 77;
        fixture_use_helper(argv[1]);
        slog_set_level(argc > 2 ? SLOG_DEBUG : SLOG_ERROR);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
