/* Drains (D1): what each still needs is judged from the state of the moment, by drain_core.c, as often as
 * something has changed, and no more than a fifth of the thread's time.
 *
 * Leaders first: every leadership that can move is marked for the writer, which hands them over in bounded
 * multis (D6, R18). Then what the broker follows: StopReplica in portions, and only when it is acknowledged
 * (R11, D7), or the broker has taken too long, its ISR membership is marked for removal; in portions, because
 * between the two an acks=all producer waits for a follower that no longer fetches. A partition still led is
 * left alone (R20). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "controller/controller_internal.h"
#include "controller/drain_history.h"
#include "controller/drain_internal.h"
#include "controller/leader_return.h"
#include "wire/error.h"

#define MAX_STOPPING 500  /* replicas stopped, or being stopped, that are still in an ISR */
#define STEP_SHARE   4    /* pause this many times as long as the last step took */
#define TELL_MS      5000 /* how long the end of a drain waits for brokers to acknowledge the last moves */

static void drain_step(struct controller *c, struct drain *d);

static void for_each_drain(struct controller *c, void (*fn)(struct controller *c, struct drain *d))
{
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;

                if (b->drain)
                        fn(c, b->drain);
        }
}

static void publish_gauges(struct controller *c)
{
        int64_t remaining = 0, n = 0;
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                n += b->drain != NULL;
                remaining += b->drain ? b->leaders_multi : 0;
        }
        atomic_store(&c->n_drains, n);
        atomic_store(&c->drain_remaining, remaining);
}

void drain_run(struct controller *c)
{
        int64_t began = clock_mono_us();

        for_each_drain(c, drain_step);
        publish_gauges(c);
        sender_kick_all(c);
        c->drain_step_at_us = clock_mono_us();
        c->drain_step_us = c->drain_step_at_us - began;
}

static int on_drain_timer(struct loop *l, void *userdata)
{
        struct controller *c = userdata;

        (void)l;
        if (ctl_is_active(c))
                drain_run(c);
        return 0;
}

int drain_init(struct controller *c)
{
        return loop_add_timer(c->loop, on_drain_timer, c, &c->drain_timer);
}

void drain_schedule(struct controller *c)
{
        int64_t wait_us = c->drain_step_at_us + STEP_SHARE * c->drain_step_us - clock_mono_us();

        if (loop_timer_armed(c->drain_timer) || atomic_load(&c->n_drains) == 0)
                return;
        loop_timer_arm(c->drain_timer, wait_us > 0 ? wait_us / 1000 + 1 : 0, 0);
}

/* --- one step --- */

bool drain_quiet(const struct controller *c, const struct ctx_broker *b, size_t i)
{
        const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);

        return p->leader != b->id && p->slots[b->hosted[i].slot].stopped && !ctx_in_isr(p, b->id) &&
               !p->in_flight && !p->slots[b->hosted[i].slot].stopping;
}

void drain_view(const struct controller *c, const struct ctx_broker *b, size_t i, bool zk_available,
                struct election_replica *replicas, struct drain_partition *ret)
{
        const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
        const struct ctx_slot *s = &p->slots[b->hosted[i].slot];

        *ret = (struct drain_partition){
                .broker_id = b->id,
                .factor = p->n_slots,
                .min_isr = p->topic->min_isr,
                .busy = writer_busy_with(c, p),
                .write_failed = p->write_failed,
                .zk_available = zk_available,
                .deleting = p->topic->deleting,
                .reassigning = p->reassigning,
                .stop_sent = s->stop_sent,
                .stopped = s->stopped,
        };
        ctx_election_input(&c->ctx, p, false, replicas, &ret->state);
}

/* The broker has answered nothing for too long: its replicas count as stopped, or its partitions would wait
 * for a dead follower as long as it does (R11, with the timeout that R19 demands). */
