/* Leader state of one partition (kafka-semantics §4.3). See leader_core.h for the state machine. */
#include "replica/leader_core.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "wire/error.h"

/* How long a replica that the controller refused (not alive, or draining: KAFKA-14140) is not proposed again.
 * Without the pause every fetch of it would send a proposal. */
#define REFUSED_PAUSE_MS 1000
/* Who has not fetched for so long is not about to join anything. */
#define JOIN_WINDOW_MS 1000

static const struct {
        const char *name;
        bool next[N_ISR_STATES];
} isr_states[N_ISR_STATES] = {
        [ISR_STEADY] = {"steady", {[ISR_STEADY] = true, [ISR_PROPOSED] = true}},
        [ISR_PROPOSED] = {"proposed", {[ISR_STEADY] = true, [ISR_AWAITS_CONTROLLER] = true}},
        /* only a new epoch (leader_begin) leads out, so that a frozen ISR needs a frozen controller
           (KAFKA-12751) */
        [ISR_AWAITS_CONTROLLER] = {"awaits-controller", {[ISR_STEADY] = true}},
};

const char *isr_state_name(enum isr_state s)
{
        return isr_states[s].name;
}

static void leader_check(const struct leader *l)
{
        assert(leader_isr_size(l) > 0); /* I4: never an empty ISR (R22) */
        assert(l->hw <= l->leo || l->leo == LEO_UNKNOWN);
        (void)l;
}

static void set_isr_state(struct leader *l, enum isr_state s)
{
        assert(isr_states[l->isr_state].next[s]);
        l->isr_state = s;
        if (s == ISR_STEADY) {
                for (int32_t i = 0; i < l->n_replicas; i++)
                        l->replicas[i].in_proposal = false;
        }
        leader_check(l);
}

static struct leader_replica *find(const struct leader *l, int32_t id)
{
        for (int32_t i = 0; i < l->n_replicas; i++) {
                if (l->replicas[i].id == id)
                        return &l->replicas[i];
        }
        return NULL;
}

const struct leader_replica *leader_find_replica(const struct leader *l, int32_t id)
{
        return find(l, id);
}

/* --- counting --- */

int32_t leader_assigned_size(const struct leader *l)
{
        int32_t n = 0;

        for (int32_t i = 0; i < l->n_replicas; i++)
                n += l->replicas[i].assigned;
        return n;
}

int32_t leader_isr_size(const struct leader *l)
{
        int32_t n = 0;

        for (int32_t i = 0; i < l->n_replicas; i++)
                n += l->replicas[i].in_isr;
        return n;
}

/* A proposed shrink still counts whom it would remove: until the controller has committed it, a new leader
 * may be elected from the old ISR. */
static bool in_maximal_isr(const struct leader_replica *r)
{
        return r->in_isr || r->in_proposal;
}

int32_t leader_maximal_isr_size(const struct leader *l)
{
        int32_t n = 0;

        for (int32_t i = 0; i < l->n_replicas; i++)
                n += in_maximal_isr(&l->replicas[i]);
        return n;
}

int32_t leader_effective_min_isr(const struct leader *l)
{
        int32_t assigned = leader_assigned_size(l);

        return l->min_isr < assigned ? l->min_isr : assigned;
}

/* --- high watermark --- */

/* May join the ISR soon: an HW that passed it would shut it out until it has caught up again. A courtesy and
 * no matter of safety, so it ends at the first doubt: a drained broker that was refused and then stopped
 * would otherwise hold up every producer for the whole lag time. */
static bool about_to_join(const struct leader *l, const struct leader_replica *r, int64_t now_ms)
{
        if (!r->assigned || r->refused || now_ms - r->last_fetch_ms > JOIN_WINDOW_MS)
                return false;
        return r->leo == l->leo || now_ms - r->last_caught_up_ms <= l->lag_max_ms;
}

static void maybe_advance_hw(struct leader *l, int64_t now_ms, struct leader_effects *ret)
{
        int64_t hw = l->leo;

        /* F2: a broker whose lease lapsed acknowledges nothing. KAFKA-15583: what consumers saw below
         * min.insync could still be lost with the last replica. */
        if (!l->may_commit || leader_isr_size(l) < leader_effective_min_isr(l))
                return;
        for (int32_t i = 0; i < l->n_replicas; i++) {
                const struct leader_replica *r = &l->replicas[i];

                if (r->id != l->self && r->leo < hw && (in_maximal_isr(r) || about_to_join(l, r, now_ms)))
                        hw = r->leo;
        }
        if (hw <= l->hw)
                return;
        l->hw = hw;
        ret->hw_moved = true;
        leader_check(l);
}

/* --- life --- */

static struct leader_replica *add_replica(struct leader_replica *replicas, int32_t *n, int32_t id)
{
        for (int32_t i = 0; i < *n; i++) {
                if (replicas[i].id == id)
                        return &replicas[i];
        }
        replicas[*n] = (struct leader_replica){.id = id,
                                               .leo = LEO_UNKNOWN,
                                               .last_fetch_leader_leo = LEO_UNKNOWN,
                                               .last_fetch_ms = INT64_MIN / 2,
                                               .broker_epoch = -1};
        return &replicas[(*n)++];
}

