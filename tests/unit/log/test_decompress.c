#include "log_testing.h"

#include <endian.h>
#include <errno.h>
#include <lz4frame.h>
#include <snappy-c.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "log/decompress.h"

#define PLAIN_BYTES 200000

static uint8_t plain[PLAIN_BYTES];

static int fill_plain(void **state)
{
        uint32_t x = 1;

        (void)state;
        for (size_t i = 0; i < sizeof(plain); i++) {
                x = x * 1664525 + 1013904223;
                plain[i] = (uint8_t)((x >> 24) % 7 + 'a');
        }
        return 0;
}

static size_t pack_gzip(const uint8_t *from, size_t n, uint8_t *to, size_t cap)
{
        z_stream z = {0};

        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        z.next_in = (Bytef *)(uintptr_t)from;
        z.avail_in = (uInt)n;
        z.next_out = to;
        z.avail_out = (uInt)cap;
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        cap -= z.avail_out;
        assert_int_equal(deflateEnd(&z), Z_OK);
        return cap;
}

static size_t pack_snappy(const uint8_t *from, size_t n, uint8_t *to, size_t cap)
{
        assert_int_equal(snappy_compress((const char *)from, n, (char *)to, &cap), SNAPPY_OK);
        return cap;
}

/* snappy-java: a header, then blocks of 32 KiB, each with its length before it */
static size_t pack_xerial(const uint8_t *from, size_t n, uint8_t *to, size_t cap)
{
        size_t at = 16;

        memcpy(to, "\x82SNAPPY\0\0\0\0\1\0\0\0\1", 16);
        for (size_t i = 0; i < n; i += 32768) {
                size_t k = pack_snappy(from + i, MIN(n - i, (size_t)32768), to + at + 4, cap - at - 4);
                uint32_t be = htobe32((uint32_t)k);

                memcpy(to + at, &be, 4);
                at += 4 + k;
        }
        return at;
}

static size_t pack_lz4(const uint8_t *from, size_t n, uint8_t *to, size_t cap)
{
        return LZ4F_compressFrame(to, cap, from, n, NULL);
}

static size_t pack_zstd(const uint8_t *from, size_t n, uint8_t *to, size_t cap)
{
        return ZSTD_compress(to, cap, from, n, 3);
}

static const struct {
        enum record_codec codec;
        size_t (*pack)(const uint8_t *from, size_t n, uint8_t *to, size_t cap);
} FORMS[] = {
        {RECORD_GZIP, pack_gzip}, {RECORD_SNAPPY, pack_snappy}, {RECORD_SNAPPY, pack_xerial},
        {RECORD_LZ4, pack_lz4},   {RECORD_ZSTD, pack_zstd},
};

static void every_form_unpacks_to_what_was_packed(void **state)
{
        static const size_t sizes[] = {0, 1, 100, 65535, 65536, 65537, PLAIN_BYTES};
        static uint8_t packed[2 * PLAIN_BYTES + 1000];

        (void)state;
        for (size_t f = 0; f < ARRAY_SIZE(FORMS); f++) {
                for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                        cleanup_with(buf_donep) struct buf out = {0};
                        size_t n = FORMS[f].pack(plain, sizes[i], packed, sizeof(packed));

                        assert_int_equal(decompress(FORMS[f].codec, packed, n, &out), 0);
                        assert_int_equal(out.len, sizes[i]);
                        if (sizes[i] > 0)
                                assert_memory_equal(out.data, plain, sizes[i]);
                }
        }
}

static void a_bomb_stops_at_the_ceiling(void **state)
{
        static const uint8_t zeros[4 << 20];
        static uint8_t packed[6 << 20];

        (void)state;
        for (size_t f = 0; f < ARRAY_SIZE(FORMS); f++) {
                struct buf out;
                size_t n = FORMS[f].pack(zeros, sizeof(zeros), packed, sizeof(packed));

                buf_init(&out, 1 << 20);
                assert_int_equal(decompress(FORMS[f].codec, packed, n, &out), -EMSGSIZE);
                assert_true(out.cap <= 1 << 20);
                buf_done(&out);
        }
}

static void what_is_cut_short_or_damaged_never_reads_outside(void **state)
{
        static uint8_t packed[10000];

        (void)state;
        for (size_t f = 0; f < ARRAY_SIZE(FORMS); f++) {
                size_t n = FORMS[f].pack(plain, 500, packed, sizeof(packed));

                for (size_t i = 0; i < n; i++) {
                        cleanup_with(freep) uint8_t *exact = malloc(i + 1);
                        struct buf out;
                        int r;

                        buf_init(&out, 1 << 20);
                        memcpy(exact, packed, i);
                        r = decompress(FORMS[f].codec, exact, i, &out);
                        /* a framing that ends at a block's end is not seen to be short */
                        assert_true(r == -EBADMSG || (r == 0 && out.len < 500));
                        out.len = 0;
                        packed[i] ^= 0x55;
                        r = decompress(FORMS[f].codec, packed, n, &out);
                        assert_true(r == 0 || r == -EBADMSG || r == -EMSGSIZE || r == -ENOMEM);
                        packed[i] ^= 0x55;
                        buf_done(&out);
                }
        }
}

static void an_unknown_codec_is_refused(void **state)
{
        struct buf out = {0};

        (void)state;
        assert_int_equal(decompress((enum record_codec)5, "x", 1, &out), -ENOPROTOOPT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_form_unpacks_to_what_was_packed),
                cmocka_unit_test(a_bomb_stops_at_the_ceiling),
                cmocka_unit_test(what_is_cut_short_or_damaged_never_reads_outside),
                cmocka_unit_test(an_unknown_codec_is_refused),
        };

        return cmocka_run_group_tests(tests, fill_plain, NULL);
}
