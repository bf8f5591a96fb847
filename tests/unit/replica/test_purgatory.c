/* purgatory: complete exactly once, whoever comes first; nothing satisfied is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "replica/purgatory.h"

struct fixture {
        struct loop *loop;
        struct purgatory *p;
        struct purgatory_key a, b;
};

struct op {
        struct delayed_op base;
        _Atomic bool ready;
        _Atomic int *completed, *expired, *freed;
        const struct purgatory_key *last_hint;
        struct delayed_wait waits[2];
};

/* Not in the tests' frames: what still waits at a test's end is completed by its teardown. */
static struct counts {
        _Atomic int completed, expired, freed;
} c, d;

static bool op_satisfied(struct delayed_op *base, const struct purgatory_key *hint)
{
        struct op *o = container_of(base, struct op, base);

        o->last_hint = hint;
        return atomic_load(&o->ready);
}

static void op_complete(struct delayed_op *base, bool expired)
{
        struct op *o = container_of(base, struct op, base);

        atomic_fetch_add(o->completed, 1);
        atomic_fetch_add(o->expired, expired);
}

static void op_free(struct delayed_op *base)
{
        struct op *o = container_of(base, struct op, base);

        atomic_fetch_add(o->freed, 1);
        free(o);
}

static bool never(struct delayed_op *base, const struct purgatory_key *hint)
{
        (void)base;
        (void)hint;
        return false;
}

static const struct delayed_op_ops ops = {
        .is_satisfied = op_satisfied, .complete = op_complete, .free = op_free};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        memset(&c, 0, sizeof(c));
        memset(&d, 0, sizeof(d));
        assert_int_equal(loop_new("test", &f->loop), 0);
        assert_int_equal(purgatory_new(f->loop, "test", &f->p), 0);
        assert_int_equal(purgatory_key_init(&f->a), 0);
        assert_int_equal(purgatory_key_init(&f->b), 0);
        assert_int_equal(loop_thread_start(f->loop), 0);
        *state = f;
        return 0;
}

static void nothing(void *userdata)
{
        (void)userdata;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        purgatory_close(f->p);
        assert_int_equal(loop_call(f->loop, nothing, NULL), 0);
        loop_stop(f->loop);
        loop_thread_join(f->loop);
        (void)purgatory_free(f->p);
        (void)loop_free(f->loop);
        purgatory_key_done(&f->a);
        purgatory_key_done(&f->b);
        free(f);
        return 0;
}

static struct op *op_new(struct counts *counts, bool ready)
{
        struct op *o = calloc(1, sizeof(*o));

        assert_non_null(o);
        assert_int_equal(delayed_op_init(&o->base, &ops), 0);
        atomic_init(&o->ready, ready);
        o->completed = &counts->completed;
        o->expired = &counts->expired;
        o->freed = &counts->freed;
        return o;
}

static void wait_on(struct fixture *f, struct op *o, bool both, int64_t timeout_ms)
{
        o->waits[0].key = &f->a;
        o->waits[1].key = &f->b;
        purgatory_try_or_wait(f->p, &o->base, o->waits, both ? 2 : 1, timeout_ms);
}

static void wait_until(_Atomic int *what, int value)
{
        int64_t deadline_ms = clock_mono_ms() + 5000;

        while (atomic_load(what) != value) {
                assert_true(clock_mono_ms() < deadline_ms);
                usleep(200);
        }
}

static void what_is_satisfied_does_not_wait(void **state)
{
        struct fixture *f = *state;

        wait_on(f, op_new(&c, true), true, 1000);
        assert_int_equal(c.completed, 1);
        assert_int_equal(c.expired, 0);
        assert_int_equal(c.freed, 1);
        assert_int_equal(purgatory_waiting(f->p), 0);
}

static void a_change_of_any_of_its_keys_completes_it(void **state)
{
        struct fixture *f = *state;
        struct op *o = op_new(&c, false);

        wait_on(f, o, true, 10000);
        assert_int_equal(purgatory_check(&f->b), 0);
        assert_int_equal(purgatory_waiting(f->p), 1);
        assert_ptr_equal(o->last_hint, &f->b);
        atomic_store(&o->ready, true);
        assert_int_equal(purgatory_check(&f->b), 1);
        assert_int_equal(c.completed, 1);
        /* KAFKA-664: it is gone from the other key, too, and so is its memory */
        assert_true(list_empty(&f->a.waits));
        assert_int_equal(c.freed, 1);
        assert_int_equal(purgatory_check(&f->a), 0);
}

