/* Random messages for tests: fills any struct from its table, and compares two by it. */
#pragma once

#include "wire/table.h"

struct rng {
        uint64_t state;
};

/* From the environment variable WIRE_TEST_SEED, else from the clock; printed, so that a failure can be
 * repeated. */
struct rng rng_from_environment(void);
uint64_t rng_next(struct rng *r);
static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
        return (uint32_t)(rng_next(r) >> 32) % n;
}

enum fill_style {
        FILL_ANYTHING,
        FILL_NO_TAGS, /* tagged fields keep their defaults */
};

/* Members that @version carries get random values (nulls where it has them), the others their defaults. */
void fill_message(const struct wire_message *m, int16_t version, enum fill_style style, struct rng *r,
                  struct arena *a, void *ret);
bool equal_messages(const struct wire_message *m, const void *x, const void *y);

/* Every message of the API table, one after the other: *cursor starts at 0; NULL at the end. */
const struct wire_message *next_message(size_t *cursor);
