/* Reads every partition from its beginning, without a group: nothing here depends on a coordinator. */
#include <stdio.h>

#include "base/clock.h"
#include "loadgen.h"

#define BATCH 1000

rd_kafka_t *consumer_new(struct run *run)
{
        const struct property properties[] = {
                {"bootstrap.servers", run->bootstrap},
                {"client.id", "loadgen-consumer"},
                {"check.crcs", "true"},
                {"auto.offset.reset",
                 "earliest"}, /* after a truncation all is read again: doubles, not silence */
                {"fetch.wait.max.ms", "100"},
                {"fetch.error.backoff.ms", "20"},
                {"reconnect.backoff.ms", "20"},
                {"reconnect.backoff.max.ms", "200"},
                {"topic.metadata.refresh.fast.interval.ms", "50"},
                {"topic.metadata.refresh.interval.ms", "5000"},
                {"socket.nagle.disable", "true"},
                {NULL, NULL},
        };

        return client_new(RD_KAFKA_CONSUMER, properties, run->options.verbose, NULL, run);
}

static void take(struct run *run, const rd_kafka_message_t *m)
{
        uint64_t number;

        if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
                if (m->err == RD_KAFKA_RESP_ERR__BAD_MSG)
                        run->damaged++;
                return; /* leaders move: the library looks for the new one by itself */
        }
        if (payload_check(m->payload, m->len, run->id, m->partition, &number))
                ledger_consumed(run->ledger, m->partition, number);
        else if (payload_is_of_run(m->payload, m->len, run->id))
                run->damaged++;
        run->positions[m->partition] = m->offset + 1;
}

static bool start(struct run *run, rd_kafka_topic_t *topic, rd_kafka_queue_t *queue)
{
        for (int32_t i = 0; i < ledger_partitions(run->ledger); i++) {
                if (rd_kafka_consume_start_queue(topic, i, RD_KAFKA_OFFSET_BEGINNING, queue) == 0)
                        continue;
                (void)fprintf(stderr, "loadgen: cannot consume: %s\n",
                              rd_kafka_err2str(rd_kafka_last_error()));
                return false;
        }
        return true;
}

static void consume(struct run *run, rd_kafka_queue_t *queue)
{
        rd_kafka_message_t *batch[BATCH];

        while (!run->stop_consuming) {
                ssize_t n = rd_kafka_consume_batch_queue(queue, 50, batch, BATCH);

                for (ssize_t i = 0; i < n; i++) {
                        take(run, batch[i]);
                        rd_kafka_message_destroy(batch[i]);
                }
                (void)rd_kafka_poll(run->consumer, 0);
        }
}

void *consumer_main(void *userdata)
{
        struct run *run = userdata;
        rd_kafka_topic_t *topic = rd_kafka_topic_new(run->consumer, run->options.topic, NULL);
        rd_kafka_queue_t *queue = rd_kafka_queue_new(run->consumer);

        if (topic && queue && start(run, topic, queue))
                consume(run, queue);
        else
                run->consumer_failed = true;
        for (int32_t i = 0; topic && i < ledger_partitions(run->ledger); i++)
                (void)rd_kafka_consume_stop(topic, i); /* fails only for one that was never started */
        if (queue)
                rd_kafka_queue_destroy(queue);
        if (topic)
                rd_kafka_topic_destroy(topic);
        return NULL;
}

bool consumer_caught_up(struct run *run)
{
        for (int32_t i = 0; i < ledger_partitions(run->ledger); i++) {
                int64_t low, high;

                if (rd_kafka_query_watermark_offsets(run->consumer, run->options.topic, i, &low, &high,
                                                     1000) != RD_KAFKA_RESP_ERR_NO_ERROR)
                        return false;
                if (run->positions[i] < high)
                        return false;
        }
        return true;
}
