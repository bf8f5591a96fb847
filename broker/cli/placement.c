#include "cli/placement.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/parse.h"

static size_t count(const char *s, char c)
{
        size_t n = 0;

        for (; *s; s++)
                n += *s == c;
        return n;
}

static int parse_replicas(struct arena *a, char *text, struct znode_assignment *ret)
{
        char *rest = text, *one;

        ret->replicas = arena_alloc(a, count(text, ':') + 1, sizeof(*ret->replicas));
        if (!ret->replicas)
                return -ENOMEM;
        while ((one = strsep(&rest, ":"))) {
                one += strspn(one, " ");
                one[strcspn(one, " ")] = '\0';
                if (parse_int32(one, 0, INT32_MAX, &ret->replicas[ret->n_replicas++]) < 0)
                        return -EINVAL;
        }
        return 0;
}

int placement_parse(struct arena *a, const char *text, int32_t first, struct znode_topic *ret)
{
        char *copy = arena_strndup(a, text, strlen(text)), *rest = copy, *one;
        struct znode_topic t = {0};
        int r = 0;

        t.partitions = arena_alloc(a, count(text, ',') + 1, sizeof(*t.partitions));
        if (!copy || !t.partitions)
                return -ENOMEM;
        while (r == 0 && (one = strsep(&rest, ","))) {
                struct znode_assignment *p = &t.partitions[t.n_partitions];

                p->partition = first + (int32_t)t.n_partitions++;
                r = parse_replicas(a, one, p);
        }
        if (r == 0)
                *ret = t;
        return r;
}

int placement_check(const struct znode_topic *t, const int32_t *brokers, int32_t n_brokers,
                    char error[ASSIGNMENT_TEXT_SIZE])
{
        enum assignment_fault fault;
        int r = 0;

        for (size_t i = 0; r == 0 && i < t->n_partitions; i++)
                r = assignment_check(t->partitions[i].partition, t->partitions[i].replicas,
                                     (int32_t)t->partitions[i].n_replicas,
                                     (int32_t)t->partitions[0].n_replicas, brokers, n_brokers, error, &fault);
        return r;
}

int placement_make(struct arena *a, const struct assignment_request *r, struct znode_topic *ret,
                   char error[ASSIGNMENT_TEXT_SIZE])
{
        size_t n = (size_t)MAX(r->n_partitions, 0), factor = (size_t)MAX(r->replication_factor, 0);
        struct znode_topic t = {.n_partitions = n};
        enum assignment_fault fault;
        int32_t *ids;
        int q;

        ids = arena_alloc(a, n * MIN(factor, (size_t)MAX(r->n_brokers, 0)) + 1, sizeof(*ids));
        t.partitions = arena_alloc(a, n + 1, sizeof(*t.partitions));
        if (!ids || !t.partitions)
                return -ENOMEM;
        q = assignment_make(r, ids, error, &fault);
        if (q < 0)
                return q;
        for (size_t i = 0; i < n; i++)
                t.partitions[i] = (struct znode_assignment){.partition = r->start_partition + (int32_t)i,
                                                            .replicas = ids + i * factor,
                                                            .n_replicas = factor};
        *ret = t;
        return 0;
}

void placement_random_start(struct assignment_request *r)
{
        uint32_t start[2] = {0, 0};

        (void)getrandom(start, sizeof(start), GRND_NONBLOCK); /* zeroes do as well, if less evenly */
        r->start_index = start[0];
        r->start_shift = start[1];
}
