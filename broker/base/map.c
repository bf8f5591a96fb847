/* Entries stand in one dense array; an index of slots (linear probing) finds them by hash.
 *
 * Removal moves the last entry into the hole and closes the gap in the index by shifting its cluster back, so
 * there are no tombstones and a map that churns does not degrade. The cursor walks the dense array from its
 * end: the entry moved into the hole has been visited already, which is what makes removal while iterating
 * safe. Iteration order depends on the history of calls alone, never on the hash, so seeded simulations
 * repeat. */
#include "base/map.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_SLOTS 16

struct entry {
        void *key;
        size_t key_len;
        uint64_t hash;
        void *value;
};

struct map {
        struct entry *entries;
        size_t count;
        uint32_t *slots; /* 0: free, else index of the entry + 1 */
        size_t n_slots;  /* power of two; entries has room for max_load() of it */
};

/* A hash of our own: 8 bytes a step through a 64x64->128 bit multiply whose halves are folded. Seeded once a
 * process, because topic and client names come from the network and must not be able to choose their slots.
 */
static uint64_t hash_seed;

static void seed_once(void)
{
        if (getrandom(&hash_seed, sizeof(hash_seed), GRND_NONBLOCK) != sizeof(hash_seed))
                hash_seed =
                        (uint64_t)(uintptr_t)&hash_seed; /* early boot: at least the address space layout */
}

static uint64_t fold_multiply(uint64_t a, uint64_t b)
{
        unsigned __int128 p = (unsigned __int128)a * b;

        return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t hash_bytes(const void *key, size_t len)
{
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        const uint8_t *p = key;
        uint64_t h, word;
        size_t n = len;

        (void)pthread_once(&once, seed_once);
        h = hash_seed ^ (len * UINT64_C(0x9e3779b97f4a7c15));
        for (; n >= 8; p += 8, n -= 8) {
                memcpy(&word, p, 8);
                h = fold_multiply(h ^ word, UINT64_C(0xd6e8feb86659fd93) ^ hash_seed);
        }
        word = 0;
        if (n > 0)
                memcpy(&word, p, n);
        h = fold_multiply(h ^ word ^ UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db) ^ hash_seed);
        return h ^ (h >> 32);
}

static size_t max_load(size_t n_slots)
{
        return n_slots / 4 * 3;
}

struct map *map_new(void)
{
        return calloc(1, sizeof(struct map));
}

struct map *map_free(struct map *m)
{
        if (!m)
                return NULL;
        map_clear(m);
        free(m->entries);
        free(m->slots);
        free(m);
        return NULL;
}

/* The slot that holds the key, or the free slot where it belongs. There is always a free slot. */
static size_t find_slot(const struct map *m, const void *key, size_t key_len, uint64_t hash)
{
        size_t mask = m->n_slots - 1, i = hash & mask;

        for (; m->slots[i]; i = (i + 1) & mask) {
                const struct entry *e = &m->entries[m->slots[i] - 1];

                if (e->hash == hash && e->key_len == key_len && memcmp(e->key, key, key_len) == 0)
                        break;
        }
        return i;
}

static size_t slot_of_entry(const struct map *m, size_t index)
{
        size_t mask = m->n_slots - 1, i = m->entries[index].hash & mask;

        while (m->slots[i] != index + 1)
                i = (i + 1) & mask;
        return i;
}

static int grow(struct map *m)
{
        size_t n_slots = m->n_slots ? m->n_slots * 2 : FIRST_SLOTS;
        cleanup_with(freep) uint32_t *slots = NULL;
        struct entry *entries;

        if (max_load(n_slots) >= UINT32_MAX)
                return -ENOMEM;
        slots = calloc(n_slots, sizeof(*slots));
        if (!slots)
                return -ENOMEM;
        entries = reallocarray(m->entries, max_load(n_slots), sizeof(*entries));
        if (!entries)
                return -ENOMEM;
        m->entries = entries;
        for (size_t k = 0; k < m->count; k++) {
                size_t i = entries[k].hash & (n_slots - 1);

                while (slots[i])
                        i = (i + 1) & (n_slots - 1);
                slots[i] = (uint32_t)k + 1;
        }
        free(m->slots);
        m->slots = TAKE_PTR(slots);
        m->n_slots = n_slots;
        return 0;
}

void *map_get(const struct map *m, const void *key, size_t key_len)
{
        uint32_t at;

        if (m->count == 0)
                return NULL;
        at = m->slots[find_slot(m, key, key_len, hash_bytes(key, key_len))];
        return at ? m->entries[at - 1].value : NULL;
}

