/* The table of handlers, and the way a frame takes through it. */
#include "api/request.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/slog.h"

/* What a request may allocate while it is decoded: counts are bounded by the frame, but structs are larger
 * than their bytes on the wire, names of one byte by a factor of sixteen. */
#define DECODE_FACTOR           32
#define DECODE_MIN_BYTES        ((size_t)64 * 1024)
#define REQUEST_ARENA_MAX_BYTES ((size_t)512 * 1024 * 1024) /* with the response that is built in it */

/* Of requests without records, half a million partitions. */
#define SHORT_MAX_BYTES ((size_t)16 * 1024 * 1024)

static const struct api_handler handlers[] = {
        {0, API_AT_ONCE, api_handle_produce},
        {1, API_AT_ONCE, api_handle_fetch},
        {2, API_IN_TURN, api_handle_list_offsets},
        {3, API_IN_TURN, api_handle_metadata},
        {4, API_ON_CONTROL_LOOP, api_handle_leader_and_isr},
        {5, API_ON_CONTROL_LOOP, api_handle_stop_replica},
        {6, API_ON_CONTROL_LOOP, api_handle_update_metadata},
        {7, API_AT_ONCE, api_handle_controlled_shutdown},
        {10, API_IN_TURN, api_handle_find_coordinator},
        {18, API_AT_ONCE, api_handle_api_versions},
        {19, API_AT_ONCE, api_handle_create_topics},
        {20, API_AT_ONCE, api_handle_delete_topics},
        {22, API_AT_ONCE, api_handle_init_producer_id},
        {23, API_IN_TURN, api_handle_offset_for_leader_epoch},
        {32, API_AT_ONCE, api_handle_describe_configs},
        {33, API_AT_ONCE, api_handle_alter_configs},
        {37, API_AT_ONCE, api_handle_create_partitions},
        {43, API_AT_ONCE, api_handle_elect_leaders},
        {44, API_AT_ONCE, api_handle_incremental_alter_configs},
        {45, API_AT_ONCE, api_handle_alter_reassignments},
        {46, API_AT_ONCE, api_handle_list_reassignments},
        {56, API_AT_ONCE, api_handle_alter_partition},
        {67, API_AT_ONCE, api_handle_allocate_producer_ids},
};

#define PRODUCE_KEY      0
#define API_VERSIONS_KEY 18

/* Only records make a request large: everything else that long is a mistake, or an attempt to keep the loop
 * busy. The controller's requests are as long as the cluster is large. */
static bool may_be_long(const struct api_handler *h)
{
        return h->key == PRODUCE_KEY || h->when == API_ON_CONTROL_LOOP;
}

static const struct api_handler *find_handler(int16_t key)
{
        for (size_t i = 0; i < ARRAY_SIZE(handlers); i++)
                if (handlers[i].key == key)
                        return &handlers[i];
        return NULL;
}

static struct api_request *api_request_free(struct api_request *r)
{
        if (!r)
                return NULL;
        arena_done(&r->arena);
        free(r);
        return NULL;
}
DEFINE_FREEP(struct api_request, api_request_free)

static struct net_request *request_end(struct api_request *r)
{
        struct net_request *net = r->net;

        metric_observe_us(&r->api->latency[r->handler - handlers], clock_mono_us() - net->received_us);
        (void)api_request_free(r);
        return net;
}

void api_reply(struct api_request *r, const void *response)
{
        struct buf out;
        int e;

        if (!response) {
                api_abort(r);
                return;
        }
        buf_init(&out, 0);
        e = wire_encode_response(r->desc->response, r->header.api_version, r->header.correlation_id, response,
                                 &out);
        if (e < 0) {
                slog_error("response-encode-failed",
                           "a response could not be encoded; closing the connection",
                           SL_STR("api", r->desc->name), SL_INT("version", r->header.api_version),
                           SL_STR("peer", r->net->peer), SL_ERR(e));
                buf_done(&out);
                api_abort(r);
                return;
        }
        net_request_reply(request_end(r), &out);
}

void api_reply_nothing(struct api_request *r)
{
        net_request_done(request_end(r));
}

void api_abort(struct api_request *r)
{
        net_request_abort(request_end(r));
}

void *api_response_new(struct api_request *r)
{
        void *p = arena_alloc(&r->arena, 1, wire_struct_size(r->desc->response));

        if (p)
                wire_init(r->desc->response, p);
        return p;
}

/* What a request takes of the heap beside its frame, until it is answered. */
static void charge_memory(struct api_request *r, const struct arena *arena)
{
        net_request_charge(r->net, sizeof(*r->net) + sizeof(*r) + arena->held_bytes);
}

struct api_input api_take_input(struct api_request *r)
{
        struct api_input in = {.frame = net_request_take_frame(r->net), .arena = r->arena};

        /* Whoever takes it lets the request wait, and keeps a copy of about what was decoded. */
        charge_memory(r, &in.arena);
        arena_init(&r->arena, REQUEST_ARENA_MAX_BYTES);
        r->body = NULL;
        return in;
}

static void run_on_control_loop(void *userdata)
{
        api_control_enqueue(userdata);
}

