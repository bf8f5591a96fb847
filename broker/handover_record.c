/* One JSON object with the members that the sidecar's record has (docs/events.md); see the header. */
#include "handover_record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/slog.h"

#define FILE_NAME "last-handover.json"

/* Quotes and what ends a line would end the JSON. */
static void copy_plain(char *out, size_t size, const char *s)
{
        size_t n = 0;

        for (; *s && n + 1 < size; s++)
                out[n++] = *s < ' ' || *s > '~' || *s == '"' || *s == '\\' ? ' ' : *s;
        out[n] = '\0';
}

void handover_record_begin(struct handover_record *r, const char *reason, int32_t leaders)
{
        *r = (struct handover_record){
                .started_real_ms = clock_real_ms(), .started_mono_ms = clock_mono_ms(), .leaders = leaders};
        copy_plain(r->reason, sizeof(r->reason), reason);
}

void handover_record_trouble(struct handover_record *r, const char *why)
{
        copy_plain(r->trouble, sizeof(r->trouble), why);
}

static void format_utc(int64_t real_ms, char out[32])
{
        time_t seconds = (time_t)(real_ms / 1000);
        struct tm tm;
        char text[24];

        (void)gmtime_r(&seconds, &tm);
        (void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
        (void)snprintf(out, 32, "%s.%03dZ", text, (int)(real_ms % 1000));
}

static int print(const struct handover_record *r, const struct handover_end *e, struct buf *out)
{
        int64_t took_ms = clock_mono_ms() - r->started_mono_ms;
        char started[32], ended[32];

        format_utc(r->started_real_ms, started);
        format_utc(r->started_real_ms + took_ms, ended);
        return buf_printf(out,
                          "{\n  \"broker\": %" PRId32 ",\n  \"epoch\": %" PRId64 ",\n  \"verdict\": \"%s\",\n"
                          "  \"why\": \"%s\",\n  \"reason\": \"%s\",\n"
                          "  \"requested_by\": \"controlled-shutdown\",\n  \"initial\": %" PRId32
                          ",\n  \"moved\": %" PRId32 ",\n  \"remaining\": %" PRId32
                          ",\n  \"seconds\": %" PRId64 ".%03d,\n  \"started_at\": \"%s\",\n"
                          "  \"ended_at\": \"%s\"\n}\n",
                          e->broker, e->epoch, e->verdict, e->leaders_left > 0 ? r->trouble : "", r->reason,
                          r->leaders, r->leaders > e->leaders_left ? r->leaders - e->leaders_left : 0,
                          e->leaders_left, took_ms / 1000, (int)(took_ms % 1000), started, ended);
}

void handover_record_end(const struct handover_record *r, const struct handover_end *e)
{
        cleanup_with(freep) char *path = NULL;
        cleanup_with(buf_donep) struct buf out = {0};
        const char *dir = e->log_dirs + strspn(e->log_dirs, " ,");
        int len = (int)strcspn(dir, ","), result;

        while (len > 0 && dir[len - 1] == ' ')
                len--;
        buf_init(&out, 0);
        if (asprintf(&path, "%.*s/" FILE_NAME, len, dir) < 0) {
                path = NULL;
                return;
        }
        result = print(r, e, &out);
        if (result == 0)
                result = fs_write_atomic(path, out.data, out.len);
        if (result < 0)
                slog_warning("handover-not-recorded", "the record of this hand-over cannot be written",
                             SL_STR("path", path), SL_ERR(result));
}
