/* Any bytes as the data of a znode: the first chooses the decoder. What decodes is written again, and what
 * was written must decode: a controller reads what others wrote and writes what others read. */
#include "fuzz.h"

#include <errno.h>
#include <string.h>

#include "zk/znode.h"
#include "zk/znode_drains.h"
#include "zk/znode_slot.h"

static void check_broker(const char *s, size_t len)
{
        cleanup_with(buf_donep) struct buf out = {};
        struct znode_broker b, again;
        int r;

        if (znode_broker_decode(s, len, &b) < 0)
                return;
        FUZZ_CHECK(b.n_endpoints > 0 && znode_broker_endpoint(&b, "X"));
        r = znode_broker_encode(&b, &out);
        FUZZ_CHECK(r == 0 || r == -EINVAL); /* an endpoint's text can be too long */
        if (r == 0) {
                FUZZ_CHECK(znode_broker_decode((const char *)out.data, out.len, &again) == 0);
                FUZZ_CHECK(again.n_endpoints == b.n_endpoints);
                FUZZ_CHECK(again.endpoints[0].port == b.endpoints[0].port);
                znode_broker_done(&again);
        }
        znode_broker_done(&b);
}

static void check_topic(const char *s, size_t len)
{
        cleanup_with(buf_donep) struct buf out = {};
        struct znode_topic t, again;

        if (znode_topic_decode(s, len, &t) < 0)
                return;
        for (size_t i = 1; i < t.n_partitions; i++)
                FUZZ_CHECK(t.partitions[i].partition > t.partitions[i - 1].partition);
        FUZZ_CHECK(znode_topic_encode(&t, &out) == 0);
        FUZZ_CHECK(znode_topic_decode((const char *)out.data, out.len, &again) == 0);
        FUZZ_CHECK(again.n_partitions == t.n_partitions && uuid_equal(&again.id, &t.id));
        znode_topic_done(&again);
        znode_topic_done(&t);
}

static void check_state(const char *s, size_t len)
{
        char out[ZNODE_STATE_SIZE];
        struct znode_state st, again;
        size_t n;

        if (znode_state_decode(s, len, &st) < 0)
                return;
        n = znode_state_encode(&st, out);
        FUZZ_CHECK(n < sizeof(out) && n == strlen(out));
        FUZZ_CHECK(znode_state_decode(out, n, &again) == 0 && znode_state_equal(&st, &again));
}

static void check_partitions(const char *s, size_t len)
{
        cleanup_with(buf_donep) struct buf out = {};
        struct znode_partition_list l, again;

        if (znode_partitions_decode(s, len, &l) < 0)
                return;
        FUZZ_CHECK(znode_partitions_encode(&l, &out) == 0);
        FUZZ_CHECK(znode_partitions_decode((const char *)out.data, out.len, &again) == 0 && again.n == l.n);
        znode_partitions_done(&again);
        znode_partitions_done(&l);
}

static void check_config(const char *s, size_t len)
{
        cleanup_with(buf_donep) struct buf out = {};
        struct znode_config c, again;

        if (znode_config_decode(s, len, &c) < 0)
                return;
        FUZZ_CHECK(znode_config_encode(&c, &out) == 0);
        FUZZ_CHECK(znode_config_decode((const char *)out.data, out.len, &again) == 0 && again.n == c.n);
        znode_config_done(&again);
        znode_config_done(&c);
}

static void check_drains(const char *s, size_t len)
{
        cleanup_with(buf_donep) struct buf out = {};
        struct znode_drains d, again;

        if (znode_drains_decode(s, len, &d) < 0)
                return;
        FUZZ_CHECK(znode_drains_encode(d.items, d.n, &out) == 0);
        if (znode_text_valid((const char *)out.data,
                             out.len)) { /* a text may have been cut within a character */
                FUZZ_CHECK(znode_drains_decode((const char *)out.data, out.len, &again) == 0);
                FUZZ_CHECK(again.n == d.n);
                znode_drains_done(&again);
        }
        znode_drains_done(&d);
}

static void check_small(const char *s, size_t len)
{
        struct znode_controller controller;
        struct znode_producer_ids ids;
        char id[ZNODE_SMALL_SIZE];
        int32_t number;

        if (znode_controller_decode(s, len, &controller) == 0)
                FUZZ_CHECK(controller.broker_id >= 0);
        if (znode_epoch_decode(s, len, &number) == 0)
                FUZZ_CHECK(number >= 0);
        if (znode_producer_ids_decode(s, len, &ids) == 0)
                FUZZ_CHECK(ids.first >= 0 && ids.last >= ids.first);
        if (znode_cluster_id_decode(s, len, id) == 0)
                FUZZ_CHECK(strlen(id) > 0);
        if (znode_log_dir_event_decode(s, len, &number) == 0)
                FUZZ_CHECK(number >= 0);
}

static void check_path(const char *s, size_t len)
{
        char text[512], topic[250], path[ZNODE_PATH_SIZE];
        int32_t partition;

        if (len >= sizeof(text))
                return;
        memcpy(text, s, len);
        text[len] = '\0';
        if (znode_path_parse_state(text, topic, &partition) < 0)
                return;
        znode_path_state(topic, partition, path);
        FUZZ_CHECK(strncmp(path, ZNODE_TOPICS "/", sizeof(ZNODE_TOPICS)) == 0);
}

static void check_slot(const char *s, size_t len)
{
        cleanup_with(freep) struct znode_slot *slot = malloc(sizeof(*slot)), *again = malloc(sizeof(*again));
        cleanup_with(buf_donep) struct buf out = {};

        FUZZ_CHECK(slot && again);
        if (znode_slot_decode(s, len, slot) < 0)
                return;
        FUZZ_CHECK(znode_slot_encode(slot, &out) == 0);
        FUZZ_CHECK(znode_slot_decode((const char *)out.data, out.len, again) == 0);
        FUZZ_CHECK(again->n_holders == slot->n_holders && again->n_ended == slot->n_ended);
}

static void (*const checks[])(const char *s, size_t len) = {
        check_broker, check_topic, check_state,  check_partitions, check_config,
        check_small,  check_path,  check_drains, check_slot,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        cleanup_with(freep) char *copy = NULL;

        if (size == 0)
                return 0;
        /* A copy of the exact size: a read past it is seen. */
        copy = malloc(size - 1 > 0 ? size - 1 : 1);
        FUZZ_CHECK(copy);
        memcpy(copy, data + 1, size - 1);
        checks[data[0] % ARRAY_SIZE(checks)](copy, size - 1);
        return 0;
}
