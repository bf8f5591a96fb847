/* What a broker keeps in ZooKeeper about itself: the persistent skeleton, the cluster id, /brokers/ids/N.
 *
 * [any thread]. Calls return at once; the callback comes exactly once, on @loop, also when @z is freed
 * meanwhile. */
#pragma once

#include "zk/zk.h"
#include "zk/znode.h"

struct zk_registration_result {
        int r;                /* 0 or -errno, see below */
        int64_t broker_epoch; /* czxid of /brokers/ids/N: a new one a registration (KIP-380) */
        int64_t session_id;   /* the session that owns it */
        const char *cluster_id;
        const char *error; /* a sentence for people, naming what is wrong; NULL when r is 0 */
};
typedef void (*zk_registration_fn)(const struct zk_registration_result *res, void *userdata);

/* Create what is missing of the persistent paths, create or read /cluster/id, and create the ephemeral
 * /brokers/ids/N with @broker's data (copied).
 *
 * When the node exists already (R83, R84): owned by the current session, it is ours, an earlier create whose
 * reply was lost; owned by an earlier session of this same @z (it may outlive its session, ZOOKEEPER-2985),
 * wait a second for its deletion, then delete it in its exact version, and create anew (KAFKA-7165,
 * KAFKA-14845); owned by anybody else, wait for its deletion, for the negotiated session timeout plus a
 * quarter and a second, then -EEXIST: another broker lives under this id, `error` names its session, host and
 * port and since when. An owner that changes meanwhile is alive: -EEXIST at once.
 *
 * Connection losses are retried as long as the session lives. Other results: -EOWNERDEAD the session expired,
 * -ECANCELED the zk was freed, -EBADMSG /cluster/id is not readable, or what ZooKeeper said (-EPERM …).
 * At once: -ENOMEM, -EINVAL. */
int zk_register_broker(struct zk *z, struct loop *loop, int32_t broker_id, const struct znode_broker *broker,
                       zk_registration_fn fn, void *userdata) must_check;

/* Delete the own /brokers/ids/N explicitly, so that the controller sees the end at once and not a session
 * timeout later (KAFKA-1235). Only a node of the current session is deleted, in its exact version.
 * r: 0, also when there is none of ours; else what ZooKeeper said. */
typedef void (*zk_deregistered_fn)(int r, void *userdata);
int zk_deregister_broker(struct zk *z, struct loop *loop, int32_t broker_id, zk_deregistered_fn fn,
                         void *userdata) must_check;
