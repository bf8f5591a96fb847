/* Blocking work beside a loop: what systemd is told, who is called when. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "blocking.h"

struct fixture {
        struct loop *loop;
        pthread_t ran_on;
        int gate[2]; /* run() waits for a byte */
        int done_r, done_calls;
        bool waits;
};

static int run(void *userdata)
{
        struct fixture *f = userdata;
        char byte;

        f->ran_on = pthread_self();
        if (f->waits && read(f->gate[0], &byte, 1) != 1)
                return -EIO;
        return -ENOSPC;
}

static void done(int r, void *userdata)
{
        struct fixture *f = userdata;

        f->done_r = r;
        f->done_calls++;
        loop_stop(f->loop);
}

static void set_up(struct fixture *f, bool waits)
{
        *f = (struct fixture){.waits = waits};
        assert_int_equal(pipe(f->gate), 0);
        assert_int_equal(loop_new("test", &f->loop), 0);
}

static void tear_down(struct fixture *f)
{
        f->loop = loop_free(f->loop);
        (void)close(f->gate[0]);
        (void)close(f->gate[1]);
}

static struct blocking *start(struct fixture *f)
{
        const struct blocking_work work = {.status = "Testing", .run = run, .done = done, .userdata = f};
        struct blocking *b = NULL;

        assert_int_equal(blocking_start(f->loop, &work, &b), 0);
        return b;
}

static void the_result_comes_on_the_loop_and_the_work_runs_elsewhere(void **state)
{
        struct fixture f;
        struct blocking *b;

        (void)state;
        set_up(&f, false);
        b = start(&f);
        assert_int_equal(loop_run(f.loop), 0);
        assert_int_equal(f.done_calls, 1);
        assert_int_equal(f.done_r, -ENOSPC);
        assert_false(pthread_equal(f.ran_on, pthread_self()));
        b = blocking_free(b);
        tear_down(&f);
}

static int on_beat(struct loop *l, void *userdata)
{
        struct fixture *f = userdata;

        (void)l;
        assert_int_equal(write(f->gate[1], "x", 1), 1);
        return 0;
}

static void the_loop_goes_on_meanwhile(void **state)
{
        struct loop_timer *beat;
        struct fixture f;
        struct blocking *b;

        (void)state;
        set_up(&f, true);
        b = start(&f);
        assert_int_equal(loop_add_timer(f.loop, on_beat, &f, &beat), 0);
        loop_timer_arm(beat, 1, 0); /* only if it fires does the work end */
        assert_int_equal(loop_run(f.loop), 0);
        assert_int_equal(f.done_calls, 1);
        beat = loop_timer_remove(beat);
        b = blocking_free(b);
        tear_down(&f);
}

static void one_that_is_freed_before_its_end_is_waited_for_and_not_reported(void **state)
{
        struct fixture f;
        struct blocking *b;

        (void)state;
        set_up(&f, true);
        b = start(&f);
        assert_int_equal(write(f.gate[1], "x", 1), 1);
        b = blocking_free(b);
        tear_down(&f);
        assert_int_equal(f.done_calls, 0);
}

static void systemd_is_told_that_it_takes_longer(void **state)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        char text[256] = "";
        struct fixture f;
        struct blocking *b;
        ssize_t n;
        int fd;

        (void)state;
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(sa_family_t)),
                         0); /* an abstract name is made up */
        assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &(socklen_t){sizeof(a)}), 0);
        (void)snprintf(text, sizeof(text), "@%.5s", a.sun_path + 1);
        assert_int_equal(setenv("NOTIFY_SOCKET", text, 1), 0);

        set_up(&f, false);
        b = start(&f);
        n = recv(fd, text, sizeof(text) - 1, 0);
        assert_true(n > 0);
        text[n] = '\0';
        assert_non_null(strstr(text, "EXTEND_TIMEOUT_USEC=30000000"));
        assert_non_null(strstr(text, "STATUS=Testing for 0 s"));
        assert_int_equal(loop_run(f.loop), 0);
        b = blocking_free(b);
        tear_down(&f);
        assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
        (void)close(fd);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_result_comes_on_the_loop_and_the_work_runs_elsewhere),
                cmocka_unit_test(the_loop_goes_on_meanwhile),
                cmocka_unit_test(one_that_is_freed_before_its_end_is_waited_for_and_not_reported),
                cmocka_unit_test(systemd_is_told_that_it_takes_longer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
