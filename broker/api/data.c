/* Produce (0), Fetch (1), ListOffsets (2), OffsetForLeaderEpoch (23): the replica manager's requests. */
#include "api/request.h"

#include "replica/replica_manager.h"
#include "wire/list_offsets.h"
#include "wire/offset_for_leader_epoch.h"
#include "wire/produce.h"

static void reply_with(struct api_request *r, struct replica_response *res)
{
        if (res)
                api_reply(r, res->body);
        else
                api_abort(r);
        (void)replica_response_free(res);
}

static void on_produced(struct replica_response *res, void *userdata)
{
        struct api_request *r = userdata;

        if (!r->silent) {
                reply_with(r, res);
                return;
        }
        /* acks=0 has no response; closing the connection is the only way to tell of a failure (R46). */
        if (!res || res->failed)
                api_abort(r);
        else
                api_reply_nothing(r);
        (void)replica_response_free(res);
}

static void on_fetched(struct replica_response *res, void *userdata)
{
        reply_with(userdata, res);
}

static bool is_abandoned(void *userdata)
{
        const struct api_request *r = userdata;

        return net_request_abandoned(r->net);
}

static size_t response_room(void *userdata)
{
        const struct api_request *r = userdata;

        return net_response_room(r->net);
}

static struct replica_call call_of(struct api_request *r, replica_done_fn fn)
{
        return (struct replica_call){
                .version = r->header.api_version,
                .trace_id = r->net->id,
                .on_done = fn,
                .is_abandoned = is_abandoned,
                .response_room = response_room,
                .userdata = r,
        };
}

/* Both calls may have answered, and @r be gone, when they return; the input is ours. */
void api_handle_produce(struct api_request *r)
{
        struct replica_manager *m = r->api->env.replicas;
        struct replica_call call = call_of(r, on_produced);
        const struct produce_request *req = r->body;
        struct api_input in;

        r->silent = req->acks == 0;
        in = api_take_input(r);
        replica_manager_produce(m, req, &call);
        api_input_done(&in);
}

void api_handle_fetch(struct api_request *r)
{
        struct replica_manager *m = r->api->env.replicas;
        struct replica_call call = call_of(r, on_fetched);
        const struct fetch_request *req = r->body;
        struct api_input in = api_take_input(r);

        replica_manager_fetch(m, req, &call);
        api_input_done(&in);
}

void api_handle_list_offsets(struct api_request *r)
{
        struct list_offsets_response *res = api_response_new(r);

        if (!res || replica_manager_list_offsets(r->api->env.replicas, r->body, r->header.api_version,
                                                 &r->arena, res) < 0)
                api_abort(r);
        else
                api_reply(r, res);
}

void api_handle_offset_for_leader_epoch(struct api_request *r)
{
        struct offset_for_leader_epoch_response *res = api_response_new(r);

        if (!res || replica_manager_offset_for_leader_epoch(r->api->env.replicas, r->body,
                                                            r->header.api_version, &r->arena, res) < 0)
                api_abort(r);
        else
                api_reply(r, res);
}
