#include "provider/wasm/wasmtime_api.h"

#include "base/text.h"
#include "provider/kernel/library.h"

#include <elf.h>
#include <string.h>

bool wasmtime_api_load(const char *library, struct wasmtime_api *ret_api,
                       struct problem *ret_problem)
{
#define WASMTIME_NEEDED(result, name, arguments)                                                   \
    {#name, offsetof(struct wasmtime_api, name), false},
#define WASMTIME_OPTIONAL(result, name, arguments)                                                 \
    {#name, offsetof(struct wasmtime_api, name), true},
    static const struct library_function functions[] = {WASMTIME_CALLS(
        WASMTIME_NEEDED) WASMTIME_OPTIONAL_CALLS(WASMTIME_OPTIONAL){
        "wasi_config_preopen_dir", offsetof(struct wasmtime_api, wasi_config_preopen_dir), false}};
#undef WASMTIME_NEEDED
#undef WASMTIME_OPTIONAL
    static const struct library_table table = {.absence = "wasmtime's library does not load",
                                               .title = "the library",
                                               .verdict =
                                                   "so it is no wasmtime of version 28 to 48 with "
                                                   "its compiler and WASI",
                                               .functions = functions,
                                               .count = sizeof functions / sizeof functions[0]};
    void *handle = library_load(library, &table, ret_api, ret_problem);
    if (handle != NULL) {
        ret_api->library = handle;
    }
    return handle != NULL;
}

const char *wasmtime_api_trap(unsigned code)
{
    static const char *const phrases[WASMTIME_CODES] = {
        [WASMTIME_STACK_OVERFLOW] = "its calls are nested too deeply",
        [WASMTIME_MEMORY_OUT_OF_BOUNDS] = "memory access out of bounds",
        [WASMTIME_HEAP_MISALIGNED] = "an atomic operation on an address that is not aligned",
        [WASMTIME_TABLE_OUT_OF_BOUNDS] = "table access out of bounds",
        [WASMTIME_INDIRECT_CALL_TO_NULL] = "a call of an element of a table that is null",
        [WASMTIME_BAD_SIGNATURE] = "a call of an element of a table that has another type",
        [WASMTIME_INTEGER_OVERFLOW] = "integer overflow",
        [WASMTIME_DIVISION_BY_ZERO] = "divide by zero",
        [WASMTIME_BAD_CONVERSION] = "a number that no integer of the type can hold",
        [WASMTIME_UNREACHABLE] = "unreachable",
    };
    return code < WASMTIME_CODES ? phrases[code] : NULL;
}

/* ---------------------------------------------------------------- the version */

/* Bytes that somebody else made: each read is checked. */
struct bytes {
    const char *data;
    size_t size;
};

/* Returns a part of the bytes, or no bytes when they have no such part. */
static struct bytes part_of(struct bytes bytes, uint64_t offset, uint64_t size)
{
    const bool is_inside = offset <= bytes.size && size <= bytes.size - offset;
    return is_inside ? (struct bytes){bytes.data + offset, (size_t)size} : (struct bytes){NULL, 0};
}

/* Copies a struct from its place, which need not be aligned. Returns false when it does not fit. */
static bool copy_at(struct bytes bytes, uint64_t offset, void *ret_struct, size_t size)
{
    const struct bytes place = part_of(bytes, offset, size);
    if (place.data != NULL) {
        memcpy(ret_struct, place.data, size);
    }
    return place.data != NULL;
}

static bool has_name(struct bytes names, uint64_t offset, const char *name)
{
    const struct bytes found = part_of(names, offset, strlen(name) + 1);
    return found.data != NULL && memcmp(found.data, name, found.size) == 0;
}

/* Returns the section of the ELF file that has the name, or no bytes. */
static struct bytes find_section(struct bytes file, const char *name)
{
    Elf64_Ehdr head;
    Elf64_Shdr section;
    if (!copy_at(file, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof section ||
        !copy_at(file, head.e_shoff + (uint64_t)head.e_shstrndx * sizeof section, &section,
                 sizeof section)) {
        return (struct bytes){NULL, 0};
    }
    const struct bytes names = part_of(file, section.sh_offset, section.sh_size);
    for (size_t i = 0; i < head.e_shnum; i++) {
        if (copy_at(file, head.e_shoff + i * sizeof section, &section, sizeof section) &&
            has_name(names, section.sh_name, name)) {
            return part_of(file, section.sh_offset, section.sh_size);
        }
    }
    return (struct bytes){NULL, 0};
}

unsigned wasmtime_api_version(const char *compiled, size_t size, char *ret_text, size_t capacity)
{
    enum { DIGITS = 4 };
    const struct bytes section =
        find_section((struct bytes){compiled, size}, WASMTIME_VERSION_SECTION);
    ret_text[0] = '\0';
    if (section.size < 2 || section.data[0] != 0) {
        return 0;
    }
    const struct bytes version = part_of(section, 2, (unsigned char)section.data[1]);
    if (version.data == NULL) {
        return 0;
    }
    unsigned number = 0;
    for (size_t i = 0; i < version.size && i < DIGITS && version.data[i] != '.'; i++) {
        if (version.data[i] < '0' || version.data[i] > '9') {
            return 0;
        }
        number = number * 10 + (unsigned)(version.data[i] - '0');
    }
    text_printable(version.data, version.size, ret_text, capacity);
    return number;
}