static int append_entry(struct map *m, const void *key, size_t key_len, uint64_t hash, void *value)
{
        cleanup_with(freep) void *copy = NULL;
        int r;

        if (m->count == max_load(m->n_slots)) {
                r = grow(m);
                if (r < 0)
                        return r;
        }
        copy = malloc(MAX(key_len, (size_t)1));
        if (!copy)
                return -ENOMEM;
        if (key_len > 0)
                memcpy(copy, key, key_len);
        m->slots[find_slot(m, key, key_len, hash)] = (uint32_t)m->count + 1;
        m->entries[m->count++] = (struct entry){
                .key = TAKE_PTR(copy),
                .key_len = key_len,
                .hash = hash,
                .value = value,
        };
        return 0;
}

static struct entry *find_entry(const struct map *m, const void *key, size_t key_len, uint64_t hash)
{
        uint32_t at;

        if (m->count == 0)
                return NULL;
        at = m->slots[find_slot(m, key, key_len, hash)];
        return at ? &m->entries[at - 1] : NULL;
}

int map_put(struct map *m, const void *key, size_t key_len, void *value)
{
        uint64_t hash = hash_bytes(key, key_len);

        if (find_entry(m, key, key_len, hash))
                return -EEXIST;
        return append_entry(m, key, key_len, hash, value);
}

int map_set(struct map *m, const void *key, size_t key_len, void *value, void **ret_old)
{
        uint64_t hash = hash_bytes(key, key_len);
        struct entry *e = find_entry(m, key, key_len, hash);
        void *old = NULL;
        int r;

        if (e) {
                old = e->value;
                e->value = value;
        } else {
                r = append_entry(m, key, key_len, hash, value);
                if (r < 0)
                        return r;
        }
        if (ret_old)
                *ret_old = old;
        return 0;
}

/* Free slot @hole and pull back every follower of its cluster that would otherwise not be found any more. */
static void close_gap(struct map *m, size_t hole)
{
        size_t mask = m->n_slots - 1;

        for (size_t i = (hole + 1) & mask; m->slots[i]; i = (i + 1) & mask) {
                size_t home = m->entries[m->slots[i] - 1].hash & mask;

                /* It may move back only if its home is not after the hole. */
                if (((i - home) & mask) < ((i - hole) & mask))
                        continue;
                m->slots[hole] = m->slots[i];
                hole = i;
        }
        m->slots[hole] = 0;
}

void *map_remove(struct map *m, const void *key, size_t key_len)
{
        size_t slot, index, last;
        void *value;

        if (m->count == 0)
                return NULL;
        slot = find_slot(m, key, key_len, hash_bytes(key, key_len));
        if (!m->slots[slot])
                return NULL;
        index = m->slots[slot] - 1;
        last = m->count - 1;
        value = m->entries[index].value;
        close_gap(m, slot);
        free(m->entries[index].key); /* @key may be this very memory: not read below */
        if (index != last) {
                m->slots[slot_of_entry(m, last)] = (uint32_t)index + 1;
                m->entries[index] = m->entries[last];
        }
        m->count = last;
        return value;
}

size_t map_count(const struct map *m)
{
        return m->count;
}

void map_clear(struct map *m)
{
        for (size_t i = 0; i < m->count; i++)
                free(m->entries[i].key);
        m->count = 0;
        if (m->slots)
                memset(m->slots, 0, m->n_slots * sizeof(*m->slots));
}

/* The cursor is 0 at first, then the complement of the index returned last. */
bool map_next(const struct map *m, size_t *cursor, const void **ret_key, size_t *ret_len, void **ret_value)
{
        size_t left = *cursor == 0 ? m->count : ~*cursor;
        const struct entry *e;

        if (left == 0)
                return false;
        e = &m->entries[left - 1];
        *cursor = ~(left - 1);
        if (ret_key)
                *ret_key = e->key;
        if (ret_len)
                *ret_len = e->key_len;
        if (ret_value)
                *ret_value = e->value;
        return true;
}

void *map_get_str(const struct map *m, const char *key)
{
        return map_get(m, key, strlen(key));
}

int map_put_str(struct map *m, const char *key, void *value)
{
        return map_put(m, key, strlen(key), value);
}

void *map_remove_str(struct map *m, const char *key)
{
        return map_remove(m, key, strlen(key));
}

void *map_get_int(const struct map *m, int64_t key)
{
        return map_get(m, &key, sizeof(key));
}

int map_put_int(struct map *m, int64_t key, void *value)
{
        return map_put(m, &key, sizeof(key), value);
}

void *map_remove_int(struct map *m, int64_t key)
{
        return map_remove(m, &key, sizeof(key));
}
