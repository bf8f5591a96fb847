#include "cli/state_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/fs.h"

#define MAX_LINE_BYTES ((size_t)1 << 20)
#define READ_BYTES     ((size_t)64 << 10)

/* --- one line --- */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* Is @s, of at least STATE_LOG_TIME_LEN bytes, a timestamp? 'd' stands for a digit. */
static bool is_time(const char *s)
{
        static const char form[] = "dddd-dd-dd dd:dd:dd,ddd";

        for (size_t i = 0; i < STATE_LOG_TIME_LEN; i++)
                if (form[i] == 'd' ? !is_digit(s[i]) : s[i] != form[i])
                        return false;
        return true;
}

static const char *find_time(const char *line, size_t len)
{
        for (size_t i = 0; i + STATE_LOG_TIME_LEN <= len; i++)
                if (is_digit(line[i]) && is_time(line + i))
                        return line + i;
        return NULL;
}

static bool is_legal(char c)
{
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
               c == '-';
}

/* @s stands behind a '['. */
static bool parse_partition(const char *s, const char *end, struct state_change *ret)
{
        const char *topic = s;
        int64_t partition = 0;
        size_t topic_len;

        while (s < end && is_legal(*s))
                s++;
        topic_len = (size_t)(s - topic);
        if (topic_len == 0 || s == end || *s++ != ',')
                return false;
        while (s < end && *s == ' ')
                s++;
        if (s == end || !is_digit(*s))
                return false;
        for (; s < end && is_digit(*s); s++)
                partition =
                        MIN(partition * 10 + (*s - '0'), (int64_t)INT32_MAX + 1); /* more is none of ours */
        if (s == end || *s != ']')
                return false;
        ret->topic = topic;
        ret->topic_len = topic_len;
        ret->partition = partition;
        return true;
}

bool state_log_parse(const char *line, size_t len, struct state_change *ret)
{
        struct state_change c = {.line = line, .len = len, .time = find_time(line, len)};
        const char *end = line + len, *p = c.time ? line : NULL;

        while (p && (p = memchr(p, '[', (size_t)(end - p)))) {
                if (parse_partition(++p, end, &c)) {
                        *ret = c;
                        return true;
                }
        }
        return false;
}

bool state_log_wanted(const struct state_log_filter *f, const struct state_change *c)
{
        bool listed = f->n_partitions == 0;

        if (memcmp(c->time, f->start, STATE_LOG_TIME_LEN) < 0 ||
            memcmp(c->time, f->end, STATE_LOG_TIME_LEN) > 0)
                return false;
        if (f->topic && (strlen(f->topic) != c->topic_len || memcmp(f->topic, c->topic, c->topic_len) != 0))
                return false;
        for (size_t i = 0; !listed && i < f->n_partitions; i++)
                listed = f->partitions[i] == c->partition;
        return listed;
}

int state_log_time(const char *text, const char *rest, char ret[STATE_LOG_TIME_LEN + 1])
{
        size_t len = strlen(text);
        char whole[STATE_LOG_TIME_LEN + 1];

        if (len == 0 || len > STATE_LOG_TIME_LEN)
                return -EINVAL;
        memcpy(whole, text, len);
        memcpy(whole + len, rest + len, STATE_LOG_TIME_LEN + 1 - len);
        if (!is_time(whole))
                return -EINVAL;
        memcpy(ret, whole, sizeof(whole));
        return 0;
}

/* --- one file: its next wanted line --- */

struct source {
        const char *path;
        int fd;
        struct buf in;      /* read and not yet consumed; the current line is its beginning */
        size_t line_len;    /* of the current line, its newline included; 0: none */
        bool eof, skipping; /* in the middle of a line that is too long */
        struct state_change now;
};

static int refill(struct source *s)
{
        ssize_t n;
        int r;

        r = buf_reserve(&s->in, READ_BYTES);
        if (r < 0)
                return r;
        do
                n = read(s->fd, s->in.data + s->in.len, READ_BYTES);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return -errno;
        s->in.len += (size_t)n;
        s->eof = n == 0;
        return 0;
}

/* Bring a whole line to the front of s->in, its length in *ret (newline included); 0 at the end. */
static int next_line(struct source *s, size_t *ret)
{
        size_t seen = 0;
        int r;

        for (;;) {
                const char *nl = s->in.len > seen ? memchr(s->in.data + seen, '\n', s->in.len - seen) : NULL;

                if (nl) {
                        *ret = (size_t)(nl - (const char *)s->in.data) + 1;
                        return 0;
                }
                seen = s->in.len;
                if (s->eof) {
                        *ret = s->in.len; /* a last line without a newline */
                        return 0;
                }
                if (s->in.len > MAX_LINE_BYTES) {
                        s->skipping = true;
                        buf_consume(&s->in, s->in.len);
                        seen = 0;
                }
                r = refill(s);
                if (r < 0)
                        return r;
        }
}