static void time_completes_it(void **state)
{
        struct fixture *f = *state;
        int64_t begin_ms = clock_mono_ms();

        wait_on(f, op_new(&c, false), true, 30);
        wait_until(&c.completed, 1);
        wait_until(&c.freed, 1);
        assert_int_equal(c.expired, 1);
        assert_true(clock_mono_ms() - begin_ms >= 29);
}

static void an_earlier_deadline_overtakes_a_later_one(void **state)
{
        struct fixture *f = *state;

        wait_on(f, op_new(&c, false), false, 60000);
        wait_on(f, op_new(&d, false), false, 20);
        wait_until(&d.completed, 1);
        assert_int_equal(c.completed, 0);
        purgatory_close(f->p); /* while the counts are still there */
}

static void no_time_means_an_answer_now(void **state)
{
        struct fixture *f = *state;

        wait_on(f, op_new(&c, false), false, 0);
        assert_int_equal(c.expired, 1);
        wait_on(f, op_new(&d, true), false, 0);
        assert_int_equal(d.completed, 1);
        assert_int_equal(d.expired, 0);
}

static void closing_completes_all_and_what_comes_later(void **state)
{
        struct fixture *f = *state;

        wait_on(f, op_new(&c, false), true, 60000);
        purgatory_close(f->p);
        assert_int_equal(c.expired, 1);
        wait_on(f, op_new(&c, false), true, 60000);
        assert_int_equal(c.expired, 2);
        assert_int_equal(c.freed, 2);
}

/* More than a batch of a check, of which only the last is satisfied. */
static void none_of_many_is_overlooked(void **state)
{
        struct fixture *f = *state;
        struct op *o = NULL;

        for (int i = 0; i < 100; i++) {
                o = op_new(&c, false);
                wait_on(f, o, false, 60000);
        }
        atomic_store(&o->ready, true);
        assert_int_equal(purgatory_check(&f->a), 1);
        assert_int_equal(purgatory_waiting(f->p), 99);
        purgatory_close(f->p);
}

static bool satisfied_at_the_second_look(struct delayed_op *base, const struct purgatory_key *hint)
{
        struct op *o = container_of(base, struct op, base);

        (void)hint;
        return atomic_exchange(&o->ready, true);
}

/* KAFKA-6653, 8334: the change came after the first try and before the watch, and no other will come. */
static void it_is_tried_again_once_it_watches(void **state)
{
        static const struct delayed_op_ops second = {
                .is_satisfied = satisfied_at_the_second_look, .complete = op_complete, .free = op_free};
        struct fixture *f = *state;
        struct op *o = op_new(&c, false);

        o->base.ops = &second;
        wait_on(f, o, true, 60000);
        assert_int_equal(c.completed, 1);
        assert_int_equal(c.expired, 0);
}

/* --- races --- */

#define ROUNDS 4000

struct racer {
        struct fixture *f;
        struct op *_Atomic current;
        _Atomic bool stop;
};

static void *check_for_ever(void *userdata)
{
        struct racer *r = userdata;

        while (!atomic_load(&r->stop)) {
                (void)purgatory_check(&r->f->a);
                (void)purgatory_check(&r->f->b);
        }
        return NULL;
}

/* KAFKA-385: satisfied on two keys by two threads at the moment it expires. */
static void it_completes_once_however_many_race(void **state)
{
        struct fixture *f = *state;
        struct racer r = {.f = f};
        pthread_t threads[2];

        for (int i = 0; i < 2; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, check_for_ever, &r), 0);
        for (int i = 0; i < ROUNDS; i++)
                wait_on(f, op_new(&c, i % 3 == 0), true, 1 + i % 2);
        wait_until(&c.completed, ROUNDS);
        wait_until(&c.freed, ROUNDS);
        atomic_store(&r.stop, true);
        for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        assert_int_equal(c.completed, ROUNDS); /* I10 */
        assert_int_equal(purgatory_waiting(f->p), 0);
}

struct shared {
        struct fixture *f;
        _Atomic int64_t level;
        _Atomic bool stop;
};

struct level_op {
        struct delayed_op base;
        struct shared *s;
        int64_t wanted;
        _Atomic int *completed, *expired;
        struct delayed_wait wait;
};

