/* Request dispatch: decode -> call a module -> encode. One file a group of API keys.
 *
 * Data-plane requests run on the connection's loop. Requests of the controller (LeaderAndIsr, StopReplica,
 * UpdateMetadata) run on the control loop, in the order they arrived, so that thousands of new partitions
 * never hold up a produce. Every request is answered exactly once. */
#pragma once

#include "base/loop.h"
#include "net/net.h"

struct controller;
struct arena;
struct create_topics_request;
struct describe_configs_request;
struct describe_configs_response;
struct metadata_cache;
struct replica_manager;

struct api_topic {
        const char *name;
        bool fresh; /* just created: what is remembered of an older topic of that name does not count */
};

/* What the handlers need from the rest of the broker; server.c fills it in. Everything outlives the api. */
struct api_env {
        struct loop *control_loop;
        struct replica_manager *replicas;
        struct metadata_cache *metadata;
        struct controller *controller;
        bool auto_create_topics;

        /* Ask the active controller, wherever it is, to create these topics; nobody waits for the answer (the
         * client asks for the metadata again). @req is valid during the call. [any thread] */
        void (*auto_create)(const struct create_topics_request *req, void *userdata);
        /* Have the configuration of these topics ready, then call @fn on the control loop, at once or later
         * (KAFKA-9769). Called on the control loop. -ENOMEM: @fn is not called. */
        int (*prepare_topics)(const struct api_topic *topics, size_t n, void (*fn)(void *fn_userdata),
                              void *fn_userdata, void *userdata);
        /* Tell the settings that @req asks for: @fn with a response in @a, once, any thread; NULL: out of
         * memory. */
        void (*describe_configs)(const struct describe_configs_request *req, struct arena *a,
                                 void (*fn)(const struct describe_configs_response *res, void *fn_userdata),
                                 void *fn_userdata, void *userdata);
        /* Ask the active controller, wherever it is: @body, of @key and @version, lives until @fn, which is
         * called once on any thread. An answer of which @is_refused says that it came from no controller any
         * more, or none, is asked for again for some seconds. @response dies with the call; NULL: nobody
         * answered. */
        void (*ask_controller)(int16_t key, int16_t version, const void *body,
                               bool (*is_refused)(const void *response),
                               void (*fn)(const void *response, void *fn_userdata), void *fn_userdata,
                               void *userdata);
        /* A producer id nobody else has or will have. @fn: exactly once, any thread; r < 0: try later. */
        void (*new_producer_id)(void (*fn)(int r, int64_t id, void *fn_userdata), void *fn_userdata,
                                void *userdata);
        /* @n such ids from @first on, for another broker. @fn: as above. */
        void (*new_producer_ids)(void (*fn)(int r, int64_t first, int32_t n, void *fn_userdata),
                                 void *fn_userdata, void *userdata);
        void *userdata;
};

/* The client id under which brokers pass requests on to the controller. */
#define API_FORWARD_CLIENT_ID "stepdown-broker"

struct api;

int api_new(const struct api_env *env, struct api **ret) must_check;
/* Only when no request can come any more. Requests of the controller that nobody ran are dropped; all others
 * have been answered. */
struct api *api_free(struct api *a);
DEFINE_FREEP(struct api, api_free)

/* Control loop. Hold the controller's requests back while this broker is not registered, and let them go on:
 * with the epoch of a registration unknown, those for it cannot be told from those for an older one (D2). An
 * api is born holding them back. */
void api_control_pause(struct api *a);
void api_control_resume(struct api *a);

/* on_request of the net servers (struct net_ops). @userdata: struct api. */
void api_on_request(struct net_request *r, void *userdata);
