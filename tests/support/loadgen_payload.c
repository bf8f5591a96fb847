/* A message: magic, partition, run, number, send time (32 bytes), then a pattern that follows from the
 * number, so that a byte changed on the way is found even where no CRC looks. */
#include <string.h>

#include "loadgen.h"

#define PAYLOAD_MAGIC UINT32_C(0x53444c47)

struct header {
        uint32_t magic;
        int32_t partition;
        uint64_t run_id, number;
        int64_t sent_us;
};

_Static_assert(sizeof(struct header) == PAYLOAD_MIN_BYTES, "no padding");

static uint8_t pattern(uint64_t number, size_t i)
{
        return (uint8_t)(number * 31 + i);
}

void payload_fill(uint8_t *p, size_t size, uint64_t run_id, int32_t partition, uint64_t number,
                  int64_t sent_us)
{
        const struct header h = {PAYLOAD_MAGIC, partition, run_id, number, sent_us};

        memcpy(p, &h, sizeof(h));
        for (size_t i = sizeof(h); i < size; i++)
                p[i] = pattern(number, i);
}

bool payload_check(const uint8_t *p, size_t size, uint64_t run_id, int32_t partition, uint64_t *ret_number)
{
        struct header h;

        if (size < sizeof(h))
                return false;
        memcpy(&h, p, sizeof(h));
        if (h.magic != PAYLOAD_MAGIC || h.run_id != run_id || h.partition != partition)
                return false;
        for (size_t i = sizeof(h); i < size; i++)
                if (p[i] != pattern(h.number, i))
                        return false;
        *ret_number = h.number;
        return true;
}

bool payload_is_of_run(const uint8_t *p, size_t size, uint64_t run_id)
{
        struct header h;

        if (size < sizeof(h))
                return false;
        memcpy(&h, p, sizeof(h));
        return h.magic == PAYLOAD_MAGIC && h.run_id == run_id;
}
