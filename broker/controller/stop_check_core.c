/* Verdicts on a stop; see the header. Pure. */
#include "controller/stop_check_core.h"

static const struct {
        const char *name, *help;
} risks[N_STOP_RISKS] = {
        [STOP_SAFE] = {"safe", "nothing changes for clients"},
        [STOP_ONE_COPY] = {"one_copy_left", "one in-sync copy would be left"},
        [STOP_BELOW_MIN_ISR] = {"below_min_isr",
                                "acks=all would be rejected: fewer in sync than min.insync.replicas"},
        [STOP_SINGLE_REPLICA] = {"single_replica", "it has one replica and is away until the broker is back"},
        [STOP_UNAVAILABLE] = {"unavailable", "no other in-sync replica could lead it"},
};

static const struct {
        const char *name, *help;
} waits[N_STOP_WAITS] = {
        [STOP_WAIT_NOTHING] = {"nothing", "there is nothing to wait for"},
        [STOP_WAIT_CATCH_UP] = {"catch_up", "goes away when live replicas are in sync"},
        [STOP_WAIT_DRAINED] = {"drained_return", "goes away when draining brokers are back in sync"},
        [STOP_WAIT_OFFLINE] = {"offline_return", "needs replicas that are offline now"},
        [STOP_WAIT_NEVER] = {"never", "there are too few replicas for it ever to go away"},
};

const char *stop_risk_name(enum stop_risk r)
{
        return risks[r].name;
}

const char *stop_risk_help(enum stop_risk r)
{
        return risks[r].help;
}

const char *stop_wait_name(enum stop_wait w)
{
        return waits[w].name;
}

const char *stop_wait_help(enum stop_wait w)
{
        return waits[w].help;
}

static bool in_isr(const struct election_input *s, int32_t id)
{
        for (int i = 0; i < s->n_isr; i++)
                if (s->isr[i] == id)
                        return true;
        return false;
}

/* The other replicas, by what can be expected of them. */
struct others {
        int32_t in_sync, catching_up, draining, offline;
        bool unclean; /* one that lives is outside the ISR */
};

static void count_others(const struct stop_check_partition *p, struct others *ret)
{
        *ret = (struct others){0};
        for (int i = 0; i < p->state.n_replicas; i++) {
                const struct election_replica *r = &p->state.replicas[i];

                /* Who is not assigned is never elected, and who leaves the assignment is no help either. */
                if (r->id == p->broker_id || !r->assigned || r->leaving)
                        continue;
                if (!r->alive)
                        ret->offline++;
                else if (r->draining)
                        ret->draining++;
                else if (in_isr(&p->state, r->id) && !r->bounced)
                        ret->in_sync++;
                else
                        ret->catching_up++;
                ret->unclean = ret->unclean || (r->alive && !r->draining && !in_isr(&p->state, r->id));
        }
}

/* @in_sync members are left of the ISR of a partition with @factor replicas. */
static enum stop_risk classify(int32_t in_sync, int32_t factor, int32_t min_isr)
{
        if (in_sync == 0)
                return factor > 1 ? STOP_UNAVAILABLE : STOP_SINGLE_REPLICA;
        if (in_sync < min_isr)
                return STOP_BELOW_MIN_ISR;
        return in_sync == 1 && factor > 1 ? STOP_ONE_COPY : STOP_SAFE;
}

/* How many must be in sync besides the broker for @risk to be gone. */
static int32_t wanted(enum stop_risk risk, int32_t min_isr)
{
        switch (risk) {
        case STOP_BELOW_MIN_ISR:
                return min_isr;
        case STOP_ONE_COPY:
                return 2;
        case STOP_SINGLE_REPLICA:
        case STOP_UNAVAILABLE:
                return 1;
        case STOP_SAFE:
        case N_STOP_RISKS:
        default:
                return 0;
        }
}

