/* config_core: what changes make of a configuration. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "controller/config_core.h"
#include "wire/error.h"

static int check(enum config_scope scope, const char *name, const char *value, char error[256],
                 void *userdata)
{
        (void)scope;
        (void)userdata;
        if (strcmp(name, "foreign") != 0 && (!value || strcmp(value, "bad") != 0))
                return 0;
        (void)snprintf(error, 256, "%s: no", name);
        return -EINVAL;
}

static bool find(enum config_scope scope, const char *name, struct config_setting *ret, void *userdata)
{
        (void)scope;
        (void)userdata;
        *ret = (struct config_setting){.name = name, .value = "delete", .list = strcmp(name, "list") == 0};
        return true;
}

struct change {
        const char *name;
        enum config_op op;
        const char *value;
};

struct fixture {
        struct arena arena;
        bool replace, changed;
        char error[CONFIG_TEXT_SIZE];
        char out[200]; /* "k=v;k=v;" */
};

static int set_up(void **state)
{
        static struct fixture f;

        f = (struct fixture){0};
        arena_init(&f.arena, 0);
        *state = &f;
        return 0;
}

static int tear_down(void **state)
{
        arena_done(&((struct fixture *)*state)->arena);
        return 0;
}

static int16_t merge(struct fixture *f, const char *now_json, const struct change *changes, int32_t n)
{
        const struct config_rules rules = {
                .scope = CONFIG_SCOPE_TOPIC, .replace = f->replace, .check = check, .find = find};
        struct incremental_alter_configs_request_config items[4];
        const struct incremental_alter_configs_request_resource in = {.configs = {items, n}};
        struct znode_config now = {0}, out = {0};
        int16_t code;

        for (int32_t i = 0; i < n; i++)
                items[i] = (struct incremental_alter_configs_request_config){
                        .name = wire_str(changes[i].name),
                        .config_operation = (int8_t)changes[i].op,
                        .value = wire_str(changes[i].value)};
        if (now_json)
                assert_int_equal(znode_config_decode(now_json, strlen(now_json), &now), 0);
        code = config_changes_check(&in, f->error);
        f->out[0] = '\0';
        if (code == KAFKA_NONE)
                code = config_merge(&rules, &now, &in, &f->arena, &out, &f->changed, f->error);
        for (size_t i = 0; code == KAFKA_NONE && i < out.n; i++)
                (void)snprintf(f->out + strlen(f->out), sizeof(f->out) - strlen(f->out), "%s=%s;",
                               out.entries[i].key, out.entries[i].value);
        znode_config_done(&now);
        return code;
}

#define MERGE(f, now, ...)                                                                                   \
        merge(f, now, (const struct change[]){__VA_ARGS__},                                                  \
              sizeof((const struct change[]){__VA_ARGS__}) / sizeof(struct change))
#define JSON(members) "{\"version\":1,\"config\":{" members "}}"

static void settings_that_are_not_named_stay(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(MERGE(f, JSON("\"a\":\"1\",\"foreign\":\"x\""), {"b", CONFIG_SET, "2"},
                               {"a", CONFIG_SET, "3"}),
                         0);
        assert_string_equal(f->out, "a=3;foreign=x;b=2;");
        assert_true(f->changed);
}

static void a_replacement_keeps_only_what_is_named(void **state)
{
        struct fixture *f = *state;

        f->replace = true;
        assert_int_equal(MERGE(f, JSON("\"a\":\"1\",\"foreign\":\"x\""), {"b", CONFIG_SET, "2"}), 0);
        assert_string_equal(f->out, "b=2;");
        assert_int_equal(MERGE(f, JSON("\"b\":\"2\""), {"b", CONFIG_SET, "2"}), 0);
        assert_false(f->changed);
}

/* Whoever put it there: a setting that this broker does not know can be taken away, not set. */
static void what_stands_there_can_be_deleted(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(MERGE(f, JSON("\"foreign\":\"x\",\"a\":\"1\""), {"foreign", CONFIG_DELETE, NULL}),
                         0);
        assert_string_equal(f->out, "a=1;");
        assert_int_equal(MERGE(f, NULL, {"a", CONFIG_DELETE, NULL}), 0);
        assert_false(f->changed);
        assert_int_equal(MERGE(f, NULL, {"foreign", CONFIG_DELETE, NULL}), KAFKA_INVALID_CONFIG);
        assert_int_equal(MERGE(f, NULL, {"foreign", CONFIG_SET, "1"}), KAFKA_INVALID_CONFIG);
        assert_string_equal(f->error, "foreign: no");
}

static void lists_grow_and_shrink(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(MERGE(f, JSON("\"list\":\"a, b\""), {"list", CONFIG_APPEND, "b,c"}), 0);
        assert_string_equal(f->out, "list=a,b,c;");
        assert_int_equal(MERGE(f, JSON("\"list\":\"a,b,c\""), {"list", CONFIG_APPEND, "c,a"}), 0);
        assert_false(f->changed);
        assert_int_equal(MERGE(f, JSON("\"list\":\"a,b,c\""), {"list", CONFIG_SUBTRACT, " c ,a,x"}), 0);
        assert_string_equal(f->out, "list=b;");
        assert_int_equal(MERGE(f, JSON("\"list\":\"b\""), {"list", CONFIG_SUBTRACT, "b"}), 0);
        assert_string_equal(f->out, "list=;");
        assert_int_equal(MERGE(f, NULL, {"list", CONFIG_APPEND, "x"}), 0); /* to the default */
        assert_string_equal(f->out, "list=delete,x;");
        assert_int_equal(MERGE(f, NULL, {"other", CONFIG_APPEND, "x"}), KAFKA_INVALID_CONFIG);
}

static void one_bad_value_spoils_all(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(MERGE(f, NULL, {"a", CONFIG_SET, "1"}, {"b", CONFIG_SET, "bad"}),
                         KAFKA_INVALID_CONFIG);
        assert_string_equal(f->error, "b: no");
        assert_false(f->changed);
}

static void malformed_changes_are_refused(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(MERGE(f, NULL, {"a", CONFIG_SET, "1"}, {"a", CONFIG_DELETE, NULL}),
                         KAFKA_INVALID_REQUEST);
        assert_int_equal(MERGE(f, NULL, {"a", CONFIG_SET, NULL}), KAFKA_INVALID_REQUEST);
        assert_int_equal(MERGE(f, NULL, {"a", N_CONFIG_OPS, "1"}), KAFKA_INVALID_REQUEST);
        assert_int_equal(MERGE(f, NULL, {"", CONFIG_SET, "1"}), KAFKA_INVALID_CONFIG);
        assert_int_equal(MERGE(f, NULL, {NULL, CONFIG_SET, "1"}), KAFKA_INVALID_CONFIG);
        assert_int_equal(MERGE(f, NULL, {"\xff", CONFIG_SET, "1"}), KAFKA_INVALID_CONFIG);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(settings_that_are_not_named_stay, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_replacement_keeps_only_what_is_named, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_stands_there_can_be_deleted, set_up, tear_down),
                cmocka_unit_test_setup_teardown(lists_grow_and_shrink, set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_bad_value_spoils_all, set_up, tear_down),
                cmocka_unit_test_setup_teardown(malformed_changes_are_refused, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
