/* The drain against admin listeners over real sockets: every kind of answer and of silence. Budgets are short
 * by configuration; nothing sleeps, the loop ends when the drain does. */
#include <curl/curl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/slog.h"
#include "drain_run.h"
#include "fake.h"

struct fixture {
        struct fake fake;
        struct loop *loop;
        struct sidecar_config config;
        struct drain_run *run;
        const char *set_at_draining; /* state to give the fake once the drain is under way */
        bool set_done;
        int max_remaining_seen;
        int64_t seconds_limit;
};

static void on_change(struct drain_run *run, enum drain_phase from, void *userdata)
{
        struct fixture *f = userdata;
        const struct drain_status *s = drain_run_status(run);

        (void)from;
        f->max_remaining_seen = MAX(f->max_remaining_seen, s->remaining);
        if (f->set_at_draining && !f->set_done && s->state == DRAIN_DRAINING) {
                f->set_done = true;
                fake_set(&f->fake, 0, f->set_at_draining);
        }
        if (drain_phase_is_ended(s->state))
                loop_stop(f->loop);
}

static void set_up(struct fixture *f, const char *spec, const int *order, const char *const *more)
{
        const char *overrides[32] = {NULL};
        char endpoints[512], text[600], *error = NULL;
        size_t n = 0;

        fake_start(&f->fake, spec);
        fake_endpoints(&f->fake, order, endpoints, sizeof(endpoints));
        (void)snprintf(text, sizeof(text), "admin.endpoints=%s", endpoints);
        overrides[n++] = text;
        overrides[n++] = "poll.interval=5ms";
        overrides[n++] = "retry.backoff.min=2ms";
        overrides[n++] = "retry.backoff.max=20ms";
        overrides[n++] = "admin.connect.timeout=300ms";
        overrides[n++] = "admin.request.timeout=300ms";
        overrides[n++] = "drain.deadline=20s";
        overrides[n++] = "no.controller.budget=1500ms";
        overrides[n++] = "broker.silent.budget=700ms";
        overrides[n++] = "settle.timeout=300ms";
        for (; more && *more; more++)
                overrides[n++] = *more;
        if (sidecar_config_load(NULL, overrides, &f->config, &error) < 0)
                fail_msg("%s", error);
        assert_int_equal(loop_new("test", &f->loop), 0);
        assert_int_equal(drain_run_new(f->loop, &f->config, on_change, f, &f->run), 0);
}

static void tear_down(struct fixture *f)
{
        f->run = drain_run_free(f->run);
        f->loop = loop_free(f->loop);
        sidecar_config_done(&f->config);
        fake_stop(&f->fake);
}

static int on_watchdog(struct loop *l, void *userdata)
{
        (void)userdata;
        loop_stop(l);
        return 0;
}

/* Run until the drain has ended, at most 15 s. */
static const struct drain_status *drain(struct fixture *f)
{
        struct drain_job job = {.reason = "test", .requested_by = "test", .epoch = DRAIN_UNKNOWN};
        struct loop_timer *watchdog;

        assert_int_equal(drain_run_start(f->run, &job), 0);
        assert_int_equal(loop_add_timer(f->loop, on_watchdog, NULL, &watchdog), 0);
        loop_timer_arm(watchdog, 15000, 0);
        assert_int_equal(loop_run(f->loop), 0);
        (void)loop_timer_remove(watchdog);
        return drain_run_status(f->run);
}

#define ORDER(...) ((const int[]){__VA_ARGS__, -1})
#define MORE(...)  ((const char *const[]){__VA_ARGS__, NULL})

static void L1_a_drain_ends_at_zero_seen_by_controller_and_broker(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}]}", ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_DRAINED);
        assert_int_equal(s->remaining, 0);
        assert_int_equal(s->leaders, 0);
        assert_int_equal(s->moved, 6);
        assert_int_equal(s->broker, 1);
        assert_int_equal(s->epoch, 41);
        assert_int_equal(fake_count(&f.fake, 0, "PUT", "/v1/brokers/1/drain"), 1);
        assert_true(fake_count(&f.fake, 0, "GET", "/v1/brokers/1/drain") >= 3);
        tear_down(&f);
}

static void a_redirect_is_followed_and_its_target_asked_first_from_then_on(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"redirect\",\"to\":1},{\"role\":\"controller\"}]}", ORDER(0),
               NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_DRAINED);
        assert_int_equal(fake_count(&f.fake, 1, "PUT", "/v1/brokers/1/drain"),
                         2); /* asked, then redirected */
        tear_down(&f);
}

static void a_redirect_that_goes_round_is_not_followed_for_ever(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"redirect\",\"to\":1},{\"role\":\"redirect\",\"to\":0}]}",
               ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_NO_CONTROLLER);
        tear_down(&f);
}

static void L3_a_503_is_tried_again_until_a_controller_is_there(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}],\"refuse_first\":7}", ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_DRAINED);
        assert_int_equal(fake_count(&f.fake, 0, "PUT", "/v1/brokers/1/drain"), 8);
        tear_down(&f);
}

