/* Types, ranges and required members of the admin API's bodies. What is missing or odd is refused as a whole:
 * a drain must not end on a guess (L1). */
#include "api_json.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const drain_states[N_CONTROLLER_DRAIN_STATES] = {
        [CONTROLLER_NONE] = "none",
        [CONTROLLER_DRAINING] = "draining",
        [CONTROLLER_DRAINED] = "drained",
        [CONTROLLER_INCOMPLETE] = "incomplete",
        [CONTROLLER_STALE] = "stale",
        [CONTROLLER_CANCELLED] = "cancelled",
        [CONTROLLER_WAITING] = "waiting_for_slot",
        [CONTROLLER_CLUSTER_STOP] = "cluster_stop",
};

static bool is_utf8(const char *text)
{
        cleanup_with(json_decrefp) json_t *o = json_string(text); /* refuses anything else */

        return o != NULL;
}

void text_copy(char *out, size_t size, const char *text)
{
        size_t len = strnlen(text, size);
        bool utf8 = is_utf8(text);

        if (len == size)
                for (len--; len > 0 && utf8 && ((unsigned char)text[len] & 0xc0) == 0x80;)
                        len--; /* not in the middle of a character */
        for (size_t i = 0; i < len; i++) {
                unsigned char c = (unsigned char)text[i];

                out[i] = c < 0x20 || c == 0x7f ? ' ' : c >= 0x80 && !utf8 ? '?' : text[i];
        }
        out[len] = '\0';
}

/* An integer within the range; @absent is taken when the member is missing, unless it is out of the range
 * itself: then the member is required. */
static int get_int(const json_t *o, const char *key, int64_t min, int64_t max, int64_t absent, int64_t *ret)
{
        const json_t *v = json_object_get(o, key);
        int64_t n;

        if (!v || json_is_null(v)) {
                if (absent < min || absent > max)
                        return -EBADMSG;
                *ret = absent;
                return 0;
        }
        if (!json_is_integer(v))
                return -EBADMSG;
        n = json_integer_value(v);
        if (n < min || n > max)
                return -EBADMSG;
        *ret = n;
        return 0;
}

#define REQUIRED    INT64_MIN
#define MAX_WALL_MS INT64_C(100000000000000) /* some thousand years */

static int get_int32(const json_t *o, const char *key, int32_t min, int64_t absent, int32_t *ret)
{
        int64_t n;
        int r;

        r = get_int(o, key, min, INT32_MAX, absent, &n);
        if (r == 0)
                *ret = (int32_t)n;
        return r;
}

/* "" when missing. */
static int get_text(const json_t *o, const char *key, char *out, size_t size)
{
        const json_t *v = json_object_get(o, key);

        if (v && !json_is_null(v) && !json_is_string(v))
                return -EBADMSG;
        text_copy(out, size, v && json_is_string(v) ? json_string_value(v) : "");
        return 0;
}

static json_t *load_object(const char *body, size_t len)
{
        json_t *o = json_loadb(body, len, JSON_REJECT_DUPLICATES, NULL);

        if (!json_is_object(o)) {
                json_decref(o);
                return NULL;
        }
        return o;
}

static int parse_state(const json_t *o, enum controller_drain_state *ret)
{
        const char *text = json_string_value(json_object_get(o, "state"));

        for (int i = 0; text && i < N_CONTROLLER_DRAIN_STATES; i++)
                if (strcmp(text, drain_states[i]) == 0) {
                        *ret = (enum controller_drain_state)i;
                        return 0;
                }
        return -EBADMSG;
}

static int parse_blocked(const json_t *o, struct blocked_partition blocked[BLOCKED_MAX], size_t *ret_n)
{
        const json_t *list = json_object_get(o, "blocked"), *item;
        size_t i, n = 0;

        if (list && !json_is_array(list))
                return -EBADMSG;
        json_array_foreach(list, i, item)
        {
                struct blocked_partition *b = &blocked[n];

                if (n == BLOCKED_MAX)
                        break;
                if (json_is_false(json_object_get(item, "leads")))
                        continue; /* only an ISR membership: nothing is led */
                if (!json_is_object(item) || get_text(item, "topic", b->topic, sizeof(b->topic)) < 0 ||
                    get_int32(item, "partition", 0, REQUIRED, &b->partition) < 0 ||
                    get_text(item, "reason", b->reason, sizeof(b->reason)) < 0)
                        return -EBADMSG;
                n++;
        }
        *ret_n = n;
        return 0;
}

