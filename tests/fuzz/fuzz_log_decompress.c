/* The first byte chooses the codec, the rest is a batch's payload. */
#include "fuzz.h"

#include "log/decompress.h"

#define CEILING (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct buf out;

        if (size == 0)
                return 0;
        buf_init(&out, CEILING);
        (void)!decompress((enum record_codec)(data[0] % N_RECORD_CODECS), data + 1, size - 1, &out);
        FUZZ_CHECK(out.len <= CEILING);
        buf_done(&out);
        return 0;
}
