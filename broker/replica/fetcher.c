/* Fetchers: which partitions are fetched from whom, and when each lane goes out. See fetcher.h. */
#include "replica/fetcher_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"

#define RETRY_MS 100 /* out of memory, or nobody knows where the leader listens */

/* --- entries --- */

static void arm(struct fetcher *f, int64_t due_ms)
{
        if (due_ms >= f->timer_due_ms)
                return;
        f->timer_due_ms = due_ms;
        loop_timer_arm(f->timer, due_ms - loop_now_ms(f->owner->loop), 0);
}

static void withdraw(struct fetch_entry *e)
{
        if (e->state == FETCH_IN_FLIGHT) {
                e->f->lanes[e->lane].sent[e->sent_at] = NULL;
                fetch_entry_settle(e);
        }
        list_remove(&e->node);
}

void fetch_entry_ready(struct fetch_entry *e, enum fetch_lane_id from)
{
        bool hot = fetch_lanes_is_hot(e->last_data_ms, loop_now_ms(e->f->owner->loop));

        withdraw(e);
        e->state = FETCH_READY;
        e->lane = fetch_lanes_place(&e->f->core, from, hot, e->shard);
        list_push_back(&e->f->ready[e->lane], &e->node);
}

void fetch_entry_delay(struct fetch_entry *e, int64_t ms)
{
        withdraw(e);
        e->state = FETCH_DELAYED;
        e->due_ms = loop_now_ms(e->f->owner->loop) + ms;
        list_push_back(&e->f->delayed, &e->node);
        arm(e->f, e->due_ms);
}

void fetch_entry_ranging(struct fetch_entry *e)
{
        withdraw(e);
        e->state = FETCH_RANGING;
}

void fetch_entry_drop(struct fetch_entry *e)
{
        withdraw(e);
        fetch_lanes_resize(&e->f->core, --e->f->n_entries);
        e->p->fetch = NULL;
        (void)partition_unref(e->p);
        free(e);
}

/* --- lanes --- */

int fetcher_client(struct fetcher *f, struct kclient **client)
{
        const struct replica_options *o = &f->owner->m->options;
        char id[64];
        struct kclient_options ko = {.client_id = id,
                                     .connect_timeout_ms = 2000,
                                     .reconnect_backoff_ms = 50,
                                     .reconnect_backoff_max_ms = o->replica_fetch_backoff_ms,
                                     .max_inflight = 2};

        if (*client)
                return 0;
        if (!f->has_endpoint)
                f->has_endpoint = replica_endpoint_of(f->owner->m, f->broker_id, &f->endpoint);
        if (!f->has_endpoint)
                return -EHOSTUNREACH;
        (void)snprintf(id, sizeof(id), "broker-%d-fetcher-%d", o->broker_id, f->broker_id);
        return kclient_new(f->owner->loop, f->endpoint.host, f->endpoint.port, &ko, client);
}

static int move_to_sent(struct fetch_lane *lane, struct list *ready)
{
        size_t n = 0;

        list_for_each (it, ready)
                n++;
        if (n > lane->cap) {
                struct fetch_entry **sent = reallocarray(lane->sent, n, sizeof(struct fetch_entry *));

                if (!sent)
                        return -ENOMEM;
                lane->sent = sent;
                lane->cap = n;
        }
        lane->n_sent = 0;
        list_for_each_safe (it, next, ready) {
                struct fetch_entry *e = list_entry(it, struct fetch_entry, node);

                list_remove(it);
                e->state = FETCH_IN_FLIGHT;
                e->sent_at = lane->n_sent;
                lane->sent[lane->n_sent++] = e;
        }
        return 0;
}

static void delay_sent(struct fetch_lane *lane, int64_t ms)
{
        for (size_t i = 0; i < lane->n_sent; i++) {
                if (lane->sent[i])
                        fetch_entry_delay(lane->sent[i], ms);
        }
        lane->n_sent = 0;
}

static void send_lane(struct fetcher *f, enum fetch_lane_id id)
{
        struct fetch_lane *lane = &f->lanes[id];
        int64_t now_ms = loop_now_ms(f->owner->loop);
        int r;

        fetcher_hold_back(f, id);
        if (list_empty(&f->ready[id]))
                return;
        r = move_to_sent(lane, &f->ready[id]);
        if (r < 0) {
                arm(f, now_ms + RETRY_MS);
                return;
        }
        r = fetcher_client(f, &lane->client);
        if (r == 0)
                r = fetcher_send(lane, fetch_lanes_send(&f->core, id, now_ms));
        if (r == 0)
                return;
        f->core.busy[id] = false;
        delay_sent(lane, RETRY_MS);
        if (r != -ENODATA) /* all of them have moved on meanwhile */
                slog_warning("fetch-not-sent", "a fetch from a leader could not be sent; tried again",
                             SL_INT("leader", f->broker_id), SL_ERR(r));
}

