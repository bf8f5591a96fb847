/* FindCoordinator (10) and InitProducerId (22). */
#include "api/request.h"

#include "wire/find_coordinator.h"
#include "wire/allocate_producer_ids.h"
#include "wire/init_producer_id.h"

#define KEY_TYPE_GROUP       0
#define KEY_TYPE_TRANSACTION 1

/* No coordinator serves groups or transactions here: an answer that clients retry on. */
void api_handle_find_coordinator(struct api_request *r)
{
        const struct find_coordinator_request *req = r->body;
        struct find_coordinator_response *res = api_response_new(r);
        int16_t error = req->key_type == KEY_TYPE_GROUP || req->key_type == KEY_TYPE_TRANSACTION
                                ? KAFKA_COORDINATOR_NOT_AVAILABLE
                                : KAFKA_INVALID_REQUEST;
        int32_t n = MAX(req->coordinator_keys.n, 0);

        if (res)
                res->coordinators.items =
                        arena_alloc(&r->arena, (size_t)n + 1, sizeof(*res->coordinators.items));
        if (!res || !res->coordinators.items) {
                api_abort(r);
                return;
        }
        if (r->header.api_version < 4) {
                res->error_code = error;
                res->node_id = -1;
                res->port = -1;
        } else {
                res->coordinators.n = n; /* the answers are in there, and nothing beside them */
        }
        for (int32_t i = 0; i < res->coordinators.n; i++)
                res->coordinators.items[i] = (struct find_coordinator_response_coordinator){
                        .key = req->coordinator_keys.items[i],
                        .node_id = -1,
                        .host = wire_str(""),
                        .port = -1,
                        .error_code = error,
                        .error_message = WIRE_NULL_STR,
                };
        api_reply(r, res);
}

static void reply_producer_id(struct api_request *r, int16_t error, int64_t id, int16_t epoch)
{
        struct init_producer_id_response *res = api_response_new(r);

        if (!res) {
                api_abort(r);
                return;
        }
        res->error_code = error;
        res->producer_id = id;
        res->producer_epoch = epoch;
        api_reply(r, res);
}

static void on_producer_id(int e, int64_t id, void *userdata)
{
        /* Retriable: the client asks again. */
        reply_producer_id(userdata, e < 0 ? KAFKA_COORDINATOR_LOAD_IN_PROGRESS : KAFKA_NONE, e < 0 ? -1 : id,
                          e < 0 ? -1 : 0);
}

void api_handle_init_producer_id(struct api_request *r)
{
        const struct init_producer_id_request *req = r->body;

        /* A transactional id wants its coordinator, which is not here. */
        if (req->transactional_id.len >= 0) {
                reply_producer_id(
                        r, req->transactional_id.len == 0 ? KAFKA_INVALID_REQUEST : KAFKA_NOT_COORDINATOR, -1,
                        -1);
                return;
        }
        /* KIP-360: an idempotent producer that lost its state gets a fresh id, which needs no fencing. */
        r->api->env.new_producer_id(on_producer_id, r, r->api->env.userdata);
}

static void on_producer_ids(int e, int64_t first, int32_t n, void *userdata)
{
        struct api_request *r = userdata;
        struct allocate_producer_ids_response *res = api_response_new(r);

        if (!res) {
                api_abort(r);
                return;
        }
        res->error_code = e < 0 ? KAFKA_COORDINATOR_LOAD_IN_PROGRESS : KAFKA_NONE;
        res->producer_id_start = e < 0 ? -1 : first;
        res->producer_id_len = n;
        api_reply(r, res);
}

/* KIP-730: what Apache Kafka's brokers ask of their controller; ours claim their blocks themselves. No check
 * of who asks, nor whether this is the controller still: a block is claimed by compare-and-set, so it is
 * nobody else's in any case. */
void api_handle_allocate_producer_ids(struct api_request *r)
{
        r->api->env.new_producer_ids(on_producer_ids, r, r->api->env.userdata);
}
