/* Private to client/: one connection's states and the life of a request.
 *
 *                 .---------- no more address ------------.
 *                 |                                       v
 *   IDLE --> RESOLVING --> CONNECTING --> CONNECTED --> BACKOFF --> IDLE
 *     ^  '-- IP literal ------^               |           (lost)
 *     '------- kclient_disconnect(), or lost when quiet --'
 *
 *   request: waiting --> sending (admitted, not wholly written) --> sent --> answered
 *               ^------------------' connection lost: the broker has not seen a whole frame, so it may go
 * again
 */
#pragma once

#include "client/kclient.h"
#include "client/resolve.h"

enum kclient_state { KC_IDLE, KC_RESOLVING, KC_CONNECTING, KC_CONNECTED, KC_BACKOFF, KC_CLOSED, N_KC_STATES };

enum kreq_stage { KREQ_WAITING, KREQ_SENDING, KREQ_SENT, KREQ_FINISHED };

/* The undecoded answer, without its length prefix; @frame dies when the callback returns. */
typedef void (*kclient_raw_fn)(int r, const uint8_t *frame, size_t len, void *userdata);

struct kreq {
        struct list node;          /* kclient.waiting, .sending, .sent or a list of finished ones */
        struct list deadline_node; /* kclient.deadlines, soonest first */
        enum kreq_stage stage;
        int64_t deadline_ms;
        int32_t correlation_id;
        int16_t version;
        const struct wire_api *api;
        struct buf frame;
        size_t written;
        int result; /* once finished */
        kclient_fn fn;
        kclient_raw_fn raw_fn; /* instead of fn */
        void *userdata;
};

struct kclient {
        struct loop *loop;
        struct kclient_options options;
        char *client_id, *host;
        uint16_t port;
        enum kclient_state state;

        int fd;
        struct loop_fd *source;
        uint32_t events;
        struct resolve *resolving;
        struct addrinfo *addrs, *addr; /* all of this attempt, and the one being tried */
        uint64_t generation;           /* of the connection: changes whenever it is lost */
        int broken;                    /* -errno of a failed write, handled by the timer */
        int last_error;                /* of the last attempt to connect; 0 once connected */
        bool fail_fast;     /* waiting requests fail with the connection attempt, not at their deadline */
        bool healthy;       /* an answer arrived on this connection */
        int64_t backoff_ms; /* the next one's length */
        struct buf in;

        struct list waiting, sending, sent, deadlines;
        int n_inflight;
        int32_t next_correlation_id;

        struct loop_timer *timer; /* the only one: deadlines, connect time-out, back-off */
        int64_t timer_due_ms;     /* INT64_MAX: disarmed */
        int64_t connect_due_ms, retry_due_ms;
        struct loop_task free_task;
        bool free_posted;
};

/* kclient.c */
int kclient_request_raw(struct kclient *c, const struct wire_api *api, int16_t version, const void *body,
                        int64_t timeout_ms, kclient_raw_fn fn, void *userdata) must_check;
void kclient_set_state(struct kclient *c, enum kclient_state to);
void kclient_schedule(struct kclient *c, int64_t due_ms); /* wake the timer no later than @due_ms */
void kreq_finish(struct kreq *q, int result, struct list *finished);
void kreq_answer(struct kreq *q, int r, const void *response, struct arena *arena); /* calls back and frees */
void kreq_answer_all(struct list *finished);

/* kclient_conn.c */
void kclient_kick(struct kclient *c); /* do what the state allows; never calls back */
void kclient_lost(struct kclient *c,
                  struct list *finished); /* drop the connection, back off unless all is quiet */
void kclient_drop(struct kclient *c, struct list *finished); /* drop the connection, to KC_IDLE */
void kclient_attempt_failed(struct kclient *c,
                            int error); /* this address did not work: the next, or back off */
void kclient_attempt_cancel(struct kclient *c);

/* kclient_io.c */
void kclient_send(struct kclient *c);
int kclient_on_readable(struct kclient *c, struct list *finished)
        must_check; /* < 0: the connection is lost */
