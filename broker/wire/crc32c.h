/* CRC-32C (Castagnoli), the checksum of record batches. Any thread; the fastest implementation that the CPU
 * has is chosen once, on first use. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

/* Continue @crc (0 to begin) over @len bytes: crc32c(crc32c(0, a), b) is the checksum of a followed by b. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);

/* The implementations behind it, for tests and benches. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);
bool crc32c_hardware_available(void);
/* Call only when crc32c_hardware_available(). */
uint32_t crc32c_hardware(uint32_t crc, const void *data, size_t len);
