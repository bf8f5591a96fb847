/* The snapshot: one schema out and in, one line for people. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "drain_status.h"

static struct drain_status sample(void)
{
        struct drain_status s = {
                .drain_id = "id",
                .reason = "why \"so\"",
                .requested_by = "me",
                .message = "m",
                .broker = 3,
                .controller = 2,
                .epoch = INT64_C(1) << 40,
                .state = DRAIN_DRAINING,
                .why = DRAIN_WHY_BUSY,
                .remaining = 12,
                .initial = 40,
                .leaders = DRAIN_UNKNOWN,
                .moved = 28,
                .blocked_total = 1,
                .rate_milli = 40500,
                .elapsed_ms = 1234,
                .deadline_in_ms = 1498200,
                .started_real_ms = 1796000000123,
                .may_extend = true,
                .n_blocked = 1,
        };

        (void)snprintf(s.blocked[0].topic, sizeof(s.blocked[0].topic), "orders");
        (void)snprintf(s.blocked[0].reason, sizeof(s.blocked[0].reason), "no_other_in_sync_replica");
        s.blocked[0].partition = 3;
        return s;
}

static void a_status_survives_json(void **state)
{
        struct drain_status s = sample(), back;
        json_t *o = drain_status_to_json(&s);

        (void)state;
        assert_non_null(o);
        assert_int_equal(drain_status_from_json(o, &back), 0);
        assert_memory_equal(&s, &back, sizeof(s));
        json_decref(o);
}

static void L1_an_unknown_count_is_null(void **state)
{
        struct drain_status s = sample();
        json_t *o;

        (void)state;
        s.remaining = DRAIN_UNKNOWN;
        o = drain_status_to_json(&s);
        assert_true(json_is_null(json_object_get(o, "remaining")));
        assert_true(json_is_null(json_object_get(o, "verdict")));
        json_decref(o);
}

static void an_object_with_a_member_missing_is_refused(void **state)
{
        struct drain_status s = sample(), back;
        json_t *o = drain_status_to_json(&s), *copy;
        const char *key;
        json_t *v;

        (void)state;
        json_object_foreach(o, key, v)
        {
                /* these two are derived or optional by nature */
                if (strcmp(key, "verdict") == 0 || json_is_boolean(v))
                        continue;
                copy = json_copy(o);
                assert_int_equal(json_object_del(copy, key), 0);
                assert_int_equal(drain_status_from_json(copy, &back), -EBADMSG);
                json_decref(copy);
        }
        json_decref(o);
        assert_int_equal(drain_status_from_json(NULL, &back), -EBADMSG);
}

static void the_line_says_how_many_remain_how_fast_until_when_and_what_holds_it_up(void **state)
{
        struct drain_status s = sample();
        char line[512];

        (void)state;
        s.message[0] = '\0';
        drain_status_line(&s, line, sizeof(line));
        assert_string_equal(line, "Draining: 12 leader partitions remain (deadline in 1498 s), 40.5/s; "
                                  "[orders,3] no_other_in_sync_replica");
        s.remaining = 1;
        s.n_blocked = 0;
        s.rate_milli = 0;
        drain_status_line(&s, line, sizeof(line));
        assert_string_equal(line, "Draining: 1 leader partition remains (deadline in 1498 s)");
}

static void the_line_is_one_line_and_within_its_size(void **state)
{
        struct drain_status s = sample();
        char line[40];

        (void)state;
        memset(s.message, 'x', 700);
        s.message[3] = '\n';
        drain_status_line(&s, line, sizeof(line));
        assert_int_equal(strlen(line), sizeof(line) - 1);
        assert_null(strchr(line, '\n'));
}

static void every_state_has_a_line(void **state)
{
        struct drain_status s = sample();
        char line[512];

        (void)state;
        for (int i = 0; i < N_DRAIN_PHASES; i++) {
                s.state = (enum drain_phase)i;
                drain_status_line(&s, line, sizeof(line));
                assert_true(strlen(line) > 5);
        }
}

static void times_are_utc_with_milliseconds(void **state)
{
        char text[32];

        (void)state;
        format_time_utc(INT64_C(1796000000123), text);
        assert_string_equal(text, "2026-11-30T00:53:20.123Z");
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_status_survives_json),
                cmocka_unit_test(L1_an_unknown_count_is_null),
                cmocka_unit_test(an_object_with_a_member_missing_is_refused),
                cmocka_unit_test(the_line_says_how_many_remain_how_fast_until_when_and_what_holds_it_up),
                cmocka_unit_test(the_line_is_one_line_and_within_its_size),
                cmocka_unit_test(every_state_has_a_line),
                cmocka_unit_test(times_are_utc_with_milliseconds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
