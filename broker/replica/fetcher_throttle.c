/* The follower's side of the replication throttle (KIP-73).
 *
 * A replica is in sync when it has everything up to the leader's high watermark: those who are in the ISR
 * are, or the watermark would not be there. What the watermark is, the first answer tells; so the first
 * question always goes out, and asks for little. */
#include "replica/fetcher_internal.h"

#define FIRST_ASK_BYTES 4096

static struct throttle *throttle_of(const struct fetch_entry *e)
{
        return &e->f->owner->m->throttles[THROTTLE_FOLLOWER];
}

static bool counts(const struct fetch_entry *e)
{
        return atomic_load_explicit(&e->p->follower_throttled, memory_order_relaxed);
}

/* How much may @e ask for: 0: not now. */
static int64_t grant(struct fetch_entry *e)
{
        int64_t most = e->f->owner->m->options.replica_fetch_max_bytes;

        if (e->leader_hw < 0)
                return MIN(most, (int64_t)FIRST_ASK_BYTES);
        e->taken_bytes = throttle_take(throttle_of(e), most);
        return e->starved && e->taken_bytes > 0 ? most : e->taken_bytes;
}

static void hold_back(struct fetch_entry *e)
{
        int64_t most = e->f->owner->m->options.replica_fetch_max_bytes;

        e->ask_bytes = e->taken_bytes = e->given_bytes = 0;
        if (!counts(e) || !fetch_entry_position(e)) /* who has moved on leaves with the request */
                return;
        if (e->leader_hw >= 0 && e->position.offset >= e->leader_hw)
                return;
        e->ask_bytes = grant(e);
        if (e->ask_bytes == 0)
                fetch_entry_delay(e, MAX(throttle_wait_ms(throttle_of(e), most), (int64_t)1));
}

void fetcher_hold_back(struct fetcher *f, enum fetch_lane_id lane)
{
        if (!throttle_is_on(&f->owner->m->throttles[THROTTLE_FOLLOWER]))
                return; /* nobody has anything to ask for but the most */
        list_for_each_safe (it, next, &f->ready[lane])
                hold_back(list_entry(it, struct fetch_entry, node));
}

void fetch_entry_settle(struct fetch_entry *e)
{
        if (e->ask_bytes > 0)
                throttle_settle(throttle_of(e), e->taken_bytes, e->given_bytes);
        e->ask_bytes = e->taken_bytes = e->given_bytes = 0;
}
