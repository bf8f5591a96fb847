#include "cli/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/zk_cluster.h"
#include "wire/error.h"

int cluster_open(struct cluster *c, const char *verb, const struct cluster_options *o)
{
        int r;

        memset(c, 0, sizeof(*c));
        c->verb = verb;
        c->o = o;
        arena_init(&c->arena, 0);
        kafka_admin_init(&c->kafka, o->bootstrap, o->timeout_ms);
        if (o->zookeeper && o->bootstrap) {
                (void)fprintf(stderr, "stepdown %s: either --zookeeper or --bootstrap, not both\n", verb);
                return CLI_USAGE;
        }
        if (!o->zookeeper)
                return CLI_OK;
        r = zk_admin_open(o->zookeeper, o->timeout_ms, &c->zk, c->error);
        return r < 0 ? cluster_fail(c, r) : CLI_OK;
}

void cluster_close(struct cluster *c)
{
        c->zk = zk_admin_close(c->zk);
        kafka_admin_done(&c->kafka);
        arena_done(&c->arena);
}

static int by_partition(const void *a, const void *b)
{
        const struct metadata_response_partition *x = a, *y = b;

        return (x->partition_index > y->partition_index) - (x->partition_index < y->partition_index);
}

static int by_name(const void *a, const void *b)
{
        const struct metadata_response_topic *x = a, *y = b;
        int c = memcmp(x->name.data, y->name.data, (size_t)MIN(x->name.len, y->name.len));

        return c ? c : x->name.len - y->name.len;
}

static int by_id(const void *a, const void *b)
{
        const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

        return (x > y) - (x < y);
}

static void sort(struct metadata_response *m)
{
        if (m->topics.n > 0)
                qsort(m->topics.items, (size_t)m->topics.n, sizeof(*m->topics.items), by_name);
        for (int32_t i = 0; i < m->topics.n; i++)
                if (m->topics.items[i].partitions.n > 0)
                        qsort(m->topics.items[i].partitions.items, (size_t)m->topics.items[i].partitions.n,
                              sizeof(*m->topics.items[i].partitions.items), by_partition);
}

int cluster_metadata(struct cluster *c, const char *topic, struct metadata_response **ret)
{
        int r;

        r = c->zk ? zk_cluster_metadata(c->zk, topic, &c->arena, ret, c->error)
                  : kafka_admin_metadata(&c->kafka, topic, ret);
        if (r < 0)
                return r;
        for (int32_t i = 0; i < (*ret)->topics.n; i++)
                if ((*ret)->topics.items[i].name.len < 0)
                        return -EBADMSG;
        sort(*ret);
        return 0;
}

int cluster_fail(const struct cluster *c, int r)
{
        const char *why = c->error;

        if (!why[0])
                why = c->zk ? zk_admin_error(c->zk) : c->kafka.error;
        (void)fprintf(stderr, "stepdown %s: %s\n", c->verb, why[0] ? why : strerror(-r));
        switch (r) {
        case -EINVAL:
                return CLI_USAGE;
        case -ENOMEM:
        case -EPERM:
        case -ENOENT:
        case -ESTALE:
        case -EEXIST:
        case -E2BIG:
        case -EBADMSG:
        case -EPROTONOSUPPORT:
                return CLI_FAILED;
        default:
                return CLI_UNAVAILABLE;
        }
}

const struct metadata_response_topic *cluster_topic(const struct metadata_response *m, const char *name)
{
        for (int32_t i = 0; i < m->topics.n; i++)
                if (wire_str_equal(m->topics.items[i].name, name))
                        return m->topics.items[i].error_code == KAFKA_UNKNOWN_TOPIC_OR_PARTITION
                                       ? NULL
                                       : &m->topics.items[i];
        return NULL;
}

const struct metadata_response_partition *cluster_partition(const struct metadata_response_topic *t,
                                                            int32_t partition)
{
        for (int32_t i = 0; i < t->partitions.n; i++)
                if (t->partitions.items[i].partition_index == partition)
                        return &t->partitions.items[i];
        return NULL;
}

bool cluster_is_live(const struct metadata_response *m, int32_t broker)
{
        for (int32_t i = 0; i < m->brokers.n; i++)
                if (m->brokers.items[i].node_id == broker)
                        return true;
        return false;
}

int cluster_broker_ids(struct cluster *c, const struct metadata_response *m, int32_t **ret, int32_t *ret_n)
{
        int32_t *ids = arena_alloc(&c->arena, (size_t)MAX(m->brokers.n, 0) + 1, sizeof(*ids));

        if (!ids)
                return -ENOMEM;
        for (int32_t i = 0; i < m->brokers.n; i++)
                ids[i] = m->brokers.items[i].node_id;
        if (m->brokers.n > 1)
                qsort(ids, (size_t)m->brokers.n, sizeof(*ids), by_id);
        *ret = ids;
        *ret_n = MAX(m->brokers.n, 0);
        return 0;
}
