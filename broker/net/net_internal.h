/* Private to net/: one connection and the server it belongs to. Everything here is touched on the loop's
 * thread alone, but for the fields under conn->lock and the counts that are atomic.
 *
 *            first bytes                 EOF, or a request aborted
 *   accept ------------> CONN_OPEN ------------------------------> CONN_DRAINING
 *                            |   error, refused length, time-out        |  nothing left to send, error
 *                            '--------------> CONN_CLOSED <-------------'
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/metrics.h"
#include "base/slog.h"
#include "net/net.h"

#define NET_SCRATCH_BYTES     (64 * 1024) /* read at most this much of one connection a wake-up */
#define NET_SHORT_READ_BYTES  (4 * 1024)  /* where it may have to be put aside while memory is short */
#define NET_SMALL_FRAME_BYTES (16 * 1024)
#define NET_FRAMES_PER_PASS   32 /* and hand on at most this many requests */
#define NET_ACCEPTS_PER_PASS  64
#define NET_PEER_BYTES        64

enum conn_state { CONN_OPEN, CONN_DRAINING, CONN_CLOSED, N_CONN_STATES };

enum request_outcome { REQUEST_PENDING, REQUEST_ANSWERED, REQUEST_SILENT, REQUEST_ABORTED };

enum close_reason {
        CLOSE_EOF,
        CLOSE_TRUNCATED,
        CLOSE_BAD_LENGTH,
        CLOSE_SLOW_FRAME,
        CLOSE_IDLE,
        CLOSE_STALLED,
        CLOSE_HALF_CLOSED,
        CLOSE_ABORTED,
        CLOSE_ERROR,
        CLOSE_NO_MEMORY,
        CLOSE_OVER_LIMIT,
        CLOSE_SERVER_STOPPED,
        N_CLOSE_REASONS,
};

/* Outlives the server as long as requests are held. */
struct net_budget {
        _Atomic int refs;
        size_t max_requests, max_responses;
        _Atomic size_t requests, responses;
};

struct net_server {
        struct loop *loop;
        struct net_limits limits;
        struct net_ops ops;
        int fd; /* listener; -1 once accepting has stopped */
        uint16_t port;
        struct loop_fd *source;
        struct loop_timer *accept_timer; /* armed while accepting is paused for want of descriptors */
        struct loop_timer *tick;         /* coarse: frame and idle time-outs of every connection */
        bool accept_failing;
        _Atomic int n_conns;
        struct list
                conns; /* every open connection, by last activity: the head is the next to be idle too long */
        struct list partials; /* those in the middle of a frame, by its start */
        struct list ending;   /* those whose peer has sent its last byte, by when that was seen */
        struct net_budget *budget;
        struct list queued; /* those whose frame waits for memory, the shortest first */
        struct list paused; /* those not read because too much memory is used */
        struct slog_gate gate_limit, gate_length, gate_pressure;
        uint8_t scratch[NET_SCRATCH_BYTES];
};

struct net_conn {
        _Atomic int refs; /* the server's, one a request, one while the task is posted */
        struct loop *loop;
        struct net_server *server; /* NULL once closed */
        int fd;
        struct loop_fd *source;
        uint32_t events;
        enum conn_state state;
        char peer[NET_PEER_BYTES];

        /* input: prefix, then body; bytes read but not yet looked at wait in the stash */
        uint8_t prefix[4];
        size_t prefix_len;
        struct buf frame;
        size_t frame_len; /* 0: waiting for the prefix */
        struct buf stash;
        int frames_left; /* of this pass */
        struct net_budget *budget;
        size_t frame_charged, stash_charged;

        /* output */
        struct list requests; /* net_request.node, in order of arrival, until the answer has left */
        int n_requests;
        _Atomic size_t unsent_bytes; /* memory of responses not yet handed to the kernel */
        size_t head_sent;            /* bytes of the first response already gone */
        _Atomic bool gone;           /* closed; for handlers */

        int64_t active_ms, frame_since_ms, frame_active_ms, sent_ms, ending_since_ms;
        struct list server_node, partial_node, ending_node, queue_node, paused_node;

        pthread_mutex_t
                lock;     /* guards what follows, and the done_node/outcome/response of pending requests */
        struct list done; /* answered, not yet collected by the loop */
        struct loop_task task;
        bool posted, in_pass, closed;
};

/* conn.c */
struct net_conn *conn_new(struct net_server *s, int fd, const char *peer); /* NULL: @fd stays the caller's */
void conn_close(struct net_conn *c, enum close_reason why);
void conn_set_state(struct net_conn *c, enum conn_state to);
void conn_work(struct net_conn *c, bool readable, bool from_task);
void conn_post(struct net_conn *c); /* conn_work() as a task */
struct net_conn *conn_unref(struct net_conn *c);
static inline struct net_conn *conn_ref(struct net_conn *c)
{
        (void)atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
        return c;
}
static inline void conn_unrefp(struct net_conn **c)
{
        (void)conn_unref(*c);
}
/* Back-pressure: may bytes of this connection be read and handed on? */
bool conn_may_read(const struct net_conn *c);
/* The peer has sent its last byte. Answers may leave still, but not for ever. */
void conn_ending(struct net_conn *c);
static inline bool conn_mid_frame(const struct net_conn *c)
{
        return c->prefix_len > 0;
}

/* conn_in.c: one bounded step of input. 0, or a close_reason as -(reason) - 1 (see CONN_FAIL). */
#define CONN_FAIL(reason) (-1 - (int)(reason))
int conn_input(struct net_conn *c, bool readable) must_check;

/* conn_out.c */
void conn_collect(struct net_conn *c, bool end_of_pass, bool from_task);
int conn_flush(struct net_conn *c) must_check; /* 0 or CONN_FAIL() */
/* Is the first request one that waited for its turn? Then it has been handed on. */
bool conn_hand_on_waiting(struct net_conn *c);
struct net_request *request_free(struct net_request *r);

/* budget.c */
struct net_budget *budget_new(const struct net_limits *limits);
struct net_budget *budget_ref(struct net_budget *b);
struct net_budget *budget_unref(struct net_budget *b);
void budget_charge_request(struct net_budget *b, size_t more, size_t less); /* [any thread] */
void budget_charge_response(struct net_budget *b, size_t more, size_t less);
bool budget_short_of_requests(const struct net_budget *b);
void conn_admit(struct net_conn *c); /* frame_len is known: set it aside, or queue the connection */
void conn_charge_stash(struct net_conn *c);
void conn_uncharge(struct net_conn *c);                  /* it closes */
bool conn_blocked(const struct net_conn *c);             /* too much memory is used to read more of it */
void server_relieve(struct net_server *s);               /* let go on who can */
void server_press(struct net_server *s, int64_t now_ms); /* cut off who holds up others */

/* addr.c */
int addr_listen(const char *host, uint16_t port, int *ret_fd, uint16_t *ret_port) must_check;
struct sockaddr_storage;
void addr_format(const struct sockaddr_storage *sa, char out[NET_PEER_BYTES]);

/* net_metrics.c */
enum net_metric {
        NET_BYTES_IN,
        NET_BYTES_OUT,
        NET_REQUESTS,
        NET_CONNECTIONS,
        NET_ACCEPTED,
        NET_QUEUED_REQUEST_BYTES,
        NET_UNSENT_RESPONSE_BYTES,
        NET_FRAMES_QUEUED,
        N_NET_METRICS
};
extern struct metric net_metrics[N_NET_METRICS];
void net_metrics_register(void);
void net_metrics_closed(enum close_reason why);
const char *close_reason_name(enum close_reason why);
