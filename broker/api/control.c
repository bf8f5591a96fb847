/* The controller's requests to this broker: LeaderAndIsr (4), StopReplica (5), UpdateMetadata (6).
 * Control loop; the order of arrival is the order of effect. */
#include "api/request.h"

#include "replica/replica_manager.h"
#include "wire/leader_and_isr.h"
#include "wire/stop_replica.h"
#include "wire/update_metadata.h"

void api_handle_leader_and_isr(struct api_request *r)
{
        struct leader_and_isr_response *res = api_response_new(r);

        if (!res || replica_manager_leader_and_isr(r->api->env.replicas, r->body, r->header.api_version,
                                                   &r->arena, res) < 0)
                api_abort(r);
        else
                api_reply(r, res);
}

void api_handle_stop_replica(struct api_request *r)
{
        struct stop_replica_response *res = api_response_new(r);

        if (!res || replica_manager_stop_replica(r->api->env.replicas, r->body, r->header.api_version,
                                                 &r->arena, res) < 0)
                api_abort(r);
        else
                api_reply(r, res);
}

void api_handle_update_metadata(struct api_request *r)
{
        struct update_metadata_response *res = api_response_new(r);

        if (!res ||
            replica_manager_update_metadata(r->api->env.replicas, r->body, r->header.api_version, res) < 0)
                api_abort(r);
        else
                api_reply(r, res);
}
