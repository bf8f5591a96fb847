/* The drain slot; see the header. Pure. */
#include "controller/slot_core.h"

#include <stdio.h>
#include <string.h>

struct slot_holder *slot_holder_of(struct znode_slot *s, int32_t broker)
{
        for (size_t i = 0; i < s->n_holders; i++)
                if (s->holders[i].broker == broker)
                        return &s->holders[i];
        return NULL;
}

const struct slot_waiter *slot_waiter_of(const struct znode_slot *s, int32_t broker)
{
        for (size_t i = 0; i < s->n_waiting; i++)
                if (s->waiting[i].broker == broker)
                        return &s->waiting[i];
        return NULL;
}

bool slot_id_is_over(const struct znode_slot *s, int32_t broker, int64_t named_epoch, const char *drain_id)
{
        for (size_t i = 0; i < s->n_ended; i++)
                if (s->ended[i].broker == broker && s->ended[i].epoch >= named_epoch &&
                    strcmp(s->ended[i].drain_id, drain_id) == 0)
                        return true;
        return false;
}

static const struct slot_peer *peer_of(const struct slot_peer *peers, size_t n, int32_t id)
{
        for (size_t i = 0; i < n; i++)
                if (peers[i].id == id)
                        return &peers[i];
        return NULL;
}

static void copy_text(char out[ZNODE_SLOT_TEXT_SIZE], const char *text)
{
        (void)snprintf(out, ZNODE_SLOT_TEXT_SIZE, "%s", text ? text : "");
}

/* The oldest is forgotten when there is no room. */
static void note_end(struct znode_slot *s, const struct slot_holder *h, enum slot_end how, const char *note,
                     const struct slot_now *now)
{
        struct slot_ended *e;

        if (slot_id_is_over(s, h->broker, h->epoch, h->drain_id))
                return;
        if (s->n_ended == ZNODE_SLOT_MAX_ENDED)
                memmove(&s->ended[0], &s->ended[1], --s->n_ended * sizeof(s->ended[0]));
        e = &s->ended[s->n_ended++];
        *e = (struct slot_ended){.broker = h->broker, .epoch = h->epoch, .at_ms = now->wall_ms, .how = how};
        copy_text(e->drain_id, h->drain_id);
        copy_text(e->note, note);
}

static void remove_holder(struct znode_slot *s, size_t i)
{
        s->n_holders--;
        memmove(&s->holders[i], &s->holders[i + 1], (s->n_holders - i) * sizeof(s->holders[0]));
        if (s->n_holders == 0)
                s->cluster_stop = false;
}

static void remove_waiter(struct znode_slot *s, int32_t broker)
{
        for (size_t i = 0; i < s->n_waiting; i++) {
                if (s->waiting[i].broker != broker)
                        continue;
                s->n_waiting--;
                memmove(&s->waiting[i], &s->waiting[i + 1], (s->n_waiting - i) * sizeof(s->waiting[0]));
                return;
        }
}

static void lease_anew(struct slot_holder *h, const struct slot_now *now)
{
        h->until_ms = now->mono_ms + now->lease_ms;
        h->expires_ms = now->wall_ms + now->lease_ms;
}

/* --- asking --- */

static void note_waiter(struct znode_slot *s, const struct slot_ask *a, const struct slot_now *now)
{
        struct slot_waiter *w = (struct slot_waiter *)slot_waiter_of(s, a->broker);

        if (w && (w->epoch != a->epoch || now->mono_ms - w->last_ms > SLOT_PATIENCE_MS)) {
                remove_waiter(s, a->broker);
                w = NULL;
        }
        if (!w) {
                if (s->n_waiting == ZNODE_SLOT_MAX_WAITING)
                        return; /* it waits all the same, only unnamed */
                w = &s->waiting[s->n_waiting++];
                *w = (struct slot_waiter){.broker = a->broker,
                                          .epoch = a->epoch,
                                          .since_ms = now->wall_ms,
                                          .asked_ms = now->mono_ms};
        }
        w->last_ms = now->mono_ms;
}

/* When @broker asked to stop, in the life it is in now; false: it did not, or no longer does. */
static bool asks_to_stop(struct znode_slot *s, int32_t broker, int64_t epoch, const struct slot_now *now,
                         int64_t *ret_ms)
{
        const struct slot_holder *h = slot_holder_of(s, broker);
        const struct slot_waiter *w = slot_waiter_of(s, broker);

        if (h && h->state == SLOT_DRAINING && h->epoch == epoch) {
                *ret_ms = h->asked_ms;
                return true;
        }
        if (!w || w->epoch != epoch || now->mono_ms - w->last_ms > SLOT_PATIENCE_MS)
                return false;
        *ret_ms = w->asked_ms;
        return true;
}

/* D8: every broker that lives asks to stop, and so did the one that holds the slot and is down; all of them
 * within a short time. Two of three in the same second are not enough: the third stays, or is expected back.
 */
