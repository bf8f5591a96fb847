/* The drain core: plain structs in, plain structs out, a clock that is a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "drain_core.h"

#define EPOCH 77

struct fixture {
        struct drain d;
        struct drain_effects fx;
        int64_t now;
        uint32_t random;
};

static const struct drain_params standard = {
        .deadline_ms = 600000,
        .hard_limit_ms = 900000,
        .no_controller_ms = 60000,
        .broker_silent_ms = 30000,
        .settle_ms = 10000,
        .undo_ms = 10000,
        .stall_ms = 30000,
        .poll_ms = 200,
        .backoff_min_ms = 100,
        .backoff_max_ms = 5000,
        .policy = DRAIN_PROCEED,
};

static void feed(struct fixture *f, struct drain_event ev)
{
        ev.random = f->random;
        drain_handle(&f->d, &ev, f->now, &f->fx);
}

static void feed_type(struct fixture *f, enum drain_event_type type)
{
        feed(f, (struct drain_event){.type = type, .endpoint = -1, .epoch = DRAIN_UNKNOWN});
}

static void init(struct fixture *f, const struct drain_params *p, int n_endpoints)
{
        *f = (struct fixture){.now = 1000000};
        drain_init(&f->d, p, n_endpoints);
}

static void broker_says(struct fixture *f, int64_t epoch, int32_t leaders)
{
        feed(f, (struct drain_event){
                        .type = DRAIN_EV_BROKER_ANSWER,
                        .broker = {.epoch = epoch, .leaders = leaders},
                });
}

static void controller_says(struct fixture *f, enum controller_drain_state state, int32_t remaining,
                            int32_t moved)
{
        feed(f, (struct drain_event){
                        .type = DRAIN_EV_CONTROLLER_ANSWER,
                        .http_status = 200,
                        .endpoint = -1,
                        .controller = {.state = state,
                                       .ours = true,
                                       .epoch = EPOCH,
                                       .generation = 3,
                                       .remaining = remaining,
                                       .moved = moved},
                });
}

static void controller_refuses(struct fixture *f, int status)
{
        feed(f, (struct drain_event){
                        .type = DRAIN_EV_CONTROLLER_REFUSAL, .http_status = status, .endpoint = -1});
}

/* The time the core asked for comes. */
static void wait_for_tick(struct fixture *f)
{
        assert_true(f->fx.wake_ms != DRAIN_NEVER);
        f->now = MAX(f->now, f->fx.wake_ms);
        feed_type(f, DRAIN_EV_TICK);
}

static void start_accepted(struct fixture *f, int32_t leaders)
{
        feed_type(f, DRAIN_EV_START);
        assert_true(f->fx.ask_broker);
        broker_says(f, EPOCH, leaders);
        assert_int_equal(f->fx.call, DRAIN_CALL_PUT);
        controller_says(f, CONTROLLER_DRAINING, leaders, 0);
        assert_int_equal(f->d.state, DRAIN_DRAINING);
        broker_says(f, EPOCH, leaders);
}

static void D2_the_broker_is_asked_for_its_epoch_before_the_request(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 3);
        feed_type(&f, DRAIN_EV_START);
        assert_int_equal(f.d.state, DRAIN_REQUESTING);
        assert_int_equal(f.fx.call, DRAIN_CALL_NONE);
        broker_says(&f, EPOCH, 5);
        assert_int_equal(f.fx.call, DRAIN_CALL_PUT);
        assert_int_equal(f.d.epoch, EPOCH);
}

static void a_silent_broker_does_not_keep_the_request_back(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 3);
        feed_type(&f, DRAIN_EV_START);
        feed_type(&f, DRAIN_EV_BROKER_FAILED);
        assert_int_equal(f.fx.call, DRAIN_CALL_PUT);
        assert_int_equal(f.d.epoch, DRAIN_UNKNOWN);
}

