#include "testing.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

int tmpdir_setup(void **state)
{
        char *dir = strdup("/tmp/stepdown-test-XXXXXX");

        if (!dir || !mkdtemp(dir))
                return -1;
        *state = dir;
        return 0;
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
        static char path[512];

        (void)snprintf(path, sizeof(path), "%s/%s", (const char *)*state, name);
        return path;
}
