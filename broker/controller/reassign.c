/* Reassignment of replicas (R60, KIP-455), from the topic's znode and the state of the moment alone, so that
 * a successor goes on where this controller ended:
 *
 *   wanted    --> the topic's znode names target and origin, `adding` and `removing`
 *   growing   --> LeaderAndIsr with a new epoch to all of them; new replicas fetch until they are in sync
 *   finishing --> once the ISR holds the target: leadership into the target if need be, what is removed
 * leaves the ISR, always with a new leader epoch (KAFKA-1097, KAFKA-1170); StopReplica with deletion to it
 *   over      --> the topic's znode names the target alone
 *
 * A cancellation is a reassignment to the origin, which does not wait for replicas that were out of sync
 * before. A draining broker gets into no ISR, so a reassignment towards it waits (D7); deletion of the topic
 * ends it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "controller/assignment_core.h"
#include "controller/controller_internal.h"
#include "wire/error.h"

static size_t assignment_of(const struct ctx_partition *p, struct ctx_assigned ret[ASSIGNMENT_MAX])
{
        for (uint16_t i = 0; i < p->n_slots; i++)
                ret[i] = (struct ctx_assigned){.id = p->slots[i].broker_id,
                                               .adding = p->slots[i].adding,
                                               .removing = p->slots[i].removing};
        return p->n_slots;
}

/* --- wishes --- */

static int16_t check_ids(const struct controller *c, struct ctx_partition *p, const int32_t *ids, int32_t n,
                         char error[256])
{
        if (n > ASSIGNMENT_MAX)
                return KAFKA_INVALID_REPLICA_ASSIGNMENT;
        for (int32_t i = 0; i < n; i++) {
                const struct ctx_broker *b = ctx_broker(&c->ctx, ids[i]);
                const struct ctx_slot *s = ctx_slot(p, ids[i]);

                for (int32_t k = 0; k < i; k++)
                        if (ids[k] == ids[i]) {
                                (void)snprintf(error, 256, "Duplicate replica %d in the replica assignment",
                                               (int)ids[i]);
                                return KAFKA_INVALID_REPLICA_ASSIGNMENT;
                        }
                /* Who is there already may be down for the moment; nobody new may. */
                if ((!b || !b->alive) && !s) {
                        (void)snprintf(error, 256, "Replica assignment has brokers that are not alive: %d",
                                       (int)ids[i]);
                        return KAFKA_INVALID_REPLICA_ASSIGNMENT;
                }
        }
        return KAFKA_NONE;
}

int16_t reassign_want(struct controller *c, struct ctx_partition *p, const int32_t *ids, int32_t n,
                      char error[256])
{
        struct ctx_assigned now[ASSIGNMENT_MAX], then[ASSIGNMENT_MAX];
        int32_t *want;
        size_t k, n_want = 0;
        int16_t code;

        if (n == 0 && !p->reassigning && !p->want)
                return KAFKA_NO_REASSIGNMENT_IN_PROGRESS;
        code = check_ids(c, p, ids, n, error);
        if (code != KAFKA_NONE)
                return code;
        if (p->finishing && !assignment_targets(now, assignment_of(p, now), ids, (size_t)n)) {
                (void)snprintf(error, 256, "The last reassignment is just being finished; ask again");
                return KAFKA_REASSIGNMENT_IN_PROGRESS;
        }
        k = assignment_retarget(now, assignment_of(p, now), ids, (size_t)n, then);
        if (k == 0) {
                (void)snprintf(error, 256, "too many replicas at once");
                return KAFKA_INVALID_REPLICA_ASSIGNMENT;
        }
        want = calloc(k + 1, sizeof(*want));
        if (!want)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        for (size_t i = 0; i < k; i++)
                if (!then[i].removing)
                        want[n_want++] = then[i].id;
        free(p->want);
        p->want = want;
        p->n_want = (int32_t)n_want;
        if (!list_linked(&p->moving))
                list_push_back(&c->moving, &p->moving);
        return KAFKA_NONE;
}

static void drop_want(struct ctx_partition *p)
{
        free(p->want);
        p->want = NULL;
        p->n_want = 0;
        if (!p->reassigning)
                list_remove(&p->moving);
}

/* --- is it time? --- */

/* A member of the target that could lead, or leads; nothing ends without one. */
static bool target_can_lead(const struct controller *c, const struct ctx_partition *p)
{
        for (uint16_t i = 0; i < p->n_slots; i++) {
                const struct ctx_slot *s = &p->slots[i];

                if (!s->removing && s->broker->alive && !s->dir_offline && !s->bounced &&
                    (!s->broker->drain || p->leader == s->broker_id) && ctx_in_isr(p, s->broker_id))
                        return true;
        }
        (void)c;
        return false;
}

