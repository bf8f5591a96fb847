/* The record of drains (D12), with a real ZooKeeper that fails, is slow, or holds what others wrote. */
#include "cluster_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "controller/inspect.h"
#include "wire/error.h"
#include "zk/znode_drains.h"
#include "zk_faults.h"

#define DRAIN_LISTED_MAX 100 /* records kept */

static struct cluster *c;
static struct drain_seen seen;

static int setup(void **state)
{
        (void)state;
        c = cluster_new();
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        zk_faults_clear();
        cluster_free(c);
        return 0;
}

/* --- what the controller tells --- */

struct entry {
        char id[ZNODE_DRAIN_TEXT], verdict[ZNODE_DRAIN_NAME];
        int32_t remaining, moved;
};

struct answer {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool answered, saved;
        size_t n;
        struct entry records[DRAIN_LISTED_MAX];
};

static void on_list(int16_t error, const struct drain_list *list, void *userdata)
{
        struct answer *t = userdata;

        pthread_mutex_lock(&t->lock);
        t->n = 0;
        t->saved = error == KAFKA_NONE && list->saved;
        for (size_t i = 0; error == KAFKA_NONE && i < list->n; i++) {
                struct entry *r = &t->records[t->n++];

                *r = (struct entry){.remaining = list->items[i].remaining, .moved = list->items[i].moved};
                (void)snprintf(r->id, sizeof(r->id), "%s", list->items[i].id);
                (void)snprintf(r->verdict, sizeof(r->verdict), "%s", list->items[i].verdict);
        }
        t->answered = true;
        pthread_cond_signal(&t->changed);
        pthread_mutex_unlock(&t->lock);
}

static struct answer *ask(void)
{
        static struct answer t = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

        t.answered = false;
        controller_drain_list(cluster_active(c), on_list, &t);
        pthread_mutex_lock(&t.lock);
        while (!t.answered)
                pthread_cond_wait(&t.changed, &t.lock);
        pthread_mutex_unlock(&t.lock);
        return &t;
}

static struct entry *find(struct answer *t, const char *id)
{
        for (size_t i = 0; i < t->n; i++)
                if (strcmp(t->records[i].id, id) == 0)
                        return &t->records[i];
        return NULL;
}

struct want {
        const char *id, *verdict;
};

/* Recorded so, and in ZooKeeper. */
static bool recorded(void *userdata)
{
        const struct want *w = userdata;
        struct answer *t = ask();
        const struct entry *r = find(t, w->id);

        return t->saved && r && strcmp(r->verdict, w->verdict) == 0;
}

static void wait_recorded(const char *id, const char *verdict)
{
        struct want w = {id, verdict};

        wait_until(recorded, &w);
}

static void stored(struct znode_drains *ret)
{
        struct seen *s = seen_new();

        assert_int_equal(do_get(c->admin, ZNODE_DRAINS, s), 0);
        assert_int_equal(znode_drains_decode(s->data, strlen(s->data), ret), 0);
        seen_free(s);
}

static void topic(int32_t partitions)
{
        static const int32_t ids[] = {2, 1, 3, 2, 3, 1};

        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", partitions, 3, ids), KAFKA_NONE);
}

/* --- tests --- */

static void a_record_is_opened_with_its_drain_and_closed_with_it(void **state)
{
        struct znode_drains d;

        (void)state;
        cluster_start(c, 3);
        topic(2);
        drain_start(c, 2, -1, "d-1", &seen);
        wait_recorded("d-1", "");
        stored(&d);
        assert_int_equal(d.n, 1);
        assert_string_equal(d.items[0].reason, "test");
        assert_string_equal(d.items[0].requested_by, "me");
        assert_int_equal(d.items[0].broker, 2);
        assert_int_equal(d.items[0].epoch, c->nodes[2].epoch);
        assert_int_equal(d.items[0].leaders, 2);
        assert_int_equal(d.items[0].preferred_led, 2);
        znode_drains_done(&d);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        drain_undo(c, 2, &seen);
        wait_recorded("d-1", "undone");
        assert_int_equal(find(ask(), "d-1")->moved, 2);
        assert_int_equal(find(ask(), "d-1")->remaining, 0);
}

