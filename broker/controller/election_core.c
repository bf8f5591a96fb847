/* Elections; see the header. Pure. */
#include "controller/election_core.h"

static const char *const kind_names[N_ELECTION_KINDS] = {
        [ELECTION_NONE] = "none",         [ELECTION_NEW] = "new",
        [ELECTION_OFFLINE] = "offline",   [ELECTION_LEADERLESS] = "leaderless",
        [ELECTION_DRAIN] = "drain",       [ELECTION_SHRINK] = "shrink",
        [ELECTION_REASSIGN] = "reassign", [ELECTION_PREFERRED] = "preferred",
        [ELECTION_RENEW] = "renew",       [ELECTION_UNCLEAN] = "unclean",
};

const char *election_kind_name(enum election_kind k)
{
        return kind_names[k];
}

static const struct election_replica *find(const struct election_input *in, int32_t id)
{
        for (int i = 0; i < in->n_replicas; i++)
                if (in->replicas[i].id == id)
                        return &in->replicas[i];
        return NULL;
}

static bool in_isr(const struct election_input *in, int32_t id)
{
        for (int i = 0; i < in->n_isr; i++)
                if (in->isr[i] == id)
                        return true;
        return false;
}

static bool serves(const struct election_replica *r)
{
        return r && r->alive && !r->bounced;
}

static void keep_isr(const struct election_input *in, struct election_result *ret)
{
        ret->n_isr = 0;
        for (int i = 0; i < in->n_isr && i < ZNODE_MAX_REPLICAS; i++)
                ret->isr[ret->n_isr++] = in->isr[i];
}

/* What a reassignment takes out goes only together with its leadership: as long as one of it leads, for want
 * of anybody else, all stay. */
static bool leaves(const struct election_input *in, const struct election_replica *r, int32_t leader)
{
        const struct election_replica *l = find(in, leader);

        return r->leaving && !(l && l->leaving);
}

/* Does @id stay in the ISR under @leader? A draining follower leaves when it has stopped fetching (R11), or
 * at once when a new leader is written anyway (R15). */
static bool stays(const struct election_input *in, int32_t id, int32_t leader, bool new_leader)
{
        const struct election_replica *r = find(in, id);

        if (id == leader)
                return true;
        if (!serves(r) || leaves(in, r, leader))
                return false;
        return !r->draining || !(new_leader || r->stopped);
}

/* The leader itself is always kept: the ISR never gets empty (R22, KAFKA-5083). */
static void shrink_isr(const struct election_input *in, int32_t leader, bool new_leader,
                       struct election_result *ret)
{
        ret->n_isr = 0;
        for (int i = 0; i < in->n_isr && i < ZNODE_MAX_REPLICAS; i++)
                if (stays(in, in->isr[i], leader, new_leader))
                        ret->isr[ret->n_isr++] = in->isr[i];
}

/* A new partition starts with every live replica in sync (all are empty). A draining broker is used only when
 * there is nobody else. */
static void decide_new(const struct election_input *in, struct election_result *ret)
{
        for (int with_draining = 0; with_draining < 2 && ret->n_isr == 0; with_draining++)
                for (int i = 0; i < in->n_replicas && ret->n_isr < ZNODE_MAX_REPLICAS; i++) {
                        const struct election_replica *r = &in->replicas[i];

                        if (r->assigned && r->alive && (with_draining || !r->draining))
                                ret->isr[ret->n_isr++] = r->id;
                }
        if (ret->n_isr == 0)
                return; /* stays new until a replica's broker comes */
        ret->kind = ELECTION_NEW;
        ret->leader = ret->isr[0];
        ret->leader_epoch = 0;
}

/* Assignment order, so that leaders return where they were placed (KAFKA-3670). A bounced replica may have
 * lost its tail; it is taken only when nobody else of the ISR is there. */