static void L3_every_kind_of_bad_endpoint_is_passed_over(void **state)
{
        static const struct {
                const char *server;
                bool mute; /* the broker's own view does not come either: its 0 stays unknown (L1) */
        } bad[] = {
                {"{\"role\":\"closed\"}", true},
                {"{\"role\":\"hang\"}", true},
                {"{\"role\":\"slow\"}", true},
                {"{\"role\":\"garbage\"}", false},
                {"{\"role\":\"huge\"}", false},
                {"{\"role\":\"status\",\"code\":500}", false},
                {"{\"role\":\"status\",\"code\":429}", false},
                {"{\"role\":\"status\",\"code\":404,\"body\":{\"error\":\"no_such_path\"}}", false},
                {"{\"role\":\"status\",\"code\":200,\"body\":{\"broker\":1,\"state\":\"drained\"}}", false},
                {"{\"role\":\"status\",\"code\":200,\"body\":{\"broker\":9,\"state\":\"drained\","
                 "\"leaders_remaining\":0}}",
                 false},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct fixture f = {0};
                const struct drain_status *s;
                char spec[512];

                (void)snprintf(spec, sizeof(spec), "{\"servers\":[{\"role\":\"controller\"},%s]}",
                               bad[i].server);
                set_up(&f, spec, ORDER(1, 0), MORE("broker.id=1"));
                s = drain(&f);
                assert_int_equal(s->state, bad[i].mute ? DRAIN_INCOMPLETE : DRAIN_DRAINED);
                assert_int_equal(s->why, bad[i].mute ? DRAIN_WHY_BROKER_SILENT : DRAIN_WHY_NONE);
                assert_int_equal(s->remaining, 0);
                tear_down(&f);
        }
}

static void L1_a_broker_that_says_nothing_ends_as_incomplete_not_as_drained(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"},{\"role\":\"closed\"}]}", ORDER(1, 0),
               MORE("broker.id=1"));
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_INCOMPLETE);
        assert_int_equal(s->why, DRAIN_WHY_BROKER_SILENT);
        assert_int_equal(s->remaining, 0);
        assert_int_equal(s->leaders, DRAIN_UNKNOWN);
        tear_down(&f);
}

static void L5_nobody_listening_ends_as_no_controller_within_the_budget(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;
        int64_t began = clock_mono_ms();

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"closed\"},{\"role\":\"closed\"}]}", ORDER(0, 1),
               MORE("broker.id=1", "no.controller.budget=600ms"));
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_NO_CONTROLLER);
        assert_int_equal(s->remaining, DRAIN_UNKNOWN);
        assert_in_range(clock_mono_ms() - began, 600, 5000);
        assert_in_range(s->elapsed_ms, 590, 1500);
        tear_down(&f);
}

static void L5_a_controller_that_hangs_does_not_hold_the_drain(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"hang\"}]}", ORDER(0),
               MORE("broker.id=1", "no.controller.budget=1s"));
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_NO_CONTROLLER);
        assert_in_range(s->elapsed_ms, 990, 2500);
        tear_down(&f);
}

static void L3_an_unknown_broker_is_done(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}],\"leaders\":0}", ORDER(0), MORE("broker.id=5"));
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_UNKNOWN_BROKER);
        tear_down(&f);
}

static void D2_a_newer_incarnation_is_not_drained(void **state)
{
        struct fixture f = {0};
        struct drain_job job = {.epoch = 40, .drain_id = "of-the-old-one"};

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}]}", ORDER(0), NULL);
        assert_int_equal(drain_run_start(f.run, &job), 0);
        assert_int_equal(loop_run(f.loop), 0);
        assert_int_equal(drain_run_status(f.run)->state, DRAIN_STALE);
        assert_int_equal(fake_count(&f.fake, 0, "PUT", NULL), 0);
        tear_down(&f);
}

static void D1_a_drain_in_progress_under_another_id_is_joined(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}],\"drain_id\":\"theirs\"}", ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_DRAINED);
        assert_string_equal(s->drain_id, "theirs");
        tear_down(&f);
}

static void R28_a_new_controller_without_the_drain_is_asked_for_it_again(void **state)
{
        struct fixture f = {.set_at_draining = "{\"drain_id\":\"\",\"generation\":2}"};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}],\"leaders\":40}", ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_DRAINED);
        assert_true(f.set_done);
        assert_int_equal(fake_count(&f.fake, 0, "PUT", "/v1/brokers/1/drain"), 2);
        tear_down(&f);
}

static void zookeeper_down_is_never_drained_and_ends_within_the_budget(void **state)
{
        struct fixture f = {.set_at_draining = "{\"zookeeper_down\":true,\"leaders\":0}"};
        const struct drain_status *s;

        (void)state;
        /* the worst liar: it claims 0 from memory while its ZooKeeper is away, and the broker agrees */
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}],\"leaders\":40}", ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_INCOMPLETE);
        assert_int_equal(s->why, DRAIN_WHY_ZOOKEEPER);
        assert_in_range(s->elapsed_ms, 1400, 4000);
        tear_down(&f);
}

