/* Runs a fuzz target once over every file of a directory: `fuzz_x_corpus DIR`. Fails when there is none. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

#include "base/fs.h"

#define MAX_INPUT_BYTES ((size_t)1 << 20)

static int run_file(const char *dir, const char *name)
{
        cleanup_with(buf_donep) struct buf path = {}, input = {};
        const char *text;
        int r;

        r = buf_printf(&path, "%s/%s", dir, name);
        if (r < 0)
                return r;
        text = buf_cstr(&path);
        if (!text)
                return -ENOMEM;
        r = fs_read_file(text, MAX_INPUT_BYTES, &input);
        if (r < 0)
                return r;
        printf("%s\n", name);
        (void)fflush(stdout); /* so that the last name is there when the target traps */
        (void)LLVMFuzzerTestOneInput(input.data, input.len);
        return 0;
}

int main(int argc, char **argv)
{
        const struct dirent *e;
        int n = 0, r;
        DIR *d;

        if (argc != 2) {
                fprintf(stderr, "usage: %s DIR\n", argv[0]);
                return 2;
        }
        d = opendir(argv[1]);
        if (!d) {
                perror(argv[1]);
                return 1;
        }
        while ((e = readdir(d))) {
                if (e->d_name[0] == '.')
                        continue;
                r = run_file(argv[1], e->d_name);
                if (r < 0) {
                        fprintf(stderr, "%s: %s\n", e->d_name, strerror(-r));
                        return 1;
                }
                n++;
        }
        (void)closedir(d);
        printf("%d inputs\n", n);
        return n > 0 ? 0 : 1;
}
