/* Each event is rendered into one buffer and leaves by one write(2), so that events of several threads or
 * processes on one pipe never mix; the journal gets its fields by sd_journal_sendv(). */
#include "base/slog.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/buf.h"
#include "base/clock.h"

#define EVENT_CEILING  65536 /* bytes of one rendered event */
#define JOURNAL_FIELDS 32    /* fields of one event that reach the journal */

enum format { FORMAT_UNKNOWN, FORMAT_TEXT, FORMAT_JSON, FORMAT_JOURNAL };

static const char *const level_names[] = {
        [SLOG_ERROR] = "error", [SLOG_WARNING] = "warning", [SLOG_NOTICE] = "notice",
        [SLOG_INFO] = "info",   [SLOG_DEBUG] = "debug",
};

static _Atomic int level = SLOG_INFO;
static _Atomic int format = FORMAT_UNKNOWN;
static _Atomic(const char *) identity = "stepdown";

/* systemd names device and inode of the journal's stream; a program whose stderr was redirected since has
 * another. */
static bool stderr_is_journal(const struct stat *st)
{
        const char *stream = getenv("JOURNAL_STREAM");
        char own[64];

        if (!stream || access("/run/systemd/journal/socket", F_OK) < 0)
                return false;
        (void)snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);
        return strcmp(own, stream) == 0;
}

static enum format detect_format(void)
{
        struct stat st;

        if (fstat(STDERR_FILENO, &st) == 0 && stderr_is_journal(&st))
                return FORMAT_JOURNAL;
        return isatty(STDERR_FILENO) ? FORMAT_TEXT : FORMAT_JSON;
}

void slog_init(const char *ident)
{
        const char *wanted = getenv("STEPDOWN_LOG_LEVEL");

        atomic_store(&identity, ident);
        atomic_store(&format, detect_format());
        for (size_t i = SLOG_ERROR; wanted && i < ARRAY_SIZE(level_names); i++)
                if (strcmp(wanted, level_names[i]) == 0)
                        slog_set_level((enum slog_level)i);
}

void slog_set_level(enum slog_level new_level)
{
        atomic_store_explicit(&level, (int)new_level, memory_order_relaxed);
}

enum slog_level slog_level_now(void)
{
        return (enum slog_level)atomic_load_explicit(&level, memory_order_relaxed);
}

/* The value as text; @scratch serves numbers. */
static const char *field_text(const struct slog_field *f, char scratch[24])
{
        const char *name;

        switch (f->type) {
        case SLOG_T_STR:
        case SLOG_T_MESSAGE_ID:
                return f->str ? f->str : "";
        case SLOG_T_ERRNO:
                name = strerrorname_np((int)-f->num);
                if (name)
                        return name;
                break;
        case SLOG_T_INT:
                break;
        }
        (void)snprintf(scratch, 24, "%" PRId64, f->num);
        return scratch;
}

/* Length of the valid UTF-8 sequence at @s (no surrogates, nothing overlong), or 0. */
static size_t utf8_length(const unsigned char *s)
{
        static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
        size_t n = s[0] < 0x80   ? 1
                   : s[0] < 0xc0 ? 0
                   : s[0] < 0xe0 ? 2
                   : s[0] < 0xf0 ? 3
                   : s[0] < 0xf8 ? 4
                                 : 0;
        uint32_t c;

        if (n < 2)
                return n;
        c = s[0] & (0x7fu >> n);
        for (size_t i = 1; i < n; i++) {
                if ((s[i] & 0xc0) != 0x80) /* a NUL ends here, too */
                        return 0;
                c = (c << 6) | (s[i] & 0x3fu);
        }
        if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
                return 0;
        return n;
}

