/* Unpacks the records of a compressed batch. Any thread; no state. */
#pragma once

#include "base/buf.h"
#include "wire/record_batch.h"

/* Append what @data unpacks to to @out, whose ceiling stops decompression bombs.
 * -EBADMSG  damaged   -EMSGSIZE  larger than the ceiling   -ENOPROTOOPT  unknown codec   -ENOMEM
 * Snappy comes in two forms: the raw block (librdkafka) and snappy-java's framing (Java); both are read. */
int decompress(enum record_codec codec, const void *data, size_t len, struct buf *out) must_check;