static bool target_in_sync(const struct ctx_partition *p)
{
        for (uint16_t i = 0; i < p->n_slots; i++)
                if (!p->slots[i].removing && !ctx_in_isr(p, p->slots[i].broker_id))
                        return false;
        return true;
}

static bool ready(const struct controller *c, const struct ctx_partition *p)
{
        struct ctx_assigned now[ASSIGNMENT_MAX];

        return p->has_state && ctx_partition_online(&c->ctx, p) && target_can_lead(c, p) &&
               (target_in_sync(p) || assignment_is_cancellation(now, assignment_of(p, now)));
}

/* Has what is removed neither leadership nor ISR membership any more, written and under a new epoch? */
static bool removed(const struct controller *c, const struct ctx_partition *p)
{
        if (p->in_flight || p->renew || !ctx_partition_online(&c->ctx, p))
                return false;
        for (uint16_t i = 0; i < p->n_slots; i++)
                if (p->slots[i].removing &&
                    (p->leader == p->slots[i].broker_id || ctx_in_isr(p, p->slots[i].broker_id)))
                        return false;
        return true;
}

bool reassign_is_leaving(const struct ctx_partition *p, const struct ctx_slot *s)
{
        return p->finishing && s->removing;
}

/* A broker that is gone is not waited for; should it return, nobody asks it to serve this replica. */
static bool deleted(struct ctx_partition *p)
{
        bool all = true;

        for (uint16_t i = 0; i < p->n_slots; i++) {
                struct ctx_slot *s = &p->slots[i];

                if (!s->removing || s->deleted || !s->broker->sender)
                        continue;
                all = false;
                if (s->delete_sent)
                        continue;
                s->delete_sent = true;
                sender_push_stop(s->broker->sender, p);
                sender_kick(s->broker->sender);
        }
        return all;
}

void reassign_on_deleted(struct controller *c, struct ctx_partition *p, struct ctx_slot *s, int16_t error)
{
        s->delete_in_flight = false;
        if (!reassign_is_leaving(p, s))
                return;
        if (error == KAFKA_FENCED_LEADER_EPOCH) {
                s->delete_sent = false; /* it knows a later epoch; asked again with ours */
                return;
        }
        if (error != KAFKA_NONE && error != KAFKA_UNKNOWN_TOPIC_OR_PARTITION)
                slog_warning("replica-not-deleted", "a broker could not delete a replica that was reassigned",
                             SL_STR("topic", p->topic->name), SL_INT("partition", p->number),
                             SL_INT("broker", s->broker_id), SL_STR("code", kafka_error_name(error)));
        s->deleted = true;
        ctl_progress(c);
}

/* --- one step --- */

/* What the topic's znode is to say of @p now; 0: what it says already. */
static size_t next_assignment(struct controller *c, struct ctx_partition *p, struct ctx_assigned *ret)
{
        struct ctx_assigned now[ASSIGNMENT_MAX];
        size_t n = assignment_of(p, now);

        if (p->topic->deleting || p->topic->forgotten) {
                drop_want(p);
                list_remove(&p->moving);
                return 0;
        }
        if (p->want && assignment_targets(now, n, p->want, (size_t)p->n_want)) {
                drop_want(p);
                return 0;
        }
        if (p->want && !p->finishing)
                return assignment_retarget(now, n, p->want, (size_t)p->n_want, ret);
        if (!p->reassigning)
                return 0;
        if (p->finishing && !removed(c, p) && !ready(c, p))
                p->finishing = false; /* a member of the target fell back before anything was taken away */
        else if (!p->finishing && ready(c, p)) {
                p->finishing = p->renew = true;
                writer_mark(c, p, WRITER_NORMAL);
        }
        return p->finishing && removed(c, p) && deleted(p) ? assignment_finish(now, n, ret) : 0;
}

static void on_rewritten(struct controller *c, struct ctx_topic *t, const struct topic_rewrite *rw, int r)
{
        for (size_t i = 0; t && i < rw->n; i++) {
                struct ctx_partition *p = ctx_topic_partition(t, rw->changes[i].partition);

                if (!p)
                        continue;
                if (r == -E2BIG && p->want) {
                        slog_error("reassignment-refused", "an assignment is too large for its znode",
                                   SL_STR("topic", t->name), SL_INT("partition", p->number));
                        drop_want(p);
                }
                if (r != 0)
                        continue;
                ctl_log_change(c, "Changed assignment of partition [%s,%d]: %s", t->name, (int)p->number,
                               p->reassigning ? "reassignment in progress" : "reassignment complete");
                if (!p->reassigning)
                        slog_notice("reassignment-complete", "a partition's replicas have been reassigned",
                                    SL_STR("topic", t->name), SL_INT("partition", p->number));
        }
}

