/* The rules of the encoding, shown on small tables of our own: what a newer peer may add, what an older
 * version cannot carry, what is null, how much is believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "wire/stop_replica.h"
#include "wire/table.h"

struct inner {
        int32_t id;
        struct wire_str note; /* v2+, tag 3 */
};

struct sample {
        bool flag;
        WIRE_ARRAY(struct inner) inners;
        struct inner *maybe; /* v1+, may be null */
        WIRE_ARRAY(struct wire_str) names;
        struct wire_bytes blob;  /* may be null from v1 */
        int32_t must;            /* v1+, not ignorable, default -1 */
        int16_t may;             /* v1+, ignorable */
        int64_t late;            /* v2+, tag 0, default -1 */
        struct inner boxed;      /* v2+, tag 1 */
        WIRE_ARRAY(int8_t) list; /* v2+, tag 2, default null */
};

static const struct wire_field inner_fields[] = {
        FIELD(inner, id, INT32, 0, LAST, DEFAULT(-1)),
        FIELD(inner, note, STRING, 2, LAST, TAG(3), NULL_FROM(2), DEFAULT_NULL, IGNORABLE),
};
static const struct wire_struct inner_wire = STRUCT_TABLE(inner);

static const struct wire_field sample_fields[] = {
        FIELD(sample, flag, BOOL, 0, LAST),
        ARRAY_OF(sample, inners, inner, 0, LAST),
        STRUCT_PTR(sample, maybe, inner, 1, LAST, NULL_FROM(1)),
        ARRAY(sample, names, STRING, 0, LAST),
        FIELD(sample, blob, BYTES, 0, LAST, NULL_FROM(1)),
        FIELD(sample, must, INT32, 1, LAST, DEFAULT(-1)),
        FIELD(sample, may, INT16, 1, LAST, IGNORABLE),
        FIELD(sample, late, INT64, 2, LAST, TAG(0), DEFAULT(-1), IGNORABLE),
        STRUCT(sample, boxed, inner, 2, LAST, TAG(1), IGNORABLE),
        ARRAY(sample, list, INT8, 2, LAST, TAG(2), NULL_FROM(2), DEFAULT_NULL, IGNORABLE),
};
/* v0 and v1 are of the old kind, v2 is flexible. */
static const struct wire_message sample_wire = MESSAGE(sample, "Sample", 900, 0, 2, 2);

/* The same message as an older program knows it: no tagged field anywhere. */
struct old_inner {
        int32_t id;
};
struct old_sample {
        bool flag;
        WIRE_ARRAY(struct old_inner) inners;
        struct old_inner *maybe;
        WIRE_ARRAY(struct wire_str) names;
        struct wire_bytes blob;
        int32_t must;
        int16_t may;
};
static const struct wire_field old_inner_fields[] = {FIELD(old_inner, id, INT32, 0, LAST, DEFAULT(-1))};
static const struct wire_struct old_inner_wire = STRUCT_TABLE(old_inner);
static const struct wire_field old_sample_fields[] = {
        FIELD(old_sample, flag, BOOL, 0, LAST),
        ARRAY_OF(old_sample, inners, old_inner, 0, LAST),
        STRUCT_PTR(old_sample, maybe, old_inner, 1, LAST, NULL_FROM(1)),
        ARRAY(old_sample, names, STRING, 0, LAST),
        FIELD(old_sample, blob, BYTES, 0, LAST, NULL_FROM(1)),
        FIELD(old_sample, must, INT32, 1, LAST, DEFAULT(-1)),
        FIELD(old_sample, may, INT16, 1, LAST, IGNORABLE),
};
static const struct wire_message old_sample_wire = MESSAGE(old_sample, "Sample", 900, 0, 2, 2);

struct fixture {
        struct arena arena;
        struct buf out;
        struct sample sample, decoded;
};

static int setup(void **state)
{
        struct fixture *f = calloc(1, sizeof(*f));

        arena_init(&f->arena, 0);
        buf_init(&f->out, 0);
        wire_init(&sample_wire, &f->sample);
        *state = f;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *f = *state;

        arena_done(&f->arena);
        buf_done(&f->out);
        free(f);
        return 0;
}

