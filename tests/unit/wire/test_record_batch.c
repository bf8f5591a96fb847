/* Record batches: those of another implementation are read, ours are like them, and every lie is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "fill.h"

#include "wire/crc32c.h"
#include "wire/cursor.h"
#include "wire/record_batch.h"

/* Written by kafka-python 2.0.2: three records, the first with headers "h1" = "x" and "h2" = null, the second
 * with a null key, the third with an empty key, a null value and the lowest timestamp. */
static const uint8_t plain_batch[] = {
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x9f, 0x00, 0x00, 0x00, 0x00,
        0x02, 0x96, 0x2a, 0xcd, 0x3e, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x01, 0x74, 0x87,
        0x6e, 0x80, 0x00, 0x00, 0x00, 0x01, 0x74, 0x87, 0x6e, 0x80, 0x05, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x03, 0x2e, 0x00, 0x00,
        0x00, 0x06, 0x6b, 0x65, 0x79, 0x0a, 0x76, 0x61, 0x6c, 0x75, 0x65, 0x04, 0x04, 0x68, 0x31, 0x02,
        0x78, 0x04, 0x68, 0x32, 0x01, 0x9a, 0x01, 0x00, 0x0a, 0x02, 0x01, 0x8c, 0x01, 0x76, 0x76, 0x76,
        0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76,
        0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76,
        0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76,
        0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76, 0x76,
        0x76, 0x76, 0x76, 0x00, 0x0c, 0x00, 0x13, 0x04, 0x00, 0x01, 0x00,
};

/* The same writer, compressed by gzip, of producer 4711, epoch 3, sequence 100. */
static const uint8_t gzip_batch[] = {
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x62, 0x00, 0x00, 0x00, 0x00,
        0x02, 0x87, 0xaa, 0x39, 0x4b, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x01, 0x74, 0x87,
        0x6e, 0x80, 0x00, 0x00, 0x00, 0x01, 0x74, 0x87, 0x6e, 0x80, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x12, 0x67, 0x00, 0x03, 0x00, 0x00, 0x00, 0x64, 0x00, 0x00, 0x00, 0x03, 0x1f, 0x8b, 0x08,
        0x00, 0xd7, 0xce, 0x0c, 0x6b, 0x02, 0xff, 0xbb, 0xc1, 0xc8, 0xc0, 0xc0, 0xc0, 0x94, 0x7d, 0x82,
        0xb1, 0x2c, 0x31, 0xa7, 0x34, 0x95, 0xc6, 0x04, 0xc3, 0x0d, 0x46, 0x06, 0x26, 0x26, 0x7a, 0xda,
        0xc6, 0xc2, 0x42, 0x37, 0xdb, 0x00, 0x38, 0x70, 0x66, 0xc9, 0x4a, 0x01, 0x00, 0x00,
};

/* The same writer: two records without headers. */
static const uint8_t small_batch[] = {
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00,
        0x02, 0xa1, 0x1d, 0x0f, 0x91, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x01, 0x74, 0x87,
        0x6e, 0x80, 0x05, 0x00, 0x00, 0x01, 0x74, 0x87, 0x6e, 0x80, 0x05, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x02, 0x0e, 0x00, 0x00,
        0x00, 0x01, 0x02, 0x76, 0x00, 0x0c, 0x00, 0x1d, 0x02, 0x00, 0x01, 0x00,
};

static struct wire_bytes bytes_of(const char *s)
{
        return (struct wire_bytes){.data = (const uint8_t *)s, .len = (int32_t)strlen(s)};
}

/* @n records "k", "value <i>" a millisecond apart. */
static void build(const struct record_batch_spec *spec, size_t n, struct buf *out)
{
        struct record_spec *records = calloc(n, sizeof(*records));
        char(*values)[32] = calloc(n, sizeof(*values));

        for (size_t i = 0; i < n; i++) {
                (void)snprintf(values[i], sizeof(values[i]), "value %zu", i);
                records[i] = (struct record_spec){.timestamp_ms = 1000 + (int64_t)i,
                                                  .key = bytes_of("k"),
                                                  .value = bytes_of(values[i])};
        }
        assert_int_equal(record_batch_build(spec, records, n, out), 0);
        free(records);
        free(values);
}

