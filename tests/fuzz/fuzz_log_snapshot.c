/* Any bytes as a producer snapshot, with the right checksum so that the fuzzer comes further. What is
 * accepted says the same after a round trip. */
#include "fuzz.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/producer_state_core.h"
#include "wire/crc32c.h"

static void check_round_trip(const struct producer_state *s)
{
        cleanup_with(producer_state_freep) struct producer_state *back = producer_state_new();
        cleanup_with(buf_donep) struct buf bytes = {};

        if (!back || producer_state_encode(s, &bytes) < 0)
                return;
        FUZZ_CHECK(producer_state_decode(back, bytes.data, bytes.len) == 0);
        FUZZ_CHECK(producer_state_count(back) == producer_state_count(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();
        cleanup_with(buf_donep) struct buf copy = {};

        if (!s || buf_append(&copy, data, size) < 0)
                return 0;
        for (int fixed = 0; fixed < 2; fixed++) {
                int r = producer_state_decode(s, copy.data, copy.len);

                FUZZ_CHECK(r == 0 || r == -EBADMSG || r == -ENOMEM);
                FUZZ_CHECK(r == 0 || producer_state_count(s) == 0);
                if (r == 0)
                        check_round_trip(s);
                if (copy.len >= 6) {
                        uint32_t crc = htobe32(crc32c(0, copy.data + 6, copy.len - 6));

                        memcpy(copy.data + 2, &crc, sizeof(crc));
                }
        }
        return 0;
}
