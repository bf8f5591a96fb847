/* What the keys of the broker's configuration must satisfy together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"

#define MAX_SETTINGS 8

struct loaded {
        struct broker_config config;
        char *error;
        int r;
};

/* The required keys, and @settings; a later one wins. */
static void load(struct loaded *l, const char *const *settings)
{
        const char *overrides[MAX_SETTINGS + 3] = {"broker.id=1", "zookeeper.connect=z:2181"};
        size_t n = 2;

        for (; *settings; settings++)
                overrides[n++] = *settings;
        *l = (struct loaded){0};
        l->r = broker_config_load(NULL, overrides, &l->config, &l->error);
}

static void unload(struct loaded *l)
{
        broker_config_done(&l->config);
        free(l->error);
}

#define LOAD(l, ...) load(l, (const char *const[MAX_SETTINGS]){__VA_ARGS__, NULL})

static void assert_refused(struct loaded *l, const char *part)
{
        assert_true(l->r < 0);
        assert_non_null(l->error);
        if (!strstr(l->error, part))
                fail_msg("'%s' is not in '%s'", part, l->error);
        unload(l);
}

static void addresses_of_listeners_are_parsed(void **state)
{
        static const struct {
                const char *text, *host;
                uint16_t port;
        } good[] = {
                {"PLAINTEXT://h:1", "h", 1},     {"PLAINTEXT://[::1]:9092", "::1", 9092},
                {"PLAINTEXT://:9092", "", 9092}, {"PLAINTEXT://0.0.0.0:65535", "0.0.0.0", 65535},
                {"PLAINTEXT://[::]:0", "::", 0},
        };
        static const char *const bad[] = {"",
                                          "h:1",
                                          "PLAINTEXT://",
                                          "PLAINTEXT://h",
                                          "PLAINTEXT://h:",
                                          "PLAINTEXT://h:x",
                                          "PLAINTEXT://h:65536",
                                          "PLAINTEXT://h:-1",
                                          "PLAINTEXT://::1:9092",
                                          "SSL://h:1",
                                          "plaintext://h:1",
                                          "PLAINTEXT://:"};
        struct listener l;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                assert_int_equal(listener_parse(good[i].text, &l), 0);
                assert_string_equal(l.host, good[i].host);
                assert_int_equal(l.port, good[i].port);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_true(listener_parse(bad[i], &l) < 0);
}

static void every_address_is_not_advertised(void **state)
{
        static const char *const wildcards[] = {"PLAINTEXT://:9092", "PLAINTEXT://0.0.0.0:9092",
                                                "PLAINTEXT://[::]:9092", "PLAINTEXT://*:9092"};
        struct loaded l;
        char text[80];

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(wildcards); i++) {
                (void)snprintf(text, sizeof(text), "listeners=%s", wildcards[i]);
                LOAD(&l, text);
                assert_refused(&l, "listens on every address; set advertised.listeners");

                (void)snprintf(text, sizeof(text), "advertised.listeners=%s", wildcards[i]);
                LOAD(&l, text);
                assert_refused(&l, "advertised.listeners: ");

                (void)snprintf(text, sizeof(text), "listeners=%s", wildcards[i]);
                LOAD(&l, text, "advertised.listeners=PLAINTEXT://h:9092");
                assert_int_equal(l.r, 0);
                unload(&l);
        }
}

static void the_admin_listener_is_advertised_where_others_reach_it(void **state)
{
        static const struct {
                const char *settings[4], *listen, *told;
                uint16_t told_port;
        } rows[] = {
                {{"admin.listener=10.0.0.1:9644"}, "10.0.0.1", "10.0.0.1", 9644},
                {{"admin.listener=:9644"}, "", "127.0.0.1", 9644}, /* the default of listeners */
                {{"admin.listener=0.0.0.0:9644", "listeners=PLAINTEXT://10.0.0.2:9092"},
                 "0.0.0.0",
                 "10.0.0.2",
                 9644},
                {{"admin.listener=[::]:9644", "listeners=PLAINTEXT://:9092",
                  "advertised.listeners=PLAINTEXT://h:1"},
                 "::",
                 "h",
                 9644},
                {{"admin.listener=:9644", "admin.advertised=a:80"}, "", "a", 80},
                {{"admin.listener=127.0.0.1:9644", "admin.advertised=[::2]:80"}, "127.0.0.1", "::2", 80},
        };
        struct listener listen, told;
        struct loaded l;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                load(&l, rows[i].settings);
                assert_int_equal(l.r, 0);
                broker_config_admin(&l.config, &listen, &told);
                assert_string_equal(listen.host, rows[i].listen);
                assert_int_equal(listen.port, 9644);
                assert_string_equal(told.host, rows[i].told);
                assert_int_equal(told.port, rows[i].told_port);
                unload(&l);
        }
}

static void odd_admin_addresses_are_refused(void **state)
{
        struct loaded l;

        (void)state;
        LOAD(&l, "admin.listener=here");
        assert_refused(&l, "admin.listener: 'here' is not of the form host:port");
        LOAD(&l, "admin.advertised=here");
        assert_refused(&l, "admin.advertised: 'here' is not of the form host:port");
        LOAD(&l, "admin.advertised=:9644");
        assert_refused(&l, "admin.advertised: ':9644' is not an address");
}

static void what_is_wrong_with_a_listener_is_said(void **state)
{
        struct loaded l;

        (void)state;
        LOAD(&l, "listeners=SASL_SSL://h:1");
        assert_refused(&l, "PLAINTEXT is the only security protocol");
        LOAD(&l, "listeners=PLAINTEXT://h:1,PLAINTEXT://i:2");
        assert_refused(&l, "more than one listener");
        LOAD(&l, "listeners=h:1");
        assert_refused(&l, "is not of the form PLAINTEXT://host:port");
}

static void a_fetch_does_not_wait_as_long_as_a_follower_may_lag(void **state)
{
        struct loaded l;

        (void)state;
        LOAD(&l, "replica.fetch.wait.max.ms=500", "replica.lag.time.max.ms=500");
        assert_refused(&l, "replica.fetch.wait.max.ms (500) must be below replica.lag.time.max.ms (500)");
        LOAD(&l, "replica.fetch.wait.max.ms=499", "replica.lag.time.max.ms=500");
        assert_int_equal(l.r, 0);
        unload(&l);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses_of_listeners_are_parsed),
                cmocka_unit_test(every_address_is_not_advertised),
                cmocka_unit_test(the_admin_listener_is_advertised_where_others_reach_it),
                cmocka_unit_test(odd_admin_addresses_are_refused),
                cmocka_unit_test(what_is_wrong_with_a_listener_is_said),
                cmocka_unit_test(a_fetch_does_not_wait_as_long_as_a_follower_may_lag),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
