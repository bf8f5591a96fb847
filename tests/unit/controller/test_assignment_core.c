#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "controller/assignment_core.h"

/* Notation: ids with '+' adding, '-' removing; lists are separated by blanks. */
static size_t parse(const char *s, struct ctx_assigned *ret)
{
        size_t n = 0;

        while (*s) {
                char *end;

                ret[n] = (struct ctx_assigned){.id = (int32_t)strtol(s, &end, 10)};
                for (s = end; *s && *s != ' '; s++) {
                        ret[n].adding = ret[n].adding || *s == '+';
                        ret[n].removing = ret[n].removing || *s == '-';
                }
                n++;
                while (*s == ' ')
                        s++;
        }
        return n;
}

static const char *text(const struct ctx_assigned *a, size_t n)
{
        static char out[512];
        size_t used = 0;

        out[0] = '\0';
        for (size_t i = 0; i < n; i++)
                used += (size_t)snprintf(out + used, sizeof(out) - used, "%s%d%s%s", i ? " " : "", a[i].id,
                                         a[i].adding ? "+" : "", a[i].removing ? "-" : "");
        return out;
}

static size_t retarget(const char *now, const char *target, struct ctx_assigned *ret)
{
        struct ctx_assigned a[ASSIGNMENT_MAX], t[ASSIGNMENT_MAX];
        int32_t ids[ASSIGNMENT_MAX];
        size_t n = parse(target, t);

        for (size_t i = 0; i < n; i++)
                ids[i] = t[i].id;
        return assignment_retarget(a, parse(now, a), ids, n, ret);
}

static void a_target_is_marked_against_what_it_began_with(void **state)
{
        static const struct {
                const char *now, *target, *then, *finished;
        } rows[] = {
                {"1 2", "3 4", "3+ 4+ 1- 2-", "3 4"},
                {"1 2 3", "3 4", "3 4+ 1- 2-", "3 4"},
                {"1 2", "2 1", "2 1", "2 1"},
                {"1 2 3", "1", "1 2- 3-", "1"},
                {"1", "1 2 3", "1 2+ 3+", "1 2 3"},
                /* another target in between: what only the first one had is on its way out, and no part of
                 * the origin */
                {"3+ 4+ 1- 2-", "5 1", "5+ 1 3+- 4+- 2-", "5 1"},
                {"3+ 4+ 1- 2-", "4 5", "4+ 5+ 3+- 1- 2-", "4 5"},
                {"5+ 1 3+- 4+- 2-", "3 2", "3+ 2 5+- 1- 4+-", "3 2"},
                /* cancellation */
                {"3+ 4+ 1- 2-", "", "1 2 3+- 4+-", "1 2"},
                {"5+ 1 3+- 4+- 2-", "", "1 2 5+- 3+- 4+-", "1 2"},
                {"1 2- 3-", "", "1 2 3", "1 2 3"},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct ctx_assigned then[ASSIGNMENT_MAX], end[ASSIGNMENT_MAX];
                size_t n = retarget(rows[i].now, rows[i].target, then);

                assert_string_equal(text(then, n), rows[i].then);
                n = assignment_finish(then, n, end);
                assert_string_equal(text(end, n), rows[i].finished);
        }
}

static void cancelling_always_leads_back_to_the_origin(void **state)
{
        static const char *const targets[] = {"3 4", "1", "2 3", "5 6 7", "2 1", "4 1 2"};

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(targets); i++)
                for (size_t k = 0; k < ARRAY_SIZE(targets); k++) {
                        struct ctx_assigned a[ASSIGNMENT_MAX], b[ASSIGNMENT_MAX], end[ASSIGNMENT_MAX];
                        size_t n = retarget("1 2", targets[i], a);
                        char now[256];

                        (void)snprintf(now, sizeof(now), "%s", text(a, n));
                        n = retarget(now, targets[k], b);
                        (void)snprintf(now, sizeof(now), "%s", text(b, n));
                        n = retarget(now, "", a);
                        assert_true(assignment_is_cancellation(a, n));
                        n = assignment_finish(a, n, end);
                        assert_int_equal(n, 2);
                        assert_int_equal(end[0].id + end[1].id, 3);
                }
}

static void a_cancellation_is_told_from_a_reassignment(void **state)
{
        struct ctx_assigned a[ASSIGNMENT_MAX];

        (void)state;
        assert_true(assignment_is_cancellation(a, parse("1 2 3+-", a)));
        assert_false(assignment_is_cancellation(a, parse("3+ 1 2-", a)));
        assert_false(assignment_is_cancellation(a, parse("1 2-", a)));
        assert_false(assignment_is_cancellation(a, parse("1 2 3+", a)));
}

static void a_target_is_the_same_only_in_the_same_order(void **state)
{
        struct ctx_assigned a[ASSIGNMENT_MAX];
        const int32_t ids[] = {3, 4, 5};

        (void)state;
        assert_true(assignment_targets(a, parse("3+ 4+ 1- 2-", a), ids, 2));
        assert_true(assignment_targets(a, parse("3 1- 4", a), ids, 2));
        assert_false(assignment_targets(a, parse("4 3", a), ids, 2));
        assert_false(assignment_targets(a, parse("3 4", a), ids, 3));
        assert_false(assignment_targets(a, parse("3 4 5", a), ids, 2));
}

static void more_replicas_than_fit_are_refused(void **state)
{
        struct ctx_assigned now[ASSIGNMENT_MAX], ret[ASSIGNMENT_MAX];
        int32_t ids[ASSIGNMENT_MAX];

        (void)state;
        for (int32_t i = 0; i < ASSIGNMENT_MAX; i++) {
                now[i] = (struct ctx_assigned){.id = i};
                ids[i] = 1000 + i;
        }
        assert_int_equal(assignment_retarget(now, 1, ids, ASSIGNMENT_MAX, ret), 0);
        assert_int_equal(assignment_retarget(now, 1, ids, ASSIGNMENT_MAX - 1, ret), ASSIGNMENT_MAX);
        assert_int_equal(assignment_retarget(now, ASSIGNMENT_MAX, ids, 1, ret), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_target_is_marked_against_what_it_began_with),
                cmocka_unit_test(cancelling_always_leads_back_to_the_origin),
                cmocka_unit_test(a_cancellation_is_told_from_a_reassignment),
                cmocka_unit_test(a_target_is_the_same_only_in_the_same_order),
                cmocka_unit_test(more_replicas_than_fit_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
