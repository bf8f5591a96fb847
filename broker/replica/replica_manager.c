/* Life of the replica manager, the map of partitions, and its timers. */
#include "replica/replica_internal.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/slog.h"

void replica_options_default(struct replica_options *ret)
{
        *ret = (struct replica_options){
                .broker_id = -1,
                .min_insync_replicas = 1,
                .replica_lag_time_max_ms = 30000,
                .replica_fetch_wait_max_ms = 500,
                .replica_fetch_min_bytes = 1,
                .replica_fetch_max_bytes = 1 << 20,
                .replica_fetch_response_max_bytes = 10 << 20,
                .replica_fetch_backoff_ms = 1000,
                .replica_socket_timeout_ms = 30000,
                .fetch_max_bytes = 55 << 20,
                .replica_high_watermark_checkpoint_interval_ms = 5000,
                .log_retention_check_interval_ms = 300000,
                .log_flush_offset_checkpoint_interval_ms = 60000,
                .alter_partition_retry_ms = 50,
        };
        log_config_default(&ret->log_defaults);
}

/* --- effects --- */

void replica_check_waiting(struct partition *p)
{
        (void)purgatory_check(&p->produce_key);
        (void)purgatory_check(&p->fetch_key);
}

void replica_perform(struct replica_manager *m, struct partition *p, const struct partition_effects *e)
{
        if (e->hw_moved)
                (void)purgatory_check(&p->produce_key); /* R67 */
        if (e->hw_moved || e->appended)
                (void)purgatory_check(&p->fetch_key);
        if (e->propose || e->retry_isr)
                replica_isr_queue(m, p, !e->propose);
}

/* --- timers --- */

static int on_isr_tick(struct loop *l, void *userdata)
{
        struct replica_manager *m = userdata;
        struct replica_snapshot s;
        struct partition_effects e;

        if (replica_snapshot(m, &s) < 0)
                return 0; /* next time */
        for (size_t i = 0; i < s.n; i++) {
                partition_tick(s.items[i], loop_now_ms(l), &e);
                replica_perform(m, s.items[i], &e);
        }
        replica_snapshot_free(&s);
        return 0;
}

static int write_hw_checkpoint(struct replica_manager *m)
{
        cleanup_with(freep) struct log_hw *hws = NULL;
        struct replica_snapshot s;
        int r;

        r = replica_snapshot(m, &s);
        if (r < 0)
                return r;
        hws = calloc(s.n + 1, sizeof(*hws));
        if (!hws)
                r = -ENOMEM;
        for (size_t i = 0; hws && i < s.n; i++)
                hws[i] = (struct log_hw){.topic = s.items[i]->topic,
                                         .partition = s.items[i]->index,
                                         .hw = partition_high_watermark(s.items[i])};
        if (r == 0)
                r = log_manager_write_hw_checkpoint(m->logs, hws, s.n);
        replica_snapshot_free(&s);
        return r;
}

static int on_hw_checkpoint(struct loop *l, void *userdata)
{
        int r = write_hw_checkpoint(userdata);

        (void)l;
        if (r < 0)
                slog_error("hw-checkpoint-failed", "the high watermarks could not be written; tried again",
                           SL_ERR(r));
        return 0;
}

static int on_retention(struct loop *l, void *userdata)
{
        struct replica_manager *m = userdata;
        struct replica_snapshot s;
        int64_t now_ms = clock_real_ms();

        (void)l;
        if (replica_snapshot(m, &s) < 0)
                return 0;
        for (size_t i = 0; i < s.n; i++) {
                int r = partition_retain(s.items[i], now_ms);

                if (r < 0)
                        slog_warning("retention-failed", "old segments could not be deleted; tried again",
                                     SL_STR("topic", s.items[i]->topic),
                                     SL_INT("partition", s.items[i]->index), SL_ERR(r));
        }
        replica_snapshot_free(&s);
        return 0;
}

static int on_recovery_points(struct loop *l, void *userdata)
{
        struct replica_manager *m = userdata;
        int r = log_manager_write_recovery_points(m->logs);

        (void)l;
        if (r < 0)
                slog_warning("recovery-points-failed",
                             "the recovery points could not be written; tried again", SL_ERR(r));
        return 0;
}

