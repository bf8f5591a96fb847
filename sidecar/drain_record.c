/* One table says which event a state of the drain is, with its MESSAGE_ID; they never change. */
#include "drain_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api_json.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/slog.h"

#define PROGRESS_MS  5000
#define RECORD_BYTES (1024 * 1024)

struct event {
        const char *name, *message_id;
        enum slog_level level;
};

static const struct event started = {"drain-started", "e65a6138633e42d792b161764de8b4ca", SLOG_INFO};
static const struct event progress = {"drain-progress", "f85079cc2e1a474e810e7f05488e4f7c", SLOG_INFO};
static const struct event incomplete = {"drain-incomplete", "96ae9017b12e4e2aad9041a8ccfa8bdb", SLOG_WARNING};
static const struct event nothing = {"drain-nothing", "126fdaa0ea25484faf0c8eff43bea8a8", SLOG_INFO};
static const struct event drained = {"drain-drained", "a822beb5e105403793173c2b7e09658f", SLOG_INFO};
static const struct event gone = {"drain-broker-gone", "5f4ec7e8a1a742b4bd6be687950f0ef5", SLOG_WARNING};
static const struct event cancelled = {"drain-cancelled", "b3c7f87b42654e3ba5c8b3d76d7c2895", SLOG_NOTICE};
static const struct event skipped = {"drain-skipped", "8d48079f4b1349dda9a23fe0b831d23f", SLOG_NOTICE};

static const struct event *const endings[N_DRAIN_PHASES] = {
        [DRAIN_DRAINED] = &drained,   [DRAIN_INCOMPLETE] = &incomplete,  [DRAIN_NO_CONTROLLER] = &incomplete,
        [DRAIN_STALE] = &nothing,     [DRAIN_UNKNOWN_BROKER] = &nothing, [DRAIN_BROKER_GONE] = &gone,
        [DRAIN_ABORTED] = &cancelled, [DRAIN_SKIPPED] = &skipped,        [DRAIN_CLUSTER_STOP] = &nothing,
};

static void emit(const struct event *e, const struct drain_status *s)
{
        char line[512];

        drain_status_line(s, line, sizeof(line));
        if (e->level <= slog_level_now())
                slog_emit(e->level, e->name, line,
                          (const struct slog_field[]){
                                  SL_MESSAGE_ID(e->message_id),
                                  SL_STR("drain_id", s->drain_id),
                                  SL_INT("broker", s->broker),
                                  SL_INT("broker_epoch", s->epoch),
                                  SL_STR("drain_state", drain_phase_name(s->state)),
                                  SL_STR("drain_why", drain_why_name(s->why)),
                                  SL_INT("leaders_remaining", s->remaining), /* -1: not known */
                                  SL_INT("leaders_moved", s->moved),
                                  SL_INT("leaders_rf1", s->rf1_led),
                                  SL_INT("blocked_total", s->blocked_total),
                                  SL_INT("elapsed_ms", s->elapsed_ms),
                                  SL_STR("reason", s->reason),
                                  SL_STR("requested_by", s->requested_by),
                                  {.key = NULL},
                          });
}

void drain_record_change(struct drain_record *r, const struct drain_status *s, enum drain_phase from)
{
        int64_t now_ms = clock_mono_ms();

        if (s->state == DRAIN_REQUESTING && !drain_phase_is_active(from)) {
                *r = (struct drain_record){.progress_ms = now_ms, .remaining = DRAIN_UNKNOWN};
                emit(&started, s);
        } else if (s->state != from && endings[s->state]) {
                emit(endings[s->state], s);
        } else if ((s->state == DRAIN_DRAINING || s->state == DRAIN_CONFIRMING) &&
                   s->remaining != r->remaining && now_ms - r->progress_ms >= PROGRESS_MS) {
                r->progress_ms = now_ms;
                r->remaining = s->remaining;
                emit(&progress, s);
        }
}

/* --- the result file --- */

static int write_object(const char *path, const json_t *o)
{
        cleanup_with(freep) char *text =
                json_dumps(o, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12));
        cleanup_with(buf_donep) struct buf b = {0};
        int r;

        buf_init(&b, RECORD_BYTES);
        if (!text)
                return -ENOMEM;
        r = buf_append_str(&b, text);
        if (r == 0)
                r = buf_append(&b, "\n", 1);
        return r < 0 ? r : fs_write_atomic(path, b.data, b.len);
}

/* A member from the environment, absent when it is. */
static int set_env(json_t *o, const char *key, const char *variable)
{
        const char *value = getenv(variable);
        char text[256];

        if (!value)
                return 0;
        text_copy(text, sizeof(text), value);
        return json_object_set_new(o, key, json_string(text)) < 0 ? -ENOMEM : 0;
}

/* No record is better than that of another stop, which may say "drained"; and without it there may be room
 * for this one. */
static int replace(const char *path, const json_t *o)
{
        int r = write_object(path, o);

        if (r == 0 || unlink(path) < 0)
                return r;
        return write_object(path, o);
}

int drain_record_write(const char *path, const struct drain_status *s)
{
        cleanup_with(json_decrefp) json_t *o = drain_status_to_json(s);
        int r;

        if (!o)
                return -ENOMEM;
        r = set_env(o, "invocation_id", "INVOCATION_ID");
        return r < 0 ? r : replace(path, o);
}

static json_t *read_object(const char *path)
{
        cleanup_with(buf_donep) struct buf b = {0};
        json_t *o;

        buf_init(&b, RECORD_BYTES);
        if (fs_read_file(path, RECORD_BYTES, &b) < 0)
                return NULL;
        o = json_loadb((const char *)b.data, b.len, 0, NULL);
        if (!json_is_object(o)) {
                json_decref(o);
                return NULL;
        }
        return o;
}

static json_t *no_drain(const char *why)
{
        json_t *o = json_pack("{s:s, s:s}", "verdict", "none", "why", why);

        if (o && set_env(o, "invocation_id", "INVOCATION_ID") < 0) {
                json_decref(o);
                return NULL;
        }
        return o;
}

/* The record in @path if this invocation of the unit wrote it, else one that says that there was no drain: a
 * record of an earlier stop must not pass for this one's. */
static json_t *record_of_this_invocation(const char *path)
{
        const char *invocation = getenv("INVOCATION_ID"), *recorded;
        json_t *o = read_object(path);

        recorded = json_string_value(json_object_get(o, "invocation_id"));
        if (o && invocation && recorded && strcmp(invocation, recorded) == 0)
                return o;
        json_decref(o);
        (void)unlink(path); /* it must not stay if ours cannot be written */
        return no_drain("no_drain");
}

int drain_record_none(const char *path, const char *why)
{
        cleanup_with(json_decrefp) json_t *o = no_drain(why);

        return o ? replace(path, o) : -ENOMEM;
}

int drain_record_exit(const char *path)
{
        cleanup_with(json_decrefp) json_t *o = record_of_this_invocation(path);
        char now[32];
        int r;

        if (!o)
                return -ENOMEM;
        format_time_utc(clock_real_ms(), now);
        if (json_object_set_new(o, "recorded_at", json_string(now)) < 0)
                return -ENOMEM;
        r = set_env(o, "service_result", "SERVICE_RESULT");
        if (r == 0)
                r = set_env(o, "exit_code", "EXIT_CODE");
        if (r == 0)
                r = set_env(o, "exit_status", "EXIT_STATUS");
        return r < 0 ? r : write_object(path, o);
}