static void L4_what_cannot_be_moved_is_named_at_the_deadline(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}],\"leaders\":3,\"step\":0}", ORDER(0),
               MORE("drain.deadline=500ms"));
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_INCOMPLETE);
        assert_int_equal(s->why, DRAIN_WHY_DEADLINE);
        assert_int_equal(s->remaining, 3);
        assert_int_equal(s->n_blocked, 3);
        assert_string_equal(s->blocked[2].topic, "t");
        assert_int_equal(s->blocked[2].partition, 2);
        assert_string_equal(s->blocked[2].reason, "no_other_in_sync_replica");
        tear_down(&f);
}

static void L3_refused_credentials_end_it_at_once(void **state)
{
        struct fixture f = {0};
        const struct drain_status *s;

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"status\",\"code\":401,\"body\":{\"error\":\"unauthorized\"}}]}",
               ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_INCOMPLETE);
        assert_int_equal(s->why, DRAIN_WHY_REFUSED);
        assert_non_null(strstr(s->message, "401"));
        assert_true(s->elapsed_ms < 1000);
        tear_down(&f);
}

static void endpoints_of_the_cluster_are_learnt(void **state)
{
        struct fixture f = {.set_at_draining = "{}"};
        const struct drain_status *s;

        (void)state;
        /* The configured listener is this broker's own and refuses; its cluster view names the controller. */
        set_up(&f,
               "{\"servers\":[{\"role\":\"status\",\"code\":503,\"lists_brokers\":true},{\"role\":"
               "\"controller\"}]}",
               ORDER(0), NULL);
        s = drain(&f);
        assert_int_equal(s->state, DRAIN_DRAINED);
        tear_down(&f);
}

static void an_undo_deletes_the_drain(void **state)
{
        struct fixture f = {0};

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"controller\"}],\"drain_id\":\"theirs\"}", ORDER(0), NULL);
        drain_run_undo(f.run); /* this run knows neither the drain nor the broker's id yet */
        assert_int_equal(loop_run(f.loop), 0);
        assert_int_equal(drain_run_status(f.run)->state, DRAIN_ABORTED);
        assert_int_equal(drain_run_status(f.run)->why, DRAIN_WHY_UNDONE);
        assert_int_equal(fake_count(&f.fake, 0, "DELETE", "/v1/brokers/1/drain"), 1);
        tear_down(&f);
}

static void a_run_can_be_freed_with_calls_in_flight(void **state)
{
        struct fixture f = {0};
        struct drain_job job = {.epoch = DRAIN_UNKNOWN};

        (void)state;
        set_up(&f, "{\"servers\":[{\"role\":\"hang\"}]}", ORDER(0), NULL);
        assert_int_equal(drain_run_start(f.run, &job), 0);
        tear_down(&f);
}

static int group_set_up(void **state)
{
        (void)state;
        slog_set_level(SLOG_ERROR);
        return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -1;
}

static int group_tear_down(void **state)
{
        (void)state;
        curl_global_cleanup();
        return 0;
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(L1_a_drain_ends_at_zero_seen_by_controller_and_broker),
                cmocka_unit_test(a_redirect_is_followed_and_its_target_asked_first_from_then_on),
                cmocka_unit_test(a_redirect_that_goes_round_is_not_followed_for_ever),
                cmocka_unit_test(L3_a_503_is_tried_again_until_a_controller_is_there),
                cmocka_unit_test(L3_every_kind_of_bad_endpoint_is_passed_over),
                cmocka_unit_test(L1_a_broker_that_says_nothing_ends_as_incomplete_not_as_drained),
                cmocka_unit_test(L5_nobody_listening_ends_as_no_controller_within_the_budget),
                cmocka_unit_test(L5_a_controller_that_hangs_does_not_hold_the_drain),
                cmocka_unit_test(L3_an_unknown_broker_is_done),
                cmocka_unit_test(D2_a_newer_incarnation_is_not_drained),
                cmocka_unit_test(D1_a_drain_in_progress_under_another_id_is_joined),
                cmocka_unit_test(R28_a_new_controller_without_the_drain_is_asked_for_it_again),
                cmocka_unit_test(zookeeper_down_is_never_drained_and_ends_within_the_budget),
                cmocka_unit_test(L4_what_cannot_be_moved_is_named_at_the_deadline),
                cmocka_unit_test(L3_refused_credentials_end_it_at_once),
                cmocka_unit_test(endpoints_of_the_cluster_are_learnt),
                cmocka_unit_test(an_undo_deletes_the_drain),
                cmocka_unit_test(a_run_can_be_freed_with_calls_in_flight),
        };

        return cmocka_run_group_tests(tests, group_set_up, group_tear_down);
}
