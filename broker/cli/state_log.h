/* Lines of state-change logs (R52, R63): which of them say what happened to a partition and when, and several
 * files merged in order of time.
 *
 * A line counts when it has a timestamp, "2013-04-01 10:00:00,123" anywhere in it, and a "[topic,partition]";
 * others (what continues a stack trace) are dropped. The first of each is taken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#define STATE_LOG_TIME_LEN  23
#define STATE_LOG_TEXT_SIZE 512

struct state_change {
        const char *file; /* its path */
        const char *line; /* without its newline; not NUL-terminated */
        size_t len;
        const char *time;  /* STATE_LOG_TIME_LEN bytes inside the line */
        const char *topic; /* inside the line */
        size_t topic_len;
        int64_t partition;
};

struct state_log_filter {
        const char *topic;         /* NULL: all */
        const int32_t *partitions; /* n_partitions 0: all */
        size_t n_partitions;
        char start[STATE_LOG_TIME_LEN + 1], end[STATE_LOG_TIME_LEN + 1]; /* inclusive */
};

/* false: the line says nothing of a partition. */
bool state_log_parse(const char *line, size_t len, struct state_change *ret);
bool state_log_wanted(const struct state_log_filter *f, const struct state_change *c);
/* "2013-04-01 10:00" to 23 characters, what is missing taken from @rest, a whole timestamp. -EINVAL. */
int state_log_time(const char *text, const char *rest, char ret[STATE_LOG_TIME_LEN + 1]) must_check;

/* Call @fn for every wanted line of the files, earliest first, equal times in the order of the files. Each
 * file is taken to be in order in itself. Holds one line a file in memory; lines longer than 1 MiB are
 * dropped. All files are opened before the first call. -errno and a sentence when one cannot be read; else
 * what @fn returned if that was not 0. */
typedef int (*state_log_fn)(const struct state_change *c, void *userdata);
int state_log_merge(const char *const *paths, size_t n, const struct state_log_filter *f, state_log_fn fn,
                    void *userdata, char error[STATE_LOG_TEXT_SIZE]) must_check;