static void L1_drained_needs_both_views_at_zero_in_two_rounds(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 3);
        start_accepted(&f, 2);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 2);
        broker_says(&f, EPOCH, 1); /* it has not heard of the last move yet */
        assert_int_equal(f.d.state, DRAIN_DRAINING);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 2);
        broker_says(&f, EPOCH, 0);
        assert_int_equal(f.d.state, DRAIN_CONFIRMING);
        wait_for_tick(&f);
        broker_says(&f, EPOCH, 0);
        assert_int_equal(f.d.state, DRAIN_CONFIRMING);
        controller_says(&f, CONTROLLER_DRAINED, 0, 2);
        assert_int_equal(f.d.state, DRAIN_DRAINED);
        assert_int_equal(drain_phase_exit_status(f.d.state), 0);
        assert_int_equal(f.fx.wake_ms, DRAIN_NEVER);
}

static void L1_a_move_between_the_polls_starts_the_confirmation_anew(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 3);
        start_accepted(&f, 2);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 2);
        broker_says(&f, EPOCH, 0);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 3); /* one came back and was moved again */
        broker_says(&f, EPOCH, 0);
        assert_int_equal(f.d.state, DRAIN_CONFIRMING);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 3);
        broker_says(&f, EPOCH, 0);
        assert_int_equal(f.d.state, DRAIN_DRAINED);
}

static void L1_a_poll_without_an_answer_confirms_nothing(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 2);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 2);
        broker_says(&f, EPOCH, 0);
        assert_int_equal(f.d.state, DRAIN_CONFIRMING);
        wait_for_tick(&f);
        broker_says(&f, EPOCH, 0);
        feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
        assert_int_equal(f.d.state, DRAIN_DRAINING);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 2);
        feed_type(&f, DRAIN_EV_BROKER_FAILED);
        assert_int_equal(f.d.state, DRAIN_DRAINING);
        assert_int_equal(f.d.why, DRAIN_WHY_BROKER_SILENT);
}

static void L1_a_partition_that_comes_back_ends_the_confirmation(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 2);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINED, 0, 2);
        broker_says(&f, EPOCH, 0);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_DRAINING, 1, 2);
        assert_int_equal(f.d.state, DRAIN_DRAINING);
}

static void L1_a_controller_without_zookeeper_never_confirms(void **state)
{
        struct fixture f;
        int rounds = 0;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 2);
        while (drain_phase_is_active(f.d.state) && rounds++ < 1000) {
                wait_for_tick(&f);
                if (!drain_phase_is_active(f.d.state))
                        break;
                feed(&f, (struct drain_event){
                                 .type = DRAIN_EV_CONTROLLER_ANSWER,
                                 .endpoint = -1,
                                 .zookeeper_down = true,
                                 .controller = {.state = CONTROLLER_INCOMPLETE, .ours = true, .epoch = EPOCH},
                         });
                broker_says(&f, EPOCH, 0);
        }
        assert_int_equal(f.d.state, DRAIN_INCOMPLETE);
        assert_int_equal(f.d.why, DRAIN_WHY_ZOOKEEPER);
        assert_true(f.d.ended_ms - f.d.started_ms <= standard.no_controller_ms + 1000);
}

static void L1_the_controllers_zero_without_the_brokers_ends_as_incomplete(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 2);
        while (drain_phase_is_active(f.d.state)) {
                wait_for_tick(&f);
                if (!drain_phase_is_active(f.d.state))
                        break;
                controller_says(&f, CONTROLLER_DRAINED, 0, 2);
                feed_type(&f, DRAIN_EV_BROKER_FAILED);
        }
        assert_int_equal(f.d.state, DRAIN_INCOMPLETE);
        assert_int_equal(f.d.why, DRAIN_WHY_BROKER_SILENT);
        assert_in_range(f.d.ended_ms - f.d.started_ms, standard.broker_silent_ms,
                        standard.broker_silent_ms + 1000);
}