static bool everybody_stops(struct znode_slot *s, const struct slot_peer *peers, size_t n,
                            const struct slot_now *now)
{
        int64_t first = INT64_MAX, last = INT64_MIN, at;
        size_t brokers = n;

        for (size_t i = 0; i < n; i++) {
                if (!asks_to_stop(s, peers[i].id, peers[i].epoch, now, &at))
                        return false;
                first = MIN(first, at);
                last = MAX(last, at);
        }
        for (size_t i = 0; i < s->n_holders; i++) {
                const struct slot_holder *h = &s->holders[i];

                if (h->state == SLOT_RETURNING)
                        return false;
                if (h->state != SLOT_DOWN)
                        continue;
                first = MIN(first, h->asked_ms);
                last = MAX(last, h->asked_ms);
                brokers++;
        }
        return brokers >= 2 && last - first <= SLOT_STOP_WINDOW_MS;
}

static enum slot_verdict grant(struct znode_slot *s, const struct slot_ask *a, const struct slot_now *now)
{
        const struct slot_waiter *w = slot_waiter_of(s, a->broker);
        struct slot_holder *h = slot_holder_of(s, a->broker);
        int64_t asked_ms = w ? w->asked_ms : now->mono_ms;

        if (!h) {
                if (s->n_holders == ZNODE_SLOT_MAX_HOLDERS)
                        return SLOT_FULL;
                h = &s->holders[s->n_holders++];
        }
        *h = (struct slot_holder){.broker = a->broker,
                                  .epoch = a->epoch,
                                  .state = SLOT_DRAINING,
                                  .since_ms = now->wall_ms,
                                  .deadline_ms = a->deadline_ms,
                                  .leaders = a->leaders,
                                  .asked_ms = asked_ms,
                                  .missing = -1};
        copy_text(h->drain_id, a->drain_id);
        copy_text(h->reason, a->reason);
        copy_text(h->requested_by, a->requested_by);
        lease_anew(h, now);
        remove_waiter(s, a->broker);
        return SLOT_GRANTED;
}

/* Recorded with who did it and why. */
static void evict_all(struct znode_slot *s, const struct slot_ask *a, const struct slot_now *now)
{
        char note[ZNODE_SLOT_TEXT_SIZE];

        (void)snprintf(note, sizeof(note), "taken over for broker %d by %.80s: %.120s", (int)a->broker,
                       a->requested_by ? a->requested_by : "", a->reason ? a->reason : "");
        while (s->n_holders > 0) {
                note_end(s, &s->holders[0], SLOT_END_REPLACED, note, now);
                remove_holder(s, 0);
        }
}

/* The holder itself asks again. */
static enum slot_verdict take_again(struct znode_slot *s, struct slot_holder *own, const struct slot_ask *a,
                                    const struct slot_now *now, const struct slot_holder **ret_holder)
{
        bool same_life = own->epoch == a->epoch && own->state == SLOT_DRAINING;

        if (same_life && (s->cluster_stop || strcmp(own->drain_id, a->drain_id) == 0)) {
                s->cluster_stop = s->cluster_stop || a->cluster_stop;
                lease_anew(own, now);
                return SLOT_GRANTED;
        }
        if (same_life && !a->replace) {
                *ret_holder = own;
                return SLOT_HELD;
        }
        if (!same_life && a->unsafe)
                return SLOT_UNSAFE; /* back, or undone, and not yet fit to go again */
        note_end(s, own, same_life ? SLOT_END_REPLACED : SLOT_END_RETURNED, a->reason, now);
        return grant(s, a, now);
}

enum slot_verdict slot_take(struct znode_slot *s, const struct slot_ask *a, const struct slot_peer *peers,
                            size_t n_peers, const struct slot_now *now, const struct slot_holder **ret_holder)
{
        struct slot_holder *own = slot_holder_of(s, a->broker);

        *ret_holder = NULL;
        if (slot_id_is_over(s, a->broker, a->named_epoch, a->drain_id))
                return SLOT_OVER;
        if (own)
                return take_again(s, own, a, now, ret_holder);
        note_waiter(s, a, now);
        if (a->cluster_stop || (!a->some_missing && everybody_stops(s, peers, n_peers, now)))
                s->cluster_stop = true;
        if (s->cluster_stop)
                return grant(s, a, now);
        if (a->unsafe && (s->n_holders == 0 || a->replace))
                return SLOT_UNSAFE;
        if (s->n_holders == 0)
                return grant(s, a, now);
        if (a->replace) {
                evict_all(s, a, now);
                return grant(s, a, now);
        }
        *ret_holder = &s->holders[0];
        return SLOT_HELD;
}

/* --- what happens by itself --- */

static bool set_holder_state(struct slot_holder *h, enum slot_state to, const struct slot_now *now)
{
        h->state = to;
        h->missing = -1;
        lease_anew(h, now);
        return true;
}

