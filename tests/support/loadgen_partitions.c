/* Which partitions a run writes: all, the first N, or an explicit list ("3,7,10-19"). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "loadgen.h"

#define MAX_NUMBER 999999

static int add(struct partitions *p, int32_t number)
{
        if (p->n == p->capacity) {
                int32_t capacity = MAX(2 * p->capacity, 64);
                int32_t *grown = reallocarray(p->numbers, (size_t)capacity, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                p->numbers = grown;
                p->capacity = capacity;
        }
        p->numbers[p->n++] = number;
        p->end = MAX(p->end, number + 1);
        return 0;
}

static int add_range(struct partitions *p, int64_t first, int64_t last)
{
        int r = 0;

        for (int64_t i = first; i <= last && r == 0; i++)
                r = add(p, (int32_t)i);
        return r;
}

/* "7" or "7-12". */
static int add_item(struct partitions *p, char *item)
{
        char *dash = strchr(item, '-');
        int64_t first, last;
        int r;

        if (dash)
                *dash = '\0';
        r = parse_int64(item, 0, MAX_NUMBER, &first);
        if (r == 0)
                r = parse_int64(dash ? dash + 1 : item, 0, MAX_NUMBER, &last);
        if (r < 0 || last < first)
                return -EINVAL;
        return add_range(p, first, last);
}

static int compare_numbers(const void *a, const void *b)
{
        int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

        return (x > y) - (x < y);
}

/* A partition named twice would be written twice as often as its neighbours. */
static void drop_doubles(struct partitions *p)
{
        int32_t n = 0;

        qsort(p->numbers, (size_t)p->n, sizeof(*p->numbers), compare_numbers);
        for (int32_t i = 0; i < p->n; i++)
                if (n == 0 || p->numbers[n - 1] != p->numbers[i])
                        p->numbers[n++] = p->numbers[i];
        p->n = n;
}

int partitions_parse(const char *text, struct partitions *ret)
{
        cleanup_with(freep) char *copy = strdup(text);
        struct partitions p = {0};
        char *rest = copy, *item;
        int r = 0;

        if (!copy)
                return -ENOMEM;
        while (r == 0 && (item = strsep(&rest, ", \n\t")))
                if (*item)
                        r = add_item(&p, item);
        if (r == 0 && p.n == 0)
                r = -EINVAL;
        if (r < 0) {
                partitions_done(&p);
                return r;
        }
        drop_doubles(&p);
        *ret = p;
        return 0;
}

int partitions_read(const char *path, struct partitions *ret)
{
        cleanup_with(freep) char *text = NULL;
        size_t size = 0;
        FILE *f = fopen(path, "re");
        ssize_t n;
        int r;

        if (!f)
                return -errno;
        n = getdelim(&text, &size, '\0', f);
        r = n < 0 ? -EINVAL : partitions_parse(text, ret);
        (void)fclose(f); /* only read */
        return r;
}

int partitions_first(int32_t n, struct partitions *ret)
{
        struct partitions p = {0};
        int r = add_range(&p, 0, n - 1);

        if (r < 0)
                partitions_done(&p);
        else
                *ret = p;
        return r;
}

void partitions_done(struct partitions *p)
{
        free(p->numbers);
        *p = (struct partitions){0};
}
