/* Blocking calls for command lines: a loop and a client of their own, gone when the call returns. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "client/kclient_internal.h"
#include "wire/api_versions.h"
#include "wire/error.h"

#define API_VERSIONS_KEY 18
#define SOFTWARE_NAME    "stepdown"

struct call {
        struct loop *loop;
        struct kclient *client;
        const struct wire_api *api;
        const void *body;
        int64_t deadline_ms;
        int16_t version;              /* asked with; when negotiating: the highest we know until settled */
        int16_t api_versions_version; /* of the ApiVersions request under way */
        bool downgraded;
        struct arena *arena;
        void *ret;
        int result;
};

static void call_finish(struct call *x, int result)
{
        x->result = result;
        loop_stop(x->loop);
}

/* Slices of the answer point into the frame: it has to live as long as the caller's arena. */
static int call_decode(struct call *x, const struct wire_message *m, int16_t version, const uint8_t *frame,
                       size_t len, void *ret)
{
        int32_t correlation_id;
        void *copy = arena_alloc(x->arena, 1, len);

        if (!copy)
                return -ENOMEM;
        memcpy(copy, frame, len);
        return wire_decode_response(m, version, copy, len, x->arena, &correlation_id, ret);
}

static void call_on_answer(int r, const uint8_t *frame, size_t len, void *userdata)
{
        struct call *x = userdata;

        if (r == 0)
                r = call_decode(x, x->api->response, x->version, frame, len, x->ret);
        call_finish(x, r);
}

static void call_ask(struct call *x)
{
        int r = kclient_request_raw(x->client, x->api, x->version, x->body,
                                    MAX(x->deadline_ms - clock_mono_ms(), (int64_t)0), call_on_answer, x);

        if (r < 0)
                call_finish(x, r);
}

static const struct api_versions_response_api_key *find_key(const struct api_versions_response *v,
                                                            int16_t key)
{
        for (int32_t i = 0; i < v->api_keys.n; i++)
                if (v->api_keys.items[i].api_key == key)
                        return &v->api_keys.items[i];
        return NULL;
}

/* The highest version both sides know, at most @max_version. */
static int pick_version(const struct api_versions_response *v, const struct wire_api *api,
                        int16_t max_version, int16_t *ret)
{
        const struct api_versions_response_api_key *k = find_key(v, api->key);
        int lo, hi;

        if (!k)
                return -EPROTONOSUPPORT;
        lo = MAX(k->min_version, wire_min_version(api->request));
        hi = MIN(MIN(k->max_version, wire_max_version(api->request)), max_version);
        if (lo > hi)
                return -EPROTONOSUPPORT;
        *ret = (int16_t)hi;
        return 0;
}

static int call_ask_api_versions(struct call *x);

/* Error 35 names the range of ApiVersions itself that the broker speaks (KIP-511): ask once more within it.
 */
static int call_downgrade(struct call *x, const struct api_versions_response *v)
{
        int r;

        if (x->downgraded)
                return -EPROTONOSUPPORT;
        x->downgraded = true;
        r = pick_version(v, wire_api_find(API_VERSIONS_KEY), INT16_MAX, &x->api_versions_version);
        return r < 0 ? r : call_ask_api_versions(x);
}

static int call_settle_version(struct call *x, const uint8_t *frame, size_t len)
{
        struct api_versions_response v;
        int r;

        r = call_decode(x, &api_versions_response_wire, x->api_versions_version, frame, len, &v);
        if (r < 0)
                return r;
        if (v.error_code == KAFKA_UNSUPPORTED_VERSION)
                return call_downgrade(x, &v);
        if (v.error_code != KAFKA_NONE)
                return -EPROTO;
        r = pick_version(&v, x->api, x->version, &x->version);
        if (r < 0)
                return r;
        call_ask(x);
        return 0;
}

static void call_on_api_versions(int r, const uint8_t *frame, size_t len, void *userdata)
{
        struct call *x = userdata;

        if (r == 0)
                r = call_settle_version(x, frame, len);
        if (r < 0)
                call_finish(x, r);
}

static int call_ask_api_versions(struct call *x)
{
        const struct api_versions_request body = {
                .client_software_name = wire_str(SOFTWARE_NAME),
                .client_software_version = wire_str(STEPDOWN_VERSION),
        };

        return kclient_request_raw(x->client, wire_api_find(API_VERSIONS_KEY), x->api_versions_version, &body,
                                   MAX(x->deadline_ms - clock_mono_ms(), (int64_t)0), call_on_api_versions,
                                   x);
}

static int call_run(struct call *x, const char *host, uint16_t port, const char *client_id, bool negotiate)
{
        const struct kclient_options o = {.client_id = client_id, .max_inflight = 1};
        cleanup_with(loop_freep) struct loop *l = NULL;
        cleanup_with(kclient_freep) struct kclient *c = NULL;
        int r;

        r = loop_new("kclient-call", &l);
        if (r < 0)
                return r;
        r = kclient_new(l, host, port, &o, &c);
        if (r < 0)
                return r;
        c->fail_fast = true;
        x->loop = l;
        x->client = c;
        x->result = -ECANCELED;
        if (negotiate) {
                r = call_ask_api_versions(x);
                if (r < 0)
                        return r;
        } else {
                call_ask(x);
        }
        r = loop_run(l);
        return r < 0 ? r : x->result;
}

int kclient_call(const char *host, uint16_t port, const char *client_id, const struct wire_api *api,
                 int16_t version, const void *body, int64_t timeout_ms, struct arena *arena, void *ret)
{
        struct call x = {
                .api = api,
                .body = body,
                .version = version,
                .deadline_ms = clock_mono_ms() + timeout_ms,
                .arena = arena,
                .ret = ret,
        };

        return call_run(&x, host, port, client_id, false);
}

int kclient_call_negotiated(const char *host, uint16_t port, const char *client_id,
                            const struct wire_api *api, int16_t max_version, const void *body,
                            int64_t timeout_ms, struct arena *arena, int16_t *ret_version, void *ret)
{
        struct call x = {
                .api = api,
                .body = body,
                .version = max_version,
                .deadline_ms = clock_mono_ms() + timeout_ms,
                .arena = arena,
                .ret = ret,
        };
        int r;

        r = call_run(&x, host, port, client_id, true);
        if (r == 0)
                *ret_version = x.version;
        return r;
}