static struct record_batch parse(const struct buf *b)
{
        struct record_batch batch;

        assert_int_equal(record_batch_parse(b->data, b->len, &batch), 0);
        return batch;
}

/* After changing bytes behind the CRC by hand. */
static struct record_batch parse_with_new_crc(struct buf *b)
{
        store_be32(b->data + 17, crc32c(0, b->data + 21, b->len - 21));
        return parse(b);
}

static void a_batch_of_another_implementation_is_read(void **state)
{
        struct record_batch b;
        struct record_iter it;
        struct record r;

        (void)state;
        assert_int_equal(record_batch_parse(plain_batch, sizeof(plain_batch), &b), 0);
        assert_int_equal(b.size, sizeof(plain_batch));
        assert_int_equal(b.n_records, 3);
        assert_int_equal(b.last_offset_delta, 2);
        assert_int_equal(b.base_timestamp, 1600000000000);
        assert_int_equal(b.max_timestamp, 1600000000005);
        assert_int_equal(b.producer_id, -1);
        assert_int_equal(record_batch_check(&b), 0);
        assert_int_equal(record_batch_check_produced(&b), 0);

        it = record_iter(&b);
        assert_int_equal(record_iter_next(&it, &r), 1);
        assert_memory_equal(r.key.data, "key", 3);
        assert_memory_equal(r.value.data, "value", 5);
        assert_int_equal(r.n_headers, 2);
        assert_int_equal(r.headers_len, 9);
        assert_int_equal(record_iter_next(&it, &r), 1);
        assert_int_equal(r.key.len, -1);
        assert_int_equal(r.value.len, 70);
        assert_int_equal(r.timestamp_delta, 5);
        assert_int_equal(record_iter_next(&it, &r), 1);
        assert_int_equal(r.key.len, 0);
        assert_int_equal(r.value.len, -1);
        assert_int_equal(r.timestamp_delta, -10);
        assert_int_equal(r.offset_delta, 2);
        assert_int_equal(record_iter_next(&it, &r), 0);
}

static void a_compressed_batch_is_checked_without_being_opened(void **state)
{
        struct record_batch b;

        (void)state;
        assert_int_equal(record_batch_parse(gzip_batch, sizeof(gzip_batch), &b), 0);
        assert_int_equal(record_batch_codec(&b), RECORD_GZIP);
        assert_int_equal(b.producer_id, 4711);
        assert_int_equal(b.producer_epoch, 3);
        assert_int_equal(b.base_sequence, 100);
        assert_int_equal(record_batch_check_produced(&b), 0);
}

/* Byte for byte what the other implementation wrote. */
static void the_builder_writes_what_others_write(void **state)
{
        const struct record_spec records[] = {
                {.timestamp_ms = 1600000000005, .key = {.len = -1}, .value = bytes_of("v")},
                {.timestamp_ms = 1599999999990, .key = bytes_of(""), .value = {.len = -1}},
        };
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};

        (void)state;
        spec.leader_epoch = 0;
        assert_int_equal(record_batch_build(&spec, records, 2, &out), 0);
        assert_int_equal(out.len, sizeof(small_batch));
        assert_memory_equal(out.data, small_batch, sizeof(small_batch));
}

static void stamping_offset_and_epoch_leaves_the_checksum_valid(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch b;

        (void)state;
        build(&spec, 3, &out);
        record_batch_set_base_offset(out.data, 1234567890123);
        record_batch_set_leader_epoch(out.data, 42);

        b = parse(&out);
        assert_int_equal(b.base_offset, 1234567890123);
        assert_int_equal(b.leader_epoch, 42);
        assert_int_equal(record_batch_last_offset(&b), 1234567890125);
        assert_int_equal(record_batch_check_produced(&b), 0);
}

