#include "wire/record_batch.h"

#include "wire/crc32c.h"
#include "wire/cursor.h"

/* Offsets of the header's fields; the layout is drawn in the header file. */
enum {
        AT_BASE_OFFSET = 0,
        AT_LENGTH = 8,
        AT_LEADER_EPOCH = 12,
        AT_MAGIC = 16,
        AT_CRC = 17,
        AT_ATTRIBUTES = 21, /* the CRC begins here */
        AT_LAST_OFFSET_DELTA = 23,
        AT_BASE_TIMESTAMP = 27,
        AT_MAX_TIMESTAMP = 35,
        AT_PRODUCER_ID = 43,
        AT_PRODUCER_EPOCH = 51,
        AT_BASE_SEQUENCE = 53,
        AT_N_RECORDS = 57,
};

/* CRC, magic, attributes, two empty fields: the shortest message of the formats before v2. */
#define MIN_LEGACY_LENGTH 14

int record_batch_parse(const void *data, size_t len, struct record_batch *ret)
{
        const uint8_t *p = data;
        int32_t length;

        if (len < RECORD_BATCH_PREFIX_BYTES)
                return -ENODATA;
        length = (int32_t)load_be32(p + AT_LENGTH);
        if (length < MIN_LEGACY_LENGTH)
                return -EBADMSG;
        if (len <= AT_MAGIC)
                return -ENODATA;
        if (p[AT_MAGIC] != RECORD_BATCH_MAGIC)
                return -EPROTO;
        if (length < RECORD_BATCH_HEADER_BYTES - RECORD_BATCH_PREFIX_BYTES)
                return -EBADMSG;
        if (len - RECORD_BATCH_PREFIX_BYTES < (size_t)length)
                return -ENODATA;

        *ret = (struct record_batch){
                .data = p,
                .size = RECORD_BATCH_PREFIX_BYTES + (size_t)length,
                .base_offset = (int64_t)load_be64(p + AT_BASE_OFFSET),
                .length = length,
                .leader_epoch = (int32_t)load_be32(p + AT_LEADER_EPOCH),
                .magic = (int8_t)p[AT_MAGIC],
                .crc = load_be32(p + AT_CRC),
                .attributes = (int16_t)load_be16(p + AT_ATTRIBUTES),
                .last_offset_delta = (int32_t)load_be32(p + AT_LAST_OFFSET_DELTA),
                .base_timestamp = (int64_t)load_be64(p + AT_BASE_TIMESTAMP),
                .max_timestamp = (int64_t)load_be64(p + AT_MAX_TIMESTAMP),
                .producer_id = (int64_t)load_be64(p + AT_PRODUCER_ID),
                .producer_epoch = (int16_t)load_be16(p + AT_PRODUCER_EPOCH),
                .base_sequence = (int32_t)load_be32(p + AT_BASE_SEQUENCE),
                .n_records = (int32_t)load_be32(p + AT_N_RECORDS),
        };
        return 0;
}

static uint32_t compute_crc(const uint8_t *data, size_t size)
{
        return crc32c(0, data + AT_ATTRIBUTES, size - AT_ATTRIBUTES);
}

int record_batch_check(const struct record_batch *b)
{
        if (compute_crc(b->data, b->size) != b->crc)
                return -EBADMSG;
        if (b->last_offset_delta < 0 || b->n_records < 0 || b->n_records - 1 > b->last_offset_delta)
                return -EBADMSG;
        return b->base_offset > INT64_MAX - b->last_offset_delta ? -EBADMSG : 0;
}

/* Offset deltas in order and without gaps: whoever finds a record by counting relies on it. */
static int check_records(const struct record_batch *b)
{
        struct record_iter it = record_iter(b);
        struct record record;
        int r;

        for (int32_t i = 0; (r = record_iter_next(&it, &record)) > 0; i++)
                if (record.offset_delta != i)
                        return -EINVAL;
        return r < 0 ? -EINVAL : 0;
}