static int decode(struct fixture *f, int16_t version, const void *data, size_t len)
{
        return wire_decode(&sample_wire, version, data, len, &f->arena, &f->decoded);
}

#define assert_encodes_to(f, version, ...)                                                                   \
        do {                                                                                                 \
                static const uint8_t expected[] = {__VA_ARGS__};                                             \
                (f)->out.len = 0;                                                                            \
                assert_int_equal(wire_encode(&sample_wire, version, &(f)->sample, &(f)->out), 0);            \
                assert_int_equal((f)->out.len, sizeof(expected));                                            \
                assert_memory_equal((f)->out.data, expected, sizeof(expected));                              \
        } while (0)

static void old_versions_use_fixed_lengths(void **state)
{
        struct fixture *f = *state;
        struct inner inner = {.id = 7, .note = WIRE_NULL_STR};
        struct wire_str name = wire_str("ab");

        f->sample.flag = true;
        f->sample.inners.items = &inner;
        f->sample.inners.n = 1;
        f->sample.names.items = &name;
        f->sample.names.n = 1;
        f->sample.blob = (struct wire_bytes){.data = (const uint8_t *)"x", .len = 1};

        assert_encodes_to(f, 0, 1,                    /* flag */
                          0, 0, 0, 1, 0, 0, 0, 7,     /* inners */
                          0, 0, 0, 1, 0, 2, 'a', 'b', /* names */
                          0, 0, 0, 1, 'x');           /* blob */
}

static void flexible_versions_use_compact_lengths_and_ascending_tags(void **state)
{
        struct fixture *f = *state;
        struct inner inner = {.id = 7, .note = wire_str("n")};
        int8_t list[] = {5, 6};

        f->sample.inners.items = &inner;
        f->sample.inners.n = 1;
        f->sample.maybe = &inner;
        f->sample.blob = WIRE_NULL_BYTES;
        f->sample.late = 9;
        f->sample.boxed.id = 8;
        f->sample.list.items = list;
        f->sample.list.n = 2;

        assert_encodes_to(f, 2, 0,                        /* flag */
                          2, 0, 0, 0, 7, 1, 3, 2, 2, 'n', /* inners: count 1; id; one tag: 3, size 2, "n" */
                          1, 0, 0, 0, 7, 1, 3, 2, 2, 'n', /* maybe: present */
                          1,                              /* names: empty */
                          0,                              /* blob: null */
                          0xff, 0xff, 0xff, 0xff, 0, 0,   /* must, may */
                          3,                              /* tags */
                          0, 8, 0, 0, 0, 0, 0, 0, 0, 9,   /* late */
                          1, 5, 0, 0, 0, 8, 0,            /* boxed */
                          2, 3, 3, 5, 6);                 /* list */
}

static void tagged_fields_with_their_default_are_left_out(void **state)
{
        struct fixture *f = *state;

        assert_encodes_to(f, 2, 0, 1, 0xff, 1, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 0);
}

static void an_empty_list_is_sent_where_the_default_is_null(void **state)
{
        struct fixture *f = *state;

        f->sample.list.n = 0;
        assert_encodes_to(f, 2, 0, 1, 0xff, 1, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 1, 2, 1, 1);
}

static void a_peer_that_knows_no_tags_reads_the_rest(void **state)
{
        struct fixture *f = *state;
        struct inner inners[] = {{.id = 1, .note = wire_str("one")}, {.id = 2, .note = wire_str("two")}};
        struct old_sample old;

        /* given tagged fields at every level */
        f->sample.inners.items = inners;
        f->sample.inners.n = 2;
        f->sample.maybe = &inners[1];
        f->sample.late = 44;
        f->sample.boxed.note = wire_str("boxed");
        f->sample.may = 5;
        assert_int_equal(wire_encode(&sample_wire, 2, &f->sample, &f->out), 0);

        /* when one without them decodes, then it gets everything else */
        assert_int_equal(wire_decode(&old_sample_wire, 2, f->out.data, f->out.len, &f->arena, &old), 0);
        assert_int_equal(old.inners.n, 2);
        assert_int_equal(old.inners.items[0].id, 1);
        assert_int_equal(old.inners.items[1].id, 2);
        assert_int_equal(old.maybe->id, 2);
        assert_int_equal(old.may, 5);
}

