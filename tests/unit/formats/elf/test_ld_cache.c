#include "formats/elf/ld_cache.h"

#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { HEADER = 48, ENTRY = 24, TEXTS = HEADER + 3 * ENTRY };

static uint8_t bytes[TEXTS + 64];
static size_t length;

static void put_number(size_t at, uint32_t value)
{
    memcpy(bytes + at, &value, sizeof value);
}

static void put_entry(size_t index, uint32_t name, uint32_t path, uint8_t hardware)
{
    const size_t at = HEADER + index * ENTRY;
    put_number(at, 0x303);
    put_number(at + 4, name);
    put_number(at + 8, path);
    bytes[at + 16] = hardware;
}

/* Two libraries of one name, the first for special hardware. */
static void make(void)
{
    memset(bytes, 0, sizeof bytes);
    memcpy(bytes, "glibc-ld.so.cache1.1", 20);
    put_number(20, 3);
    memcpy(bytes + TEXTS, "liba.so\0/v3/liba.so\0/lib/liba.so\0libb.so", 41);
    put_entry(0, TEXTS, TEXTS + 8, 2);
    put_entry(1, TEXTS, TEXTS + 20, 0);
    put_entry(2, TEXTS + 33, TEXTS + 20, 0);
    length = sizeof bytes;
}

START_TEST(a_library_has_the_path_for_any_machine)
{
    size_t index = 0;
    make();
    ck_assert_str_eq(ld_cache_next(bytes, length, "liba.so", &index), "/lib/liba.so");
    ck_assert_ptr_null(ld_cache_next(bytes, length, "liba.so", &index));
    index = 0;
    ck_assert_ptr_nonnull(ld_cache_next(bytes, length, "libb.so", &index));
    index = 0;
    ck_assert_ptr_null(ld_cache_next(bytes, length, "lib", &index));
}
END_TEST

START_TEST(a_damaged_cache_has_no_libraries)
{
    size_t index = 0;
    make();
    put_number(20, UINT32_MAX); /* more entries than the file has */
    ck_assert_str_eq(ld_cache_next(bytes, length, "liba.so", &index), "/lib/liba.so");
    index = 0;
    ck_assert_ptr_null(ld_cache_next(bytes, length, "libc.so", &index));
    make();
    put_entry(1, TEXTS, UINT32_MAX, 0);
    index = 0;
    ck_assert_ptr_null(ld_cache_next(bytes, length, "liba.so", &index));
    make();
    bytes[19] = '2'; /* another version */
    index = 0;
    ck_assert_ptr_null(ld_cache_next(bytes, length, "liba.so", &index));
    make();
    for (size_t cut = 0; cut < TEXTS + 33; cut++) {
        index = 0;
        ck_assert_ptr_null(ld_cache_next(bytes, cut, "libb.so", &index));
    }
}
END_TEST

SUITE("ld_cache", NULL, NULL, TEST(a_library_has_the_path_for_any_machine),
      TEST(a_damaged_cache_has_no_libraries))