static void R8_the_isr_work_of_the_controller_is_waited_for_but_not_for_ever(void **state)
{
        struct fixture f;
        int64_t zero_at;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 2);
        wait_for_tick(&f);
        zero_at = f.now;
        controller_says(&f, CONTROLLER_DRAINING, 0, 2);
        broker_says(&f, EPOCH, 0);
        assert_int_equal(f.d.state, DRAIN_DRAINING);
        while (drain_phase_is_active(f.d.state)) {
                wait_for_tick(&f);
                controller_says(&f, CONTROLLER_DRAINING, 0, 2);
                broker_says(&f, EPOCH, 0);
        }
        assert_int_equal(f.d.state, DRAIN_DRAINED);
        assert_in_range(f.now - zero_at, standard.settle_ms, standard.settle_ms + 1000);
}

static void L3_every_endpoint_is_tried_before_a_sleep(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 3);
        feed_type(&f, DRAIN_EV_START);
        broker_says(&f, EPOCH, 5);
        assert_int_equal(f.d.endpoint, 0);
        for (int i = 1; i < 3; i++) {
                feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
                assert_int_equal(f.fx.call, DRAIN_CALL_PUT);
                assert_int_equal(f.d.endpoint, i);
        }
        feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
        assert_int_equal(f.fx.call, DRAIN_CALL_NONE);
        assert_true(f.fx.wake_ms > f.now);
}

static void L3_the_sleep_is_decorrelated_jitter_between_100_ms_and_5_s(void **state)
{
        static const uint32_t randoms[] = {0, UINT32_MAX / 2, UINT32_MAX};
        struct fixture f;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(randoms); i++) {
                int64_t last = 100;

                init(&f, &standard, 1);
                f.random = randoms[i];
                feed_type(&f, DRAIN_EV_START);
                broker_says(&f, EPOCH, 5);
                while (drain_phase_is_active(f.d.state)) {
                        int64_t sleep;

                        feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
                        if (f.d.broker_asked)
                                feed_type(&f, DRAIN_EV_BROKER_FAILED);
                        sleep = f.d.backoff_ms;
                        assert_in_range(sleep, 100, MIN(last * 3, INT64_C(5000)));
                        last = sleep;
                        wait_for_tick(&f);
                }
        }
}

static void L5_no_controller_ends_the_drain_within_its_own_budget(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 2);
        feed_type(&f, DRAIN_EV_START);
        feed_type(&f, DRAIN_EV_BROKER_FAILED);
        while (drain_phase_is_active(f.d.state)) {
                if (f.d.call != DRAIN_CALL_NONE)
                        feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
                else if (f.d.broker_asked)
                        feed_type(&f, DRAIN_EV_BROKER_FAILED);
                else
                        wait_for_tick(&f);
        }
        assert_int_equal(f.d.state, DRAIN_NO_CONTROLLER);
        assert_int_equal(f.now - f.d.started_ms, standard.no_controller_ms);
        assert_int_equal(drain_phase_exit_status(f.d.state), 69);
}

static void L5_a_hanging_call_does_not_outlive_the_budget(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 2);
        feed_type(&f, DRAIN_EV_START);
        feed_type(&f, DRAIN_EV_BROKER_FAILED);
        assert_int_equal(f.fx.call, DRAIN_CALL_PUT);
        wait_for_tick(&f); /* nothing came of it */
        assert_int_equal(f.d.state, DRAIN_NO_CONTROLLER);
        assert_true(f.fx.cancel_calls);
}

static void L5_zookeeper_named_as_the_cause_makes_it_incomplete(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 4);
        while (drain_phase_is_active(f.d.state)) {
                wait_for_tick(&f);
                if (f.d.call == DRAIN_CALL_NONE)
                        continue;
                feed(&f, (struct drain_event){.type = DRAIN_EV_CONTROLLER_REFUSAL,
                                              .http_status = 503,
                                              .endpoint = -1,
                                              .zookeeper_down = true});
                feed(&f, (struct drain_event){.type = DRAIN_EV_BROKER_ANSWER,
                                              .broker = {.epoch = EPOCH, .zookeeper_down = true}});
        }
        assert_int_equal(f.d.state, DRAIN_INCOMPLETE);
        assert_int_equal(f.d.why, DRAIN_WHY_ZOOKEEPER);
}