static void regroup(struct fetcher *f)
{
        struct list all;

        list_init(&all);
        for (int i = 0; i < N_FETCH_LANES; i++)
                list_splice_back(&all, &f->ready[i]);
        list_for_each_safe (it, next, &all)
                fetch_entry_ready(list_entry(it, struct fetch_entry, node), LANE_ANY);
}

void fetcher_schedule(struct fetcher *f)
{
        bool again;

        if (f->closing)
                return;
        if (!fetch_lanes_may_send(&f->core, loop_now_ms(f->owner->loop), &again)) {
                arm(f, f->core.gather_until_ms);
                return;
        }
        if (again)
                regroup(f);
        for (int i = 0; i < N_FETCH_LANES; i++) {
                if (!f->core.busy[i] && !list_empty(&f->ready[i]))
                        send_lane(f, (enum fetch_lane_id)i);
        }
}

static int on_timer(struct loop *l, void *userdata)
{
        struct fetcher *f = userdata;
        int64_t now_ms = loop_now_ms(l), next_ms = INT64_MAX;

        f->timer_due_ms = INT64_MAX;
        list_for_each_safe (it, next, &f->delayed) {
                struct fetch_entry *e = list_entry(it, struct fetch_entry, node);

                if (e->due_ms <= now_ms)
                        fetch_entry_ready(e, LANE_ANY);
                else
                        next_ms = MIN(next_ms, e->due_ms);
        }
        if (next_ms != INT64_MAX)
                arm(f, next_ms);
        fetcher_schedule(f);
        return 0;
}

/* --- fetchers --- */

static void close_clients(struct fetcher *f)
{
        f->closing = true; /* what the callbacks put back stays where it is */
        for (int i = 0; i < N_FETCH_LANES; i++)
                f->lanes[i].client = kclient_free(f->lanes[i].client);
        f->range_client = kclient_free(f->range_client);
        f->closing = false;
}

static struct fetcher *fetcher_free(struct fetcher *f)
{
        close_clients(f);
        f->closing = true;
        for (int i = 0; i < N_FETCH_LANES; i++) {
                list_for_each_safe (it, next, &f->ready[i])
                        fetch_entry_drop(list_entry(it, struct fetch_entry, node));
                free(f->lanes[i].sent);
        }
        list_for_each_safe (it, next, &f->delayed)
                fetch_entry_drop(list_entry(it, struct fetch_entry, node));
        f->timer = loop_timer_remove(f->timer);
        list_remove(&f->node);
        free(f);
        return NULL;
}

static int fetcher_new(struct fetchers *o, int32_t broker_id, struct fetcher **ret)
{
        struct fetcher *f = calloc(1, sizeof(*f));
        int r;

        if (!f)
                return -ENOMEM;
        f->owner = o;
        f->broker_id = broker_id;
        f->core.wait_max_ms = o->m->options.replica_fetch_wait_max_ms;
        f->timer_due_ms = INT64_MAX;
        list_init(&f->delayed);
        for (int i = 0; i < N_FETCH_LANES; i++) {
                list_init(&f->ready[i]);
                f->lanes[i].f = f;
                f->lanes[i].id = (enum fetch_lane_id)i;
        }
        r = loop_add_timer(o->loop, on_timer, f, &f->timer);
        if (r < 0) {
                free(f);
                return r;
        }
        list_push_back(&o->all, &f->node);
        *ret = f;
        return 0;
}

static int find_fetcher(struct fetchers *o, int32_t broker_id, struct fetcher **ret)
{
        list_for_each (it, &o->all) {
                struct fetcher *f = list_entry(it, struct fetcher, node);

                if (f->broker_id != broker_id)
                        continue;
                *ret = f;
                return 0;
        }
        return fetcher_new(o, broker_id, ret);
}

/* A broker that came back may listen elsewhere. */
static void refresh_endpoint(struct fetcher *f)
{
        struct replica_endpoint now;

        if (!replica_endpoint_of(f->owner->m, f->broker_id, &now))
                return;
        if (f->has_endpoint && strcmp(now.host, f->endpoint.host) == 0 && now.port == f->endpoint.port)
                return;
        f->endpoint = now;
        f->has_endpoint = true;
        close_clients(f);
}

