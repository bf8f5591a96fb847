/* What must hold of every message at every version: nothing here names one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fill.h"

#include <errno.h>

#define ROUNDS 8

struct fixture {
        struct rng rng;
        struct arena arena;
        struct buf encoded, again;
        void *original, *decoded;
};

static struct rng shared_rng;

static void fixture_begin(struct fixture *f, const struct wire_message *m)
{
        *f = (struct fixture){.rng = {.state = rng_next(&shared_rng)},
                              .original = calloc(1, wire_struct_size(m)),
                              .decoded = calloc(1, wire_struct_size(m))};
        arena_init(&f->arena, 0);
        buf_init(&f->encoded, 0);
        buf_init(&f->again, 0);
        assert_non_null(f->original);
        assert_non_null(f->decoded);
}

static void fixture_end(struct fixture *f)
{
        free(f->original);
        free(f->decoded);
        arena_done(&f->arena);
        buf_done(&f->encoded);
        buf_done(&f->again);
}

/* Decode a copy that ends where @len says, so that the sanitizer sees every byte read past it. */
static int decode_exact(const struct wire_message *m, int16_t version, const void *data, size_t len,
                        struct arena *a, void *ret)
{
        uint8_t *copy = malloc(MAX(len, (size_t)1));
        int r;

        assert_non_null(copy);
        memcpy(copy, data, len);
        r = wire_decode(m, version, copy, len, a, ret);
        free(copy);
        return r;
}

static void for_every_version(void (*check)(const struct wire_message *m, int16_t version, struct fixture *f))
{
        const struct wire_message *m;
        struct fixture f;

        for (size_t cursor = 0; (m = next_message(&cursor));)
                for (int16_t v = wire_min_version(m); v <= wire_max_version(m); v++)
                        for (int round = 0; round < ROUNDS; round++) {
                                fixture_begin(&f, m);
                                check(m, v, &f);
                                fixture_end(&f);
                        }
}

static void check_round_trip(const struct wire_message *m, int16_t version, struct fixture *f)
{
        fill_message(m, version, FILL_ANYTHING, &f->rng, &f->arena, f->original);

        assert_int_equal(wire_encode(m, version, f->original, &f->encoded), 0);
        assert_int_equal(wire_decode(m, version, f->encoded.data, f->encoded.len, &f->arena, f->decoded), 0);
        assert_int_equal(wire_encode(m, version, f->decoded, &f->again), 0);

        assert_true(equal_messages(m, f->original, f->decoded));
        assert_int_equal(f->encoded.len, f->again.len);
        assert_memory_equal(f->encoded.data, f->again.data, f->encoded.len);
}

static void every_message_survives_a_round_trip_at_every_version(void **state)
{
        (void)state;
        for_every_version(check_round_trip);
}

static void check_truncation(const struct wire_message *m, int16_t version, struct fixture *f)
{
        fill_message(m, version, FILL_ANYTHING, &f->rng, &f->arena, f->original);
        assert_int_equal(wire_encode(m, version, f->original, &f->encoded), 0);

        /* Long messages are cut at every byte of both ends and at a sample in between. */
        for (size_t len = 0; len < f->encoded.len; len++) {
                bool near_an_end = len < 256 || f->encoded.len - len < 256;

                if (near_an_end || rng_below(&f->rng, 16) == 0)
                        assert_int_equal(
                                decode_exact(m, version, f->encoded.data, len, &f->arena, f->decoded),
                                -EBADMSG);
        }
}

static void every_message_is_refused_when_cut_anywhere(void **state)
{
        (void)state;
        for_every_version(check_truncation);
}

/* K1, clients.md: librdkafka leaves three stray bytes behind Metadata v9+. */
static void check_trailing_bytes(const struct wire_message *m, int16_t version, struct fixture *f)
{
        fill_message(m, version, FILL_ANYTHING, &f->rng, &f->arena, f->original);
        assert_int_equal(wire_encode(m, version, f->original, &f->encoded), 0);
        assert_int_equal(buf_append(&f->encoded, "\1\2\3", 3), 0);

        assert_int_equal(wire_decode(m, version, f->encoded.data, f->encoded.len, &f->arena, f->decoded), 0);
        assert_true(equal_messages(m, f->original, f->decoded));
}

static void bytes_behind_a_body_are_ignored(void **state)
{
        (void)state;
        for_every_version(check_trailing_bytes);
}

