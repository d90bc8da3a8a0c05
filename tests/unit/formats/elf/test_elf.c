#include "formats/elf/elf.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* A file under construction: a header, three program headers, the loader's path, the dynamic
 * section and its names. Every address is 0x1000 above the offset. */
enum {
    SIZE = 1024,
    HEADERS = 64,
    LOADER = 256,
    DYNAMIC = 320,
    TEXTS = 640,
    BASE = 0x1000,
    LOAD = 1,
    DYNAMIC_SEGMENT = 2,
    INTERPRETER = 3,
};

struct file {
    uint8_t bytes[SIZE];
    size_t length;
    size_t entries; /* of the dynamic section */
};

static void put_number(uint8_t *at, uint64_t value, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}

static void put_segment(struct file *file, size_t index, uint32_t type, uint64_t offset,
                        uint64_t size)
{
    uint8_t *header = file->bytes + HEADERS + index * 56;
    put_number(header, type, 4);
    put_number(header + 8, offset, 8);
    put_number(header + 16, offset + BASE, 8);
    put_number(header + 32, size, 8);
}

static void put_entry(struct file *file, uint64_t tag, uint64_t value)
{
    uint8_t *entry = file->bytes + DYNAMIC + file->entries++ * 16;
    put_number(entry, tag, 8);
    put_number(entry + 8, value, 8);
    put_segment(file, 2, DYNAMIC_SEGMENT, DYNAMIC, file->entries * 16);
}

static struct file dynamic_file(void)
{
    struct file file = {.length = SIZE};
    memcpy(file.bytes, "\177ELF\2\1\1", 7);
    put_number(file.bytes + 16, 3, 2);
    put_number(file.bytes + 18, 62, 2);
    put_number(file.bytes + 32, HEADERS, 8);
    put_number(file.bytes + 54, 56, 2);
    put_number(file.bytes + 56, 3, 2);
    put_segment(&file, 0, LOAD, 0, SIZE);
    put_segment(&file, 1, INTERPRETER, LOADER, 16);
    memcpy(file.bytes + LOADER, "/lib64/ld.so.2", 15);
    memcpy(file.bytes + TEXTS, "\0libm.so.6\0libc.so.6\0/old\0$ORIGIN/lib", 38);
    put_entry(&file, 1, 1); /* before the names' address, as linkers write */
    put_entry(&file, 1, 11);
    put_entry(&file, 5, TEXTS + BASE);
    return file;
}

static bool read_bytes(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct file *file = context;
    ck_assert_uint_le(offset, file->length);
    ck_assert_uint_le(length, file->length - offset);
    memcpy(ret_bytes, file->bytes + offset, length);
    return true;
}

static struct elf elf;
static struct problem problem;
static enum elf_status read_of(struct file *file)
{
    const struct elf_source source = {.size = file->length, .read = read_bytes, .context = file};
    return elf_read(&source, &elf, &problem);
}

START_TEST(a_program_names_its_loader_and_its_libraries)
{
    struct file file = dynamic_file();
    put_entry(&file, 0, 0);
    put_entry(&file, 1, 11); /* behind the end, so it does not count */
    ck_assert_int_eq(read_of(&file), ELF_OK);
    ck_assert_str_eq(elf.machine, "x86_64");
    ck_assert(elf.is_program);
    ck_assert_str_eq(elf.interpreter, "/lib64/ld.so.2");
    ck_assert_uint_eq(elf.needed_count, 2);
    ck_assert_str_eq(elf.needed[0], "libm.so.6");
    ck_assert_str_eq(elf.needed[1], "libc.so.6");
    ck_assert_str_eq(elf.folders, "");
}
END_TEST

START_TEST(a_runpath_counts_before_an_rpath_in_either_order)
{
    for (int turn = 0; turn < 2; turn++) {
        struct file file = dynamic_file();
        put_entry(&file, turn == 0 ? 15 : 29, turn == 0 ? 21 : 26);
        put_entry(&file, turn == 0 ? 29 : 15, turn == 0 ? 26 : 21);
        ck_assert_int_eq(read_of(&file), ELF_OK);
        ck_assert(elf.has_runpath);
        ck_assert_str_eq(elf.folders, "$ORIGIN/lib");
    }
    struct file file = dynamic_file();
    put_entry(&file, 15, 21);
    ck_assert_int_eq(read_of(&file), ELF_OK);
    ck_assert(!elf.has_runpath);
    ck_assert_str_eq(elf.folders, "/old");
}
END_TEST

START_TEST(a_static_program_needs_nothing)
{
    struct file file = dynamic_file();
    put_number(file.bytes + 56, 1, 2);
    ck_assert_int_eq(read_of(&file), ELF_OK);
    ck_assert_str_eq(elf.interpreter, "");
    ck_assert_uint_eq(elf.needed_count, 0);
}
END_TEST

START_TEST(other_files_are_foreign_and_other_machines_unfit)
{
    struct file file = dynamic_file();
    file.bytes[1] = 'F';
    ck_assert_int_eq(read_of(&file), ELF_FOREIGN);
    file.length = 0;
    ck_assert_int_eq(read_of(&file), ELF_FOREIGN);
    file = dynamic_file();
    put_number(file.bytes + 18, 3, 2); /* i386 */
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    file.bytes[4] = 1; /* 32 bits */
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    put_number(file.bytes + 16, 1, 2); /* an object file */
    ck_assert_int_eq(read_of(&file), ELF_OK);
    ck_assert(!elf.is_program);
}
END_TEST

START_TEST(offsets_and_counts_that_lead_nowhere_are_refused)
{
    struct file file = dynamic_file();
    put_number(file.bytes + 32, UINT64_MAX, 8); /* program headers */
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    put_number(file.bytes + 56, ELF_HEADERS_MAX + 1, 2);
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    put_segment(&file, 1, INTERPRETER, UINT64_MAX - 4, 16);
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    put_entry(&file, 1, UINT64_MAX); /* a name */
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    put_segment(&file, 0, LOAD, 0, 16); /* no segment holds the names */
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    memset(file.bytes + TEXTS, 'x', SIZE - TEXTS); /* a name without an end */
    ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    file = dynamic_file();
    put_segment(&file, 2, DYNAMIC_SEGMENT, DYNAMIC, UINT64_MAX);
    ck_assert_int_eq(read_of(&file), ELF_OK); /* the end comes first */
    for (size_t length = 4; length < TEXTS; length++) {
        file = dynamic_file();
        file.length = length;
        ck_assert_int_eq(read_of(&file), ELF_UNFIT);
    }
}
END_TEST

static bool read_nothing(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    (void)context;
    (void)offset;
    (void)ret_bytes;
    (void)length;
    return false;
}

START_TEST(a_file_that_cannot_be_read_is_not_unfit)
{
    const struct elf_source source = {.size = SIZE, .read = read_nothing};
    ck_assert_int_eq(elf_read(&source, &elf, &problem), ELF_UNREADABLE);
}
END_TEST

SUITE("elf", NULL, NULL, TEST(a_program_names_its_loader_and_its_libraries),
      TEST(a_runpath_counts_before_an_rpath_in_either_order), TEST(a_static_program_needs_nothing),
      TEST(other_files_are_foreign_and_other_machines_unfit),
      TEST(offsets_and_counts_that_lead_nowhere_are_refused),
      TEST(a_file_that_cannot_be_read_is_not_unfit))