static const struct election_replica *offline_candidate(const struct election_input *in)
{
        for (int pass = 0; pass < 4; pass++)
                for (int i = 0; i < in->n_replicas; i++) {
                        const struct election_replica *r = &in->replicas[i];

                        if (r->assigned && r->alive && !r->draining && in_isr(in, r->id) &&
                            (pass & 1 || !r->bounced) && (pass & 2 || !r->leaving))
                                return r;
                }
        return NULL;
}

static const struct election_replica *unclean_candidate(const struct election_input *in)
{
        for (int i = 0; in->unclean && i < in->n_replicas; i++)
                if (in->replicas[i].assigned && in->replicas[i].alive && !in->replicas[i].draining)
                        return &in->replicas[i];
        return NULL;
}

static void decide_offline(const struct election_input *in, struct election_result *ret)
{
        const struct election_replica *r = offline_candidate(in);

        if (r) {
                ret->kind = ELECTION_OFFLINE;
                ret->leader = r->id;
                shrink_isr(in, r->id, true, ret);
                return;
        }
        r = unclean_candidate(in);
        if (r) {
                ret->kind = ELECTION_UNCLEAN;
                ret->leader = r->id;
                ret->isr[0] = r->id;
                ret->n_isr = 1;
                return;
        }
        /* The ISR stays as it is: every member has all that was committed, so whichever returns first may
         * lead; none of them could have committed anything since (KAFKA-708, KAFKA-5083). */
        if (in->leader != -1) {
                ret->kind = ELECTION_LEADERLESS;
                ret->leader = -1;
        }
}

const struct election_replica *election_drain_candidate(const struct election_input *in)
{
        const struct election_replica *best = NULL;

        for (int i = 0; i < in->n_replicas; i++) {
                const struct election_replica *r = &in->replicas[i];

                if (!r->assigned || !serves(r) || r->draining || r->leaving || r->id == in->leader ||
                    !in_isr(in, r->id))
                        continue;
                if (!best || r->leaders < best->leaders)
                        best = r;
        }
        return best;
}

const struct election_replica *election_preferred(const struct election_input *in)
{
        const struct election_replica *r = in->n_replicas > 0 ? &in->replicas[0] : NULL;

        return r && r->assigned && serves(r) && !r->draining && !r->leaving && in_isr(in, r->id) ? r : NULL;
}

/* Who takes over from a leader that serves; NULL: it stays. The order is the order of importance. */
static const struct election_replica *successor(const struct election_input *in,
                                                const struct election_replica *leader,
                                                enum election_kind *ret_kind)
{
        const struct election_replica *r;

        if (leader->draining || leader->leaving) {
                *ret_kind = leader->draining ? ELECTION_DRAIN : ELECTION_REASSIGN;
                r = election_drain_candidate(in);
                if (r)
                        return r;
        }
        *ret_kind = ELECTION_PREFERRED;
        r = in->prefer ? election_preferred(in) : NULL;
        return r != leader ? r : NULL;
}

static void decide_alive(const struct election_input *in, const struct election_replica *leader,
                         struct election_result *ret)
{
        enum election_kind kind;
        const struct election_replica *target = successor(in, leader, &kind);

        if (target) {
                ret->kind = kind;
                ret->leader = target->id;
                shrink_isr(in, target->id, true, ret);
                return;
        }
        shrink_isr(in, in->leader, false, ret);
        if (ret->n_isr != in->n_isr)
                ret->kind = ELECTION_SHRINK;
        else if (in->renew)
                ret->kind = ELECTION_RENEW;
}

void election_decide(const struct election_input *in, struct election_result *ret)
{
        const struct election_replica *leader = find(in, in->leader);

        *ret = (struct election_result){
                .kind = ELECTION_NONE, .leader = in->leader, .leader_epoch = in->leader_epoch};
        if (!in->has_state) {
                decide_new(in, ret);
                return;
        }
        keep_isr(in, ret);
        if (in->leader >= 0 && serves(leader))
                decide_alive(in, leader, ret);
        else
                decide_offline(in, ret);
        if (ret->kind != ELECTION_NONE)
                ret->leader_epoch = in->leader_epoch + 1;
}
