#include "log/epoch_cache_core.h"

#include <errno.h>
#include <string.h>

void epoch_cache_done(struct epoch_cache *c)
{
        free(c->entries);
        *c = (struct epoch_cache){0};
}

int epoch_cache_copy(const struct epoch_cache *from, struct epoch_cache *ret)
{
        struct epoch_cache copy = {.n = from->n, .cap = from->n};

        if (from->n > 0) {
                copy.entries = malloc(from->n * sizeof(*copy.entries));
                if (!copy.entries)
                        return -ENOMEM;
                memcpy(copy.entries, from->entries, from->n * sizeof(*copy.entries));
        }
        *ret = copy;
        return 0;
}

bool epoch_cache_needs(const struct epoch_cache *c, int32_t epoch, int64_t start_offset)
{
        const struct epoch_entry *last = c->n > 0 ? &c->entries[c->n - 1] : NULL;

        return !last || epoch != last->epoch || start_offset < last->start_offset;
}

int epoch_cache_assign(struct epoch_cache *c, int32_t epoch, int64_t start_offset)
{
        if (epoch < 0 || start_offset < 0)
                return -EINVAL;
        if (!epoch_cache_needs(c, epoch, start_offset))
                return 0;
        if (c->n == c->cap) {
                size_t cap = c->cap == 0 ? 2 : c->cap * 2;
                struct epoch_entry *grown = realloc(c->entries, cap * sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                c->entries = grown;
                c->cap = cap;
        }
        while (c->n > 0 &&
               (c->entries[c->n - 1].epoch >= epoch || c->entries[c->n - 1].start_offset >= start_offset))
                c->n--;
        c->entries[c->n++] = (struct epoch_entry){.epoch = epoch, .start_offset = start_offset};
        return 1;
}

bool epoch_cache_truncate_from_end(struct epoch_cache *c, int64_t offset)
{
        size_t before = c->n;

        while (c->n > 0 && c->entries[c->n - 1].start_offset >= offset)
                c->n--;
        return c->n != before;
}

bool epoch_cache_truncate_from_start(struct epoch_cache *c, int64_t offset)
{
        size_t drop = 0;

        while (drop + 1 < c->n && c->entries[drop + 1].start_offset <= offset)
                drop++;
        if (c->n == 0 || c->entries[drop].start_offset >= offset)
                return false;
        c->n -= drop;
        memmove(c->entries, c->entries + drop, c->n * sizeof(*c->entries));
        c->entries[0].start_offset = offset;
        return true;
}

int32_t epoch_cache_latest(const struct epoch_cache *c)
{
        return c->n > 0 ? c->entries[c->n - 1].epoch : -1;
}

int32_t epoch_cache_at(const struct epoch_cache *c, int64_t offset)
{
        for (size_t i = c->n; i > 0; i--)
                if (c->entries[i - 1].start_offset <= offset)
                        return c->entries[i - 1].epoch;
        return -1;
}

void epoch_cache_end_offset(const struct epoch_cache *c, int32_t epoch, int64_t log_end_offset,
                            int32_t *ret_epoch, int64_t *ret_end_offset)
{
        size_t later = 0; /* index of the first entry with a larger epoch */

        *ret_epoch = -1;
        *ret_end_offset = -1;
        if (epoch < 0 || c->n == 0)
                return;
        while (later < c->n && c->entries[later].epoch <= epoch)
                later++;
        if (later == c->n) {
                if (c->entries[c->n - 1].epoch == epoch) {
                        *ret_epoch = epoch;
                        *ret_end_offset = log_end_offset;
                }
                return; /* an epoch from our future: we cannot tell */
        }
        *ret_epoch = later == 0 ? epoch : c->entries[later - 1].epoch;
        *ret_end_offset = c->entries[later].start_offset;
}