static void start_replica(struct leader_replica *r, const struct leader_start *s, const struct leader *old)
{
        /* Epochs that we did not see may have been led by another, and the follower cut to its log meanwhile:
         * what it has is not known until it has fetched again. */
        bool unbroken = s->was_leader && s->epoch <= old->epoch + 1;
        const struct leader_replica *before = unbroken ? find(old, r->id) : NULL;

        if (before) {
                r->leo = before->leo;
                r->broker_epoch = before->broker_epoch;
                r->last_fetch_leader_leo = s->leo;
                r->last_fetch_ms = r->in_isr ? s->now_ms : INT64_MIN / 2;
        }
        /* A member gets one full lag period to show itself; others must first catch up (KAFKA-7128). */
        r->last_caught_up_ms = r->in_isr ? s->now_ms : INT64_MIN / 2;
        if (r->id == s->self)
                r->leo = s->leo;
}

int leader_begin(struct leader *l, const struct leader_start *s, struct leader_effects *ret)
{
        bool same_epoch = s->was_leader && s->epoch == l->epoch; /* only the ISR changed (KAFKA-15021) */
        size_t room = (size_t)s->n_replicas + (size_t)s->n_isr + 1;
        struct leader_replica *replicas = calloc(room, sizeof(*replicas));
        int32_t n = 0;

        *ret = (struct leader_effects){0};
        if (!replicas)
                return -ENOMEM;
        for (int32_t i = 0; i < s->n_replicas; i++)
                add_replica(replicas, &n, s->replicas[i])->assigned = true;
        for (int32_t i = 0; i < s->n_isr; i++)
                add_replica(replicas, &n, s->isr[i])->in_isr = true;
        add_replica(replicas, &n, s->self)->in_isr = true; /* I4: the leader is in its ISR */
        for (int32_t i = 0; i < n; i++)
                start_replica(&replicas[i], s, l);
        free(l->replicas);
        *l = (struct leader){
                .self = s->self,
                .epoch = s->epoch,
                .partition_epoch = s->partition_epoch,
                .min_isr = s->min_isr,
                .lag_max_ms = s->lag_max_ms,
                .epoch_start_offset = same_epoch ? l->epoch_start_offset : s->leo,
                .leo = s->leo,
                .hw = s->hw,
                .may_commit = s->may_commit,
                .proposal = l->proposal + 1, /* answers to the old epoch's proposals match nothing */
                .replicas = replicas,
                .n_replicas = n,
        };
        maybe_advance_hw(l, s->now_ms, ret); /* KAFKA-420: with ISR = {self} nothing else would move it */
        return 0;
}

void leader_done(struct leader *l)
{
        free(l->replicas);
        *l = (struct leader){.proposal = l->proposal};
}

/* --- proposals --- */

static void propose(struct leader *l, struct leader_effects *ret)
{
        l->proposal++;
        set_isr_state(l, ISR_PROPOSED);
        ret->propose = true;
}

/* KAFKA-7128: at or above the HW is not enough. Records that the previous leader committed end at our epoch's
 * start; a member below it could be elected without them. */
static void maybe_expand(struct leader *l, struct leader_replica *r, int64_t now_ms,
                         struct leader_effects *ret)
{
        if (l->isr_state != ISR_STEADY || r->in_isr || !r->assigned || now_ms < r->propose_at_ms)
                return;
        if (r->leo < l->hw || r->leo < l->epoch_start_offset)
                return;
        for (int32_t i = 0; i < l->n_replicas; i++)
                l->replicas[i].in_proposal = l->replicas[i].in_isr || &l->replicas[i] == r;
        propose(l, ret);
}

/* KAFKA-7152: who has everything is never stuck, however long ago that was measured. */
static bool is_stuck(const struct leader *l, const struct leader_replica *r, int64_t now_ms)
{
        return r->in_isr && r->id != l->self && r->leo != l->leo &&
               now_ms - r->last_caught_up_ms > l->lag_max_ms;
}

void leader_on_tick(struct leader *l, int64_t now_ms, struct leader_effects *ret)
{
        bool any = false;

        *ret = (struct leader_effects){0};
        if (l->isr_state != ISR_STEADY)
                return;
        for (int32_t i = 0; i < l->n_replicas; i++)
                any |= is_stuck(l, &l->replicas[i], now_ms);
        if (!any)
                return;
        for (int32_t i = 0; i < l->n_replicas; i++)
                l->replicas[i].in_proposal = l->replicas[i].in_isr && !is_stuck(l, &l->replicas[i], now_ms);
        propose(l, ret);
}

/* --- events --- */

void leader_on_append(struct leader *l, int64_t leo, int64_t now_ms, struct leader_effects *ret)
{
        struct leader_replica *self = find(l, l->self);

        *ret = (struct leader_effects){0};
        l->leo = leo;
        self->leo = leo;
        maybe_advance_hw(l, now_ms, ret);
}

/* "Caught up" is measured against where our log ended when the follower last asked: a busy log is always a
 * little ahead (KAFKA-4485). */
