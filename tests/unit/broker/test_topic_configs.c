/* Topic settings from a ZooKeeper whose answers the test makes up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "topic_configs.h"

/* The calls that wait for an answer, oldest first. */
static struct call {
        enum { GET, CHILDREN, DELAY } what;
        char path[128];
        zk_watch_fn watch;
        zk_fn fn;
        void *userdata;
} calls[16];
static size_t n_calls;

static struct call *add(void)
{
        assert_true(n_calls < ARRAY_SIZE(calls));
        return &calls[n_calls++];
}

int __wrap_zk_get(struct zk *z, struct loop *l, const char *path, zk_watch_fn watch, zk_fn fn,
                  void *userdata);
int __wrap_zk_children(struct zk *z, struct loop *l, const char *path, zk_watch_fn watch, zk_fn fn,
                       void *userdata);
int __wrap_zk_delay(struct zk *z, struct loop *l, int64_t delay_ms, zk_fn fn, void *userdata);

int __wrap_zk_get(struct zk *z, struct loop *l, const char *path, zk_watch_fn watch, zk_fn fn, void *userdata)
{
        struct call *c = add();

        (void)z;
        (void)l;
        *c = (struct call){.what = GET, .watch = watch, .fn = fn, .userdata = userdata};
        (void)snprintf(c->path, sizeof(c->path), "%s", path);
        return 0;
}

int __wrap_zk_children(struct zk *z, struct loop *l, const char *path, zk_watch_fn watch, zk_fn fn,
                       void *userdata)
{
        struct call *c = add();

        (void)z;
        (void)l;
        *c = (struct call){.what = CHILDREN, .watch = watch, .fn = fn, .userdata = userdata};
        (void)snprintf(c->path, sizeof(c->path), "%s", path);
        return 0;
}

int __wrap_zk_delay(struct zk *z, struct loop *l, int64_t delay_ms, zk_fn fn, void *userdata)
{
        (void)z;
        (void)l;
        assert_true(delay_ms > 0); /* never a tight loop */
        *add() = (struct call){.what = DELAY, .fn = fn, .userdata = userdata};
        return 0;
}

/* Answer the oldest call. */
static void answer(int what, int r, const char *data)
{
        struct call c = calls[0];

        assert_true(n_calls > 0);
        assert_int_equal(c.what, what);
        memmove(&calls[0], &calls[1], --n_calls * sizeof(calls[0]));
        c.fn(&(struct zk_result){.r = r, .data = data, .data_len = data ? strlen(data) : 0}, c.userdata);
}

/* Answer the oldest call, for the children of /config/changes. */
static void answer_changes(const char *const *children, size_t n)
{
        struct call c = calls[0];

        assert_true(n_calls > 0);
        assert_int_equal(c.what, CHILDREN);
        memmove(&calls[0], &calls[1], --n_calls * sizeof(calls[0]));
        c.fn(&(struct zk_result){.children = children, .n_children = n}, c.userdata);
}

struct fixture {
        struct topic_configs *configs;
        char brokers[64];
        int ready, told;
        int32_t min_isr;
};

static void on_config(const char *topic, const struct topic_config *c, void *userdata)
{
        struct fixture *f = userdata;

        assert_string_equal(topic, "orders");
        f->told++;
        f->min_isr = c->min_insync_replicas;
}

static void on_broker_change(const char *name, void *userdata)
{
        struct fixture *f = userdata;
        size_t n = strlen(f->brokers);

        (void)snprintf(f->brokers + n, sizeof(f->brokers) - n, "%s ", name ? name : "any");
}

static void on_ready(void *userdata)
{
        ((struct fixture *)userdata)->ready++;
}

static void set_up(struct fixture *f)
{
        struct topic_configs_options o = {
                .on_config = on_config, .on_broker_change = on_broker_change, .userdata = f};

        *f = (struct fixture){.min_isr = -1};
        n_calls = 0;
        log_config_default(&o.defaults);
        assert_int_equal(topic_configs_new(&o, &f->configs), 0);
}

static void tear_down(struct fixture *f)
{
        assert_int_equal(n_calls, 0);
        f->configs = topic_configs_free(f->configs);
}

static void prepare(struct fixture *f, bool fresh)
{
        struct api_topic topic = {.name = "orders", .fresh = fresh};

        assert_int_equal(topic_configs_prepare(f->configs, &topic, 1, on_ready, f), 0);
}

#define TWO "{\"version\":1,\"config\":{\"min.insync.replicas\":\"2\"}}"

static void a_topic_is_ready_when_its_settings_have_been_read(void **state)
{
        struct fixture f;

        (void)state;
        set_up(&f);
        prepare(&f, false);
        assert_int_equal(f.ready, 0);
        assert_string_equal(calls[0].path, "/config/topics/orders");
        answer(GET, 0, TWO);
        assert_int_equal(f.ready, 1);
        assert_int_equal(f.min_isr, 2);
        prepare(&f, false); /* known: nobody is asked */
        assert_int_equal(f.ready, 2);
        tear_down(&f);
}

static void a_read_that_was_lost_is_tried_again_and_waited_for(void **state)
{
        static const int lost[] = {-ECONNRESET, -ETIMEDOUT};
        struct fixture f;

        (void)state;
        set_up(&f);
        prepare(&f, false);
        for (size_t i = 0; i < ARRAY_SIZE(lost); i++) {
                answer(GET, lost[i], NULL);
                assert_int_equal(f.ready, 0); /* not with the defaults: min.insync.replicas would be 1 */
                answer(DELAY, 0, NULL);
        }
        answer(GET, 0, TWO);
        assert_int_equal(f.ready, 1);
        assert_int_equal(f.min_isr, 2);
        tear_down(&f);
}

