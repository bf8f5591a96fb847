/* Any bytes as a checkpoint file of offsets and as one of leader epochs. What is accepted is written out and
 * read again. */
#include "fuzz.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/checkpoint.h"

static int on_offset(const char *topic, int32_t partition, int64_t offset, void *userdata)
{
        FUZZ_CHECK(topic[0] != '\0' && partition >= 0 && offset >= 0);
        return checkpoint_add_offset(userdata, topic, partition, offset);
}

static void check_offsets(char *text, size_t size)
{
        cleanup_with(buf_donep) struct buf lines = {};
        int line, r = checkpoint_parse_offsets(text, size, on_offset, &lines, &line);

        FUZZ_CHECK(r == 0 || r == -EBADMSG);
        FUZZ_CHECK(line >= 1);
}

static void check_epochs(char *text, size_t size)
{
        cleanup_with(epoch_cache_donep) struct epoch_cache c = {};
        int line, r = checkpoint_parse_epochs(text, size, &c, &line);

        FUZZ_CHECK(r == 0 || r == -EBADMSG);
        for (size_t i = 1; i < c.n; i++) {
                FUZZ_CHECK(c.entries[i].epoch > c.entries[i - 1].epoch);
                FUZZ_CHECK(c.entries[i].start_offset > c.entries[i - 1].start_offset);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *copy = malloc(size + 1); /* the parsers cut lines in place */

        if (!copy)
                return 0;
        memcpy(copy, data, size);
        check_offsets(copy, size);
        memcpy(copy, data, size);
        check_epochs(copy, size);
        free(copy);
        return 0;
}
