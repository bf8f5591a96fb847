/* 16 bytes are 21 full base64 digits and one that carries two bits. */
#include "base/uuid.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static int fill_random(uint8_t *p, size_t n)
{
        while (n > 0) {
                ssize_t k = getrandom(p, n, 0);

                if (k < 0 && errno == EINTR)
                        continue;
                if (k < 0)
                        return -errno;
                p += k;
                n -= (size_t)k;
        }
        return 0;
}

/* Kafka keeps 0 (no id) and 1 (the metadata topic) for itself; a leading '-' reads as a flag on command
 * lines. */
static bool is_reserved(const struct uuid *u)
{
        static const uint8_t zeros[15];

        if (memcmp(u->bytes, zeros, sizeof(zeros)) == 0 && u->bytes[15] <= 1)
                return true;
        return digits[u->bytes[0] >> 2] == '-';
}

int uuid_random(struct uuid *ret)
{
        struct uuid u;
        int r;

        do {
                r = fill_random(u.bytes, sizeof(u.bytes));
                if (r < 0)
                        return r;
        } while (is_reserved(&u));
        *ret = u;
        return 0;
}

void uuid_format(const struct uuid *u, char out[UUID_TEXT_SIZE])
{
        uint32_t bits = 0;
        int n_bits = 0;
        size_t o = 0;

        for (size_t i = 0; i < sizeof(u->bytes); i++) {
                bits = (bits << 8) | u->bytes[i];
                for (n_bits += 8; n_bits >= 6; n_bits -= 6)
                        out[o++] = digits[(bits >> (n_bits - 6)) & 63];
        }
        out[o++] = digits[(bits << (6 - n_bits)) & 63];
        out[o] = '\0';
}

int uuid_parse(const char *s, struct uuid *ret)
{
        struct uuid u;
        uint32_t bits = 0;
        int n_bits = 0;
        size_t o = 0;

        if (strnlen(s, UUID_TEXT_SIZE) != UUID_TEXT_SIZE - 1)
                return -EINVAL;
        for (; *s; s++) {
                const char *d = strchr(digits, *s);

                if (!d)
                        return -EINVAL;
                bits = (bits << 6) | (uint32_t)(d - digits);
                n_bits += 6;
                if (n_bits >= 8) {
                        n_bits -= 8;
                        u.bytes[o++] = (uint8_t)(bits >> n_bits);
                }
        }
        if (bits & ((1u << n_bits) - 1)) /* one id, one text: the four spare bits must be zero */
                return -EINVAL;
        *ret = u;
        return 0;
}

bool uuid_is_zero(const struct uuid *u)
{
        static const struct uuid zero;

        return uuid_equal(u, &zero);
}

bool uuid_equal(const struct uuid *a, const struct uuid *b)
{
        return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