/* True: something is to be written. *ret_over: it does not hold the slot any more. */
static bool settle_holder(struct znode_slot *s, struct slot_holder *h, const struct slot_peer *p,
                          const struct slot_now *now, bool *ret_over)
{
        if (p && p->epoch > h->epoch) { /* D2: a newer life ends the drain */
                note_end(s, h, SLOT_END_RETURNED, "its broker has started again", now);
                h->epoch = p->epoch;
                *ret_over = s->cluster_stop; /* the cluster is being started again: nothing to wait for */
                return set_holder_state(h, SLOT_RETURNING, now);
        }
        if (!p)
                return h->state != SLOT_DOWN && set_holder_state(h, SLOT_DOWN, now);
        if (h->state == SLOT_DOWN) /* its registration was gone for a moment only */
                return set_holder_state(h, SLOT_RETURNING, now);
        if (h->state == SLOT_RETURNING && p->missing == 0) {
                *ret_over = true;
                return true;
        }
        if (h->state == SLOT_RETURNING && p->missing >= 0 && (h->missing < 0 || p->missing < h->missing)) {
                h->missing = p->missing; /* it gets on: it keeps the slot */
                h->until_ms = now->mono_ms + now->lease_ms;
        }
        return false;
}

/* What people read in ZooKeeper lags a renewal by a quarter of the lease at most. */
static bool refresh_expiry(struct slot_holder *h, const struct slot_now *now)
{
        int64_t expires_ms = now->wall_ms + (h->until_ms - now->mono_ms);

        if (expires_ms - h->expires_ms < now->lease_ms / 4)
                return false;
        h->expires_ms = expires_ms;
        return true;
}

static bool settle_waiting(struct znode_slot *s, const struct slot_peer *peers, size_t n,
                           const struct slot_now *now)
{
        bool changed = false;

        for (size_t i = 0; i < s->n_waiting;) {
                const struct slot_waiter *w = &s->waiting[i];
                const struct slot_peer *p = peer_of(peers, n, w->broker);

                if (p && p->epoch == w->epoch && now->mono_ms - w->last_ms <= SLOT_PATIENCE_MS) {
                        i++;
                        continue;
                }
                remove_waiter(s, w->broker);
                changed = true;
        }
        return changed;
}

bool slot_settle(struct znode_slot *s, const struct slot_peer *peers, size_t n_peers,
                 const struct slot_now *now)
{
        bool changed = settle_waiting(s, peers, n_peers, now), started = false;

        for (size_t i = 0; i < s->n_holders;) {
                struct slot_holder *h = &s->holders[i];
                bool over = false;

                changed |= settle_holder(s, h, peer_of(peers, n_peers, h->broker), now, &over);
                started |= over && s->cluster_stop;
                if (!over && now->mono_ms >= h->until_ms) {
                        note_end(s, h, SLOT_END_EXPIRED, "its lease ran out", now);
                        over = changed = true;
                }
                if (over) {
                        remove_holder(s, i);
                        continue;
                }
                changed |= refresh_expiry(h, now);
                i++;
        }
        if (started)
                s->cluster_stop = false;
        return changed;
}

bool slot_needs_missing(const struct znode_slot *s)
{
        for (size_t i = 0; i < s->n_holders; i++)
                if (s->holders[i].state != SLOT_DRAINING)
                        return true;
        return false;
}

bool slot_undo(struct znode_slot *s, int32_t broker, const char *note, const struct slot_now *now)
{
        struct slot_holder *h = slot_holder_of(s, broker);

        remove_waiter(s, broker);
        if (!h || h->state != SLOT_DRAINING)
                return false;
        note_end(s, h, SLOT_END_UNDONE, note, now);
        return set_holder_state(h, SLOT_RETURNING, now);
}

/* --- another controller's slot --- */

void slot_adopt(struct znode_slot *s, int64_t age_ms, const struct slot_now *now)
{
        for (size_t i = 0; i < s->n_holders; i++) {
                struct slot_holder *h = &s->holders[i];

                h->missing = -1;
                h->asked_ms = now->mono_ms - h->asked_ago_ms - age_ms;
                lease_anew(h, now);
        }
        for (size_t i = 0; i < s->n_waiting; i++) {
                s->waiting[i].asked_ms = now->mono_ms - s->waiting[i].asked_ago_ms - age_ms;
                s->waiting[i].last_ms = now->mono_ms;
        }
}

void slot_set_ages(struct znode_slot *s, const struct slot_now *now)
{
        for (size_t i = 0; i < s->n_holders; i++)
                s->holders[i].asked_ago_ms = MAX(now->mono_ms - s->holders[i].asked_ms, INT64_C(0));
        for (size_t i = 0; i < s->n_waiting; i++)
                s->waiting[i].asked_ago_ms = MAX(now->mono_ms - s->waiting[i].asked_ms, INT64_C(0));
}

void slot_renew(struct znode_slot *s, int32_t broker, const struct slot_now *now)
{
        struct slot_holder *h = slot_holder_of(s, broker);

        if (h && h->state == SLOT_DRAINING)
                h->until_ms = now->mono_ms + now->lease_ms;
}

void slot_touch_waiter(struct znode_slot *s, int32_t broker, const struct slot_now *now)
{
        struct slot_waiter *w = (struct slot_waiter *)slot_waiter_of(s, broker);

        if (w)
                w->last_ms = now->mono_ms;
}
