#include "exchange/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct table table_of(size_t key_offset, size_t key_size, const uint64_t hash_key[2])
{
    return (struct table){
        .hash_key = {hash_key[0], hash_key[1]}, .key_offset = key_offset, .key_size = key_size};
}

void table_fini(struct table *table)
{
    free(table->slots);
    *table = table_of(table->key_offset, table->key_size, table->hash_key);
}

static const uint8_t *key_of(const struct table *table, const void *element)
{
    return (const uint8_t *)element + table->key_offset;
}

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static void sip_rounds(uint64_t v[4], int count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[2] = rotate(v[2], 32);
    }
}

static uint64_t whole_word(const uint8_t *bytes) /* one load, where the compiler sees it */
{
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
           (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

static uint64_t last_word(const uint8_t *bytes, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++) {
        word |= (uint64_t)bytes[i] << (8 * i);
    }
    return word;
}

uint64_t table_hash(const uint64_t hash_key[2], const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t v[4] = {
        hash_key[0] ^ UINT64_C(0x736f6d6570736575), hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
        hash_key[0] ^ UINT64_C(0x6c7967656e657261), hash_key[1] ^ UINT64_C(0x7465646279746573)};
    for (size_t left = size;; left -= 8, at += 8) {
        bool is_last = left < 8;
        uint64_t word = is_last ? last_word(at, left) | (uint64_t)size << 56 : whole_word(at);
        v[3] ^= word;
        sip_rounds(v, 2);
        v[0] ^= word;
        if (is_last) {
            break;
        }
    }
    v[2] ^= 0xff;
    sip_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t hash_of(const struct table *table, const void *key)
{
    return table_hash(table->hash_key, key, table->key_size);
}

/* Where the key is, or would be. */
static size_t position_of(const struct table *table, const void *key, uint64_t hash)
{
    const size_t mask = table->capacity - 1;
    size_t at = (size_t)hash & mask;
    while (table->slots[at].element != NULL &&
           (table->slots[at].hash != hash ||
            memcmp(key_of(table, table->slots[at].element), key, table->key_size) != 0)) {
        at = (at + 1) & mask;
    }
    return at;
}

/* Elements differ, so that none need be looked at. */
static bool grow(struct table *table)
{
    const size_t capacity = table->capacity == 0 ? 16 : 2 * table->capacity;
    struct table_slot *slots = calloc(capacity, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i].element != NULL) {
            size_t at = (size_t)table->slots[i].hash & (capacity - 1);
            while (slots[at].element != NULL) {
                at = (at + 1) & (capacity - 1);
            }
            slots[at] = table->slots[i];
        }
    }
    free(table->slots);
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

bool table_insert(struct table *table, void *element)
{
    if (2 * (table->count + 1) > table->capacity && !grow(table)) {
        return false;
    }
    const uint8_t *key = key_of(table, element);
    const uint64_t hash = hash_of(table, key);
    size_t at = position_of(table, key, hash);
    assert(table->slots[at].element == NULL);
    table->slots[at] = (struct table_slot){.element = element, .hash = hash};
    table->count++;
    return true;
}

void *table_find(const struct table *table, const void *key)
{
    return table->count == 0 ? NULL
                             : table->slots[position_of(table, key, hash_of(table, key))].element;
}

void table_expect(const struct table *table, const void *key)
{
    if (table->count > 0) {
        __builtin_prefetch(&table->slots[(size_t)hash_of(table, key) & (table->capacity - 1)], 1);
    }
}

void table_remove(struct table *table, const void *key)
{
    assert(table->capacity > 0);
    const size_t mask = table->capacity - 1;
    size_t hole = position_of(table, key, hash_of(table, key));
    assert(table->slots[hole].element != NULL);
    table->slots[hole].element = NULL;
    table->count--;
    /* Close the gap: move back whatever would no longer be reached (Knuth, TAOCP 6.4, algorithm R). */
    for (size_t at = (hole + 1) & mask; table->slots[at].element != NULL; at = (at + 1) & mask) {
        const size_t home = (size_t)table->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            table->slots[at].element = NULL;
            hole = at;
        }
    }
}