static void R28_a_new_controller_that_knows_nothing_is_asked_again(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 2);
        start_accepted(&f, 4);
        wait_for_tick(&f);
        assert_int_equal(f.fx.call, DRAIN_CALL_GET);
        feed(&f, (struct drain_event){
                         .type = DRAIN_EV_CONTROLLER_ANSWER,
                         .endpoint = 1,
                         .controller = {.state = CONTROLLER_NONE, .epoch = EPOCH, .generation = 4},
                 });
        assert_int_equal(f.d.state, DRAIN_REQUESTING);
        assert_int_equal(f.fx.call, DRAIN_CALL_PUT);
        assert_int_equal(f.d.endpoint, 1);
}

static void a_drain_that_its_controller_forgot_was_cancelled(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 2);
        start_accepted(&f, 4);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_NONE, 0, 0); /* same generation as the one that accepted it */
        assert_int_equal(f.d.state, DRAIN_ABORTED);
        assert_int_equal(f.d.why, DRAIN_WHY_CANCELLED);
        assert_int_equal(drain_phase_exit_status(f.d.state), 75);
}

static void D2_a_newer_incarnation_makes_the_drain_stale(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 4);
        wait_for_tick(&f);
        broker_says(&f, EPOCH + 1, 9);
        assert_int_equal(f.d.state, DRAIN_STALE);
        assert_int_equal(drain_phase_exit_status(f.d.state), 0);
}

static void L3_each_status_has_its_meaning(void **state)
{
        static const struct {
                int status;
                enum drain_phase phase;
        } rows[] = {
                {404, DRAIN_UNKNOWN_BROKER}, {410, DRAIN_STALE},      {400, DRAIN_INCOMPLETE},
                {401, DRAIN_INCOMPLETE},     {403, DRAIN_INCOMPLETE}, {409, DRAIN_REQUESTING},
                {429, DRAIN_REQUESTING},     {500, DRAIN_REQUESTING}, {502, DRAIN_REQUESTING},
                {503, DRAIN_REQUESTING},     {301, DRAIN_REQUESTING}, {418, DRAIN_REQUESTING},
        };
        struct fixture f;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                init(&f, &standard, 1);
                feed_type(&f, DRAIN_EV_START);
                feed_type(&f, DRAIN_EV_BROKER_FAILED);
                controller_refuses(&f, rows[i].status);
                assert_int_equal(f.d.state, rows[i].phase);
        }
}

static void L3_an_unknown_broker_that_leads_partitions_is_not_done(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        feed_type(&f, DRAIN_EV_START);
        broker_says(&f, EPOCH, 7);
        while (drain_phase_is_active(f.d.state)) {
                if (f.d.call != DRAIN_CALL_NONE)
                        controller_refuses(&f, 404);
                else if (f.d.broker_asked)
                        broker_says(&f, EPOCH, 7);
                else
                        wait_for_tick(&f);
        }
        assert_int_equal(f.d.state, DRAIN_INCOMPLETE);
        assert_int_equal(f.d.why, DRAIN_WHY_DISAGREE);
}

static void L2_the_deadline_ends_it_as_incomplete_by_default(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 4);
        while (drain_phase_is_active(f.d.state)) {
                wait_for_tick(&f);
                if (f.d.call == DRAIN_CALL_NONE)
                        continue;
                controller_says(&f, CONTROLLER_INCOMPLETE, 4, 0);
                broker_says(&f, EPOCH, 4);
        }
        assert_int_equal(f.d.state, DRAIN_INCOMPLETE);
        assert_int_equal(f.d.why, DRAIN_WHY_DEADLINE);
        assert_int_equal(f.now - f.d.started_ms, standard.deadline_ms);
        assert_int_equal(f.d.remaining, 4);
        assert_int_equal(drain_phase_exit_status(f.d.state), 75);
}

