/* Syncs: the file's bytes before the rename (else a crash may leave an empty file under the final name), the
 * directory after it (else the rename itself may be lost, although the caller was told that it happened). */
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define READ_STEP 16384

int fs_write_full(int fd, const void *p, size_t n)
{
        const uint8_t *at = p;

        while (n > 0) {
                ssize_t k = write(fd, at, n);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                at += k;
                n -= (size_t)k;
        }
        return 0;
}

int fs_pwrite_full(int fd, const void *p, size_t n, int64_t offset)
{
        const uint8_t *at = p;

        while (n > 0) {
                ssize_t k = pwrite(fd, at, n, offset);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                at += k;
                offset += k;
                n -= (size_t)k;
        }
        return 0;
}

int fs_pread_full(int fd, void *p, size_t n, int64_t offset)
{
        uint8_t *at = p;

        while (n > 0) {
                ssize_t k = pread(fd, at, n, offset);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        return -ENODATA;
                at += k;
                offset += k;
                n -= (size_t)k;
        }
        return 0;
}

int fs_sync_dir(const char *path)
{
        cleanup_with(closep) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        return fsync(fd) < 0 ? -errno : 0;
}

static int sync_parent(const char *path)
{
        const char *slash = strrchr(path, '/');
        cleanup_with(freep) char *dir = NULL;

        if (!slash)
                return fs_sync_dir(".");
        dir = strndup(path, slash == path ? 1 : (size_t)(slash - path));
        if (!dir)
                return -ENOMEM;
        return fs_sync_dir(dir);
}

static int write_synced(const char *path, const void *data, size_t len)
{
        cleanup_with(closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        int r;

        if (fd < 0)
                return -errno;
        r = fs_write_full(fd, data, len);
        if (r < 0)
                return r;
        if (fsync(fd) < 0)
                return -errno;
        return close(TAKE_FD(fd)) < 0 ? -errno : 0; /* NFS and quotas report here */
}

int fs_write_atomic(const char *path, const void *data, size_t len)
{
        cleanup_with(freep) char *tmp = NULL;
        int r;

        if (asprintf(&tmp, "%s.tmp", path) < 0) {
                tmp = NULL; /* undefined after a failure */
                return -ENOMEM;
        }
        r = write_synced(tmp, data, len);
        if (r == 0 && rename(tmp, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(tmp); /* the first error is the one to report */
                return r;
        }
        return sync_parent(path);
}

int fs_read_file(const char *path, size_t max_bytes, struct buf *out)
{
        cleanup_with(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        uint8_t step[READ_STEP];
        size_t total = 0;

        if (fd < 0)
                return -errno;
        for (;;) {
                ssize_t k = read(fd, step, sizeof(step));
                int r;

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                if (k == 0)
                        return 0;
                if ((size_t)k > max_bytes - total)
                        return -EFBIG;
                total += (size_t)k;
                r = buf_append(out, step, (size_t)k);
                if (r < 0)
                        return r;
        }
}

static int make_dir(const char *path, unsigned mode)
{
        struct stat st;

        if (mkdir(path, (mode_t)mode) == 0)
                return 0;
        if (errno != EEXIST)
                return -errno;
        if (stat(path, &st) < 0)
                return -errno;
        return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int fs_mkdir_p(const char *path, unsigned mode)
{
        cleanup_with(freep) char *copy = strdup(path);
        int r;

        if (!copy)
                return -ENOMEM;
        for (char *slash = strchr(copy + 1, '/'); slash && *copy; slash = strchr(slash + 1, '/')) {
                *slash = '\0';
                r = make_dir(copy, mode);
                if (r < 0)
                        return r;
                *slash = '/';
        }
        return make_dir(copy, mode);
}
