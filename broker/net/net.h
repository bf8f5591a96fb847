/* TCP listener and length-prefixed request connections on one loop. Knows bytes, not API keys.
 *
 * A connection lives on its server's loop. Each complete frame becomes a net_request, handed to on_request on
 * the loop's thread; it is answered exactly once, from any thread, and responses leave in request order
 * however they were completed. Limits: a frame longer than max_frame_bytes closes the connection before any
 * byte of it is allocated; a frame that does not complete within frame_timeout_ms (slow loris) closes it;
 * reading stops while more than max_inflight requests of the connection are unanswered or max_unsent_bytes
 * wait to be sent (back-pressure); idle connections are closed after idle_timeout_ms; buffers grow as bytes
 * arrive, never by what the prefix promises. A connection that neither takes its responses nor sends for
 * idle_timeout_ms is closed too; one whose requests the handler still holds is not idle. A peer that shuts
 * down its sending half still gets the answers to what it sent, until none has left for frame_timeout_ms:
 * whether it is there at all, nobody can tell.
 *
 * All connections together hold at most max_queued_request_bytes of requests (frames begun, and frames that
 * handlers have and have not answered or taken) plus 32 KiB a connection, and max_queued_response_bytes of
 * answers plus what handlers answer at once with; beyond that they are not read (budget.c). A peer that
 * stands still for stall_timeout_ms while others wait for that memory is closed. */
#pragma once

#include "base/buf.h"
#include "base/loop.h"

struct net_server;
struct net_conn;

struct net_request {
        struct net_conn *conn; /* valid as a token until answered; do not dereference */
        struct buf frame;      /* without the prefix; owned by the request until it is answered */
        int64_t received_us;   /* clock_mono_us() */
        uint64_t id;           /* process-wide, for traces (R72) */
        const char *peer;      /* "127.0.0.1:40312", valid until answered */
        void *userdata;        /* the handler's own */
        /* private */
        struct list node, done_node;
        struct buf response;
        size_t charged; /* of the budget, for the frame */
        int outcome;
        bool collected, waits;
};

struct net_limits {
        size_t max_frame_bytes, max_unsent_bytes; /* of one connection */
        size_t max_queued_request_bytes;          /* of all; at least twice max_frame_bytes is granted */
        size_t max_queued_response_bytes;
        int max_inflight, max_connections;
        int64_t frame_timeout_ms, idle_timeout_ms, stall_timeout_ms;
};

struct net_ops {
        /* The handler owns answering @r: one of the three calls below, now or later; or it lets it wait its
         * turn and gets it again. */
        void (*on_request)(struct net_request *r, void *userdata);
        void *userdata;
};

/* 100 MiB frames, 16 MiB unsent, 512 MiB of requests and of responses, 64 in flight, 10000 connections, 30 s
 * a frame, 10 min idle, 3 s standing still. */
void net_limits_default(struct net_limits *ret);
/* Bind and listen. @port 0: the kernel's choice, see net_server_port(). -errno of socket/bind/listen. */
int net_server_new(struct loop *l, const char *host, uint16_t port, const struct net_limits *limits,
                   const struct net_ops *ops, struct net_server **ret) must_check;
uint16_t net_server_port(const struct net_server *s);
void net_server_stop_accepting(struct net_server *s); /* loop thread: close the listener, keep connections */
/* Loop thread. Closes everything; requests still unanswered may be answered later without effect. */
struct net_server *net_server_free(struct net_server *s);
DEFINE_FREEP(struct net_server, net_server_free)
int net_server_connections(const struct net_server *s); /* [any thread] */

/* Loop thread, inside on_request(): is the answer to @r the next to leave? */
bool net_request_is_next(const struct net_request *r);
/* Instead of answering, loop thread, inside on_request(): hand @r on once more when it is the next. For
 * answers that would be out of date when those before them have left. */
void net_request_wait_turn(struct net_request *r);
/* Loop thread, inside on_request(): the frame becomes the caller's, who frees it before on_request() returns
 * although @r goes on waiting. It is no longer counted. */
struct buf net_request_take_frame(struct net_request *r);
/* Loop thread, inside on_request(): count @bytes that the handler holds for @r until it is answered, or its
 * frame taken. */
void net_request_charge(struct net_request *r, size_t bytes);
/* [any thread] Until @r is answered: is its connection gone, so that no answer can leave any more? */
bool net_request_abandoned(const struct net_request *r);
/* [any thread] Until @r is answered: how many bytes of a large answer there is memory for now. */
size_t net_response_room(const struct net_request *r);
/* [any thread] @response (prefix included) is taken over. @r is freed. */
void net_request_reply(struct net_request *r, struct buf *response);
/* [any thread] Answer with nothing (acks=0). */
void net_request_done(struct net_request *r);
/* [any thread] Close the connection (malformed request, acks=0 failure); answers before this one still leave.
 */
void net_request_abort(struct net_request *r);
