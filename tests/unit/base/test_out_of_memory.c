/* Fails the first, then the second, … allocation of a scenario until it runs through. Each run must report
 * -ENOMEM and nothing else; that it neither crashes nor leaks is what the sanitizers watch. The linker sends
 * this program's allocations through __wrap_*() (see meson.build). */
#include "testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/config.h"
#include "base/fs.h"
#include "base/loop.h"
#include "base/map.h"

static int allocations_left = -1; /* -1: all succeed */

static bool is_refused(void)
{
        if (allocations_left < 0)
                return false;
        return allocations_left-- == 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **ret, const char *fmt, ...) printf_like(2, 3);

void *__wrap_malloc(size_t n)
{
        return is_refused() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
        return is_refused() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
        return is_refused() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
        return is_refused() ? NULL : __real_reallocarray(p, n, size);
}

char *__wrap_strdup(const char *s)
{
        return is_refused() ? NULL : __real_strdup(s);
}

char *__wrap_strndup(const char *s, size_t n)
{
        return is_refused() ? NULL : __real_strndup(s, n);
}

int __wrap_asprintf(char **ret, const char *fmt, ...)
{
        va_list ap;
        int n;

        *ret = (char *)-1; /* undefined after a failure: whoever frees it is found out */
        if (is_refused())
                return -1;
        va_start(ap, fmt);
        n = vasprintf(ret, fmt, ap);
        va_end(ap);
        return n;
}

static void fail_each_allocation_of(int (*scenario)(void *), void *userdata)
{
        int r = -ENOMEM, n = 0;

        for (; r == -ENOMEM; n++) {
                assert_true(n < 10000);
                allocations_left = n;
                r = scenario(userdata);
                allocations_left = -1;
        }
        assert_int_equal(r, 0);
        assert_true(n > 1); /* at least one was refused */
}

static int use_map(void *userdata)
{
        cleanup_with(map_freep) struct map *m = map_new();

        if (!m)
                return -ENOMEM;
        for (int64_t i = 0; i < 40; i++) {
                int r = map_put_int(m, i, userdata);

                /* a failed put changes nothing */
                if (map_count(m) != (size_t)i + (r == 0) || (map_get_int(m, i) != NULL) != (r == 0))
                        return -EIO;
                if (r < 0)
                        return r;
        }
        return 0;
}

static void a_map_survives_every_failing_allocation(void **state)
{
        int value;

        (void)state;
        fail_each_allocation_of(use_map, &value);
}

static int use_buf_and_arena(void *userdata)
{
        cleanup_with(buf_donep) struct buf b = {0};
        cleanup_with(arena_donep) struct arena a = {0};
        int r = 0;

        (void)userdata;
        for (int i = 0; i < 100 && r == 0; i++)
                r = buf_printf(&b, "%d,", i);
        if (r < 0)
                return r;
        for (int i = 0; i < 100; i++)
                if (!arena_strndup(&a, (const char *)b.data, b.len))
                        return -ENOMEM;
        return buf_cstr(&b) ? 0 : -ENOMEM;
}

static void buffer_and_arena_survive_every_failing_allocation(void **state)
{
        (void)state;
        fail_each_allocation_of(use_buf_and_arena, NULL);
}

static void do_nothing(void *userdata)
{
        (void)userdata;
}

static int on_nothing(struct loop *l, void *userdata)
{
        (void)l, (void)userdata;
        return 0;
}

static int on_nothing_fd(struct loop *l, int fd, uint32_t events, void *userdata)
{
        (void)l, (void)fd, (void)events, (void)userdata;
        return 0;
}

static int use_loop(void *userdata)
{
        cleanup_with(loop_freep) struct loop *l = NULL;
        struct loop_timer *t;
        struct loop_fd *s;
        int r;

        r = loop_new("torture", &l);
        for (int i = 0; i < 20 && r == 0; i++) {
                r = loop_add_timer(l, on_nothing, NULL, &t);
                if (r == 0)
                        loop_timer_arm(t, i, 0);
        }
        if (r == 0)
                r = loop_add_fd(l, *(int *)userdata, EPOLLIN, on_nothing_fd, NULL, &s);
        if (r == 0)
                r = loop_post(l, do_nothing, NULL);
        return r;
}

static void a_loop_survives_every_failing_allocation(void **state)
{
        int fds[2];

        (void)state;
        assert_int_equal(pipe(fds), 0);
        fail_each_allocation_of(use_loop, &fds[0]);
        closep(&fds[0]);
        closep(&fds[1]);
}

struct target {
        char *dirs, *rack;
        int id;
};

static const struct config_row rows[] = {
        {"log.dirs", CONFIG_STRING, offsetof(struct target, dirs), "/x", .help = "D"},
        {"broker.rack", CONFIG_STRING, offsetof(struct target, rack), "r", .help = "R"},
        {"broker.id", CONFIG_INT32, offsetof(struct target, id), "1", .help = "I"},
};

static int use_config(void *userdata)
{
        struct target t = {0};
        char *error = NULL;
        int r;

        r = config_load(rows, ARRAY_SIZE(rows), userdata, "TEST_STEPDOWN_",
                        (const char *[]){"broker.id=2", NULL}, &t, &error);
        if (r == 0 && (error || t.id != 2))
                r = -EIO;
        free(error);
        config_done(rows, ARRAY_SIZE(rows), &t);
        return r;
}

static void loading_survives_every_failing_allocation(void **state)
{
        const char *path = tmpdir_path(state, "c.yaml");
        static const char yaml[] = "log.dirs: [/a, /b]\nbroker.rack: x\n";

        assert_int_equal(fs_write_atomic(path, yaml, sizeof(yaml) - 1), 0);
        assert_int_equal(setenv("TEST_STEPDOWN_BROKER_RACK", "y", 1), 0);
        fail_each_allocation_of(use_config, (void *)path);
        assert_int_equal(unsetenv("TEST_STEPDOWN_BROKER_RACK"), 0);
}

static int use_files(void *userdata)
{
        cleanup_with(buf_donep) struct buf b = {0};
        int r;

        r = fs_write_atomic(userdata, "content", 7);
        if (r == 0)
                r = fs_mkdir_p("/tmp", 0755);
        return r < 0 ? r : fs_read_file(userdata, 100, &b);
}

static void files_survive_every_failing_allocation(void **state)
{
        fail_each_allocation_of(use_files, (void *)tmpdir_path(state, "f"));
}

#define TMPDIR_TEST(f) cmocka_unit_test_setup_teardown(f, tmpdir_setup, tmpdir_teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_map_survives_every_failing_allocation),
                cmocka_unit_test(buffer_and_arena_survive_every_failing_allocation),
                cmocka_unit_test(a_loop_survives_every_failing_allocation),
                TMPDIR_TEST(loading_survives_every_failing_allocation),
                TMPDIR_TEST(files_survive_every_failing_allocation),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
