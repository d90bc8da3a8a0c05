#include "exchange/table.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS = 2000 };

struct element {
    int other;
    uint8_t key[20];
};

static const uint64_t no_key[2];

START_TEST(the_hash_is_siphash)
{
    uint8_t bytes[64];
    uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    uint8_t key_bytes[16];
    for (uint8_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = i;
        key_bytes[i % 16] = i % 16;
    }
    ck_assert(table_hash(key, bytes, 15) == UINT64_C(0xa129ca6149be45e5)); /* the paper's vector */
    for (size_t size = 0; size < sizeof bytes; size++) {
        uint8_t expected[8];
        ck_assert_int_eq(crypto_shorthash_siphash24(expected, bytes, size, key_bytes), 0);
        uint64_t hash = table_hash(key, bytes, size);
        for (int i = 0; i < 8; i++) {
            ck_assert_uint_eq((uint8_t)(hash >> (8 * i)), expected[i]);
        }
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

int main(void)
{
    Suite *suite = suite_create("table");
    TCase *tests = tcase_create("all");
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    tcase_add_test(tests, the_hash_is_siphash);
    tcase_add_test(tests, another_key_puts_elements_elsewhere_and_finds_them_all);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
