/* Entry i is in memory when i >= tail_first, else in the file. The tail holds at most TAIL_MAX entries; a
 * full one is written out and its older half dropped, so that readers near the end do not touch the file. */
#include "log/sparse_index.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"

#define TAIL_MAX  128
#define TAIL_KEEP 64

struct entry { /* of either kind; @key: what the index is searched by */
        int64_t key;
        int32_t offset, position;
};

static struct entry entry_decode(const struct sparse_index *x, const uint8_t *p)
{
        struct entry e = {0};
        uint64_t timestamp;
        uint32_t v[2];

        if (x->entry_size == OFFSET_INDEX_ENTRY) {
                memcpy(v, p, 8);
                e.offset = (int32_t)be32toh(v[0]);
                e.position = (int32_t)be32toh(v[1]);
                e.key = e.offset;
                return e;
        }
        memcpy(&timestamp, p, 8);
        memcpy(v, p + 8, 4);
        e.key = (int64_t)be64toh(timestamp);
        e.offset = (int32_t)be32toh(v[0]);
        return e;
}

static void entry_encode(const struct sparse_index *x, const struct entry *e, uint8_t *p)
{
        uint32_t offset = htobe32((uint32_t)e->offset), position = htobe32((uint32_t)e->position);
        uint64_t timestamp = htobe64((uint64_t)e->key);

        if (x->entry_size == OFFSET_INDEX_ENTRY) {
                memcpy(p, &offset, 4);
                memcpy(p + 4, &position, 4);
        } else {
                memcpy(p, &timestamp, 8);
                memcpy(p + 8, &offset, 4);
        }
}

static uint8_t *tail_at(const struct sparse_index *x, uint32_t i)
{
        return x->tail + (size_t)(i - x->tail_first) * x->entry_size;
}

/* Entry @i; @fd is opened on the first entry that is not in memory and left to the caller to close. */
static int entry_at(const struct sparse_index *x, const char *path, int *fd, uint32_t i, struct entry *ret)
{
        uint8_t raw[TIME_INDEX_ENTRY];
        int r;

        assert(i < x->n);
        if (i >= x->tail_first) {
                *ret = entry_decode(x, tail_at(x, i));
                return 0;
        }
        if (*fd < 0)
                *fd = open(path, O_RDONLY | O_CLOEXEC);
        if (*fd < 0)
                return -errno;
        r = fs_pread_full(*fd, raw, x->entry_size, (int64_t)i * x->entry_size);
        if (r < 0)
                return r;
        *ret = entry_decode(x, raw);
        return 0;
}

void sparse_index_init(struct sparse_index *x, uint8_t entry_size)
{
        *x = (struct sparse_index){.entry_size = entry_size};
}

void sparse_index_done(struct sparse_index *x)
{
        free(x->tail);
        sparse_index_init(x, x->entry_size);
}

static int last_entry(struct sparse_index *x, const char *path, struct entry *ret)
{
        cleanup_with(closep) int fd = -1;
        int r = sparse_index_load(x, path);

        if (r < 0)
                return r;
        return x->n == 0 ? -ENOENT : entry_at(x, path, &fd, x->n - 1, ret);
}

int sparse_index_load(struct sparse_index *x, const char *path)
{
        struct entry last = {0};
        struct stat st;
        int r;

        if (x->loaded)
                return 0;
        if (stat(path, &st) < 0)
                return -errno;
        if (st.st_size % x->entry_size != 0 || st.st_size / x->entry_size > INT32_MAX)
                return -EBADMSG;
        x->n = x->n_written = x->tail_first = (uint32_t)(st.st_size / x->entry_size);
        x->loaded = true;
        r = x->n == 0 ? 0 : last_entry(x, path, &last);
        if (r == 0 && (last.offset < 0 || last.position < 0 || (x->n > 1 && last.key == 0)))
                r = -EBADMSG; /* zeros at the end: the size reached the disk and the bytes did not */
        if (r < 0)
                sparse_index_done(x);
        return r;
}

