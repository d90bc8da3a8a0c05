/* exchange/table.h - finds an element by the fixed-size key inside it: open addressing, linear
 * probing.
 *
 * The table borrows the elements. It is never iterated: order in the exchange comes from lists and
 * numbers, never from where a hash put something. Pure. */
#ifndef BOURSE_EXCHANGE_TABLE_H
#define BOURSE_EXCHANGE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_slot {
    void *element; /* NULL: it is free */
    uint64_t hash; /* of its key: elements lie far apart, and most need not be looked at */
};

struct table {
    uint64_t hash_key[2];
    struct table_slot *slots;
    size_t capacity; /* a power of two, or 0 before the first insertion */
    size_t count;
    size_t key_offset, key_size;
};

/* `hash_key` decides where elements lie and nothing else: a secret one keeps others from choosing
 * keys that collide. */
struct table table_of(size_t key_offset, size_t key_size, const uint64_t hash_key[2]);
void table_fini(struct table *table);
/* False when out of memory; nothing changed then. The key must not be there yet. */
bool table_insert(struct table *table, void *element);
void *table_find(const struct table *table, const void *key); /* NULL: none */
/* The same by a hash that is known: table_hash_of the key. */
uint64_t table_hash_of(const struct table *table, const void *key);
bool table_insert_as(struct table *table, void *element, uint64_t hash);
void *table_find_as(const struct table *table, const void *key, uint64_t hash);
/* The key will be looked for soon: where it would be is brought closer to the processor, and
 * nothing waits for that. */
void table_expect(const struct table *table, const void *key);
/* The same, when that has come, of the first `size` bytes of its element, if it seems to be
 * there. */
void table_expect_element(const struct table *table, const void *key, size_t size);
void table_remove(struct table *table, const void *key);
/* SipHash-1-3 (Aumasson, Bernstein, INDOCRYPT 2012) of `size` bytes: fewer rounds than for a
 * signature, as many as tables of Rust and Python have against keys that are made to collide. */
uint64_t table_hash(const uint64_t hash_key[2], const void *bytes, size_t size);

#endif
