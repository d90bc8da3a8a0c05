/* The map holds structs by keys of 32 bytes, in open addressing. */
#include "audit/audit_internal.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

struct hash32 audit_id(const struct id128 *id)
{
    struct hash32 key = {{0}};
    memcpy(key.bytes, id->bytes, sizeof id->bytes);
    return key;
}

struct hash32 audit_number(uint64_t number)
{
    struct hash32 key = {{0}};
    for (size_t i = 0; i < 8; i++) {
        key.bytes[i] = (uint8_t)(number >> (8 * i));
    }
    return key;
}

/* Returns the first slot to look at for a key, by the key's FNV-1a hash. Keys are hashes, random
 * ids or small numbers. An operator who crafts ids slows only the audit of the operator's own
 * market. */
static size_t place_of(const struct hash32 *key, size_t capacity)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < sizeof key->bytes; i++) {
        hash = (hash ^ key->bytes[i]) * UINT64_C(1099511628211);
    }
    return (size_t)(hash ^ hash >> 32) & (capacity - 1);
}

static struct audit_slot *slot_of(struct audit_slot *slots, size_t capacity,
                                  const struct hash32 *key)
{
    size_t place = place_of(key, capacity);
    while (slots[place].value != NULL && !hash32_equal(&slots[place].key, key)) {
        place = (place + 1) & (capacity - 1);
    }
    return &slots[place];
}

void *audit_map_find(const struct audit_map *map, const struct hash32 *key)
{
    return map->capacity == 0 ? NULL : slot_of(map->slots, map->capacity, key)->value;
}

static bool grow(struct audit_map *map)
{
    size_t capacity = map->capacity == 0 ? FIRST_CAPACITY : 2 * map->capacity;
    struct audit_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value != NULL) {
            *slot_of(slots, capacity, &map->slots[i].key) = map->slots[i];
        }
    }
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return true;
}

void *audit_map_add(struct audit_map *map, const struct hash32 *key, size_t size)
{
    if (2 * map->count >= map->capacity && !grow(map)) {
        return NULL;
    }
    void *value = calloc(1, size);
    if (value != NULL) {
        *slot_of(map->slots, map->capacity, key) = (struct audit_slot){.key = *key, .value = value};
        map->count++;
    }
    return value;
}

void audit_map_fini(struct audit_map *map, void (*end)(void *value))
{
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value != NULL && end != NULL) {
            end(map->slots[i].value);
        }
        free(map->slots[i].value);
    }
    free(map->slots);
    *map = (struct audit_map){0};
}
