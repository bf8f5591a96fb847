/* The control socket and its framing: hostile and vanishing clients included. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/slog.h"
#include "control_server.h"

static char dir[] = "/tmp/stepdown-control-XXXXXX";
static char path[64];

struct fixture {
        struct loop *loop;
        struct control_server *server;
        int requests;
};

static void on_request(struct control_peer *p, const json_t *request, void *userdata)
{
        struct fixture *f = userdata;

        f->requests++;
        if (json_is_true(json_object_get(request, "subscribe")))
                control_subscribe(p);
        control_reply(p, json_pack("{s:b, s:O}", "ok", 1, "you_said", json_object_get(request, "op")));
}

static void set_up(struct fixture *f)
{
        *f = (struct fixture){0};
        assert_int_equal(loop_new("test", &f->loop), 0);
        assert_int_equal(control_server_new(f->loop, path, on_request, f, &f->server), 0);
}

static void tear_down(struct fixture *f)
{
        f->server = control_server_free(f->server);
        f->loop = loop_free(f->loop);
}

static int dial(void)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        memcpy(a.sun_path, path, strlen(path) + 1);
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        return fd;
}

static void put(int fd, const char *text)
{
        assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static int stop(struct loop *l, void *userdata)
{
        (void)userdata;
        loop_stop(l);
        return 0;
}

/* Let the server work until it has nothing to do for 20 ms. */
static void work(struct fixture *f)
{
        struct loop_timer *t;

        assert_int_equal(loop_add_timer(f->loop, stop, NULL, &t), 0);
        loop_timer_arm(t, 20, 0);
        assert_int_equal(loop_run(f->loop), 0);
        (void)loop_timer_remove(t);
}

static ssize_t get(int fd, char *out, size_t size)
{
        ssize_t n = recv(fd, out, size - 1, MSG_DONTWAIT);

        out[n > 0 ? n : 0] = '\0';
        return n;
}

static void requests_are_answered_line_by_line(void **state)
{
        struct fixture f;
        char text[512];
        int fd;

        (void)state;
        set_up(&f);
        fd = dial();
        put(fd, "{\"op\":\"one\"}\n{\"op\":\"two\"}\n{\"op\":\"thr");
        work(&f);
        assert_true(get(fd, text, sizeof(text)) > 0);
        assert_string_equal(text, "{\"ok\":true,\"you_said\":\"one\"}\n{\"ok\":true,\"you_said\":\"two\"}\n");
        put(fd, "ee\"}\n");
        work(&f);
        assert_true(get(fd, text, sizeof(text)) > 0);
        assert_string_equal(text, "{\"ok\":true,\"you_said\":\"three\"}\n");
        (void)close(fd);
        work(&f);
        tear_down(&f);
}

static void what_is_no_object_ends_that_connection_alone(void **state)
{
        static const char *const bad[] = {"hello\n", "[]\n", "{\"op\":\n", "\n", "{\"op\":\"x\"}{}\n"};
        struct fixture f;
        char text[512];
        int good;

        (void)state;
        set_up(&f);
        good = dial();
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                int fd = dial();

                put(fd, bad[i]);
                work(&f);
                assert_int_equal(get(fd, text, sizeof(text)), 0);
                (void)close(fd);
        }
        put(good, "{\"op\":\"still here\"}\n");
        work(&f);
        assert_true(get(good, text, sizeof(text)) > 0);
        (void)close(good);
        tear_down(&f);
}

static void a_line_past_the_ceiling_ends_the_connection(void **state)
{
        struct fixture f;
        char text[64];
        int fd;

        (void)state;
        set_up(&f);
        fd = dial();
        for (int i = 0; i < 100; i++)
                if (send(fd,
                         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
                         "xx"
                         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                         150, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                        break;
        work(&f);
        assert_true(get(fd, text, sizeof(text)) <= 0 && errno != EAGAIN);
        assert_int_equal(f.requests, 0);
        (void)close(fd);
        tear_down(&f);
}

static void a_subscriber_that_never_reads_costs_only_itself(void **state)
{
        json_t *line;
        struct fixture f;
        char *pad, text[512];
        int lazy, good;

        (void)state;
        pad = malloc(60001);
        assert_non_null(pad);
        memset(pad, 'x', 60000);
        pad[60000] = '\0';
        line = json_pack("{s:s}", "pad", pad);
        set_up(&f);
        lazy = dial();
        good = dial();
        put(lazy, "{\"op\":\"a\",\"subscribe\":true}\n");
        work(&f);
        for (int i = 0; i < 40; i++)
                control_publish(f.server, line);
        work(&f);
        put(good, "{\"op\":\"b\"}\n");
        work(&f);
        assert_true(get(good, text, sizeof(text)) > 0);
        (void)close(lazy);
        (void)close(good);
        work(&f);
        json_decref(line);
        free(pad);
        tear_down(&f);
}

static void more_clients_than_allowed_are_turned_away(void **state)
{
        struct fixture f;
        char text[256];
        int fds[34];

        (void)state;
        set_up(&f);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
                fds[i] = dial();
                work(&f);
        }
        assert_true(get(fds[33], text, sizeof(text)) > 0);
        assert_non_null(strstr(text, "too_many_clients"));
        (void)close(fds[0]);
        work(&f);
        (void)close(fds[33]);
        fds[33] = dial();
        put(fds[33], "{\"op\":\"room again\"}\n");
        work(&f);
        assert_true(get(fds[33], text, sizeof(text)) > 0);
        assert_non_null(strstr(text, "room again"));
        for (size_t i = 1; i < ARRAY_SIZE(fds); i++)
                (void)close(fds[i]);
        tear_down(&f);
}

static void a_path_left_by_a_killed_process_is_taken_over_but_not_a_live_one(void **state)
{
        struct control_server *second;
        struct fixture f;
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        (void)state;
        memcpy(a.sun_path, path, strlen(path) + 1);
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(listen(fd, 1), 0);
        (void)close(fd); /* as SIGKILL leaves it: the path stays */
        set_up(&f);
        assert_int_equal(control_server_new(f.loop, path, on_request, &f, &second), -EADDRINUSE);
        tear_down(&f);
        assert_int_equal(access(path, F_OK), -1);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_are_answered_line_by_line),
                cmocka_unit_test(what_is_no_object_ends_that_connection_alone),
                cmocka_unit_test(a_line_past_the_ceiling_ends_the_connection),
                cmocka_unit_test(a_subscriber_that_never_reads_costs_only_itself),
                cmocka_unit_test(more_clients_than_allowed_are_turned_away),
                cmocka_unit_test(a_path_left_by_a_killed_process_is_taken_over_but_not_a_live_one),
        };
        int failed;

        slog_set_level(SLOG_ERROR);
        if (!mkdtemp(dir))
                return 1;
        (void)snprintf(path, sizeof(path), "%s/ctl.sock", dir);
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        (void)rmdir(dir);
        return failed;
}