/* A hostile or broken peer comes back at once, for ever: it must not fill the journal. */
static void refuse(struct api *a, struct net_request *net, const char *what,
                   const struct wire_request_header *h)
{
        int64_t suppressed;

        if (slog_gate_pass(&a->refusals, clock_mono_ms(), &suppressed))
                slog_warning("request-refused", what, SL_STR("peer", net->peer),
                             SL_INT("api_key", h->api_key), SL_INT("api_version", h->api_version),
                             SL_INT("bytes", net->frame.len), SL_INT("suppressed", suppressed));
        net_request_abort(net);
}

/* The request is known and its version served: decode the body and hand it on. */
static void dispatch(struct api *a, struct net_request *net, const struct wire_request_header *h,
                     size_t header_len, const struct wire_api *desc, const struct api_handler *handler)
{
        cleanup_with(api_request_freep) struct api_request *r = calloc(1, sizeof(*r));
        int e;

        if (!r) {
                net_request_abort(net);
                return;
        }
        arena_init(&r->arena,
                   MIN(DECODE_FACTOR * net->frame.len + DECODE_MIN_BYTES, REQUEST_ARENA_MAX_BYTES));
        r->api = a;
        r->net = net;
        r->header = *h;
        r->desc = desc;
        r->handler = handler;
        r->body = arena_alloc(&r->arena, 1, wire_struct_size(desc->request));
        e = r->body ? wire_decode(desc->request, h->api_version, net->frame.data + header_len,
                                  net->frame.len - header_len, &r->arena, r->body)
                    : -ENOMEM;
        if (e < 0) {
                refuse(a, net,
                       e == -ENOMEM ? "not enough memory for a request; closing its connection"
                                    : "a malformed request body; closing its connection",
                       h);
                return;
        }
        r->arena.limit_bytes = REQUEST_ARENA_MAX_BYTES;
        charge_memory(r, &r->arena);
        if (handler->when == API_ON_CONTROL_LOOP) {
                r->task = (struct loop_task){.fn = run_on_control_loop, .userdata = r};
                loop_post_task(a->env.control_loop, &TAKE_PTR(r)->task);
                return;
        }
        handler->handle(r);
        TAKE_PTR(r);
}

void api_on_request(struct net_request *net, void *userdata)
{
        struct api *a = userdata;
        struct wire_request_header h = {0};
        const struct api_handler *handler;
        const struct wire_api *desc;
        size_t header_len = 0;

        if (wire_decode_request_header(net->frame.data, net->frame.len, &h, &header_len) < 0) {
                refuse(a, net, "a malformed request header; closing its connection", &h);
                return;
        }
        desc = wire_api_find(h.api_key);
        handler = find_handler(h.api_key);
        if (!desc || !handler) {
                refuse(a, net, "a request with an API key this broker does not serve; closing its connection",
                       &h);
                return;
        }
        if (h.api_version < desc->serve_min || h.api_version > desc->serve_max) {
                /* Not parsed, and answered in a form every client reads: it asks again with what we know. */
                if (h.api_key == API_VERSIONS_KEY)
                        api_reply_unsupported_api_versions(net, h.correlation_id);
                else
                        refuse(a, net,
                               "a request with a version this broker does not serve; closing its connection",
                               &h);
                return;
        }
        if (net->frame.len > SHORT_MAX_BYTES && !may_be_long(handler)) {
                refuse(a, net, "a request longer than one of its kind can be; closing its connection", &h);
                return;
        }
        if (handler->when == API_IN_TURN && !net_request_is_next(net))
                net_request_wait_turn(net);
        else
                dispatch(a, net, &h, header_len, desc, handler);
}

int api_new(const struct api_env *env, struct api **ret)
{
        cleanup_with(api_freep) struct api *a = calloc(1, sizeof(*a));

        if (!a)
                return -ENOMEM;
        a->env = *env;
        list_init(&a->control_queue);
        a->control_paused = true;
        a->latency = calloc(ARRAY_SIZE(handlers), sizeof(*a->latency));
        a->labels = calloc(ARRAY_SIZE(handlers), sizeof(*a->labels));
        if (!a->latency || !a->labels || auto_create_init(&a->auto_create) < 0)
                return -ENOMEM;
        for (size_t i = 0; i < ARRAY_SIZE(handlers); i++) {
                const struct wire_api *d = wire_api_find(handlers[i].key);

                (void)snprintf(a->labels[i], sizeof(a->labels[i]), "api=\"%s\"", d ? d->name : "unknown");
                a->latency[i] = (struct metric){.type = METRIC_T_HISTOGRAM,
                                                .name = "stepdown_request_seconds",
                                                .help = "Time from a request's last byte to its answer",
                                                .labels = a->labels[i]};
                metrics_register(&a->latency[i]);
        }
        *ret = TAKE_PTR(a);
        return 0;
}

struct api *api_free(struct api *a)
{
        if (!a)
                return NULL;
        api_control_drop(a);
        for (size_t i = 0; a->latency && a->labels && i < ARRAY_SIZE(handlers); i++)
                if (a->latency[i].name)
                        metrics_unregister(&a->latency[i]);
        auto_create_done(&a->auto_create);
        free(a->latency);
        free(a->labels);
        free(a);
        return NULL;
}
