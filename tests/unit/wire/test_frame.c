/* Headers: which version of them goes with which request, and the two exceptions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>

#include "wire/api_versions.h"
#include "wire/controlled_shutdown.h"
#include "wire/cursor.h"
#include "wire/fetch.h"
#include "wire/metadata.h"

#define assert_frame(b, ...)                                                                                 \
        do {                                                                                                 \
                static const uint8_t expected[] = {__VA_ARGS__};                                             \
                assert_int_equal((b)->len, sizeof(expected));                                                \
                assert_memory_equal((b)->data, expected, sizeof(expected));                                  \
        } while (0)

/* Header v0: no client id (kafka-semantics §2.0). */
static void controlled_shutdown_v0_has_no_client_id(void **state)
{
        const struct controlled_shutdown_request r = {.broker_id = 3, .broker_epoch = -1};
        cleanup_with(buf_donep) struct buf b = {};
        struct wire_request_header h;
        size_t n;

        (void)state;
        assert_int_equal(wire_encode_request(&controlled_shutdown_request_wire, 0, 9, "ignored", &r, &b), 0);
        assert_frame(&b, 0, 0, 0, 12, 0, 7, 0, 0, 0, 0, 0, 9, 0, 0, 0, 3);

        assert_int_equal(wire_decode_request_header(b.data + 4, b.len - 4, &h, &n), 0);
        assert_int_equal(n, 8);
        assert_int_equal(h.client_id.len, -1);
        b.len = 0;
        assert_int_equal(wire_encode_request(&controlled_shutdown_request_wire, 1, 9, "c", &r, &b), 0);
        assert_frame(&b, 0, 0, 0, 15, 0, 7, 0, 1, 0, 0, 0, 9, 0, 1, 'c', 0, 0, 0, 3);
}

static void a_flexible_request_keeps_the_old_kind_of_client_id(void **state)
{
        cleanup_with(buf_donep) struct buf b = {};
        struct controlled_shutdown_request r = {.broker_id = 3, .broker_epoch = 5};

        (void)state;
        assert_int_equal(wire_encode_request(&controlled_shutdown_request_wire, 3, 9, "c", &r, &b), 0);
        assert_frame(&b, 0, 0, 0, 25, 0, 7, 0, 3, 0, 0, 0, 9, 0, 1, 'c', 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0,
                     5, 0);
}

static void a_client_id_may_be_null_or_empty(void **state)
{
        cleanup_with(buf_donep) struct buf b = {};
        struct metadata_request r;
        struct wire_request_header h;
        size_t n;

        (void)state;
        wire_init(&metadata_request_wire, &r);
        assert_int_equal(wire_encode_request(&metadata_request_wire, 9, 1, NULL, &r, &b), 0);
        assert_int_equal(wire_decode_request_header(b.data + 4, b.len - 4, &h, &n), 0);
        assert_int_equal(h.client_id.len, -1);
        assert_int_equal(n, 11);

        b.len = 0;
        assert_int_equal(wire_encode_request(&metadata_request_wire, 9, 1, "", &r, &b), 0);
        assert_int_equal(wire_decode_request_header(b.data + 4, b.len - 4, &h, &n), 0);
        assert_int_equal(h.client_id.len, 0);
}

/* KIP-511: whoever reads the answer does not yet know what we speak. */
static void api_versions_is_answered_with_header_v0_at_every_version(void **state)
{
        cleanup_with(buf_donep) struct buf b = {};
        struct api_versions_response r;

        (void)state;
        wire_init(&api_versions_response_wire, &r);
        r.error_code = 35;
        assert_int_equal(wire_encode_response(&api_versions_response_wire, 4, 7, &r, &b), 0);
        assert_frame(&b, 0, 0, 0, 12, 0, 0, 0, 7, 0, 35, 1, 0, 0, 0, 0, 0);
}

static void flexible_responses_have_tags_in_their_header(void **state)
{
        cleanup_with(buf_donep) struct buf b = {};
        struct controlled_shutdown_response r;

        (void)state;
        wire_init(&controlled_shutdown_response_wire, &r);
        assert_int_equal(wire_encode_response(&controlled_shutdown_response_wire, 2, 7, &r, &b), 0);
        assert_frame(&b, 0, 0, 0, 10, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0);
        b.len = 0;
        assert_int_equal(wire_encode_response(&controlled_shutdown_response_wire, 3, 7, &r, &b), 0);
        assert_frame(&b, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 1, 0);
}

