/* The only door to the system's clocks. Any thread. */
#pragma once

#include <stdint.h>

int64_t clock_mono_ms(void); /* CLOCK_MONOTONIC: intervals */
int64_t clock_mono_us(void);
int64_t clock_boot_ms(void); /* CLOCK_BOOTTIME: leases; goes on during suspend (F2) */
int64_t clock_real_ms(void); /* CLOCK_REALTIME: record timestamps */
