#include "testing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/loop.h"
#include "base/slog.h"

/* What the callbacks of one test share. */
struct fixture {
        struct loop *loop;
        int pair[2]; /* connected sockets */
        struct loop_fd *sources[2];
        struct loop_timer *timers[3];
        int calls[3], order[16], n_order;
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        if (!f || loop_new("test-loop", &f->loop) < 0)
                return -1;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, f->pair) < 0)
                return -1;
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        f->loop = loop_free(f->loop);
        closep(&f->pair[0]);
        closep(&f->pair[1]);
        free(f);
        return 0;
}

static int stop_at_once(struct loop *l, void *userdata)
{
        (void)userdata;
        loop_stop(l);
        return 0;
}

/* Runs the loop for @ms; what must happen has that long, what must not happen has the chance to. */
static void run_for(struct fixture *f, int64_t ms)
{
        struct loop_timer *end;

        assert_int_equal(loop_add_timer(f->loop, stop_at_once, NULL, &end), 0);
        loop_timer_arm(end, ms, 0);
        assert_int_equal(loop_run(f->loop), 0);
        end = loop_timer_remove(end);
}

static void note(struct fixture *f, int what)
{
        if (f->n_order < (int)ARRAY_SIZE(f->order))
                f->order[f->n_order++] = what;
}

/* --- timers --- */

static int on_first(struct loop *l, void *userdata)
{
        struct fixture *f = userdata;

        (void)l;
        f->calls[0]++;
        note(f, 1);
        return 0;
}

static int on_second(struct loop *l, void *userdata)
{
        (void)l;
        note(userdata, 2);
        return 0;
}

static int on_third_and_stop(struct loop *l, void *userdata)
{
        note(userdata, 3);
        loop_stop(l);
        return 0;
}

static void timers_fire_in_the_order_of_their_deadlines(void **state)
{
        struct fixture *f = *state;
        int64_t start = clock_mono_ms();

        assert_int_equal(loop_add_timer(f->loop, on_third_and_stop, f, &f->timers[2]), 0);
        assert_int_equal(loop_add_timer(f->loop, on_second, f, &f->timers[1]), 0);
        assert_int_equal(loop_add_timer(f->loop, on_first, f, &f->timers[0]), 0);
        loop_timer_arm(f->timers[2], 30, 0);
        loop_timer_arm(f->timers[0], 10, 0);
        loop_timer_arm(f->timers[1], 20, 0);
        assert_int_equal(loop_run(f->loop), 0);

        assert_int_equal(f->n_order, 3);
        assert_memory_equal(f->order, ((int[]){1, 2, 3}), 3 * sizeof(int));
        assert_true(clock_mono_ms() - start >= 29); /* never early; 1 ms for the two clocks' rounding */
        assert_false(loop_timer_armed(f->timers[0]));
}

static void timers_due_together_fire_in_the_order_of_arming(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_timer(f->loop, on_first, f, &f->timers[0]), 0);
        assert_int_equal(loop_add_timer(f->loop, on_second, f, &f->timers[1]), 0);
        for (int round = 0; round < 3; round++) {
                f->n_order = 0;
                loop_timer_arm(f->timers[1], 0, 0);
                loop_timer_arm(f->timers[0], 0, 0);
                run_for(f, 2);
                assert_memory_equal(f->order, ((int[]){2, 1}), 2 * sizeof(int));
        }
}

static void a_disarmed_timer_does_not_fire(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_timer(f->loop, on_first, f, &f->timers[0]), 0);
        loop_timer_arm(f->timers[0], 1, 1);
        assert_true(loop_timer_armed(f->timers[0]));
        loop_timer_disarm(f->timers[0]);
        loop_timer_disarm(f->timers[0]);
        run_for(f, 10);
        assert_int_equal(f->calls[0], 0);
}

static int rearm_self(struct loop *l, void *userdata)
{
        struct fixture *f = userdata;

        (void)l;
        f->calls[1]++;
        loop_timer_arm(f->timers[1], 0, 0);
        return 0;
}

static void a_timer_that_rearms_itself_without_delay_starves_nobody(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_timer(f->loop, rearm_self, f, &f->timers[1]), 0);
        loop_timer_arm(f->timers[1], 0, 0);
        run_for(f, 5); /* would never end otherwise */
        assert_true(f->calls[1] > 1);
}

struct beats {
        int64_t at_ms[4];
        int n;
};