/* --- wants --- */

static int start_fetching(struct fetchers *o, struct partition *p, int32_t leader, int32_t epoch)
{
        struct fetcher *f;
        struct fetch_entry *e;
        int r;

        r = find_fetcher(o, leader, &f);
        if (r < 0)
                return r;
        e = calloc(1, sizeof(*e));
        if (!e)
                return -ENOMEM;
        refresh_endpoint(f);
        list_init(&e->node);
        e->p = partition_ref(p);
        e->f = f;
        e->epoch = epoch;
        e->state = FETCH_READY;
        e->last_data_ms = INT64_MIN / 2;
        e->leader_hw = -1;
        e->shard = f->next_shard++;
        fetch_lanes_resize(&f->core, ++f->n_entries);
        p->fetch = e;
        fetch_entry_ready(e, LANE_ANY);
        return 0;
}

static int apply_want(struct fetchers *o, struct partition *p, int32_t leader, int32_t epoch)
{
        struct fetch_entry *e = p->fetch;

        if (e && e->f->broker_id == leader && e->epoch == epoch)
                return 0;
        if (e)
                fetch_entry_drop(e);
        return leader >= 0 ? start_fetching(o, p, leader, epoch) : 0;
}

static bool next_want(struct fetchers *o, struct partition **ret_p, int32_t *ret_leader, int32_t *ret_epoch)
{
        struct partition *p = NULL;

        pthread_mutex_lock(&o->lock);
        if (!list_empty(&o->wants)) {
                p = list_entry(o->wants.next, struct partition, want_node);
                list_remove(&p->want_node);
                *ret_leader = p->want_leader;
                *ret_epoch = p->want_epoch;
        } else {
                o->task_posted = false;
        }
        pthread_mutex_unlock(&o->lock);
        *ret_p = p;
        return p;
}

/* All that is wanted is taken in before any lane goes out, so that the partitions of one LeaderAndIsr share a
 * request. */
static void on_task(void *userdata)
{
        struct fetchers *o = userdata;
        struct partition *p;
        int32_t leader, epoch;

        while (next_want(o, &p, &leader, &epoch)) {
                if (apply_want(o, p, leader, epoch) < 0)
                        slog_error("out-of-memory", "a replica cannot be fetched until its leader changes",
                                   SL_STR("topic", p->topic), SL_INT("partition", p->index));
                (void)partition_unref(p);
        }
        list_for_each (it, &o->all)
                fetcher_schedule(list_entry(it, struct fetcher, node));
}

void fetchers_want(struct fetchers *o, struct partition *p, int32_t leader, int32_t leader_epoch)
{
        bool post = false;

        pthread_mutex_lock(&o->lock);
        p->want_leader = leader;
        p->want_epoch = leader_epoch;
        if (!o->stopped && !list_linked(&p->want_node)) {
                (void)partition_ref(p);
                list_push_back(&o->wants, &p->want_node);
        }
        if (!o->stopped && !o->task_posted)
                post = o->task_posted = true;
        pthread_mutex_unlock(&o->lock);
        if (post)
                loop_post_task(o->loop, &o->task);
}

/* --- life --- */

int fetchers_new(struct replica_manager *m, struct loop *l, struct fetchers **ret)
{
        struct fetchers *o = calloc(1, sizeof(*o));

        if (!o)
                return -ENOMEM;
        o->m = m;
        o->loop = l;
        list_init(&o->all);
        list_init(&o->wants);
        o->task = (struct loop_task){.fn = on_task, .userdata = o};
        (void)pthread_mutex_init(&o->lock, NULL); /* takes no resources on Linux */
        *ret = o;
        return 0;
}

void fetchers_stop(struct fetchers *o)
{
        struct partition *p;
        int32_t leader, epoch;

        pthread_mutex_lock(&o->lock);
        o->stopped = true;
        pthread_mutex_unlock(&o->lock);
        while (next_want(o, &p, &leader, &epoch))
                (void)partition_unref(p);
        list_for_each_safe (it, next, &o->all)
                (void)fetcher_free(list_entry(it, struct fetcher, node));
}

struct fetchers *fetchers_free(struct fetchers *o)
{
        if (!o)
                return NULL;
        assert(list_empty(&o->all) && list_empty(&o->wants));
        pthread_mutex_destroy(&o->lock);
        free(o);
        return NULL;
}
