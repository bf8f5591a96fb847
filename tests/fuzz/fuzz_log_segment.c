/* Any bytes as what a crash left of a segment and its two indexes: 2 bytes length of the index, 2 of the time
 * index, their bytes, and the rest is the .log. Opening it must work, and what it then serves must be whole
 * and in order. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/slog.h"
#include "log/partition_log.h"
#include "wire/record_batch.h"

static char dir[64];

static void remove_dir(void)
{
        static const char *const names[] = {"00000000000000000000.log", "00000000000000000000.index",
                                            "00000000000000000000.timeindex", "leader-epoch-checkpoint"};
        char path[256];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
                (void)unlink(path); /* perhaps not there */
        }
        (void)rmdir(dir);
}

static bool put(const char *suffix, const uint8_t *data, size_t n)
{
        cleanup_with(closep) int fd = -1;
        char path[256];

        (void)snprintf(path, sizeof(path), "%s/00000000000000000000%s", dir, suffix);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        return fd >= 0 && fs_write_full(fd, data, n) == 0;
}

static void read_all(struct partition_log *l, bool scanned)
{
        int64_t at = partition_log_start_offset(l), end = partition_log_end_offset(l), o, t;

        while (at < end) {
                cleanup_with(buf_donep) struct buf b = {};
                struct record_batch_iter it;
                struct record_batch batch;
                size_t n = 0;
                int r = partition_log_read(l, at, end, 1000, true, &b, &n);

                FUZZ_CHECK(r == 0 || (!scanned && r == -EBADMSG));
                if (r < 0 || n == 0)
                        return;
                it = record_batch_iter(b.data, b.len);
                while (record_batch_iter_next(&it, &batch) > 0) {
                        FUZZ_CHECK(record_batch_last_offset(&batch) >= at &&
                                   record_batch_last_offset(&batch) < end);
                        FUZZ_CHECK(!scanned || record_batch_check(&batch) == 0);
                        at = record_batch_last_offset(&batch) + 1;
                }
        }
        (void)!partition_log_find_timestamp(l, 1000, end, &o, &t);
        (void)partition_log_bytes_between(l, 0, end);
}

static void open_and_read(bool clean)
{
        struct partition_log *l = NULL;
        struct log_config c;
        int r;

        log_config_default(&c);
        c.index_interval_bytes = 64;
        FUZZ_CHECK(partition_log_open(dir, &c, 0, clean, &l) == 0);
        read_all(l, !clean);
        r = partition_log_truncate_to(l, partition_log_end_offset(l) / 2);
        FUZZ_CHECK(r == 0 || (clean && r == -EIO)); /* damage in the middle, which nobody had looked at */
        read_all(l, !clean);
        partition_log_unref(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        size_t index, times;

        if (size < 4)
                return 0;
        index = (size_t)data[0] << 8 | data[1];
        times = (size_t)data[2] << 8 | data[3];
        data += 4;
        size -= 4;
        if (index + times > size)
                return 0;
        slog_set_level(SLOG_ERROR);
        (void)snprintf(dir, sizeof(dir), "%s/stepdown-fuzz-%d",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                       (int)getpid()); /* memory, not disk: a hundred times as many inputs */
        for (int clean = 0; clean < 2; clean++) {
                (void)mkdir(dir, 0700); /* there already if an earlier input was interrupted */
                if (put(".index", data, index) && put(".timeindex", data + index, times) &&
                    put(".log", data + index + times, size - index - times))
                        open_and_read(clean);
                remove_dir();
        }
        return 0;
}
