/* Any bytes as a configuration file, for a table with a row of every type. A file that is refused comes with
 * a sentence; one that is accepted has every value within its bounds. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"

struct target {
        char *text, *list;
        int32_t small;
        int64_t large, wait_ms;
        bool flag;
        int choice;
};

static const char *const choices[] = {"one", "two", "three", NULL};

#define AT(member) offsetof(struct target, member)
static const struct config_row rows[] = {
        {"some.text", CONFIG_STRING, AT(text), "default", .help = "Text."},
        {"a.list", CONFIG_STRING, AT(list), "", .help = "More text."},
        {"a.small.number", CONFIG_INT32, AT(small), "5", -1, 1000, .help = "A number."},
        {"a.large.number", CONFIG_INT64, AT(large), "7", .help = "Any number."},
        {"a.wait.ms", CONFIG_DURATION_MS, AT(wait_ms), "30s", 10, 100000, .help = "A time."},
        {"a.flag", CONFIG_BOOL, AT(flag), "true", .help = "Yes or no."},
        {"a.choice", CONFIG_ENUM, AT(choice), "two", .choices = choices, .help = "One of three."},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int fd = memfd_create("config", MFD_CLOEXEC), r;
        struct target t = {0};
        char *error = NULL;
        char path[64];

        FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        r = config_load(rows, ARRAY_SIZE(rows), path, "NO_SUCH_PREFIX_", NULL, &t, &error);
        if (r < 0) {
                FUZZ_CHECK(error && error[0]);
        } else {
                FUZZ_CHECK(t.text && t.list);
                FUZZ_CHECK(t.small >= -1 && t.small <= 1000);
                FUZZ_CHECK(t.wait_ms >= 10 && t.wait_ms <= 100000);
                FUZZ_CHECK(t.choice >= 0 && t.choice < 3);
        }
        free(error);
        config_done(rows, ARRAY_SIZE(rows), &t);
        (void)close(fd);
        return 0;
}
