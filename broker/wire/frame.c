/* Frames: a length, a header whose version follows from key and version, a body.
 *
 *   request header   v0: key, version, correlation id (ControlledShutdown v0 alone)
 *                    v1: + client id    v2 (flexible messages): + tagged fields
 *   response header  v0: correlation id    v1 (flexible messages): + tagged fields
 *
 * Two exceptions, both older than the rule: the client id keeps its 16-bit length in v2, and ApiVersions is
 * always answered with header v0, because a client reads that answer before it knows what the broker speaks
 * (KIP-511). */
#include "wire/codec.h"
#include "wire/cursor.h"

#define KEY_CONTROLLED_SHUTDOWN 7
#define KEY_API_VERSIONS        18

static int request_header_version(int16_t key, int16_t version, const struct wire_message *m)
{
        if (key == KEY_CONTROLLED_SHUTDOWN && version == 0)
                return 0;
        return m && version <= wire_max_version(m) && wire_is_flexible(m, version) ? 2 : 1;
}

static bool response_header_has_tags(const struct wire_message *m, int16_t version)
{
        return wire_api_key(m) != KEY_API_VERSIONS && wire_is_flexible(m, version);
}

/* We know no tagged field of any header. */
static int skip_tags(struct cursor *c)
{
        uint32_t n, tag, size;
        const uint8_t *p;

        if (cursor_get_uvarint(c, &n) < 0)
                return -EBADMSG;
        for (uint32_t i = 0; i < n; i++)
                if (cursor_get_uvarint(c, &tag) < 0 || cursor_get_uvarint(c, &size) < 0 ||
                    cursor_take(c, size, &p) < 0)
                        return -EBADMSG;
        return 0;
}

static int get_client_id(struct cursor *c, struct wire_str *ret)
{
        const uint8_t *p = NULL;
        int16_t len;

        if (cursor_get_int16(c, &len) < 0 || len < -1)
                return -EBADMSG;
        if (len >= 0 && cursor_take(c, (size_t)len, &p) < 0)
                return -EBADMSG;
        *ret = (struct wire_str){.data = (const char *)p, .len = len};
        return 0;
}

int wire_decode_request_header(const void *data, size_t len, struct wire_request_header *ret,
                               size_t *ret_consumed)
{
        struct wire_request_header h = {.client_id = WIRE_NULL_STR};
        struct cursor c = cursor_of(data, len);
        const struct wire_api *api;
        int header_version;

        if (cursor_get_int16(&c, &h.api_key) < 0 || cursor_get_int16(&c, &h.api_version) < 0 ||
            cursor_get_int32(&c, &h.correlation_id) < 0)
                return -EBADMSG;
        api = wire_api_find(h.api_key);
        header_version = request_header_version(h.api_key, h.api_version, api ? api->request : NULL);
        if (header_version >= 1 && get_client_id(&c, &h.client_id) < 0)
                return -EBADMSG;
        if (header_version >= 2 && skip_tags(&c) < 0)
                return -EBADMSG;

        *ret = h;
        *ret_consumed = len - cursor_left(&c);
        return 0;
}

/* Room for the length that frame_end() fills in. */
static int frame_begin(struct buf *out)
{
        return buf_append(out, &(int32_t){0}, sizeof(int32_t));
}

/* @r: how the frame's content went; on failure nothing of the frame is left in @out. */
static int frame_end(struct buf *out, size_t start, int r)
{
        size_t size;

        if (r == 0 && out->len - start - sizeof(int32_t) > (size_t)INT32_MAX)
                r = -EMSGSIZE;
        if (r < 0) {
                out->len = start;
                return r;
        }
        size = out->len - start - sizeof(int32_t);
        store_be32(out->data + start, (uint32_t)size);
        return 0;
}

static int put_client_id(struct buf *out, const char *client_id)
{
        size_t len = client_id ? strlen(client_id) : 0;
        uint8_t prefix[2];
        int r;

        if (len > (size_t)INT16_MAX)
                return -EINVAL;
        store_be16(prefix, client_id ? (uint16_t)len : (uint16_t)-1);
        r = buf_append(out, prefix, sizeof(prefix));
        if (r < 0 || len == 0)
                return r;
        return buf_append(out, client_id, len);
}

static int put_request_header(const struct wire_message *m, int16_t version, int32_t correlation_id,
                              const char *client_id, struct buf *out)
{
        int header_version = request_header_version(wire_api_key(m), version, m);
        uint8_t fixed[8];
        int r;

        store_be16(fixed, (uint16_t)wire_api_key(m));
        store_be16(fixed + 2, (uint16_t)version);
        store_be32(fixed + 4, (uint32_t)correlation_id);
        r = buf_append(out, fixed, sizeof(fixed));
        if (r == 0 && header_version >= 1)
                r = put_client_id(out, client_id);
        if (r == 0 && header_version >= 2)
                r = buf_append(out, "", 1); /* no tagged fields */
        return r;
}

int wire_encode_request(const struct wire_message *m, int16_t version, int32_t correlation_id,
                        const char *client_id, const void *body, struct buf *out)
{
        size_t start = out->len;
        int r;

        r = frame_begin(out);
        if (r == 0)
                r = put_request_header(m, version, correlation_id, client_id, out);
        if (r == 0)
                r = wire_encode(m, version, body, out);
        return frame_end(out, start, r);
}

int wire_encode_response(const struct wire_message *m, int16_t version, int32_t correlation_id,
                         const void *body, struct buf *out)
{
        uint8_t header[5] = {0}; /* the fifth byte: no tagged fields */
        size_t start = out->len;
        int r;

        store_be32(header, (uint32_t)correlation_id);
        r = frame_begin(out);
        if (r == 0)
                r = buf_append(out, header, response_header_has_tags(m, version) ? 5 : 4);
        if (r == 0)
                r = wire_encode(m, version, body, out);
        return frame_end(out, start, r);
}

int wire_decode_response(const struct wire_message *m, int16_t version, const void *data, size_t len,
                         struct arena *a, int32_t *ret_correlation_id, void *ret)
{
        struct cursor c = cursor_of(data, len);
        int32_t correlation_id;
        int r;

        if (version < wire_min_version(m) || version > wire_max_version(m))
                return -EPROTONOSUPPORT;
        if (cursor_get_int32(&c, &correlation_id) < 0)
                return -EBADMSG;
        if (response_header_has_tags(m, version) && skip_tags(&c) < 0)
                return -EBADMSG;
        r = wire_decode(m, version, c.pos, cursor_left(&c), a, ret);
        if (r < 0)
                return r;
        *ret_correlation_id = correlation_id;
        return 0;
}