static void give_up_on_stop(struct controller *c, struct drain *d)
{
        size_t n = 0;

        for (size_t i = 0; i < d->b->n_hosted; i++) {
                struct ctx_partition *p = ctx_partition(&c->ctx, d->b->hosted[i].partition);
                struct ctx_slot *s = &p->slots[d->b->hosted[i].slot];

                if (!s->stop_sent || s->stopped)
                        continue;
                s->stopped = true;
                n++;
        }
        d->stop_gave_up = true;
        if (n)
                slog_warning("stop-replica-timeout",
                             "a draining broker does not acknowledge StopReplica; it leaves the ISRs without",
                             SL_INT("broker", d->b->id), SL_INT("replicas", n));
}

static void set_stopping(struct drain *d, struct ctx_slot *s, bool on)
{
        d->stopping += (int)on - (int)s->stopping;
        s->stopping = on;
}

static void push_stop(struct controller *c, struct drain *d, struct ctx_partition *p, struct ctx_slot *s)
{
        if (d->stop_since_ms == 0)
                d->stop_since_ms = loop_now_ms(c->loop);
        s->stop_sent = true;
        s->stopped = d->stop_gave_up;
        set_stopping(d, s, true);
        sender_push_stop(d->b->sender, p);
}

/* Ask more followers to stop, as far as there is room for them; goes on where it left off. */
static void feed(struct controller *c, struct drain *d)
{
        struct ctx_broker *b = d->b;

        if (d->leaders_move || !ctl_lease(c))
                return;
        for (; d->stop_cursor < b->n_hosted && d->stopping < MAX_STOPPING; d->stop_cursor++) {
                struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[d->stop_cursor].partition);
                struct ctx_slot *s = &p->slots[b->hosted[d->stop_cursor].slot];

                if (p->has_state && !p->topic->deleting && p->leader != b->id && !s->stop_sent) /* R20 */
                        push_stop(c, d, p, s);
        }
        sender_kick(b->sender);
}

void drain_feed(struct controller *c)
{
        if (atomic_load(&c->n_drains) > 0)
                for_each_drain(c, feed);
}

/* R23: said once a partition and drain, when nothing else is going to change it. */
static void warn_not_removed(struct ctx_partition *p, struct drain_partition *view)
{
        const char *why = drain_not_removed_because(view);

        if (!why || p->warned)
                return;
        p->warned = true;
        slog_warning("replica-not-removed", "a draining replica stays in the ISR",
                     SL_STR("topic", p->topic->name), SL_INT("partition", p->number),
                     SL_INT("broker", view->broker_id), SL_STR("condition", why));
}

struct step {
        struct drain_totals totals;
        int32_t stopping;
        bool leaders_move, stops_wanted, stop_pending, zk_available;
};

static void step_partition(struct controller *c, struct drain *d, size_t i, struct step *st)
{
        struct election_replica replicas[ZNODE_MAX_REPLICAS];
        struct ctx_partition *p = ctx_partition(&c->ctx, d->b->hosted[i].partition);
        struct ctx_slot *s = &p->slots[d->b->hosted[i].slot];
        struct drain_partition view;
        struct drain_verdict v;

        drain_view(c, d->b, i, st->zk_available, replicas, &view);
        drain_partition_judge(&view, &v);
        st->totals.leaders += v.leads;
        st->totals.single += v.single;
        st->totals.in_isr += v.in_isr;
        st->leaders_move = st->leaders_move || (v.leads && !v.stuck);
        s->stopping = s->stopping && !p->topic->deleting;
        if (!p->topic->deleting) {
                st->stop_pending = st->stop_pending || (s->stop_sent && !s->stopped);
                s->stopping = s->stop_sent && !v.stuck && (!s->stopped || v.in_isr);
                st->stopping += s->stopping;
        }
        if (v.stuck) {
                warn_not_removed(p, &view);
                return;
        }
        if (v.need == DRAIN_NEED_NOTHING)
                return;
        st->totals.moving++;
        if (v.need == DRAIN_NEED_STOP)
                st->stops_wanted = true;
        else if (v.need != DRAIN_NEED_WAIT && !p->write_failed)
                writer_mark(c, p, WRITER_NORMAL);
}

