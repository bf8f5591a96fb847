/* A Kafka client connection to one broker, asynchronous on a loop. Used by fetchers, the controller's sender
 * queues, controlled shutdown and the command line.
 *
 * Connects on first use, reconnects with back-off after a failure; requests are pipelined and answered in
 * order. Every request has a deadline. All calls and callbacks on the loop's thread. The host must be an IP
 * literal or it is resolved in a helper thread, never on the loop. */
#pragma once

#include "base/arena.h"
#include "base/loop.h"
#include "wire/codec.h"

struct kclient;

struct kclient_options {
        const char *client_id;
        int64_t connect_timeout_ms;   /* default 2000 */
        int64_t reconnect_backoff_ms; /* default 100, doubled up to reconnect_backoff_max_ms (1000) */
        int64_t reconnect_backoff_max_ms;
        size_t max_response_bytes; /* default 100 MiB */
        int max_inflight;          /* default 5: further requests wait in FIFO order */
};

/* @r: 0, or -errno:
 *   -ETIMEDOUT    the deadline passed (the connection is dropped with it when the request had been sent)
 *   -ECONNREFUSED, -EHOSTUNREACH (no such name), …: the deadline passed and this is why there is no
 * connection -ECONNRESET   the connection broke after the request was sent: outcome unknown -EBADMSG
 * malformed answer    -ECANCELED  client freed    -ENOMEM
 * @response: the decoded struct (in @arena) when r == 0; both die when the callback returns. Exactly once a
 * request. */
typedef void (*kclient_fn)(int r, const void *response, struct arena *arena, void *userdata);

int kclient_new(struct loop *l, const char *host, uint16_t port, const struct kclient_options *o,
                struct kclient **ret) must_check;
/* Fails what is in flight with -ECANCELED (callbacks run before it returns). Not from inside its own
 * callback: use kclient_free_later() there. */
struct kclient *kclient_free(struct kclient *c);
void kclient_free_later(struct kclient *c);
DEFINE_FREEP(struct kclient, kclient_free)

/* Encodes @body at once (it need not outlive the call). -ENOMEM, -EINVAL … of the encoder, -ECANCELED after
 * kclient_free_later(); then @fn is not called, and it is never called before this returns.
 * @fn NULL: fire and forget. While disconnected requests wait for the connection until their deadline. */
int kclient_request(struct kclient *c, const struct wire_api *api, int16_t version, const void *body,
                    int64_t timeout_ms, kclient_fn fn, void *userdata) must_check;
/* Drop the connection now: requests sent but unanswered fail with -ECONNRESET, queued ones stay. */
void kclient_disconnect(struct kclient *c);
bool kclient_connected(const struct kclient *c);

/* Blocking one-shot for command lines: connects, asks, decodes into @arena, closes. -errno as above, but it
 * does not wait for a host that refuses. */
int kclient_call(const char *host, uint16_t port, const char *client_id, const struct wire_api *api,
                 int16_t version, const void *body, int64_t timeout_ms, struct arena *arena, void *ret)
        must_check;
/* Like kclient_call(), but picks the highest version both sides know by asking ApiVersions first.
 * *ret_version. -EPROTONOSUPPORT: there is none. */
int kclient_call_negotiated(const char *host, uint16_t port, const char *client_id,
                            const struct wire_api *api, int16_t max_version, const void *body,
                            int64_t timeout_ms, struct arena *arena, int16_t *ret_version, void *ret)
        must_check;
