/* The header's layout is in wire/record_batch.h; here it is parsed without its records being in memory. */
#include "log/batch_cursor.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/fs.h"
#include "wire/crc32c.h"
#include "wire/record_batch.h"

#define CRC_START 21 /* attributes: the checksum's first byte */

static int16_t be16_at(const uint8_t *p)
{
        uint16_t v;

        memcpy(&v, p, sizeof(v));
        return (int16_t)be16toh(v);
}

static int32_t be32_at(const uint8_t *p)
{
        uint32_t v;

        memcpy(&v, p, sizeof(v));
        return (int32_t)be32toh(v);
}

static int64_t be64_at(const uint8_t *p)
{
        uint64_t v;

        memcpy(&v, p, sizeof(v));
        return (int64_t)be64toh(v);
}

int batch_meta_parse(const uint8_t *header, int64_t position, struct batch_meta *ret)
{
        int32_t length = be32_at(header + 8), last_delta = be32_at(header + 23);
        int64_t base = be64_at(header);
        int32_t n_records = be32_at(header + 57);

        if (length < RECORD_BATCH_HEADER_BYTES - RECORD_BATCH_PREFIX_BYTES ||
            header[16] != RECORD_BATCH_MAGIC)
                return -EBADMSG;
        if (base < 0 || last_delta < 0 || base > INT64_MAX - last_delta - 1)
                return -EBADMSG;
        /* Compaction may take records out of a batch, never put any in. */
        if (n_records < 0 || n_records - 1 > last_delta)
                return -EBADMSG;
        *ret = (struct batch_meta){
                .position = position,
                .size = RECORD_BATCH_PREFIX_BYTES + (int64_t)length,
                .base_offset = base,
                .last_offset = base + last_delta,
                .base_timestamp = be64_at(header + 27),
                .max_timestamp = be64_at(header + 35),
                .producer_id = be64_at(header + 43),
                .leader_epoch = be32_at(header + 12),
                .base_sequence = be32_at(header + 53),
                .n_records = n_records,
                .crc = (uint32_t)be32_at(header + 17),
                .attributes = be16_at(header + 21),
                .producer_epoch = be16_at(header + 51),
        };
        return 0;
}

void batch_cursor_init(struct batch_cursor *c, int fd, int64_t position, int64_t end, uint8_t *window,
                       size_t window_size)
{
        *c = (struct batch_cursor){
                .fd = fd,
                .position = position,
                .end = end,
                .window = window,
                .window_size = window_size,
        };
}

/* Point *ret at the bytes at @position, of which *ret_n >= @need are in the window. */
static int window_at(struct batch_cursor *c, int64_t position, size_t need, const uint8_t **ret,
                     size_t *ret_n)
{
        int64_t skip = position - c->window_position;

        if (skip < 0 || skip > (int64_t)c->window_len || c->window_len - (size_t)skip < need) {
                size_t n = (size_t)MIN((int64_t)c->window_size, c->end - position);
                int r;

                c->window_len = 0;
                r = fs_pread_full(c->fd, c->window, n, position);
                if (r < 0)
                        return r;
                c->window_position = position;
                c->window_len = n;
                skip = 0;
        }
        *ret = c->window + skip;
        *ret_n = c->window_len - (size_t)skip;
        return 0;
}

int batch_cursor_next(struct batch_cursor *c, struct batch_meta *ret)
{
        const uint8_t *header;
        struct batch_meta b;
        size_t n;
        int r;

        if (c->position >= c->end)
                return 0;
        if (c->end - c->position < RECORD_BATCH_HEADER_BYTES)
                return -ENODATA;
        r = window_at(c, c->position, RECORD_BATCH_HEADER_BYTES, &header, &n);
        if (r < 0)
                return r;
        r = batch_meta_parse(header, c->position, &b);
        if (r < 0)
                return r;
        if (b.size > c->end - c->position)
                return -ENODATA;
        c->position += b.size;
        *ret = b;
        return 1;
}

int batch_cursor_check_crc(struct batch_cursor *c, const struct batch_meta *b)
{
        int64_t at = b->position + CRC_START, end = b->position + b->size;
        uint32_t crc = 0;

        while (at < end) {
                const uint8_t *p;
                size_t n;
                int r = window_at(c, at, 1, &p, &n);

                if (r < 0)
                        return r;
                n = (size_t)MIN((int64_t)n, end - at);
                crc = crc32c(crc, p, n);
                at += (int64_t)n;
        }
        return crc == b->crc ? 0 : -EBADMSG;
}