/* The first call takes five periods. */
static int beat(struct loop *l, void *userdata)
{
        struct beats *b = userdata;
        int64_t until_ms = clock_mono_ms() + 25;

        b->at_ms[b->n++] = loop_now_ms(l);
        while (b->n == 1 && clock_mono_ms() < until_ms)
                continue;
        if (b->n == (int)ARRAY_SIZE(b->at_ms))
                loop_stop(l);
        return 0;
}

static void a_period_goes_on_and_missed_beats_are_skipped(void **state)
{
        struct fixture *f = *state;
        struct beats b = {0};

        assert_int_equal(loop_add_timer(f->loop, beat, &b, &f->timers[0]), 0);
        loop_timer_arm(f->timers[0], 0, 5);
        assert_int_equal(loop_run(f->loop), 0);
        assert_true(loop_timer_armed(f->timers[0]));
        assert_true(b.at_ms[1] - b.at_ms[0] >= 25);
        assert_true(b.at_ms[2] - b.at_ms[1] >= 5); /* a whole period after the late one, not four at once */
}

static int remove_self_and_others(struct loop *l, void *userdata)
{
        struct fixture *f = userdata;

        (void)l;
        f->calls[2]++;
        for (size_t i = 0; i < ARRAY_SIZE(f->timers); i++)
                f->timers[i] = loop_timer_remove(f->timers[i]);
        return 0;
}

static void a_timer_may_remove_itself_and_others_due_with_it(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_timer(f->loop, remove_self_and_others, f, &f->timers[0]), 0);
        assert_int_equal(loop_add_timer(f->loop, on_first, f, &f->timers[1]), 0);
        assert_int_equal(loop_add_timer(f->loop, on_first, f, &f->timers[2]), 0);
        for (size_t i = 0; i < ARRAY_SIZE(f->timers); i++)
                loop_timer_arm(f->timers[i], 0, 1);
        run_for(f, 5);
        assert_int_equal(f->calls[2], 1);
        assert_int_equal(f->calls[0], 0);
}

static int fail_always(struct loop *l, void *userdata)
{
        struct fixture *f = userdata;

        (void)l;
        f->calls[0]++;
        return -EBADMSG;
}

static void a_failing_timer_is_disarmed_and_the_loop_goes_on(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_timer(f->loop, fail_always, f, &f->timers[0]), 0);
        loop_timer_arm(f->timers[0], 0, 1);
        run_for(f, 10);
        assert_int_equal(f->calls[0], 1);
        assert_false(loop_timer_armed(f->timers[0]));
}

struct random_timers {
        struct loop_timer *timers[300];
        int64_t due_ms[300], last_ms; /* lower bounds of the deadlines: read just before arming */
        int n_fired;
        bool out_of_order;
};

struct random_timer {
        struct random_timers *all;
        int index;
};

static int on_random(struct loop *l, void *userdata)
{
        struct random_timer *t = userdata;

        (void)l;
        if (t->all->due_ms[t->index] + 1 <
            t->all->last_ms) /* the clock may tick between reading and arming */
                t->all->out_of_order = true;
        t->all->last_ms = t->all->due_ms[t->index];
        t->all->n_fired++;
        return 0;
}

/* Arm, re-arm and disarm at random: the heap must stay one. */
static void many_timers_keep_their_order_through_rearming(void **state)
{
        struct fixture *f = *state;
        static struct random_timers all;
        static struct random_timer each[300];
        uint32_t seed = 99;
        int armed = 0;

        for (int i = 0; i < 300; i++) {
                each[i] = (struct random_timer){&all, i};
                assert_int_equal(loop_add_timer(f->loop, on_random, &each[i], &all.timers[i]), 0);
        }
        for (int step = 0; step < 3000; step++) {
                int i;

                seed = seed * 1664525 + 1013904223;
                i = (int)((seed >> 8) % 300);
                if (seed >> 30 == 0) {
                        loop_timer_disarm(all.timers[i]);
                } else {
                        int64_t delay_ms = (seed >> 20) % 20;

                        all.due_ms[i] = clock_mono_ms() + delay_ms;
                        loop_timer_arm(all.timers[i], delay_ms, 0);
                }
        }
        for (int i = 0; i < 300; i++)
                armed += loop_timer_armed(all.timers[i]);
        run_for(f, 60);
        assert_int_equal(all.n_fired, armed);
        assert_false(all.out_of_order);
        assert_true(armed > 100);
}

