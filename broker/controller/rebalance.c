/* auto.leader.rebalance.enable (D11): leadership goes back to the first replica of the assignment, gently.
 *
 * Every interval the brokers' imbalance is reckoned as Kafka does: of the partitions whose preferred replica
 * a broker is, the share that somebody else leads. Those of brokers above the limit are handed back in
 * batches, the next one only after the last has been decided; and none at all while any broker drains, whose
 * leaders have just been placed where they are. */
#include "base/slog.h"
#include "controller/controller_internal.h"

#define BATCH    250
#define PAUSE_MS 1000 /* between two batches, and between two looks at a drain that goes on */
#define FIRST_MS 5000 /* after an election (kafka-semantics §3.4) */

struct tally {
        int32_t preferred, elsewhere;
};

static bool wanted(const struct controller *c, const struct ctx_partition *p)
{
        struct election_replica replicas[ZNODE_MAX_REPLICAS];
        struct election_input in;
        const struct election_replica *r;

        if (!p->has_state || p->topic->deleting || p->reassigning || !ctx_partition_online(&c->ctx, p))
                return false;
        ctx_election_input(&c->ctx, p, false, replicas, &in);
        r = election_preferred(&in);
        return r && r->id != p->leader;
}

/* Indexed by the preferred broker. */
static void count(const struct controller *c, struct map *tallies, struct tally *room, size_t max)
{
        size_t n = 0;

        for (size_t i = 0; i < c->ctx.n_indexes; i++) {
                const struct ctx_partition *p = c->ctx.partitions[i];
                struct tally *t;

                if (!p || p->topic->forgotten || p->topic->deleting || !p->slots[0].broker->alive)
                        continue;
                t = map_get_int(tallies, p->replicas[0]);
                if (!t && n < max && map_put_int(tallies, p->replicas[0], &room[n]) == 0)
                        t = &room[n++];
                if (!t)
                        continue;
                t->preferred++;
                t->elsewhere += p->leader != p->replicas[0];
        }
}

static bool above(const struct controller *c, const struct tally *t)
{
        return t && (int64_t)t->elsewhere * 100 > (int64_t)t->preferred * c->o.leader_imbalance_percentage;
}

/* Returns how many were handed back: a whole batch says that there may be more. */
static int hand_back(struct controller *c)
{
        cleanup_with(map_freep) struct map *tallies = map_new();
        cleanup_with(freep) struct tally *room = calloc(c->ctx.n_alive + 1, sizeof(*room));
        int n = 0;

        if (!tallies || !room)
                return 0;
        count(c, tallies, room, c->ctx.n_alive);
        for (size_t i = 0; i < c->ctx.n_indexes && n < BATCH; i++) {
                struct ctx_partition *p = c->ctx.partitions[i];

                if (!p || p->topic->forgotten || !above(c, map_get_int(tallies, p->replicas[0])) ||
                    !wanted(c, p))
                        continue;
                p->prefer = true;
                writer_mark(c, p, WRITER_NORMAL);
                n++;
        }
        if (n > 0)
                slog_notice("leaders-rebalanced", "leadership goes back to preferred replicas",
                            SL_INT("partitions", n));
        return n;
}

static int on_rebalance(struct loop *l, void *userdata)
{
        struct controller *c = userdata;
        int64_t next = c->o.leader_imbalance_check_ms;

        (void)l;
        if (!ctl_is_active(c))
                return 0; /* begun anew by the next election */
        if (atomic_load(&c->n_drains) > 0 || c->writer.multis > 0 || !ctl_lease(c))
                next = MIN(next, (int64_t)PAUSE_MS);
        else if (hand_back(c) == BATCH)
                next = MIN(next, (int64_t)PAUSE_MS);
        loop_timer_arm(c->rebalance, next, 0);
        return 0;
}

int rebalance_init(struct controller *c)
{
        return loop_add_timer(c->loop, on_rebalance, c, &c->rebalance);
}

void rebalance_start(struct controller *c)
{
        if (c->o.auto_leader_rebalance)
                loop_timer_arm(c->rebalance, MIN((int64_t)FIRST_MS, c->o.leader_imbalance_check_ms), 0);
}