static int add_timers(struct replica_manager *m)
{
        const struct {
                struct loop *loop;
                loop_timer_fn fn;
                struct loop_timer **timer;
                int64_t period_ms; /* 0: armed when needed */
        } timers[] = {
                {m->replication, on_isr_tick, &m->isr_tick, MAX(m->options.replica_lag_time_max_ms / 2, 1)},
                {m->replication, replica_isr_on_retry, &m->isr_retry, 0},
                {m->housekeeping, on_hw_checkpoint, &m->hw_checkpoint,
                 m->options.replica_high_watermark_checkpoint_interval_ms},
                {m->housekeeping, on_retention, &m->retention, m->options.log_retention_check_interval_ms},
                {m->housekeeping, on_recovery_points, &m->recovery_points,
                 m->options.log_flush_offset_checkpoint_interval_ms},
        };
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
                r = loop_add_timer(timers[i].loop, timers[i].fn, m, timers[i].timer);
                if (r < 0)
                        return r;
                if (timers[i].period_ms > 0)
                        loop_timer_arm(*timers[i].timer, timers[i].period_ms, timers[i].period_ms);
        }
        return 0;
}

/* --- life --- */

struct load {
        struct replica_manager *m;
        int r;
};

/* Every log on disk gets its partition at once, role none. So the high watermark checkpoint is complete from
 * the first time it is written, whatever LeaderAndIsr has or hasn't said yet (KAFKA-769, 858, 1647). */
static void load_log(const char *topic, int32_t index, struct partition_log *log, void *userdata)
{
        struct load *load = userdata;
        struct partition *p = NULL;

        if (load->r == 0)
                load->r = replica_add(load->m, topic, index, log, &p);
        (void)partition_unref(p);
}

static int new_parts(struct replica_manager *m)
{
        struct load load = {.m = m};
        int r;

        m->partitions = map_new();
        m->by_id = map_new();
        m->endpoints = map_new();
        m->topic_configs = map_new();
        if (!m->partitions || !m->by_id || !m->endpoints || !m->topic_configs)
                return -ENOMEM;
        r = loop_new("replication", &m->replication);
        if (r == 0)
                r = loop_new("housekeeping", &m->housekeeping);
        if (r == 0)
                r = purgatory_new(m->replication, "produce", &m->produce);
        if (r == 0)
                r = purgatory_new(m->replication, "fetch", &m->fetch);
        if (r == 0)
                r = fetchers_new(m, m->replication, &m->fetchers);
        if (r == 0)
                r = add_timers(m);
        if (r < 0)
                return r;
        log_manager_each(m->logs, load_log, &load);
        return load.r;
}

static int start_threads(struct replica_manager *m)
{
        int r;

        r = loop_thread_start(m->replication);
        if (r < 0)
                return r;
        r = loop_thread_start(m->housekeeping);
        if (r < 0) {
                loop_stop(m->replication);
                loop_thread_join(m->replication);
                return r;
        }
        m->threads_started = true;
        return 0;
}

int replica_manager_new(const struct replica_options *o, const struct replica_ops *ops,
                        struct log_manager *logs, struct metadata_cache *metadata,
                        struct replica_manager **ret)
{
        cleanup_with(replica_manager_freep) struct replica_manager *m = NULL;
        int r;

