#include "log_testing.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

static int setup_in(const char *pattern, void **state)
{
        char *dir = strdup(pattern);

        if (!dir || !mkdtemp(dir)) {
                free(dir);
                return -1;
        }
        *state = dir;
        return 0;
}

int tmpdir_setup(void **state)
{
        return setup_in("/tmp/stepdown-log-XXXXXX", state);
}

int memdir_setup(void **state)
{
        if (access("/dev/shm", W_OK) == 0 && setup_in("/dev/shm/stepdown-log-XXXXXX", state) == 0)
                return 0;
        return tmpdir_setup(state);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st, (void)type, (void)ftw;
        return remove(path);
}

int tmpdir_teardown(void **state)
{
        int r = nftw(*state, remove_entry, 8, FTW_DEPTH | FTW_PHYS);

        free(*state);
        return r;
}

const char *tmpdir_path(void **state, const char *name)
{
        static char paths[8][512];
        static unsigned next;
        char *path = paths[next++ % 8];

        (void)snprintf(path, sizeof(paths[0]), "%s/%s", (const char *)*state, name);
        return path;
}

int64_t file_size(const char *path)
{
        struct stat st;

        return stat(path, &st) < 0 ? -1 : st.st_size;
}

void file_read(const char *path, struct buf *out)
{
        assert_int_equal(fs_read_file(path, 1 << 30, out), 0);
}

void file_write(const char *path, const void *data, size_t n)
{
        FILE *f;

        (void)unlink(path); /* ext4 would write a truncated file out to the disk, thousands of times */
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(data, 1, n, f), n);
        assert_int_equal(fclose(f), 0);
}

static bool ends_with(const char *name, const char *suffix)
{
        size_t n = strlen(name), k = strlen(suffix);

        return n >= k && strcmp(name + n - k, suffix) == 0;
}

static size_t find_files(const char *dir, const char *suffix, char last[256])
{
        DIR *d = opendir(dir);
        struct dirent *e;
        size_t n = 0;

        assert_non_null(d);
        last[0] = '\0';
        while ((e = readdir(d))) {
                if (!ends_with(e->d_name, suffix))
                        continue;
                n++;
                if (strcmp(e->d_name, last) > 0)
                        (void)snprintf(last, 256, "%s", e->d_name);
        }
        (void)closedir(d);
        return n;
}

const char *last_file(const char *dir, const char *suffix)
{
        static char path[1024];
        char name[256];

        assert_true(find_files(dir, suffix, name) > 0);
        (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
        return path;
}

size_t count_files(const char *dir, const char *suffix)
{
        char name[256];

        return find_files(dir, suffix, name);
}

void make_batch(struct buf *out, const struct made *m)
{
        int32_t n = MAX(m->n_records, 1);
        struct record_batch_spec spec = {
                .base_offset = m->base_offset,
                .leader_epoch = m->epoch,
                .producer_id = m->producer_id > 0 ? m->producer_id : -1,
                .producer_epoch = m->producer_id > 0 ? m->producer_epoch : -1,
                .base_sequence = m->producer_id > 0 ? m->sequence : -1,
                .attributes = m->attributes,
        };
        struct record_spec *records = calloc((size_t)n, sizeof(*records));
        size_t room = (size_t)MAX(m->value_bytes, 32);
        char *values = malloc((size_t)n * room);

        assert_non_null(records);
        assert_non_null(values);
        for (int32_t i = 0; i < n; i++) {
                char *value = values + (size_t)i * room;
                int len;

                memset(value, '.', room);
                len = snprintf(value, room, "v%" PRId64, m->base_offset + i);
                value[len] = '.';
                records[i] = (struct record_spec){
                        .timestamp_ms = m->timestamp_ms + i,
                        .key = WIRE_NULL_BYTES,
                        .value = {.data = (const uint8_t *)value, .len = MAX(m->value_bytes, len)},
                };
        }
        assert_int_equal(record_batch_build(&spec, records, (size_t)n, out), 0);
        free(records);
        free(values);
}

struct log_config small_config(void)
{
        struct log_config c;

        log_config_default(&c);
        c.index_interval_bytes = 200;
        c.retention_ms = -1;
        return c;
}

struct partition_log *open_log(const char *dir, const struct log_config *c, int64_t recovery_point,
                               bool clean)
{
        struct log_config config = small_config();
        struct partition_log *l = NULL;

        assert_int_equal(partition_log_open(dir, c ? c : &config, recovery_point, clean, &l), 0);
        return l;
}

int append_made(struct partition_log *l, const struct made *m, int32_t epoch, struct log_append_info *ret)
{
        cleanup_with(buf_donep) struct buf b = {0};
        struct log_append_info info;
        struct made at = *m;

        at.base_offset = partition_log_end_offset(l);
        make_batch(&b, &at);
        return partition_log_append_leader(l, b.data, b.len, epoch, at.timestamp_ms, ret ? ret : &info);
}

void append_many(struct partition_log *l, int n, struct made m, int32_t epoch)
{
        for (int i = 0; i < n; i++) {
                assert_int_equal(append_made(l, &m, epoch, NULL), 0);
                m.timestamp_ms += 10;
                m.sequence += MAX(m.n_records, 1);
        }
}

int follow_made(struct partition_log *l, const struct made *m)
{
        cleanup_with(buf_donep) struct buf b = {0};
        struct log_append_info info;

        make_batch(&b, m);
        return partition_log_append_follower(l, b.data, b.len, &info);
}

static int check_batches(const struct buf *b, int64_t *at)
{
        struct record_batch_iter it = record_batch_iter(b->data, b->len);
        struct record_batch batch;
        int n = 0, r;

        while ((r = record_batch_iter_next(&it, &batch)) > 0) {
                assert_int_equal(batch.base_offset, *at);
                assert_int_equal(record_batch_check(&batch), 0);
                *at = record_batch_last_offset(&batch) + 1;
                n++;
        }
        assert_int_equal(r, 0);
        assert_ptr_equal(it.pos, it.end);
        return n;
}

int check_readable(struct partition_log *l, size_t max_bytes)
{
        int64_t at = partition_log_start_offset(l), end = partition_log_end_offset(l);
        int batches = 0;

        while (at < end) {
                cleanup_with(buf_donep) struct buf b = {0};
                size_t n = 0;

                assert_int_equal(partition_log_read(l, at, end, max_bytes, true, &b, &n), 0);
                assert_int_equal(n, b.len);
                assert_true(n > 0);
                batches += check_batches(&b, &at);
        }
        assert_int_equal(at, end);
        return batches;
}

void read_range(struct partition_log *l, int64_t offset, int64_t bound, size_t max_bytes, bool min_one,
                int64_t *ret_first, int64_t *ret_last)
{
        cleanup_with(buf_donep) struct buf b = {0};
        struct record_batch_iter it;
        struct record_batch batch;
        size_t n = 0;

        *ret_first = *ret_last = -1;
        assert_int_equal(partition_log_read(l, offset, bound, max_bytes, min_one, &b, &n), 0);
        it = record_batch_iter(b.data, b.len);
        while (record_batch_iter_next(&it, &batch) > 0) {
                if (*ret_first < 0)
                        *ret_first = batch.base_offset;
                *ret_last = record_batch_last_offset(&batch);
        }
}