/* Have all others been told of the last moves? */
static bool all_told(struct controller *c, struct drain *d)
{
        size_t cursor = 0;
        bool told = true;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                if (b != d->b && b->sender)
                        told = told && sender_told(b->sender);
        }
        if (told)
                return true;
        if (d->telling_since_ms == 0)
                d->telling_since_ms = loop_now_ms(c->loop);
        return loop_now_ms(c->loop) - d->telling_since_ms > TELL_MS;
}

static void set_state(struct controller *c, struct drain *d, enum drain_state to, const struct step *st)
{
        enum drain_state from = d->state;

        if (from == to)
                return;
        d->state = to;
        d->updated_ms = clock_real_ms();
        drain_history_changed(c, d, (int)from);
        ctl_log_change(c, "Drain %s of broker %d is %s: leaders:%d isr:%d single:%d", d->id, (int)d->b->id,
                       drain_state_name(to), (int)st->totals.leaders, (int)st->totals.in_isr,
                       (int)st->totals.single);
        slog_notice(to == DRAIN_DRAINED      ? "drain-complete"
                    : to == DRAIN_INCOMPLETE ? "drain-incomplete"
                                             : "drain-resumed",
                    to == DRAIN_DRAINED      ? "a broker is drained"
                    : to == DRAIN_INCOMPLETE ? "a broker cannot be drained further for now"
                                             : "a drain goes on",
                    SL_INT("broker", d->b->id), SL_STR("drain_id", d->id), SL_INT("moved", d->moved),
                    SL_INT("leaders_remaining", st->totals.leaders),
                    SL_INT("isr_remaining", st->totals.in_isr), SL_INT("single_replica", st->totals.single));
}

static void drain_step(struct controller *c, struct drain *d)
{
        struct step st = {.zk_available = zk_lease_valid(c->zk)};

        for (size_t i = 0; i < d->b->n_hosted; i++)
                if (!drain_quiet(c, d->b, i))
                        step_partition(c, d, i, &st);
        d->stopping = st.stopping; /* counted anew: topics may have been deleted meanwhile */
        if (!st.stop_pending)
                d->stop_since_ms = 0;
        else if (loop_now_ms(c->loop) - d->stop_since_ms > c->o.stop_replica_timeout_ms)
                give_up_on_stop(c, d);
        d->leaders_move = st.leaders_move;
        if (st.stops_wanted && d->stop_cursor >= d->b->n_hosted)
                d->stop_cursor = 0; /* some were passed by, or have to be asked again */
        feed(c, d);
        st.totals.told = st.totals.moving > 0 || all_told(c, d);
        if (st.totals.moving > 0)
                d->telling_since_ms = 0;
        /* Drained is drained: writes of other things that its partitions are in do not undo it. */
        if (d->state != DRAIN_DRAINED || st.totals.leaders > 0 || st.totals.in_isr > 0)
                set_state(c, d, drain_state_of(&st.totals), &st);
        drain_answer_shutdowns(c, d, d->state != DRAIN_DRAINING);
}

/* --- what happens meanwhile --- */

void drain_on_moved(struct controller *c, int32_t old_leader)
{
        struct ctx_broker *b = ctx_broker(&c->ctx, old_leader);

        metric_add(&controller_metric_drain_moves, 1);
        if (!b || !b->drain)
                return;
        b->drain->moved++;
        b->drain->updated_ms = clock_real_ms();
}

void drain_on_stopped(struct controller *c, struct ctx_partition *p, struct ctx_slot *s, int16_t error)
{
        struct drain *d = s->broker->drain;

        if (!d || !s->stop_sent)
                return;                          /* undone in the meantime */
        d->stop_since_ms = loop_now_ms(c->loop); /* it answers */
        if (error == KAFKA_FENCED_LEADER_EPOCH) {
                s->stop_sent =
                        false; /* it knows a later epoch than this request had; asked again with ours */
                return;
        }
        s->stopped = true;
        if (p->has_state && p->leader != s->broker_id && p->n_isr > 1 && ctx_in_isr(p, s->broker_id))
                writer_mark(c, p, WRITER_NORMAL);
        else
                set_stopping(d, s, false);
}