static void unknown_tags_in_headers_are_skipped(void **state)
{
        static const uint8_t request[] = {0, 3, 0, 9, 0, 0, 0, 1, 0, 1, 'c', 1, 77, 2, 'x', 'y', 0xee};
        static const uint8_t response[] = {0, 0, 0, 7, 1, 77, 2, 'x', 'y', 0, 0, 1, 0};
        cleanup_with(arena_donep) struct arena a = {};
        struct controlled_shutdown_response r;
        struct wire_request_header h;
        int32_t correlation_id;
        size_t n;

        (void)state;
        assert_int_equal(wire_decode_request_header(request, sizeof(request), &h, &n), 0);
        assert_int_equal(n, sizeof(request) - 1);
        assert_int_equal(wire_decode_response(&controlled_shutdown_response_wire, 3, response,
                                              sizeof(response), &a, &correlation_id, &r),
                         0);
        assert_int_equal(correlation_id, 7);
}

/* The caller answers ApiVersions with what we know, and closes the connection for anything else; for both it
 * needs the correlation id and nothing that only a known version could tell. */
static void headers_of_unknown_keys_and_versions_are_read_as_v1(void **state)
{
        static const uint8_t later[] = {0, 18, 0, 99, 0, 0, 0, 5, 0, 1, 'j', 0xff, 0xff, 0xff};
        static const uint8_t other[] = {0x7f, 0xff, 0, 0, 0, 0, 0, 6, 0xff, 0xff};
        static const uint8_t negative[] = {0, 18, 0xff, 0xff, 0, 0, 0, 5, 0, 1, 'j'};
        struct wire_request_header h;
        size_t n;

        (void)state;
        assert_int_equal(wire_decode_request_header(later, sizeof(later), &h, &n), 0);
        assert_int_equal(h.api_version, 99);
        assert_int_equal(h.correlation_id, 5);
        assert_int_equal(n, 11);
        assert_int_equal(wire_decode_request_header(other, sizeof(other), &h, &n), 0);
        assert_int_equal(h.api_key, INT16_MAX);
        assert_int_equal(wire_decode_request_header(negative, sizeof(negative), &h, &n), 0);
        assert_int_equal(h.api_version, -1);
}

static void headers_cut_anywhere_are_refused(void **state)
{
        static const uint8_t request[] = {0, 3, 0, 9, 0, 0, 0, 1, 0, 1, 'c', 1, 77, 2, 'x', 'y'};
        struct wire_request_header h;
        size_t n;

        (void)state;
        for (size_t len = 0; len < sizeof(request); len++) {
                uint8_t *copy = malloc(len + 1);

                memcpy(copy, request, len);
                assert_int_equal(wire_decode_request_header(copy, len, &h, &n), -EBADMSG);
                free(copy);
        }
        assert_int_equal(wire_decode_request_header(request, sizeof(request), &h, &n), 0);
}

static void a_frame_that_fails_leaves_nothing_behind(void **state)
{
        cleanup_with(buf_donep) struct buf b = {};
        struct fetch_request r;

        (void)state;
        wire_init(&fetch_request_wire, &r);
        r.replica_id = 5; /* v15 and later say it in replica_state */
        assert_int_equal(buf_append(&b, "kept", 4), 0);
        assert_int_equal(wire_encode_request(&fetch_request_wire, 17, 1, "c", &r, &b), -EINVAL);
        assert_int_equal(wire_encode_request(&fetch_request_wire, 18, 1, "c", &r, &b), -EPROTONOSUPPORT);
        assert_int_equal(b.len, 4);
        assert_int_equal(wire_encode_request(&fetch_request_wire, 14, 1, "c", &r, &b), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(controlled_shutdown_v0_has_no_client_id),
                cmocka_unit_test(a_flexible_request_keeps_the_old_kind_of_client_id),
                cmocka_unit_test(a_client_id_may_be_null_or_empty),
                cmocka_unit_test(api_versions_is_answered_with_header_v0_at_every_version),
                cmocka_unit_test(flexible_responses_have_tags_in_their_header),
                cmocka_unit_test(unknown_tags_in_headers_are_skipped),
                cmocka_unit_test(headers_of_unknown_keys_and_versions_are_read_as_v1),
                cmocka_unit_test(headers_cut_anywhere_are_refused),
                cmocka_unit_test(a_frame_that_fails_leaves_nothing_behind),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
