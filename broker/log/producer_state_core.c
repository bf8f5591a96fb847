#include "log/producer_state_core.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "wire/crc32c.h"

#define SNAPSHOT_VERSION 1
#define SNAPSHOT_HEAD    10 /* version, CRC, count */
#define SNAPSHOT_CRC_END 6
#define SNAPSHOT_ENTRY   46

struct producer {
        int64_t id, last_append_ms;
        int16_t epoch; /* -1: none seen, as after producer_state_reserve() */
        uint8_t n;
        struct producer_batch batches[PRODUCER_BATCHES]; /* oldest first */
};

struct producer_state {
        struct map *by_id; /* struct producer, owned */
};

struct producer_state *producer_state_new(void)
{
        struct producer_state *s = calloc(1, sizeof(*s));

        if (!s)
                return NULL;
        s->by_id = map_new();
        if (!s->by_id) {
                free(s);
                return NULL;
        }
        return s;
}

void producer_state_clear(struct producer_state *s)
{
        size_t cursor = 0;
        void *p;

        while (map_next(s->by_id, &cursor, NULL, NULL, &p))
                free(p);
        map_clear(s->by_id);
}

struct producer_state *producer_state_free(struct producer_state *s)
{
        if (!s)
                return NULL;
        producer_state_clear(s);
        s->by_id = map_free(s->by_id);
        free(s);
        return NULL;
}

size_t producer_state_count(const struct producer_state *s)
{
        return map_count(s->by_id);
}

bool producer_state_knows(const struct producer_state *s, int64_t producer_id)
{
        const struct producer *p = map_get_int(s->by_id, producer_id);

        return p && p->epoch >= 0;
}

int32_t producer_sequence_add(int32_t sequence, int32_t n)
{
        return sequence > INT32_MAX - n ? n - (INT32_MAX - sequence) - 1 : sequence + n;
}

static bool find_duplicate(const struct producer *p, int32_t first, int32_t last, struct producer_batch *ret)
{
        for (uint8_t i = 0; i < p->n; i++) {
                if (p->batches[i].first_sequence != first || p->batches[i].last_sequence != last)
                        continue;
                *ret = p->batches[i];
                return true;
        }
        return false;
}

int producer_state_check(const struct producer_state *s, int64_t producer_id, int16_t epoch,
                         int32_t first_sequence, int32_t last_sequence, struct producer_batch *ret)
{
        const struct producer *p = map_get_int(s->by_id, producer_id);

        if (!p || p->epoch < 0)
                return 0; /* a producer we do not know (any more) may begin anywhere */
        if (epoch < p->epoch)
                return -ESTALE;
        if (epoch > p->epoch)
                return first_sequence == 0 ? 0 : -EILSEQ;
        if (find_duplicate(p, first_sequence, last_sequence, ret))
                return 1;
        if (p->n == 0)
                return 0; /* the epoch came with a marker */
        return first_sequence == producer_sequence_add(p->batches[p->n - 1].last_sequence, 1) ? 0 : -EILSEQ;
}

static int producer_get(struct producer_state *s, int64_t producer_id, struct producer **ret)
{
        cleanup_with(freep) struct producer *p = map_get_int(s->by_id, producer_id);
        int r;

        if (p) {
                *ret = TAKE_PTR(p);
                return 0;
        }
        p = calloc(1, sizeof(*p));
        if (!p)
                return -ENOMEM;
        p->id = producer_id;
        p->epoch = -1;
        r = map_put_int(s->by_id, producer_id, p);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}

int producer_state_reserve(struct producer_state *s, int64_t producer_id)
{
        struct producer *p;

        return producer_get(s, producer_id, &p);
}

static void begin_epoch(struct producer *p, int16_t epoch)
{
        if (p->epoch == epoch)
                return;
        p->epoch = epoch;
        p->n = 0;
}

