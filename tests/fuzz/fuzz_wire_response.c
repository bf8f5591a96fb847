/* Any bytes as a response frame: the first names the API by its place in the table, the second its version,
 * the rest is the frame without its length. */
#include "fuzz.h"

#include "wire/codec.h"

#define ARENA_LIMIT_BYTES ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        cleanup_with(arena_donep) struct arena a = {.limit_bytes = ARENA_LIMIT_BYTES};
        cleanup_with(buf_donep) struct buf out = {};
        const struct wire_api *apis;
        const struct wire_message *m;
        int16_t version;
        int32_t id;
        void *body;
        size_t n;

        if (size < 2)
                return 0;
        apis = wire_api_all(&n);
        m = apis[data[0] % n].response;
        version = (int16_t)(wire_min_version(m) + data[1] % (wire_max_version(m) - wire_min_version(m) + 1));
        body = arena_alloc(&a, 1, wire_struct_size(m));
        FUZZ_CHECK(body);
        if (wire_decode_response(m, version, data + 2, size - 2, &a, &id, body) < 0)
                return 0;
        FUZZ_CHECK(wire_encode_response(m, version, id, body, &out) == 0);
        return 0;
}
