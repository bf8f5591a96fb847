/* The load generator: numbered messages into every partition, read back and compared.
 *
 * Three threads share one ledger: the producer (librdkafka's delivery reports arrive on it), the consumer,
 * and main, which watches the clock and signals. Each file declares here what the others may call. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <librdkafka/rdkafka.h>

#include "base/util.h"

/* --- loadgen_ledger.c: what was acknowledged and what came back. Any thread; one lock a partition. --- */
struct ledger;

struct ledger_totals {
        int64_t sent, acked, failed;
        int64_t consumed;     /* distinct numbers of this run */
        int64_t lost;         /* acknowledged, passed by the consumer (or all, at the end) and not consumed */
        int64_t out_of_order; /* below a number already consumed, and new */
        int64_t duplicated;
        int64_t unread; /* acknowledged and not consumed, wherever the consumer is */
        int64_t max_gap_us, gap_p50_us, gap_p99_us; /* over partitions: longest time between two acks */
        int64_t current_gap_us; /* longest time since the last ack of a partition that waits */
        int64_t max_latency_us; /* of one message, send to ack */
};

struct ledger *ledger_new(int32_t n_partitions); /* accounts 0 … n-1; those never written count nowhere */
struct ledger *ledger_free(struct ledger *l);
DEFINE_FREEP(struct ledger, ledger_free)
uint64_t ledger_next(struct ledger *l, int32_t partition); /* the number to send next */
void ledger_sent(struct ledger *l, int32_t partition);
void ledger_acked(struct ledger *l, int32_t partition, uint64_t number, int64_t now_us, int64_t latency_us);
void ledger_failed(struct ledger *l, int32_t partition);
void ledger_consumed(struct ledger *l, int32_t partition, uint64_t number);
void ledger_gaps_reset(struct ledger *l, int64_t now_us);
void ledger_gaps_freeze(struct ledger *l,
                        int64_t now_us); /* gaps under way count with what they have so far */
/* A line a partition: its number, its longest gap and when that began (microseconds; the latter of the
 * epoch). */
void ledger_gaps_print(struct ledger *l, int64_t real_minus_mono_us, FILE *out);
/* @final: everything acknowledged must have come back by now. */
void ledger_sum(struct ledger *l, int64_t now_us, bool final, struct ledger_totals *ret);

/* --- loadgen_payload.c: what a message looks like --- */
#define PAYLOAD_MIN_BYTES 32

void payload_fill(uint8_t *p, size_t size, uint64_t run_id, int32_t partition, uint64_t number,
                  int64_t sent_us);
/* false: not a message of this run and partition, or damaged. */
bool payload_check(const uint8_t *p, size_t size, uint64_t run_id, int32_t partition, uint64_t *ret_number);

/* Does it claim to be of this run, whatever became of the rest? */
bool payload_is_of_run(const uint8_t *p, size_t size, uint64_t run_id);

/* --- loadgen_partitions.c --- */
struct partitions {
        int32_t *numbers; /* ascending, each once */
        int32_t n, capacity;
        int32_t end; /* one above the highest */
};

/* "3,7,10-19": commas or white space between. -EINVAL, -ENOMEM; of a file, what fopen() says. */
int partitions_parse(const char *text, struct partitions *ret) must_check;
int partitions_read(const char *path, struct partitions *ret) must_check;
int partitions_first(int32_t n, struct partitions *ret) must_check; /* 0 … n-1 */
void partitions_done(struct partitions *p);

/* --- loadgen_options.c --- */
struct options {
        const char *bootstrap, *topic, *stats_file, *codec, *acks, *only, *only_file, *debug, *gaps_file;
        int64_t partitions, rate, duration_ms, size, interval_ms, drain_timeout_ms, delivery_timeout_ms;
        int64_t linger_ms, leader_query_ms, retry_backoff_ms, mock;
        const char *idempotence;
        bool json, verbose, help;
};

int options_parse(int argc, char **argv, struct options *ret) must_check; /* -EINVAL: said why on stderr */
void options_print_help(void);

/* --- loadgen_client.c: librdkafka handles --- */
struct property {
        const char *name, *value;
};

/* NULL: said why on stderr. @dr: delivery reports, or NULL. */
rd_kafka_t *client_new(rd_kafka_type_t type, const struct property *properties, bool verbose,
                       void (*dr)(rd_kafka_t *, const rd_kafka_message_t *, void *), void *opaque);
/* Wait until @topic has at least @at_least partitions; *ret: how many it has. -ETIMEDOUT. */
int client_wait_topic(rd_kafka_t *rk, const char *topic, int32_t at_least, int64_t timeout_ms, int32_t *ret)
        must_check;

/* --- loadgen_producer.c, loadgen_consumer.c --- */
struct run {
        struct options options;
        uint64_t id;
        struct ledger *ledger;
        const char *bootstrap;
        rd_kafka_t *producer, *consumer;
        _Atomic bool stop_producing, producer_done, producer_failed, stop_consuming, consumer_failed;
        _Atomic int64_t damaged;
        struct partitions partitions; /* what is written and read */
        _Atomic int64_t *positions;   /* next offset to read, by partition number */
};

rd_kafka_t *producer_new(struct run *run);
void *producer_main(void *run);
rd_kafka_t *consumer_new(struct run *run);
void *consumer_main(void *run);
/* Has the consumer read every partition to the end it has now? Asks the brokers for it. */
bool consumer_caught_up(struct run *run);
