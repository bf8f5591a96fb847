/* One request a connection: a command line asks rarely and must not leave anything behind. */
#include "cli/kafka_admin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"
#include "client/kclient.h"

#define CLIENT_ID     "stepdown-cli"
#define RETRY_WAIT_MS 200
#define METADATA_KEY  3

void kafka_admin_init(struct kafka_admin *k, const char *bootstrap, int64_t timeout_ms)
{
        memset(k, 0, sizeof(*k));
        if (!bootstrap)
                bootstrap = getenv("STEPDOWN_BOOTSTRAP");
        k->bootstrap = bootstrap ? bootstrap : "127.0.0.1:9092";
        k->timeout_ms = timeout_ms;
        arena_init(&k->arena, 0);
}

void kafka_admin_done(struct kafka_admin *k)
{
        arena_done(&k->arena);
}

/* The @i-th address of the list. -ENOENT past its end, -EINVAL when it is not host:port. */
static int bootstrap_address(struct kafka_admin *k, size_t i, char host[256], uint16_t *ret_port)
{
        const char *p = k->bootstrap;
        char one[300];
        size_t n;

        for (; i > 0 && p; i--) {
                p = strchr(p, ',');
                p = p ? p + 1 : NULL;
        }
        if (!p || *p == '\0')
                return -ENOENT;
        n = strcspn(p, ",");
        (void)snprintf(one, sizeof(one), "%.*s", (int)n, p);
        if (n < sizeof(one) && parse_host_port(one, host, ret_port) == 0)
                return 0;
        (void)snprintf(k->error, sizeof(k->error), "'%s' in --bootstrap is not host:port", one);
        return -EINVAL;
}

static int ask_bootstrap(struct kafka_admin *k, const struct metadata_request *req,
                         struct metadata_response *res)
{
        char host[256], tried[300] = "";
        int16_t version;
        uint16_t port;
        int r, last = -ENOENT;

        for (size_t i = 0;; i++) {
                r = bootstrap_address(k, i, host, &port);
                if (r == -EINVAL)
                        return r;
                if (r < 0)
                        break;
                last = kclient_call_negotiated(host, port, CLIENT_ID, wire_api_find(METADATA_KEY), 12, req,
                                               k->timeout_ms, &k->arena, &version, res);
                if (last == 0)
                        return 0;
                (void)snprintf(tried, sizeof(tried), "%.200s:%u: %s", host, port, strerror(-last));
        }
        (void)snprintf(k->error, sizeof(k->error), "no broker of %.150s answered (last: %.300s)",
                       k->bootstrap, tried[0] ? tried : "the list is empty");
        return last;
}

int kafka_admin_metadata(struct kafka_admin *k, const char *topic, struct metadata_response **ret)
{
        struct metadata_request_topic one = {.name = wire_str(topic ? topic : "")};
        const struct wire_api *api = wire_api_find(METADATA_KEY);
        struct metadata_response *res = arena_alloc(&k->arena, 1, sizeof(*res));
        struct metadata_request req;
        int r;

        if (!res)
                return -ENOMEM;
        wire_init(api->request, &req);
        req.allow_auto_topic_creation = false;
        req.topics.items = topic ? &one : NULL;
        req.topics.n = topic ? 1 : -1;
        r = ask_bootstrap(k, &req, res);
        if (r == 0)
                *ret = res;
        return r;
}

static const struct metadata_response_broker *controller_of(const struct metadata_response *m)
{
        for (int32_t i = 0; i < m->brokers.n; i++)
                if (m->brokers.items[i].node_id == m->controller_id)
                        return &m->brokers.items[i];
        return NULL;
}

int kafka_admin_controller(struct kafka_admin *k, int32_t *ret_id, char host[256], uint16_t *ret_port)
{
        const struct metadata_response_broker *b;
        struct metadata_response *m;
        int r;

        r = kafka_admin_metadata(k, "", &m); /* no such topic: only brokers and controller matter here */
        if (r < 0)
                return r;
        b = controller_of(m);
        if (!b) {
                (void)snprintf(k->error, sizeof(k->error), "the cluster has no active controller now");
                return -EAGAIN;
        }
        (void)snprintf(host, 256, "%.*s", (int)b->host.len, b->host.data);
        *ret_id = b->node_id;
        *ret_port = (uint16_t)b->port;
        return 0;
}

static void did_not_answer(struct kafka_admin *k, const struct wire_api *api, const char *who,
                           const char *host, uint16_t port, int r)
{
        if (r == -EPROTONOSUPPORT)
                (void)snprintf(k->error, sizeof(k->error), "%s at %.200s:%u does not serve %s", who, host,
                               port, api->name);
        else
                (void)snprintf(k->error, sizeof(k->error), "%s at %.200s:%u did not answer: %s", who, host,
                               port, strerror(-r));
}

/* 0; -EAGAIN: no controller yet, or it moved; else -errno. */
static int ask_once(struct kafka_admin *k, const struct wire_api *api, int16_t max_version, const void *body,
                    bool (*is_moved)(const void *response), void *response)
{
        char host[256], who[64];
        int16_t version;
        uint16_t port;
        int32_t id;
        int r;

        r = kafka_admin_controller(k, &id, host, &port);
        if (r < 0)
                return r;
        r = kclient_call_negotiated(host, port, CLIENT_ID, api, max_version, body, k->timeout_ms, &k->arena,
                                    &version, response);
        if (r < 0) {
                (void)snprintf(who, sizeof(who), "the controller, broker %d,", id);
                did_not_answer(k, api, who, host, port, r);
                return r;
        }
        if (is_moved && is_moved(response)) {
                (void)snprintf(k->error, sizeof(k->error), "the controller moved away from broker %d", id);
                return -EAGAIN;
        }
        return 0;
}

int kafka_admin_ask_at(struct kafka_admin *k, const char *host, uint16_t port, const struct wire_api *api,
                       int16_t version, const void *body, void **ret_response)
{
        void *response = arena_alloc(&k->arena, 1, wire_struct_size(api->response));
        int r;

        if (!response)
                return -ENOMEM;
        r = kclient_call(host, port, CLIENT_ID, api, version, body, k->timeout_ms, &k->arena, response);
        if (r < 0)
                did_not_answer(k, api, "the controller", host, port, r);
        else
                *ret_response = response;
        return r;
}

int kafka_admin_ask_controller(struct kafka_admin *k, const struct wire_api *api, int16_t max_version,
                               const void *body, bool (*is_moved)(const void *response), void **ret_response)
{
        void *response = arena_alloc(&k->arena, 1, wire_struct_size(api->response));
        const struct timespec pause = {.tv_nsec = RETRY_WAIT_MS * 1000L * 1000L};
        int64_t until = clock_mono_ms() + k->timeout_ms;
        int r;

        if (!response)
                return -ENOMEM;
        for (;;) {
                r = ask_once(k, api, max_version, body, is_moved, response);
                if (r != -EAGAIN || clock_mono_ms() >= until)
                        break;
                (void)nanosleep(&pause, NULL);
        }
        if (r == 0)
                *ret_response = response;
        return r;
}
