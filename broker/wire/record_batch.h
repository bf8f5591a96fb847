/* Record batches of format v2: what segments hold and what Produce and Fetch carry. Any thread; no state.
 *
 *   offset size field                     offset size field
 *        0    8 base offset                   27    8 base timestamp
 *        8    4 length of what follows        35    8 max timestamp
 *       12    4 leader epoch                  43    8 producer id
 *       16    1 magic (2)                     51    2 producer epoch
 *       17    4 CRC-32C of 21..end            53    4 base sequence
 *       21    2 attributes                    57    4 number of records
 *       23    4 last offset delta             61      records, compressed as attributes say
 *
 * All big-endian. Base offset, length, leader epoch and magic stand outside the CRC: a leader stamps the
 * first and third in place without touching it. */
#pragma once

#include "base/buf.h"
#include "wire/types.h"

#define RECORD_BATCH_PREFIX_BYTES 12 /* base offset and length: enough to find the next batch */
#define RECORD_BATCH_HEADER_BYTES 61
#define RECORD_BATCH_MAGIC        2
/* The count of a compressed batch is the client's word. Without a bound one of a hundred bytes would take two
 * thousand million offsets, and a segment of its own because an index has room for no more. */
#define RECORD_BATCH_MAX_RECORDS (16 * 1024 * 1024)

enum record_codec { RECORD_NONE, RECORD_GZIP, RECORD_SNAPPY, RECORD_LZ4, RECORD_ZSTD, N_RECORD_CODECS };

#define RECORD_ATTR_CODEC_MASK      0x07
#define RECORD_ATTR_LOG_APPEND_TIME 0x08
#define RECORD_ATTR_TRANSACTIONAL   0x10
#define RECORD_ATTR_CONTROL         0x20

struct record_batch { /* the header, parsed, and the bytes it was parsed from (not owned) */
        const uint8_t *data;
        size_t size; /* of the whole batch: RECORD_BATCH_PREFIX_BYTES + length */
        int64_t base_offset, base_timestamp, max_timestamp, producer_id;
        int32_t length, leader_epoch, last_offset_delta, base_sequence, n_records;
        uint32_t crc;
        int16_t attributes, producer_epoch;
        int8_t magic;
};

/* Parse the header of the batch at @data. Checks sizes and magic, not the CRC.
 *   -ENODATA  fewer than the whole batch is there (a torn tail; also fewer than 12 bytes)
 *   -EBADMSG  the length cannot be a batch's
 *   -EPROTO   magic is not 2 (*ret is not written) */
int record_batch_parse(const void *data, size_t len, struct record_batch *ret) must_check;

/* What must hold of every stored or replicated batch: the CRC, and a header whose numbers can be right. A
 * compacted batch may have lost records, even all of them. -EBADMSG. */
int record_batch_check(const struct record_batch *b) must_check;

/* What must hold of a batch that a client produces, besides record_batch_check(): at least one record, as
 * many as offsets and not more than RECORD_BATCH_MAX_RECORDS, a codec we know, no control batch, a sequence
 * where there is a producer id; and when it is not compressed, records that fill the payload exactly with
 * offset deltas 0, 1, 2 … -EBADMSG  corrupt: CRC, sizes   -EINVAL  an invalid record or header   -ENOPROTOOPT
 * unknown codec */
int record_batch_check_produced(const struct record_batch *b) must_check;

static inline enum record_codec record_batch_codec(const struct record_batch *b)
{
        return (enum record_codec)(b->attributes & RECORD_ATTR_CODEC_MASK); /* 5..7: unknown */
}

static inline bool record_batch_is_control(const struct record_batch *b)
{
        return b->attributes & RECORD_ATTR_CONTROL;
}

static inline int64_t record_batch_last_offset(const struct record_batch *b)
{
        return (int64_t)((uint64_t)b->base_offset +
                         (uint64_t)b->last_offset_delta); /* unchecked input may wrap */
}

/* --- changing a batch in place; @data: at least RECORD_BATCH_HEADER_BYTES --- */
void record_batch_set_base_offset(uint8_t *data, int64_t base_offset);
void record_batch_set_leader_epoch(uint8_t *data, int32_t leader_epoch);
/* Some clients leave the max timestamp at -1 although records have timestamps, which hides the batch from
 * every lookup by time. Fill in the largest (of a compressed batch: the base timestamp) in @data and @b and
 * renew the CRC; nothing happens if it is set. @data: the bytes that @b was parsed from. -EBADMSG: records
 * malformed. */
int record_batch_repair_max_timestamp(uint8_t *data, struct record_batch *b) must_check;

/* --- walking batches --- */
struct record_batch_iter {
        const uint8_t *pos, *end;
};

static inline struct record_batch_iter record_batch_iter(const void *data, size_t len)
{
        return (struct record_batch_iter){.pos = data, .end = len > 0 ? (const uint8_t *)data + len : data};
}

/* 1: *ret is the next batch. 0: no whole batch is left; what remains from it->pos to it->end is a torn tail
 * (or nothing). -EBADMSG, -EPROTO: as record_batch_parse(); it->pos stays at the bad batch. */
int record_batch_iter_next(struct record_batch_iter *it, struct record_batch *ret) must_check;

/* --- walking the records of a batch that is not compressed --- */
struct record {
        int8_t attributes;
        int32_t offset_delta, n_headers;
        int64_t timestamp_delta;
        struct wire_bytes key, value; /* may be null */
        const uint8_t *headers;       /* n_headers times: key and value, both with varint lengths */
        size_t headers_len;
};

struct record_iter {
        const uint8_t *pos, *end;
        int32_t left;
};

static inline struct record_iter record_iter(const struct record_batch *b)
{
        return (struct record_iter){
                .pos = b->data + RECORD_BATCH_HEADER_BYTES, .end = b->data + b->size, .left = b->n_records};
}

/* 1: *ret is the next record. 0: all n_records were read. -EBADMSG: malformed, or bytes are left over after
 * the last. */
int record_iter_next(struct record_iter *it, struct record *ret) must_check;

/* --- building --- */
struct record_spec {
        int64_t timestamp_ms;
        struct wire_bytes key, value;
};

struct record_batch_spec {
        int64_t base_offset, producer_id; /* producer_id -1: not idempotent */
        int32_t leader_epoch, base_sequence;
        int16_t producer_epoch, attributes; /* the payload is never compressed, whatever attributes say */
};

#define RECORD_BATCH_SPEC_PLAIN                                                                              \
        ((struct record_batch_spec){                                                                         \
                .leader_epoch = -1, .producer_id = -1, .producer_epoch = -1, .base_sequence = -1})

/* Append one batch of @n > 0 records to @out. -ENOMEM, -EMSGSIZE. */
int record_batch_build(const struct record_batch_spec *spec, const struct record_spec *records, size_t n,
                       struct buf *out) must_check;
