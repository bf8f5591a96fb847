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
        for (int32_t i = 0; i < run->partitions.n; i++) {
                if (rd_kafka_consume_start_queue(topic, run->partitions.numbers[i], RD_KAFKA_OFFSET_BEGINNING,
                                                 queue) == 0)
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
        for (int32_t i = 0; topic && i < run->partitions.n; i++)
                (void)rd_kafka_consume_stop(
                        topic, run->partitions.numbers[i]); /* fails only for one that was never started */
        if (queue)
                rd_kafka_queue_destroy(queue);
        if (topic)
                rd_kafka_topic_destroy(topic);
        return NULL;
}

/* One request a leader, not one a partition: ListOffsets for the timestamp that means "the end". */
bool consumer_caught_up(struct run *run)
{
        int32_t n = run->partitions.n;
        rd_kafka_topic_partition_list_t *ends = rd_kafka_topic_partition_list_new(n);
        bool all = true;

        for (int32_t i = 0; i < n; i++)
                rd_kafka_topic_partition_list_add(ends, run->options.topic, run->partitions.numbers[i])
                        ->offset = RD_KAFKA_OFFSET_END;
        if (rd_kafka_offsets_for_times(run->consumer, ends, 5000) != RD_KAFKA_RESP_ERR_NO_ERROR)
                all = false;
        for (int i = 0; i < ends->cnt && all; i++)
                all = ends->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR && ends->elems[i].offset >= 0 &&
                      run->positions[ends->elems[i].partition] >= ends->elems[i].offset;
        rd_kafka_topic_partition_list_destroy(ends);
        return all;
}
