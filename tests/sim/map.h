/* tests/sim/map.h - small open-addressed tables from fixed bytes to numbers, for the oracle's
 * models. */
#ifndef BOURSE_TESTS_SIM_MAP_H
#define BOURSE_TESTS_SIM_MAP_H

#include "tests/sim/world.h"

#include <string.h>

enum { MAP_KEY_BYTES = 40 };

struct map_key {
    uint8_t bytes[MAP_KEY_BYTES];
};
struct map {
    struct map_key *keys;
    uint32_t *values; /* value + 1; 0: free */
    size_t capacity, count;
};

static inline uint64_t map_hash(const void *bytes, size_t length, uint64_t hash)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash ^ (hash >> 29);
}

static inline struct map_key map_key_of(const void *first, size_t first_length, uint64_t second)
{
    struct map_key key = {{0}};
    memcpy(key.bytes, first, first_length);
    memcpy(key.bytes + first_length, &second, sizeof second);
    return key;
}

static inline size_t map_place(const struct map *map, const struct map_key *key)
{
    size_t at =
        map_hash(key->bytes, sizeof key->bytes, UINT64_C(0xcbf29ce484222325)) & (map->capacity - 1);
    while (map->values[at] != 0 && memcmp(&map->keys[at], key, sizeof *key) != 0) {
        at = (at + 1) & (map->capacity - 1);
    }
    return at;
}

static inline bool map_get(const struct map *map, const struct map_key *key, uint32_t *ret_value)
{
    size_t at = map->capacity == 0 ? 0 : map_place(map, key);
    bool found = map->capacity > 0 && map->values[at] != 0;
    if (found && ret_value != NULL) {
        *ret_value = map->values[at] - 1;
    }
    return found;
}

/* Adds or replaces. */
static inline void map_put(struct map *map, const struct map_key *key, uint32_t value)
{
    if (2 * (map->count + 1) > map->capacity) {
        struct map grown = {.capacity = map->capacity == 0 ? 256 : 2 * map->capacity};
        grown.keys = sim_alloc(grown.capacity * sizeof *grown.keys);
        grown.values = sim_alloc(grown.capacity * sizeof *grown.values);
        for (size_t i = 0; i < map->capacity; i++) {
            if (map->values[i] != 0) {
                size_t at = map_place(&grown, &map->keys[i]);
                grown.keys[at] = map->keys[i];
                grown.values[at] = map->values[i];
            }
        }
        grown.count = map->count;
        sim_free(map->keys);
        sim_free(map->values);
        *map = grown;
    }
    size_t at = map_place(map, key);
    map->count += map->values[at] == 0;
    map->keys[at] = *key;
    map->values[at] = value + 1;
}

#endif
