#include "exchange/state/table.h"

#include "base/ahead.h"
#include "exchange/lifecycle.h"

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

struct sip {
    uint64_t v0, v1, v2, v3;
};

static inline struct sip sip_round(struct sip s)
{
    s.v0 += s.v1;
    s.v2 += s.v3;
    s.v1 = rotate(s.v1, 13) ^ s.v0;
    s.v3 = rotate(s.v3, 16) ^ s.v2;
    s.v0 = rotate(s.v0, 32) + s.v3;
    s.v2 += s.v1;
    s.v3 = rotate(s.v3, 21) ^ s.v0;
    s.v1 = rotate(s.v1, 17) ^ s.v2;
    s.v2 = rotate(s.v2, 32);
    return s;
}

static inline struct sip sip_word(struct sip s, uint64_t word)
{
    s.v3 ^= word;
    s = sip_round(s);
    s.v0 ^= word;
    return s;
}

static inline uint64_t half_word(const uint8_t *bytes)
{
    return (uint64_t)bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16 |
           (uint64_t)bytes[3] << 24;
}

static inline uint64_t whole_word(const uint8_t *bytes) /* the compiler makes this one load */
{
    return half_word(bytes) | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40 |
           (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

/* Reads fewer than eight bytes. */
static inline uint64_t last_word(const uint8_t *bytes, size_t size)
{
    size_t at = size & 4; /* all keys but texts consist of four-byte words */
    uint64_t word = at != 0 ? half_word(bytes) : 0;
    for (; at < size; at++) {
        word |= (uint64_t)bytes[at] << (8 * at);
    }
    return word;
}

uint64_t table_hash(const uint64_t hash_key[2], const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    struct sip s = {
        hash_key[0] ^ UINT64_C(0x736f6d6570736575), hash_key[1] ^ UINT64_C(0x646f72616e646f6d),
        hash_key[0] ^ UINT64_C(0x6c7967656e657261), hash_key[1] ^ UINT64_C(0x7465646279746573)};
    size_t left = size;
    for (; left >= 8; left -= 8, at += 8) {
        s = sip_word(s, whole_word(at));
    }
    s = sip_word(s, last_word(at, left) | (uint64_t)size << 56);
    s.v2 ^= 0xff;
    s = sip_round(sip_round(sip_round(s)));
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t table_hash_of(const struct table *table, const void *key)
{
    return table_hash(table->hash_key, key, table->key_size);
}

/* Returns the slot of the key, or the free slot for it. */
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

/* No key is in the table twice, so growing compares no elements. */
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

bool table_insert_as(struct table *table, void *element, uint64_t hash)
{
    if (2 * (table->count + 1) > table->capacity && !grow(table)) {
        return false;
    }
    size_t at = position_of(table, key_of(table, element), hash);
    assert(table->slots[at].element == NULL);
    table->slots[at] = (struct table_slot){.element = element, .hash = hash};
    table->count++;
    return true;
}

bool table_insert(struct table *table, void *element)
{
    return table_insert_as(table, element, table_hash_of(table, key_of(table, element)));
}

void *table_find_as(const struct table *table, const void *key, uint64_t hash)
{
    return table->count == 0 ? NULL : table->slots[position_of(table, key, hash)].element;
}

void *table_find(const struct table *table, const void *key)
{
    return table->count == 0 ? NULL : table_find_as(table, key, table_hash_of(table, key));
}

void table_expect(const struct table *table, const void *key)
{
    if (table->count > 0) {
        line_ahead(&table->slots[(size_t)table_hash_of(table, key) & (table->capacity - 1)]);
    }
}

/* The look-up compares hashes and reads no element. */
void table_expect_element(const struct table *table, const void *key, size_t size)
{
    if (table->count == 0) {
        return;
    }
    const uint64_t hash = table_hash_of(table, key);
    const size_t mask = table->capacity - 1;
    size_t at = (size_t)hash & mask;
    while (table->slots[at].element != NULL && table->slots[at].hash != hash) {
        at = (at + 1) & mask;
    }
    if (table->slots[at].element != NULL) {
        memory_ahead(table->slots[at].element, size);
    }
}

void table_remove(struct table *table, const void *key)
{
    assert(table->capacity > 0);
    const size_t mask = table->capacity - 1;
    size_t hole = position_of(table, key, table_hash_of(table, key));
    assert(table->slots[hole].element != NULL);
    table->slots[hole].element = NULL;
    table->count--;
    /* The loop closes the gap by moving back each element that would no longer be reached (Knuth,
     * TAOCP 6.4, algorithm R). */
    for (size_t at = (hole + 1) & mask; table->slots[at].element != NULL; at = (at + 1) & mask) {
        const size_t home = (size_t)table->slots[at].hash & mask;
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->slots[hole] = table->slots[at];
            table->slots[at].element = NULL;
            hole = at;
        }
    }
}
