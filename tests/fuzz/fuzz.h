/* What a fuzz target defines: libFuzzer's entry point. The same function is also run over the target's corpus
 * by runner.c, so that every input which once broke something is tried by each `meson test`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Fails the run whatever NDEBUG says. */
#define FUZZ_CHECK(condition)                                                                                \
        do {                                                                                                 \
                if (!(condition))                                                                            \
                        __builtin_trap();                                                                    \
        } while (0)
