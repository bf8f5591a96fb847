/* One sender a live broker: three sets of partitions to tell it about, and one request in flight.
 *
 * A set holds partitions, not requests: what is sent is the state at the moment of sending, so a slow broker
 * costs a bounded amount of memory and is never told anything old (KAFKA-1305). A request is repeated until
 * the broker has answered it or is gone (KAFKA-1187, KAFKA-1738); one in flight keeps LeaderAndIsr before
 * StopReplica. A broker that comes back gets a new sender, which starts with everything: the live brokers
 * first (KAFKA-4443), then one LeaderAndIsr with all its partitions (KAFKA-831), then the metadata of all
 * others. */
#include <errno.h>
#include <string.h>

#include "base/slog.h"
#include "client/kclient.h"
#include "controller/topics_internal.h"
#include "wire/error.h"
#include "wire/leader_and_isr.h"
#include "wire/stop_replica.h"
#include "wire/update_metadata.h"

#define MAX_ITEMS 2000 /* partitions a request; the first LeaderAndIsr alone may have more */
/* LeaderAndIsr in a row while something else waits: until clients can be told as well, a partition has a gap.
 */
#define MAX_STREAK 1

enum kind { KIND_LAI, KIND_UM, KIND_STOP, N_KINDS };
enum state { SENDER_IDLE, SENDER_IN_FLIGHT, SENDER_BACKING_OFF };

static const struct {
        const char *name;
        int16_t api_key, version;
} kinds[N_KINDS] = {
        [KIND_LAI] = {"LeaderAndIsr", 4, 7},
        [KIND_UM] = {"UpdateMetadata", 6, 8},
        [KIND_STOP] = {"StopReplica", 5, 4},
};

struct sender {
        struct controller *c;
        struct ctx_broker *broker;
        int64_t broker_epoch;
        struct kclient *client;
        struct loop_timer *retry;
        struct index_queue queue[N_KINDS];
        enum state state;
        enum kind kind;               /* of what is in flight, was last, or is to be repeated */
        struct ctx_partition **items; /* in flight */
        size_t n_items, items_capacity;
        uint64_t taken;               /* queue[kind].popped after the items in flight were taken */
        uint64_t acked[N_KINDS];      /* everything before this position of a queue has been acknowledged */
        bool repeat;                  /* begin with this kind again */
        bool brokers_due;             /* the set of live brokers changed */
        bool full_due;                /* no LeaderAndIsr was acknowledged yet */
        bool sent_brokers, sent_full; /* what the request in flight settles */
        unsigned attempts, streak;
        enum kind turn; /* whose turn it is after a streak */
};

static void sender_next(struct sender *s);

static int on_retry(struct loop *l, void *userdata)
{
        struct sender *s = userdata;

        (void)l;
        s->state = SENDER_IDLE;
        sender_next(s);
        return 0;
}

int sender_new(struct controller *c, struct ctx_broker *b, struct sender **ret)
{
        const struct znode_endpoint *e = znode_broker_endpoint(&b->info, c->listener);
        struct kclient_options o = {.client_id = "controller", .max_inflight = 1};
        struct sender *s;
        int r;

        if (!e)
                return -ENOENT;
        s = calloc(1, sizeof(*s));
        if (!s)
                return -ENOMEM;
        s->c = c;
        s->broker = b;
        s->broker_epoch = b->epoch;
        s->brokers_due = s->full_due = true;
        s->turn = KIND_UM;
        r = sender_reserve(s, MAX(c->ctx.capacity, (size_t)64));
        if (r >= 0)
                r = loop_add_timer(c->loop, on_retry, s, &s->retry);
        if (r >= 0)
                r = kclient_new(c->loop, e->host, e->port, &o, &s->client);
        if (r < 0) {
                sender_free(c, s, true);
                return r;
        }
        *ret = s;
        return 0;
}

static void unref_items(struct controller *c, struct sender *s)
{
        for (size_t i = 0; i < s->n_items; i++)
                ctx_partition_unref(&c->ctx, s->items[i]);
        s->n_items = 0;
}

