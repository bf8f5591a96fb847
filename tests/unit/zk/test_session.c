#include "zk_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"

static void an_ephemeral_vanishes_when_its_session_is_closed(void **state)
{
        char connect[256];
        struct client *c, *other;
        struct seen got;

        (void)state;
        (void)snprintf(connect, sizeof(connect), "%s/eph/deep/er", fixture_address());
        c = client_new_at(connect, 6000, 0);
        other = client_new_at(connect, 6000, 0);
        assert_int_equal(do_create(c, "/e", "x", true), 0);
        assert_int_equal(do_exists(other, "/e", &got), 0);

        client_free(c);

        assert_int_equal(do_exists(other, "/e", &got), -ENOENT);
        client_free(other);
}

static void closing_completes_every_operation_exactly_once(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new();

        (void)state;
        client_connected(c);
        assert_int_equal(do_create(c, "/n", "", false), 0);
        fixture_server_signal(SIGSTOP); /* nothing is answered any more */
        for (int i = 0; i < 3000; i++)
                assert_int_equal(zk_set(c->z, c->loop, "/n", "x", -1, on_seen, s), 0);

        client_free(c);

        fixture_server_signal(SIGCONT);
        assert_int_equal(s->calls, 3000);
        assert_int_equal(s->r, -ECANCELED);
        seen_free(s);
}

static void closing_waits_for_what_was_sent(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *s = seen_new();

        (void)state;
        client_connected(c);
        assert_int_equal(do_create(c, "/n", "", false), 0);
        for (int i = 0; i < 100; i++)
                assert_int_equal(zk_set(c->z, c->loop, "/n", "x", i, on_seen, s), 0);
        client_free(c);
        assert_int_equal(s->calls, 100);
        assert_int_equal(s->r, 0);
        seen_free(s);
}

static void an_operation_times_out_at_its_deadline_although_the_library_still_waits(void **state)
{
        struct client *c = client_new(20000, 2000);
        struct seen *s = seen_new(), *watch = seen_new();
        int64_t start_ms;

        (void)state;
        client_connected(c);
        assert_int_equal(do_create(c, "/n", "", false), 0);
        fixture_server_signal(SIGSTOP);
        start_ms = clock_mono_ms();
        for (int i = 0; i < 1500; i++) /* more than may be in flight: some never leave */
                assert_int_equal(zk_set(c->z, c->loop, "/n", "late", -1, on_seen, s), 0);
        assert_int_equal(zk_get(c->z, c->loop, "/n", on_seen_watch, on_seen, watch), 0);
        seen_wait_calls(s, 1500);
        assert_int_equal(s->r, -ETIMEDOUT);
        assert_int_equal(seen_wait(watch), -ETIMEDOUT);
        assert_in_range(clock_mono_ms() - start_ms, 1950, 8000);

        /* Outcome unknown: the server executes what was sent, and the late replies reach nobody. */
        fixture_server_signal(SIGCONT);
        assert_int_equal(do_set(c, "/n", "after", -1), 0);
        client_free(c);
        assert_int_equal(s->calls, 1500);
        assert_int_equal(watch->calls, 1);
        assert_int_equal(watch->watch_calls, 0);
        seen_free(s);
        seen_free(watch);
}

struct old_session {
        struct zk *z;
        int64_t id;
};

static bool connected_anew(void *userdata)
{
        struct old_session *old = userdata;

        return zk_is_connected(old->z) && zk_session_id(old->z) != old->id;
}

