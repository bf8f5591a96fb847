/* Asynchronous HTTP/1.1 requests on a loop, by libcurl's multi interface.
 *
 * One client a loop; everything happens on that loop's thread. A request has one time limit over all its
 * redirects, a limit for connecting, and a ceiling for the body. Proxies from the environment are not used.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/util.h"

struct http_client;
struct http_call;

struct http_limits {
        int64_t connect_ms, total_ms;
        size_t body_bytes;
        int redirects; /* 307 and 308 followed at most */
};

struct http_reply {
        int error;          /* 0, or why there is no reply: -ETIMEDOUT, -ECONNREFUSED, -EFBIG (body past the
                             * ceiling), -ELOOP (too many redirects), -EIO … */
        const char *detail; /* libcurl's words for @error, "" else */
        int status;
        const char *url;  /* that answered, after redirects */
        const char *body; /* NUL-terminated, may be empty */
        size_t body_len;
};

/* The reply's memory belongs to the call and is gone when this returns. May start and cancel other calls. */
typedef void (*http_reply_fn)(const struct http_reply *r, void *userdata);

/* @token: bearer token sent with every request, or NULL. -ENOMEM. */
int http_client_new(struct loop *loop, const struct http_limits *limits, const char *token,
                    struct http_client **ret) must_check;
struct http_client *http_client_free(struct http_client *c); /* cancels what is in flight */
DEFINE_FREEP(struct http_client, http_client_free)

/* @body: JSON text, copied; NULL: none. @fn is called exactly once, later, unless the call is cancelled.
 * *ret is valid until then. -ENOMEM, -EINVAL (a URL that is no http:// or https:// URL). */
int http_client_call(struct http_client *c, const char *method, const char *url, const char *body,
                     http_reply_fn fn, void *userdata, struct http_call **ret) must_check;
struct http_call *http_call_cancel(struct http_call *call); /* accepts NULL, returns NULL */