/* --- descriptors --- */

static int echo_once(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct fixture *f = userdata;
        char c;

        assert_true(events & EPOLLIN);
        assert_int_equal(read(fd, &c, 1), 1);
        f->calls[0]++;
        note(f, c);
        loop_stop(l);
        return 0;
}

static void a_readable_descriptor_is_reported_until_it_is_read(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_fd(f->loop, f->pair[0], EPOLLIN, echo_once, f, &f->sources[0]), 0);
        assert_int_equal(write(f->pair[1], "ab", 2), 2);
        assert_int_equal(loop_run(f->loop), 0);
        assert_int_equal(loop_run(f->loop), 0); /* level-triggered: the second byte is reported again */
        assert_memory_equal(f->order, ((int[]){'a', 'b'}), 2 * sizeof(int));
        run_for(f, 5);
        assert_int_equal(f->calls[0], 2);
}

static int count_events(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct fixture *f = userdata;

        (void)l, (void)fd, (void)events;
        f->calls[0]++;
        return 0;
}

static void events_can_be_switched_off_and_on(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_fd(f->loop, f->pair[0], 0, count_events, f, &f->sources[0]), 0);
        run_for(f, 3);
        assert_int_equal(f->calls[0], 0);
        assert_int_equal(loop_fd_set_events(f->sources[0], EPOLLOUT), 0);
        run_for(f, 3);
        assert_true(f->calls[0] > 0);
        assert_int_equal(loop_add_fd(f->loop, f->pair[0], EPOLLIN, count_events, f, &f->sources[1]), -EEXIST);
        assert_int_equal(loop_add_fd(f->loop, -1, EPOLLIN, count_events, f, &f->sources[1]), -EBADF);
        assert_null(f->sources[1]);
}

/* Whichever of the two is called first removes both: the other's event is in the same batch already. */
static int remove_both(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct fixture *f = userdata;

        (void)l, (void)fd, (void)events;
        f->calls[0]++;
        for (int i = 0; i < 2; i++) {
                f->sources[i] = loop_fd_remove(f->sources[i]);
                closep(&f->pair[i]);
                f->pair[i] = -1;
        }
        return -EPIPE; /* an error besides: must not touch what is gone */
}

static void a_callback_may_remove_and_close_itself_and_a_neighbour(void **state)
{
        struct fixture *f = *state;

        for (int i = 0; i < 2; i++)
                assert_int_equal(loop_add_fd(f->loop, f->pair[i], EPOLLOUT, remove_both, f, &f->sources[i]),
                                 0);
        run_for(f, 5);
        assert_int_equal(f->calls[0], 1);
        assert_null(loop_fd_remove(NULL));
}

static int fail_reading(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct fixture *f = userdata;

        (void)l, (void)fd, (void)events;
        f->calls[1]++;
        return -EBADMSG;
}

static void a_failing_source_ends_alone_and_still_belongs_to_its_owner(void **state)
{
        struct fixture *f = *state;

        assert_int_equal(loop_add_fd(f->loop, f->pair[0], EPOLLOUT, fail_reading, f, &f->sources[0]), 0);
        assert_int_equal(loop_add_fd(f->loop, f->pair[1], EPOLLOUT, count_events, f, &f->sources[1]), 0);
        run_for(f, 5);
        assert_int_equal(f->calls[1], 1);
        assert_true(f->calls[0] > 1);
        assert_int_equal(loop_fd_set_events(f->sources[0], EPOLLOUT), -ESTALE);
        f->sources[0] = loop_fd_remove(f->sources[0]);
}

/* --- tasks --- */

struct numbered_task {
        struct loop_task task;
        struct fixture *fixture;
        int number;
};

static void note_number(void *userdata)
{
        struct numbered_task *t = userdata;

        note(t->fixture, t->number);
}

static void note_five(void *userdata)
{
        note(userdata, 5);
}

static void tasks_run_in_the_order_of_posting(void **state)
{
        struct fixture *f = *state;
        struct numbered_task tasks[3];

        for (int i = 0; i < 3; i++) {
                tasks[i] = (struct numbered_task){.fixture = f, .number = i};
                tasks[i].task.fn = note_number;
                tasks[i].task.userdata = &tasks[i];
                loop_post_task(f->loop, &tasks[i].task);
                if (i == 1)
                        assert_int_equal(loop_post(f->loop, note_five, f), 0);
        }
        run_for(f, 3);
        assert_int_equal(f->n_order, 4);
        assert_memory_equal(f->order, ((int[]){0, 1, 5, 2}), 4 * sizeof(int));
}

