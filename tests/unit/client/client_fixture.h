/* A client and a scripted broker on one loop, run on the test's own thread until what it waits for happens.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "client/kclient.h"
#include "net/net.h"
#include "wire/api_versions.h"

#define DEADLINE_MS 10000
#define MAX_SEEN    256

enum behaviour {
        BROKER_ANSWERS,
        BROKER_HOLDS,
        BROKER_CLOSES,
        BROKER_ANSWERS_GARBAGE, /* right id, body cut short */
        BROKER_ANSWERS_WRONG_ID,
        BROKER_ANSWERS_HUGE_LENGTH,
        BROKER_ANSWERS_MANY_KEYS,         /* a few megabytes */
        BROKER_ANSWERS_UNSUPPORTED_FIRST, /* error 35 to ApiVersions v0, then well */
};

struct fixture {
        struct loop *loop;
        struct loop_timer *watchdog, *later;
        struct net_server *broker;
        uint16_t port;
        _Atomic int behaviour; /* enum behaviour; tests change it while the broker's thread runs */
        int n_seen;            /* requests that reached the broker */
        struct net_request *held[MAX_SEEN];
        int n_held;
        _Atomic int16_t metadata_min, metadata_max; /* what the broker says it speaks */
        struct kclient *client;
};

/* One request's fate. */
struct outcome {
        struct fixture *f;
        int calls, r;
        int16_t number; /* the broker answers its n-th request with error code n */
        int32_t n_keys;
        bool stop_loop; /* when called */
};

void fixture_init(struct fixture *f, const struct kclient_options *o);
void fixture_done(struct fixture *f);
void broker_start(struct fixture *f); /* on the port it had, if it had one */
void broker_stop(struct fixture *f);
void broker_answer(struct fixture *f, int i); /* the i-th held */
void ask(struct fixture *f, struct outcome *o, int64_t timeout_ms);
void on_outcome(int r, const void *response, struct arena *arena, void *userdata);
void run_until_called(struct fixture *f, struct outcome *o);
void run_until_held(struct fixture *f, int n);
void run_for(struct fixture *f, int64_t ms); /* for showing that something does NOT happen */
