/* One interpreter for every message: decode, encode and size from `static const` tables (style.md).
 *
 * Each message is a plain struct that holds all versions, in wire/<api>.h, named after Kafka's schema:
 * struct metadata_request, struct metadata_response, with fields in snake_case (TopicId -> topic_id,
 * nested arrays become struct metadata_response_topic …), and a table `metadata_request_wire`.
 * Any thread; no state. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "wire/types.h"

struct wire_message; /* opaque to users: the table of one message */
struct wire_struct;  /* opaque to users: the table of a struct nested in messages */

int16_t wire_api_key(const struct wire_message *m);
const char *wire_name(const struct wire_message *m);
int16_t wire_min_version(const struct wire_message *m);
int16_t wire_max_version(const struct wire_message *m);
bool wire_is_flexible(const struct wire_message *m, int16_t version);
size_t wire_struct_size(const struct wire_message *m);

/* Decode @len bytes of a body. Fields absent in @version get their default. Unknown tags are skipped,
 * trailing bytes ignored (librdkafka sends some). Slices point into @data, which must live as long.
 * Element counts are bounded by the bytes left before anything is allocated.
 * -EBADMSG: malformed or truncated; -ENOMEM; -EPROTONOSUPPORT: @version outside the table. */
int wire_decode(const struct wire_message *m, int16_t version, const void *data, size_t len, struct arena *a,
                void *ret) must_check;
/* Append the encoding to @out; on failure @out is as before. -ENOMEM, -EMSGSIZE (ceiling), -EPROTONOSUPPORT,
 * -EINVAL: a null where @version has no null, or a non-default value of a field that @version cannot carry
 * and that the table marks as not ignorable. */
int wire_encode(const struct wire_message *m, int16_t version, const void *body, struct buf *out) must_check;
/* Fill in the defaults of every field (nullable strings NULL where the schema says so, -1 ids …). */
void wire_init(const struct wire_message *m, void *body);

/* Array elements need their defaults as well (a current_leader of zeros would be sent as broker 0):
 *     topic->partitions.items = WIRE_NEW(arena, fetch_response_partition, n);
 * gives @n elements with defaults filled in, or NULL on -ENOMEM (never for n == 0). */
#define WIRE_NEW(arena, type, n) ((struct type *)wire_new_array(&type##_wire, (n), (arena)))
void *wire_new_array(const struct wire_struct *s, size_t n, struct arena *a) must_check;
void wire_init_struct(const struct wire_struct *s, void *element);

/* --- headers and frames --- */
struct wire_request_header {
        int16_t api_key, api_version;
        int32_t correlation_id;
        struct wire_str client_id; /* may be null */
};
/* Parses header v0 (ControlledShutdown v0 only), v1 or v2 by key and version. *ret_consumed: bytes of the
 * header. For a key or version we do not know only key, version, correlation id and client id (v1 layout) are
 * read. */
int wire_decode_request_header(const void *data, size_t len, struct wire_request_header *ret,
                               size_t *ret_consumed) must_check;
/* A whole frame, length prefix included, appended to @out. */
int wire_encode_request(const struct wire_message *m, int16_t version, int32_t correlation_id,
                        const char *client_id, const void *body, struct buf *out) must_check;
int wire_encode_response(const struct wire_message *m, int16_t version, int32_t correlation_id,
                         const void *body, struct buf *out) must_check;
/* @data: a response frame without its length prefix. Returns the correlation id without checking it. */
int wire_decode_response(const struct wire_message *m, int16_t version, const void *data, size_t len,
                         struct arena *a, int32_t *ret_correlation_id, void *ret) must_check;

/* --- the table of API keys --- */
struct wire_api {
        int16_t key;
        const char *name;                     /* "Produce" */
        int16_t advertise_min, advertise_max; /* what ApiVersions says; -1, -1: not advertised to clients */
        int16_t serve_min, serve_max;         /* what a request may carry */
        const struct wire_message *request, *response;
};
/* NULL for an unknown key. */
const struct wire_api *wire_api_find(int16_t key);
const struct wire_api *wire_api_all(size_t *ret_n); /* ascending by key */