static void L4_hold_waits_until_the_hard_limit(void **state)
{
        struct drain_params p = standard;
        struct fixture f;

        (void)state;
        p.policy = DRAIN_HOLD;
        init(&f, &p, 1);
        start_accepted(&f, 4);
        while (drain_phase_is_active(f.d.state)) {
                wait_for_tick(&f);
                if (f.d.call == DRAIN_CALL_NONE)
                        continue;
                controller_says(&f, CONTROLLER_DRAINING, 4, 0);
                broker_says(&f, EPOCH, 4);
        }
        assert_int_equal(f.d.state, DRAIN_INCOMPLETE);
        assert_int_equal(f.now - f.d.started_ms, p.hard_limit_ms);
}

static void L4_abort_undoes_the_drain_at_the_deadline(void **state)
{
        struct drain_params p = standard;
        struct fixture f;

        (void)state;
        p.policy = DRAIN_ABORT;
        init(&f, &p, 1);
        start_accepted(&f, 4);
        while (f.d.state == DRAIN_DRAINING) {
                wait_for_tick(&f);
                if (f.d.state == DRAIN_UNDOING)
                        break;
                controller_says(&f, CONTROLLER_DRAINING, 4, 0);
                broker_says(&f, EPOCH, 4);
        }
        assert_int_equal(f.now - f.d.started_ms, p.deadline_ms);
        assert_int_equal(f.d.state, DRAIN_UNDOING);
        assert_int_equal(f.fx.call, DRAIN_CALL_DELETE);
        controller_says(&f, CONTROLLER_NONE, 0, 0);
        assert_int_equal(f.d.state, DRAIN_ABORTED);
        assert_int_equal(f.d.why, DRAIN_WHY_DEADLINE);
}

static void R27_incomplete_is_asked_for_again_by_put(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 4);
        wait_for_tick(&f);
        controller_says(&f, CONTROLLER_INCOMPLETE, 1, 3);
        broker_says(&f, EPOCH, 1);
        wait_for_tick(&f);
        assert_int_equal(f.fx.call, DRAIN_CALL_PUT);
        controller_says(&f, CONTROLLER_DRAINED, 0, 4);
        broker_says(&f, EPOCH, 0);
        assert_int_equal(f.d.state, DRAIN_CONFIRMING);
}

static void an_undo_cancels_what_is_in_flight_and_deletes(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 2);
        start_accepted(&f, 4);
        wait_for_tick(&f);
        feed_type(&f, DRAIN_EV_UNDO);
        assert_int_equal(f.d.state, DRAIN_UNDOING);
        assert_true(f.fx.cancel_calls);
        assert_int_equal(f.fx.call, DRAIN_CALL_DELETE);
        controller_refuses(&f, 503);
        assert_int_equal(f.fx.call, DRAIN_CALL_DELETE); /* the other endpoint */
        controller_refuses(&f, 404);
        assert_int_equal(f.d.state, DRAIN_ABORTED);
        assert_int_equal(f.d.why, DRAIN_WHY_UNDONE);
}

static void an_undo_that_nobody_confirms_says_so(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        feed_type(&f, DRAIN_EV_UNDO); /* from idle: the drain may be another process's */
        while (drain_phase_is_active(f.d.state)) {
                if (f.d.call != DRAIN_CALL_NONE)
                        feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
                else if (f.d.broker_asked)
                        feed_type(&f, DRAIN_EV_BROKER_FAILED);
                else
                        wait_for_tick(&f);
        }
        assert_int_equal(f.d.state, DRAIN_ABORTED);
        assert_int_equal(f.d.why, DRAIN_WHY_UNDO_FAILED);
        assert_int_equal(f.now - f.d.started_ms, standard.undo_ms);
}

static void a_drain_can_follow_an_ended_one(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 4);
        feed_type(&f, DRAIN_EV_SKIP);
        assert_int_equal(f.d.state, DRAIN_SKIPPED);
        f.now += 5000;
        start_accepted(&f, 4);
        assert_int_equal(f.d.started_ms, f.now);
}

