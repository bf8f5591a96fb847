/* The snapshot as JSON, from JSON, and as a line. */
#include "drain_status.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api_json.h"

/* Members that are plain integers in both directions. `nullable`: DRAIN_UNKNOWN is written as null. */
static const struct int_member {
        const char *key;
        size_t offset;
        size_t size;
        bool nullable;
} int_members[] = {
#define ROW(key, member, nullable)                                                                           \
        {                                                                                                    \
                key, offsetof(struct drain_status, member), sizeof(((struct drain_status *)0)->member),      \
                        nullable                                                                             \
        }
        ROW("broker", broker, true),         ROW("epoch", epoch, true),
        ROW("remaining", remaining, true),   ROW("initial", initial, true),
        ROW("moved", moved, false),          ROW("leaders", leaders, true),
        ROW("rf1_led", rf1_led, false),      ROW("blocked_total", blocked_total, false),
        ROW("controller", controller, true), ROW("failures", failures, false),
#undef ROW
};

static const struct text_member {
        const char *key;
        size_t offset, size;
} text_members[] = {
#define ROW(member)                                                                                          \
        {                                                                                                    \
#member, offsetof(struct drain_status, member), sizeof(((struct drain_status *)0)->member)   \
        }
        ROW(drain_id),
        ROW(reason),
        ROW(requested_by),
        ROW(message),
#undef ROW
};

void format_time_utc(int64_t real_ms, char out[32])
{
        time_t s = (time_t)(real_ms / 1000);
        struct tm tm;
        char text[24];

        (void)gmtime_r(&s, &tm);
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
        (void)snprintf(out, 32, "%s.%03dZ", text, (int)(real_ms % 1000));
}

static int parse_time_utc(const char *text, int64_t *ret_ms)
{
        struct tm tm = {0};
        const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
        int ms = 0;

        if (!rest || sscanf(rest, ".%3dZ", &ms) != 1 || ms < 0)
                return -EBADMSG;
        *ret_ms = (int64_t)timegm(&tm) * 1000 + ms;
        return 0;
}

static int64_t load_int(const struct drain_status *s, const struct int_member *m)
{
        const char *at = (const char *)s + m->offset;
        int64_t wide;
        int32_t narrow;

        if (m->size == sizeof(wide)) {
                memcpy(&wide, at, sizeof(wide));
                return wide;
        }
        memcpy(&narrow, at, sizeof(narrow));
        return narrow;
}

static int store_int(struct drain_status *s, const struct int_member *m, int64_t v)
{
        char *at = (char *)s + m->offset;
        int32_t narrow = (int32_t)v;

        if (m->size == sizeof(v)) {
                memcpy(at, &v, sizeof(v));
                return 0;
        }
        if (v < INT32_MIN || v > INT32_MAX)
                return -EBADMSG;
        memcpy(at, &narrow, sizeof(narrow));
        return 0;
}

static json_t *blocked_to_json(const struct drain_status *s)
{
        json_t *list = json_array();

        for (size_t i = 0; list && i < s->n_blocked; i++)
                (void)json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "topic", s->blocked[i].topic,
                                                            "partition", (int)s->blocked[i].partition,
                                                            "reason", s->blocked[i].reason));
        return list;
}

static json_t *time_to_json(int64_t real_ms)
{
        char text[32];

        if (real_ms == 0)
                return json_null();
        format_time_utc(real_ms, text);
        return json_string(text);
}

static json_t *slot_to_json(const struct slot_info *s)
{
        if (!s->held)
                return json_null();
        return json_pack("{s:i, s:I, s:s, s:s, s:I, s:I}", "broker", (int)s->broker, "epoch",
                         (json_int_t)s->epoch, "drain_id", s->drain_id, "state", s->state, "since_ms",
                         (json_int_t)s->since_ms, "expires_ms", (json_int_t)s->expires_ms);
}

/* A failed set shows as the return value: every value is checked by jansson for NULL. */
static int set(json_t *o, const char *key, json_t *v)
{
        return json_object_set_new(o, key, v) < 0 ? -ENOMEM : 0;
}

