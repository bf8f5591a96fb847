#include "log_testing.h"

#include <errno.h>
#include <string.h>

#include "log/producer_state_core.h"

static struct producer_batch batch(int32_t first, int32_t n, int64_t last_offset, int64_t now)
{
        return (struct producer_batch){
                .first_sequence = first,
                .last_sequence = producer_sequence_add(first, n - 1),
                .offset_delta = n - 1,
                .last_offset = last_offset,
                .timestamp_ms = now,
        };
}

static void add(struct producer_state *s, int64_t id, int16_t epoch, int32_t first, int32_t n,
                int64_t last_offset)
{
        struct producer_batch b = batch(first, n, last_offset, 1000);

        assert_int_equal(producer_state_update(s, id, epoch, &b), 0);
}

static int check(const struct producer_state *s, int64_t id, int16_t epoch, int32_t first, int32_t n)
{
        struct producer_batch known;

        return producer_state_check(s, id, epoch, first, producer_sequence_add(first, n - 1), &known);
}

static void the_last_five_batches_are_known_and_an_older_one_is_out_of_order(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();
        struct producer_batch known;

        (void)state;
        for (int32_t i = 0; i < 6; i++)
                add(s, 9, 0, i * 10, 10, i * 10 + 9);
        for (int32_t i = 1; i < 6; i++) {
                assert_int_equal(producer_state_check(s, 9, 0, i * 10, i * 10 + 9, &known), 1);
                assert_int_equal(known.last_offset, i * 10 + 9);
                assert_int_equal(known.offset_delta, 9);
        }
        assert_int_equal(check(s, 9, 0, 0, 10), -EILSEQ);
        assert_int_equal(check(s, 9, 0, 10, 9), -EILSEQ); /* same beginning, another end */
        assert_int_equal(check(s, 9, 0, 60, 3), 0);
        assert_int_equal(check(s, 9, 0, 61, 3), -EILSEQ);
}

static void a_producer_nobody_knows_may_begin_anywhere(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();

        (void)state;
        assert_int_equal(check(s, 5, 3, 77, 1), 0);
        assert_int_equal(producer_state_reserve(s, 5), 0); /* an append that failed leaves no trace */
        assert_int_equal(check(s, 5, 3, 77, 1), 0);
}

static void epochs_only_go_up_and_a_new_one_begins_at_zero(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();

        (void)state;
        add(s, 5, 3, 0, 10, 9);
        assert_int_equal(check(s, 5, 2, 10, 1), -ESTALE);
        assert_int_equal(check(s, 5, 4, 10, 1), -EILSEQ);
        assert_int_equal(check(s, 5, 4, 0, 1), 0);
        add(s, 5, 4, 0, 1, 10);
        assert_int_equal(check(s, 5, 4, 1, 1), 0);
        assert_int_equal(check(s, 5, 3, 0, 10), -ESTALE); /* the old epoch's batches are forgotten */

        /* a marker brings its epoch and no sequence */
        assert_int_equal(producer_state_marker(s, 5, 6, 2000), 0);
        assert_int_equal(check(s, 5, 6, 33, 1), 0);
        assert_int_equal(check(s, 5, 5, 0, 1), -ESTALE);
}

static void the_largest_sequence_is_followed_by_zero(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();

        (void)state;
        assert_int_equal(producer_sequence_add(INT32_MAX, 1), 0);
        assert_int_equal(producer_sequence_add(INT32_MAX - 1, 3), 1);
        assert_int_equal(producer_sequence_add(5, 0), 5);
        add(s, 1, 0, INT32_MAX - 4, 5, 100); /* ends at MAX */
        assert_int_equal(check(s, 1, 0, 0, 5), 0);
        add(s, 1, 0, 0, 5, 105);
        add(s, 1, 0, 5, 1, 106);
        assert_int_equal(check(s, 1, 0, INT32_MAX - 4, 5), 1);

        /* and one that wraps inside */
        add(s, 2, 0, INT32_MAX - 1, 5, 200);
        assert_int_equal(check(s, 2, 0, INT32_MAX - 1, 5), 1);
        assert_int_equal(check(s, 2, 0, 3, 1), 0);
}

static void producers_expire_by_the_brokers_clock(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();
        struct producer_batch late = batch(0, 1, 1, 5000);

        (void)state;
        add(s, 1, 0, 0, 1, 0); /* at 1000 */
        assert_int_equal(producer_state_update(s, 2, 0, &late), 0);
        assert_int_equal(producer_state_expire(s, 2000, 1000), 0);
        assert_int_equal(producer_state_expire(s, 2001, 1000), 1);
        assert_int_equal(producer_state_count(s), 1);
        assert_int_equal(check(s, 1, 0, 50, 1), 0);
        assert_int_equal(check(s, 2, 0, 50, 1), -EILSEQ);
}

static void fill_state(struct producer_state *s)
{
        for (int64_t id = 0; id < 20; id++)
                for (int32_t i = 0; i < 7; i++)
                        add(s, id, (int16_t)id, i * 3, 3, id * 1000 + i * 3 + 2);
        add(s, 100, 0, INT32_MAX - 1, 5, 5000);
        assert_int_equal(producer_state_marker(s, 101, 7, 1000), 0);
}

