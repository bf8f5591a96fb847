/* ZooKeeper for a command line: one session, blocking calls, every wait bounded, a sentence for every
 * failure.
 *
 * Wraps zk/ with a loop that runs only inside these calls. Paths are those of zk/znode.h, relative to the
 * chroot; a chroot that does not exist is not created (a typing error must not leave a znode behind). After a
 * failure zk_admin_error() has the sentence. -errno are those of struct zk_result, and:
 *   -EHOSTUNREACH   no server answered within the time (the sentence names all that were asked)
 *   -E2BIG          more than a znode holds */
#pragma once

#include "base/arena.h"
#include "zk/zk.h"

struct zk_admin;

#define ZK_ADMIN_TEXT_SIZE 512

/* @connect: "h1:p,h2:p/chroot" (R43). Connects. @timeout_ms: for this and for each call. -EINVAL: @connect is
 * not of that form; -EHOSTUNREACH. @error has the sentence. */
int zk_admin_open(const char *connect, int64_t timeout_ms, struct zk_admin **ret,
                  char error[ZK_ADMIN_TEXT_SIZE]) must_check;
struct zk_admin *zk_admin_close(struct zk_admin *z); /* accepts NULL, returns NULL */
DEFINE_FREEP(struct zk_admin, zk_admin_close)
const char *zk_admin_error(const struct zk_admin *z);

struct zk_value {
        int r;            /* of this node: 0, -ENOENT, … */
        const char *data; /* NUL-terminated, never NULL when r is 0 */
        size_t len;
        int32_t version;
};
/* Read many nodes, pipelined. Values live in @a. 0 when each was read or does not exist, else the first other
 * error. */
int zk_admin_get_all(struct zk_admin *z, const char *const *paths, size_t n, struct arena *a,
                     struct zk_value *ret) must_check;
/* -ENOENT without a sentence of its own: the caller knows what it means. */
int zk_admin_get(struct zk_admin *z, const char *path, struct arena *a, struct zk_value *ret) must_check;
int zk_admin_children(struct zk_admin *z, const char *path, struct arena *a, char ***ret, size_t *ret_n)
        must_check;
/* Creates missing parents. -EEXIST without a sentence. */
int zk_admin_create(struct zk_admin *z, const char *path, const char *data) must_check;
int zk_admin_set(struct zk_admin *z, const char *path, const char *data, int32_t version) must_check;
int zk_admin_multi(struct zk_admin *z, const struct zk_op *ops, size_t n) must_check;