static void any_flipped_bit_behind_the_checksum_is_found(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch b;

        (void)state;
        build(&spec, 2, &out);
        for (size_t i = 17; i < out.len; i++)
                for (int bit = 0; bit < 8; bit++) {
                        out.data[i] ^= (uint8_t)(1 << bit);
                        b = parse(&out);
                        assert_int_equal(record_batch_check(&b), -EBADMSG);
                        out.data[i] ^= (uint8_t)(1 << bit);
                }
}

static void a_batch_cut_anywhere_is_a_torn_tail(void **state)
{
        struct record_batch b;

        (void)state;
        for (size_t len = 0; len < sizeof(plain_batch); len++) {
                uint8_t *copy = malloc(len + 1);

                memcpy(copy, plain_batch, len);
                assert_int_equal(record_batch_parse(copy, len, &b), -ENODATA);
                free(copy);
        }
}

static void lengths_and_magics_that_cannot_be_are_refused(void **state)
{
        static const int32_t lengths[] = {0, -1, INT32_MIN, 13, 48};
        uint8_t copy[sizeof(plain_batch)];
        struct record_batch b;

        (void)state;
        memcpy(copy, plain_batch, sizeof(copy));
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                store_be32(copy + 8, (uint32_t)lengths[i]);
                assert_int_equal(record_batch_parse(copy, sizeof(copy), &b), -EBADMSG);
        }
        store_be32(copy + 8, INT32_MAX);
        assert_int_equal(record_batch_parse(copy, sizeof(copy), &b), -ENODATA);
        copy[16] = 1;
        assert_int_equal(record_batch_parse(copy, sizeof(copy), &b), -EPROTO);
}

static void iteration_stops_at_a_torn_tail(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch_iter it;
        struct record_batch b;
        size_t two;

        (void)state;
        /* given two whole batches and most of a third */
        build(&spec, 1, &out);
        spec.base_offset = 1;
        build(&spec, 5, &out);
        two = out.len;
        spec.base_offset = 6;
        build(&spec, 1, &out);
        out.len--;

        /* when walked, then the second is the last, and the tail begins behind it */
        it = record_batch_iter(out.data, out.len);
        assert_int_equal(record_batch_iter_next(&it, &b), 1);
        assert_int_equal(b.base_offset, 0);
        assert_int_equal(record_batch_iter_next(&it, &b), 1);
        assert_int_equal(record_batch_last_offset(&b), 5);
        assert_int_equal(record_batch_iter_next(&it, &b), 0);
        assert_int_equal(it.pos - out.data, two);
        assert_int_equal(it.end - out.data, out.len);
}

static void iteration_stays_at_a_bad_batch(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch_iter it;
        struct record_batch b;
        size_t one;

        (void)state;
        build(&spec, 1, &out);
        one = out.len;
        build(&spec, 1, &out);
        out.data[one + 8] = 0xff;

        it = record_batch_iter(out.data, out.len);
        assert_int_equal(record_batch_iter_next(&it, &b), 1);
        assert_int_equal(record_batch_iter_next(&it, &b), -EBADMSG);
        assert_int_equal(record_batch_iter_next(&it, &b), -EBADMSG);
        assert_int_equal(it.pos - out.data, one);
}

/* Each row: where a client lies, and what it gets. */
static void lies_in_a_produced_header_are_found(void **state)
{
        static const struct {
                size_t at, size;
                int64_t value;
                int expected;
        } lies[] = {
                {21, 2, 5, -ENOPROTOOPT},                      /* codec 5 */
                {21, 2, RECORD_ATTR_CONTROL, -EINVAL},         /* control batch */
                {21, 2, RECORD_ATTR_LOG_APPEND_TIME, -EINVAL}, /* the broker's clock */
                {23, 4, 3, -EINVAL},                           /* a gap in the offsets */
                {23, 4, 1, -EBADMSG},                          /* more records than offsets */
                {23, 4, -1, -EBADMSG},                         /* */
                {57, 4, 2, -EINVAL},                           /* fewer records than there are */
                {57, 4, 0, -EINVAL},                           /* none */
                {57, 4, -1, -EBADMSG},                         /* */
                {43, 8, 7, -EINVAL},                           /* a producer without epoch and sequence */
        };
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
                cleanup_with(buf_donep) struct buf out = {};
                uint8_t value[8];
                struct record_batch b;

                build(&spec, 3, &out);
                store_be64(value, (uint64_t)lies[i].value);
                memcpy(out.data + lies[i].at, value + 8 - lies[i].size, lies[i].size);
                b = parse_with_new_crc(&out);
                assert_int_equal(record_batch_check_produced(&b), lies[i].expected);
        }
}

