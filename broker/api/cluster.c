/* Requests for the active controller: CreateTopics (19), DeleteTopics (20), ControlledShutdown (7),
 * AlterPartition (56). A broker that is not the controller answers NOT_CONTROLLER. */
#include "api/request.h"

#include "controller/controller.h"
#include "wire/alter_partition.h"
#include "wire/controlled_shutdown.h"
#include "wire/create_topics.h"
#include "wire/delete_topics.h"

static void on_created(const struct create_topics_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_create_topics(struct api_request *r)
{
        controller_create_topics(r->api->env.controller, r->body, on_created, r);
}

static void on_deleted(const struct delete_topics_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_delete_topics(struct api_request *r)
{
        controller_delete_topics(r->api->env.controller, r->body, on_deleted, r);
}

/* For the log of the broker that waits. */
static struct wire_str holder_text(struct api_request *r, const struct slot_holder *h)
{
        char *text = h ? arena_alloc(&r->arena, 1, SLOT_HOLDER_TEXT_SIZE) : NULL;

        if (!text)
                return (struct wire_str){0};
        slot_holder_text(h, text);
        return wire_str(text);
}

static void on_shut_down(int16_t error, const struct controller_partition *remaining, size_t n,
                         const struct slot_holder *holder, void *userdata)
{
        struct api_request *r = userdata;
        struct controlled_shutdown_response *res = api_response_new(r);
        struct controlled_shutdown_response_remaining_partition *items;

        items = arena_alloc(&r->arena, n + 1, sizeof(*items));
        if (!res || !items) {
                api_abort(r);
                return;
        }
        for (size_t i = 0; i < n; i++) {
                items[i].topic_name = wire_str(remaining[i].topic);
                items[i].partition_index = remaining[i].partition;
        }
        res->error_code = error;
        res->slot_holder = holder_text(r, holder);
        res->remaining_partitions.items = items;
        res->remaining_partitions.n = (int32_t)n;
        api_reply(r, res);
}

void api_handle_controlled_shutdown(struct api_request *r)
{
        const struct controlled_shutdown_request *req = r->body;

        controller_controlled_shutdown(r->api->env.controller, req->broker_id, req->broker_epoch,
                                       MAX(req->slot_wait_ms, 0), on_shut_down, r);
}

static void on_altered(const struct alter_partition_response *res, void *userdata)
{
        api_reply(userdata, res);
}

void api_handle_alter_partition(struct api_request *r)
{
        controller_alter_partition(r->api->env.controller, r->body, r->header.api_version, on_altered, r);
}
