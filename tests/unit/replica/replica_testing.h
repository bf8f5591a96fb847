/* A broker without network for the tests of this folder: log manager, metadata cache and replica manager over
 * a directory of its own, and short words for what is asked of them. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

#include "replica/replica_manager.h"
#include "wire/alter_partition.h"
#include "wire/error.h"
#include "wire/fetch.h"
#include "wire/leader_and_isr.h"
#include "wire/produce.h"

#define TOPIC      "orders"
#define CONTROLLER 99

struct node {
        char dir[256];
        struct replica_options options;
        struct log_manager *logs;
        struct metadata_cache *metadata;
        struct replica_manager *rm;
        _Atomic bool lease;
        _Atomic bool silent_controller; /* ISR proposals are not sent (the operation fails) */
        bool auto_controller;           /* ISR proposals are committed as they come */
        /* what the controller got */
        pthread_mutex_t lock;
        struct isr_batch *batch;
        int32_t isr[8], n_isr, partition_epoch, leader_epoch;
        char last_line[1024];
};

/* Fresh directory; options may be changed before node_start(). */
void node_init(struct node *n, int32_t id);
void node_start(struct node *n);
void node_stop(struct node *n);  /* cleanly */
void node_crash(struct node *n); /* no checkpoint, no marker */
void node_done(struct node *n);  /* stopped; removes the directory */

struct uuid topic_id_of(const char *topic);

struct lai {
        const char *topic; /* NULL: TOPIC */
        int32_t partition, leader, epoch, partition_epoch;
        const int32_t *isr, *replicas; /* replicas NULL: 1, 2, 3; isr NULL: the replicas */
        int32_t n_isr, n_replicas;
        int32_t controller_epoch;
        int64_t broker_epoch;
        uint16_t leader_port; /* of its listener on loopback; 0: none */
};
/* One LeaderAndIsr for one partition; the partition's error (or the request's). */
int16_t lai(struct node *n, const struct lai *l);
int16_t stop_replica(struct node *n, int32_t partition, int32_t epoch, bool delete);

/* What a request came to. */
struct outcome {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        int n_done;
        struct replica_response *response;
};
void outcome_init(struct outcome *o);
void outcome_done(struct outcome *o);
bool outcome_arrived(struct outcome *o);
void outcome_await(struct outcome *o); /* within 5 s */
const struct produce_response_partition *produced(struct outcome *o);
const struct fetch_response_partition *fetched(struct outcome *o);

struct batch {
        int32_t n_records, value_bytes; /* 0: one record of ten bytes */
        int64_t base_offset;
        int32_t epoch;
};
void make_batch(struct buf *out, const struct batch *b);
/* One record to TOPIC's partition 0 unless told otherwise. */
void produce(struct node *n, int16_t acks, int32_t timeout_ms, struct outcome *o);
void produce_to(struct node *n, const char *topic, int32_t partition, int16_t acks, int32_t timeout_ms,
                const struct batch *b, struct outcome *o);
int16_t produce_now(struct node *n, int16_t acks); /* its error; must be answered at once */

struct ask {
        int32_t replica_id; /* 0: a consumer (-1) */
        int32_t partition;
        int64_t offset;
        int32_t epoch;      /* current leader epoch; 0: not given (-1) */
        int32_t last_epoch; /* 0: not given (-1) */
        int32_t max_wait_ms, min_bytes, max_bytes, partition_max_bytes; /* 0: 1 MiB */
        int16_t version;                                                /* 0: 17 */
};
void fetch(struct node *n, const struct ask *a, struct outcome *o);
/* Must be answered at once; bytes of records, or the error as a negative number. */
int32_t fetch_now(struct node *n, const struct ask *a, int64_t *ret_hw);
/* Broker @id follows: fetches at @offset in @epoch. */
void follow(struct node *n, int32_t id, int64_t offset, int32_t epoch);
int64_t list_offset(struct node *n, int64_t timestamp, int32_t replica_id, int16_t *ret_error);
void info(struct node *n, int32_t partition, struct replica_info *ret); /* arrays are not to be used */
/* The controller's answer to the proposal that waits. */
void answer_proposal(struct node *n, int16_t error, int32_t partition_epoch);
void lose_proposal(struct node *n);    /* the connection to the controller breaks */
bool proposal_arrived(struct node *n); /* within 5 s */
