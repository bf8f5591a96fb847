/* Structured diagnostics: one event, its fields, one line for people. Any thread.
 *
 * Under systemd (JOURNAL_STREAM is stderr) each event goes to the journal with its fields; on a terminal
 * as text; otherwise as one JSON object a line on stderr. Event names ("drain-started") are stable and
 * documented in docs/events.md; the field MESSAGE is for people.
 *
 *     slog_info("drain-started", "drain started", SL_INT("broker", id), SL_STR("drain_id", d));
 */
#pragma once

#include <stdint.h>

#include "base/util.h"

enum slog_level { SLOG_ERROR = 3, SLOG_WARNING = 4, SLOG_NOTICE = 5, SLOG_INFO = 6, SLOG_DEBUG = 7 };

struct slog_field {
        const char *key; /* NULL ends the list */
        enum { SLOG_T_STR, SLOG_T_INT, SLOG_T_ERRNO, SLOG_T_MESSAGE_ID } type;
        const char *str;
        int64_t num;
};

#define SL_STR(k, v)                                                                                         \
        (struct slog_field)                                                                                  \
        {                                                                                                    \
                .key = (k), .type = SLOG_T_STR, .str = (v)                                                   \
        }
#define SL_INT(k, v)                                                                                         \
        (struct slog_field)                                                                                  \
        {                                                                                                    \
                .key = (k), .type = SLOG_T_INT, .num = (int64_t)(v)                                          \
        }
/* @v: negative errno; printed by name. */
#define SL_ERR(v)                                                                                            \
        (struct slog_field)                                                                                  \
        {                                                                                                    \
                .key = "error", .type = SLOG_T_ERRNO, .num = (int64_t)(v)                                    \
        }
/* A 128-bit journal MESSAGE_ID as 32 hex digits. */
#define SL_MESSAGE_ID(hex)                                                                                   \
        (struct slog_field)                                                                                  \
        {                                                                                                    \
                .key = "MESSAGE_ID", .type = SLOG_T_MESSAGE_ID, .str = (hex)                                 \
        }

#define slog_error(event, msg, ...)   SLOG_(SLOG_ERROR, event, msg, ##__VA_ARGS__)
#define slog_warning(event, msg, ...) SLOG_(SLOG_WARNING, event, msg, ##__VA_ARGS__)
#define slog_notice(event, msg, ...)  SLOG_(SLOG_NOTICE, event, msg, ##__VA_ARGS__)
#define slog_info(event, msg, ...)    SLOG_(SLOG_INFO, event, msg, ##__VA_ARGS__)
#define slog_debug(event, msg, ...)   SLOG_(SLOG_DEBUG, event, msg, ##__VA_ARGS__)
#define SLOG_(level, event, msg, ...)                                                                        \
        do {                                                                                                 \
                if ((level) <= slog_level_now())                                                             \
                        slog_emit(level, event, msg,                                                         \
                                  (const struct slog_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}});     \
        } while (0)

/* @ident: program name. Level from the environment variable STEPDOWN_LOG_LEVEL (error … debug), default info.
 */
void slog_init(const char *ident);
void slog_set_level(enum slog_level level);
enum slog_level slog_level_now(void);
/* @msg: a plain sentence, no format; the fields carry the values. */
void slog_emit(enum slog_level level, const char *event, const char *msg, const struct slog_field *fields);

/* Lets one event a second through, so that a hostile peer cannot fill the journal. Zeroed: open. On one
 * thread, or under its owner's lock. */
struct slog_gate {
        int64_t next_ms, suppressed;
};
/* @now_ms: CLOCK_MONOTONIC. true: say it, and that *ret_suppressed like it were not said since the last. */
bool slog_gate_pass(struct slog_gate *g, int64_t now_ms, int64_t *ret_suppressed);
