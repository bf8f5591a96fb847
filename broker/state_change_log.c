/* One mutex, one append a call; the size is counted, not asked for. */
#include "state_change_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/metrics.h"
#include "base/slog.h"

#define ROTATE_BYTES (INT64_C(64) * 1024 * 1024)

static struct metric lines_dropped = {.type = METRIC_T_COUNTER,
                                      .name = "stepdown_state_change_lines_dropped_total",
                                      .help = "Lines that could not be written to the state-change log"};

struct state_change_log {
        char *path;
        int32_t broker_id;
        int fd;
        int64_t size;
        bool failing; /* said once, until a write succeeds again */
        pthread_mutex_t lock;
};

static int open_file(struct state_change_log *s)
{
        struct stat st;

        s->fd = open(s->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
        if (s->fd < 0 || fstat(s->fd, &st) < 0)
                return -errno;
        s->size = st.st_size;
        return 0;
}

static void rotate(struct state_change_log *s)
{
        cleanup_with(freep) char *old = NULL;

        if (s->size < ROTATE_BYTES || asprintf(&old, "%s.1", s->path) < 0)
                return;
        closep(&s->fd);
        s->fd = -1;
        (void)rename(s->path, old); /* a failure leaves one file that goes on growing */
        (void)open_file(s);
}

/* "[2026-01-31 12:00:00,123] INFO [Broker id=1] …": the stamp is what the merge sorts by. */
static int format_lines(const struct state_change_log *s, const char *role, const char *lines, struct buf *b)
{
        int64_t now = clock_real_ms();
        time_t seconds = (time_t)(now / 1000);
        char stamp[32], head[96];
        struct tm tm;
        int r = 0;

        if (!gmtime_r(&seconds, &tm) || strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm) == 0)
                return -EINVAL;
        (void)snprintf(head, sizeof(head), "[%s,%03d] INFO [%s id=%d] ", stamp, (int)(now % 1000), role,
                       s->broker_id);
        while (r == 0 && lines) {
                const char *end = strchrnul(lines, '\n');

                r = buf_append_str(b, head);
                if (r == 0)
                        r = buf_append(b, lines, (size_t)(end - lines));
                if (r == 0)
                        r = buf_append_str(b, " (state.change.logger)\n");
                lines = *end ? end + 1 : NULL;
        }
        return r;
}

void state_change_log_write(struct state_change_log *s, const char *role, const char *lines)
{
        cleanup_with(buf_donep) struct buf b = {0};
        int r;

        buf_init(&b, 0);
        r = format_lines(s, role, lines, &b);
        pthread_mutex_lock(&s->lock);
        rotate(s);
        if (r == 0 && s->fd < 0)
                r = open_file(s);
        if (r == 0 && s->failing) /* what the last write has left, if anything, is no line */
                r = fs_write_full(s->fd, "\n", 1);
        if (r == 0)
                r = fs_write_full(s->fd, b.data, b.len);
        if (r < 0) {
                metric_add(&lines_dropped, 1);
                if (!s->failing)
                        slog_warning("state-change-log-failed",
                                     "the state-change log cannot be written; lines are dropped until it can",
                                     SL_STR("path", s->path), SL_ERR(r));
        } else {
                s->size += (int64_t)b.len;
        }
        s->failing = r < 0;
        pthread_mutex_unlock(&s->lock);
}

int state_change_log_open(const char *path, int32_t broker_id, struct state_change_log **ret)
{
        cleanup_with(state_change_log_freep) struct state_change_log *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->fd = -1;
        s->broker_id = broker_id;
        (void)pthread_mutex_init(&s->lock, NULL);
        s->path = strdup(path);
        if (!s->path)
                return -ENOMEM;
        r = open_file(s);
        if (r < 0)
                return r;
        metrics_register(&lines_dropped);
        *ret = TAKE_PTR(s);
        return 0;
}

struct state_change_log *state_change_log_free(struct state_change_log *s)
{
        if (!s)
                return NULL;
        closep(&s->fd);
        (void)pthread_mutex_destroy(&s->lock);
        free(s->path);
        free(s);
        return NULL;
}
