/* Any bytes as a response frame: the first is the API key, the second names a version,
 * the rest is the frame without its length. */
#include "fuzz.h"

#include "wire/codec.h"

#define ARENA_LIMIT_BYTES ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        cleanup_with(arena_donep) struct arena a = {.limit_bytes = ARENA_LIMIT_BYTES};
        cleanup_with(buf_donep) struct buf out = {};
        const struct wire_api *api;
        const struct wire_message *m;
        int16_t version;
        int32_t id;
        void *body;

        if (size < 2)
                return 0;
        api = wire_api_find(data[0]);
        if (!api)
                return 0;
        m = api->response;
        version = (int16_t)(wire_min_version(m) + data[1] % (wire_max_version(m) - wire_min_version(m) + 1));
        body = arena_alloc(&a, 1, wire_struct_size(m));
        FUZZ_CHECK(body);
        if (wire_decode_response(m, version, data + 2, size - 2, &a, &id, body) < 0)
                return 0;
        FUZZ_CHECK(wire_encode_response(m, version, id, body, &out) == 0);
        return 0;
}
