/* The brokers' admin API as calls on a loop: drain a broker, ask a broker about itself, list the cluster.
 *
 * Whatever comes over the wire is checked here: a body that is not what the API promises is an error
 * (-EBADMSG), never a zero (L1). One client a loop, on that loop's thread. */
#pragma once

#include <stdint.h>

#include "base/loop.h"
#include "drain_core.h"
#include "http_client.h"

#define DRAIN_TEXT_MAX      256 /* drain id, reason, requested_by: bytes with the NUL (the API's own limit) */
#define BLOCKED_MAX         100 /* entries kept of the list of partitions that stay */
#define CLUSTER_BROKERS_MAX 256

struct controller_client;
struct controller_call;

struct blocked_partition {
        char topic[250];
        int32_t partition;
        char reason[64]; /* "no_other_in_sync_replica" … (D5) */
};

/* Who holds the cluster's drain slot (D3). */
struct slot_info {
        bool held;
        int32_t broker;
        int64_t epoch, since_ms, expires_ms; /* wall clock */
        char drain_id[DRAIN_TEXT_MAX], state[32];
};

struct drain_answer {
        int32_t broker, controller; /* controller: -1 if not told */
        int64_t epoch, generation;  /* DRAIN_UNKNOWN if not told */
        char drain_id[DRAIN_TEXT_MAX];
        enum controller_drain_state state;
        int32_t remaining, moved, rf1_led, blocked_total;
        bool zookeeper_down; /* the counts are from memory */
        struct slot_info slot;
        size_t n_blocked;
        const struct blocked_partition *blocked;
};

struct broker_answer {
        int32_t broker, leaders, leaders_rf1, controller;
        int64_t epoch; /* DRAIN_UNKNOWN: not registered */
        int64_t pid;   /* 0 if not told */
        bool in_sync, zookeeper_down;
        char state[32];
};

struct cluster_answer {
        int32_t controller, n_brokers;
        struct cluster_member {
                int32_t id;
                char admin[300]; /* base URL, "" if not told */
                bool mute;       /* registered without an admin listener, as Apache Kafka's brokers are */
        } brokers[CLUSTER_BROKERS_MAX];
};

struct controller_result {
        int error;                           /* no reply, or one that is not of the API: -errno */
        int http_status;                     /* 0 without a reply */
        bool zookeeper_down;                 /* a refusal that blames ZooKeeper */
        bool slot_held, unsafe, drain_ended; /* refusals (D3); @slot says who has it */
        const struct slot_info *slot;
        const struct blocked_partition *blocked; /* with `unsafe`: what is waited for */
        size_t n_blocked;
        int32_t blocked_total, remaining; /* remaining: DRAIN_UNKNOWN if not told */
        const char *message;              /* for people: why not; "" when all is well */
        const char *base;                 /* base URL that answered, after redirects */
        /* exactly one is set when error is 0 and the status says success */
        const struct drain_answer *drain;
        const struct broker_answer *broker;
        const struct cluster_answer *cluster;
};

/* All memory of @r is the callee's only until it returns. The client must not be freed inside. */
typedef void (*controller_result_fn)(const struct controller_result *r, void *userdata);

struct drain_ask { /* body of a PUT */
        const char *drain_id, *reason, *requested_by;
        int64_t epoch;       /* DRAIN_UNKNOWN: whichever is registered */
        int64_t deadline_ms; /* from now */
        bool replace;        /* take the slot from whoever holds it; with a reason */
        bool cluster_stop;   /* D8 */
        bool force;          /* D4: safe or not; with a reason */
};

int controller_client_new(struct loop *loop, const struct http_limits *limits, const char *token,
                          struct controller_client **ret) must_check;
/* Calls in flight must have been cancelled by those who made them. */
struct controller_client *controller_client_free(struct controller_client *c);
DEFINE_FREEP(struct controller_client, controller_client_free)

/* "host:port", "http://host:port" or "https://host:port/" as "scheme://host:port". -EINVAL, -ENAMETOOLONG. */
int endpoint_normalise(const char *text, char *out, size_t size) must_check;

/* Each calls @fn exactly once, later, unless cancelled. @ask: for DRAIN_CALL_PUT, and for the id of a GET by
 * who drains (NULL: somebody else). A 409 whose body is this broker's own drain under another id is handed
 * over as an answer: one joins it (D1). -ENOMEM, -EINVAL.
 */
int controller_call_drain(struct controller_client *c, enum drain_call call, const char *base, int32_t broker,
                          const struct drain_ask *ask, controller_result_fn fn, void *userdata,
                          struct controller_call **ret) must_check;
int controller_call_broker(struct controller_client *c, const char *base, controller_result_fn fn,
                           void *userdata, struct controller_call **ret) must_check;
int controller_call_cluster(struct controller_client *c, const char *base, controller_result_fn fn,
                            void *userdata, struct controller_call **ret) must_check;
struct controller_call *controller_call_cancel(struct controller_call *call); /* accepts NULL, returns NULL */
