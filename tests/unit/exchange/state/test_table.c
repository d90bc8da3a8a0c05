#include "exchange/state/table.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 2000 };

struct element {
    int other;
    uint8_t key[20];
};

static const uint64_t no_key[2];

/* The hashes are of the bytes 0, 1, 2 ... under the key 00 01 .. 0f, as other implementations of
 * SipHash-1-3 have them. */
START_TEST(the_hash_is_siphash)
{
    static const struct {
        size_t size;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0xabac0158050fc4dc)},  {3, UINT64_C(0x8bf80ab8e7ddf7fb)},
        {8, UINT64_C(0x369095118d299a8e)},  {15, UINT64_C(0xd320d86d2a519956)},
        {16, UINT64_C(0xcc4fdd1a7d908b66)}, {20, UINT64_C(0xc0dc2f46a6cce040)},
        {63, UINT64_C(0x9d199062b7bbb3a8)},
    };
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    uint8_t bytes[64];
    for (uint8_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = i;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        ck_assert_uint_eq(table_hash(key, bytes, vectors[i].size), vectors[i].hash);
    }
}
END_TEST

START_TEST(another_key_puts_elements_elsewhere_and_finds_them_all)
{
    static struct element elements[ELEMENTS];
    const uint64_t other[2] = {1, 2};
    struct table tables[2] = {table_of(offsetof(struct element, key), 20, no_key),
                              table_of(offsetof(struct element, key), 20, other)};
    size_t same = 0;
    for (size_t i = 0; i < ELEMENTS; i++) {
        memset(elements[i].key, 0, sizeof elements[i].key);
        memcpy(elements[i].key, &i, sizeof i);
        ck_assert(table_insert(&tables[0], &elements[i]) && table_insert(&tables[1], &elements[i]));
    }
    for (size_t at = 0; at < tables[0].capacity; at++) {
        same += tables[0].slots[at].element != NULL &&
                tables[0].slots[at].element == tables[1].slots[at].element;
    }
    ck_assert_uint_lt(same, ELEMENTS / 20);
    for (size_t i = 0; i < ELEMENTS; i += 2) {
        table_remove(&tables[0], elements[i].key);
        table_remove(&tables[1], elements[i].key);
    }
    for (size_t i = 0; i < ELEMENTS; i++) {
        const void *expected = i % 2 == 0 ? NULL : &elements[i];
        ck_assert(table_find(&tables[0], elements[i].key) == expected);
        ck_assert(table_find(&tables[1], elements[i].key) == expected);
    }
    table_fini(&tables[0]);
    table_fini(&tables[1]);
}
END_TEST

SUITE("table", NULL, NULL, TEST(the_hash_is_siphash),
      TEST(another_key_puts_elements_elsewhere_and_finds_them_all))