static void a_snapshot_gives_everything_back(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new(),
                                                                 *t = producer_state_new();
        cleanup_with(buf_donep) struct buf b = {0};

        (void)state;
        fill_state(s);
        assert_int_equal(producer_state_encode(s, &b), 0);
        assert_int_equal(producer_state_decode(t, b.data, b.len), 0);
        assert_int_equal(producer_state_count(t), 22);
        for (int64_t id = 0; id < 20; id++) {
                for (int32_t i = 2; i < 7; i++)
                        assert_int_equal(check(t, id, (int16_t)id, i * 3, 3), 1);
                assert_int_equal(check(t, id, (int16_t)id, 3, 3), -EILSEQ);
                assert_int_equal(check(t, id, (int16_t)id, 21, 1), 0);
        }
        assert_int_equal(check(t, 100, 0, INT32_MAX - 1, 5), 1); /* its first sequence was before the wrap */
        assert_int_equal(check(t, 101, 6, 0, 1), -ESTALE);
        assert_int_equal(producer_state_expire(t, 2001, 1000), 22); /* times, too */
}

/* One entry of Kafka's own: {pid 7, epoch 1, last sequence 4, last offset 104, delta 4, timestamp, -1, -1}.
 */
static void the_bytes_are_kafkas(void **state)
{
        static const uint8_t entry[46] = {
                0, 0,    0,    0,    0,    0,    0,    7,    0,    1,    0,    0,    0,    4,   0, 0,
                0, 0,    0,    0,    0,    104,  0,    0,    0,    4,    0,    0,    0,    0,   0, 0,
                3, 0xe8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();
        cleanup_with(buf_donep) struct buf b = {0};

        (void)state;
        add(s, 7, 1, 0, 5, 104);
        assert_int_equal(producer_state_encode(s, &b), 0);
        assert_int_equal(b.len, 2 + 4 + 4 + sizeof(entry));
        assert_memory_equal(b.data, "\0\1", 2);
        assert_memory_equal(b.data + 6, "\0\0\0\1", 4);
        assert_memory_equal(b.data + 10, entry, sizeof(entry));
}

static void a_snapshot_with_any_byte_changed_or_missing_is_refused(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new(),
                                                                 *t = producer_state_new();
        cleanup_with(buf_donep) struct buf b = {0};

        (void)state;
        fill_state(s);
        assert_int_equal(producer_state_encode(s, &b), 0);
        for (size_t i = 0; i < b.len; i++) {
                cleanup_with(freep) uint8_t *cut =
                        malloc(i + 1); /* exact, so that a read behind it is seen */

                memcpy(cut, b.data, i);
                assert_int_equal(producer_state_decode(t, cut, i), -EBADMSG);
                b.data[i] ^= 0x10;
                assert_int_equal(producer_state_decode(t, b.data, b.len), -EBADMSG);
                assert_int_equal(producer_state_count(t), 0);
                b.data[i] ^= 0x10;
        }
}

static void so_many_producers_are_known_and_the_silent_go_first(void **state)
{
        cleanup_with(producer_state_freep) struct producer_state *s = producer_state_new();
        struct producer_batch b = {.last_sequence = 0}, known;

        (void)state;
        assert_non_null(s);
        assert_int_equal(producer_state_reserve(s, 999999), 0); /* an append of it is going on */
        for (int64_t id = 0; id < 3 * PRODUCERS_MAX; id++) {
                b.timestamp_ms = 1000 + id;
                assert_int_equal(producer_state_update(s, id, 0, &b), 0);
                assert_true(producer_state_count(s) <= PRODUCERS_MAX + 1);
                b.timestamp_ms = 1000 + id; /* one that goes on all the time */
                assert_int_equal(producer_state_update(s, 7, 0, &b), 0);
        }
        assert_true(producer_state_count(s) > PRODUCERS_MAX / 2);
        assert_int_equal(producer_state_check(s, 7, 0, 0, 0, &known), 1);
        assert_int_equal(producer_state_check(s, 3 * PRODUCERS_MAX - 1, 0, 0, 0, &known), 1);
        assert_int_equal(producer_state_check(s, 0, 0, 5, 5, &known), 0); /* forgotten */
        b.timestamp_ms = 1;
        assert_int_equal(producer_state_update(s, 999999, 0, &b), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_last_five_batches_are_known_and_an_older_one_is_out_of_order),
                cmocka_unit_test(a_producer_nobody_knows_may_begin_anywhere),
                cmocka_unit_test(epochs_only_go_up_and_a_new_one_begins_at_zero),
                cmocka_unit_test(the_largest_sequence_is_followed_by_zero),
                cmocka_unit_test(producers_expire_by_the_brokers_clock),
                cmocka_unit_test(a_snapshot_gives_everything_back),
                cmocka_unit_test(the_bytes_are_kafkas),
                cmocka_unit_test(a_snapshot_with_any_byte_changed_or_missing_is_refused),
                cmocka_unit_test(so_many_producers_are_known_and_the_silent_go_first),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