/* A session that somebody closed at the server. */
static void expiry_ends_every_operation_and_watch_once_and_reopen_starts_anew(void **state)
{
        struct client *c = client_new(4000, 0);
        struct seen *watch = seen_new(), *late = seen_new(), got;
        int64_t first;

        (void)state;
        client_connected(c);
        first = zk_session_id(c->z);
        assert_int_equal(do_create(c, "/n", "", false), 0);
        assert_int_equal(do_create(c, "/e", "", true), 0);
        assert_int_equal(zk_get(c->z, c->loop, "/n", on_seen_watch, on_seen, watch), 0);
        assert_int_equal(seen_wait(watch), 0);

        zk_test_kill_session(fixture_address(), first);
        client_wait_event(c, ZK_EXPIRED, 1);

        assert_false(zk_lease_valid(c->z));
        assert_false(zk_is_connected(c->z));
        seen_wait_watch(watch, 1);
        for (int i = 0; i < 10; i++)
                assert_int_equal(zk_set(c->z, c->loop, "/n", "x", -1, on_seen, late), 0);
        seen_wait_calls(late, 10);
        assert_int_equal(late->r, -EOWNERDEAD);

        assert_int_equal(zk_reopen(c->z), 0);
        assert_int_equal(zk_reopen(c->z), -EBUSY);
        wait_until(connected_anew, &(struct old_session){c->z, first});
        assert_true(zk_session_is_own(c->z, first));
        assert_true(zk_session_is_own(c->z, zk_session_id(c->z)));
        assert_false(zk_session_is_own(c->z, first + 12345));
        assert_int_equal(do_exists(c, "/e", &got), -ENOENT);
        assert_int_equal(do_set(c, "/n", "new", -1), 0);
        client_free(c);
        assert_int_equal(watch->watch_calls, 1);
        assert_int_equal(late->calls, 10);
        seen_free(watch);
        seen_free(late);
}

static bool lease_invalid(void *userdata)
{
        return !zk_lease_valid(userdata);
}

static bool back_or_expired(void *userdata)
{
        struct client *c = userdata;
        bool yes;

        (void)pthread_mutex_lock(&c->lock);
        yes = c->events[ZK_CONNECTED] > 1 || c->events[ZK_EXPIRED] > 0;
        (void)pthread_mutex_unlock(&c->lock);
        return yes;
}

static bool lease_valid(void *userdata)
{
        return zk_lease_valid(userdata);
}

/* F2: the server is stopped, so nothing is confirmed and no session can expire before it goes on. */
static void the_lease_ends_before_the_session_can_have(void **state)
{
        struct client *c = client_new(3000, 60000);
        struct seen *sent = seen_new();
        int64_t stop_ms, deadline_ms, timeout_ms;

        (void)state;
        client_connected(c);
        wait_until(lease_valid, c->z);
        timeout_ms = zk_negotiated_timeout_ms(c->z);
        assert_int_equal(timeout_ms, 3000);
        assert_int_equal(do_create(c, "/n", "", false), 0);

        stop_ms = clock_boot_ms();
        fixture_server_signal(SIGSTOP);
        for (int i = 0; i < 100; i++)
                assert_int_equal(zk_set(c->z, c->loop, "/n", "x", -1, on_seen, sent), 0);
        wait_until(lease_invalid, c->z);
        deadline_ms = zk_lease_deadline_ms(c->z);

        /* Nothing sent after the stop counted; the lease was fresh when it came. */
        assert_true(deadline_ms <= stop_ms + timeout_ms * 2 / 3 + 50);
        assert_true(deadline_ms >= stop_ms + timeout_ms * 2 / 3 - timeout_ms / 12 - 600);
        assert_true(clock_boot_ms() < stop_ms + timeout_ms);

        client_wait_event(c, ZK_DISCONNECTED, 1);
        seen_wait_calls(sent, 100);
        assert_true(sent->r == -ETIMEDOUT || sent->r == -ECONNRESET); /* either way: outcome unknown */
        assert_false(zk_lease_valid(c->z));
        fixture_server_signal(SIGCONT); /* whether the session lives on is the server's race */
        wait_until(back_or_expired, c);
        client_free(c);
        assert_int_equal(sent->calls, 100);
        seen_free(sent);
}

static void what_waits_for_the_connection_hears_of_the_expiry(void **state)
{
        struct proxy *p = proxy_new();
        struct client *c = client_new_at(proxy_address(p), 10000, 60000);
        struct seen *queued = seen_new();

        (void)state;
        client_connected(c);
        proxy_refuse(p);
        client_wait_event(c, ZK_DISCONNECTED, 1);
        for (int i = 0; i < 100; i++)
                assert_int_equal(zk_set(c->z, c->loop, "/n", "y", -1, on_seen, queued), 0);
        proxy_cut_and_feign_expiry(p);
        client_wait_event(c, ZK_EXPIRED, 1);
        seen_wait_calls(queued, 100);
        assert_int_equal(queued->r, -EOWNERDEAD);
        assert_int_equal(zk_lease_deadline_ms(c->z), 0);
        client_free(c);
        assert_int_equal(queued->calls, 100);
        seen_free(queued);
        proxy_free(p);
}

