#include "client_fixture.h"

#include <arpa/inet.h>
#include <string.h>

#include "wire/error.h"
#include "wire/metadata.h"

#define API_VERSIONS 18
#define METADATA     3
#define MANY_KEYS    500000

static void reply(struct net_request *q, struct buf *out)
{
        net_request_reply(q, out);
}

static void header_of(const struct net_request *q, struct wire_request_header *ret)
{
        size_t consumed;

        assert_int_equal(wire_decode_request_header(q->frame.data, q->frame.len, ret, &consumed), 0);
}

static void answer_metadata(struct net_request *q, const struct wire_request_header *h)
{
        cleanup_with(buf_donep) struct buf out = {0};
        struct metadata_response body;

        wire_init(&metadata_response_wire, &body);
        body.controller_id = 7;
        body.cluster_id = wire_str("a cluster");
        assert_int_equal(
                wire_encode_response(&metadata_response_wire, h->api_version, h->correlation_id, &body, &out),
                0);
        reply(q, &out);
}

static void answer_api_versions(struct fixture *f, struct net_request *q, int16_t number, int32_t n_keys)
{
        struct api_versions_response_api_key own[] = {
                {METADATA, f->metadata_min, f->metadata_max},
                {API_VERSIONS, 0, 3},
        };
        cleanup_with(buf_donep) struct buf out = {0};
        cleanup_with(freep) struct api_versions_response_api_key *many = NULL;
        struct api_versions_response body;
        struct wire_request_header h;

        header_of(q, &h);
        wire_init(&api_versions_response_wire, &body);
        body.error_code = number;
        body.api_keys.items = own;
        body.api_keys.n = ARRAY_SIZE(own);
        if (n_keys > 0) {
                many = calloc((size_t)n_keys, sizeof(*many));
                assert_non_null(many);
                body.api_keys.items = many;
                body.api_keys.n = n_keys;
        }
        assert_int_equal(wire_encode_response(&api_versions_response_wire, h.api_version, h.correlation_id,
                                              &body, &out),
                         0);
        if (f->behaviour == BROKER_ANSWERS_WRONG_ID)
                out.data[7] ^= 1;
        if (f->behaviour == BROKER_ANSWERS_HUGE_LENGTH)
                out.data[0] = 0x7f;
        if (f->behaviour == BROKER_ANSWERS_GARBAGE) {
                const uint32_t shorter = htonl((uint32_t)out.len - 4 - 3);

                memcpy(out.data, &shorter, 4);
                out.len -= 3;
        }
        reply(q, &out);
}

static void on_request(struct net_request *q, void *userdata)
{
        struct fixture *f = userdata;
        struct wire_request_header h;

        header_of(q, &h);
        f->n_seen++;
        if (f->behaviour == BROKER_HOLDS) {
                assert_true(f->n_held < MAX_SEEN);
                q->userdata = (void *)(intptr_t)f->n_seen;
                f->held[f->n_held++] = q;
        } else if (f->behaviour == BROKER_CLOSES) {
                net_request_abort(q);
        } else if (h.api_key == METADATA) {
                answer_metadata(q, &h);
        } else if (f->behaviour == BROKER_ANSWERS_UNSUPPORTED_FIRST) {
                answer_api_versions(f, q, h.api_version == 0 ? KAFKA_UNSUPPORTED_VERSION : KAFKA_NONE, 0);
        } else {
                answer_api_versions(f, q, (int16_t)f->n_seen,
                                    f->behaviour == BROKER_ANSWERS_MANY_KEYS ? MANY_KEYS : 0);
        }
}

void broker_answer(struct fixture *f, int i)
{
        struct net_request *q = TAKE_PTR(f->held[i]);

        assert_non_null(q);
        answer_api_versions(f, q, (int16_t)(intptr_t)q->userdata, 0);
}

void broker_start(struct fixture *f)
{
        const struct net_ops ops = {.on_request = on_request, .userdata = f};

        assert_int_equal(net_server_new(f->loop, "127.0.0.1", f->port, NULL, &ops, &f->broker), 0);
        f->port = net_server_port(f->broker);
}

void broker_stop(struct fixture *f)
{
        f->broker = net_server_free(f->broker);
        for (int i = 0; i < f->n_held; i++)
                if (f->held[i])
                        net_request_done(TAKE_PTR(f->held[i]));
        f->n_held = 0;
}

static int on_watchdog(struct loop *l, void *userdata)
{
        (void)l;
        (void)userdata;
        fail_msg("nothing happened within the deadline");
        return 0;
}

static int on_later(struct loop *l, void *userdata)
{
        (void)userdata;
        loop_stop(l);
        return 0;
}

void fixture_init(struct fixture *f, const struct kclient_options *o)
{
        *f = (struct fixture){.metadata_min = 0, .metadata_max = 9};
        assert_int_equal(loop_new("client-test", &f->loop), 0);
        assert_int_equal(loop_add_timer(f->loop, on_watchdog, f, &f->watchdog), 0);
        assert_int_equal(loop_add_timer(f->loop, on_later, f, &f->later), 0);
        broker_start(f);
        assert_int_equal(kclient_new(f->loop, "127.0.0.1", f->port, o, &f->client), 0);
}

void fixture_done(struct fixture *f)
{
        f->client = kclient_free(f->client);
        if (f->broker)
                broker_stop(f);
        f->watchdog = loop_timer_remove(f->watchdog);
        f->later = loop_timer_remove(f->later);
        f->loop = loop_free(f->loop);
}

void on_outcome(int r, const void *response, struct arena *arena, void *userdata)
{
        const struct api_versions_response *v = response;
        struct outcome *o = userdata;

        (void)arena;
        o->calls++;
        o->r = r;
        assert_true(r < 0 || v);
        o->number = v ? v->error_code : 0;
        o->n_keys = v ? v->api_keys.n : 0;
        if (o->stop_loop)
                loop_stop(o->f->loop);
}

void ask(struct fixture *f, struct outcome *o, int64_t timeout_ms)
{
        const struct api_versions_request body = {.client_software_name = wire_str("")};

        *o = (struct outcome){.f = f};
        assert_int_equal(
                kclient_request(f->client, wire_api_find(API_VERSIONS), 0, &body, timeout_ms, on_outcome, o),
                0);
        assert_int_equal(o->calls, 0); /* never from inside the request */
}

void run_until_called(struct fixture *f, struct outcome *o)
{
        loop_timer_arm(f->watchdog, DEADLINE_MS, 0);
        o->stop_loop = true;
        if (o->calls == 0)
                assert_int_equal(loop_run(f->loop), 0);
        o->stop_loop = false;
        loop_timer_disarm(f->watchdog);
        assert_int_equal(o->calls, 1);
}

static int stop_when_held(struct loop *l, void *userdata)
{
        const int *const *p = userdata;

        if (*p[0] >= *p[1])
                loop_stop(l);
        return 0;
}

void run_until_held(struct fixture *f, int n)
{
        const int *const pair[] = {&f->n_held, &n};
        struct loop_timer *poll = NULL;

        loop_timer_arm(f->watchdog, DEADLINE_MS, 0);
        assert_int_equal(loop_add_timer(f->loop, stop_when_held, (void *)pair, &poll), 0);
        loop_timer_arm(poll, 0, 1);
        assert_int_equal(loop_run(f->loop), 0);
        (void)loop_timer_remove(poll);
        loop_timer_disarm(f->watchdog);
}

void run_for(struct fixture *f, int64_t ms)
{
        loop_timer_arm(f->later, ms, 0);
        assert_int_equal(loop_run(f->loop), 0);
}
