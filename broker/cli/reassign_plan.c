#include "cli/reassign_plan.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "cli/placement.h"

static int append(struct znode_partition_list *l, const char *topic, int32_t partition,
                  const int32_t *replicas, size_t n)
{
        struct znode_partition p = {.topic = strdup(topic), .partition = partition, .n_replicas = n};
        struct znode_partition *items = realloc(l->items, (l->n + 1) * sizeof(*items));

        if (items)
                l->items = items;
        p.replicas = calloc(n + 1, sizeof(*p.replicas));
        if (!items || !p.topic || !p.replicas) {
                free(p.topic);
                free(p.replicas);
                return -ENOMEM;
        }
        memcpy(p.replicas, replicas, n * sizeof(*replicas));
        l->items[l->n++] = p;
        return 0;
}

static int spread_topic(struct arena *a, const struct metadata_response_topic *t, const char *name,
                        const int32_t *brokers, int32_t n_brokers, struct znode_partition_list *l,
                        char error[JSON_FILE_TEXT_SIZE])
{
        struct assignment_request request = {
                .brokers = brokers,
                .n_brokers = n_brokers,
                .n_partitions = t->partitions.n,
                .replication_factor = t->partitions.n > 0 ? t->partitions.items[0].replica_nodes.n : 0,
        };
        char why[ASSIGNMENT_TEXT_SIZE];
        struct znode_topic placed;
        int r;

        placement_random_start(&request);
        r = placement_make(a, &request, &placed, why);
        if (r == -EINVAL)
                (void)snprintf(error, JSON_FILE_TEXT_SIZE, "topic %.250s: %.200s", name, why);
        for (size_t i = 0; r == 0 && i < placed.n_partitions; i++)
                r = append(l, name, t->partitions.items[i].partition_index, placed.partitions[i].replicas,
                           placed.partitions[i].n_replicas);
        return r;
}

int reassign_spread(const struct topic_names *topics, const struct metadata_response *m,
                    const int32_t *brokers, int32_t n_brokers, struct znode_partition_list *ret,
                    size_t *ret_skipped, char error[JSON_FILE_TEXT_SIZE])
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct znode_partition_list l = {0};
        int r = 0;

        arena_init(&a, 0);
        for (size_t i = 0; r == 0 && i < topics->n; i++) {
                const struct metadata_response_topic *t = cluster_topic(m, topics->items[i]);

                if (t && t->partitions.n > 0) {
                        r = spread_topic(&a, t, topics->items[i], brokers, n_brokers, &l, error);
                        continue;
                }
                (void)fprintf(stderr, "Skipping reassignment of topic %s since it doesn't exist\n",
                              topics->items[i]);
                ++*ret_skipped;
        }
        if (r < 0)
                znode_partitions_done(&l);
        else
                *ret = l;
        return r;
}

int reassign_parse_brokers(struct arena *a, const char *text, int32_t **ret, int32_t *ret_n)
{
        char *copy = arena_strndup(a, text, strlen(text)), *rest = copy, *one;
        int32_t *ids = arena_alloc(a, strlen(text) + 1, sizeof(*ids)), n = 0;

        if (!copy || !ids)
                return -ENOMEM;
        while ((one = strsep(&rest, ","))) {
                one += strspn(one, " ");
                one[strcspn(one, " ")] = '\0';
                if (parse_int32(one, 0, INT32_MAX, &ids[n]) < 0)
                        return -EINVAL;
                for (int32_t i = 0; i < n; i++)
                        if (ids[i] == ids[n])
                                return -EINVAL;
                n++;
        }
        *ret = ids;
        *ret_n = n;
        return 0;
}

int reassign_current(const struct znode_partition_list *l, const struct metadata_response *m,
                     struct znode_partition_list *ret)
{
        struct znode_partition_list now = {0};
        int r = 0;

        for (size_t i = 0; r == 0 && i < l->n; i++) {
                const struct metadata_response_topic *t = cluster_topic(m, l->items[i].topic);
                const struct metadata_response_partition *p =
                        t ? cluster_partition(t, l->items[i].partition) : NULL;

                if (p)
                        r = append(&now, l->items[i].topic, p->partition_index, p->replica_nodes.items,
                                   (size_t)MAX(p->replica_nodes.n, 0));
        }
        if (r < 0)
                znode_partitions_done(&now);
        else
                *ret = now;
        return r;
}

int reassign_check_brokers(const struct znode_partition_list *l, const struct metadata_response *m,
                           char error[JSON_FILE_TEXT_SIZE])
{
        for (size_t i = 0; i < l->n; i++)
                for (size_t k = 0; k < l->items[i].n_replicas; k++)
                        if (!cluster_is_live(m, l->items[i].replicas[k])) {
                                (void)snprintf(error, JSON_FILE_TEXT_SIZE,
                                               "some specified brokers not available: broker %d of partition "
                                               "[%s,%d]",
                                               l->items[i].replicas[k], l->items[i].topic,
                                               l->items[i].partition);
                                return -EINVAL;
                        }
        return 0;
}
