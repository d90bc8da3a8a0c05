/* A table finds an element by the fixed-size key inside it, with open addressing and linear
 * probing.
 *
 * The table borrows the elements. Nobody iterates over a table: order in the exchange comes from
 * lists and numbers, never from hashes. */
#ifndef BOURSE_EXCHANGE_STATE_TABLE_H
#define BOURSE_EXCHANGE_STATE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_slot {
    void *element; /* NULL: the slot is free */
    uint64_t hash; /* hash of the key; most elements, which lie far apart, need no look */
};

struct table {
    uint64_t hash_key[2];
    struct table_slot *slots;
    size_t capacity; /* a power of two, or 0 before the first insertion */
    size_t count;
    size_t key_offset, key_size;
};

/* `hash_key` decides only where elements lie. A secret key keeps others from choosing keys that
 * collide. */
struct table table_of(size_t key_offset, size_t key_size, const uint64_t hash_key[2]);
void table_fini(struct table *table);
/* Returns false when memory is short; then nothing has changed. The key must not be in the
 * table. */
bool table_insert(struct table *table, void *element);
void *table_find(const struct table *table, const void *key); /* NULL: none */
/* The next calls do the same with a known hash: table_hash_of the key. */
uint64_t table_hash_of(const struct table *table, const void *key);
bool table_insert_as(struct table *table, void *element, uint64_t hash);
void *table_find_as(const struct table *table, const void *key, uint64_t hash);
/* Fetches the key's place into the processor's cache for a later look-up, without waiting. */
void table_expect(const struct table *table, const void *key);
/* Fetches the first `size` bytes of the element that seems to have the key. Call table_expect some
 * time before. */
void table_expect_element(const struct table *table, const void *key, size_t size);
void table_remove(struct table *table, const void *key);
/* Returns SipHash-1-3 (Aumasson, Bernstein, INDOCRYPT 2012) of `size` bytes. The few rounds suffice
 * against keys made to collide, as in the tables of Rust and Python; they would not for a
 * signature. */
uint64_t table_hash(const uint64_t hash_key[2], const void *bytes, size_t size);

#endif