static void a_broken_record_neither_holds_a_drain_up_nor_stays_broken(void **state)
{
        (void)state;
        assert_int_equal(do_create(c->admin, ZNODE_STEPDOWN, "", false), 0);
        assert_int_equal(do_create(c->admin, ZNODE_DRAINS, "{\"drains\":[{]", false), 0);
        cluster_start(c, 3);
        topic(2);
        zk_faults_refuse(ZNODE_DRAINS, -EIO, 3);
        drain_start(c, 2, -1, "d-1", &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        wait_recorded("d-1", "");
        assert_int_equal(zk_faults_left(), 0); /* it was refused three times, and repeated */
        assert_int_equal(ask()->n, 1);
}

static void a_lost_reply_and_a_foreign_write_lose_nothing(void **state)
{
        static const char foreign[] =
                "{\"version\":1,\"drains\":[{\"drain_id\":\"foreign\",\"broker\":9,\"verdict\":\"undone\"}]}";

        (void)state;
        cluster_start(c, 3);
        topic(2);
        zk_faults_lose_replies(ZNODE_DRAINS, 1);
        drain_start(c, 2, -1, "d-1", &seen);
        drain_wait(c, 2, DRAIN_DRAINED, &seen);
        wait_recorded("d-1", "");
        assert_int_equal(do_set(c->admin, ZNODE_DRAINS, foreign, -1), 0);
        drain_undo(c, 2, &seen);
        wait_recorded("foreign", "undone");
        wait_recorded("d-1", "undone");
        assert_int_equal(ask()->n, 2);
}

/* The record is all there is: nobody asks the new controller to go on, and its broker lives. */
static void a_drain_that_nobody_takes_up_again_is_closed(void **state)
{
        char text[256];

        (void)state;
        fixture_take_up_ms = 300;
        node_start(c, 2, NODE_BROKER);
        assert_int_equal(do_create(c->admin, ZNODE_STEPDOWN, "", false), 0);
        (void)snprintf(text, sizeof(text),
                       "{\"drains\":[{\"drain_id\":\"lost\",\"broker\":2,\"epoch\":%lld,\"started_ms\":5},"
                       "{\"drain_id\":\"gone\",\"broker\":7,\"epoch\":3,\"started_ms\":6}]}",
                       (long long)c->nodes[2].epoch);
        assert_int_equal(do_create(c->admin, ZNODE_DRAINS, text, false), 0);
        node_start(c, 1, NODE_CONTROLLER);
        wait_active(c, 1);
        wait_recorded("gone", "drained"); /* it is not there, and leads nothing */
        wait_recorded("lost", "controller-failover");
        assert_int_equal(find(ask(), "lost")->remaining, -1); /* unknown is never zero (L1) */
}

static void the_oldest_records_make_room(void **state)
{
        cleanup_with(buf_donep) struct buf out = {0};
        struct answer *t;

        (void)state;
        buf_init(&out, 0);
        assert_int_equal(buf_append_str(&out, "{\"drains\":["), 0);
        for (int i = 0; i < DRAIN_LISTED_MAX; i++)
                assert_int_equal(
                        buf_printf(&out, "%s{\"drain_id\":\"old-%d\",\"broker\":%d,\"verdict\":\"undone\"}",
                                   i > 0 ? "," : "", i, 50 + i),
                        0);
        assert_int_equal(buf_append(&out, "]}", 3), 0);
        assert_int_equal(do_create(c->admin, ZNODE_STEPDOWN, "", false), 0);
        assert_int_equal(do_create(c->admin, ZNODE_DRAINS, (const char *)out.data, false), 0);
        cluster_start(c, 3);
        topic(1);
        drain_start(c, 2, -1, "new", &seen);
        wait_recorded("new", "");
        t = ask();
        assert_int_equal(t->n, DRAIN_LISTED_MAX);
        assert_null(find(t, "old-0"));
        assert_string_equal(t->records[0].id, "old-1");
        assert_string_equal(t->records[t->n - 1].id, "new");
}

static void ignore_status(int16_t error, const struct drain_status *status, void *userdata)
{
        (void)error;
        (void)status;
        (void)userdata;
}

/* A text that is cut in the middle of a character would make the whole record unreadable. */
static void a_text_is_cut_between_characters(void **state)
{
        char reason[400] = "";
        struct drain_request r = {
                .broker_id = 2, .broker_epoch = -1, .drain_id = "umlauts", .reason = reason};
        struct znode_drains d;

        (void)state;
        for (size_t i = 0; i + 2 < sizeof(reason); i += 2)
                (void)snprintf(reason + i, sizeof(reason) - i, "\xc3\xa4");
        cluster_start(c, 3);
        topic(1);
        controller_drain_start(cluster_active(c), &r, ignore_status, NULL);
        wait_recorded("umlauts", "");
        stored(&d);
        assert_int_equal(strlen(d.items[0].reason), 254);
        znode_drains_done(&d);
}

int main(int argc, char **argv)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_record_is_opened_with_its_drain_and_closed_with_it),
                TEST(a_broken_record_neither_holds_a_drain_up_nor_stays_broken),
                TEST(a_lost_reply_and_a_foreign_write_lose_nothing),
                TEST(a_drain_that_nobody_takes_up_again_is_closed),
                TEST(the_oldest_records_make_room),
                TEST(a_text_is_cut_between_characters),
        };

        if (argc > 1)
                fixture_use_helper(argv[1]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