static bool blames_zookeeper(const json_t *o)
{
        const char *error = json_string_value(json_object_get(o, "error"));

        return json_is_false(json_object_get(o, "zookeeper_available")) ||
               (error && strstr(error, "zookeeper"));
}

/* Only for people to read: what is odd in it is as if it were not there. */
static void parse_slot(const json_t *o, const char *key, struct slot_info *ret)
{
        const json_t *v = json_object_get(o, key);
        struct slot_info s = {.held = true};

        *ret = (struct slot_info){0};
        if (!json_is_object(v) || get_int32(v, "broker", 0, REQUIRED, &s.broker) < 0 ||
            get_int(v, "epoch", DRAIN_UNKNOWN, INT64_MAX, DRAIN_UNKNOWN, &s.epoch) < 0 ||
            get_int(v, "since_ms", 0, MAX_WALL_MS, 0, &s.since_ms) < 0 ||
            get_int(v, "expires_ms", 0, MAX_WALL_MS, 0, &s.expires_ms) < 0 ||
            get_text(v, "drain_id", s.drain_id, sizeof(s.drain_id)) < 0 ||
            get_text(v, "state", s.state, sizeof(s.state)) < 0)
                return;
        *ret = s;
}

void api_parse_holder(const char *body, size_t len, struct slot_info *ret)
{
        cleanup_with(json_decrefp) json_t *o = load_object(body, len);

        parse_slot(o, "holder", ret);
}

void api_parse_unsafe(const char *body, size_t len, struct blocked_partition blocked[BLOCKED_MAX],
                      size_t *ret_n, int32_t *ret_total, int32_t *ret_remaining)
{
        cleanup_with(json_decrefp) json_t *o = load_object(body, len);
        const json_t *risks = json_object_get(o, "risks"), *list = json_object_get(risks, "list"), *item;
        size_t i;

        *ret_n = 0;
        if (get_int32(risks, "waiting_for", 0, 0, ret_total) < 0)
                *ret_total = 0;
        if (get_int32(o, "leaders_remaining", DRAIN_UNKNOWN, DRAIN_UNKNOWN, ret_remaining) < 0)
                *ret_remaining = DRAIN_UNKNOWN;
        json_array_foreach(list, i, item)
        {
                struct blocked_partition *b = &blocked[*ret_n];
                const char *risk = json_string_value(json_object_get(item, "risk"));

                if (*ret_n == BLOCKED_MAX || !risk ||
                    (strcmp(risk, "unavailable") != 0 && strcmp(risk, "below_min_isr") != 0) ||
                    get_text(item, "topic", b->topic, sizeof(b->topic)) < 0 ||
                    get_int32(item, "partition", 0, REQUIRED, &b->partition) < 0)
                        continue;
                text_copy(b->reason, sizeof(b->reason), risk);
                (*ret_n)++;
        }
}

int api_parse_slot(const json_t *o, struct slot_info *ret)
{
        const json_t *v = json_object_get(o, "slot");

        parse_slot(o, "slot", ret);
        return ret->held || json_is_null(v) ? 0 : -EBADMSG;
}

int api_parse_drain(const char *body, size_t len, int32_t broker,
                    struct blocked_partition blocked[BLOCKED_MAX], struct drain_answer *ret)
{
        cleanup_with(json_decrefp) json_t *o = load_object(body, len);
        struct drain_answer a = {.blocked = blocked};
        /* Without a drain there is nothing to count: the numbers are required only when there is one. */
        int64_t absent;

        if (!o || parse_state(o, &a.state) < 0)
                return -EBADMSG;
        parse_slot(o, "slot", &a.slot);
        absent = a.state == CONTROLLER_NONE || a.state == CONTROLLER_STALE ? 0 : REQUIRED;
        if (get_int32(o, "broker", 0, REQUIRED, &a.broker) < 0 || a.broker != broker ||
            get_int32(o, "leaders_remaining", 0, absent, &a.remaining) < 0 ||
            get_int32(o, "moved", 0, 0, &a.moved) < 0 || get_int32(o, "rf1_led", 0, 0, &a.rf1_led) < 0 ||
            get_int32(o, "blocked_total", 0, 0, &a.blocked_total) < 0 ||
            get_int32(o, "controller", -1, -1, &a.controller) < 0 ||
            get_int(o, "epoch", DRAIN_UNKNOWN, INT64_MAX, DRAIN_UNKNOWN, &a.epoch) < 0 ||
            get_int(o, "controller_epoch", DRAIN_UNKNOWN, INT64_MAX, DRAIN_UNKNOWN, &a.generation) < 0 ||
            get_text(o, "drain_id", a.drain_id, sizeof(a.drain_id)) < 0 ||
            parse_blocked(o, blocked, &a.n_blocked) < 0)
                return -EBADMSG;
        a.zookeeper_down = blames_zookeeper(o);
        *ret = a;
        return 0;
}