int sparse_index_reset(struct sparse_index *x, const char *path)
{
        sparse_index_done(x);
        x->loaded = true;
        return truncate(path, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int sparse_index_write(struct sparse_index *x, const char *path)
{
        cleanup_with(closep) int fd = -1;
        int r;

        if (!x->loaded || x->n_written == x->n)
                return 0;
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        r = fs_pwrite_full(fd, tail_at(x, x->n_written), (size_t)(x->n - x->n_written) * x->entry_size,
                           (int64_t)x->n_written * x->entry_size);
        if (r < 0)
                return r;
        if (ftruncate(fd, (off_t)x->n * x->entry_size) < 0)
                return -errno;
        x->n_written = x->n;
        return 0;
}

/* Make room for one more entry in the tail. False: the entry has to be dropped. */
static bool make_room(struct sparse_index *x, const char *path)
{
        uint32_t drop;

        if (!x->tail)
                x->tail = malloc((size_t)TAIL_MAX * x->entry_size);
        if (!x->tail)
                return false;
        if (x->n - x->tail_first < TAIL_MAX)
                return true;
        if (sparse_index_write(x, path) < 0)
                return false;
        drop = TAIL_MAX - TAIL_KEEP;
        memmove(x->tail, x->tail + (size_t)drop * x->entry_size, (size_t)TAIL_KEEP * x->entry_size);
        x->tail_first += drop;
        return true;
}

static void append(struct sparse_index *x, const char *path, const struct entry *e)
{
        struct entry last = {0};
        int r = last_entry(x, path, &last);

        if (r == -ENOENT && !x->loaded)
                x->loaded = true; /* no file yet */
        else if (r < 0 && r != -ENOENT)
                return;
        else if (r == 0 && (e->key <= last.key || e->offset <= last.offset))
                return;
        if (!make_room(x, path))
                return;
        entry_encode(x, e, tail_at(x, x->n));
        x->n++;
}

void offset_index_append(struct sparse_index *x, const char *path, int32_t offset, int32_t position)
{
        append(x, path, &(struct entry){.key = offset, .offset = offset, .position = position});
}

void time_index_append(struct sparse_index *x, const char *path, int64_t timestamp, int32_t offset)
{
        append(x, path, &(struct entry){.key = timestamp, .offset = offset});
}

/* Number of entries whose key (or offset, if @by_offset) is <= @target. */
static int count_upto(struct sparse_index *x, const char *path, bool by_offset, int64_t target, uint32_t *ret,
                      struct entry *ret_floor)
{
        cleanup_with(closep) int fd = -1;
        uint32_t low = 0, high;
        int r = sparse_index_load(x, path);

        if (r < 0)
                return r;
        high = x->n;
        while (low < high) {
                uint32_t middle = low + (high - low) / 2;
                struct entry e = {0};

                r = entry_at(x, path, &fd, middle, &e);
                if (r < 0)
                        return r;
                if ((by_offset ? e.offset : e.key) <= target) {
                        *ret_floor = e;
                        low = middle + 1;
                } else {
                        high = middle;
                }
        }
        *ret = low;
        return 0;
}

int offset_index_floor(struct sparse_index *x, const char *path, int32_t offset, int32_t *ret_position)
{
        struct entry e = {0};
        uint32_t n;
        int r = count_upto(x, path, true, offset, &n, &e);

        if (r < 0)
                return r;
        *ret_position = n == 0 ? 0 : e.position;
        return 0;
}

int time_index_floor(struct sparse_index *x, const char *path, int64_t timestamp, int64_t *ret_timestamp,
                     int32_t *ret_offset)
{
        struct entry e = {0};
        uint32_t n;
        int r = count_upto(x, path, false, timestamp, &n, &e);

        if (r < 0)
                return r;
        if (n == 0)
                return -ENOENT;
        *ret_timestamp = e.key;
        *ret_offset = e.offset;
        return 0;
}

int offset_index_last(struct sparse_index *x, const char *path, int32_t *ret_offset, int32_t *ret_position)
{
        struct entry e = {0};
        int r = last_entry(x, path, &e);

        if (r < 0)
                return r;
        *ret_offset = e.offset;
        *ret_position = e.position;
        return 0;
}

int time_index_last(struct sparse_index *x, const char *path, int64_t *ret_timestamp, int32_t *ret_offset)
{
        struct entry e = {0};
        int r = last_entry(x, path, &e);

        if (r < 0)
                return r;
        *ret_timestamp = e.key;
        *ret_offset = e.offset;
        return 0;
}

int sparse_index_truncate(struct sparse_index *x, const char *path, int32_t offset)
{
        struct entry e = {0};
        uint32_t n;
        int r = count_upto(x, path, true, (int64_t)offset - 1, &n, &e);

        if (r < 0)
                return r;
        x->n = n;
        if (x->n_written > n) {
                x->n_written = n;
                if (truncate(path, (off_t)n * x->entry_size) < 0)
                        return -errno;
        }
        x->tail_first = MIN(x->tail_first, n);
        return 0;
}