        m = calloc(1, sizeof(*m));
        if (!m)
                return -ENOMEM;
        m->options = *o;
        m->ops = *ops;
        m->logs = logs;
        m->metadata = metadata;
        m->env = (struct partition_env){.broker_id = o->broker_id,
                                        .lag_max_ms = o->replica_lag_time_max_ms,
                                        .lease_valid = ops->lease_valid,
                                        .went_offline = ops->replica_offline,
                                        .userdata = ops->userdata};
        m->controller_epoch = -1;
        atomic_init(&m->broker_epoch, -1);
        list_init(&m->isr_ready);
        list_init(&m->isr_delayed);
        m->isr_task = (struct loop_task){.fn = replica_isr_on_task, .userdata = m};
        (void)pthread_rwlock_init(&m->map_lock, NULL); /* neither fails on Linux: no resources are taken */
        (void)pthread_mutex_init(&m->isr_lock, NULL);
        throttle_init(&m->throttles[THROTTLE_LEADER], THROTTLE_LEADER);
        throttle_init(&m->throttles[THROTTLE_FOLLOWER], THROTTLE_FOLLOWER);
        replica_isr_register_metrics();
        stale_register_metrics();
        throttle_register_metrics();
        r = new_parts(m);
        if (r == 0)
                r = start_threads(m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

void replica_manager_begin_shutdown(struct replica_manager *m)
{
        atomic_store(&m->shutting_down, true);
}

void replica_manager_cancel_shutdown(struct replica_manager *m)
{
        struct replica_snapshot s;

        atomic_store(&m->shutting_down, false);
        if (replica_snapshot(m, &s) < 0)
                return; /* the next LeaderAndIsr starts them */
        for (size_t i = 0; i < s.n; i++) {
                struct partition *p = s.items[i];
                int32_t leader = -1, epoch = -1;

                pthread_mutex_lock(&p->lock);
                if (p->role == REPLICA_FOLLOWER) {
                        leader = p->leader_id;
                        epoch = p->leader_epoch;
                }
                pthread_mutex_unlock(&p->lock);
                if (leader >= 0)
                        fetchers_want(m->fetchers, p, leader, epoch);
        }
        replica_snapshot_free(&s);
}

static void stop_fetchers(void *userdata)
{
        struct replica_manager *m = userdata;

        fetchers_stop(m->fetchers);
        m->isr_tick = loop_timer_remove(m->isr_tick);
        m->isr_retry = loop_timer_remove(m->isr_retry);
        replica_isr_drop(m);
}

static void run_on_replication(struct replica_manager *m, loop_task_fn fn)
{
        int r = loop_call(m->replication, fn, m);

        assert(r == 0); /* it has no way to fail while the thread runs */
        (void)r;
}

static void nothing(void *userdata)
{
        (void)userdata;
}

static void step_down_all(struct replica_manager *m, int32_t *ret_n)
{
        struct replica_snapshot s;

        if (replica_snapshot(m, &s) < 0)
                return; /* the lease and the closed flag still keep us from serving */
        for (size_t i = 0; i < s.n; i++) {
                if (!partition_step_down(s.items[i]))
                        continue;
                (*ret_n)++;
                replica_check_waiting(s.items[i]);
        }
        replica_snapshot_free(&s);
}

int32_t replica_manager_step_down(struct replica_manager *m, const char *reason)
{
        int32_t n = 0;

        step_down_all(m, &n);
        slog_warning("stepped-down", "this broker gave up its leadership until the controller renews it",
                     SL_STR("reason", reason), SL_INT("partitions", n));
        return n;
}

/* Waiting requests are answered while the connections still stand; the checkpoint is written when nothing can
 * move a high watermark any more. */
void replica_manager_shutdown(struct replica_manager *m)
{
        int32_t n = 0;
        int r;

        if (m->shut_down || !m->threads_started)
                return;
        m->shut_down = true;
        atomic_store(&m->shutting_down, true);
        atomic_store(&m->closed, true);
        run_on_replication(m, stop_fetchers);
        step_down_all(m, &n);
        purgatory_close(m->produce);
        purgatory_close(m->fetch);
        run_on_replication(m, nothing); /* behind every task that was posted before */
        loop_stop(m->housekeeping);
        loop_thread_join(m->housekeeping);
        loop_stop(m->replication);
        loop_thread_join(m->replication);
        r = write_hw_checkpoint(m);
        if (r < 0)
                slog_error("hw-checkpoint-failed", "the high watermarks could not be written at shutdown",
                           SL_ERR(r));
}

static void free_values(struct map *map, bool partitions)
{
        void *v;

        if (!map)
                return;
        for (size_t c = 0; map_next(map, &c, NULL, NULL, &v);) {
                if (partitions)
                        (void)partition_unref(v);
                else
                        free(v);
        }
        (void)map_free(map);
}

struct replica_manager *replica_manager_free(struct replica_manager *m)
{
        if (!m)
                return NULL;
        replica_manager_shutdown(m);
        (void)fetchers_free(m->fetchers);
        (void)purgatory_free(m->produce);
        (void)purgatory_free(m->fetch);
        (void)loop_free(m->replication);
        (void)loop_free(m->housekeeping);
        (void)map_free(m->by_id);
        free_values(m->partitions, true);
        free_values(m->endpoints, false);
        free_values(m->topic_configs, false);
        throttle_done(&m->throttles[THROTTLE_LEADER]);
        throttle_done(&m->throttles[THROTTLE_FOLLOWER]);
        pthread_mutex_destroy(&m->isr_lock);
        pthread_rwlock_destroy(&m->map_lock);
        buf_done(&m->said);
        free(m);
        return NULL;
}

void replica_manager_set_broker_epoch(struct replica_manager *m, int64_t broker_epoch)
{
        atomic_store(&m->broker_epoch, broker_epoch);
}

void replica_manager_set_throttles(struct replica_manager *m, int64_t leader_rate, int64_t follower_rate)
{
        throttle_set_rate(&m->throttles[THROTTLE_LEADER], leader_rate);
        throttle_set_rate(&m->throttles[THROTTLE_FOLLOWER], follower_rate);
}