static bool level_satisfied(struct delayed_op *base, const struct purgatory_key *hint)
{
        struct level_op *o = container_of(base, struct level_op, base);

        (void)hint;
        return atomic_load(&o->s->level) >= o->wanted;
}

static void level_complete(struct delayed_op *base, bool expired)
{
        struct level_op *o = container_of(base, struct level_op, base);

        atomic_fetch_add(o->expired, expired);
        atomic_fetch_add(o->completed, 1);
}

static void level_free(struct delayed_op *base)
{
        free(container_of(base, struct level_op, base));
}

static const struct delayed_op_ops level_ops = {
        .is_satisfied = level_satisfied, .complete = level_complete, .free = level_free};

static void *raise_for_ever(void *userdata)
{
        struct shared *s = userdata;

        while (!atomic_load(&s->stop)) {
                atomic_fetch_add(&s->level, 1);
                (void)purgatory_check(&s->f->a);
        }
        return NULL;
}

/* Changes come while operations are hooked in: none may be left waiting. */
static void no_wake_up_is_lost(void **state)
{
        struct fixture *f = *state;
        struct shared s = {.f = f};
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, raise_for_ever, &s), 0);
        for (int i = 0; i < ROUNDS; i++) {
                struct level_op *o = calloc(1, sizeof(*o));

                assert_non_null(o);
                assert_int_equal(delayed_op_init(&o->base, &level_ops), 0);
                o->s = &s;
                o->wanted = atomic_load(&s.level) + 1 + i % 3;
                o->completed = &c.completed;
                o->expired = &c.expired;
                o->wait.key = &f->a;
                purgatory_try_or_wait(f->p, &o->base, &o->wait, 1, 60000);
        }
        wait_until(&c.completed, ROUNDS);
        atomic_store(&s.stop, true);
        pthread_join(thread, NULL);
        assert_int_equal(c.expired, 0);
}

static bool op_gone(struct delayed_op *base)
{
        return atomic_load(&container_of(base, struct op, base)->ready);
}

/* "ready" means that who asked has gone; nobody tells the purgatory. */
static void the_operations_of_who_has_gone_are_given_up(void **state)
{
        static const struct delayed_op_ops leaving = {
                .is_satisfied = never, .complete = op_complete, .free = op_free, .is_abandoned = op_gone};
        struct fixture *f = *state;
        struct op *gone[100];

        for (size_t i = 0; i < ARRAY_SIZE(gone); i++) {
                gone[i] = op_new(&c, false);
                gone[i]->base.ops = &leaving;
                wait_on(f, gone[i], i % 2, 60000);
        }
        for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
                if (i % 10 != 0)
                        atomic_store(&gone[i]->ready, true);
        wait_until(&c.completed, 90);
        assert_int_equal(c.expired, 90);
        assert_int_equal(purgatory_waiting(f->p), 10);
}

static void a_crowd_is_answered_at_once(void **state)
{
        static const struct delayed_op_ops few_a_key = {
                .is_satisfied = never, .complete = op_complete, .free = op_free, .max_key_waits = 5};
        static const struct delayed_op_ops few = {
                .is_satisfied = never, .complete = op_complete, .free = op_free, .max_waits = 8};
        struct fixture *f = *state;

        for (int i = 0; i < 7; i++) {
                struct op *o = op_new(&c, false);

                o->base.ops = &few_a_key;
                wait_on(f, o, false, 60000);
        }
        assert_int_equal(c.expired, 2);
        assert_int_equal(c.freed, 2);
        for (int i = 0; i < 4; i++) { /* under two keys each */
                struct op *o = op_new(&d, false);

                o->base.ops = &few;
                wait_on(f, o, true, 60000);
        }
        assert_int_equal(d.expired, 3);
        assert_int_equal(purgatory_waiting(f->p), 6);
        purgatory_close(f->p);
        assert_int_equal(c.freed + d.freed, 11);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(what_is_satisfied_does_not_wait),
                TEST(a_change_of_any_of_its_keys_completes_it),
                TEST(time_completes_it),
                TEST(an_earlier_deadline_overtakes_a_later_one),
                TEST(no_time_means_an_answer_now),
                TEST(closing_completes_all_and_what_comes_later),
                TEST(none_of_many_is_overlooked),
                TEST(it_is_tried_again_once_it_watches),
                TEST(it_completes_once_however_many_race),
                TEST(no_wake_up_is_lost),
                TEST(the_operations_of_who_has_gone_are_given_up),
                TEST(a_crowd_is_answered_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
