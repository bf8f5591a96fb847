/* ApiVersions (18): what this broker advertises, from the table of API keys (KIP-35, KIP-511). */
#include "api/request.h"

#include <errno.h>

#include "wire/api_versions.h"

static int fill(struct arena *a, struct api_versions_response *ret)
{
        size_t n, used = 0;
        const struct wire_api *all = wire_api_all(&n);
        struct api_versions_response_api_key *keys = arena_alloc(a, n, sizeof(*keys));

        if (!keys)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (all[i].advertise_min < 0)
                        continue;
                keys[used++] = (struct api_versions_response_api_key){.api_key = all[i].key,
                                                                      .min_version = all[i].advertise_min,
                                                                      .max_version = all[i].advertise_max};
        }
        ret->api_keys.items = keys;
        ret->api_keys.n = (int32_t)used;
        return 0;
}

void api_handle_api_versions(struct api_request *r)
{
        struct api_versions_response *res = api_response_new(r);

        if (!res || fill(&r->arena, res) < 0) {
                api_abort(r);
                return;
        }
        api_reply(r, res);
}

void api_reply_unsupported_api_versions(struct net_request *net, int32_t correlation_id)
{
        const struct wire_api *d = wire_api_find(18);
        struct api_versions_response_api_key key = {
                .api_key = d->key, .min_version = d->advertise_min, .max_version = d->advertise_max};
        struct api_versions_response res;
        struct buf out;

        wire_init(d->response, &res);
        res.error_code = KAFKA_UNSUPPORTED_VERSION;
        res.api_keys.items = &key;
        res.api_keys.n = 1;
        buf_init(&out, 0);
        if (wire_encode_response(d->response, 0, correlation_id, &res, &out) < 0) {
                buf_done(&out);
                net_request_abort(net);
                return;
        }
        net_request_reply(net, &out);
}
