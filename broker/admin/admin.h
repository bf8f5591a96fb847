/* The admin HTTP listener: the drain API (D1), health, cluster view, metrics.
 *
 * Runs on a thread of its own (libmicrohttpd); a request that the controller answers is suspended meanwhile,
 * so no thread waits. What concerns the whole cluster is answered by the active controller; any other broker
 * answers 307 with the controller's address, or 503 while there is none. Bodies are at most 64 KiB. */
#pragma once

#include <stdint.h>

#include "base/util.h"

struct controller;
struct admin;

struct admin_broker_status { /* of this broker, for GET /v1/broker */
        const char *state;   /* "starting" "running" "draining" "stopping" */
        int64_t epoch;       /* -1: not registered */
        int32_t leaders, leaders_rf1, replicas, under_replicated, offline;
        bool in_sync; /* every replica here is in its ISR */
        bool zookeeper_connected, lease_valid;
};

struct admin_env {
        int32_t broker_id;
        struct controller *controller;
        const char *token; /* NULL: none is asked for */
        /* On the HTTP thread or the controller's; must not block. cluster_id: "" while none is known; the
         * string outlives the admin. */
        const char *(*cluster_id)(void *userdata);
        void (*broker_status)(struct admin_broker_status *ret, void *userdata);
        void *userdata;
};

/* Listen on @host:@port (0: the kernel's choice). -errno. The strings of @env must outlive the admin. */
int admin_new(const struct admin_env *env, const char *host, uint16_t port, struct admin **ret) must_check;
uint16_t admin_port(const struct admin *a);
struct admin *admin_free(struct admin *a); /* answers what waits with 503 and joins the thread */
DEFINE_FREEP(struct admin, admin_free)