static void absent_fields_get_their_defaults(void **state)
{
        static const uint8_t v0[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        struct fixture *f = *state;

        memset(&f->decoded, 0x55, sizeof(f->decoded));
        assert_int_equal(decode(f, 0, v0, sizeof(v0)), 0);

        assert_int_equal(f->decoded.must, -1);
        assert_int_equal(f->decoded.may, 0);
        assert_int_equal(f->decoded.late, -1);
        assert_int_equal(f->decoded.boxed.id, -1);
        assert_int_equal(f->decoded.boxed.note.len, -1);
        assert_int_equal(f->decoded.list.n, -1);
        assert_null(f->decoded.maybe);
        assert_int_equal(f->decoded.blob.len, 0);
}

static void what_a_version_cannot_carry_is_refused_unless_ignorable(void **state)
{
        struct fixture *f = *state;

        f->sample.may = 3;
        f->sample.late = 4;
        f->sample.boxed.id = 5;
        assert_int_equal(wire_encode(&sample_wire, 0, &f->sample, &f->out), 0);

        f->sample.must = 0;
        f->out.len = 0;
        assert_int_equal(wire_encode(&sample_wire, 0, &f->sample, &f->out), -EINVAL);
        assert_int_equal(f->out.len, 0);
        assert_int_equal(wire_encode(&sample_wire, 1, &f->sample, &f->out), 0);
}

static void null_is_refused_where_the_version_has_none(void **state)
{
        static const uint8_t null_blob[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff};
        static const uint8_t null_names[] = {0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0};
        static const uint8_t null_name[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0, 0, 0, 0};
        struct fixture *f = *state;
        struct wire_str none = WIRE_NULL_STR;

        f->sample.blob = WIRE_NULL_BYTES;
        assert_int_equal(wire_encode(&sample_wire, 0, &f->sample, &f->out), -EINVAL);
        assert_int_equal(wire_encode(&sample_wire, 1, &f->sample, &f->out), 0);
        f->sample.names.items = &none;
        f->sample.names.n = 1;
        assert_int_equal(wire_encode(&sample_wire, 1, &f->sample, &f->out), -EINVAL);

        assert_int_equal(decode(f, 0, null_blob, sizeof(null_blob)), -EBADMSG);
        assert_int_equal(decode(f, 0, null_names, sizeof(null_names)), -EBADMSG);
        assert_int_equal(decode(f, 0, null_name, sizeof(null_name)), -EBADMSG);
}

static void a_length_below_minus_one_is_refused(void **state)
{
        static const uint8_t blob[] = {0, 0,    0,    0,    0,    0xff, 0, 0, 0, 0, 0, 0,
                                       0, 0xff, 0xff, 0xff, 0xfe, 0,    0, 0, 0, 0, 0};
        struct fixture *f = *state;

        assert_int_equal(decode(f, 1, blob, sizeof(blob)), -EBADMSG);
}

/* R50's kind of care is a property of single rows; elsewhere any byte but 0 is true, as it is in Kafka. */
static void any_byte_but_zero_is_true(void **state)
{
        static const uint8_t v0[] = {0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
        struct fixture *f = *state;

        assert_int_equal(decode(f, 0, v0, sizeof(v0)), 0);
        assert_true(f->decoded.flag);
}

/* R50: to delete or not to delete is no place for leniency. */
static void the_delete_flags_of_stop_replica_are_zero_or_one(void **state)
{
        /* v1: controller 1, epoch 2, broker epoch -1, the flag, no topics */
        uint8_t v1[] = {0,    0,    0,    1,    0,    0, 0, 2, 0xff, 0xff, 0xff,
                        0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0,    0};
        struct fixture *f = *state;
        struct stop_replica_request r;

        assert_int_equal(wire_decode(&stop_replica_request_wire, 1, v1, sizeof(v1), &f->arena, &r), 0);
        assert_true(r.delete_partitions);
        v1[16] = 2;
        assert_int_equal(wire_decode(&stop_replica_request_wire, 1, v1, sizeof(v1), &f->arena, &r), -EBADMSG);
}

static void counts_beyond_the_bytes_that_are_left_allocate_nothing(void **state)
{
        static const uint8_t largest[] = {0, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0};
        /* two elements of at least 4 bytes promised, 7 there */
        static const uint8_t one_too_many[] = {0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0};
        static const uint8_t compact_largest[] = {0, 0xff, 0xff, 0xff, 0xff, 0x07, 0, 0, 0, 0, 0, 0};
        static const uint8_t compact_overflow[] = {0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0, 0, 0, 0, 0};
        static const uint8_t compact_too_long[] = {0, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0, 0, 0, 0, 0};
        struct fixture *f = *state;

        assert_int_equal(decode(f, 0, largest, sizeof(largest)), -EBADMSG);
        assert_int_equal(decode(f, 0, one_too_many, sizeof(one_too_many)), -EBADMSG);
        assert_int_equal(decode(f, 2, compact_largest, sizeof(compact_largest)), -EBADMSG);
        assert_int_equal(decode(f, 2, compact_overflow, sizeof(compact_overflow)), -EBADMSG);
        assert_int_equal(decode(f, 2, compact_too_long, sizeof(compact_too_long)), -EBADMSG);
        assert_int_equal(f->arena.used_bytes, 0);
}

static void a_tag_must_fill_the_size_it_states(void **state)
{
        /* everything default, then: late (8 bytes) with a size of 7, of 9, and past the end */
        static const uint8_t body[] = {0, 1, 0xff, 1, 1, 0xff, 0xff, 0xff, 0xff, 0, 0, 1,
                                       0, 8, 0,    0, 0, 0,    0,    0,    0,    9, 0};
        struct fixture *f = *state;
        uint8_t copy[sizeof(body)];

        memcpy(copy, body, sizeof(body));
        assert_int_equal(decode(f, 2, copy, sizeof(copy)), 0);
        assert_int_equal(f->decoded.late, 9);
        for (uint8_t size = 0; size < 16; size++) {
                copy[13] = size;
                if (size != 8)
                        assert_int_equal(decode(f, 2, copy, sizeof(copy)), -EBADMSG);
        }
}

static void strings_longer_than_the_protocol_allows_are_refused(void **state)
{
        struct fixture *f = *state;
        char *text = calloc(1, 40000);
        struct wire_str name = {.data = text, .len = INT16_MAX};

        f->sample.names.items = &name;
        f->sample.names.n = 1;
        assert_int_equal(wire_encode(&sample_wire, 2, &f->sample, &f->out), 0);
        assert_int_equal(decode(f, 2, f->out.data, f->out.len), 0);

        /* one more than the limit, in the low bits of the name's compact length, and one byte more of the
         * name */
        f->out.data[4]++;
        assert_int_equal(buf_append(&f->out, "", 1), 0);
        memmove(f->out.data + 8, f->out.data + 7, f->out.len - 8);
        assert_int_equal(decode(f, 2, f->out.data, f->out.len), -EBADMSG);
        name.len = INT16_MAX + 1;
        assert_int_equal(wire_encode(&sample_wire, 2, &f->sample, &f->out), -EINVAL);
        free(text);
}

static void new_elements_carry_their_defaults(void **state)
{
        struct fixture *f = *state;
        struct inner *items = WIRE_NEW(&f->arena, inner, 3);

        for (int i = 0; i < 3; i++) {
                assert_int_equal(items[i].id, -1);
                assert_int_equal(items[i].note.len, -1);
        }
        assert_non_null(WIRE_NEW(&f->arena, inner, 0));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(old_versions_use_fixed_lengths),
                TEST(flexible_versions_use_compact_lengths_and_ascending_tags),
                TEST(tagged_fields_with_their_default_are_left_out),
                TEST(an_empty_list_is_sent_where_the_default_is_null),
                TEST(a_peer_that_knows_no_tags_reads_the_rest),
                TEST(absent_fields_get_their_defaults),
                TEST(what_a_version_cannot_carry_is_refused_unless_ignorable),
                TEST(null_is_refused_where_the_version_has_none),
                TEST(a_length_below_minus_one_is_refused),
                TEST(any_byte_but_zero_is_true),
                TEST(the_delete_flags_of_stop_replica_are_zero_or_one),
                TEST(counts_beyond_the_bytes_that_are_left_allocate_nothing),
                TEST(a_tag_must_fill_the_size_it_states),
                TEST(strings_longer_than_the_protocol_allows_are_refused),
                TEST(new_elements_carry_their_defaults),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
