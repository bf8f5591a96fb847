/* One request on its way through a handler. Internal to api/. */
#pragma once

#include <string.h>

#include "api/api.h"
#include "api/auto_create.h"
#include "base/arena.h"
#include "base/metrics.h"
#include "base/slog.h"
#include "wire/codec.h"
#include "wire/error.h"

struct api_request {
        struct api *api;
        struct net_request *net;
        struct wire_request_header header;
        const struct wire_api *desc;
        const struct api_handler *handler;
        struct arena arena;
        void *body;  /* the decoded request, in the arena; points into the frame */
        bool silent; /* acks=0 */
        struct loop_task task;
        struct list queue_node; /* on api.control_queue */
};

enum api_when {
        API_AT_ONCE,
        API_IN_TURN, /* when all earlier answers of the connection have left: it tells how things stand, and
                        behind a Produce that waits for its followers it would leave out of date */
        API_ON_CONTROL_LOOP,
};

struct api_handler {
        int16_t key;
        enum api_when when;
        void (*handle)(struct api_request *r);
};

/* A request for the control loop arrived there. */
void api_control_enqueue(struct api_request *r);

struct api {
        struct api_env env;
        struct metric *latency; /* one a handler */
        char (*labels)[48];
        struct list control_queue; /* struct api_request; control loop only */
        bool control_busy, control_running, control_paused;
        struct slog_gate refusals;      /* net loop */
        struct auto_create auto_create; /* net loop */
};

void api_control_drop(struct api *a); /* abort what is queued */

/* Exactly one of these ends a request. [any thread] */
void api_reply(struct api_request *r, const void *response); /* encodes at the request's version */
void api_reply_nothing(struct api_request *r);               /* acks=0 */
void api_abort(struct api_request *r);                       /* close the connection */

/* Room for a response in the request's arena, with the schema's defaults; NULL on out of memory. */
void *api_response_new(struct api_request *r);

/* What was decoded and the bytes it points to, taken out of a request that may go on waiting without them: a
 * produce that waits for its followers must not keep its records in memory as long. Net loop. */
struct api_input {
        struct buf frame;
        struct arena arena;
};
struct api_input api_take_input(struct api_request *r);
static inline void api_input_done(struct api_input *in)
{
        buf_done(&in->frame);
        arena_done(&in->arena);
}

void api_handle_api_versions(struct api_request *r);
void api_handle_metadata(struct api_request *r);
void api_handle_produce(struct api_request *r);
void api_handle_fetch(struct api_request *r);
void api_handle_list_offsets(struct api_request *r);
void api_handle_offset_for_leader_epoch(struct api_request *r);
void api_handle_create_topics(struct api_request *r);
void api_handle_delete_topics(struct api_request *r);
void api_handle_find_coordinator(struct api_request *r);
void api_handle_init_producer_id(struct api_request *r);
void api_handle_allocate_producer_ids(struct api_request *r);
void api_handle_leader_and_isr(struct api_request *r);
void api_handle_stop_replica(struct api_request *r);
void api_handle_update_metadata(struct api_request *r);
void api_handle_controlled_shutdown(struct api_request *r);
void api_handle_alter_partition(struct api_request *r);
void api_handle_create_partitions(struct api_request *r);
void api_handle_elect_leaders(struct api_request *r);
void api_handle_alter_reassignments(struct api_request *r);
void api_handle_list_reassignments(struct api_request *r);
void api_handle_describe_configs(struct api_request *r);
void api_handle_alter_configs(struct api_request *r);
void api_handle_incremental_alter_configs(struct api_request *r);

/* Answer an ApiVersions request of a version we do not know (KIP-511): v0 body, error 35, the key's range. */
void api_reply_unsupported_api_versions(struct net_request *net, int32_t correlation_id);