static void a_compressed_batch_cannot_claim_any_number_of_records(void **state)
{
        static const int32_t counts[] = {RECORD_BATCH_MAX_RECORDS, RECORD_BATCH_MAX_RECORDS + 1, INT32_MAX};
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;

        (void)state;
        spec.attributes = RECORD_SNAPPY;
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
                cleanup_with(buf_donep) struct buf out = {};
                struct record_batch b;

                build(&spec, 1, &out);
                store_be32(out.data + 23, (uint32_t)counts[i] - 1);
                store_be32(out.data + 57, (uint32_t)counts[i]);
                b = parse_with_new_crc(&out);
                assert_int_equal(record_batch_check_produced(&b), i == 0 ? 0 : -EINVAL);
        }
}

static void records_that_do_not_fill_the_payload_are_refused(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch b;

        (void)state;
        build(&spec, 3, &out);
        assert_int_equal(buf_append(&out, "", 1), 0);
        store_be32(out.data + 8, (uint32_t)out.len - 12);
        b = parse_with_new_crc(&out);
        assert_int_equal(record_batch_check(&b), 0);
        assert_int_equal(record_batch_check_produced(&b), -EINVAL);
}

static void offset_deltas_out_of_order_are_refused(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch b;

        (void)state;
        build(&spec, 1, &out);
        assert_int_equal(out.data[RECORD_BATCH_HEADER_BYTES + 3],
                         0); /* length, attributes, timestamp: then this */
        out.data[RECORD_BATCH_HEADER_BYTES + 3] = 2;
        b = parse_with_new_crc(&out);
        assert_int_equal(record_batch_check_produced(&b), -EINVAL);
}

/* Compaction takes records out of batches and may leave none; followers and recovery meet such batches. */
static void compacted_batches_pass_the_check_of_stored_ones(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch b;

        (void)state;
        build(&spec, 1, &out);
        store_be32(out.data + 23, 9);
        b = parse_with_new_crc(&out);
        assert_int_equal(record_batch_check(&b), 0);
        store_be32(out.data + 57, 0);
        b = parse_with_new_crc(&out);
        assert_int_equal(record_batch_check(&b), 0);
}

static void offsets_that_overflow_are_refused(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch b;

        (void)state;
        spec.base_offset = INT64_MAX - 1;
        build(&spec, 3, &out);
        b = parse(&out);
        assert_int_equal(record_batch_check(&b), -EBADMSG);
}

static void damaged_records_are_walked_within_bounds(void **state)
{
        struct rng rng = rng_from_environment();

        (void)state;
        for (int round = 0; round < 20000; round++) {
                uint8_t *copy = malloc(sizeof(plain_batch));
                struct record_iter it;
                struct record_batch b;
                struct record record;
                int r;

                memcpy(copy, plain_batch, sizeof(plain_batch));
                for (int i = 0; i < 3; i++)
                        copy[57 + rng_below(&rng, sizeof(plain_batch) - 57)] = (uint8_t)rng_next(&rng);
                assert_int_equal(record_batch_parse(copy, sizeof(plain_batch), &b), 0);
                it = record_iter(&b);
                while ((r = record_iter_next(&it, &record)) > 0)
                        assert_true(it.pos <= it.end);
                assert_true(r == 0 || r == -EBADMSG);
                free(copy);
        }
}