static void L10_broker_exit_and_skip_end_it_from_every_active_state(void **state)
{
        static const enum drain_event_type ends[] = {DRAIN_EV_BROKER_GONE, DRAIN_EV_SKIP};
        struct fixture f;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                enum drain_phase want = i == 0 ? DRAIN_BROKER_GONE : DRAIN_SKIPPED;

                init(&f, &standard, 1);
                feed_type(&f, ends[i]); /* idle: nothing to end */
                assert_int_equal(f.d.state, DRAIN_IDLE);
                feed_type(&f, DRAIN_EV_START);
                feed_type(&f, ends[i]);
                assert_int_equal(f.d.state, want);
                start_accepted(&f, 3);
                feed_type(&f, ends[i]);
                assert_int_equal(f.d.state, want);
                feed_type(&f, DRAIN_EV_UNDO);
                feed_type(&f, ends[i]);
                assert_int_equal(f.d.state, want);
        }
}

static void L6_the_timer_is_extended_only_with_progress_or_a_controller_before_the_deadline(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        assert_false(drain_may_extend(&f.d, f.now));
        start_accepted(&f, 4);
        assert_true(drain_may_extend(&f.d, f.now));
        assert_true(
                drain_may_extend(&f.d, f.now + standard.stall_ms)); /* stalled, but the controller is there */
        assert_false(drain_may_extend(&f.d, f.now + standard.no_controller_ms));
        assert_false(drain_may_extend(&f.d, f.d.started_ms + standard.deadline_ms));
        assert_true(drain_is_stalled(&f.d, f.now + standard.stall_ms));
        feed_type(&f, DRAIN_EV_SKIP);
        assert_false(drain_may_extend(&f.d, f.now));
}

static void L3_the_sleep_grows_to_its_ceiling(void **state)
{
        static const int64_t want[] = {300, 900, 2700, 5000, 5000};
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        f.random = UINT32_MAX;
        feed_type(&f, DRAIN_EV_START);
        broker_says(&f, EPOCH, 5);
        for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
                feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
                if (f.d.broker_asked)
                        broker_says(&f, EPOCH, 5);
                assert_int_equal(f.fx.wake_ms - f.now, want[i]);
                wait_for_tick(&f);
        }
        controller_says(&f, CONTROLLER_DRAINING, 5, 0);
        assert_int_equal(f.d.backoff_ms, 0); /* an answer starts the series anew */
}

static void R27_asking_again_slows_down_to_five_polls(void **state)
{
        struct fixture f;
        int64_t last = 0;

        (void)state;
        init(&f, &standard, 1);
        f.random = UINT32_MAX;
        start_accepted(&f, 4);
        for (int i = 0; i < 5; i++) {
                wait_for_tick(&f);
                controller_says(&f, CONTROLLER_INCOMPLETE, 4, 0);
                broker_says(&f, EPOCH, 4);
                assert_true(f.fx.wake_ms - f.now >= last);
                last = f.fx.wake_ms - f.now;
        }
        assert_int_equal(last, 5 * standard.poll_ms);
}

static void D2_a_newer_registration_at_the_controller_makes_it_stale(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 4);
        wait_for_tick(&f);
        feed(&f, (struct drain_event){
                         .type = DRAIN_EV_CONTROLLER_ANSWER,
                         .endpoint = -1,
                         .controller = {.state = CONTROLLER_NONE, .epoch = EPOCH + 1, .generation = 9},
                 });
        assert_int_equal(f.d.state, DRAIN_STALE);
}

static void a_controller_that_is_busy_is_a_controller(void **state)
{
        static const int statuses[] = {409, 429};
        struct fixture f;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++) {
                init(&f, &standard, 1);
                feed_type(&f, DRAIN_EV_START);
                broker_says(&f, EPOCH, 5);
                while (f.now - f.d.started_ms < 3 * standard.no_controller_ms) {
                        controller_refuses(&f, statuses[i]);
                        if (f.d.broker_asked)
                                broker_says(&f, EPOCH, 5);
                        wait_for_tick(&f);
                }
                assert_int_equal(f.d.state, DRAIN_REQUESTING);
        }
}

