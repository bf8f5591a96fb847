/* Any bytes as a request frame (without its length): the header, then the body of the key and version it
 * names. What is accepted must be written again and read as the same message. */
#include "fuzz.h"

#include "wire/codec.h"

#define ARENA_LIMIT_BYTES ((size_t)16 << 20)

static void check_body(const struct wire_message *m, int16_t version, const uint8_t *data, size_t size)
{
        cleanup_with(arena_donep) struct arena a = {.limit_bytes = ARENA_LIMIT_BYTES};
        cleanup_with(buf_donep) struct buf once = {}, twice = {};
        void *body = arena_alloc(&a, 1, wire_struct_size(m));

        FUZZ_CHECK(body);
        if (wire_decode(m, version, data, size, &a, body) < 0)
                return;
        FUZZ_CHECK(wire_encode(m, version, body, &once) == 0);
        if (wire_decode(m, version, once.data, once.len, &a, body) < 0)
                __builtin_trap();
        FUZZ_CHECK(wire_encode(m, version, body, &twice) == 0);
        FUZZ_CHECK(once.len == twice.len);
        FUZZ_CHECK(once.len == 0 || memcmp(once.data, twice.data, once.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct wire_request_header h;
        const struct wire_api *api;
        size_t n;

        if (wire_decode_request_header(data, size, &h, &n) < 0)
                return 0;
        FUZZ_CHECK(n <= size);
        api = wire_api_find(h.api_key);
        if (api && h.api_version >= api->serve_min && h.api_version <= api->serve_max)
                check_body(api->request, h.api_version, data + n, size - n);
        return 0;
}
