/* Both implementations give the published checksums, and agree at every length and alignment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fill.h"

#include "wire/crc32c.h"

typedef uint32_t (*crc_fn)(uint32_t crc, const void *data, size_t len);

/* RFC 3720, B.4, and the check value of the CRC catalogue. */
static void check_known_vectors(crc_fn crc)
{
        uint8_t bytes[32];

        memset(bytes, 0, sizeof(bytes));
        assert_int_equal(crc(0, bytes, 32), 0x8a9136aa);
        memset(bytes, 0xff, sizeof(bytes));
        assert_int_equal(crc(0, bytes, 32), 0x62a8ab43);
        for (uint8_t i = 0; i < 32; i++)
                bytes[i] = i;
        assert_int_equal(crc(0, bytes, 32), 0x46dd794e);
        for (uint8_t i = 0; i < 32; i++)
                bytes[i] = (uint8_t)(31 - i);
        assert_int_equal(crc(0, bytes, 32), 0x113fdb5c);
        assert_int_equal(crc(0, "123456789", 9), 0xe3069283);
        assert_int_equal(crc(0, "", 0), 0);
}

static void the_portable_code_gives_the_published_checksums(void **state)
{
        (void)state;
        check_known_vectors(crc32c_portable);
        check_known_vectors(crc32c);
}

static void the_hardware_gives_the_published_checksums(void **state)
{
        (void)state;
        if (!crc32c_hardware_available())
                skip();
        check_known_vectors(crc32c_hardware);
}

static void both_agree_at_every_length_and_alignment(void **state)
{
        struct rng rng = rng_from_environment();
        uint8_t bytes[160];

        (void)state;
        if (!crc32c_hardware_available())
                skip();
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)rng_next(&rng);
        for (size_t start = 0; start < 16; start++)
                for (size_t len = 0; start + len <= sizeof(bytes); len++)
                        assert_int_equal(crc32c_portable(7, bytes + start, len),
                                         crc32c_hardware(7, bytes + start, len));
}

static void a_checksum_can_be_continued(void **state)
{
        const char text[] = "123456789";

        (void)state;
        for (size_t cut = 0; cut <= 9; cut++) {
                assert_int_equal(crc32c(crc32c(0, text, cut), &text[cut], 9 - cut), 0xe3069283);
                assert_int_equal(crc32c_portable(crc32c_portable(0, text, cut), &text[cut], 9 - cut),
                                 0xe3069283);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_portable_code_gives_the_published_checksums),
                cmocka_unit_test(the_hardware_gives_the_published_checksums),
                cmocka_unit_test(both_agree_at_every_length_and_alignment),
                cmocka_unit_test(a_checksum_can_be_continued),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
