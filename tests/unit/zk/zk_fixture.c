#include "zk_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* zookeeper_close() forgets completions it did not call (ZOOKEEPER-3868), and their memory with them. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
        return "leak:libzookeeper_mt";
}

/* Two handles of one process format addresses for their logs into one static buffer (ZOOKEEPER-4810). Nothing
 * of ours calls vsprintf(). */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
        return "race:vsprintf";
}

static const char *helper;
static char dir[] = "/tmp/stepdown-zk-XXXXXX";
static char address[128];
static pid_t server_pid;

void fixture_use_helper(const char *path)
{
        helper = path;
}

static int run(const char *verb, char *out, size_t size)
{
        char command[512];
        FILE *f;
        size_t n;

        (void)snprintf(command, sizeof(command), "'%s' %s --dir '%s' %s", helper, verb, dir,
                       strcmp(verb, "start") == 0 ? "--no-sync --tick 250" : "");
        f = popen(command, "r");
        if (!f)
                return -1;
        n = fread(out, 1, size - 1, f);
        out[n] = '\0';
        out[strcspn(out, "\n")] = '\0';
        return pclose(f);
}

int fixture_server_start(void **state)
{
        char path[128];
        FILE *f;

        (void)state;
        if (!helper || !mkdtemp(dir) || run("start", address, sizeof(address)) != 0)
                return -1;
        (void)snprintf(path, sizeof(path), "%s/zookeeper.pid", dir);
        f = fopen(path, "r");
        if (!f || fscanf(f, "%d", &server_pid) != 1)
                return -1;
        return fclose(f);
}

