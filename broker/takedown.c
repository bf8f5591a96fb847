/* Leaving: what every stop ends with, after the hand-over or without one.
 *
 * A row of steps, each a task of the control loop posted when the one before has ended. Tasks run in the
 * order they were posted, so whatever other threads posted while a step ended them (requests of the
 * controller, completions of ZooKeeper) has run before the next step frees what it needs. Each step goes on
 * when an earlier one failed: a broken part must not keep the others from closing well. */
#include "server_internal.h"

#include <stdatomic.h>
#include <systemd/sd-daemon.h>

#include "base/slog.h"

#define DEREGISTER_TIMEOUT_MS 1000

static void next_step(struct server *s);

/* --- leave the cluster --- */

static void on_deregistered(int r, void *userdata)
{
        struct server *s = userdata;

        (void)r; /* the end of the session deletes it, too */
        if (!s->deregistering)
                return;
        s->deregistering = false;
        loop_timer_disarm(s->deregister_timer);
        next_step(s);
}

static int on_deregister_timeout(struct loop *l, void *userdata)
{
        (void)l;
        on_deregistered(0, userdata);
        return 0;
}

/* Delete /brokers/ids/N before anything stops serving, so that the controller acts at once (KAFKA-1235). */
static void leave_cluster(struct server *s)
{
        bool registered = s->zk && atomic_load(&s->broker_epoch) >= 0 && zk_is_connected(s->zk);

        s->deregistering = registered && zk_deregister_broker(s->zk, s->control_loop, s->config->broker_id,
                                                              on_deregistered, s) == 0;
        if (s->deregistering)
                loop_timer_arm(s->deregister_timer, DEREGISTER_TIMEOUT_MS, 0);
        else
                next_step(s);
}

/* --- end all other threads --- */

static void free_net(void *userdata)
{
        struct server *s = userdata;

        s->net = net_server_free(s->net);
}

static void close_listeners(struct server *s)
{
        if (s->net && (!s->net_running || loop_call(s->net_loop, free_net, s) < 0))
                free_net(s);
        if (s->net_running) {
                loop_stop(s->net_loop);
                loop_thread_join(s->net_loop);
        }
        s->net_running = false;
}

static void stop_serving(struct server *s)
{
        atomic_store(&s->broker_epoch, -1);
        if (s->api)
                api_control_pause(s->api); /* partitions are about to be shut down */
        controller_stop(s->controller);    /* answers what waits for it, the admin listener's requests too */
        s->admin = admin_free(s->admin);
        if (s->replicas)
                replica_manager_shutdown(s->replicas);
        close_listeners(s);
        s->link = controller_link_free(s->link);
        s->producer_ids = producer_ids_free(s->producer_ids);
        next_step(s);
}

/* Only now: what runs on the control loop until here may still ask ZooKeeper. */
static void close_session(struct server *s)
{
        s->zk = zk_free(s->zk);
        next_step(s);
}

static void free_modules(struct server *s)
{
        s->controller = controller_free(s->controller);
        s->net_loop = loop_free(s->net_loop);
        s->topic_configs = topic_configs_free(s->topic_configs);
        s->broker_configs = broker_configs_free(s->broker_configs);
        s->api = api_free(s->api); /* answers the controller's requests that nobody served any more */
        s->replicas = replica_manager_free(s->replicas);
        s->dir_report = dir_report_free(s->dir_report);
        s->metadata = metadata_cache_free(s->metadata);
        next_step(s);
}

/* --- close the logs --- */

static int do_close(void *userdata)
{
        struct server *s = userdata;

        return log_manager_close_clean(TAKE_PTR(s->logs));
}

static void on_closed(int r, void *userdata)
{
        if (r < 0)
                slog_error("close-failed",
                           "the logs could not be closed cleanly; the next start recovers them", SL_ERR(r));
        next_step(userdata);
}

static void close_logs(struct server *s)
{
        const struct blocking_work work = {
                .status = "Closing logs", .run = do_close, .done = on_closed, .userdata = s};

        if (!s->logs) {
                next_step(s);
                return;
        }
        s->work = blocking_free(s->work);
        if (blocking_start(s->control_loop, &work, &s->work) < 0)
                on_closed(do_close(s), s);
}

static void end(struct server *s)
{
        s->state_changes = state_change_log_free(s->state_changes);
        server_set_state(s, SERVER_STOPPED);
        loop_stop(s->control_loop);
}

/* --- the row --- */

static void (*const steps[])(struct server *s) = {
        leave_cluster, stop_serving, close_session, free_modules, close_logs, end,
};

static void run_step(void *userdata)
{
        struct server *s = userdata;

        steps[s->step++](s);
}

static void next_step(struct server *s)
{
        s->step_task = (struct loop_task){.fn = run_step, .userdata = s};
        loop_post_task(s->control_loop, &s->step_task);
}

int server_init_take_down(struct server *s)
{
        return loop_add_timer(s->control_loop, on_deregister_timeout, s, &s->deregister_timer);
}

void server_take_down(struct server *s)
{
        struct loop_timer *const timers[] = {s->connect_timer, s->retry_timer, s->reopen_timer,
                                             s->attempt_timer, s->handover_timer};

        server_set_state(s, SERVER_STOPPING);
        (void)sd_notify(0, "STOPPING=1\nSTATUS=Leaving the cluster");
        for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
                if (timers[i])
                        loop_timer_disarm(timers[i]);
        next_step(s);
}

void server_take_down_now(struct server *s)
{
        if (s->state < SERVER_STOPPING)
                server_take_down(s);
        if (s->state != SERVER_STOPPED)
                (void)loop_run(s->control_loop); /* its failure leaves nothing else to try */
}