static void with_the_session_gone_the_wait_ends_and_the_topic_is_read_again_later(void **state)
{
        struct fixture f;

        (void)state;
        set_up(&f);
        prepare(&f, false);
        answer(GET, -EOWNERDEAD, NULL);
        assert_int_equal(f.ready, 1);
        assert_int_equal(f.told, 0);

        prepare(&f, false);
        answer(GET, -ETIMEDOUT, NULL);
        answer(DELAY, -EOWNERDEAD, NULL);
        assert_int_equal(f.ready, 2);
        assert_int_equal(f.told, 0);

        prepare(&f, false);
        answer(GET, -ENOENT, NULL); /* no settings of its own */
        assert_int_equal(f.ready, 3);
        assert_int_equal(f.told, 1);
        assert_int_equal(f.min_isr, 0);
        tear_down(&f);
}

static void a_new_topic_of_an_old_name_is_read_anew(void **state)
{
        struct fixture f;

        (void)state;
        set_up(&f);
        prepare(&f, false);
        answer(GET, 0, TWO);
        prepare(&f, true);
        answer(GET, -ENOENT, NULL);
        assert_int_equal(f.min_isr, 0);
        assert_int_equal(f.ready, 2);
        tear_down(&f);
}

static void a_watch_that_was_not_armed_is_armed_later(void **state)
{
        struct fixture f;
        struct call watched;

        (void)state;
        set_up(&f);
        prepare(&f, false);
        answer(GET, 0, TWO);
        topic_configs_on_session(f.configs);
        answer(CHILDREN, -ECONNRESET, NULL);
        answer(DELAY, 0, NULL);
        watched = calls[0];
        answer(CHILDREN, 0, NULL); /* armed now; and what is known is read again, for it may have changed */
        answer(GET, 0, TWO);
        watched.watch(watched.path, watched.userdata);
        answer_changes((const char *const[]){"config_change_0000000000"}, 1);
        answer(GET, 0, "{\"version\":2,\"entity_path\":\"topics/orders\"}");
        answer(GET, -ENOENT, NULL);
        assert_int_equal(f.min_isr, 0);

        topic_configs_on_session(f.configs);
        answer(CHILDREN, -EOWNERDEAD, NULL); /* the next session arms it */
        tear_down(&f);
}

static void fire(struct fixture *f, struct call *watched, const char *const *children, size_t n)
{
        (void)f;
        watched->watch(watched->path, watched->userdata);
        *watched = calls[0];
        answer_changes(children, n);
}

/* Ten thousand topics are not read anew because one of them changed. */
static void a_change_is_read_once_and_only_what_it_names(void **state)
{
        static const char *const changes[] = {"config_change_0000000007", "config_change_0000000009",
                                              "config_change_0000000008", "config_change_0000000011"};
        struct fixture f;
        struct call watched;

        (void)state;
        set_up(&f);
        prepare(&f, false);
        answer(GET, -ENOENT, NULL);
        topic_configs_on_session(f.configs);
        watched = calls[0];
        answer_changes(changes, 1); /* whatever was before this session: everything is read */
        answer(GET, 0, TWO);
        assert_string_equal(f.brokers, "any ");

        fire(&f, &watched, changes, 3);
        assert_string_equal(calls[0].path, "/config/changes/config_change_0000000009");
        answer(GET, 0, "{\"version\":2,\"entity_path\":\"brokers/<default>\"}");
        assert_string_equal(calls[0].path, "/config/changes/config_change_0000000008");
        answer(GET, 0, "{\"version\":1,\"entity_type\":\"topics\",\"entity_name\":\"unknown\"}");
        assert_string_equal(f.brokers, "any <default> ");
        assert_int_equal(n_calls, 0);

        fire(&f, &watched, changes, 4);
        answer(GET, -ECONNRESET, NULL);
        answer(DELAY, 0, NULL);
        answer(GET, 0, "{\"version\":2,\"entity_path\":\"topics/orders\"}");
        assert_string_equal(calls[0].path, "/config/topics/orders");
        answer(GET, -ENOENT, NULL);
        assert_int_equal(f.min_isr, 0);

        fire(&f, &watched, changes, 4); /* nothing new */
        fire(&f, &watched, (const char *const[]){"config_change_0000000012", "config_change_0000000013"}, 2);
        answer(GET, 0, "nonsense");
        answer(GET, -ENOENT, NULL); /* deleted before it could be read: it may have been about anything */
        answer(GET, 0, TWO);
        assert_string_equal(f.brokers, "any <default> any ");
        tear_down(&f);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_topic_is_ready_when_its_settings_have_been_read),
                cmocka_unit_test(a_read_that_was_lost_is_tried_again_and_waited_for),
                cmocka_unit_test(with_the_session_gone_the_wait_ends_and_the_topic_is_read_again_later),
                cmocka_unit_test(a_new_topic_of_an_old_name_is_read_anew),
                cmocka_unit_test(a_watch_that_was_not_armed_is_armed_later),
                cmocka_unit_test(a_change_is_read_once_and_only_what_it_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
