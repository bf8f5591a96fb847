/* librdkafka handles: one place for configuration, logging and waiting for a topic. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "loadgen.h"

static void log_nothing(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
        (void)rk;
        (void)level;
        (void)facility;
        (void)text; /* connections come and go during a drain; --verbose shows it */
}

static int configure(rd_kafka_conf_t *conf, const struct property *properties)
{
        char error[256];

        for (const struct property *p = properties; p->name; p++) {
                if (!p->value ||
                    rd_kafka_conf_set(conf, p->name, p->value, error, sizeof(error)) == RD_KAFKA_CONF_OK)
                        continue;
                (void)fprintf(stderr, "loadgen: %s\n", error);
                return -EINVAL;
        }
        return 0;
}

rd_kafka_t *client_new(rd_kafka_type_t type, const struct property *properties, bool verbose,
                       void (*dr)(rd_kafka_t *, const rd_kafka_message_t *, void *), void *opaque)
{
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        char error[256];
        rd_kafka_t *rk;

        if (configure(conf, properties) < 0) {
                rd_kafka_conf_destroy(conf);
                return NULL;
        }
        if (!verbose)
                rd_kafka_conf_set_log_cb(conf, log_nothing);
        if (dr)
                rd_kafka_conf_set_dr_msg_cb(conf, dr);
        rd_kafka_conf_set_opaque(conf, opaque);
        rk = rd_kafka_new(type, conf, error, sizeof(error)); /* takes conf over when it succeeds */
        if (!rk) {
                rd_kafka_conf_destroy(conf);
                (void)fprintf(stderr, "loadgen: %s\n", error);
        }
        return rk;
}

static int topic_partitions(rd_kafka_t *rk, const char *topic, int32_t *ret)
{
        const struct rd_kafka_metadata *md;
        rd_kafka_topic_t *handle = rd_kafka_topic_new(rk, topic, NULL);
        rd_kafka_resp_err_t err;

        if (!handle)
                return -EINVAL;
        err = rd_kafka_metadata(rk, 0, handle, &md, 2000);
        rd_kafka_topic_destroy(handle);
        if (err != RD_KAFKA_RESP_ERR_NO_ERROR)
                return -EAGAIN;
        *ret = md->topic_cnt == 1 && md->topics[0].err == RD_KAFKA_RESP_ERR_NO_ERROR
                       ? md->topics[0].partition_cnt
                       : 0;
        rd_kafka_metadata_destroy(md);
        return 0;
}

int client_wait_topic(rd_kafka_t *rk, const char *topic, int32_t at_least, int64_t timeout_ms, int32_t *ret)
{
        int64_t until_ms = clock_mono_ms() + timeout_ms;
        int32_t n = 0;

        do {
                if (topic_partitions(rk, topic, &n) == 0 && n >= at_least) {
                        *ret = n;
                        return 0;
                }
                (void)rd_kafka_poll(rk, 50);
        } while (clock_mono_ms() < until_ms);
        return -ETIMEDOUT;
}