static void L5_the_brokers_word_on_zookeeper_counts_when_no_controller_is_there_to_ask(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 1);
        start_accepted(&f, 4);
        while (drain_phase_is_active(f.d.state)) {
                wait_for_tick(&f);
                if (f.d.call == DRAIN_CALL_NONE)
                        continue;
                feed_type(&f, DRAIN_EV_CONTROLLER_FAILED);
                feed(&f, (struct drain_event){
                                 .type = DRAIN_EV_BROKER_ANSWER,
                                 .broker = {.epoch = EPOCH, .leaders = 4, .zookeeper_down = true},
                         });
        }
        assert_int_equal(f.d.state, DRAIN_INCOMPLETE);
        assert_int_equal(f.d.why, DRAIN_WHY_ZOOKEEPER);
}

static void L5_a_deadline_before_any_controller_answered_says_so(void **state)
{
        struct drain_params p = standard;
        struct fixture f;

        (void)state;
        p.deadline_ms = 5000; /* shorter than the budget for finding a controller */
        init(&f, &p, 1);
        feed_type(&f, DRAIN_EV_START);
        broker_says(&f, EPOCH, 4);
        wait_for_tick(&f);
        assert_int_equal(f.d.state, DRAIN_NO_CONTROLLER);
        assert_int_equal(f.now - f.d.started_ms, p.deadline_ms);
}

static void an_undo_accepted_without_zookeeper_is_not_done(void **state)
{
        struct fixture f;

        (void)state;
        init(&f, &standard, 2);
        start_accepted(&f, 4);
        feed_type(&f, DRAIN_EV_UNDO);
        feed(&f, (struct drain_event){
                         .type = DRAIN_EV_CONTROLLER_ANSWER,
                         .endpoint = -1,
                         .zookeeper_down = true,
                         .controller = {.state = CONTROLLER_DRAINING, .ours = true, .epoch = EPOCH},
                 });
        assert_int_equal(f.d.state, DRAIN_UNDOING);
        assert_int_equal(f.fx.call, DRAIN_CALL_DELETE);
}

