#include "log/log_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "log/segment.h"

#define OFFSET_DIGITS 20

enum file_kind { FILE_OTHER, FILE_LOG, FILE_INDEX, FILE_TIMEINDEX, FILE_SNAPSHOT, FILE_LEFTOVER };

static const struct {
        const char *suffix;
        enum file_kind kind;
} KINDS[] = {
        {SEGMENT_SUFFIX_LOG, FILE_LOG},
        {SEGMENT_SUFFIX_INDEX, FILE_INDEX},
        {SEGMENT_SUFFIX_TIMEINDEX, FILE_TIMEINDEX},
        {LOG_SUFFIX_SNAPSHOT, FILE_SNAPSHOT},
};

static const char *const LEFTOVERS[] = {SEGMENT_SUFFIX_DELETED, ".cleaned", ".tmp"};

static bool ends_with(const char *name, const char *suffix)
{
        size_t n = strlen(name), k = strlen(suffix);

        return n >= k && strcmp(name + n - k, suffix) == 0;
}

static enum file_kind file_kind(const char *name, int64_t *ret_offset)
{
        int64_t offset = 0;

        for (size_t i = 0; i < ARRAY_SIZE(LEFTOVERS); i++)
                if (ends_with(name, LEFTOVERS[i]))
                        return FILE_LEFTOVER;
        for (size_t i = 0; i < OFFSET_DIGITS; i++) {
                if (name[i] < '0' || name[i] > '9')
                        return FILE_OTHER;
                if (__builtin_mul_overflow(offset, 10, &offset) ||
                    __builtin_add_overflow(offset, name[i] - '0', &offset))
                        return FILE_OTHER;
        }
        *ret_offset = offset;
        for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++)
                if (strcmp(name + OFFSET_DIGITS, KINDS[i].suffix) == 0)
                        return KINDS[i].kind;
        return FILE_OTHER;
}

struct collected { /* every numbered file, in the order of the directory */
        struct {
                int64_t offset;
                enum file_kind kind;
        } * items;
        size_t n, cap;
};

static int collect(struct collected *c, int64_t offset, enum file_kind kind)
{
        if (c->n == c->cap) {
                size_t cap = c->cap == 0 ? 16 : c->cap * 2;
                void *grown = realloc(c->items, cap * sizeof(*c->items));

                if (!grown)
                        return -ENOMEM;
                c->items = grown;
                c->cap = cap;
        }
        c->items[c->n].offset = offset;
        c->items[c->n++].kind = kind;
        return 0;
}

static int by_offset(const void *a, const void *b)
{
        /* Both kinds of element begin with their offset. */
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return x < y ? -1 : x > y;
}

static void closedirp(DIR **d)
{
        if (*d)
                (void)closedir(*d);
}

static int read_names(const char *dir, struct collected *c, size_t *ret_leftovers)
{
        cleanup_with(closedirp) DIR *d = opendir(dir);
        struct dirent *e;
        size_t leftovers = 0;

        if (!d)
                return -errno;
        for (errno = 0; (e = readdir(d)); errno = 0) {
                int64_t offset;
                enum file_kind kind = file_kind(e->d_name, &offset);
                int r = 0;

                if (kind == FILE_LEFTOVER)
                        leftovers++;
                else if (kind != FILE_OTHER)
                        r = collect(c, offset, kind);
                if (r < 0)
                        return r;
        }
        *ret_leftovers = leftovers;
        return -errno;
}

static void mark_index(struct log_dir_listing *l, int64_t offset, enum file_kind kind)
{
        struct log_dir_file key = {.base_offset = offset}, *f = NULL;

        if (l->n_segments > 0)
                f = bsearch(&key, l->segments, l->n_segments, sizeof(key), by_offset);
        if (!f)
                l->n_leftovers++;
        else if (kind == FILE_INDEX)
                f->has_index = true;
        else
                f->has_timeindex = true;
}

int log_dir_list(const char *dir, struct log_dir_listing *ret)
{
        cleanup_with(log_dir_listing_donep) struct log_dir_listing l = {0};
        struct collected c = {0};
        int r = read_names(dir, &c, &l.n_leftovers);

        if (r == 0) {
                l.segments = calloc(c.n + 1, sizeof(*l.segments));
                l.snapshots = calloc(c.n + 1, sizeof(*l.snapshots));
                r = l.segments && l.snapshots ? 0 : -ENOMEM;
        }
        for (size_t i = 0; r == 0 && i < c.n; i++) {
                if (c.items[i].kind == FILE_LOG)
                        l.segments[l.n_segments++].base_offset = c.items[i].offset;
                else if (c.items[i].kind == FILE_SNAPSHOT)
                        l.snapshots[l.n_snapshots++] = c.items[i].offset;
        }
        if (r == 0) {
                qsort(l.segments, l.n_segments, sizeof(*l.segments), by_offset);
                qsort(l.snapshots, l.n_snapshots, sizeof(*l.snapshots), by_offset);
        }
        for (size_t i = 0; r == 0 && i < c.n; i++)
                if (c.items[i].kind == FILE_INDEX || c.items[i].kind == FILE_TIMEINDEX)
                        mark_index(&l, c.items[i].offset, c.items[i].kind);
        free(c.items);
        if (r < 0)
                return r;
        *ret = l;
        l = (struct log_dir_listing){0};
        return 0;
}

void log_dir_listing_done(struct log_dir_listing *l)
{
        free(l->segments);
        free(l->snapshots);
        *l = (struct log_dir_listing){0};
}

static bool has_segment(const struct log_dir_listing *l, int64_t offset)
{
        struct log_dir_file key = {.base_offset = offset};

        return l->n_segments > 0 && bsearch(&key, l->segments, l->n_segments, sizeof(key), by_offset);
}

int log_dir_clean(const char *dir)
{
        cleanup_with(log_dir_listing_donep) struct log_dir_listing l = {0};
        cleanup_with(closedirp) DIR *d = NULL;
        struct dirent *e;
        int r = log_dir_list(dir, &l);

        if (r < 0)
                return r;
        d = opendir(dir);
        if (!d)
                return -errno;
        for (errno = 0; (e = readdir(d)); errno = 0) {
                int64_t offset;
                enum file_kind kind = file_kind(e->d_name, &offset);
                bool orphan = (kind == FILE_INDEX || kind == FILE_TIMEINDEX) && !has_segment(&l, offset);

                if ((kind == FILE_LEFTOVER || orphan) && unlinkat(dirfd(d), e->d_name, 0) < 0)
                        return -errno;
        }
        return -errno;
}

int log_dir_remove(const char *dir)
{
        cleanup_with(closedirp) DIR *d = opendir(dir);
        struct dirent *e;

        if (!d)
                return -errno;
        for (errno = 0; (e = readdir(d)); errno = 0) {
                if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
                        continue;
                if (unlinkat(dirfd(d), e->d_name, 0) < 0)
                        return -errno;
        }
        if (errno != 0)
                return -errno;
        return rmdir(dir) < 0 ? -errno : 0;
}