struct reposting_task {
        struct loop_task task;
        struct loop *loop;
        int runs;
        bool enough;
};

static void repost(void *userdata)
{
        struct reposting_task *t = userdata;

        t->runs++;
        if (!t->enough)
                loop_post_task(t->loop, &t->task);
}

static void a_task_that_posts_itself_again_starves_no_descriptor(void **state)
{
        struct fixture *f = *state;
        struct reposting_task t = {.loop = f->loop};

        t.task.fn = repost;
        t.task.userdata = &t;
        loop_post_task(f->loop, &t.task);
        assert_int_equal(loop_add_fd(f->loop, f->pair[0], EPOLLIN, echo_once, f, &f->sources[0]), 0);
        assert_int_equal(write(f->pair[1], "a", 1), 1);
        assert_int_equal(loop_run(f->loop), 0); /* ends by the descriptor's callback */
        assert_int_equal(f->calls[0], 1);
        run_for(f, 2);
        assert_true(t.runs > 1);
        t.enough = true;
        run_for(f, 2); /* off the queue before its memory goes */
}

static void count_task(void *userdata)
{
        (*(int *)userdata)++;
}

struct flood {
        struct fixture *fixture;
        int tasks_run, seen_by_descriptor;
};

static void make_readable(void *userdata)
{
        struct flood *f = userdata;

        assert_int_equal(write(f->fixture->pair[1], "x", 1), 1);
}

static int note_tasks_run(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct flood *f = userdata;

        (void)fd, (void)events;
        f->seen_by_descriptor = f->tasks_run;
        loop_stop(l);
        return 0;
}

static void a_flood_of_tasks_lets_descriptors_in_between(void **state)
{
        struct fixture *f = *state;
        struct flood flood = {.fixture = f, .seen_by_descriptor = -1};

        assert_int_equal(loop_add_fd(f->loop, f->pair[0], EPOLLIN, note_tasks_run, &flood, &f->sources[0]),
                         0);
        assert_int_equal(loop_post(f->loop, make_readable, &flood), 0);
        for (int i = 0; i < 5000; i++)
                assert_int_equal(loop_post(f->loop, count_task, &flood.tasks_run), 0);
        assert_int_equal(loop_run(f->loop), 0);
        assert_in_range(flood.seen_by_descriptor, 1, 4000);
        f->loop = loop_free(f->loop); /* runs the rest while `flood` lives */
        assert_int_equal(flood.tasks_run, 5000);
}

static void freeing_a_loop_runs_what_is_still_posted(void **state)
{
        struct fixture *f = *state;
        int n = 0;

        for (int i = 0; i < 1000; i++)
                assert_int_equal(loop_post(f->loop, count_task, &n), 0);
        f->loop = loop_free(f->loop);
        assert_int_equal(n, 1000);
}

/* --- threads --- */

struct poster {
        struct loop *loop;
        int *count; /* touched on the loop's thread only */
};

static void *post_and_call(void *userdata)
{
        struct poster *p = userdata;

        for (int i = 0; i < 2000; i++) {
                assert_int_equal(loop_post(p->loop, count_task, p->count), 0);
                if (i % 100 == 0)
                        assert_int_equal(loop_call(p->loop, count_task, p->count), 0);
        }
        return NULL;
}

static void posts_and_calls_from_many_threads_all_run(void **state)
{
        struct fixture *f = *state;
        pthread_t threads[4];
        int n = 0;
        struct poster p = {f->loop, &n};

        assert_int_equal(loop_thread_start(f->loop), 0);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, post_and_call, &p), 0);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(loop_call(f->loop, count_task, &n), 0);
        assert_int_equal(n, 4 * (2000 + 20) + 1);
        loop_stop(f->loop);
        loop_stop(f->loop);
        loop_thread_join(f->loop);
}

struct inside {
        struct loop *loop;
        bool is_current, signals_blocked;
        char name[16];
        int inline_calls;
};