static void what_waits_for_the_connection_is_sent_when_it_is_back(void **state)
{
        struct proxy *p = proxy_new();
        struct client *c = client_new_at(proxy_address(p), 10000, 60000);
        struct seen *watch = seen_new(), *queued = seen_new();
        int64_t session;

        (void)state;
        assert_int_equal(do_create(c, "/back", "0", false), 0);
        session = zk_session_id(c->z);
        assert_int_equal(zk_get(c->z, c->loop, "/back", on_seen_watch, on_seen, watch), 0);
        assert_int_equal(seen_wait(watch), 0);
        proxy_refuse(p);
        client_wait_event(c, ZK_DISCONNECTED, 1);
        assert_int_equal(zk_set(c->z, c->loop, "/back", "1", 0, on_seen, queued), 0);
        proxy_accept(p);
        assert_int_equal(seen_wait(queued), 0);
        seen_wait_watch(watch, 1); /* watches survive a reconnection */
        assert_int_equal(zk_session_id(c->z), session);
        assert_int_equal(c->events[ZK_EXPIRED], 0);
        assert_int_equal(do_delete(c, "/back", -1), 0);
        client_free(c);
        seen_free(watch);
        seen_free(queued);
        proxy_free(p);
}

struct watched_lease {
        struct zk *z;
        int64_t until_ms;
};

static bool lease_held_until(void *userdata)
{
        struct watched_lease *w = userdata;

        assert_true(zk_lease_valid(w->z));
        return clock_boot_ms() >= w->until_ms;
}

static void the_lease_advances_by_heartbeats_alone(void **state)
{
        struct client *c = client_new(2000, 0);
        struct watched_lease w = {c->z, clock_boot_ms() + 3000}; /* longer than a session unattended */
        int64_t first_ms;

        (void)state;
        client_connected(c);
        wait_until(lease_valid, c->z);
        first_ms = zk_lease_deadline_ms(c->z);
        wait_until(lease_held_until, &w);
        assert_true(zk_lease_deadline_ms(c->z) > first_ms + 1000);
        assert_int_equal(c->events[ZK_DISCONNECTED], 0);
        client_free(c);
}

static void a_host_name_is_resolved_and_an_unreachable_server_does_not_block(void **state)
{
        char connect[256];
        struct client *c, *dead;
        struct seen *s = seen_new();
        int64_t start_ms = clock_mono_ms();

        (void)state;
        (void)snprintf(connect, sizeof(connect), "localhost%s, no.such.host.invalid:1/names",
                       strchr(fixture_address(), ':'));
        c = client_new_at(connect, 6000, 0);
        assert_int_equal(do_create(c, "/n", "", false), 0);
        client_free(c);

        dead = client_new_at("127.0.0.1:1", 6000, 200);
        assert_int_equal(zk_get(dead->z, dead->loop, "/n", NULL, on_seen, s), 0);
        assert_int_equal(seen_wait(s), -ETIMEDOUT);
        client_free(dead);
        assert_true(clock_mono_ms() - start_ms < 10000);
        seen_free(s);
}

/* R82: an attempt that came to nothing is given up, connected or not, and the next one is a new session. */
static void an_abandoned_session_ends_what_waits_says_nothing_and_can_be_replaced(void **state)
{
        struct proxy *p = proxy_new();
        struct client *c = client_new_at(proxy_address(p), 6000, 0);
        struct seen *s = seen_new();
        int64_t first;

        (void)state;
        client_connected(c);
        first = zk_session_id(c->z);
        proxy_refuse(p);
        client_wait_event(c, ZK_DISCONNECTED, 1);
        assert_int_equal(zk_get(c->z, c->loop, "/", NULL, on_seen, s), 0);

        zk_abandon(c->z);

        assert_int_equal(seen_wait(s), -EOWNERDEAD);
        assert_false(zk_lease_valid(c->z));
        assert_int_equal(zk_reopen(c->z), 0);
        zk_abandon(c->z); /* before there is a handle, or while it connects */
        assert_int_equal(zk_reopen(c->z), 0);
        proxy_accept(p);
        client_wait_event(c, ZK_CONNECTED, 2);
        assert_int_not_equal(zk_session_id(c->z), first);
        assert_true(zk_session_is_own(c->z, first));
        assert_int_equal(c->events[ZK_EXPIRED], 0);
        client_free(c);
        proxy_free(p);
        seen_free(s);
}