static void unref_queues(struct controller *c, struct sender *s)
{
        uint32_t index;

        for (enum kind k = 0; k < N_KINDS; k++)
                while (index_queue_pop(&s->queue[k], &index))
                        ctx_partition_unref(&c->ctx, ctx_partition(&c->ctx, index));
}

void sender_free(struct controller *c, struct sender *s, bool forget)
{
        if (!s)
                return;
        if (!forget) {
                unref_items(c, s);
                unref_queues(c, s);
        }
        s->n_items = 0;
        s->broker = NULL; /* tells on_answer() that nobody cares */
        kclient_free(s->client);
        loop_timer_remove(s->retry);
        for (enum kind k = 0; k < N_KINDS; k++)
                index_queue_done(&s->queue[k]);
        free(s->items);
        free(s);
}

int sender_reserve(struct sender *s, size_t n)
{
        int r = 0;

        for (enum kind k = 0; k < N_KINDS && r >= 0; k++)
                r = index_queue_reserve(&s->queue[k], n);
        if (r >= 0 && n > s->items_capacity) {
                void *grown = reallocarray(s->items, n, sizeof(struct ctx_partition *));

                if (!grown)
                        return -ENOMEM;
                s->items = grown;
                s->items_capacity = n;
        }
        return r;
}

static void push(struct sender *s, enum kind k, struct ctx_partition *p)
{
        if (s && index_queue_push(&s->queue[k], p->index))
                ctx_partition_ref(p);
}

void sender_push_lai(struct sender *s, struct ctx_partition *p)
{
        push(s, KIND_LAI, p);
}

void sender_push_um(struct sender *s, struct ctx_partition *p)
{
        push(s, KIND_UM, p);
}

void sender_push_stop(struct sender *s, struct ctx_partition *p)
{
        push(s, KIND_STOP, p);
}

void sender_cancel_stop(struct controller *c, struct sender *s, struct ctx_partition *p)
{
        if (s && index_queue_remove(&s->queue[KIND_STOP], p->index))
                ctx_partition_unref(&c->ctx, p);
}

void sender_brokers_changed(struct sender *s)
{
        s->brokers_due = true;
}

bool sender_told(const struct sender *s)
{
        return s->queue[KIND_LAI].count == 0 && !(s->n_items > 0 && s->kind == KIND_LAI) && !s->full_due;
}

bool sender_idle(const struct sender *s)
{
        return sender_told(s) && s->state == SENDER_IDLE && s->queue[KIND_UM].count == 0 &&
               s->queue[KIND_STOP].count == 0 && !s->brokers_due;
}

static size_t untold(const struct sender *s, enum kind k)
{
        return s->queue[k].count + (s->kind == k ? s->n_items : 0);
}

size_t sender_untold(const struct sender *s)
{
        return MAX(untold(s, KIND_LAI), untold(s, KIND_UM));
}

int sender_marks_take(struct controller *c, struct sender_mark **ret, size_t *ret_n)
{
        struct sender_mark *marks = calloc(c->ctx.n_alive + 1, sizeof(*marks));
        size_t cursor = 0, n = 0;
        void *v;

        if (!marks)
                return -ENOMEM;
        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                if (b->alive && b->sender)
                        marks[n++] = (struct sender_mark){.broker_id = b->id,
                                                          .epoch = b->epoch,
                                                          .lai = b->sender->queue[KIND_LAI].pushed,
                                                          .um = b->sender->queue[KIND_UM].pushed};
        }
        *ret = marks;
        *ret_n = n;
        return 0;
}

bool sender_marks_passed(const struct controller *c, const struct sender_mark *marks, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const struct ctx_broker *b = ctx_broker(&c->ctx, marks[i].broker_id);

                if (!b || !b->sender || b->epoch != marks[i].epoch)
                        continue; /* gone: its next life is told everything anyway */
                if (b->sender->acked[KIND_LAI] < marks[i].lai || b->sender->acked[KIND_UM] < marks[i].um)
                        return false;
        }
        return true;
}

/* --- answers --- */

static struct ctx_partition *item_of(struct sender *s, const struct uuid *topic_id, struct wire_str topic,
                                     int32_t number)
{
        struct ctx *ctx = &s->c->ctx;
        struct ctx_topic *t;

        if (topic_id)
                t = ctx_topic_by_id(ctx, topic_id);
        else
                t = topic.len > 0 ? ctx_topic_n(ctx, topic.data, (size_t)topic.len) : NULL;
        return t ? ctx_topic_partition(t, number) : NULL;
}