static enum stop_wait wait_for(const struct others *o, int32_t want)
{
        int32_t n = o->in_sync;

        if (n >= want)
                return STOP_WAIT_NOTHING;
        n += o->catching_up;
        if (n >= want)
                return STOP_WAIT_CATCH_UP;
        n += o->draining;
        if (n >= want)
                return STOP_WAIT_DRAINED;
        return n + o->offline >= want ? STOP_WAIT_OFFLINE : STOP_WAIT_NEVER;
}

static const struct election_replica *self(const struct stop_check_partition *p)
{
        for (int i = 0; i < p->state.n_replicas; i++)
                if (p->state.replicas[i].id == p->broker_id)
                        return &p->state.replicas[i];
        return NULL;
}

void stop_check_judge(const struct stop_check_partition *p, struct stop_verdict *ret)
{
        const struct election_replica *me = self(p);
        int32_t min_isr = p->min_isr > 1 ? p->min_isr : 1, factor;
        struct others o;
        bool counts;

        *ret = (struct stop_verdict){.risk = STOP_SAFE};
        if (!me || p->deleting || !p->state.has_state)
                return; /* a partition whose first state is not written holds nothing yet */
        count_others(p, &o);
        factor = 1 + o.in_sync + o.catching_up + o.draining + o.offline;
        counts = in_isr(&p->state, p->broker_id) && me->alive && !me->bounced;
        ret->left = o.in_sync;
        ret->leads = p->state.leader == p->broker_id && factor > 1;
        ret->never_safe = factor <= min_isr;
        /* A drain takes it out of the ISR in any case, unless it is the last member. */
        ret->before = classify(o.in_sync + (counts && (!me->draining || o.in_sync == 0)), factor, min_isr);
        /* One that is not in sync takes nothing away, unless it is its own drain that keeps it out: then what
         * the drain has done already is what its stop means. */
        if (!counts && !me->draining) {
                ret->delays = ret->before > STOP_ONE_COPY && me->alive;
                return;
        }
        ret->risk = classify(o.in_sync, factor, min_isr);
        ret->wait = wait_for(&o, wanted(ret->risk, min_isr));
        ret->unclean = ret->risk == STOP_UNAVAILABLE && p->state.unclean && o.unclean;
}

void stop_check_add(struct stop_check *sum, const struct stop_check_item *item)
{
        const struct stop_verdict *v = &item->verdict;

        sum->partitions++;
        sum->leaders += v->leads;
        sum->by_risk[v->risk]++;
        sum->by_wait[v->risk][v->wait]++;
        sum->already[v->risk] += v->risk != STOP_SAFE && v->before >= v->risk;
        sum->gate += (v->risk == STOP_UNAVAILABLE || v->risk == STOP_BELOW_MIN_ISR) && v->before < v->risk &&
                     v->wait != STOP_WAIT_NEVER;
        sum->delays += v->delays;
        sum->unclean += v->unclean;
        sum->never_safe += v->never_safe;
        if (v->risk != STOP_SAFE && sum->listed[v->risk] && sum->n_listed[v->risk] < sum->max)
                sum->listed[v->risk][sum->n_listed[v->risk]++] = *item;
}

enum stop_risk stop_check_worst(const struct stop_check *sum)
{
        int r = N_STOP_RISKS - 1;

        while (r > STOP_SAFE && sum->by_risk[r] == 0)
                r--;
        return (enum stop_risk)r;
}

int32_t stop_check_worth_waiting(const struct stop_check *sum)
{
        static const enum stop_risk gated[] = {STOP_UNAVAILABLE, STOP_BELOW_MIN_ISR};
        int32_t n = 0;

        for (size_t i = 0; i < sizeof(gated) / sizeof(gated[0]); i++)
                for (int w = STOP_WAIT_CATCH_UP; w < STOP_WAIT_NEVER; w++)
                        n += sum->by_wait[gated[i]][w];
        return n;
}