/* A seeded walk over every event in every order: the invariants of drain_check() hold, budgets bind. */
static void any_sequence_of_events_keeps_the_invariants(void **state)
{
        uint32_t seed = 20261129;

        (void)state;
        for (int walk = 0; walk < 2000; walk++) {
                struct drain_params p = standard;
                struct fixture f;

                p.policy = (enum drain_policy)(walk % N_DRAIN_POLICIES);
                init(&f, &p, 1 + walk % 4);
                feed_type(&f, DRAIN_EV_START);
                for (int i = 0; i < 200; i++) {
                        struct drain_event ev = {.endpoint = -1};
                        bool controller_busy = f.d.call != DRAIN_CALL_NONE;

                        seed = seed * UINT32_C(1664525) + UINT32_C(1013904223);
                        ev.type = (enum drain_event_type)((seed >> 8) % N_DRAIN_EVENTS);
                        /* the shell delivers results only of calls that were made */
                        if (ev.type >= DRAIN_EV_CONTROLLER_ANSWER && ev.type <= DRAIN_EV_CONTROLLER_FAILED &&
                            !controller_busy)
                                ev.type = DRAIN_EV_TICK;
                        if ((ev.type == DRAIN_EV_BROKER_ANSWER || ev.type == DRAIN_EV_BROKER_FAILED) &&
                            !f.d.broker_asked)
                                ev.type = DRAIN_EV_TICK;
                        ev.http_status = (int[]){400, 404, 409, 410, 429, 500, 503}[(seed >> 12) % 7];
                        ev.zookeeper_down = (seed >> 16) % 8 == 0;
                        ev.epoch = DRAIN_UNKNOWN;
                        ev.controller.state =
                                (enum controller_drain_state)((seed >> 20) % N_CONTROLLER_DRAIN_STATES);
                        ev.controller.epoch = EPOCH;
                        ev.controller.remaining = (int32_t)((seed >> 24) % 3);
                        ev.broker.epoch = EPOCH;
                        ev.broker.leaders = (int32_t)((seed >> 26) % 2);
                        f.now += ev.type == DRAIN_EV_TICK && f.fx.wake_ms != DRAIN_NEVER
                                         ? MAX(f.fx.wake_ms - f.now, INT64_C(0))
                                         : (int64_t)((seed >> 10) % 50);
                        feed(&f, ev);
                        if (drain_phase_is_active(f.d.state))
                                assert_true(f.fx.wake_ms != DRAIN_NEVER && f.now <= drain_limit_ms(&f.d));
                }
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(D2_the_broker_is_asked_for_its_epoch_before_the_request),
                cmocka_unit_test(a_silent_broker_does_not_keep_the_request_back),
                cmocka_unit_test(L1_drained_needs_both_views_at_zero_in_two_rounds),
                cmocka_unit_test(L1_a_move_between_the_polls_starts_the_confirmation_anew),
                cmocka_unit_test(L1_a_poll_without_an_answer_confirms_nothing),
                cmocka_unit_test(L1_a_partition_that_comes_back_ends_the_confirmation),
                cmocka_unit_test(L1_a_controller_without_zookeeper_never_confirms),
                cmocka_unit_test(L1_the_controllers_zero_without_the_brokers_ends_as_incomplete),
                cmocka_unit_test(R8_the_isr_work_of_the_controller_is_waited_for_but_not_for_ever),
                cmocka_unit_test(L3_every_endpoint_is_tried_before_a_sleep),
                cmocka_unit_test(L3_the_sleep_is_decorrelated_jitter_between_100_ms_and_5_s),
                cmocka_unit_test(L5_no_controller_ends_the_drain_within_its_own_budget),
                cmocka_unit_test(L5_a_hanging_call_does_not_outlive_the_budget),
                cmocka_unit_test(L5_zookeeper_named_as_the_cause_makes_it_incomplete),
                cmocka_unit_test(R28_a_new_controller_that_knows_nothing_is_asked_again),
                cmocka_unit_test(a_drain_that_its_controller_forgot_was_cancelled),
                cmocka_unit_test(D2_a_newer_incarnation_makes_the_drain_stale),
                cmocka_unit_test(L3_each_status_has_its_meaning),
                cmocka_unit_test(L3_an_unknown_broker_that_leads_partitions_is_not_done),
                cmocka_unit_test(L2_the_deadline_ends_it_as_incomplete_by_default),
                cmocka_unit_test(L4_hold_waits_until_the_hard_limit),
                cmocka_unit_test(L4_abort_undoes_the_drain_at_the_deadline),
                cmocka_unit_test(R27_incomplete_is_asked_for_again_by_put),
                cmocka_unit_test(an_undo_cancels_what_is_in_flight_and_deletes),
                cmocka_unit_test(an_undo_that_nobody_confirms_says_so),
                cmocka_unit_test(a_drain_can_follow_an_ended_one),
                cmocka_unit_test(L10_broker_exit_and_skip_end_it_from_every_active_state),
                cmocka_unit_test(
                        L6_the_timer_is_extended_only_with_progress_or_a_controller_before_the_deadline),
                cmocka_unit_test(L3_the_sleep_grows_to_its_ceiling),
                cmocka_unit_test(R27_asking_again_slows_down_to_five_polls),
                cmocka_unit_test(D2_a_newer_registration_at_the_controller_makes_it_stale),
                cmocka_unit_test(a_controller_that_is_busy_is_a_controller),
                cmocka_unit_test(L5_the_brokers_word_on_zookeeper_counts_when_no_controller_is_there_to_ask),
                cmocka_unit_test(L5_a_deadline_before_any_controller_answered_says_so),
                cmocka_unit_test(an_undo_accepted_without_zookeeper_is_not_done),
                cmocka_unit_test(any_sequence_of_events_keeps_the_invariants),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
