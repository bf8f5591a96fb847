#include "cli/partition_choice.h"

#include <errno.h>
#include <string.h>

static bool known(const struct metadata_response *m, const struct znode_partition *p, const char *doing)
{
        const struct metadata_response_topic *t = cluster_topic(m, p->topic);

        if (t && (t->error_code != 0 || cluster_partition(t, p->partition)))
                return true; /* what cannot be told now is left to the controller */
        if (t)
                (void)fprintf(stderr, "Skipping %s of partition [%s,%d] since it doesn't exist\n", doing,
                              p->topic, p->partition);
        else
                (void)fprintf(stderr, "Skipping %s of partition [%s,%d] since topic %s doesn't exist\n",
                              doing, p->topic, p->partition, p->topic);
        return false;
}

size_t partitions_drop_unknown(struct znode_partition_list *l, const struct metadata_response *m,
                               const char *doing)
{
        size_t kept = 0, before = l->n;

        for (size_t i = 0; i < before; i++) {
                if (known(m, &l->items[i], doing)) {
                        l->items[kept++] = l->items[i];
                        continue;
                }
                free(l->items[i].topic);
                free(l->items[i].replicas);
        }
        l->n = kept;
        return before - kept;
}

static int add(struct znode_partition_list *l, struct wire_str topic, int32_t partition)
{
        struct znode_partition *p = &l->items[l->n];

        *p = (struct znode_partition){.topic = strndup(topic.data, (size_t)topic.len),
                                      .partition = partition};
        if (!p->topic)
                return -ENOMEM;
        l->n++;
        return 0;
}

static int add_topic(struct znode_partition_list *l, const struct metadata_response_topic *t)
{
        int r = 0;

        for (int32_t i = 0; r == 0 && i < t->partitions.n; i++)
                r = add(l, t->name, t->partitions.items[i].partition_index);
        return r;
}

int partitions_choose(const struct metadata_response *m, const char *topic, int32_t partition,
                      struct znode_partition_list *ret)
{
        struct znode_partition_list l = {0};
        size_t n = 1;
        int r = 0;

        for (int32_t i = 0; i < m->topics.n; i++)
                n += (size_t)MAX(m->topics.items[i].partitions.n, 0);
        l.items = calloc(n, sizeof(*l.items));
        if (!l.items)
                return -ENOMEM;
        if (topic && partition >= 0)
                r = add(&l, wire_str(topic), partition);
        for (int32_t i = 0; r == 0 && partition < 0 && i < m->topics.n; i++)
                if (!topic || wire_str_equal(m->topics.items[i].name, topic))
                        r = add_topic(&l, &m->topics.items[i]);
        if (r < 0)
                znode_partitions_done(&l);
        else
                *ret = l;
        return r;
}

static int compare(const void *a, const void *b)
{
        const struct znode_partition *x = a, *y = b;
        int c = strcmp(x->topic, y->topic);

        return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

void partitions_sort(struct znode_partition_list *l)
{
        if (l->n > 1)
                qsort(l->items, l->n, sizeof(*l->items), compare);
}

const struct znode_partition *partitions_find(const struct znode_partition_list *l, const char *topic,
                                              int32_t partition)
{
        cleanup_with(freep) char *name = strdup(topic);
        const struct znode_partition key = {.topic = name, .partition = partition};

        return name && l->n > 0 ? bsearch(&key, l->items, l->n, sizeof(key), compare) : NULL;
}

size_t partitions_run(const struct znode_partition_list *l, size_t at)
{
        size_t end = at;

        while (end < l->n && strcmp(l->items[end].topic, l->items[at].topic) == 0)
                end++;
        return end - at;
}

void partitions_print(const struct znode_partition_list *l, FILE *to)
{
        for (size_t i = 0; i < l->n; i++)
                (void)fprintf(to, "%s[%s,%d]", i > 0 ? ", " : "", l->items[i].topic, l->items[i].partition);
}