static size_t without_newline(const struct source *s, size_t len)
{
        while (len > 0 && (s->in.data[len - 1] == '\n' || s->in.data[len - 1] == '\r'))
                len--;
        return len;
}

/* 1: s->now is the next wanted line; 0: the file has ended; -errno. */
static int advance(struct source *s, const struct state_log_filter *f)
{
        for (;;) {
                bool skip;
                int r;

                buf_consume(&s->in, s->line_len);
                s->line_len = 0;
                r = next_line(s, &s->line_len);
                if (r < 0 || s->line_len == 0)
                        return r;
                skip = s->skipping; /* the tail of a line that was too long */
                s->skipping = false;
                if (skip ||
                    !state_log_parse((const char *)s->in.data, without_newline(s, s->line_len), &s->now))
                        continue;
                s->now.file = s->path;
                if (state_log_wanted(f, &s->now))
                        return 1;
        }
}

/* --- all of them: a heap of the files' next lines --- */

struct merge {
        struct source *sources;
        size_t n_sources;
        struct source **heap;
        size_t n;
};

static bool before(const struct source *a, const struct source *b)
{
        int c = memcmp(a->now.time, b->now.time, STATE_LOG_TIME_LEN);

        return c < 0 || (c == 0 && a < b); /* sources stand in the order of the files */
}

static void sift_down(struct merge *m, size_t at)
{
        for (;;) {
                size_t least = at;

                for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < m->n; child++)
                        if (before(m->heap[child], m->heap[least]))
                                least = child;
                if (least == at)
                        return;
                struct source *s = m->heap[at];

                m->heap[at] = m->heap[least];
                m->heap[least] = s;
                at = least;
        }
}

static int fail(const struct source *s, int r, char error[STATE_LOG_TEXT_SIZE])
{
        (void)snprintf(error, STATE_LOG_TEXT_SIZE, "%.300s: %s", s->path, strerror(-r));
        return r;
}

static int open_all(struct merge *m, const char *const *paths, size_t n, char error[STATE_LOG_TEXT_SIZE])
{
        struct rlimit files;

        /* A year of logs of many brokers is more than the usual 1024 files. */
        if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < n + 32) {
                files.rlim_cur = files.rlim_max;
                (void)setrlimit(RLIMIT_NOFILE, &files); /* open() will say when it is not enough */
        }
        m->sources = calloc(n + 1, sizeof(*m->sources));
        m->heap = calloc(n + 1, sizeof(struct source *));
        if (!m->sources || !m->heap)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct source *s = &m->sources[m->n_sources++];

                s->path = paths[i];
                buf_init(&s->in, 0);
                s->fd = open(paths[i], O_RDONLY | O_CLOEXEC);
                if (s->fd < 0)
                        return fail(s, -errno, error);
        }
        return 0;
}

static void close_all(struct merge *m)
{
        for (size_t i = 0; i < m->n_sources; i++) {
                closep(&m->sources[i].fd);
                buf_done(&m->sources[i].in);
        }
        free(m->sources);
        free(m->heap);
}

static int fill_heap(struct merge *m, const struct state_log_filter *f, char error[STATE_LOG_TEXT_SIZE])
{
        for (size_t i = 0; i < m->n_sources; i++) {
                int r = advance(&m->sources[i], f);

                if (r < 0)
                        return fail(&m->sources[i], r, error);
                if (r > 0)
                        m->heap[m->n++] = &m->sources[i];
        }
        for (size_t i = m->n / 2; i-- > 0;)
                sift_down(m, i);
        return 0;
}

static int drain_heap(struct merge *m, const struct state_log_filter *f, state_log_fn fn, void *userdata,
                      char error[STATE_LOG_TEXT_SIZE])
{
        while (m->n > 0) {
                struct source *s = m->heap[0];
                int r = fn(&s->now, userdata);

                if (r != 0)
                        return r;
                r = advance(s, f);
                if (r < 0)
                        return fail(s, r, error);
                if (r == 0)
                        m->heap[0] = m->heap[--m->n];
                sift_down(m, 0);
        }
        return 0;
}

int state_log_merge(const char *const *paths, size_t n, const struct state_log_filter *f, state_log_fn fn,
                    void *userdata, char error[STATE_LOG_TEXT_SIZE])
{
        struct merge m = {0};
        int r;

        error[0] = '\0';
        r = open_all(&m, paths, n, error);
        if (r == 0)
                r = fill_heap(&m, f, error);
        if (r == 0)
                r = drain_heap(&m, f, fn, userdata, error);
        close_all(&m);
        return r;
}
