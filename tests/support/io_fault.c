/* A disk that fails, for LD_PRELOAD: while the file named by $IO_FAULT exists, writing to any file whose path
 * contains what it holds is answered with EIO. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset);

static bool read_pattern(char pattern[256])
{
        const char *path = getenv("IO_FAULT");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t n = fd >= 0 ? read(fd, pattern, 255) : -1;

        if (fd >= 0)
                (void)close(fd);
        pattern[n > 0 ? n : 0] = '\0';
        return n > 0;
}

static bool fails(int fd)
{
        char pattern[256], link[64], path[PATH_MAX];
        int saved = errno;
        ssize_t n = -1;

        if (read_pattern(pattern)) {
                (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
                n = readlink(link, path, sizeof(path) - 1);
        }
        errno = saved;
        if (n < 0)
                return false;
        path[n] = '\0';
        return strstr(path, pattern);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t offset)
{
        static ssize_t (*real)(int, const void *, size_t, off_t);

        if (!real)
                *(void **)&real = dlsym(RTLD_NEXT, "pwrite");
        if (fails(fd)) {
                errno = EIO;
                return -1;
        }
        return real(fd, data, n, offset);
}
