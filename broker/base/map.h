/* Hash map from byte-string keys to pointers (open addressing, keys copied, values borrowed).
 * Not thread-safe. Iteration order is unspecified; do not change the map while iterating, except
 * for map_remove() of the entry the cursor just returned. A key's memory stays where it is until its entry
 * goes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

struct map;

struct map *map_new(void);           /* NULL on out of memory */
struct map *map_free(struct map *m); /* frees keys, not values; returns NULL; accepts NULL */
DEFINE_FREEP(struct map, map_free)

void *map_get(const struct map *m, const void *key, size_t key_len);
/* Returns 0, -EEXIST when the key is present (the map is unchanged), -ENOMEM. @value must not be NULL. */
int map_put(struct map *m, const void *key, size_t key_len, void *value) must_check;
/* Insert or replace; the replaced value (or NULL) is written to *ret_old if not NULL. 0 or -ENOMEM. */
int map_set(struct map *m, const void *key, size_t key_len, void *value, void **ret_old) must_check;
void *map_remove(struct map *m, const void *key, size_t key_len); /* the removed value, or NULL */
size_t map_count(const struct map *m);
void map_clear(struct map *m);

/* Start with *cursor = 0; returns false at the end. @ret_key/@ret_len may be NULL. */
bool map_next(const struct map *m, size_t *cursor, const void **ret_key, size_t *ret_len, void **ret_value);

/* Convenience for the two common key kinds. */
void *map_get_str(const struct map *m, const char *key);
int map_put_str(struct map *m, const char *key, void *value) must_check;
void *map_remove_str(struct map *m, const char *key);
void *map_get_int(const struct map *m, int64_t key);
int map_put_int(struct map *m, int64_t key, void *value) must_check;
void *map_remove_int(struct map *m, int64_t key);