static bool on_lai_error(struct sender *s, struct ctx_partition *p, int16_t error)
{
        struct ctx_slot *slot = p ? ctx_slot(p, s->broker->id) : NULL;

        if (!slot || error != KAFKA_STORAGE_ERROR || slot->dir_offline)
                return false; /* STALE_CONTROLLER_EPOCH: it has this leader epoch already */
        slot->dir_offline = true;
        slog_warning("replica-offline", "a replica's log directory is offline",
                     SL_STR("topic", p->topic->name), SL_INT("partition", p->number),
                     SL_INT("broker", s->broker->id));
        writer_mark(s->c, p, WRITER_URGENT);
        sender_announce_metadata(s->c, p); /* an offline replica, also where the election changes nothing */
        return true;
}

/* Whether replicas were found to be offline: other brokers have metadata to be told. */
static bool settle_lai(struct sender *s, const struct leader_and_isr_response *res)
{
        bool offline = false;

        for (size_t i = 0; i < s->n_items; i++) {
                struct ctx_slot *slot = ctx_slot(s->items[i], s->broker->id);

                if (slot)
                        slot->is_new = false;
        }
        for (int32_t i = 0; i < res->topics.n; i++)
                for (int32_t k = 0; k < res->topics.items[i].partition_errors.n; k++) {
                        const struct leader_and_isr_response_partition_error *e =
                                &res->topics.items[i].partition_errors.items[k];

                        if (e->error_code != KAFKA_NONE)
                                offline |= on_lai_error(s,
                                                        item_of(s, &res->topics.items[i].topic_id,
                                                                WIRE_NULL_STR, e->partition_index),
                                                        e->error_code);
                }
        s->full_due = s->full_due && !s->sent_full;
        return offline;
}

static int16_t stop_error_of(const struct stop_replica_response *res, const struct ctx_partition *p)
{
        for (int32_t i = 0; i < res->partition_errors.n; i++) {
                const struct stop_replica_response_partition_error *e = &res->partition_errors.items[i];

                if (e->partition_index == p->number && wire_str_equal(e->topic_name, p->topic->name))
                        return e->error_code;
        }
        return KAFKA_NONE;
}

static void settle_stop(struct sender *s, const struct stop_replica_response *res)
{
        bool errors = false;

        for (int32_t i = 0; i < res->partition_errors.n; i++)
                errors = errors || res->partition_errors.items[i].error_code != KAFKA_NONE;
        for (size_t i = 0; i < s->n_items; i++) {
                struct ctx_partition *p = s->items[i];
                struct ctx_slot *slot = p->topic->forgotten ? NULL : ctx_slot(p, s->broker->id);
                int16_t error = errors ? stop_error_of(res, p) : KAFKA_NONE;

                if (!slot)
                        continue;
                if (p->topic->deleting)
                        deletion_on_stopped(s->c, p, slot, error);
                else if (slot->delete_in_flight)
                        reassign_on_deleted(s->c, p, slot, error);
                if (!p->topic->deleting && slot->stop_sent)
                        drain_on_stopped(s->c, p, slot, error);
        }
}

static int16_t error_of(const struct sender *s, const void *response)
{
        switch (s->kind) {
        case KIND_LAI:
                return ((const struct leader_and_isr_response *)response)->error_code;
        case KIND_UM:
                return ((const struct update_metadata_response *)response)->error_code;
        default:
                return ((const struct stop_replica_response *)response)->error_code;
        }
}

static void settle(struct sender *s, const void *response)
{
        struct controller *c = s->c;
        bool offline = false;

        if (s->kind == KIND_LAI)
                offline = settle_lai(s, response);
        else if (s->kind == KIND_STOP)
                settle_stop(s, response);
        unref_items(c, s);
        s->acked[s->kind] = s->taken;
        s->attempts = 0;
        if (offline)
                sender_kick_all(c); /* only now: @s itself may send as well */
        ctl_progress(c);
        if (c->writer.normal.count > 0)
                writer_pump(c); /* it may have waited for this */
}

