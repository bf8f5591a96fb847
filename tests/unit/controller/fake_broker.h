/* A broker as the controller sees it: a listener that takes LeaderAndIsr, UpdateMetadata and StopReplica,
 * obeys the epochs a broker must obey, and remembers everything in order. Its own thread; all functions from
 * the test's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum told_kind { TOLD_LAI, TOLD_UM, TOLD_STOP };

struct told {        /* one partition in one request */
        int64_t seq; /* over all brokers of the process */
        enum told_kind kind;
        char topic[64];
        int32_t partition, leader, leader_epoch, partition_epoch, controller_epoch;
        int32_t isr[8], n_isr;
        int64_t broker_epoch;
        bool is_new, full, delete_partition;
};

struct fake_broker;

struct fake_broker *fake_broker_new(int32_t id);
struct fake_broker *fake_broker_free(struct fake_broker *b);
uint16_t fake_broker_port(const struct fake_broker *b);
void fake_broker_set_epoch(struct fake_broker *b, int64_t broker_epoch); /* lower ones are refused with 77 */

/* What the broker is to do with requests of a kind from now on. */
void fake_broker_hold(struct fake_broker *b, enum told_kind kind, bool on); /* keep unanswered */
void fake_broker_release(struct fake_broker *b);                            /* answer what is held */
void fake_broker_fail_next(struct fake_broker *b, enum told_kind kind,
                           int times); /* close the connection instead */
void fake_broker_partition_error(struct fake_broker *b, enum told_kind kind, int16_t error); /* 0: none */
/* Answer requests of controllers below this epoch with STALE_CONTROLLER_EPOCH. */
void fake_broker_fence(struct fake_broker *b, int32_t controller_epoch);

/* What it was told; copies. */
int fake_broker_requests(struct fake_broker *b, enum told_kind kind);
int fake_broker_live_brokers(struct fake_broker *b); /* in the last UpdateMetadata */
/* The last word of @kind about a partition; false: none. */
bool fake_broker_last(struct fake_broker *b, enum told_kind kind, const char *topic, int32_t partition,
                      struct told *ret);
bool fake_broker_first(struct fake_broker *b, enum told_kind kind, const char *topic, int32_t partition,
                       struct told *ret);
int fake_broker_count(struct fake_broker *b, enum told_kind kind,
                      const char *topic);         /* partitions told, repeats included */
bool fake_broker_has_full(struct fake_broker *b); /* has had a full LeaderAndIsr */
/* The role LeaderAndIsr and StopReplica have left it in. */
bool fake_broker_leads(struct fake_broker *b, const char *topic, int32_t partition);
bool fake_broker_fetches(struct fake_broker *b, const char *topic, int32_t partition);
bool fake_broker_has(struct fake_broker *b, const char *topic, int32_t partition);
int fake_broker_n_led(struct fake_broker *b);
