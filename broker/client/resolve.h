/* Host names to addresses without blocking the loop: a helper thread a look-up. Loop thread only. */
#pragma once

#include <netdb.h>

#include "base/loop.h"

struct resolve;

/* @r: 0 and @found (the callback's own: freeaddrinfo()), or -EHOSTUNREACH (no such name), -ENOMEM. */
typedef void (*resolve_fn)(int r, struct addrinfo *found, void *userdata);

/* Is @host an IP literal? Then *ret is its address, at once. -EHOSTUNREACH: it is a name. */
int resolve_literal(const char *host, uint16_t port, struct addrinfo **ret) must_check;
/* @fn is called once on the loop's thread, unless cancelled. -ENOMEM, -EAGAIN (no thread). */
int resolve_start(struct loop *l, const char *host, uint16_t port, resolve_fn fn, void *userdata,
                  struct resolve **ret) must_check;
/* @fn will not be called; the thread ends by itself and touches neither loop nor caller. NULL is fine. */
struct resolve *resolve_cancel(struct resolve *x);
