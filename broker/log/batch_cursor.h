/* Walks the batch headers of a segment file without reading the records. One thread at a time; the file may
 * grow meanwhile, for the cursor stops at the end it was given. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct batch_meta { /* a batch's header and where it lies in the file */
        int64_t position, size;
        int64_t base_offset, last_offset, base_timestamp, max_timestamp, producer_id;
        int32_t leader_epoch, base_sequence, n_records;
        uint32_t crc;
        int16_t attributes, producer_epoch;
};

/* Parse the 61 bytes at @header as the batch at @position. -EBADMSG: numbers that no batch can have. */
int batch_meta_parse(const uint8_t *header, int64_t position, struct batch_meta *ret) must_check;

struct batch_cursor {
        int fd;
        int64_t position, end; /* of the next batch; of the bytes that may be looked at */
        uint8_t *window;       /* caller's memory, at least RECORD_BATCH_HEADER_BYTES */
        size_t window_size;
        int64_t window_position;
        size_t window_len;
};

void batch_cursor_init(struct batch_cursor *c, int fd, int64_t position, int64_t end, uint8_t *window,
                       size_t window_size);
/* 1: *ret is the next batch, and the cursor stands behind it. 0: the end.
 * -ENODATA  what is left is shorter than a batch (a torn tail); the cursor stays
 * -EBADMSG  not a batch; the cursor stays     -EIO … from reading */
int batch_cursor_next(struct batch_cursor *c, struct batch_meta *ret) must_check;
/* Does the batch that was just returned have the checksum its header says? 0, -EBADMSG, or -errno from
 * reading. */
int batch_cursor_check_crc(struct batch_cursor *c, const struct batch_meta *b) must_check;