/* Nothing more to say to this incarnation, or nothing more for us to say: the request is dropped, and what
 * made it void is looked into. */
static bool voided(struct sender *s, int16_t error)
{
        if (error == KAFKA_STALE_BROKER_EPOCH) {
                brokers_refresh(s->c);
                return true;
        }
        if (error == KAFKA_STALE_CONTROLLER_EPOCH || error == KAFKA_NOT_CONTROLLER) {
                elector_probe(s->c);
                return true;
        }
        return false;
}

static void try_again(struct sender *s, int r, int16_t error)
{
        metric_add(&controller_metric_send_retries, 1);
        if (s->attempts++ == 0)
                slog_warning("broker-request-failed",
                             "a request to a broker failed; it is repeated until it succeeds",
                             SL_INT("broker", s->broker->id), SL_STR("request", kinds[s->kind].name),
                             SL_ERR(r), SL_STR("code", kafka_error_name(error)));
        for (size_t i = 0; i < s->n_items; i++)
                if (!index_queue_push(&s->queue[s->kind], s->items[i]->index))
                        ctx_partition_unref(&s->c->ctx, s->items[i]);
        s->n_items = 0;
        s->repeat = true;
        s->brokers_due = s->brokers_due || s->sent_brokers;
        s->state = SENDER_BACKING_OFF;
        loop_timer_arm(s->retry, s->c->o.retry_backoff_ms, 0);
}

static void on_answer(int r, const void *response, struct arena *arena, void *userdata)
{
        struct sender *s = userdata;
        int16_t error = KAFKA_NONE;

        (void)arena;
        if (!s->broker)
                return; /* being freed */
        s->state = SENDER_IDLE;
        if (r == 0)
                error = error_of(s, response);
        if (r < 0 || (error != KAFKA_NONE && !voided(s, error))) {
                try_again(s, r, error);
                return;
        }
        if (error == KAFKA_NONE)
                settle(s, response);
        else
                unref_items(s->c, s);
        sender_next(s);
}

/* --- sending --- */

static bool wanted(const struct sender *s, enum kind k, struct ctx_partition *p)
{
        struct ctx_slot *slot;

        if (k == KIND_UM)
                return p->topic->deleting || p->topic->forgotten || p->has_state;
        if (p->topic->forgotten)
                return false;
        slot = ctx_slot(p, s->broker->id);
        if (k == KIND_LAI)
                return slot && p->has_state && !p->topic->deleting && !reassign_is_leaving(p, slot);
        if (slot && slot->delete_sent && reassign_is_leaving(p, slot))
                return true;
        return slot && (p->topic->deleting || (slot->stop_sent && p->leader != s->broker->id)); /* R20 */
}

/* A StopReplica never overtakes the LeaderAndIsr of its partition, which would start the fetcher again (R9).
 */
static bool too_early(const struct sender *s, enum kind k, const struct ctx_partition *p)
{
        return k == KIND_STOP && !p->topic->deleting && index_queue_has(&s->queue[KIND_LAI], p->index);
}

static void fill_items(struct sender *s, enum kind k, size_t max)
{
        struct ctx *ctx = &s->c->ctx;
        uint32_t index;

        for (size_t left = s->queue[k].count; left > 0 && s->n_items < max; left--) {
                struct ctx_partition *p;

                (void)index_queue_pop(&s->queue[k], &index);
                p = ctx_partition(ctx, index);
                if (too_early(s, k, p)) {
                        (void)index_queue_push(&s->queue[k], index);
                        continue;
                }
                if (wanted(s, k, p)) {
                        s->items[s->n_items++] = p;
                        continue;
                }
                if (k == KIND_STOP && !p->topic->forgotten && ctx_slot(p, s->broker->id))
                        ctx_slot(p, s->broker->id)->stop_sent = false; /* it leads again; asked anew if not */
                ctx_partition_unref(ctx, p);
        }
}

/* The live brokers first, then everything it hosts; later LeaderAndIsr, metadata, StopReplica in turn, so
 * that none starves. */