/* clients.md §2.4: sarama sends -1. */
static void a_missing_max_timestamp_is_repaired(void **state)
{
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        cleanup_with(buf_donep) struct buf out = {};
        struct record_batch b, again;

        (void)state;
        build(&spec, 3, &out);
        store_be64(out.data + 35, (uint64_t)-1);
        b = parse_with_new_crc(&out);
        assert_int_equal(record_batch_repair_max_timestamp(out.data, &b), 0);

        again = parse(&out);
        assert_int_equal(again.max_timestamp, 1002);
        assert_int_equal(b.max_timestamp, 1002);
        assert_int_equal(record_batch_check_produced(&again), 0);
        assert_int_equal(record_batch_check_produced(&b), 0);
}

static void a_compressed_batch_is_repaired_with_its_base_timestamp(void **state)
{
        uint8_t copy[sizeof(gzip_batch)];
        struct buf out = {.data = copy, .len = sizeof(copy)};
        struct record_batch b;

        (void)state;
        memcpy(copy, gzip_batch, sizeof(copy));
        store_be64(copy + 35, (uint64_t)-1);
        b = parse_with_new_crc(&out);
        assert_int_equal(record_batch_repair_max_timestamp(copy, &b), 0);
        assert_int_equal(parse(&out).max_timestamp, 1600000000000);
        assert_int_equal(record_batch_check_produced(&b), 0);
}

static void a_max_timestamp_that_is_there_is_left_alone(void **state)
{
        uint8_t copy[sizeof(plain_batch)];
        struct record_batch b;

        (void)state;
        memcpy(copy, plain_batch, sizeof(copy));
        assert_int_equal(record_batch_parse(copy, sizeof(copy), &b), 0);
        assert_int_equal(record_batch_repair_max_timestamp(copy, &b), 0);
        assert_memory_equal(copy, plain_batch, sizeof(copy));
}

static void building_past_the_ceiling_leaves_the_buffer_as_it_was(void **state)
{
        struct record_spec record = {.key = bytes_of("k"), .value = bytes_of("v")};
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;

        (void)state;
        for (size_t ceiling = 4; ceiling < RECORD_BATCH_HEADER_BYTES + 9 + 4; ceiling++) {
                cleanup_with(buf_donep) struct buf out = {.ceiling = ceiling};

                assert_int_equal(buf_append(&out, "kept", 4), 0);
                assert_int_equal(record_batch_build(&spec, &record, 1, &out), -EMSGSIZE);
                assert_int_equal(out.len, 4);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_batch_of_another_implementation_is_read),
                cmocka_unit_test(a_compressed_batch_is_checked_without_being_opened),
                cmocka_unit_test(the_builder_writes_what_others_write),
                cmocka_unit_test(stamping_offset_and_epoch_leaves_the_checksum_valid),
                cmocka_unit_test(any_flipped_bit_behind_the_checksum_is_found),
                cmocka_unit_test(a_batch_cut_anywhere_is_a_torn_tail),
                cmocka_unit_test(lengths_and_magics_that_cannot_be_are_refused),
                cmocka_unit_test(iteration_stops_at_a_torn_tail),
                cmocka_unit_test(iteration_stays_at_a_bad_batch),
                cmocka_unit_test(lies_in_a_produced_header_are_found),
                cmocka_unit_test(a_compressed_batch_cannot_claim_any_number_of_records),
                cmocka_unit_test(records_that_do_not_fill_the_payload_are_refused),
                cmocka_unit_test(offset_deltas_out_of_order_are_refused),
                cmocka_unit_test(compacted_batches_pass_the_check_of_stored_ones),
                cmocka_unit_test(offsets_that_overflow_are_refused),
                cmocka_unit_test(damaged_records_are_walked_within_bounds),
                cmocka_unit_test(a_missing_max_timestamp_is_repaired),
                cmocka_unit_test(a_compressed_batch_is_repaired_with_its_base_timestamp),
                cmocka_unit_test(a_max_timestamp_that_is_there_is_left_alone),
                cmocka_unit_test(building_past_the_ceiling_leaves_the_buffer_as_it_was),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
