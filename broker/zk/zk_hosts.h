/* zookeeper.connect, and its host names resolved by us: the library would do it on its IO thread, where a
 * dead name server stops pings, replies and the news of expiry (zk-fencing §0 finding 2). */
#pragma once

#include "base/loop.h"
#include "base/util.h"

struct zk_hosts;
struct zk_resolution;

/* "h1[:port],[v6]:port,…[/chroot]"; the port defaults to 2181. *ret_chroot: "" or an absolute path without a
 * trailing slash. -EINVAL, -ENOMEM. */
int zk_hosts_parse(const char *connect, struct zk_hosts **ret, char **ret_chroot) must_check;
struct zk_hosts *zk_hosts_free(struct zk_hosts *h);
DEFINE_FREEP(struct zk_hosts, zk_hosts_free)
bool zk_hosts_numeric(const struct zk_hosts *h); /* all are IP literals: resolving does not block */

/* Resolve now, in this thread: "ip:port,ip:port" in a stable order, duplicates removed. One name resolved is
 * enough. -EHOSTUNREACH when none is, -ENOMEM. */
int zk_hosts_resolve(const struct zk_hosts *h, char **ret) must_check;

/* The same in a thread of its own. @fn runs on @loop unless zk_resolution_abandon() came first; @addresses is
 * its to free, NULL unless r is 0. The resolution is gone when @fn runs. -errno of the thread's creation. */
typedef void (*zk_resolved_fn)(int r, char *addresses, void *userdata);
int zk_resolution_start(const struct zk_hosts *h, struct loop *loop, zk_resolved_fn fn, void *userdata,
                        struct zk_resolution **ret) must_check;
/* On @loop's thread, or after it ended. Accepts NULL, returns NULL. The thread may outlive it, harmlessly. */
struct zk_resolution *zk_resolution_abandon(struct zk_resolution *r);