int fixture_server_stop(void **state)
{
        char out[128], command[160];
        int r;

        (void)state;
        r = run("stop", out, sizeof(out));
        (void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
        return r != 0 || system(command) != 0 ? -1 : 0;
}

const char *fixture_address(void)
{
        return address;
}

static bool thread_stopped(const char *tid)
{
        char path[300], text[512] = "", *state;
        FILE *f;

        (void)snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", server_pid, tid);
        f = fopen(path, "re");
        if (!f)
                return true; /* it has ended */
        (void)!fread(text, 1, sizeof(text) - 1, f);
        (void)fclose(f);
        state = strrchr(text, ')');
        return !state || state[2] == 'T';
}

static bool server_stopped(void *userdata)
{
        cleanup_with(freep) char *path = NULL;
        bool all = true;
        DIR *d;

        (void)userdata;
        assert_true(asprintf(&path, "/proc/%d/task", server_pid) > 0);
        d = opendir(path);
        assert_non_null(d);
        for (struct dirent *e; (e = readdir(d));)
                all = all && (e->d_name[0] == '.' || thread_stopped(e->d_name));
        (void)closedir(d);
        return all;
}

/* A stopped server has stopped with all its threads: they are told one after the other. */
void fixture_server_signal(int sig)
{
        assert_int_equal(kill(server_pid, sig), 0);
        if (sig == SIGSTOP)
                wait_until(server_stopped, NULL);
}

int fixture_server_go_on(void **state)
{
        (void)state;
        return kill(server_pid, SIGCONT);
}

void wait_until(bool (*ready)(void *userdata), void *userdata)
{
        int64_t until_ms = clock_mono_ms() + DEADLINE_MS;

        while (!ready(userdata)) {
                if (clock_mono_ms() > until_ms)
                        fail_msg("the condition did not come true in %d ms", DEADLINE_MS);
                (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        }
}

/* Wait on @changed (@lock held) until *count >= @want. */
static void wait_count(pthread_mutex_t *lock, pthread_cond_t *changed, const int *count, int want,
                       const char *what)
{
        struct timespec until;

        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += DEADLINE_MS / 1000;
        while (*count < want)
                if (pthread_cond_timedwait(changed, lock, &until) == ETIMEDOUT) {
                        (void)pthread_mutex_unlock(lock);
                        fail_msg("%s: %d of %d in %d ms", what, *count, want, DEADLINE_MS);
                }
}

static void on_event(enum zk_event e, void *userdata)
{
        struct client *c = userdata;

        (void)pthread_mutex_lock(&c->lock);
        c->events[e]++;
        (void)pthread_cond_broadcast(&c->changed);
        (void)pthread_mutex_unlock(&c->lock);
}

struct client *client_new_at(const char *connect, int64_t session_timeout_ms, int64_t op_timeout_ms)
{
        struct client *c = calloc(1, sizeof(*c));
        struct zk_options o = {
                .connect = connect,
                .session_timeout_ms = session_timeout_ms,
                .op_timeout_ms = op_timeout_ms,
                .on_event = on_event,
                .userdata = c,
        };

        assert_non_null(c);
        (void)pthread_mutex_init(&c->lock, NULL);
        (void)pthread_cond_init(&c->changed, NULL);
        assert_int_equal(loop_new("client", &c->loop), 0);
        o.event_loop = c->loop;
        assert_int_equal(zk_new(&o, &c->z), 0);
        assert_int_equal(loop_thread_start(c->loop), 0);
        return c;
}

struct client *client_new(int64_t session_timeout_ms, int64_t op_timeout_ms)
{
        static int n;
        char connect[256];

        (void)snprintf(connect, sizeof(connect), "%s/test/%d", address, n++);
        return client_new_at(connect, session_timeout_ms, op_timeout_ms);
}

void client_free(struct client *c)
{
        c->z = zk_free(c->z);
        loop_stop(c->loop);
        loop_thread_join(c->loop);
        loop_free(c->loop);
        (void)pthread_cond_destroy(&c->changed);
        (void)pthread_mutex_destroy(&c->lock);
        free(c);
}

void client_wait_event(struct client *c, enum zk_event e, int count)
{
        (void)pthread_mutex_lock(&c->lock);
        wait_count(&c->lock, &c->changed, &c->events[e], count, "session event");
        (void)pthread_mutex_unlock(&c->lock);
}

void client_connected(struct client *c)
{
        client_wait_event(c, ZK_CONNECTED, 1);
}

struct seen *seen_new(void)
{
        struct seen *s = calloc(1, sizeof(*s));

        assert_non_null(s);
        (void)pthread_mutex_init(&s->lock, NULL);
        (void)pthread_cond_init(&s->changed, NULL);
        return s;
}

void seen_free(struct seen *s)
{
        (void)pthread_cond_destroy(&s->changed);
        (void)pthread_mutex_destroy(&s->lock);
        free(s);
}

void on_seen(const struct zk_result *res, void *userdata)
{
        struct seen *s = userdata;

        (void)pthread_mutex_lock(&s->lock);
        s->calls++;
        s->r = res->r;
        s->has_data = res->data != NULL;
        (void)snprintf(s->data, sizeof(s->data), "%s", res->data ? res->data : "");
        s->stat = res->stat;
        s->n_children = res->n_children;
        s->n_ops = res->n_ops;
        for (size_t i = 0; i < res->n_ops && i < ARRAY_SIZE(s->op_results); i++) {
                s->op_results[i] = res->op_results[i];
                s->op_stats[i] = res->op_stats[i];
        }
        (void)pthread_cond_broadcast(&s->changed);
        (void)pthread_mutex_unlock(&s->lock);
}

void on_seen_watch(const char *path, void *userdata)
{
        struct seen *s = userdata;

        (void)pthread_mutex_lock(&s->lock);
        s->watch_calls++;
        (void)snprintf(s->watch_path, sizeof(s->watch_path), "%s", path);
        (void)pthread_cond_broadcast(&s->changed);
        (void)pthread_mutex_unlock(&s->lock);
}

void seen_wait_calls(struct seen *s, int calls)
{
        (void)pthread_mutex_lock(&s->lock);
        wait_count(&s->lock, &s->changed, &s->calls, calls, "callback");
        (void)pthread_mutex_unlock(&s->lock);
}

int seen_wait(struct seen *s)
{
        seen_wait_calls(s, 1);
        return s->r;
}

void seen_wait_watch(struct seen *s, int calls)
{
        (void)pthread_mutex_lock(&s->lock);
        wait_count(&s->lock, &s->changed, &s->watch_calls, calls, "watch");
        (void)pthread_mutex_unlock(&s->lock);
}

/* Run @call with a fresh seen as @s, wait, keep what it saw in @ret if that is not NULL. */
#define BLOCKING(call, ret)                                                                                  \
        ({                                                                                                   \
                struct seen *s = seen_new();                                                                 \
                int _r;                                                                                      \
                assert_int_equal(call, 0);                                                                   \
                _r = seen_wait(s);                                                                           \
                if (ret)                                                                                     \
                        memcpy(ret, s, sizeof(*s));                                                          \
                seen_free(s);                                                                                \
                _r;                                                                                          \
        })

int do_create(struct client *c, const char *path, const char *data, bool ephemeral)
{
        struct seen *none = NULL;

        return BLOCKING(zk_create(c->z, c->loop, path, data, ephemeral, false, on_seen, s), none);
}

int do_set(struct client *c, const char *path, const char *data, int32_t version)
{
        struct seen *none = NULL;

        return BLOCKING(zk_set(c->z, c->loop, path, data, version, on_seen, s), none);
}

int do_get(struct client *c, const char *path, struct seen *ret)
{
        return BLOCKING(zk_get(c->z, c->loop, path, NULL, on_seen, s), ret);
}

int do_exists(struct client *c, const char *path, struct seen *ret)
{
        return BLOCKING(zk_exists(c->z, c->loop, path, NULL, on_seen, s), ret);
}

int do_delete(struct client *c, const char *path, int32_t version)
{
        struct seen *none = NULL;

        return BLOCKING(zk_delete(c->z, c->loop, path, version, on_seen, s), none);
}

/* ZooKeeper's session password: 16 bytes of java.util.Random seeded with id ^ 0xB3415C00. */
static void session_password(int64_t session_id, char out[16])
{
        const uint64_t mask = (1ULL << 48) - 1, multiplier = 0x5DEECE66DULL;
        uint64_t seed = (((uint64_t)session_id ^ 0xB3415C00ULL) ^ multiplier) & mask;

        for (int i = 0; i < 16; i += 4) {
                uint32_t word;

                seed = (seed * multiplier + 0xB) & mask;
                word = (uint32_t)(seed >> 16);
                for (int k = 0; k < 4; k++)
                        out[i + k] = (char)(word >> (8 * k));
        }
}

static void ignore_event(zhandle_t *zh, int type, int state, const char *path, void *ctx)
{
        (void)zh;
        (void)type;
        (void)state;
        (void)path;
        (void)ctx;
}

static bool raw_settled(void *userdata)
{
        int state = zoo_state(userdata);

        return state == ZOO_CONNECTED_STATE || state == ZOO_EXPIRED_SESSION_STATE;
}

static void ignore_line(const char *line)
{
        (void)line;
}

void zk_test_kill_session(const char *server, int64_t session_id)
{
        clientid_t id = {.client_id = session_id};
        bool gone = false;

        session_password(session_id, id.passwd);
        /* The victim may take the session back before our close is through: until the server says it is gone.
         */
        for (int i = 0; i < 100 && !gone; i++) {
                zhandle_t *zh = zookeeper_init2(server, ignore_event, 10000, &id, NULL, ZOO_NO_LOG_CLIENTENV,
                                                ignore_line);

                assert_non_null(zh);
                wait_until(raw_settled, zh);
                gone = zoo_state(zh) == ZOO_EXPIRED_SESSION_STATE;
                (void)zookeeper_close(zh); /* that it was closed is seen by the next round */
        }
        assert_true(gone);
}