int record_batch_check_produced(const struct record_batch *b)
{
        int r;

        r = record_batch_check(b);
        if (r < 0)
                return r;
        if (b->n_records < 1 || b->n_records > RECORD_BATCH_MAX_RECORDS ||
            b->n_records - 1 != b->last_offset_delta)
                return -EINVAL;
        /* Only a broker writes control batches and its own clock's timestamps. */
        if (b->attributes & (RECORD_ATTR_CONTROL | RECORD_ATTR_LOG_APPEND_TIME))
                return -EINVAL;
        if (b->producer_id >= 0 && (b->producer_epoch < 0 || b->base_sequence < 0))
                return -EINVAL;
        if (record_batch_codec(b) >= N_RECORD_CODECS)
                return -ENOPROTOOPT;
        return record_batch_codec(b) == RECORD_NONE ? check_records(b) : 0;
}

void record_batch_set_base_offset(uint8_t *data, int64_t base_offset)
{
        store_be64(data + AT_BASE_OFFSET, (uint64_t)base_offset);
}

void record_batch_set_leader_epoch(uint8_t *data, int32_t leader_epoch)
{
        store_be32(data + AT_LEADER_EPOCH, (uint32_t)leader_epoch);
}

/* Sums of timestamps from outside may wrap; they must not be undefined. */
static int64_t add_wrapping(int64_t a, int64_t b)
{
        return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int find_max_timestamp(const struct record_batch *b, int64_t *ret)
{
        struct record_iter it = record_iter(b);
        int64_t max = b->base_timestamp;
        struct record record;
        int r;

        if (record_batch_codec(b) == RECORD_NONE)
                while ((r = record_iter_next(&it, &record)) != 0) {
                        if (r < 0)
                                return r;
                        max = MAX(max, add_wrapping(b->base_timestamp, record.timestamp_delta));
                }
        *ret = max;
        return 0;
}

int record_batch_repair_max_timestamp(uint8_t *data, struct record_batch *b)
{
        int64_t max;
        int r;

        if (b->max_timestamp != -1)
                return 0;
        r = find_max_timestamp(b, &max);
        if (r < 0)
                return r;
        store_be64(data + AT_MAX_TIMESTAMP, (uint64_t)max);
        b->max_timestamp = max;
        b->crc = compute_crc(data, b->size);
        store_be32(data + AT_CRC, b->crc);
        return 0;
}

int record_batch_iter_next(struct record_batch_iter *it, struct record_batch *ret)
{
        int r;

        r = record_batch_parse(it->pos, (size_t)(it->end - it->pos), ret);
        if (r < 0)
                return r == -ENODATA ? 0 : r;
        it->pos += ret->size;
        return 1;
}

/* A varint length and as many bytes. Null is -1. */
static int get_slice(struct cursor *c, struct wire_bytes *ret)
{
        int32_t len;

        if (cursor_get_varint(c, &len) < 0 || len < -1)
                return -EBADMSG;
        *ret = (struct wire_bytes){.len = len};
        return len < 0 ? 0 : cursor_take(c, (size_t)len, &ret->data);
}

/* Headers are only checked and skipped: the broker never looks into them. */
static int get_headers(struct cursor *c, struct record *ret)
{
        struct wire_bytes key, value;

        if (cursor_get_varint(c, &ret->n_headers) < 0 || ret->n_headers < 0)
                return -EBADMSG;
        ret->headers = c->pos;
        for (int32_t i = 0; i < ret->n_headers; i++)
                if (get_slice(c, &key) < 0 || key.len < 0 || get_slice(c, &value) < 0)
                        return -EBADMSG;
        ret->headers_len = (size_t)(c->pos - ret->headers);
        return 0;
}

static int get_record(struct cursor *c, struct record *ret)
{
        if (cursor_get_int8(c, &ret->attributes) < 0 || cursor_get_varlong(c, &ret->timestamp_delta) < 0 ||
            cursor_get_varint(c, &ret->offset_delta) < 0 || get_slice(c, &ret->key) < 0 ||
            get_slice(c, &ret->value) < 0 || get_headers(c, ret) < 0)
                return -EBADMSG;
        return cursor_left(c) == 0 ? 0 : -EBADMSG;
}

int record_iter_next(struct record_iter *it, struct record *ret)
{
        struct cursor c = {.pos = it->pos, .end = it->end}, body;
        const uint8_t *p;
        int32_t len;

        if (it->left <= 0)
                return cursor_left(&c) == 0 ? 0 : -EBADMSG;
        if (cursor_get_varint(&c, &len) < 0 || len < 0 || cursor_take(&c, (size_t)len, &p) < 0)
                return -EBADMSG;
        body = cursor_of(p, (size_t)len);
        if (get_record(&body, ret) < 0)
                return -EBADMSG;
        it->pos = c.pos;
        it->left--;
        return 1;
}

/* --- building --- */

#define VARINT_MAX_BYTES 10

static size_t format_varlong(int64_t v, uint8_t out[VARINT_MAX_BYTES])
{
        uint64_t zigzag = (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
        size_t n = 0;

        for (; zigzag >= 0x80; zigzag >>= 7)
                out[n++] = (uint8_t)(zigzag | 0x80);
        out[n++] = (uint8_t)zigzag;
        return n;
}

static int put_varlong(struct buf *out, int64_t v)
{
        uint8_t bytes[VARINT_MAX_BYTES];

        return buf_append(out, bytes, format_varlong(v, bytes));
}

static int put_slice(struct buf *out, struct wire_bytes b)
{
        int r;

        r = put_varlong(out, MAX(b.len, -1));
        if (r < 0 || b.len <= 0)
                return r;
        return buf_append(out, b.data, (size_t)b.len);
}

static size_t slice_size(struct wire_bytes b)
{
        uint8_t bytes[VARINT_MAX_BYTES];

        return format_varlong(MAX(b.len, -1), bytes) + (size_t)MAX(b.len, 0);
}

static int put_record(struct buf *out, const struct record_spec *s, int64_t timestamp_delta,
                      size_t offset_delta)
{
        uint8_t bytes[VARINT_MAX_BYTES];
        size_t size = 1 + format_varlong(timestamp_delta, bytes) +
                      format_varlong((int64_t)offset_delta, bytes) + slice_size(s->key) +
                      slice_size(s->value) + 1;
        int r;

        r = put_varlong(out, (int64_t)size);
        if (r == 0)
                r = buf_append(out, "", 1); /* attributes: none are defined */
        if (r == 0)
                r = put_varlong(out, timestamp_delta);
        if (r == 0)
                r = put_varlong(out, (int64_t)offset_delta);
        if (r == 0)
                r = put_slice(out, s->key);
        if (r == 0)
                r = put_slice(out, s->value);
        if (r == 0)
                r = put_varlong(out, 0); /* no headers */
        return r;
}

static void fill_header(uint8_t *p, size_t size, const struct record_batch_spec *spec, int64_t base_timestamp,
                        int64_t max_timestamp, size_t n)
{
        store_be64(p + AT_BASE_OFFSET, (uint64_t)spec->base_offset);
        store_be32(p + AT_LENGTH, (uint32_t)(size - RECORD_BATCH_PREFIX_BYTES));
        store_be32(p + AT_LEADER_EPOCH, (uint32_t)spec->leader_epoch);
        p[AT_MAGIC] = RECORD_BATCH_MAGIC;
        store_be16(p + AT_ATTRIBUTES, (uint16_t)spec->attributes);
        store_be32(p + AT_LAST_OFFSET_DELTA, (uint32_t)(n - 1));
        store_be64(p + AT_BASE_TIMESTAMP, (uint64_t)base_timestamp);
        store_be64(p + AT_MAX_TIMESTAMP, (uint64_t)max_timestamp);
        store_be64(p + AT_PRODUCER_ID, (uint64_t)spec->producer_id);
        store_be16(p + AT_PRODUCER_EPOCH, (uint16_t)spec->producer_epoch);
        store_be32(p + AT_BASE_SEQUENCE, (uint32_t)spec->base_sequence);
        store_be32(p + AT_N_RECORDS, (uint32_t)n);
        store_be32(p + AT_CRC, compute_crc(p, size));
}

int record_batch_build(const struct record_batch_spec *spec, const struct record_spec *records, size_t n,
                       struct buf *out)
{
        int64_t base = records[0].timestamp_ms, max = base;
        size_t start = out->len;
        int r;

        r = buf_append(out, (const uint8_t[RECORD_BATCH_HEADER_BYTES]){0}, RECORD_BATCH_HEADER_BYTES);
        for (size_t i = 0; r == 0 && i < n; i++) {
                r = put_record(out, &records[i], records[i].timestamp_ms - base, i);
                max = MAX(max, records[i].timestamp_ms);
        }
        if (r == 0 && out->len - start > (size_t)INT32_MAX)
                r = -EMSGSIZE;
        if (r < 0) {
                out->len = start;
                return r;
        }
        fill_header(out->data + start, out->len - start, spec, base, max, n);
        return 0;
}