static void an_unwatched_watch_stays_silent(void **state)
{
        struct client *c = client_new(6000, 0);
        struct seen *dropped = seen_new(), *kept = seen_new();

        (void)state;
        assert_int_equal(do_create(c, "/n", "0", false), 0);
        assert_int_equal(zk_get(c->z, c->loop, "/n", on_seen_watch, on_seen, dropped), 0);
        assert_int_equal(zk_get(c->z, c->loop, "/n", on_seen_watch, on_seen, kept), 0);
        assert_int_equal(seen_wait(kept), 0);
        zk_unwatch(c->z, dropped);
        assert_int_equal(do_set(c, "/n", "1", -1), 0);
        seen_wait_watch(kept, 1);
        client_free(c);
        assert_int_equal(dropped->watch_calls, 0);
        seen_free(dropped);
        seen_free(kept);
}

static void a_delay_ends_by_itself_or_with_the_session_or_the_handle(void **state)
{
        struct client *c = client_new(4000, 0);
        struct seen *timed = seen_new(), *expired = seen_new(), *closed = seen_new();
        int64_t start_ms = clock_mono_ms();

        (void)state;
        assert_int_equal(zk_delay(c->z, c->loop, 200, on_seen, timed), 0);
        assert_int_equal(seen_wait(timed), 0);
        assert_in_range(clock_mono_ms() - start_ms, 200, 5000);
        client_connected(c);
        assert_int_equal(zk_delay(c->z, c->loop, 60000, on_seen, expired), 0);
        zk_test_kill_session(fixture_address(), zk_session_id(c->z));
        assert_int_equal(seen_wait(expired), -EOWNERDEAD);
        client_wait_event(c, ZK_EXPIRED, 1);
        assert_int_equal(zk_reopen(c->z), 0);
        assert_int_equal(zk_delay(c->z, c->loop, 60000, on_seen, closed), 0);
        client_free(c);
        assert_int_equal(closed->calls, 1);
        assert_int_equal(closed->r, -ECANCELED);
        seen_free(timed);
        seen_free(expired);
        seen_free(closed);
}

struct self_free {
        struct client *c;
        struct seen *s;
};

static void free_from_callback(const struct zk_result *res, void *userdata)
{
        struct self_free *f = userdata;

        f->c->z = zk_free(f->c->z);
        on_seen(res, f->s);
}

static void it_may_be_freed_from_a_callback_of_its_own(void **state)
{
        struct client *c = client_new(6000, 0);
        struct self_free f = {c, seen_new()};
        struct seen *other = seen_new();

        (void)state;
        client_connected(c);
        assert_int_equal(zk_exists(c->z, c->loop, "/n", on_seen_watch, free_from_callback, &f), 0);
        for (int i = 0; i < 10; i++)
                assert_int_equal(zk_sync(c->z, c->loop, on_seen, other), 0);
        assert_int_equal(seen_wait(f.s), -ENOENT);
        seen_wait_calls(other, 10);
        client_free(c);
        seen_free(f.s);
        seen_free(other);
}

#define TEST(f) cmocka_unit_test_teardown(f, fixture_server_go_on)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(an_ephemeral_vanishes_when_its_session_is_closed),
                TEST(closing_completes_every_operation_exactly_once),
                TEST(closing_waits_for_what_was_sent),
                TEST(an_operation_times_out_at_its_deadline_although_the_library_still_waits),
                TEST(expiry_ends_every_operation_and_watch_once_and_reopen_starts_anew),
                TEST(the_lease_ends_before_the_session_can_have),
                TEST(what_waits_for_the_connection_hears_of_the_expiry),
                TEST(what_waits_for_the_connection_is_sent_when_it_is_back),
                TEST(the_lease_advances_by_heartbeats_alone),
                TEST(a_host_name_is_resolved_and_an_unreachable_server_does_not_block),
                TEST(an_abandoned_session_ends_what_waits_says_nothing_and_can_be_replaced),
                TEST(an_unwatched_watch_stays_silent),
                TEST(a_delay_ends_by_itself_or_with_the_session_or_the_handle),
                TEST(it_may_be_freed_from_a_callback_of_its_own),
        };

        if (argc < 2)
                return 77;
        fixture_use_helper(argv[1]);
        slog_set_level(argc > 2 ? SLOG_DEBUG : SLOG_ERROR);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