static bool choose(struct sender *s)
{
        size_t max = MIN((size_t)MAX_ITEMS, s->items_capacity);
        enum kind first = s->repeat ? s->kind : s->streak < MAX_STREAK ? KIND_LAI : s->turn;

        s->n_items = 0;
        s->repeat = false;
        if (s->brokers_due) {
                s->kind = KIND_UM;
                fill_items(s, KIND_UM, max);
                return true;
        }
        if (s->full_due) {
                s->kind = KIND_LAI;
                fill_items(s, KIND_LAI, s->items_capacity);
                return true;
        }
        for (enum kind i = 0; i < N_KINDS; i++) {
                s->kind = (first + i) % N_KINDS;
                fill_items(s, s->kind, max);
                if (s->n_items > 0) {
                        s->streak = s->kind == KIND_LAI ? s->streak + 1 : 0;
                        s->turn = s->kind == KIND_UM ? KIND_STOP : s->kind == KIND_STOP ? KIND_UM : s->turn;
                        return true;
                }
                s->acked[s->kind] = s->queue[s->kind].popped; /* nothing of it was wanted any more */
        }
        return false;
}

static int send_items(struct sender *s)
{
        struct controller *c = s->c;
        cleanup_with(arena_donep) struct arena a = {0};
        union {
                struct leader_and_isr_request lai;
                struct update_metadata_request um;
                struct stop_replica_request stop;
        } body;
        int r;

        arena_init(&a, 0);
        s->sent_brokers = s->kind == KIND_UM;
        s->sent_full = s->kind == KIND_LAI && s->full_due;
        if (s->kind == KIND_LAI)
                r = request_lai(c, s->broker, s->items, s->n_items, s->full_due, &a, &body.lai);
        else if (s->kind == KIND_UM)
                r = request_um(c, s->broker, s->items, s->n_items, &a, &body.um);
        else
                r = request_stop(c, s->broker, s->items, s->n_items, &a, &body.stop);
        if (r < 0)
                return r;
        metric_add(&controller_metric_sent, 1);
        return kclient_request(s->client, wire_api_find(kinds[s->kind].api_key), kinds[s->kind].version,
                               &body, c->o.request_timeout_ms, on_answer, s);
}

static void sender_next(struct sender *s)
{
        int r;

        if (s->state != SENDER_IDLE || !ctl_is_active(s->c))
                return;
        /* F2: somebody else may be controller by now; ctl_lease() wakes everything when it is back. */
        if (!ctl_lease(s->c))
                return;
        if (!choose(s))
                return;
        s->state = SENDER_IN_FLIGHT;
        s->taken = s->queue[s->kind].popped;
        r = send_items(s);
        if (r < 0) {
                try_again(s, r, KAFKA_NONE);
                return;
        }
        if (s->sent_brokers)
                s->brokers_due = false;
}

void sender_kick(struct sender *s)
{
        sender_next(s);
}

static int kick_rank(const struct ctx_broker *b)
{
        if (b->drain)
                return 2;
        return b->sender->queue[KIND_LAI].count > 0 ? 0 : 1;
}

/* The draining broker hears last: its clients are sent to leaders that have been told before (D6). */
void sender_kick_all(struct controller *c)
{
        for (int rank = 0; rank < 3; rank++) {
                size_t cursor = 0;
                void *v;

                while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                        struct ctx_broker *b = v;

                        if (b->sender && kick_rank(b) == rank)
                                sender_next(b->sender);
                }
        }
}

void sender_announce_metadata(struct controller *c, struct ctx_partition *p)
{
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v))
                sender_push_um(((struct ctx_broker *)v)->sender, p);
}

/* Draining brokers are told too when it concerns them (R12, KAFKA-7482). A draining follower that has stopped
 * is not: LeaderAndIsr would start its fetcher again (R9). */
void sender_announce(struct controller *c, struct ctx_partition *p, int32_t old_leader)
{
        for (uint16_t i = 0; i < p->n_slots; i++) {
                struct ctx_slot *slot = &p->slots[i];

                if (slot->broker->drain && slot->stop_sent && slot->broker_id != old_leader)
                        continue;
                sender_push_lai(slot->broker->sender, p);
        }
        sender_announce_metadata(c, p);
}
