#include "log/checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/parse.h"

#define CHECKPOINT_VERSION 0
#define OVERWRITE_MAX      4096u        /* a page */
#define CHECKPOINT_MAX     (256u << 20) /* 10,000 partitions with the longest names are 2.7 MB */

struct lines {
        char *at, *end;
        int line;
};

/* The next line, NUL-terminated in place. NULL: no whole line is left. */
static char *next_line(struct lines *l)
{
        char *line = l->at, *nl = l->at == l->end ? NULL : memchr(l->at, '\n', (size_t)(l->end - l->at));

        l->line++;
        if (!nl)
                return NULL;
        *nl = '\0';
        l->at = nl + 1;
        return strlen(line) == (size_t)(nl - line) ? line : NULL; /* a NUL byte inside is no text */
}

/* Version and count. @min_line_bytes bounds the count by the bytes that are left. */
static int parse_head(struct lines *l, size_t min_line_bytes, int32_t *ret_count)
{
        char *version = next_line(l), *count = version ? next_line(l) : NULL;
        int32_t v, n;

        if (!count || parse_int32(version, CHECKPOINT_VERSION, CHECKPOINT_VERSION, &v) < 0)
                return -EBADMSG;
        if (parse_int32(count, 0, INT32_MAX, &n) < 0 || (size_t)n > (size_t)(l->end - l->at) / min_line_bytes)
                return -EBADMSG;
        *ret_count = n;
        return 0;
}

static int parse_offset_line(char *line, checkpoint_offset_fn fn, void *userdata)
{
        char *offset = strrchr(line, ' '), *partition;
        int64_t o;
        int32_t p;

        if (!offset)
                return -EBADMSG;
        *offset++ = '\0';
        partition = strrchr(line, ' ');
        if (!partition || partition == line)
                return -EBADMSG;
        *partition++ = '\0';
        if (parse_int32(partition, 0, INT32_MAX, &p) < 0 || parse_int64(offset, 0, INT64_MAX, &o) < 0)
                return -EBADMSG;
        return fn(line, p, o, userdata);
}

int checkpoint_parse_offsets(char *text, size_t len, checkpoint_offset_fn fn, void *userdata, int *ret_line)
{
        struct lines l = {.at = text, .end = text + len};
        int32_t n = 0;
        int r = parse_head(&l, strlen("t 0 0\n"), &n);

        for (int32_t i = 0; r == 0 && i < n; i++) {
                char *line = next_line(&l);

                r = line ? parse_offset_line(line, fn, userdata) : -EBADMSG;
        }
        if (r == 0 && l.at != l.end)
                r = -EBADMSG; /* more lines than announced */
        *ret_line = l.line;
        return r;
}

static int parse_epoch_line(char *line, struct epoch_cache *c)
{
        char *start = strchr(line, ' ');
        int64_t offset;
        int32_t epoch;
        int r;

        if (!start)
                return -EBADMSG;
        *start++ = '\0';
        if (parse_int32(line, 0, INT32_MAX, &epoch) < 0 || parse_int64(start, 0, INT64_MAX, &offset) < 0)
                return -EBADMSG;
        if (c->n > 0 && (epoch <= c->entries[c->n - 1].epoch || offset <= c->entries[c->n - 1].start_offset))
                return -EBADMSG;
        r = epoch_cache_assign(c, epoch, offset);
        return r < 0 ? r : 0;
}

int checkpoint_parse_epochs(char *text, size_t len, struct epoch_cache *ret, int *ret_line)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache c = {0};
        struct lines l = {.at = text, .end = text + len};
        int32_t n = 0;
        int r = parse_head(&l, strlen("0 0\n"), &n);

        for (int32_t i = 0; r == 0 && i < n; i++) {
                char *line = next_line(&l);

                r = line ? parse_epoch_line(line, &c) : -EBADMSG;
        }
        if (r == 0 && l.at != l.end)
                r = -EBADMSG;
        *ret_line = l.line;
        if (r < 0)
                return r;
        *ret = c;
        c = (struct epoch_cache){0};
        return 0;
}

int checkpoint_read_offsets(const char *path, checkpoint_offset_fn fn, void *userdata, int *ret_line)
{
        cleanup_with(buf_donep) struct buf text = {0};
        int r;

        buf_init(&text, 0);
        r = fs_read_file(path, CHECKPOINT_MAX, &text);
        if (r < 0)
                return r;
        return checkpoint_parse_offsets((char *)text.data, text.len, fn, userdata, ret_line);
}

int checkpoint_read_epochs(const char *path, struct epoch_cache *ret)
{
        cleanup_with(buf_donep) struct buf text = {0};
        int r, line;

        buf_init(&text, 0);
        r = fs_read_file(path, CHECKPOINT_MAX, &text);
        if (r < 0)
                return r;
        return checkpoint_parse_epochs((char *)text.data, text.len, ret, &line);
}

int checkpoint_begin(struct buf *out, size_t n)
{
        return buf_printf(out, "%d\n%zu\n", CHECKPOINT_VERSION, n);
}

int checkpoint_add_offset(struct buf *out, const char *topic, int32_t partition, int64_t offset)
{
        return buf_printf(out, "%s %" PRId32 " %" PRId64 "\n", topic, partition, offset);
}

static int write_new(const char *path, const void *data, size_t len)
{
        cleanup_with(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        if (fd < 0)
                return -errno;
        return fs_write_full(fd, data, len);
}

int checkpoint_replace_unsynced(const char *path, const void *data, size_t len)
{
        char tmp[PATH_MAX];
        int r;

        if (snprintf(tmp, sizeof(tmp), "%s.tmp", path) >= (int)sizeof(tmp))
                return -ENAMETOOLONG;
        r = write_new(tmp, data, len);
        if (r == 0 && rename(tmp, path) < 0)
                r = -errno;
        if (r < 0)
                (void)unlink(tmp); /* the first error is the one to report */
        return r;
}

/* Over the old text: a new file and a rename a partition, thousands of times in the second in which a
 * neighbour hands its leaderships over, would be most of that second. A killed process cannot tear one write
 * into one page; what a power loss leaves of it is either text or damaged, and damaged it is made again from
 * the log. false: it does not fit, or there is no file yet. */
static bool overwrite(const char *path, const void *data, size_t len)
{
        cleanup_with(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || len > OVERWRITE_MAX || fstat(fd, &st) < 0 || st.st_size > (off_t)len)
                return false;
        return pwrite(fd, data, len, 0) == (ssize_t)len;
}

int checkpoint_write_epochs(const char *path, const struct epoch_cache *c)
{
        cleanup_with(buf_donep) struct buf text = {0};
        int r;

        buf_init(&text, 0);
        r = checkpoint_begin(&text, c->n);
        for (size_t i = 0; r == 0 && i < c->n; i++)
                r = buf_printf(&text, "%" PRId32 " %" PRId64 "\n", c->entries[i].epoch,
                               c->entries[i].start_offset);
        if (r < 0)
                return r;
        if (overwrite(path, text.data, text.len))
                return 0;
        return checkpoint_replace_unsynced(path, text.data, text.len);
}
