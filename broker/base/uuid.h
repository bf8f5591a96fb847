/* 128-bit random ids in Kafka's text form: base64url without padding, 22 characters. Any thread. */
#pragma once

#include <stdint.h>

#include "base/util.h"

struct uuid {
        uint8_t bytes[16];
};

#define UUID_TEXT_SIZE 23

int uuid_random(struct uuid *ret) must_check; /* never zero, never begins with '-' in text form (KIP-516) */
void uuid_format(const struct uuid *u, char out[UUID_TEXT_SIZE]);
int uuid_parse(const char *s, struct uuid *ret) must_check; /* -EINVAL */
bool uuid_is_zero(const struct uuid *u);
bool uuid_equal(const struct uuid *a, const struct uuid *b);
