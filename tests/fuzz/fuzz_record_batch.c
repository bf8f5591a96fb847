/* Any bytes as what a Produce request or a segment holds: batch after batch, their records, and the repair of
 * the timestamp, which writes. */
#include "fuzz.h"

#include <errno.h>

#include "wire/record_batch.h"

static void walk_records(const struct record_batch *b)
{
        struct record_iter it = record_iter(b);
        struct record record;
        int r;

        while ((r = record_iter_next(&it, &record)) > 0) {
                FUZZ_CHECK(it.pos <= it.end);
                FUZZ_CHECK(record.key.len <= (int32_t)b->length && record.value.len <= (int32_t)b->length);
                FUZZ_CHECK(record.headers_len <= b->size);
        }
        FUZZ_CHECK(r == 0 || r == -EBADMSG);
}

static void check_batch(uint8_t *data, struct record_batch *b)
{
        if (record_batch_codec(b) == RECORD_NONE)
                walk_records(b);
        if (record_batch_check(b) == 0 && record_batch_check_produced(b) == 0)
                FUZZ_CHECK(b->n_records == b->last_offset_delta + 1);

        /* The fuzzer cannot guess a checksum; the repair renews it, and what passes then is sound. */
        b->max_timestamp = -1;
        if (record_batch_repair_max_timestamp(data, b) == 0 && record_batch_check_produced(b) == 0)
                FUZZ_CHECK(b->n_records > 0 && !record_batch_is_control(b));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        cleanup_with(buf_donep) struct buf copy = {};
        struct record_batch_iter it;
        struct record_batch b;

        if (size == 0)
                return 0;
        FUZZ_CHECK(buf_append(&copy, data, size) == 0);
        it = record_batch_iter(copy.data, size);
        while (record_batch_iter_next(&it, &b) > 0) {
                FUZZ_CHECK(it.pos <= it.end && b.size >= RECORD_BATCH_HEADER_BYTES);
                check_batch(copy.data + (b.data - copy.data), &b);
        }
        return 0;
}
