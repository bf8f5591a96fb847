#include "zk_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "zk/producer_ids.h"

#define PER_BROKER 2500

struct ids {
        pthread_mutex_t lock;
        int calls, failed, last_r;
        int64_t got[2 * PER_BROKER];
};

static struct ids ids = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void on_id(int r, int64_t id, void *userdata)
{
        (void)userdata;
        (void)pthread_mutex_lock(&ids.lock);
        ids.last_r = r;
        if (r < 0)
                ids.failed++;
        else
                ids.got[ids.calls - ids.failed] = id;
        ids.calls++;
        (void)pthread_mutex_unlock(&ids.lock);
}

static bool all_called(void *userdata)
{
        bool yes;

        (void)pthread_mutex_lock(&ids.lock);
        yes = ids.calls >= *(int *)userdata;
        (void)pthread_mutex_unlock(&ids.lock);
        return yes;
}

static void await(int calls)
{
        wait_until(all_called, &calls);
}

static int compare(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

static struct client *client_in(const char *chroot)
{
        char connect[256];

        (void)snprintf(connect, sizeof(connect), "%s%s", fixture_address(), chroot);
        return client_new_at(connect, 6000, 0);
}

static int reset(void **state)
{
        (void)state;
        ids.calls = ids.failed = ids.last_r = 0;
        return 0;
}

static void on_ids(int r, int64_t first, int32_t n, void *userdata)
{
        (void)userdata;
        for (int64_t id = first; id < first + n; id++)
                on_id(r, id, NULL);
}

/* K3, AllocateProducerIds: what another broker gets is nobody else's, and is never empty. */
static void what_is_left_of_a_block_can_be_given_away_as_a_whole(void **state)
{
        struct client *c = client_in("/whole");
        struct producer_ids *p;

        (void)state;
        assert_int_equal(do_create(c, "/latest_producer_id_block", NULL, false), 0);
        assert_int_equal(producer_ids_new(c->z, c->loop, 5, &p), 0);
        assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
        assert_int_equal(producer_ids_take(p, on_ids, NULL), 0);
        await(1000);
        assert_int_equal(producer_ids_take(p, on_ids, NULL), 0);
        await(2000);
        assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
        await(2001);

        assert_int_equal(ids.failed, 0);
        qsort(ids.got, 2001, sizeof(ids.got[0]), compare);
        for (int i = 0; i < 2001; i++)
                assert_int_equal(ids.got[i], i);
        producer_ids_free(p);
        client_free(c);
}

static void two_brokers_never_hand_out_the_same_id(void **state)
{
        struct client *a = client_in("/two"), *b = client_in("/two");
        struct producer_ids *pa, *pb;

        (void)state;
        assert_int_equal(do_create(a, "/latest_producer_id_block", NULL, false), 0);
        assert_int_equal(producer_ids_new(a->z, a->loop, 1, &pa), 0);
        assert_int_equal(producer_ids_new(b->z, b->loop, 2, &pb), 0);
        for (int i = 0; i < PER_BROKER; i++) {
                assert_int_equal(producer_ids_next(pa, on_id, NULL), 0);
                assert_int_equal(producer_ids_next(pb, on_id, NULL), 0);
        }
        await(2 * PER_BROKER);

        assert_int_equal(ids.failed, 0);
        qsort(ids.got, 2 * PER_BROKER, sizeof(ids.got[0]), compare);
        assert_int_equal(ids.got[0], 0);
        for (int i = 1; i < 2 * PER_BROKER; i++)
                assert_true(ids.got[i] > ids.got[i - 1]);
        assert_true(ids.got[2 * PER_BROKER - 1] < 6000); /* 3 blocks each */
        producer_ids_free(pa);
        producer_ids_free(pb);
        client_free(a);
        client_free(b);
}

static void a_restarted_broker_takes_a_new_block_in_kafkas_format(void **state)
{
        struct client *c = client_in("/again");
        struct producer_ids *p;
        struct seen got;

        (void)state;
        assert_int_equal(do_create(c, "/latest_producer_id_block", NULL, false), 0);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(producer_ids_new(c->z, c->loop, 5, &p), 0);
                assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
                await(i + 1);
                producer_ids_free(p);
        }
        assert_int_equal(ids.got[0], 0);
        assert_int_equal(ids.got[1], 1000);
        assert_int_equal(do_get(c, "/latest_producer_id_block", &got), 0);
        assert_string_equal(got.data,
                            "{\"version\":1,\"broker\":5,\"block_start\":\"1000\",\"block_end\":\"1999\"}");
        client_free(c);
}

static void an_unreadable_or_exhausted_block_is_an_error_for_everybody_who_waits(void **state)
{
        struct client *c = client_in("/bad");
        struct producer_ids *p;

        (void)state;
        assert_int_equal(producer_ids_new(c->z, c->loop, 5, &p), 0);
        assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
        await(1);
        assert_int_equal(ids.last_r, -ENOENT);
        assert_int_equal(do_create(c, "/latest_producer_id_block", "rubbish", false), 0);
        assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
        assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
        await(3);
        assert_int_equal(ids.last_r, -EBADMSG);
        assert_int_equal(do_set(c, "/latest_producer_id_block",
                                "{\"version\":1,\"broker\":5,\"block_start\":\"9223372036854774808\","
                                "\"block_end\":\"9223372036854775807\"}",
                                -1),
                         0);
        assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
        await(4);
        assert_int_equal(ids.last_r, -EOVERFLOW);
        assert_int_equal(ids.failed, 4);
        producer_ids_free(p);
        client_free(c);
}

static void freeing_it_answers_who_waits(void **state)
{
        struct client *c = client_in("/free");
        struct producer_ids *p;

        (void)state;
        client_connected(c);
        assert_int_equal(do_create(c, "/latest_producer_id_block", NULL, false), 0);
        assert_int_equal(producer_ids_new(c->z, c->loop, 5, &p), 0);
        for (int i = 0; i < 100; i++)
                assert_int_equal(producer_ids_next(p, on_id, NULL), 0);
        producer_ids_free(p);
        client_free(c);
        assert_int_equal(ids.calls, 100);
        assert_true(ids.failed == 0 || ids.last_r == -ECANCELED);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(two_brokers_never_hand_out_the_same_id, reset),
                cmocka_unit_test_setup(what_is_left_of_a_block_can_be_given_away_as_a_whole, reset),
                cmocka_unit_test_setup(a_restarted_broker_takes_a_new_block_in_kafkas_format, reset),
                cmocka_unit_test_setup(an_unreadable_or_exhausted_block_is_an_error_for_everybody_who_waits,
                                       reset),
                cmocka_unit_test_setup(freeing_it_answers_who_waits, reset),
        };

        if (argc < 2)
                return 77;
        fixture_use_helper(argv[1]);
        slog_set_level(argc > 2 ? SLOG_DEBUG : SLOG_ERROR);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
