/* What is asked about brokers before and after they are stopped: what a stop would mean (D10), whether a
 * broker is back and in sync, and what became of earlier drains (D12). Nothing here changes anything.
 *
 * Any thread may ask; the callback runs as those of controller.h do, and what it is given dies when it
 * returns. */
#pragma once

#include "controller/controller.h"
#include "controller/estimate_core.h"
#include "controller/stop_check_core.h"
#include "zk/znode_drains.h"

#define INSPECT_LISTED 100 /* partitions in a list; counts are always whole */

struct draining_broker {
        int32_t id;
        enum drain_state state;
        const char *drain_id;
        int64_t since_ms, deadline_ms; /* wall clock; 0: none */
};

/* @error of both: NONE; NOT_CONTROLLER; BROKER_NOT_AVAILABLE (not registered, said after a fresh look;
 * broker_info: never heard of); UNKNOWN_SERVER_ERROR (cannot be told now: ask again). The struct is NULL with
 * an error. */
struct broker_check {
        int32_t broker_id, controller_id, controller_epoch;
        int64_t broker_epoch;
        bool zookeeper_available; /* false: what is told is the last known */
        struct stop_check sum;
        int32_t replicas;                       /* partitions with RF > 1 that it leads or follows */
        int32_t stuck;                          /* led ones of them that could not move now */
        struct drain_estimate estimate;         /* of a drain that began now and met nothing stuck */
        enum drain_state drain;                 /* its own */
        const struct draining_broker *draining; /* the others */
        size_t n_draining;
};
typedef void (*controller_check_fn)(int16_t error, const struct broker_check *check, void *userdata);
void controller_check(struct controller *c, int32_t broker_id, controller_check_fn fn, void *userdata);

struct broker_info {
        int32_t broker_id, controller_id, controller_epoch;
        bool registered, zookeeper_available;
        int64_t broker_epoch;          /* -1: not registered */
        int64_t since_ms;              /* wall clock of its registration; 0: not known */
        const char *host, *admin_host; /* "" when not known */
        uint16_t port, admin_port;
        int32_t leaders, leaders_single; /* partitions it leads; of them with RF = 1 */
        int32_t preferred;               /* partitions whose first replica it is; … */
        int32_t preferred_elsewhere;     /* … of them led by others */
        int32_t replicas, in_sync;       /* hosted; of them in the ISR */
        int32_t under_replicated;        /* hosted partitions in whose ISR some replica is missing */
        int32_t offline;                 /* hosted partitions without a leader that lives */
        const struct cluster_partition *catching_up; /* hosted and not in sync here, by topic and number */
        size_t n_catching_up;                        /* listed; replicas - in_sync is the count */
        struct draining_broker drain;                /* state NONE: none */
        int32_t drain_moved;
};
typedef void (*controller_broker_info_fn)(int16_t error, const struct broker_info *info, void *userdata);
void controller_broker_info(struct controller *c, int32_t broker_id, controller_broker_info_fn fn,
                            void *userdata);

struct drain_list {
        int32_t controller_id, controller_epoch;
        const struct znode_drain *items; /* oldest first */
        size_t n;
        bool saved; /* all of it is in ZooKeeper */
};
typedef void (*controller_drain_list_fn)(int16_t error, const struct drain_list *list, void *userdata);
void controller_drain_list(struct controller *c, controller_drain_list_fn fn, void *userdata);
