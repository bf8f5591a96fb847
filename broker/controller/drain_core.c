/* Verdicts of a drain; see the header. Pure. */
#include "controller/drain_core.h"

static const struct {
        const char *name, *help;
} reasons[N_DRAIN_REASONS] = {
        [DRAIN_REASON_QUEUED] = {"queued", "its turn has not come yet, or its write is in flight"},
        [DRAIN_REASON_NO_OTHER_IN_SYNC] = {"no_other_in_sync_replica",
                                           "no other replica is in sync; it moves as soon as one is"},
        [DRAIN_REASON_ONLY_SHUTTING_DOWN] = {"only_shutting_down_replicas_in_sync",
                                             "the other in-sync replicas are draining too, or gone"},
        [DRAIN_REASON_ZK_WRITE_FAILED] = {"zookeeper_write_failed",
                                          "the write to ZooKeeper failed; it is tried again"},
        [DRAIN_REASON_ZK_UNAVAILABLE] = {"zookeeper_unavailable",
                                         "ZooKeeper does not answer; nothing can be moved until it does"},
        [DRAIN_REASON_REASSIGNMENT] = {"reassignment_in_progress", "its replicas are being reassigned"},
        [DRAIN_REASON_STOP_REPLICA_PENDING] = {"stop_replica_pending",
                                               "the broker has not yet confirmed that it stopped following"},
        [DRAIN_REASON_SINGLE_REPLICA] = {"single_replica",
                                         "it has one replica only and goes offline with its broker"},
};

static const char *const state_names[N_DRAIN_STATES] = {
        [DRAIN_NONE] = "none",
        [DRAIN_DRAINING] = "draining",
        [DRAIN_INCOMPLETE] = "incomplete",
        [DRAIN_DRAINED] = "drained",
        [DRAIN_WAITING] = "waiting_for_slot",
        [DRAIN_CLUSTER_STOP] = "cluster_stop",
};

const char *drain_state_name(enum drain_state s)
{
        return state_names[s];
}

const char *drain_reason_name(enum drain_reason r)
{
        return reasons[r].name;
}

const char *drain_reason_help(enum drain_reason r)
{
        return reasons[r].help;
}

static bool in_isr(const struct drain_partition *p, int32_t id)
{
        for (int i = 0; i < p->state.n_isr; i++)
                if (p->state.isr[i] == id)
                        return true;
        return false;
}

/* What keeps a led partition where it is. */
static void judge_led(const struct drain_partition *p, struct drain_verdict *ret)
{
        bool movable = election_drain_candidate(&p->state);

        ret->need = movable && !p->busy ? DRAIN_NEED_MOVE : DRAIN_NEED_WAIT;
        if (!movable) {
                ret->reason = p->reassigning        ? DRAIN_REASON_REASSIGNMENT
                              : p->state.n_isr <= 1 ? DRAIN_REASON_NO_OTHER_IN_SYNC
                                                    : DRAIN_REASON_ONLY_SHUTTING_DOWN;
                ret->stuck = !p->busy;
        } else if (p->write_failed) {
                ret->reason = DRAIN_REASON_ZK_WRITE_FAILED;
        } else {
                ret->reason = DRAIN_REASON_QUEUED;
        }
}

/* A leaderless partition keeps its ISR (KAFKA-5083), and so does one whose leader is gone for the moment. */
static bool leader_serves(const struct drain_partition *p)
{
        for (int i = 0; i < p->state.n_replicas; i++)
                if (p->state.replicas[i].id == p->state.leader)
                        return p->state.replicas[i].alive && !p->state.replicas[i].bounced;
        return false;
}

static void judge_followed(const struct drain_partition *p, struct drain_verdict *ret)
{
        ret->in_isr = p->state.n_isr > 1 && in_isr(p, p->broker_id);
        if (!p->stopped) {
                ret->need = p->stop_sent ? DRAIN_NEED_WAIT : DRAIN_NEED_STOP;
                ret->reason = DRAIN_REASON_STOP_REPLICA_PENDING;
        } else if (ret->in_isr && !leader_serves(p)) {
                ret->need = DRAIN_NEED_WAIT;
                ret->stuck = !p->busy;
                ret->reason = DRAIN_REASON_ONLY_SHUTTING_DOWN;
        } else if (ret->in_isr) {
                ret->need = p->busy ? DRAIN_NEED_WAIT : DRAIN_NEED_SHRINK;
                ret->reason = p->write_failed ? DRAIN_REASON_ZK_WRITE_FAILED : DRAIN_REASON_QUEUED;
        } else if (p->busy) {
                ret->need = DRAIN_NEED_WAIT;
        }
}

void drain_partition_judge(const struct drain_partition *p, struct drain_verdict *ret)
{
        *ret = (struct drain_verdict){.need = DRAIN_NEED_NOTHING};
        if (!p->state.has_state || p->deleting)
                return;
        ret->never_safe = p->factor <= p->min_isr;
        ret->leads = p->state.leader == p->broker_id && p->factor > 1;
        ret->single = p->state.leader == p->broker_id && p->factor <= 1;
        if (ret->single) {
                ret->reason = DRAIN_REASON_SINGLE_REPLICA;
                return;
        }
        if (ret->leads)
                judge_led(p, ret);
        else
                judge_followed(p, ret);
        /* I16: without ZooKeeper nothing we remember may be called done; it stays listed with this reason. */
        if (!p->zk_available && (ret->leads || ret->in_isr)) {
                ret->reason = DRAIN_REASON_ZK_UNAVAILABLE;
                ret->stuck = true;
        }
}

const char *drain_not_removed_because(const struct drain_partition *p)
{
        if (!in_isr(p, p->broker_id))
                return NULL; /* nothing to remove, and nothing is written (R24) */
        if (p->state.leader == p->broker_id)
                return "the broker still leads the partition";
        if (p->state.n_isr == 1)
                return "it is the last member of the ISR";
        if (!leader_serves(p))
                return "the partition has no leader that could go on without it";
        return NULL;
}

enum drain_state drain_state_of(const struct drain_totals *t)
{
        if (t->moving > 0)
                return DRAIN_DRAINING;
        if (t->leaders > 0 || t->in_isr > 0)
                return DRAIN_INCOMPLETE;
        /* The new leaders must have been told before the old one may go: the controller itself may be what
         * stops next, and then only its successor would tell them. */
        return t->told ? DRAIN_DRAINED : DRAIN_DRAINING;
}