static int compare_times(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

/* The time up to which a tenth of the producers were silent, or INT64_MIN when there is no memory to find
 * out: then the next update tries again. */
static int64_t silent_until(const struct producer_state *s)
{
        size_t n = map_count(s->by_id), i = 0, cursor = 0;
        cleanup_with(freep) int64_t *times = calloc(n + 1, sizeof(*times));
        void *p;

        if (!times)
                return INT64_MIN;
        while (map_next(s->by_id, &cursor, NULL, NULL, &p))
                times[i++] = ((struct producer *)p)->last_append_ms;
        qsort(times, n, sizeof(*times), compare_times);
        return times[n / 10];
}

/* Not @keep, and none that is reserved: an append is going on with it. */
static void forget_some(struct producer_state *s, const struct producer *keep)
{
        size_t cursor = 0, left = map_count(s->by_id) / 10;
        int64_t until_ms = silent_until(s);
        void *value;

        while (left > 0 && map_next(s->by_id, &cursor, NULL, NULL, &value)) {
                struct producer *p = value;

                if (p == keep || p->epoch < 0 || p->last_append_ms > until_ms)
                        continue;
                (void)map_remove_int(s->by_id, p->id); /* it is @p */
                free(p);
                left--;
        }
}

int producer_state_update(struct producer_state *s, int64_t producer_id, int16_t epoch,
                          const struct producer_batch *b)
{
        struct producer *p;
        int r = producer_get(s, producer_id, &p);

        if (r < 0)
                return r;
        begin_epoch(p, epoch);
        if (p->n == PRODUCER_BATCHES) {
                memmove(p->batches, p->batches + 1, sizeof(p->batches) - sizeof(p->batches[0]));
                p->n--;
        }
        p->batches[p->n++] = *b;
        p->last_append_ms = b->timestamp_ms;
        if (map_count(s->by_id) > PRODUCERS_MAX)
                forget_some(s, p);
        return 0;
}

int producer_state_marker(struct producer_state *s, int64_t producer_id, int16_t epoch, int64_t now_ms)
{
        struct producer *p;
        int r = producer_get(s, producer_id, &p);

        if (r < 0)
                return r;
        begin_epoch(p, epoch);
        p->last_append_ms = now_ms;
        return 0;
}

size_t producer_state_expire(struct producer_state *s, int64_t now_ms, int64_t max_age_ms)
{
        size_t cursor = 0, n = 0;
        void *value;

        while (map_next(s->by_id, &cursor, NULL, NULL, &value)) {
                struct producer *p = value;

                if (now_ms - p->last_append_ms <= max_age_ms)
                        continue;
                (void)map_remove_int(s->by_id, p->id); /* it is @p */
                free(p);
                n++;
        }
        return n;
}

/* --- snapshots --- */

static void put16(uint8_t **at, int16_t v)
{
        uint16_t be = htobe16((uint16_t)v);

        memcpy(*at, &be, 2);
        *at += 2;
}

static void put32(uint8_t **at, int32_t v)
{
        uint32_t be = htobe32((uint32_t)v);

        memcpy(*at, &be, 4);
        *at += 4;
}

static void put64(uint8_t **at, int64_t v)
{
        uint64_t be = htobe64((uint64_t)v);

        memcpy(*at, &be, 8);
        *at += 8;
}

static int16_t take16(const uint8_t **at)
{
        uint16_t be;

        memcpy(&be, *at, 2);
        *at += 2;
        return (int16_t)be16toh(be);
}

static int32_t take32(const uint8_t **at)
{
        uint32_t be;

        memcpy(&be, *at, 4);
        *at += 4;
        return (int32_t)be32toh(be);
}

static int64_t take64(const uint8_t **at)
{
        uint64_t be;

        memcpy(&be, *at, 8);
        *at += 8;
        return (int64_t)be64toh(be);
}

static int encode_entry(const struct producer *p, const struct producer_batch *b, struct buf *out)
{
        uint8_t raw[SNAPSHOT_ENTRY], *at = raw;

        put64(&at, p->id);
        put16(&at, p->epoch);
        put32(&at, b->last_sequence);
        put64(&at, b->last_offset);
        put32(&at, b->offset_delta);
        put64(&at, b->timestamp_ms);
        put32(&at, -1); /* coordinator epoch: no transactions here */
        put64(&at, -1);
        return buf_append(out, raw, sizeof(raw));
}

static int encode_producer(const struct producer *p, struct buf *out, int32_t *count)
{
        struct producer_batch none = {
                .last_sequence = -1, .last_offset = -1, .timestamp_ms = p->last_append_ms};
        int r = 0;

        if (p->epoch < 0)
                return 0;
        *count += MAX(p->n, 1);
        if (p->n == 0)
                return encode_entry(p, &none, out);
        for (uint8_t i = 0; r == 0 && i < p->n; i++)
                r = encode_entry(p, &p->batches[i], out);
        return r;
}

int producer_state_encode(const struct producer_state *s, struct buf *out)
{
        uint8_t head[SNAPSHOT_HEAD] = {0}, *at = head;
        size_t cursor = 0, start = out->len;
        int32_t count = 0;
        void *p;
        int r = buf_append(out, head, sizeof(head));

        while (r == 0 && map_next(s->by_id, &cursor, NULL, NULL, &p))
                r = encode_producer(p, out, &count);
        if (r < 0)
                return r;
        at = out->data + start + SNAPSHOT_CRC_END;
        put32(&at, count);
        at = out->data + start;
        put16(&at, SNAPSHOT_VERSION);
        put32(&at,
              (int32_t)crc32c(0, out->data + start + SNAPSHOT_CRC_END, out->len - start - SNAPSHOT_CRC_END));
        return 0;
}

static int decode_entry(struct producer_state *s, const uint8_t *at)
{
        struct producer_batch b;
        int64_t id = take64(&at);
        int16_t epoch = take16(&at);

        b.last_sequence = take32(&at);
        b.last_offset = take64(&at);
        b.offset_delta = take32(&at);
        b.timestamp_ms = take64(&at);
        if (id < 0 || epoch < 0 || b.last_sequence < -1 || b.last_offset < -1 || b.offset_delta < 0)
                return -EBADMSG;
        if (b.last_sequence < 0 || b.last_offset < 0)
                return producer_state_marker(s, id, epoch, b.timestamp_ms);
        if (b.offset_delta > b.last_offset)
                return -EBADMSG;
        /* The first sequence is not stored. Undo the wrap if there was one. */
        b.first_sequence = b.last_sequence >= b.offset_delta
                                   ? b.last_sequence - b.offset_delta
                                   : INT32_MAX - (b.offset_delta - b.last_sequence - 1);
        return producer_state_update(s, id, epoch, &b);
}

int producer_state_decode(struct producer_state *s, const uint8_t *data, size_t len)
{
        const uint8_t *at = data;
        int32_t count;
        int r = 0;

        producer_state_clear(s);
        if (len < SNAPSHOT_HEAD || take16(&at) != SNAPSHOT_VERSION)
                return -EBADMSG;
        if ((uint32_t)take32(&at) != crc32c(0, data + SNAPSHOT_CRC_END, len - SNAPSHOT_CRC_END))
                return -EBADMSG;
        count = take32(&at);
        if (count < 0 || (size_t)count != (len - SNAPSHOT_HEAD) / SNAPSHOT_ENTRY ||
            (len - SNAPSHOT_HEAD) % SNAPSHOT_ENTRY != 0)
                return -EBADMSG;
        for (int32_t i = 0; r == 0 && i < count; i++, at += SNAPSHOT_ENTRY)
                r = decode_entry(s, at);
        if (r < 0)
                producer_state_clear(s);
        return r;
}
