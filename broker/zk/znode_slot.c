#include "zk/znode_slot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "zk/znode_json.h"

static const char *const state_names[N_SLOT_STATES] = {
        [SLOT_DRAINING] = "draining", [SLOT_DOWN] = "down", [SLOT_RETURNING] = "returning"};
static const char *const end_names[N_SLOT_ENDS] = {[SLOT_END_RETURNED] = "returned",
                                                   [SLOT_END_UNDONE] = "undone",
                                                   [SLOT_END_EXPIRED] = "expired",
                                                   [SLOT_END_REPLACED] = "replaced"};

const char *slot_state_name(enum slot_state s)
{
        return state_names[s];
}

const char *slot_end_name(enum slot_end e)
{
        return end_names[e];
}

static void time_text(int64_t wall_ms, char out[32])
{
        time_t s = (time_t)(wall_ms / 1000);
        struct tm tm;

        if (!gmtime_r(&s, &tm) || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
                (void)snprintf(out, 32, "?");
}

void slot_holder_text(const struct slot_holder *h, char out[SLOT_HOLDER_TEXT_SIZE])
{
        char since[32], until[32];

        time_text(h->since_ms, since);
        time_text(h->expires_ms, until);
        (void)snprintf(out, SLOT_HOLDER_TEXT_SIZE,
                       "broker %d (epoch %lld, %s since %s, at most until %s, drain id %s)", (int)h->broker,
                       (long long)h->epoch, state_names[h->state], since, until, h->drain_id);
}

/* --- writing --- */

static int put_text(struct buf *out, const char *key, const char *value)
{
        int r = buf_printf(out, ",\"%s\":", key);

        return r < 0 ? r : znode_put_string(out, value);
}

static int put_number(struct buf *out, const char *key, int64_t value)
{
        return buf_printf(out, ",\"%s\":%lld", key, (long long)value);
}

static int put_holder(const struct slot_holder *h, struct buf *out)
{
        int r = buf_printf(out, "{\"broker\":%d,\"epoch\":%lld", (int)h->broker, (long long)h->epoch);

        r = r < 0 ? r : put_text(out, "drain_id", h->drain_id);
        r = r < 0 ? r : put_text(out, "state", state_names[h->state]);
        r = r < 0 ? r : put_number(out, "since_ms", h->since_ms);
        r = r < 0 ? r : put_number(out, "expires_ms", h->expires_ms);
        r = r < 0 ? r : put_number(out, "deadline_ms", h->deadline_ms);
        r = r < 0 ? r : put_number(out, "leaders", h->leaders);
        r = r < 0 ? r : put_number(out, "asked_ago_ms", h->asked_ago_ms);
        r = r < 0 ? r : put_text(out, "reason", h->reason);
        r = r < 0 ? r : put_text(out, "requested_by", h->requested_by);
        return r < 0 ? r : buf_append_str(out, "}");
}

static int put_waiter(const struct slot_waiter *w, struct buf *out)
{
        return buf_printf(out, "{\"broker\":%d,\"epoch\":%lld,\"since_ms\":%lld,\"asked_ago_ms\":%lld}",
                          (int)w->broker, (long long)w->epoch, (long long)w->since_ms,
                          (long long)w->asked_ago_ms);
}

static int put_ended(const struct slot_ended *e, struct buf *out)
{
        int r = buf_printf(out, "{\"broker\":%d,\"epoch\":%lld", (int)e->broker, (long long)e->epoch);

        r = r < 0 ? r : put_text(out, "drain_id", e->drain_id);
        r = r < 0 ? r : put_text(out, "how", end_names[e->how]);
        r = r < 0 ? r : put_number(out, "at_ms", e->at_ms);
        r = r < 0 ? r : put_text(out, "note", e->note);
        return r < 0 ? r : buf_append_str(out, "}");
}

int znode_slot_encode(const struct znode_slot *s, struct buf *out)
{
        int r = buf_printf(out, "{\"version\":1,\"cluster_stop\":%s,\"holders\":[",
                           s->cluster_stop ? "true" : "false");

        for (size_t i = 0; r >= 0 && i < s->n_holders; i++) {
                r = i ? buf_append_str(out, ",") : 0;
                r = r < 0 ? r : put_holder(&s->holders[i], out);
        }
        r = r < 0 ? r : buf_append_str(out, "],\"waiting\":[");
        for (size_t i = 0; r >= 0 && i < s->n_waiting; i++) {
                r = i ? buf_append_str(out, ",") : 0;
                r = r < 0 ? r : put_waiter(&s->waiting[i], out);
        }
        r = r < 0 ? r : buf_append_str(out, "],\"ended\":[");
        for (size_t i = 0; r >= 0 && i < s->n_ended; i++) {
                r = i ? buf_append_str(out, ",") : 0;
                r = r < 0 ? r : put_ended(&s->ended[i], out);
        }
        r = r < 0 ? r : buf_append_str(out, "]}");
        return r < 0 ? r : 0;
}

/* --- reading --- */

static int take_text(const json_t *o, const char *key, char out[ZNODE_SLOT_TEXT_SIZE])
{
        const json_t *v = json_object_get(o, key);

        if (!v)
                return 0;
        if (!json_is_string(v) || json_string_length(v) >= ZNODE_SLOT_TEXT_SIZE)
                return -EBADMSG;
        memcpy(out, json_string_value(v), json_string_length(v) + 1);
        return 0;
}

static int take_number(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret)
{
        const json_t *v = json_object_get(o, key);

        return v ? znode_int64(v, min, max, ret) : 0;
}

/* One of @names; the first when the member is missing. */
static int take_name(const json_t *o, const char *key, const char *const *names, int n, int *ret)
{
        const json_t *v = json_object_get(o, key);

        *ret = 0;
        if (!v)
                return 0;
        for (int i = 0; json_is_string(v) && i < n; i++)
                if (strcmp(names[i], json_string_value(v)) == 0) {
                        *ret = i;
                        return 0;
                }
        return -EBADMSG;
}

#define MAX_MS INT64_C(1000000000000000) /* sums of a few of them do not overflow */

/* Who an entry is about. */
static int take_who(const json_t *o, int32_t *ret_broker, int64_t *ret_epoch)
{
        int r = znode_int32(json_object_get(o, "broker"), 0, INT32_MAX, ret_broker);

        return r < 0 ? r : znode_int64(json_object_get(o, "epoch"), -1, INT64_MAX, ret_epoch);
}

static int take_holder(const json_t *o, struct slot_holder *h)
{
        int64_t leaders = 0;
        int state, r;

        h->missing = -1;
        r = take_who(o, &h->broker, &h->epoch);
        r = r < 0 ? r : take_text(o, "drain_id", h->drain_id);
        r = r < 0 ? r : take_name(o, "state", state_names, N_SLOT_STATES, &state);
        r = r < 0 ? r : take_number(o, "since_ms", 0, MAX_MS, &h->since_ms);
        r = r < 0 ? r : take_number(o, "expires_ms", 0, MAX_MS, &h->expires_ms);
        r = r < 0 ? r : take_number(o, "deadline_ms", 0, MAX_MS, &h->deadline_ms);
        r = r < 0 ? r : take_number(o, "leaders", 0, INT32_MAX, &leaders);
        r = r < 0 ? r : take_number(o, "asked_ago_ms", 0, MAX_MS, &h->asked_ago_ms);
        r = r < 0 ? r : take_text(o, "reason", h->reason);
        r = r < 0 ? r : take_text(o, "requested_by", h->requested_by);
        if (r < 0)
                return r;
        h->state = (enum slot_state)state;
        h->leaders = (int32_t)leaders;
        return 0;
}

static int take_waiter(const json_t *o, struct slot_waiter *w)
{
        int r = take_who(o, &w->broker, &w->epoch);

        r = r < 0 ? r : take_number(o, "since_ms", 0, MAX_MS, &w->since_ms);
        return r < 0 ? r : take_number(o, "asked_ago_ms", 0, MAX_MS, &w->asked_ago_ms);
}

static int take_ended(const json_t *o, struct slot_ended *e)
{
        int how, r;

        r = take_who(o, &e->broker, &e->epoch);
        r = r < 0 ? r : take_text(o, "drain_id", e->drain_id);
        r = r < 0 ? r : take_name(o, "how", end_names, N_SLOT_ENDS, &how);
        r = r < 0 ? r : take_number(o, "at_ms", 0, MAX_MS, &e->at_ms);
        r = r < 0 ? r : take_text(o, "note", e->note);
        if (r < 0)
                return r;
        e->how = (enum slot_end)how;
        return 0;
}

static int take_all(const json_t *o, struct znode_slot *s)
{
        const json_t *holders = json_object_get(o, "holders"), *waiting = json_object_get(o, "waiting"),
                     *ended = json_object_get(o, "ended"), *item;
        int64_t version = 0;
        size_t i;
        int r = 0;

        if (znode_int64(json_object_get(o, "version"), 1, 1, &version) < 0 ||
            (holders && !json_is_array(holders)) || (waiting && !json_is_array(waiting)) ||
            (ended && !json_is_array(ended)))
                return -EBADMSG;
        s->cluster_stop = json_is_true(json_object_get(o, "cluster_stop"));
        for (i = 0; r >= 0 && s->n_holders < ARRAY_SIZE(s->holders) && (item = json_array_get(holders, i));
             i++)
                r = take_holder(item, &s->holders[s->n_holders++]);
        for (i = 0; r >= 0 && s->n_waiting < ARRAY_SIZE(s->waiting) && (item = json_array_get(waiting, i));
             i++)
                r = take_waiter(item, &s->waiting[s->n_waiting++]);
        for (i = 0; r >= 0 && s->n_ended < ARRAY_SIZE(s->ended) && (item = json_array_get(ended, i)); i++)
                r = take_ended(item, &s->ended[s->n_ended++]);
        return r;
}

int znode_slot_decode(const char *s, size_t len, struct znode_slot *ret)
{
        cleanup_with(json_decrefp) json_t *o = NULL;
        cleanup_with(freep) struct znode_slot *got = calloc(1, sizeof(*got));
        int r = got ? znode_parse(s, len, false, false, &o) : -ENOMEM;

        r = r < 0 ? r : take_all(o, got);
        if (r < 0)
                return r;
        *ret = *got;
        return 0;
}