static int json_escape(struct buf *b, unsigned char c)
{
        static const char shorts[][2] = {{'"', '"'}, {'\\', '\\'}, {'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}};

        for (size_t i = 0; i < ARRAY_SIZE(shorts); i++)
                if (c == (unsigned char)shorts[i][0])
                        return buf_printf(b, "\\%c", shorts[i][1]);
        return buf_printf(b, "\\u%04x", c);
}

/* Topic and client names reach this place from the network: whatever they hold, the line stays one valid JSON
 * object. */
static int json_string(struct buf *b, const char *s)
{
        int r;

        r = buf_append(b, "\"", 1);
        while (r == 0 && *s) {
                unsigned char c = (unsigned char)*s;
                size_t n = utf8_length((const unsigned char *)s);

                if (n == 0)
                        r = buf_append_str(b, "\\ufffd");
                else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f)
                        r = json_escape(b, c);
                else
                        r = buf_append(b, s, n);
                s += MAX(n, (size_t)1);
        }
        return r < 0 ? r : buf_append(b, "\"", 1);
}

static int json_member(struct buf *b, const char *key, const char *text)
{
        int r;

        r = b->len > 1 ? buf_append(b, ",", 1) : 0;
        if (r == 0)
                r = json_string(b, key);
        if (r == 0)
                r = buf_append(b, ":", 1);
        return r < 0 ? r : json_string(b, text);
}

static int json_number(struct buf *b, const char *key, int64_t num)
{
        int r;

        r = buf_append(b, ",", 1);
        if (r == 0)
                r = json_string(b, key);
        return r < 0 ? r : buf_printf(b, ":%" PRId64, num);
}

static void format_time(char out[32], bool with_date)
{
        int64_t ms = clock_real_ms();
        time_t seconds = (time_t)(ms / 1000);
        struct tm tm;
        char stamp[24];

        if (with_date)
                (void)gmtime_r(&seconds, &tm);
        else
                (void)localtime_r(&seconds, &tm);
        (void)strftime(stamp, sizeof(stamp), with_date ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &tm);
        (void)snprintf(out, 32, "%s.%03d%s", stamp, (int)(ms % 1000), with_date ? "Z" : "");
}

static int render_json(struct buf *b, enum slog_level lv, const char *event, const char *msg,
                       const struct slog_field *fields)
{
        const char *head[][2] = {
                {"time", NULL},   {"level", level_names[lv]}, {"ident", atomic_load(&identity)},
                {"event", event}, {"message", msg},
        };
        char stamp[32], scratch[24];
        int r;

        format_time(stamp, true);
        head[0][1] = stamp;
        r = buf_append(b, "{", 1);
        for (size_t i = 0; i < ARRAY_SIZE(head) && r == 0; i++)
                r = json_member(b, head[i][0], head[i][1]);
        for (const struct slog_field *f = fields; f->key && r == 0; f++)
                r = f->type == SLOG_T_INT ? json_number(b, f->key, f->num)
                                          : json_member(b, f->key, field_text(f, scratch));
        return r < 0 ? r : buf_append(b, "}\n", 2);
}

/* Control characters could move a terminal's cursor or forge a line; values with blanks are quoted. */
static int text_value(struct buf *b, const char *s)
{
        bool quote = *s == '\0' || strpbrk(s, " \"=");
        int r;

        r = quote ? buf_append(b, "\"", 1) : 0;
        for (; r == 0 && *s; s++) {
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        r = buf_append(b, "?", 1);
                else
                        r = buf_append(b, s, 1);
        }
        if (r == 0 && quote)
                r = buf_append(b, "\"", 1);
        return r;
}

/* "drain started broker=1 drain_id=x": what people read in the journal and on a terminal. */
static int render_sentence(struct buf *b, const char *msg, const struct slog_field *fields)
{
        char scratch[24];
        int r;

        r = buf_append_str(b, msg);
        for (const struct slog_field *f = fields; f->key && r == 0; f++) {
                if (f->type == SLOG_T_MESSAGE_ID)
                        continue;
                r = buf_printf(b, " %s=", f->key);
                if (r == 0)
                        r = text_value(b, field_text(f, scratch));
        }
        return r;
}

static int render_text(struct buf *b, enum slog_level lv, const char *event, const char *msg,
                       const struct slog_field *fields)
{
        char stamp[32];
        int r;

        format_time(stamp, false);
        r = buf_printf(b, "%s %-7s %s: ", stamp, level_names[lv], event);
        if (r == 0)
                r = render_sentence(b, msg, fields);
        return r < 0 ? r : buf_append(b, "\n", 1);
}

/* Journal field names are upper case, digits and '_', and must not begin with '_' or a digit. */
static int journal_key(struct buf *b, const char *key)
{
        int r = 0;

        if (!isalpha((unsigned char)*key))
                r = buf_append(b, "X_", 2);
        for (; r == 0 && *key; key++) {
                char c = isalnum((unsigned char)*key) ? (char)toupper((unsigned char)*key) : '_';

                r = buf_append(b, &c, 1);
        }
        return r < 0 ? r : buf_append(b, "=", 1);
}

struct journal_entry {
        struct buf text;             /* all fields one after the other */
        size_t ends[JOURNAL_FIELDS]; /* where each ends */
        struct iovec iov[JOURNAL_FIELDS];
        int n;
};

static int journal_add(struct journal_entry *e, const char *key, const char *value)
{
        int r;

        if (e->n == JOURNAL_FIELDS)
                return 0;
        r = journal_key(&e->text, key);
        if (r == 0)
                r = buf_append_str(&e->text, value);
        if (r < 0)
                return r;
        e->ends[e->n++] = e->text.len;
        return 0;
}

static int journal_add_fields(struct journal_entry *e, const struct slog_field *fields)
{
        char scratch[24];
        int r = 0;

        for (const struct slog_field *f = fields; f->key && r == 0; f++)
                r = journal_add(e, f->key, field_text(f, scratch));
        return r;
}

static int journal_send(struct journal_entry *e)
{
        size_t start = 0;

        for (int i = 0; i < e->n; start = e->ends[i++])
                e->iov[i] = (struct iovec){e->text.data + start, e->ends[i] - start};
        return sd_journal_sendv(e->iov, e->n);
}

static int emit_journal(enum slog_level lv, const char *event, const char *msg,
                        const struct slog_field *fields)
{
        cleanup_with(buf_donep) struct buf sentence = {.ceiling = EVENT_CEILING};
        struct journal_entry e = {.text = {.ceiling = 2 * EVENT_CEILING}};
        const char *text;
        char priority[2] = {(char)('0' + lv), '\0'};
        int r;

        r = render_sentence(&sentence, msg, fields);
        if (r < 0)
                return r;
        text = buf_cstr(&sentence);
        if (!text)
                return -ENOMEM;
        r = journal_add(&e, "MESSAGE", text);
        if (r == 0)
                r = journal_add(&e, "PRIORITY", priority);
        if (r == 0)
                r = journal_add(&e, "SYSLOG_IDENTIFIER", atomic_load(&identity));
        if (r == 0)
                r = journal_add(&e, "EVENT", event);
        if (r == 0)
                r = journal_add_fields(&e, fields);
        if (r == 0)
                r = journal_send(&e);
        buf_done(&e.text);
        return r;
}

static int emit_stream(enum format fmt, enum slog_level lv, const char *event, const char *msg,
                       const struct slog_field *fields)
{
        cleanup_with(buf_donep) struct buf b = {.ceiling = EVENT_CEILING};
        int r;

        r = fmt == FORMAT_TEXT ? render_text(&b, lv, event, msg, fields)
                               : render_json(&b, lv, event, msg, fields);
        if (r < 0)
                return r;
        while (write(STDERR_FILENO, b.data, b.len) < 0 && errno == EINTR)
                continue; /* any other failure: there is no place left to report it */
        return 0;
}

void slog_emit(enum slog_level lv, const char *event, const char *msg, const struct slog_field *fields)
{
        static const struct slog_field nothing = {.key = NULL};
        enum format fmt = (enum format)atomic_load(&format);
        int saved_errno = errno, r;

        if (fmt == FORMAT_UNKNOWN) {
                fmt = detect_format();
                atomic_store(&format, (int)fmt);
        }
        if (lv < SLOG_ERROR || lv > SLOG_DEBUG)
                lv = SLOG_ERROR;
        r = fmt == FORMAT_JOURNAL ? emit_journal(lv, event, msg, fields)
                                  : emit_stream(fmt, lv, event, msg, fields);
        if (r < 0 &&
            fields != &nothing) /* out of memory, too long, or no journal: at least say that it happened */
                (void)emit_stream(fmt == FORMAT_TEXT ? FORMAT_TEXT : FORMAT_JSON, lv, event, msg, &nothing);
        errno = saved_errno;
}

bool slog_gate_pass(struct slog_gate *g, int64_t now_ms, int64_t *ret_suppressed)
{
        if (now_ms < g->next_ms) {
                g->suppressed++;
                return false;
        }
        *ret_suppressed = g->suppressed;
        *g = (struct slog_gate){.next_ms = now_ms + 1000};
        return true;
}
