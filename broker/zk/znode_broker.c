/* /brokers/ids/N. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "zk/znode.h"
#include "zk/znode_json.h"

#define MAX_TEXT 1024

static void endpoint_done(struct znode_endpoint *e)
{
        free(e->listener);
        free(e->protocol);
        free(e->host);
}

void znode_broker_done(struct znode_broker *b)
{
        for (size_t i = 0; i < b->n_endpoints; i++)
                endpoint_done(&b->endpoints[i]);
        free(b->endpoints);
        free(b->rack);
        free(b->admin_endpoint);
        *b = (struct znode_broker){0};
}

const struct znode_endpoint *znode_broker_endpoint(const struct znode_broker *b, const char *listener)
{
        for (size_t i = 0; listener && i < b->n_endpoints; i++)
                if (strcmp(b->endpoints[i].listener, listener) == 0)
                        return &b->endpoints[i];
        return b->n_endpoints > 0 ? &b->endpoints[0] : NULL;
}

static int put_protocol_map(const struct znode_broker *b, struct buf *out)
{
        int r;

        r = buf_append_str(out, "\"listener_security_protocol_map\":{");
        for (size_t i = 0; r >= 0 && i < b->n_endpoints; i++) {
                r = i > 0 ? buf_append_str(out, ",") : 0;
                if (r >= 0)
                        r = znode_put_string(out, b->endpoints[i].listener);
                if (r >= 0)
                        r = buf_append_str(out, ":");
                if (r >= 0)
                        r = znode_put_string(out, b->endpoints[i].protocol);
        }
        return r < 0 ? r : buf_append_str(out, "}");
}

static int put_endpoints(const struct znode_broker *b, struct buf *out)
{
        char text[MAX_TEXT];
        int r;

        r = buf_append_str(out, ",\"endpoints\":[");
        for (size_t i = 0; r >= 0 && i < b->n_endpoints; i++) {
                const struct znode_endpoint *e = &b->endpoints[i];
                int n = snprintf(text, sizeof(text), strchr(e->host, ':') ? "%s://[%s]:%u" : "%s://%s:%u",
                                 e->listener, e->host, e->port);

                if (n < 0 || (size_t)n >= sizeof(text))
                        return -EINVAL;
                r = i > 0 ? buf_append_str(out, ",") : 0;
                if (r >= 0)
                        r = znode_put_string(out, text);
        }
        return r < 0 ? r : buf_append_str(out, "]");
}

static int put_optional(struct buf *out, const char *key, const char *value)
{
        int r;

        if (!value)
                return 0;
        r = buf_printf(out, ",\"%s\":", key);
        return r < 0 ? r : znode_put_string(out, value);
}

/* host and port at the top are for readers older than endpoints: those of the first plaintext endpoint. */
static int put_legacy(const struct znode_broker *b, struct buf *out)
{
        int r;

        for (size_t i = 0; i < b->n_endpoints; i++) {
                if (strcmp(b->endpoints[i].protocol, "PLAINTEXT") != 0)
                        continue;
                r = buf_printf(out, ",\"jmx_port\":-1,\"port\":%u,\"host\":", b->endpoints[i].port);
                return r < 0 ? r : znode_put_string(out, b->endpoints[i].host);
        }
        return buf_append_str(out, ",\"jmx_port\":-1,\"port\":-1,\"host\":null");
}

int znode_broker_encode(const struct znode_broker *b, struct buf *out)
{
        int r;

        if (b->n_endpoints == 0)
                return -EINVAL;
        r = buf_append_str(out, "{\"features\":{},");
        if (r >= 0)
                r = put_protocol_map(b, out);
        if (r >= 0)
                r = put_endpoints(b, out);
        if (r >= 0)
                r = put_optional(out, "rack", b->rack);
        if (r >= 0)
                r = put_optional(out, "admin_endpoint", b->admin_endpoint);
        if (r >= 0)
                r = put_legacy(b, out);
        if (r >= 0)
                r = buf_printf(out, ",\"version\":5,\"timestamp\":\"%lld\"}", (long long)b->timestamp_ms);
        return r;
}

