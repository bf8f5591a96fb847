/* The hand-over: ControlledShutdown (api 7, R38, R42) until nothing is led any more, then the take-down.
 *
 * Every wait is bounded: an attempt by its request timeout, the attempts by controlled.shutdown.max.retries.
 * With ZooKeeper or every controller gone the stop still ends (KAFKA-9189). */
#include "server_internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/slog.h"
#include "wire/controlled_shutdown.h"
#include "wire/error.h"

#define ATTEMPT_TIMEOUT_MS  30000
#define CHECK_MS            200
#define NO_QUORUM_MS        10000
#define CONTROLLED_SHUTDOWN 7
#define SLOT_WAIT_MS        1000 /* a request that waits for the slot is answered by then */
#define SLOT_PAUSE_MS       100

struct shutdown_call {
        struct server *server;
        uint64_t attempt;
};

static int32_t leaders_left(struct server *s)
{
        struct replica_counts n = {0};

        replica_manager_get_counts(s->replicas, &n);
        return n.led_replicated;
}

/* Under systemd the unit shows the progress, and its stop timer goes on while there is something to wait for.
 */
static void tell_progress(struct server *s)
{
        if (s->slot_holder[0]) {
                (void)sd_notifyf(0,
                                 "EXTEND_TIMEOUT_USEC=15000000\nSTATUS=Waiting for the drain slot, at most "
                                 "%lld s more: "
                                 "held by %s",
                                 (long long)MAX((s->slot_until_ms - loop_now_ms(s->control_loop)) / 1000, 0),
                                 s->slot_holder);
                return;
        }
        (void)sd_notifyf(0,
                         "EXTEND_TIMEOUT_USEC=15000000\nSTATUS=Handing over: %d leader partitions left, "
                         "attempt %d of %d",
                         leaders_left(s), s->config->controlled_shutdown_max_retries - s->attempts_left,
                         s->config->controlled_shutdown_max_retries);
}

static void record(struct server *s, const char *verdict, int32_t left)
{
        struct handover_end e = {.log_dirs = s->config->log_dirs,
                                 .broker = s->config->broker_id,
                                 .leaders_left = left,
                                 .epoch = atomic_load(&s->broker_epoch),
                                 .verdict = verdict};

        handover_record_end(&s->handover, &e);
}

static void finish_handover(struct server *s, bool complete)
{
        int32_t left = leaders_left(s);

        loop_timer_disarm(s->handover_timer);
        s->attempt++;
        if (complete)
                slog_info("handover-complete", "Shutdown status: complete");
        else
                slog_warning("handover-incomplete",
                             "Shutdown status: incomplete; partitions still led go without a leader until "
                             "the controller "
                             "elects one",
                             SL_INT("leaders_left", left));
        record(s, complete ? "drained" : "incomplete", left);
        server_take_down(s);
}

static void try_handover(struct server *s);

static void attempt_failed(struct server *s, const char *why)
{
        slog_warning("handover-attempt-failed", "an attempt to hand over leadership did not complete",
                     SL_STR("why", why), SL_INT("attempts_left", s->attempts_left));
        handover_record_trouble(&s->handover, why);
        s->left_at_failure = leaders_left(s);
        s->retry_at_ms = loop_now_ms(s->control_loop) + s->config->controlled_shutdown_retry_backoff_ms;
        if (s->attempts_left <= 0)
                finish_handover(s, false);
}

/* D3: another broker is being drained, or is not back yet. That costs no attempt; it is waited for as long as
 * all attempts and the pauses after them may take together. */
static void wait_for_slot(struct server *s, const struct controlled_shutdown_response *res)
{
        char holder[sizeof(s->slot_holder)];

        (void)snprintf(holder, sizeof(holder), "%.*s", (int)MAX(res->slot_holder.len, 0),
                       res->slot_holder.data ? res->slot_holder.data : "");
        if (holder[0] == '\0')
                (void)snprintf(holder, sizeof(holder),
                               "nobody; but stopping this broker now takes partitions offline or below "
                               "min.insync.replicas");
        if (strcmp(holder, s->slot_holder) != 0) {
                memcpy(s->slot_holder, holder, sizeof(holder));
                slog_notice("handover-waits", "it is not this broker's turn to be drained; waiting for it",
                            SL_STR("holder", holder),
                            SL_INT("seconds", (s->slot_until_ms - loop_now_ms(s->control_loop)) / 1000));
        }
        if (loop_now_ms(s->control_loop) >= s->slot_until_ms) {
                slog_warning("handover-slot-held", "the drain slot did not get free in time",
                             SL_STR("holder", holder));
                finish_handover(s, false);
                return;
        }
        s->attempts_left++;
        s->left_at_failure = 0;
        s->retry_at_ms = loop_now_ms(s->control_loop) + SLOT_PAUSE_MS;
        tell_progress(s);
}

