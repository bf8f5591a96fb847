/* The stop: hand over leadership (ControlledShutdown, api 7, R38, R42), then leave the cluster and close the
 * logs.
 *
 * Every wait is bounded: an attempt by its request timeout, the attempts by controlled.shutdown.max.retries,
 * the deregistration by a second. With ZooKeeper or every controller gone the stop still ends (KAFKA-9189).
 */
#include "server_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/slog.h"
#include "wire/controlled_shutdown.h"
#include "wire/error.h"

#define ATTEMPT_TIMEOUT_MS    30000
#define CHECK_MS              200
#define DEREGISTER_TIMEOUT_MS 1000
#define CONTROLLED_SHUTDOWN   7

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
        (void)sd_notifyf(0,
                         "EXTEND_TIMEOUT_USEC=15000000\nSTATUS=Handing over: %d leader partitions left, "
                         "attempt %d of %d",
                         leaders_left(s), s->config->controlled_shutdown_max_retries - s->attempts_left,
                         s->config->controlled_shutdown_max_retries);
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
        server_take_down(s);
}

static void try_handover(struct server *s);

static void attempt_failed(struct server *s, const char *why)
{
        slog_warning("handover-attempt-failed", "an attempt to hand over leadership did not complete",
                     SL_STR("why", why), SL_INT("attempts_left", s->attempts_left));
        if (s->attempts_left <= 0)
                finish_handover(s, false);
        else
                loop_timer_arm(s->handover_timer, MAX(s->config->controlled_shutdown_retry_backoff_ms, 1), 0);
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
        if (r < 0) {
                attempt_failed(s, r == -ENOENT ? "no controller is known" : strerror(-r));
        } else if (res->error_code == KAFKA_STALE_BROKER_EPOCH ||
                   res->error_code == KAFKA_BROKER_NOT_AVAILABLE) {
                finish_handover(s, true); /* the controller has moved everything already: we are dead to it */
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
        loop_timer_arm(s->handover_timer, CHECK_MS, CHECK_MS);
}

static int on_handover_timer(struct loop *l, void *userdata)
{
        struct server *s = userdata;

        (void)l;
        if (s->state != SERVER_HANDING_OVER)
                return 0;
        if (s->attempt_in_flight) {
                tell_progress(s);
                return 0;
        }
        loop_timer_disarm(s->handover_timer);
        try_handover(s);
        return 0;
}

int server_init_shutdown(struct server *s)
{
        return loop_add_timer(s->control_loop, on_handover_timer, s, &s->handover_timer);
}

void server_stop(struct server *s, const char *why)
{
        if (s->state >= SERVER_STOPPING)
                return;
        slog_notice("server-stop", "the broker was told to stop", SL_STR("why", why));
        if (s->state == SERVER_HANDING_OVER) {
                slog_warning("handover-cut-short", "told to stop again: the hand-over ends here",
                             SL_INT("leaders_left", leaders_left(s)));
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
        s->attempts_left = s->config->controlled_shutdown_max_retries;
        try_handover(s);
}

/* --- leaving --- */

struct deregistration { /* shared by the waiter and the callback; whoever comes last frees it */
        pthread_mutex_t lock;
        pthread_cond_t done_cond;
        bool done, abandoned;
};

static void on_deregistered(int r, void *userdata)
{
        struct deregistration *d = userdata;
        bool abandoned;

        (void)r;
        pthread_mutex_lock(&d->lock);
        d->done = true;
        abandoned = d->abandoned;
        pthread_cond_signal(&d->done_cond);
        pthread_mutex_unlock(&d->lock);
        if (abandoned)
                free(d);
}

/* Delete /brokers/ids/N before anything stops serving, so that the controller acts at once (KAFKA-1235). The
 * answer comes on the net loop: the control loop is the one that waits here. */
static void deregister(struct server *s)
{
        struct deregistration *d;
        struct timespec until;
        bool done;

        if (atomic_load(&s->broker_epoch) < 0 || !s->net_running || !zk_is_connected(s->zk))
                return;
        d = calloc(1, sizeof(*d));
        if (!d)
                return;
        (void)pthread_mutex_init(&d->lock, NULL);
        (void)pthread_cond_init(&d->done_cond, NULL);
        if (zk_deregister_broker(s->zk, s->net_loop, s->config->broker_id, on_deregistered, d) < 0) {
                free(d);
                return;
        }
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += DEREGISTER_TIMEOUT_MS / 1000;
        pthread_mutex_lock(&d->lock);
        while (!d->done && pthread_cond_timedwait(&d->done_cond, &d->lock, &until) == 0)
                ;
        done = d->done;
        d->abandoned = !done;
        pthread_mutex_unlock(&d->lock);
        if (done)
                free(d);
        atomic_store(&s->broker_epoch, -1);
}

static void free_net(void *userdata)
{
        struct server *s = userdata;

        s->net = net_server_free(s->net);
}

static void close_listeners(struct server *s)
{
        if (!s->net)
                return;
        if (s->net_running && loop_call(s->net_loop, free_net, s) == 0)
                return;
        if (!s->net_running)
                free_net(s);
}

/* Each step goes on when an earlier one failed: a broken part must not keep the others from closing well. */
static void take_down(void *userdata)
{
        struct server *s = userdata;
        int r = 0;

        (void)sd_notify(0, "STOPPING=1\nSTATUS=Closing logs");
        if (s->zk)
                deregister(s);
        if (s->controller)
                controller_stop(
                        s->controller); /* answers what waits for it, the admin listener's requests too */
        s->admin = admin_free(s->admin);
        if (s->replicas)
                replica_manager_shutdown(s->replicas);
        close_listeners(s);
        s->link = controller_link_free(s->link);
        s->producer_ids = producer_ids_free(s->producer_ids);
        if (s->net_running) {
                loop_stop(s->net_loop);
                loop_thread_join(s->net_loop);
                s->net_running = false;
        }
        s->zk = zk_free(s->zk); /* before the controller: completions are posted to its loop until then */
        s->controller = controller_free(s->controller);
        s->net_loop = loop_free(s->net_loop);
        s->topic_configs = topic_configs_free(s->topic_configs);
        s->replicas = replica_manager_free(s->replicas);
        s->api = api_free(s->api);
        s->metadata = metadata_cache_free(s->metadata);
        if (s->logs)
                r = log_manager_close_clean(TAKE_PTR(s->logs));
        if (r < 0)
                slog_error("close-failed",
                           "the logs could not be closed cleanly; the next start recovers them", SL_ERR(r));
        s->state_changes = state_change_log_free(s->state_changes);
        server_set_state(s, SERVER_STOPPED);
        loop_stop(s->control_loop);
}

/* Not from inside a callback of what is about to be freed: the loop runs it next. */
void server_take_down(struct server *s)
{
        server_set_state(s, SERVER_STOPPING);
        s->take_down_task = (struct loop_task){.fn = take_down, .userdata = s};
        loop_post_task(s->control_loop, &s->take_down_task);
}

void server_take_down_now(struct server *s)
{
        if (s->state < SERVER_STOPPING) {
                server_set_state(s, SERVER_STOPPING);
                take_down(s);
        }
}
