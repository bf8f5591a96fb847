#include "wire/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* Castagnoli, bits reversed */

/* tables[k][b]: the remainder of byte b followed by k zero bytes, so that eight bytes are folded at once. */
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void build_tables(void)
{
        for (uint32_t b = 0; b < 256; b++) {
                uint32_t crc = b;

                for (int bit = 0; bit < 8; bit++)
                        crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
                tables[0][b] = crc;
        }
        for (int k = 1; k < 8; k++)
                for (uint32_t b = 0; b < 256; b++)
                        tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

static uint64_t load_le64(const uint8_t *p)
{
        uint64_t v;

        memcpy(&v, p, sizeof(v));
        return v;
}

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len)
{
        const uint8_t *p = data;

        (void)pthread_once(&tables_once, build_tables); /* fails only for a bad control block */
        crc = ~crc;
        for (; len >= 8; p += 8, len -= 8) {
                uint64_t v = load_le64(p) ^ crc;

                crc = 0;
                for (int k = 0; k < 8; k++)
                        crc ^= tables[7 - k][v >> (8 * k) & 0xff];
        }
        for (; len > 0; p++, len--)
                crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
        return ~crc;
}

#ifdef __x86_64__

bool crc32c_hardware_available(void)
{
        return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) uint32_t crc32c_hardware(uint32_t crc, const void *data, size_t len)
{
        const uint8_t *p = data;
        uint64_t wide = ~crc;

        for (; len >= 8; p += 8, len -= 8)
                wide = __builtin_ia32_crc32di(wide, load_le64(p));
        crc = (uint32_t)wide;
        for (; len > 0; p++, len--)
                crc = __builtin_ia32_crc32qi(crc, *p);
        return ~crc;
}

#else

bool crc32c_hardware_available(void)
{
        return false;
}

uint32_t crc32c_hardware(uint32_t crc, const void *data, size_t len)
{
        return crc32c_portable(crc, data, len);
}

#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
        return crc32c_hardware_available() ? crc32c_hardware(crc, data, len)
                                           : crc32c_portable(crc, data, len);
}
