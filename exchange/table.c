#include "exchange/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct table table_of(size_t key_offset, size_t key_size)
{
    return (struct table){.key_offset = key_offset, .key_size = key_size};
}

void table_fini(struct table *table)
{
    free(table->slots);
    *table = table_of(table->key_offset, table->key_size);
}

static const uint8_t *key_of(const struct table *table, const void *element)
{
    return (const uint8_t *)element + table->key_offset;
}

/* Eight bytes at a time, each step a multiply and a fold. Callers' ids are random or hashed; how many one
 * account may have is capped, which bounds what chosen collisions could cost. */
static size_t hash_key(const struct table *table, const uint8_t *key)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    for (size_t at = 0; at < table->key_size; at += 8) {
        uint64_t word = 0;
        size_t size = table->key_size - at < 8 ? table->key_size - at : 8;
        memcpy(&word, key + at, size);
        state = (state ^ word) * UINT64_C(0xff51afd7ed558ccd);
        state ^= state >> 32;
    }
    return (size_t)state;
}

static size_t position_of(const struct table *table, const uint8_t *key)
{
    size_t mask = table->capacity - 1;
    size_t at = hash_key(table, key) & mask;
    while (table->slots[at] != NULL &&
           memcmp(key_of(table, table->slots[at]), key, table->key_size) != 0) {
        at = (at + 1) & mask;
    }
    return at;
}

static bool grow(struct table *table)
{
    struct table larger = *table;
    larger.capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
    larger.slots = calloc(larger.capacity, sizeof *larger.slots);
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] != NULL) {
            larger.slots[position_of(&larger, key_of(table, table->slots[i]))] = table->slots[i];
        }
    }
    free(table->slots);
    *table = larger;
    return true;
}

bool table_insert(struct table *table, void *element)
{
    if (2 * (table->count + 1) > table->capacity && !grow(table)) {
        return false;
    }
    size_t at = position_of(table, key_of(table, element));
    assert(table->slots[at] == NULL);
    table->slots[at] = element;
    table->count++;
    return true;
}

void *table_find(const struct table *table, const void *key)
{
    return table->capacity == 0 ? NULL : table->slots[position_of(table, key)];
}

void table_remove(struct table *table, const void *key)
{
    assert(table->capacity > 0);
    size_t mask = table->capacity - 1;
    size_t hole = position_of(table, key);
    assert(table->slots[hole] != NULL);
    table->slots[hole] = NULL;
    table->count--;
    /* Close the gap: move back whatever would no longer be reached (Knuth, TAOCP 6.4, algorithm R). */
    for (size_t at = (hole + 1) & mask; table->slots[at] != NULL; at = (at + 1) & mask) {
        size_t home = hash_key(table, key_of(table, table->slots[at])) & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            table->slots[at] = NULL;
            hole = at;
        }
    }
}