static int fill_json(const struct drain_status *s, json_t *o)
{
        const char *verdict = drain_phase_is_ended(s->state) ? drain_phase_name(s->state) : NULL;
        int bad = 0;

        for (size_t i = 0; i < ARRAY_SIZE(text_members); i++)
                bad |= set(o, text_members[i].key, json_string((const char *)s + text_members[i].offset));
        for (size_t i = 0; i < ARRAY_SIZE(int_members); i++) {
                int64_t v = load_int(s, &int_members[i]);
                bool unknown = int_members[i].nullable && v == DRAIN_UNKNOWN;

                bad |= set(o, int_members[i].key, unknown ? json_null() : json_integer(v));
        }
        bad |= set(o, "state", json_string(drain_phase_name(s->state)));
        bad |= set(o, "verdict", verdict ? json_string(verdict) : json_null());
        bad |= set(o, "why", json_string(drain_why_name(s->why)));
        bad |= set(o, "blocked", blocked_to_json(s));
        bad |= set(o, "slot", slot_to_json(&s->slot));
        bad |= set(o, "rate", json_real((double)s->rate_milli / 1000.0));
        bad |= set(o, "seconds", json_real((double)s->elapsed_ms / 1000.0));
        bad |= set(o, "deadline_in_seconds", json_real((double)s->deadline_in_ms / 1000.0));
        bad |= set(o, "stalled", json_boolean(s->stalled));
        bad |= set(o, "may_extend", json_boolean(s->may_extend));
        bad |= set(o, "started_at", time_to_json(s->started_real_ms));
        bad |= set(o, "ended_at", time_to_json(s->ended_real_ms));
        return bad;
}

