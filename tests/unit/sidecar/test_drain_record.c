/* The result file, and the record of the drain in progress. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "active_drain.h"
#include "base/fs.h"
#include "drain_record.h"

static char dir[] = "/tmp/stepdown-record-XXXXXX";
static char path[64];

static int set_up(void **state)
{
        (void)state;
        (void)unlink(path);
        return setenv("INVOCATION_ID", "aaaa", 1);
}

static struct drain_status ended(void)
{
        return (struct drain_status){
                .drain_id = "id",
                .broker = 1,
                .epoch = 7,
                .state = DRAIN_INCOMPLETE,
                .why = DRAIN_WHY_DEADLINE,
                .remaining = 2,
                .moved = 4,
                .elapsed_ms = 1500,
                .started_real_ms = 1000,
                .ended_real_ms = 2500,
        };
}

static json_t *read_record(void)
{
        json_t *o = json_load_file(path, 0, NULL);

        assert_non_null(o);
        return o;
}

static void assert_text(const json_t *o, const char *key, const char *want)
{
        assert_string_equal(json_string_value(json_object_get(o, key)), want);
}

static void L6_a_record_holds_verdict_counts_and_times(void **state)
{
        struct drain_status s = ended();
        json_t *o;

        (void)state;
        assert_int_equal(drain_record_write(path, &s), 0);
        o = read_record();
        assert_text(o, "verdict", "incomplete");
        assert_text(o, "why", "deadline");
        assert_text(o, "invocation_id", "aaaa");
        assert_text(o, "started_at", "1970-01-01T00:00:01.000Z");
        assert_text(o, "ended_at", "1970-01-01T00:00:02.500Z");
        assert_int_equal(json_integer_value(json_object_get(o, "remaining")), 2);
        assert_int_equal(json_integer_value(json_object_get(o, "moved")), 4);
        assert_true(json_real_value(json_object_get(o, "seconds")) == 1.5);
        json_decref(o);
}

static void the_services_end_is_added_to_this_invocations_record(void **state)
{
        struct drain_status s = ended();
        json_t *o;

        (void)state;
        assert_int_equal(drain_record_write(path, &s), 0);
        assert_int_equal(setenv("SERVICE_RESULT", "exit-code", 1), 0);
        assert_int_equal(setenv("EXIT_CODE", "exited", 1), 0);
        assert_int_equal(setenv("EXIT_STATUS", "75", 1), 0);
        assert_int_equal(drain_record_exit(path), 0);
        o = read_record();
        assert_text(o, "verdict", "incomplete");
        assert_text(o, "service_result", "exit-code");
        assert_text(o, "exit_code", "exited");
        assert_text(o, "exit_status", "75");
        json_decref(o);
}

static void a_record_of_an_earlier_stop_does_not_pass_for_this_ones(void **state)
{
        struct drain_status s = ended();
        json_t *o;

        (void)state;
        assert_int_equal(drain_record_write(path, &s), 0);
        assert_int_equal(setenv("INVOCATION_ID", "bbbb", 1), 0);
        assert_int_equal(drain_record_exit(path), 0);
        o = read_record();
        assert_text(o, "verdict", "none");
        assert_text(o, "invocation_id", "bbbb");
        assert_null(json_object_get(o, "drain_id"));
        json_decref(o);
}

static void a_damaged_record_is_replaced(void **state)
{
        json_t *o;

        (void)state;
        assert_int_equal(fs_write_atomic(path, "{\"verdict\": \"dra", 16), 0);
        assert_int_equal(drain_record_exit(path), 0);
        o = read_record();
        assert_text(o, "verdict", "none");
        json_decref(o);
}

static void L10_the_active_drain_survives_a_crash_cut_at_any_byte(void **state)
{
        struct active_drain a = {.drain_id = "id",
                                 .reason = "r",
                                 .requested_by = "b",
                                 .broker = 1,
                                 .epoch = INT64_C(1) << 40,
                                 .started_real_ms = 5,
                                 .deadline_real_ms = 6};
        struct active_drain back = {0};
        char text[1024];
        FILE *f;
        size_t n;

        (void)state;
        assert_int_equal(active_drain_write(path, &a), 0);
        assert_int_equal(active_drain_read(path, &back), 0);
        assert_memory_equal(&a, &back, sizeof(a));
        f = fopen(path, "r");
        n = fread(text, 1, sizeof(text), f);
        (void)fclose(f);
        for (size_t cut = 0; cut < n; cut++) {
                assert_int_equal(fs_write_atomic(path, text, cut), 0);
                assert_int_equal(active_drain_read(path, &back), -EBADMSG);
        }
        assert_int_equal(active_drain_remove(path), 0);
        assert_int_equal(active_drain_remove(path), 0);
        assert_int_equal(active_drain_read(path, &back), -ENOENT);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup(L6_a_record_holds_verdict_counts_and_times, set_up),
                cmocka_unit_test_setup(the_services_end_is_added_to_this_invocations_record, set_up),
                cmocka_unit_test_setup(a_record_of_an_earlier_stop_does_not_pass_for_this_ones, set_up),
                cmocka_unit_test_setup(a_damaged_record_is_replaced, set_up),
                cmocka_unit_test_setup(L10_the_active_drain_survives_a_crash_cut_at_any_byte, set_up),
        };
        int failed;

        if (!mkdtemp(dir))
                return 1;
        (void)snprintf(path, sizeof(path), "%s/last-stop.json", dir);
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        (void)unlink(path);
        (void)rmdir(dir);
        return failed;
}
