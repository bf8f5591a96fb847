/* The state behind metadata_cache.h; shared by the files that apply and that answer. */
#pragma once

#include <pthread.h>

#include "base/map.h"
#include "replica/metadata_cache.h"

struct cached_partition {
        int32_t index, leader, leader_epoch, controller_epoch, zk_version;
        int32_t n_replicas, n_isr, n_offline;
        int32_t ids[]; /* replicas, ISR, offline replicas, one after the other */
};

struct cached_topic {
        struct uuid id;
        struct cached_partition **partitions; /* ascending by index */
        int32_t n_partitions, capacity;
        int32_t name_len;
        char name[];
};

struct metadata_cache {
        pthread_rwlock_t lock; /* all below */
        char *listener;
        char *cluster_id;
        int32_t controller_id;
        struct metadata_broker *brokers; /* ascending by id */
        int32_t n_brokers;
        struct map *topics;    /* name -> struct cached_topic */
        struct map *topic_ids; /* uuid -> struct cached_topic */
};

const struct metadata_broker *metadata_find_broker(const struct metadata_cache *m, int32_t id);
struct cached_topic *metadata_find_topic(const struct metadata_cache *m, struct wire_str name);
const struct cached_partition *metadata_find_partition(const struct cached_topic *t, int32_t partition);
