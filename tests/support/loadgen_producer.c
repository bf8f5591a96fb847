/* Writes every partition in turn at the rate asked for. Delivery reports arrive on this thread, in
 * rd_kafka_poll(). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "loadgen.h"

#define BURST 2000 /* messages between two polls */

struct producer {
        struct run *run;
        rd_kafka_t *rk;
        rd_kafka_topic_t *topic;
        uint8_t *payload;
        int64_t n_sent, n_errors_said;
        int32_t next; /* of the partitions to write */
};

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
        uint64_t number = (uint64_t)(uintptr_t)m->_private - 1;
        static _Thread_local int n_said;
        struct run *run = opaque;

        (void)rk;
        if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
                ledger_acked(run->ledger, m->partition, number, clock_mono_us(), rd_kafka_message_latency(m));
                return;
        }
        ledger_failed(run->ledger, m->partition);
        if (n_said++ < 10)
                (void)fprintf(stderr, "loadgen: [%s,%" PRId32 "] message %" PRIu64 " failed: %s\n",
                              run->options.topic, m->partition, number, rd_kafka_err2str(m->err));
}

rd_kafka_t *producer_new(struct run *run)
{
        const struct options *o = &run->options;
        bool idempotent = strcmp(o->idempotence, "on") == 0;
        char linger[24], delivery[24], query[24], retry[24];
        const struct property properties[] = {
                {"bootstrap.servers", run->bootstrap},
                {"client.id", "loadgen-producer"},
                {"acks", o->acks},
                {"enable.idempotence", idempotent ? "true" : "false"},
                {"max.in.flight", idempotent ? "5" : "1"}, /* so that a retry never reorders */
                {"compression.codec", o->codec},
                {"linger.ms", linger},
                {"delivery.timeout.ms", delivery},
                {"request.timeout.ms", "10000"},
                {"message.send.max.retries", "2147483647"},
                {"queue.buffering.max.messages", o->rate > 0 ? "2000000" : "200000"},
                {"queue.buffering.max.kbytes", "1048576"},
                /* a leader that moves must be found again quickly */
                {"retry.backoff.ms", retry},
                {"reconnect.backoff.ms", "20"},
                {"reconnect.backoff.max.ms", "200"},
                {"topic.metadata.refresh.fast.interval.ms", query},
                {"topic.metadata.refresh.interval.ms", "5000"},
                {"topic.metadata.refresh.sparse", "true"},
                {"socket.nagle.disable", "true"},
                {"debug", o->debug},
                {NULL, NULL},
        };

        (void)snprintf(query, sizeof(query), "%" PRId64, o->leader_query_ms);
        (void)snprintf(retry, sizeof(retry), "%" PRId64, o->retry_backoff_ms);
        (void)snprintf(linger, sizeof(linger), "%" PRId64, o->linger_ms);
        (void)snprintf(delivery, sizeof(delivery), "%" PRId64, o->delivery_timeout_ms);
        return client_new(RD_KAFKA_PRODUCER, properties, o->verbose || o->debug, on_delivery, run);
}

/* False: the library's queue is full, or it has failed for good. */
static bool produce_one(struct producer *p)
{
        struct run *run = p->run;
        int32_t partition = run->partitions.numbers[p->next];
        uint64_t number = ledger_next(run->ledger, partition);
        size_t size = (size_t)run->options.size;
        rd_kafka_resp_err_t err;

        payload_fill(p->payload, size, run->id, partition, number, clock_mono_us());
        if (rd_kafka_produce(p->topic, partition, RD_KAFKA_MSG_F_COPY, p->payload, size, NULL, 0,
                             (void *)(uintptr_t)(number + 1)) == 0) {
                ledger_sent(run->ledger, partition);
                p->n_sent++;
                p->next = p->next + 1 == run->partitions.n ? 0 : p->next + 1;
                return true;
        }
        err = rd_kafka_last_error();
        if (err != RD_KAFKA_RESP_ERR__QUEUE_FULL && p->n_errors_said++ == 0)
                (void)fprintf(stderr, "loadgen: cannot produce: %s\n", rd_kafka_err2str(err));
        if (err == RD_KAFKA_RESP_ERR__FATAL)
                run->producer_failed = true;
        return false;
}

static int64_t messages_due(const struct producer *p, int64_t began_us)
{
        int64_t rate = p->run->options.rate, elapsed_us = clock_mono_us() - began_us;

        if (rate == 0)
                return INT64_MAX;
        return elapsed_us / 1000000 * rate + elapsed_us % 1000000 * rate / 1000000;
}

static void write_messages(struct producer *p)
{
        int64_t began_us = clock_mono_us();

        while (!p->run->stop_producing && !p->run->producer_failed) {
                int64_t due = messages_due(p, began_us);
                bool stuck = false;

                for (int i = 0; i < BURST && p->n_sent < due && !stuck; i++)
                        stuck = !produce_one(p);
                (void)rd_kafka_poll(p->rk, stuck || p->n_sent >= due ? 1 : 0);
        }
}

/* Wait for what is under way; what is not acknowledged in time has failed. */
static void flush_messages(struct producer *p)
{
        int64_t until_ms = clock_mono_ms() + p->run->options.drain_timeout_ms;

        while (rd_kafka_outq_len(p->rk) > 0 && clock_mono_ms() < until_ms && !p->run->producer_failed)
                (void)rd_kafka_flush(p->rk, 100); /* says whether all is out; outq_len() does, too */
        (void)rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        (void)rd_kafka_flush(p->rk, 1000);
}

void *producer_main(void *userdata)
{
        struct run *run = userdata;
        struct producer p = {.run = run, .rk = run->producer};

        p.payload = malloc((size_t)run->options.size);
        p.topic = rd_kafka_topic_new(p.rk, run->options.topic, NULL);
        if (p.payload && p.topic) {
                write_messages(&p);
                flush_messages(&p);
        } else {
                run->producer_failed = true;
        }
        if (p.topic)
                rd_kafka_topic_destroy(p.topic);
        free(p.payload);
        run->producer_done = true;
        return NULL;
}