static void on_answer(int r, const void *response, struct arena *arena, void *userdata)
{
        const struct controlled_shutdown_response *res = response;
        cleanup_with(freep) struct shutdown_call *c = userdata;
        struct server *s = c->server;
        char why[128];

        (void)arena;
        if (c->attempt != s->attempt || s->state != SERVER_HANDING_OVER)
                return;
        s->attempt_in_flight = false;
        if (r >= 0 && res->error_code == KAFKA_OPERATION_NOT_ATTEMPTED) {
                wait_for_slot(s, res);
                return;
        }
        s->slot_holder[0] = '\0';
        if (r < 0) {
                attempt_failed(s, r == -ENOENT ? "no controller is known" : strerror(-r));
        } else if (res->error_code == KAFKA_STALE_BROKER_EPOCH ||
                   res->error_code == KAFKA_BROKER_NOT_AVAILABLE) {
                /* We are dead to the controller: it moves what we led without being asked. Whether it has is
                 * another question (L1). */
                finish_handover(s, leaders_left(s) == 0);
        } else if (res->error_code != KAFKA_NONE) {
                attempt_failed(s, kafka_error_name(res->error_code));
        } else if (res->remaining_partitions.n > 0) {
                (void)snprintf(why, sizeof(why), "%d partitions have no other in-sync replica",
                               res->remaining_partitions.n);
                attempt_failed(s, why);
        } else {
                finish_handover(s, true);
        }
}

static void try_handover(struct server *s)
{
        struct controlled_shutdown_request req;
        cleanup_with(freep) struct shutdown_call *c = malloc(sizeof(*c));
        const struct wire_api *api = wire_api_find(CONTROLLED_SHUTDOWN);
        int r = -ENOMEM;

        s->attempts_left--;
        s->attempt++;
        tell_progress(s);
        wire_init(api->request, &req);
        req.broker_id = s->config->broker_id;
        req.broker_epoch = atomic_load(&s->broker_epoch);
        req.slot_wait_ms = SLOT_WAIT_MS;
        if (c) {
                *c = (struct shutdown_call){.server = s, .attempt = s->attempt};
                s->attempt_in_flight = true;
                r = controller_link_request(s->link, api, 3, &req, ATTEMPT_TIMEOUT_MS, on_answer, c);
        }
        if (r < 0) {
                s->attempt_in_flight = false;
                attempt_failed(s, strerror(-r));
                return;
        }
        TAKE_PTR(c);
}

/* Without ZooKeeper nothing can be moved, and without its lease this broker serves nobody any more (F2): to
 * wait for all attempts would only make the stop longer (L5). Was the lease missing all the while? */
static bool no_quorum(struct server *s)
{
        int64_t now_ms = loop_now_ms(s->control_loop);

        if (zk_lease_valid(s->zk))
                s->lease_seen_ms = now_ms;
        return now_ms - s->lease_seen_ms >= NO_QUORUM_MS;
}

/* The controller goes on with what an attempt has left; when that is done nobody needs to wait for the next.
 */
static bool all_moved_meanwhile(struct server *s)
{
        return s->left_at_failure > 0 && leaders_left(s) == 0;
}

static int on_handover_timer(struct loop *l, void *userdata)
{
        struct server *s = userdata;

        if (s->state != SERVER_HANDING_OVER)
                return 0;
        if (no_quorum(s)) {
                slog_warning("handover-no-quorum", "ZooKeeper does not answer: nothing can be handed over");
                finish_handover(s, false);
                return 0;
        }
        if (!s->attempt_in_flight && (loop_now_ms(l) >= s->retry_at_ms || all_moved_meanwhile(s)))
                try_handover(s);
        else
                tell_progress(s);
        return 0;
}

int server_init_shutdown(struct server *s)
{
        return loop_add_timer(s->control_loop, on_handover_timer, s, &s->handover_timer);
}

void server_on_handover_session_lost(struct server *s)
{
        slog_warning("handover-session-lost",
                     "the ZooKeeper session was lost during the hand-over: nothing is led any more, and the "
                     "controller elects new leaders by itself");
        finish_handover(s, false);
}

/* Nothing is served yet, and loading cannot be cut short: it may go on for minutes, which nobody is to wait
 * for. What it wrote is as after a crash; the next start loads anew. */
static void leave_while_loading(struct server *s)
{
        (void)s;
        slog_notice("loading-cut-short", "told to stop while loading logs: leaving at once");
        (void)sd_notify(0, "STOPPING=1\nSTATUS=Stopped while loading logs");
        _exit(0);
}

void server_stop(struct server *s, const char *why)
{
        if (s->state >= SERVER_STOPPING)
                return;
        slog_notice("server-stop", "the broker was told to stop", SL_STR("why", why));
        if (s->loading)
                leave_while_loading(s);
        if (s->state == SERVER_HANDING_OVER) {
                slog_warning("handover-cut-short", "told to stop again: the hand-over ends here",
                             SL_INT("leaders_left", leaders_left(s)));
                record(s, "cut-short", leaders_left(s));
                server_take_down(s);
                return;
        }
        if (s->state == SERVER_STARTING || !s->config->controlled_shutdown_enable ||
            atomic_load(&s->broker_epoch) < 0) {
                server_take_down(s);
                return;
        }
        server_set_state(s, SERVER_HANDING_OVER);
        /* What is moved away now is not fetched any more, so that this broker stays out of the ISR (R9). */
        replica_manager_begin_shutdown(s->replicas);
        handover_record_begin(&s->handover, why, leaders_left(s));
        s->attempts_left = s->config->controlled_shutdown_max_retries;
        s->lease_seen_ms = loop_now_ms(s->control_loop);
        s->slot_until_ms =
                s->lease_seen_ms + s->config->controlled_shutdown_max_retries *
                                           MAX(s->config->controlled_shutdown_retry_backoff_ms, 1000);
        loop_timer_arm(s->handover_timer, CHECK_MS, CHECK_MS);
        try_handover(s);
}