void drain_on_written(struct controller *c, struct ctx_partition *p)
{
        (void)c;
        for (uint16_t i = 0; i < p->n_slots; i++) {
                struct ctx_slot *s = &p->slots[i];

                if (s->stopping && s->stopped && s->broker->drain && !ctx_in_isr(p, s->broker_id))
                        set_stopping(s->broker->drain, s, false);
        }
}

/* Forget the drain. Partitions are looked at again, because a draining broker is no candidate and this one
 * may be the one that somebody waits for. */
void drain_end(struct controller *c, struct ctx_broker *b, bool rejoin, enum drain_verdict_kind how)
{
        struct drain *d = b->drain;

        drain_answer_shutdowns(c, d, true);
        drain_history_end(c, d, how);
        b->drain = NULL;
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                struct ctx_slot *s = &p->slots[b->hosted[i].slot];

                /* D2: its fetchers start again with a LeaderAndIsr of a new epoch. The one in which they were
                 * stopped would not do: a StopReplica of that epoch may still be on its way over a connection
                 * given up meanwhile, and would stop them again unseen; and Kafka ignores an epoch it knows.
                 */
                if (rejoin && s->stop_sent && p->has_state && p->leader >= 0 && p->leader != b->id)
                        p->renew = true;
                if (s->stop_sent)
                        sender_cancel_stop(c, b->sender, p);
                s->stop_sent = s->stopped = s->stopping = p->warned = false;
                writer_mark(c, p, WRITER_NORMAL);
        }
        free(d);
        if (rejoin)
                leader_return_on_back(c, b);
        publish_gauges(c);
        drain_schedule(c);
}

void drain_clear(struct controller *c, struct ctx_broker *b, const char *why)
{
        if (!b->drain)
                return;
        slog_notice("drain-cleared", "a drain has ended", SL_INT("broker", b->id),
                    SL_STR("drain_id", b->drain->id), SL_STR("reason", why),
                    SL_INT("moved", b->drain->moved));
        drain_end(c, b, false, DRAIN_ENDED_NOT);
}

static enum drain_verdict_kind how_it_ended(const struct znode_slot *s, const struct drain *d)
{
        static const enum drain_verdict_kind kinds[N_SLOT_ENDS] = {
                [SLOT_END_RETURNED] = DRAIN_ENDED_NOT,
                [SLOT_END_UNDONE] = DRAIN_ENDED_UNDONE,
                [SLOT_END_EXPIRED] = DRAIN_ENDED_EXPIRED,
                [SLOT_END_REPLACED] = DRAIN_ENDED_REPLACED,
        };

        for (size_t i = s->n_ended; i > 0; i--)
                if (s->ended[i - 1].broker == d->b->id && strcmp(s->ended[i - 1].drain_id, d->id) == 0)
                        return kinds[s->ended[i - 1].how];
        return DRAIN_ENDED_UNDONE;
}

/* It does not hold the slot any more (undone, taken over, or its lease ran out), or the whole cluster stops.
 */
void drain_follow_slot(struct controller *c)
{
        struct znode_slot *slot = c->slot.cur;
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;
                const struct slot_holder *h = slot_holder_of(slot, b->id);
                bool holds = h && h->state == SLOT_DRAINING && b->alive && h->epoch == b->epoch;

                b->stopping = holds && slot->cluster_stop;
                if (!b->drain || (holds && !slot->cluster_stop))
                        continue;
                slog_notice("drain-undone", "a drain is over; the broker may lead and rejoins",
                            SL_INT("broker", b->id), SL_STR("drain_id", b->drain->id),
                            SL_STR("why", b->stopping ? "the cluster stops" : "it does not hold the slot"));
                ctl_log_change(c, "Drain %s of broker %d is undone", b->drain->id, (int)b->id);
                drain_end(c, b, !b->stopping, b->stopping ? DRAIN_ENDED_NOT : how_it_ended(slot, b->drain));
        }
}

void drain_forget(struct controller *c)
{
        size_t cursor = 0;
        void *v;

        if (!c->ctx.brokers)
                return;
        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;

                if (!b->drain)
                        continue;
                drain_refuse_shutdowns(b->drain);
                free(TAKE_PTR(b->drain));
        }
}