static void check_unknown_tags(const struct wire_message *m, int16_t version, struct fixture *f)
{
        /* two tags that nobody knows: 99 with 3 bytes, 300 (two bytes of varint) with none */
        static const uint8_t tags[] = {2, 99, 3, 'x', 'y', 'z', 0xac, 0x02, 0};

        if (!wire_is_flexible(m, version))
                return;
        fill_message(m, version, FILL_NO_TAGS, &f->rng, &f->arena, f->original);
        assert_int_equal(wire_encode(m, version, f->original, &f->encoded), 0);
        assert_int_equal(f->encoded.data[f->encoded.len - 1], 0);
        f->encoded.len--; /* the number of tags of the message itself: none */
        assert_int_equal(buf_append(&f->encoded, tags, sizeof(tags)), 0);

        assert_int_equal(wire_decode(m, version, f->encoded.data, f->encoded.len, &f->arena, f->decoded), 0);
        assert_true(equal_messages(m, f->original, f->decoded));
        for (size_t cut = 1; cut <= sizeof(tags); cut++)
                assert_int_equal(decode_exact(m, version, f->encoded.data, f->encoded.len - cut, &f->arena,
                                              f->decoded),
                                 -EBADMSG);
}

static void unknown_tags_are_skipped(void **state)
{
        (void)state;
        for_every_version(check_unknown_tags);
}

/* Random damage must end in a message or in -EBADMSG, never in a read or an allocation out of bounds. */
static void check_damage(const struct wire_message *m, int16_t version, struct fixture *f)
{
        int r;

        fill_message(m, version, FILL_ANYTHING, &f->rng, &f->arena, f->original);
        assert_int_equal(wire_encode(m, version, f->original, &f->encoded), 0);
        for (int i = 0; i < 32 && f->encoded.len > 0; i++) {
                size_t at = rng_below(&f->rng, (uint32_t)f->encoded.len);
                struct arena arena;

                f->encoded.data[at] = (uint8_t)rng_next(&f->rng);
                arena_init(&arena, 256 * 1024);
                r = decode_exact(m, version, f->encoded.data, f->encoded.len, &arena, f->decoded);
                assert_true(r == 0 || r == -EBADMSG || r == -ENOMEM);
                arena_done(&arena);
        }
}

static void damaged_messages_are_decoded_or_refused(void **state)
{
        (void)state;
        for_every_version(check_damage);
}

static void check_full_buffer(const struct wire_message *m, int16_t version, struct fixture *f)
{
        struct buf small;

        fill_message(m, version, FILL_ANYTHING, &f->rng, &f->arena, f->original);
        assert_int_equal(wire_encode(m, version, f->original, &f->encoded), 0);
        if (f->encoded.len == 0)
                return;

        buf_init(&small, 4 + f->encoded.len - 1);
        assert_int_equal(buf_append(&small, "kept", 4), 0);
        assert_int_equal(wire_encode(m, version, f->original, &small), -EMSGSIZE);
        assert_int_equal(small.len, 4);
        buf_done(&small);
}

static void encoding_past_the_ceiling_leaves_the_buffer_as_it_was(void **state)
{
        (void)state;
        for_every_version(check_full_buffer);
}

static void check_arena_limits(const struct wire_message *m, int16_t version, struct fixture *f)
{
        int r = -ENOMEM;

        fill_message(m, version, FILL_ANYTHING, &f->rng, &f->arena, f->original);
        assert_int_equal(wire_encode(m, version, f->original, &f->encoded), 0);
        for (size_t limit = 1; r == -ENOMEM; limit += limit / 8 + 16) {
                struct arena arena;

                arena_init(&arena, limit);
                r = wire_decode(m, version, f->encoded.data, f->encoded.len, &arena, f->decoded);
                arena_done(&arena);
        }
        assert_int_equal(r, 0);
}

static void decoding_ends_with_enomem_when_the_arena_is_full(void **state)
{
        (void)state;
        for_every_version(check_arena_limits);
}

static void versions_outside_the_table_are_refused(void **state)
{
        const struct wire_message *m;
        struct fixture f;

        (void)state;
        for (size_t cursor = 0; (m = next_message(&cursor));) {
                const int16_t outside[] = {-1, INT16_MIN, INT16_MAX, (int16_t)(wire_min_version(m) - 1),
                                           (int16_t)(wire_max_version(m) + 1)};

                fixture_begin(&f, m);
                for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
                        assert_int_equal(wire_decode(m, outside[i], "", 0, &f.arena, f.decoded),
                                         -EPROTONOSUPPORT);
                        assert_int_equal(wire_encode(m, outside[i], f.original, &f.encoded),
                                         -EPROTONOSUPPORT);
                }
                fixture_end(&f);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_message_survives_a_round_trip_at_every_version),
                cmocka_unit_test(every_message_is_refused_when_cut_anywhere),
                cmocka_unit_test(bytes_behind_a_body_are_ignored),
                cmocka_unit_test(unknown_tags_are_skipped),
                cmocka_unit_test(damaged_messages_are_decoded_or_refused),
                cmocka_unit_test(encoding_past_the_ceiling_leaves_the_buffer_as_it_was),
                cmocka_unit_test(decoding_ends_with_enomem_when_the_arena_is_full),
                cmocka_unit_test(versions_outside_the_table_are_refused),
        };

        shared_rng = rng_from_environment();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