int api_parse_broker(const char *body, size_t len, struct broker_answer *ret)
{
        cleanup_with(json_decrefp) json_t *o = load_object(body, len);
        struct broker_answer a = {0};
        char zookeeper[32];

        if (!o || get_int32(o, "broker", 0, REQUIRED, &a.broker) < 0 ||
            get_int32(o, "leaders", 0, REQUIRED, &a.leaders) < 0 ||
            get_int32(o, "leaders_rf1", 0, 0, &a.leaders_rf1) < 0 ||
            get_int32(o, "controller", -1, -1, &a.controller) < 0 ||
            get_int(o, "epoch", DRAIN_UNKNOWN, INT64_MAX, DRAIN_UNKNOWN, &a.epoch) < 0 ||
            get_int(o, "pid", 0, INT32_MAX, 0, &a.pid) < 0 ||
            get_text(o, "state", a.state, sizeof(a.state)) < 0 ||
            get_text(o, "zookeeper", zookeeper, sizeof(zookeeper)) < 0)
                return -EBADMSG;
        a.in_sync = json_is_true(json_object_get(o, "in_sync"));
        a.zookeeper_down = zookeeper[0] != '\0' && strcmp(zookeeper, "connected") != 0;
        *ret = a;
        return 0;
}

int api_parse_cluster(const char *body, size_t len, struct cluster_answer *ret)
{
        cleanup_with(json_decrefp) json_t *o = load_object(body, len);
        const json_t *list, *item;
        size_t i;

        if (!o || get_int32(o, "controller", -1, -1, &ret->controller) < 0)
                return -EBADMSG;
        list = json_object_get(o, "brokers");
        if (!json_is_array(list))
                return -EBADMSG;
        ret->n_brokers = 0;
        json_array_foreach(list, i, item)
        {
                struct cluster_member *m = &ret->brokers[ret->n_brokers];
                char admin[256];

                if (ret->n_brokers == CLUSTER_BROKERS_MAX)
                        break;
                if (!json_is_object(item) || get_int32(item, "id", 0, REQUIRED, &m->id) < 0 ||
                    get_text(item, "admin", admin, sizeof(admin)) < 0)
                        return -EBADMSG;
                m->mute = json_is_string(json_object_get(item, "admin")) && admin[0] == '\0';
                if (endpoint_normalise(admin, m->admin, sizeof(m->admin)) < 0)
                        m->admin[0] = '\0';
                ret->n_brokers++;
        }
        return 0;
}

void api_parse_refusal(const char *body, size_t len, char code[64], char message[256])
{
        cleanup_with(json_decrefp) json_t *o = load_object(body, len);

        code[0] = message[0] = '\0';
        if (!o)
                return;
        if (blames_zookeeper(o))
                text_copy(code, 64, "zookeeper_unavailable");
        else if (get_text(o, "error", code, 64) < 0)
                code[0] = '\0';
        if (get_text(o, "message", message, 256) < 0)
                message[0] = '\0';
}

char *api_format_ask(const struct drain_ask *ask)
{
        cleanup_with(json_decrefp) json_t *o = NULL;
        char id[DRAIN_TEXT_MAX], reason[DRAIN_TEXT_MAX], by[DRAIN_TEXT_MAX];

        text_copy(id, sizeof(id), ask->drain_id);
        text_copy(reason, sizeof(reason), ask->reason);
        text_copy(by, sizeof(by), ask->requested_by);
        o = json_pack("{s:I, s:s, s:s, s:s, s:I}", "epoch", (json_int_t)ask->epoch, "drain_id", id, "reason",
                      reason, "requested_by", by, "deadline_ms",
                      (json_int_t)MAX(ask->deadline_ms, INT64_C(1)));
        if (o && ask->replace && json_object_set_new(o, "replace", json_true()) < 0)
                return NULL;
        if (o && ask->force && json_object_set_new(o, "force", json_true()) < 0)
                return NULL;
        if (o && ask->cluster_stop && json_object_set_new(o, "cluster_shutdown", json_true()) < 0)
                return NULL;
        return o ? json_dumps(o, JSON_COMPACT) : NULL;
}