json_t *drain_status_to_json(const struct drain_status *s)
{
        json_t *o = json_object();

        if (o && fill_json(s, o) < 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

static int read_ms(const json_t *o, const char *key, int64_t *ret)
{
        const json_t *v = json_object_get(o, key);

        if (!json_is_number(v) || json_number_value(v) < -1e12 || json_number_value(v) > 1e12)
                return -EBADMSG;
        *ret = (int64_t)(json_number_value(v) * 1000.0 + (json_number_value(v) < 0 ? -0.5 : 0.5));
        return 0;
}

static int read_time(const json_t *o, const char *key, int64_t *ret)
{
        const json_t *v = json_object_get(o, key);

        if (json_is_string(v))
                return parse_time_utc(json_string_value(v), ret);
        *ret = 0;
        return json_is_null(v) ? 0 : -EBADMSG;
}

static int read_ints(const json_t *o, struct drain_status *s)
{
        for (size_t i = 0; i < ARRAY_SIZE(int_members); i++) {
                const json_t *v = json_object_get(o, int_members[i].key);
                bool unknown = int_members[i].nullable && json_is_null(v);

                if ((!unknown && !json_is_integer(v)) ||
                    store_int(s, &int_members[i], unknown ? DRAIN_UNKNOWN : json_integer_value(v)) < 0)
                        return -EBADMSG;
        }
        return 0;
}

static int read_blocked(const json_t *o, struct drain_status *s)
{
        const json_t *list = json_object_get(o, "blocked"), *item;
        size_t i;

        if (!json_is_array(list))
                return -EBADMSG;
        json_array_foreach(list, i, item)
        {
                struct blocked_partition *b = &s->blocked[s->n_blocked];
                const char *topic = json_string_value(json_object_get(item, "topic"));
                const char *reason = json_string_value(json_object_get(item, "reason"));
                const json_t *partition = json_object_get(item, "partition");

                if (s->n_blocked == BLOCKED_MAX)
                        break;
                if (!topic || !reason || !json_is_integer(partition))
                        return -EBADMSG;
                text_copy(b->topic, sizeof(b->topic), topic);
                text_copy(b->reason, sizeof(b->reason), reason);
                b->partition = (int32_t)json_integer_value(partition);
                s->n_blocked++;
        }
        return 0;
}

int drain_status_from_json(const json_t *o, struct drain_status *ret)
{
        const char *state = json_string_value(json_object_get(o, "state"));
        const char *why = json_string_value(json_object_get(o, "why"));

        *ret = (struct drain_status){.why = DRAIN_WHY_NONE};
        if (!state || !why || drain_phase_parse(state, &ret->state) < 0)
                return -EBADMSG;
        for (int w = 0; w < N_DRAIN_WHYS; w++)
                if (strcmp(drain_why_name((enum drain_why)w), why) == 0)
                        ret->why = (enum drain_why)w;
        for (size_t i = 0; i < ARRAY_SIZE(text_members); i++) {
                const char *text = json_string_value(json_object_get(o, text_members[i].key));

                if (!text)
                        return -EBADMSG;
                text_copy((char *)ret + text_members[i].offset, text_members[i].size, text);
        }
        ret->stalled = json_is_true(json_object_get(o, "stalled"));
        ret->may_extend = json_is_true(json_object_get(o, "may_extend"));
        if (read_ints(o, ret) < 0 || api_parse_slot(o, &ret->slot) < 0 || read_blocked(o, ret) < 0 ||
            read_ms(o, "rate", &ret->rate_milli) < 0 || read_ms(o, "seconds", &ret->elapsed_ms) < 0 ||
            read_ms(o, "deadline_in_seconds", &ret->deadline_in_ms) < 0 ||
            read_time(o, "started_at", &ret->started_real_ms) < 0 ||
            read_time(o, "ended_at", &ret->ended_real_ms) < 0)
                return -EBADMSG;
        return 0;
}

/* --- the line for people --- */

struct line {
        char *at;
        size_t left;
};

static void add(struct line *l, const char *fmt, ...) printf_like(2, 3);

static void add(struct line *l, const char *fmt, ...)
{
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(l->at, l->left, fmt, ap);
        va_end(ap);
        if (n > 0) {
                size_t used = MIN((size_t)n, l->left - 1);

                l->at += used;
                l->left -= used;
        }
}

/* Who has it, since when, and when it ends at the latest (D3). */
static void add_holder(struct line *l, const struct slot_info *s)
{
        char since[32], until[32];

        if (!s->held)
                return;
        format_time_utc(s->since_ms, since);
        format_time_utc(s->expires_ms, until);
        add(l, "held by broker %" PRId32 " (%s since %.8s, at most until %.8sZ)", s->broker, s->state,
            since + 11, until + 11);
}

static void add_waiting(struct line *l, const struct drain_status *s)
{
        add(l, "Waiting for the drain slot");
        if (s->slot.held)
                add(l, ", ");
        add_holder(l, &s->slot);
        add(l, " (deadline in %" PRId64 " s)", MAX(s->deadline_in_ms, INT64_C(0)) / 1000);
        if (s->message[0] != '\0')
                add(l, "; %s", s->message);
}

/* D4: what is waited for, the first by name (R52). */
static void add_unsafe(struct line *l, const struct drain_status *s)
{
        add(l,
            "Waiting until it is safe to stop: %" PRId32 " partition%s would go offline or below "
            "min.insync.replicas",
            s->blocked_total, s->blocked_total == 1 ? "" : "s");
        if (s->leaders >= 0)
                add(l, "; %" PRId32 " leader partition%s left", s->leaders, s->leaders == 1 ? "" : "s");
        add(l, " (deadline in %" PRId64 " s)", MAX(s->deadline_in_ms, INT64_C(0)) / 1000);
        if (s->n_blocked > 0)
                add(l, "; [%s,%" PRId32 "] %s", s->blocked[0].topic, s->blocked[0].partition,
                    s->blocked[0].reason);
}

static void add_progress(struct line *l, const struct drain_status *s)
{
        if (s->remaining == DRAIN_UNKNOWN)
                add(l, "Draining: waiting for a controller");
        else
                add(l, "Draining: %" PRId32 " leader partition%s remain%s", s->remaining,
                    s->remaining == 1 ? "" : "s", s->remaining == 1 ? "s" : "");
        add(l, " (deadline in %" PRId64 " s)", MAX(s->deadline_in_ms, INT64_C(0)) / 1000);
        if (s->rate_milli > 0)
                add(l, ", %" PRId64 ".%" PRId64 "/s", s->rate_milli / 1000, s->rate_milli % 1000 / 100);
        if (s->stalled)
                add(l, ", stalled");
        if (s->message[0] != '\0')
                add(l, "; %s", s->message);
        if (s->failures > 0)
                add(l, " (retry %d)", s->failures);
        /* Which partition holds it up, as [topic,partition] (R52). */
        if (s->n_blocked > 0 && s->remaining > 0)
                add(l, "; [%s,%" PRId32 "] %s", s->blocked[0].topic, s->blocked[0].partition,
                    s->blocked[0].reason);
}

static void add_verdict(struct line *l, const struct drain_status *s)
{
        switch (s->state) {
        case DRAIN_DRAINED:
                add(l, "Drained: no leader partition remains, %" PRId32 " moved in %" PRId64 ".%" PRId64 " s",
                    s->moved, s->elapsed_ms / 1000, s->elapsed_ms % 1000 / 100);
                break;
        case DRAIN_INCOMPLETE:
        case DRAIN_NO_CONTROLLER:
        case DRAIN_SKIPPED:
                add(l, "%s: ",
                    s->state == DRAIN_INCOMPLETE      ? "Drain incomplete"
                    : s->state == DRAIN_NO_CONTROLLER ? "Not drained"
                                                      : "Drain skipped");
                if (s->remaining == DRAIN_UNKNOWN)
                        add(l, "the number of leader partitions is not known");
                else
                        add(l, "%" PRId32 " leader partitions not moved", s->remaining);
                break;
        case DRAIN_CLUSTER_STOP:
                add(l, "The whole cluster stops: nothing is moved");
                break;
        case DRAIN_STALE:
                add(l, "Nothing to drain: the broker has restarted since");
                break;
        case DRAIN_UNKNOWN_BROKER:
                add(l, "Nothing to drain: the cluster does not know the broker");
                break;
        case DRAIN_BROKER_GONE:
                add(l, "The broker ended before it was drained");
                break;
        default:
                add(l, "Drain undone");
                break;
        }
        if (s->rf1_led > 0)
                add(l, "; %" PRId32 " with a single replica stay%s", s->rf1_led, s->rf1_led == 1 ? "s" : "");
        if (s->message[0] != '\0')
                add(l, "; %s", s->message);
        if (s->why == DRAIN_WHY_SLOT && s->slot.held) {
                add(l, ": ");
                add_holder(l, &s->slot);
        }
        if (s->n_blocked > 0 && s->remaining > 0)
                add(l, "; [%s,%" PRId32 "] %s", s->blocked[0].topic, s->blocked[0].partition,
                    s->blocked[0].reason);
}

void drain_status_line(const struct drain_status *s, char *out, size_t size)
{
        struct line l = {.at = out, .left = size};

        out[0] = '\0';
        if (s->state == DRAIN_IDLE)
                add(&l, s->slot.held ? "No drain; the drain slot is " : "No drain");
        if (s->state == DRAIN_IDLE)
                add_holder(&l, &s->slot);
        else if (s->state == DRAIN_WAITING)
                add_waiting(&l, s);
        else if (s->state == DRAIN_WAITING_SAFE)
                add_unsafe(&l, s);
        else if (s->state == DRAIN_UNDOING)
                add(&l, "Undoing the drain%s%s", s->message[0] ? "; " : "", s->message);
        else if (drain_phase_is_ended(s->state))
                add_verdict(&l, s);
        else
                add_progress(&l, s);
        for (char *c = out; *c; c++)
                if (*c == '\n' || *c == '\r')
                        *c = ' ';
}
