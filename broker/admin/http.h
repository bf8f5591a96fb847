/* Between libmicrohttpd and the handlers: one struct a request, a routing table, JSON answers.
 * Internal to admin/. */
#pragma once

#include <jansson.h>
#include <microhttpd.h>
#include <pthread.h>

#include "admin/admin.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/slog.h"

struct admin {
        struct admin_env env;
        struct MHD_Daemon *daemon;
        uint16_t port;
        pthread_mutex_t lock;
        pthread_cond_t idle;
        int pending; /* requests that wait for the controller; under lock */

        /* HTTP thread */
        struct list peers;
        int n_peers;
        int n_large; /* requests for what grows with the cluster, under way */
        struct slog_gate crowd_gate;
};

struct http_route;
struct cluster_view;

struct http_request {
        struct admin *admin;
        struct MHD_Connection *connection;
        const struct http_route *route;
        const char *method;
        char *uri;  /* as it came */
        char *path; /* decoded, without the query; NULL until the headers are there */
        struct buf body;
        int32_t id;     /* the {id} of the route, -1: none */
        int64_t number; /* of the query, for the handlers that take one */
        bool refused, routed;
        bool waiting; /* suspended until the controller answers; written on the HTTP thread before it is asked
                       */
        bool large;   /* counted in admin.n_large */
        /* the answer, or what it is made of; set once, then the connection is resumed */
        bool answered;
        struct cluster_view *view;
        void (*render)(struct http_request *r, const struct cluster_view *view);
        unsigned status;
        struct buf answer;
        const char *content_type;
        char *location;
        char allow[64];    /* methods of the path */
        bool challenge;    /* say how to authenticate */
        int retry_after_s; /* 0: none */
};

struct http_route {
        const char *method, *path; /* "{id}" stands for a broker id */
        bool changes;              /* needs the token when there is one */
        void (*handle)(struct http_request *r);
};

extern const struct http_route admin_routes[];
extern const size_t admin_n_routes;

/* Answer; exactly one of these, once, on any thread. @body is taken over (a reference). */
void http_reply_json(struct http_request *r, unsigned status, json_t *body);
void http_reply_text(struct http_request *r, unsigned status, const char *content_type, struct buf *text);
/* Instead of an answer, for one that takes long to write: @render gives it on the HTTP thread. The
 * controller, whose thread has the view, moves partitions meanwhile. @view is taken over. */
void http_reply_rendered(struct http_request *r, struct cluster_view *view,
                         void (*render)(struct http_request *r, const struct cluster_view *view));
/* {"error": @code, "message": @message} */
void http_reply_error(struct http_request *r, unsigned status, const char *code, const char *message);
/* 307 to the active controller, or 503 when none is known. */
void http_reply_to_controller(struct http_request *r);
/* Between handing a request to the controller and its answer. */
void http_wait_begin(struct http_request *r);

/* handlers */
void admin_put_drain(struct http_request *r);
void admin_get_drain(struct http_request *r);
void admin_delete_drain(struct http_request *r);
void admin_get_check(struct http_request *r);
void admin_get_broker_info(struct http_request *r);
void admin_get_drains(struct http_request *r);
void admin_get_cluster(struct http_request *r);
void admin_get_partitions(struct http_request *r);
void admin_get_broker(struct http_request *r);
void admin_get_livez(struct http_request *r);
void admin_get_readyz(struct http_request *r);
void admin_get_metrics(struct http_request *r);
