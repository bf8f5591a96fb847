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
        const struct produce_request *req = r->body;

        if (req->acks != 0) {
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

static struct replica_call call_of(struct api_request *r, replica_done_fn fn)
{
        return (struct replica_call){
                .version = r->header.api_version, .trace_id = r->net->id, .on_done = fn, .userdata = r};
}

void api_handle_produce(struct api_request *r)
{
        struct replica_call call = call_of(r, on_produced);

        replica_manager_produce(r->api->env.replicas, r->body, &call);
}

void api_handle_fetch(struct api_request *r)
{
        struct replica_call call = call_of(r, on_fetched);

        replica_manager_fetch(r->api->env.replicas, r->body, &call);
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