/* What goes into an endpoint's text must come out of it again: letters, digits and @more. */
static bool plain(const char *s, const char *more)
{
        for (const char *c = s; *c; c++)
                if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9') &&
                    !strchr(more, *c))
                        return false;
        return *s != '\0';
}

static bool host_valid(const char *host)
{
        return plain(host, "._-:%");
}

/* "LISTENER://host:port" */
static int decode_endpoint(const json_t *j, const json_t *protocols, struct znode_endpoint *ret)
{
        const char *s = json_string_value(j), *sep;
        const json_t *protocol;
        char host[256];
        int r;

        if (!s || json_string_length(j) > MAX_TEXT)
                return -EBADMSG;
        sep = strstr(s, "://");
        if (!sep || sep == s || parse_host_port(sep + 3, host, &ret->port) < 0 || !host_valid(host))
                return -EBADMSG;
        ret->listener = strndup(s, (size_t)(sep - s));
        ret->host = strdup(host);
        if (!ret->listener || !ret->host)
                return -ENOMEM;
        if (!plain(ret->listener, "._-"))
                return -EBADMSG;
        /* Before version 4 a listener bears the name of its protocol. */
        protocol = json_object_get(protocols, ret->listener);
        if (protocol) {
                r = znode_string(protocol, MAX_TEXT, &ret->protocol);
                return r;
        }
        ret->protocol = strdup(ret->listener);
        return ret->protocol ? 0 : -ENOMEM;
}

static int decode_endpoints(const json_t *list, const json_t *protocols, struct znode_broker *b)
{
        size_t n = json_array_size(list);
        int r;

        b->endpoints = calloc(n, sizeof(*b->endpoints));
        if (!b->endpoints)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                b->n_endpoints++; /* first: a half-decoded one is freed with the rest */
                r = decode_endpoint(json_array_get(list, i), protocols, &b->endpoints[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Version 1: host and port alone, plaintext. */
static int decode_legacy(const json_t *j, struct znode_broker *b)
{
        int32_t port;
        int r;

        b->endpoints = calloc(1, sizeof(*b->endpoints));
        if (!b->endpoints)
                return -ENOMEM;
        b->n_endpoints = 1;
        r = znode_int32(json_object_get(j, "port"), 1, UINT16_MAX, &port);
        if (r < 0)
                return r;
        b->endpoints[0].port = (uint16_t)port;
        r = znode_string(json_object_get(j, "host"), 255, &b->endpoints[0].host);
        if (r < 0)
                return r;
        if (!host_valid(b->endpoints[0].host))
                return -EBADMSG;
        b->endpoints[0].listener = strdup("PLAINTEXT");
        b->endpoints[0].protocol = strdup("PLAINTEXT");
        return b->endpoints[0].listener && b->endpoints[0].protocol ? 0 : -ENOMEM;
}

static int decode_optional(const json_t *j, const char *key, char **ret)
{
        const json_t *v = json_object_get(j, key);

        if (!v || json_is_null(v))
                return 0;
        return znode_string(v, MAX_TEXT, ret);
}

static int decode_into(const json_t *j, struct znode_broker *b)
{
        const json_t *endpoints = json_object_get(j, "endpoints"), *v;
        const json_t *protocols = json_object_get(j, "listener_security_protocol_map");
        int r;

        if ((endpoints && !json_is_array(endpoints)) || (protocols && !json_is_object(protocols)))
                return -EBADMSG;
        if (json_array_size(endpoints) > 0)
                r = decode_endpoints(endpoints, protocols, b);
        else
                r = decode_legacy(j, b);
        if (r < 0)
                return r;
        r = decode_optional(j, "rack", &b->rack);
        if (r < 0)
                return r;
        r = decode_optional(j, "admin_endpoint", &b->admin_endpoint);
        if (r < 0)
                return r;
        v = json_object_get(j, "timestamp");
        return v ? znode_int64(v, INT64_MIN, INT64_MAX, &b->timestamp_ms) : 0;
}

int znode_broker_decode(const char *s, size_t len, struct znode_broker *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_broker b = {0};
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r < 0)
                return r;
        r = decode_into(j, &b);
        if (r < 0) {
                znode_broker_done(&b);
                return r;
        }
        *ret = b;
        return 0;
}