static void look_around(void *userdata)
{
        struct inside *i = userdata;
        sigset_t mask;

        i->is_current = loop_is_current(i->loop);
        (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
        i->signals_blocked = sigismember(&mask, SIGTERM) == 1;
        (void)pthread_getname_np(pthread_self(), i->name, sizeof(i->name));
        /* would wait for itself if it were posted */
        assert_int_equal(loop_call(i->loop, count_task, &i->inline_calls), 0);
}

static void the_thread_bears_the_name_blocks_signals_and_calls_inline(void **state)
{
        struct fixture *f = *state;
        struct inside i = {.loop = f->loop};
        sigset_t mask;

        assert_int_equal(loop_thread_start(f->loop), 0);
        assert_int_equal(loop_call(f->loop, look_around, &i), 0);
        assert_true(i.is_current);
        assert_true(i.signals_blocked);
        assert_string_equal(i.name, "test-loop");
        assert_int_equal(i.inline_calls, 1);

        assert_false(loop_is_current(f->loop));
        assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
        assert_int_equal(sigismember(&mask, SIGTERM), 0); /* ours is as before */
        loop_stop(f->loop);
        loop_thread_join(f->loop);
}

static void stopping_before_the_run_is_not_forgotten(void **state)
{
        struct fixture *f = *state;

        loop_stop(f->loop);
        assert_int_equal(loop_run(f->loop), 0);
        run_for(f, 1); /* and it can run again */
}

static void read_thread_id(void *userdata)
{
        *(pid_t *)userdata = gettid();
}

/* 'S' for a thread that waits in the kernel, 'R' for one that runs or wants to. */
static char thread_state(pid_t id)
{
        char path[64], line[256] = "";
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", id);
        f = fopen(path, "re");
        assert_non_null(f);
        assert_non_null(fgets(line, sizeof(line), f));
        (void)fclose(f);
        return strrchr(line, ')')[2];
}

/* A loop that forgot to take back its own wake-up would find the eventfd readable forever and never sleep. */
static void a_loop_falls_asleep_again_after_being_woken(void **state)
{
        struct fixture *f = *state;
        int64_t deadline_ms = clock_mono_ms() + 5000;
        pid_t id = 0;
        int n = 0;

        assert_int_equal(loop_thread_start(f->loop), 0);
        for (int i = 0; i < 100; i++)
                assert_int_equal(loop_call(f->loop, count_task, &n), 0);
        assert_int_equal(loop_call(f->loop, read_thread_id, &id), 0);
        for (int asleep = 0; asleep < 20;) { /* in a row */
                asleep = thread_state(id) == 'S' ? asleep + 1 : 0;
                assert_true(clock_mono_ms() < deadline_ms);
        }
        loop_stop(f->loop);
        loop_thread_join(f->loop);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                LOOP_TEST(timers_fire_in_the_order_of_their_deadlines),
                LOOP_TEST(timers_due_together_fire_in_the_order_of_arming),
                LOOP_TEST(a_disarmed_timer_does_not_fire),
                LOOP_TEST(a_timer_that_rearms_itself_without_delay_starves_nobody),
                LOOP_TEST(a_period_goes_on_and_missed_beats_are_skipped),
                LOOP_TEST(a_timer_may_remove_itself_and_others_due_with_it),
                LOOP_TEST(a_failing_timer_is_disarmed_and_the_loop_goes_on),
                LOOP_TEST(many_timers_keep_their_order_through_rearming),
                LOOP_TEST(a_readable_descriptor_is_reported_until_it_is_read),
                LOOP_TEST(events_can_be_switched_off_and_on),
                LOOP_TEST(a_callback_may_remove_and_close_itself_and_a_neighbour),
                LOOP_TEST(a_failing_source_ends_alone_and_still_belongs_to_its_owner),
                LOOP_TEST(tasks_run_in_the_order_of_posting),
                LOOP_TEST(a_task_that_posts_itself_again_starves_no_descriptor),
                LOOP_TEST(a_flood_of_tasks_lets_descriptors_in_between),
                LOOP_TEST(freeing_a_loop_runs_what_is_still_posted),
                LOOP_TEST(posts_and_calls_from_many_threads_all_run),
                LOOP_TEST(the_thread_bears_the_name_blocks_signals_and_calls_inline),
                LOOP_TEST(stopping_before_the_run_is_not_forgotten),
                LOOP_TEST(a_loop_falls_asleep_again_after_being_woken),
        };

        slog_init("test-loop");
        return cmocka_run_group_tests(tests, NULL, NULL);
}
