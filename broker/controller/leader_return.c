/* Which leaderships go back is remembered in the partitions (slot.taken), in this controller's memory. After
 * a change of controllers the record of drains tells: of a broker that led every partition whose first
 * replica it is when its drain began, all of these go back; of any other only the operator knows. */
#include "controller/leader_return.h"

#include "base/slog.h"
#include "controller/drain_history.h"
#include "controller/drain_internal.h"

#define BATCH     100
#define STEP_MS   250  /* from one batch to the next, at least */
#define LOOK_MS   500  /* while nothing can be handed back */
#define SETTLE_MS 3000 /* in sync for so long: a rolling upgrade goes on with the next broker first */

METRIC_COUNTER(returned, "stepdown_controller_leaders_returned_total",
               "Leaderships handed back to brokers that had been drained");

void leader_return_metrics_register(void)
{
        metrics_register(&returned);
}

void leader_return_metrics_unregister(void)
{
        metrics_unregister(&returned);
}

static void look_in(struct controller *c, int64_t ms)
{
        if (!loop_timer_armed(c->return_timer))
                loop_timer_arm(c->return_timer, ms, 0);
}

/* Catching up comes first. What nobody leads, or lies on a disk that failed here, holds nothing up. */
static bool in_sync(const struct controller *c, const struct ctx_broker *b)
{
        for (size_t i = 0; i < b->n_hosted; i++) {
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                const struct ctx_slot *s = &p->slots[b->hosted[i].slot];

                if (p->has_state && !p->topic->deleting && !p->reassigning && !s->dir_offline &&
                    ctx_partition_online(&c->ctx, p) && !ctx_in_isr(p, b->id))
                        return false;
        }
        return true;
}

static bool settled(const struct controller *c, struct ctx_broker *b, bool hold)
{
        int64_t now_ms = loop_now_ms(c->loop);

        if (hold || !in_sync(c, b))
                b->in_sync_since_ms = 0;
        else if (b->in_sync_since_ms == 0)
                b->in_sync_since_ms = now_ms;
        return b->in_sync_since_ms > 0 && now_ms - b->in_sync_since_ms >= SETTLE_MS;
}

/* Is it still to go back? */
static bool owed(const struct ctx_broker *b, const struct ctx_partition *p)
{
        return p->has_state && !p->topic->deleting && p->leader != b->id && p->replicas[0] == b->id;
}

static bool fits(const struct controller *c, const struct ctx_broker *b, const struct ctx_partition *p)
{
        struct election_replica replicas[ZNODE_MAX_REPLICAS];
        const struct election_replica *r;
        struct election_input in;

        if (p->reassigning || p->in_flight || p->prefer || !ctx_partition_online(&c->ctx, p))
                return false;
        ctx_election_input(&c->ctx, p, false, replicas, &in);
        r = election_preferred(&in);
        return r && r->id == b->id;
}

/* Hand back up to @room; *ret_left: how many are still owed, those included. */
static int hand_back(struct controller *c, struct ctx_broker *b, int room, int32_t *ret_left)
{
        int n = 0;

        *ret_left = 0;
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                struct ctx_slot *s = &p->slots[b->hosted[i].slot];

                if (!s->taken)
                        continue;
                if (!owed(b, p)) {
                        b->returned += p->leader == b->id;
                        s->taken = false;
                        continue;
                }
                (*ret_left)++;
                if (n >= room || !fits(c, b, p))
                        continue;
                p->prefer = true;
                writer_mark(c, p, WRITER_NORMAL);
                n++;
        }
        return n;
}

static void done(struct controller *c, struct ctx_broker *b)
{
        b->taken = false;
        b->in_sync_since_ms = 0;
        if (b->returned > 0) {
                slog_notice("leaders-returned", "leadership that a drain took is back",
                            SL_INT("broker", b->id), SL_INT("partitions", b->returned));
                ctl_log_change(c, "Broker %d leads again the %d partitions that its drain took", (int)b->id,
                               (int)b->returned);
                metric_add(&returned, b->returned);
        }
        b->returned = 0;
        drain_history_returned(c, b);
}

/* Returns when to look again, 0: nobody is owed anything. */
static int64_t step(struct controller *c)
{
        bool hold = atomic_load(&c->n_drains) > 0 || !ctl_lease(c);
        int room = BATCH;
        int64_t next = 0;
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;
                int32_t left;
                int n;

                if (!b->taken || !b->alive || b->drain)
                        continue;
                next = next ? next : LOOK_MS;
                if (!settled(c, b, hold))
                        continue;
                if (c->writer.multis > 0) { /* the last batch, or something more urgent */
                        next = STEP_MS;
                        continue;
                }
                n = hand_back(c, b, room, &left);
                room -= n;
                if (left == 0)
                        done(c, b);
                else if (n > 0)
                        next = STEP_MS;
        }
        return next;
}

static int on_timer(struct loop *l, void *userdata)
{
        struct controller *c = userdata;
        int64_t next = ctl_is_active(c) ? step(c) : 0;

        (void)l;
        if (next > 0)
                loop_timer_arm(c->return_timer, next, 0);
        return 0;
}

int leader_return_init(struct controller *c)
{
        return loop_add_timer(c->loop, on_timer, c, &c->return_timer);
}

void leader_return_took(struct controller *c, struct ctx_partition *p, int from)
{
        struct ctx_slot *s = ctx_slot(p, from);

        if (c->o.no_leadership_return || !s || p->replicas[0] != from)
                return;
        s->taken = true;
        s->broker->taken = true;
}

void leader_return_on_back(struct controller *c, struct ctx_broker *b)
{
        if (c->o.no_leadership_return)
                return;
        if (!b->taken && drain_history_took_all(c, b)) {
                for (size_t i = 0; i < b->n_hosted; i++) {
                        struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);

                        p->slots[b->hosted[i].slot].taken = owed(b, p);
                }
                b->taken = true;
        }
        if (b->taken)
                look_in(c, STEP_MS);
}

void leader_return_active(struct controller *c)
{
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                struct ctx_broker *b = v;

                if (b->alive && !b->drain)
                        leader_return_on_back(c, b);
        }
}