/* All partitions of the topic that have got something to be written, in one write. */
static void step_topic(struct controller *c, struct ctx_topic *t)
{
        struct topic_rewrite *rw = NULL;

        for (int32_t i = 0; i < t->n_partitions; i++) {
                struct ctx_partition *p = t->partitions[i];
                struct ctx_assigned to[ASSIGNMENT_MAX];
                size_t n;

                if (!p || !list_linked(&p->moving))
                        continue;
                n = next_assignment(c, p, to);
                if (n == 0)
                        continue;
                if (!rw)
                        rw = topic_rewrite_new(t, (size_t)t->n_partitions);
                if (!rw)
                        return; /* the next tick tries again */
                rw->changes[rw->n].partition = i;
                rw->changes[rw->n].n = n;
                memcpy(rw->changes[rw->n].to, to, n * sizeof(to[0]));
                rw->n++;
        }
        if (!rw)
                return;
        rw->done = on_rewritten;
        topic_rewrite(c, t, rw);
}

static bool pending(struct controller *c, const struct znode_partition *item)
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, item->topic);
        const struct ctx_partition *p = t && !t->deleting ? ctx_topic_partition(t, item->partition) : NULL;

        return p && (p->want || p->reassigning);
}

/* /admin/reassign_partitions without what is done (R60). */
static void shorten_znode(struct controller *c)
{
        struct tool_znode *z = &c->moves_znode;
        size_t kept = 0;
        bool changed = false;

        if (!z->pending || z->writing)
                return;
        for (size_t i = 0; i < z->list.n; i++) {
                struct znode_partition *item = &z->list.items[i];

                if (!pending(c, item)) {
                        free(item->topic);
                        free(item->replicas);
                        changed = true;
                        continue;
                }
                z->list.items[kept++] = *item;
        }
        z->list.n = kept;
        if (changed || kept == 0)
                tool_znode_write(c, WATCH_REASSIGNMENTS);
}

void reassign_progress(struct controller *c)
{
        struct list now;

        c->moves_pass++;
        /* Steps unlink and relink: each partition of today's list is looked at once. */
        list_init(&now);
        list_splice_back(&now, &c->moving);
        while (!list_empty(&now)) {
                struct ctx_partition *p = list_entry(now.next, struct ctx_partition, moving);

                list_remove(&p->moving);
                list_push_back(&c->moving, &p->moving);
                if (p->topic->rewriting || p->topic->stepped == c->moves_pass || !ctl_lease(c))
                        continue;
                p->topic->stepped = c->moves_pass;
                step_topic(c, p->topic);
        }
        shorten_znode(c);
        reassign_answer(c);
}

/* --- the znode --- */

void reassign_on_znode(struct controller *c)
{
        tool_znode_read(c, WATCH_REASSIGNMENTS);
}

static void take_item(struct controller *c, const struct znode_partition *item)
{
        struct ctx_topic *t = ctx_topic(&c->ctx, item->topic);
        struct ctx_partition *p = t && !t->deleting ? ctx_topic_partition(t, item->partition) : NULL;
        struct ctx_assigned now[ASSIGNMENT_MAX];
        char error[256] = "";
        int16_t code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;

        if (p && item->n_replicas == 0)
                code = KAFKA_INVALID_REPLICA_ASSIGNMENT;
        else if (p && assignment_targets(now, assignment_of(p, now), item->replicas, item->n_replicas))
                return; /* it goes on, or is so already */
        else if (p)
                code = reassign_want(c, p, item->replicas, (int32_t)MIN(item->n_replicas, (size_t)INT32_MAX),
                                     error);
        if (code != KAFKA_NONE)
                slog_error("reassignment-refused", "a reassignment in ZooKeeper cannot be carried out",
                           SL_STR("topic", item->topic), SL_INT("partition", item->partition),
                           SL_STR("code", kafka_error_name(code)), SL_STR("detail", error));
}

void reassign_take_znode(struct controller *c)
{
        const struct znode_partition_list *l = &c->moves_znode.list;

        for (size_t i = 0; i < l->n; i++)
                take_item(c, &l->items[i]);
        slog_notice("reassignment", "a tool asked for a reassignment", SL_INT("partitions", l->n));
        ctl_progress(c);
}

void reassign_load(struct controller *c)
{
        for (size_t i = 0; i < c->ctx.n_indexes; i++) {
                struct ctx_partition *p = c->ctx.partitions[i];

                if (!p || !p->reassigning || list_linked(&p->moving))
                        continue;
                list_push_back(&c->moving, &p->moving);
                /* Whoever wrote the topic's znode may have ended before the leader was told of its new
                 * replicas, which it refuses until then; and in an epoch that it knows it takes no news. */
                p->renew = true;
                writer_mark(c, p, WRITER_NORMAL);
        }
}