static void update_progress(const struct leader *l, struct leader_replica *r, const struct leader_fetch *f)
{
        if (f->offset >= l->leo)
                r->last_caught_up_ms = MAX(r->last_caught_up_ms, f->now_ms);
        else if (r->last_fetch_leader_leo != LEO_UNKNOWN && f->offset >= r->last_fetch_leader_leo)
                r->last_caught_up_ms = MAX(r->last_caught_up_ms, r->last_fetch_ms);
        r->leo = f->offset;
        r->last_fetch_leader_leo = l->leo;
        r->last_fetch_ms = f->now_ms;
        r->broker_epoch = f->broker_epoch; /* with the offset, from the same request (KAFKA-15221) */
}

int leader_on_fetch(struct leader *l, const struct leader_fetch *f, struct leader_effects *ret)
{
        struct leader_replica *r = find(l, f->follower_id);

        *ret = (struct leader_effects){0};
        if (!r || r->id == l->self || !(r->assigned || r->in_isr))
                return -ENOENT;
        update_progress(l, r, f);
        maybe_expand(l, r, f->now_ms, ret);
        maybe_advance_hw(l, f->now_ms, ret);
        return 0;
}

void leader_set_min_isr(struct leader *l, int32_t min_isr, int64_t now_ms, struct leader_effects *ret)
{
        *ret = (struct leader_effects){0};
        l->min_isr = min_isr;
        maybe_advance_hw(l, now_ms, ret);
}

/* --- the controller's answer --- */

enum isr_verdict { VERDICT_COMMITTED, VERDICT_REFUSED, VERDICT_SUPERSEDED, VERDICT_RETRY };

static enum isr_verdict verdict_of(int16_t error)
{
        static const struct {
                int16_t error;
                enum isr_verdict verdict;
        } verdicts[] = {
                {KAFKA_NONE, VERDICT_COMMITTED},
                {KAFKA_OPERATION_NOT_ATTEMPTED, VERDICT_REFUSED},
                {KAFKA_INELIGIBLE_REPLICA, VERDICT_REFUSED},
                /* the controller has a newer state, which is on its way to us as LeaderAndIsr */
                {KAFKA_FENCED_LEADER_EPOCH, VERDICT_SUPERSEDED},
                {KAFKA_INVALID_UPDATE_VERSION, VERDICT_SUPERSEDED},
                {KAFKA_UNKNOWN_TOPIC_OR_PARTITION, VERDICT_SUPERSEDED},
                {KAFKA_UNKNOWN_TOPIC_ID, VERDICT_SUPERSEDED},
                {KAFKA_INVALID_REQUEST, VERDICT_SUPERSEDED},
        };

        for (size_t i = 0; i < ARRAY_SIZE(verdicts); i++) {
                if (verdicts[i].error == error)
                        return verdicts[i].verdict;
        }
        return VERDICT_RETRY; /* NOT_CONTROLLER, time-outs, anything unknown (KAFKA-14010) */
}

static void refuse_added(struct leader *l, int64_t now_ms)
{
        for (int32_t i = 0; i < l->n_replicas; i++) {
                struct leader_replica *r = &l->replicas[i];

                if (!r->in_proposal || r->in_isr)
                        continue;
                r->refused = true;
                r->propose_at_ms = now_ms + REFUSED_PAUSE_MS;
        }
}

static void commit_isr(struct leader *l, const struct leader_isr_result *a)
{
        for (int32_t i = 0; i < l->n_replicas; i++)
                l->replicas[i].in_isr = l->replicas[i].id == l->self;
        for (int32_t i = 0; i < a->n_isr; i++) {
                struct leader_replica *r = find(l, a->isr[i]);

                if (!r)
                        continue;
                r->in_isr = true;
                r->refused = false;
        }
        l->partition_epoch = a->partition_epoch;
}

/* A committed ISR is adopted as it was answered, also when it isn't ours: the controller's state is the
 * truth, and an equal partition epoch means that it was so already (KAFKA-14144). */
void leader_on_isr_result(struct leader *l, const struct leader_isr_result *a, struct leader_effects *ret)
{
        enum isr_verdict v = verdict_of(a->error);

        *ret = (struct leader_effects){0};
        if (l->isr_state != ISR_PROPOSED || a->proposal != l->proposal)
                return;
        if (v == VERDICT_COMMITTED &&
            (a->leader_epoch != l->epoch || a->partition_epoch < l->partition_epoch))
                v = VERDICT_SUPERSEDED;
        switch (v) {
        case VERDICT_COMMITTED:
                commit_isr(l, a);
                set_isr_state(l, ISR_STEADY);
                maybe_advance_hw(l, a->now_ms, ret); /* KAFKA-13091 */
                break;
        case VERDICT_REFUSED:
                refuse_added(l, a->now_ms);
                set_isr_state(l, ISR_STEADY);
                maybe_advance_hw(l, a->now_ms, ret);
                break;
        case VERDICT_SUPERSEDED:
                set_isr_state(l, ISR_AWAITS_CONTROLLER);
                break;
        case VERDICT_RETRY:
                ret->retry = true;
                break;
        }
}
