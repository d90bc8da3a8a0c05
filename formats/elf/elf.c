#include "formats/elf/elf.h"

#include <string.h>

/* The constants are those of the System V ABI, gABI 4.1. */
enum {
    HEADER_BYTES = 64,
    PROGRAM_HEADER_BYTES = 56,
    DYNAMIC_BYTES = 16,
    TYPE_EXECUTABLE = 2,
    TYPE_SHARED = 3,
    SEGMENT_LOAD = 1,
    SEGMENT_DYNAMIC = 2,
    SEGMENT_INTERPRETER = 3,
    TAG_END = 0,
    TAG_NEEDED = 1,
    TAG_TEXTS = 5, /* DT_STRTAB: the address of all names */
    TAG_RPATH = 15,
    TAG_RUNPATH = 29,
};

struct segment {
    uint32_t type;
    uint64_t offset, address, size;
};

struct reading {
    const struct elf_source *source;
    struct elf *elf;
    struct problem *problem;
    struct segment segments[ELF_HEADERS_MAX];
    size_t segment_count;
    uint64_t texts; /* offset of the names in the file */
};

static uint64_t number(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    for (size_t i = length; i-- > 0;) {
        value = value << 8 | bytes[i];
    }
    return value;
}

static enum elf_status unfit(struct reading *reading, const char *what)
{
    problem_set(reading->problem, "%s", what);
    return ELF_UNFIT;
}

static enum elf_status read_at(struct reading *reading, uint64_t offset, uint8_t *ret_bytes,
                               size_t length)
{
    const struct elf_source *source = reading->source;
    if (offset > source->size || length > source->size - offset) {
        return unfit(reading, "the ELF file is truncated, or an offset leads out of the file");
    }
    if (length > 0 && !source->read(source->context, offset, ret_bytes, length)) {
        problem_set(reading->problem, "the file cannot be read");
        return ELF_UNREADABLE;
    }
    return ELF_OK;
}

/* Reads a text up to its NUL, which must come within `capacity` bytes and within the file. */
static enum elf_status read_text(struct reading *reading, uint64_t offset, char *ret_text,
                                 size_t capacity)
{
    const uint64_t size = reading->source->size;
    const uint64_t rest = offset < size ? size - offset : 0;
    const size_t length = rest < capacity ? (size_t)rest : capacity;
    enum elf_status status = read_at(reading, offset, (uint8_t *)ret_text, length);
    if (status == ELF_OK && (length == 0 || memchr(ret_text, '\0', length) == NULL)) {
        status = unfit(reading, "a name of the ELF file has no end, or is too long");
    }
    return status;
}

static const char *machine_name(uint64_t machine)
{
    switch (machine) {
    case 62:
        return "x86_64";
    case 183:
        return "aarch64";
    case 243:
        return "riscv64";
    case 258:
        return "loongarch64";
    default:
        return NULL;
    }
}

static enum elf_status read_header(struct reading *reading, uint64_t *ret_offset)
{
    uint8_t header[HEADER_BYTES];
    if (reading->source->size < 4) {
        return ELF_FOREIGN;
    }
    enum elf_status status = read_at(reading, 0, header, 4);
    if (status != ELF_OK || memcmp(header, "\177ELF", 4) != 0) {
        return status != ELF_OK ? status : ELF_FOREIGN;
    }
    status = read_at(reading, 0, header, sizeof header);
    if (status != ELF_OK) {
        return status;
    }
    const uint64_t type = number(header + 16, 2);
    const uint64_t count = number(header + 56, 2);
    reading->elf->machine = machine_name(number(header + 18, 2));
    reading->elf->is_program = type == TYPE_EXECUTABLE || type == TYPE_SHARED;
    if (header[4] != 2 || header[5] != 1 || reading->elf->machine == NULL) {
        return unfit(reading, "the ELF file is for a kind of machine that the market does not "
                              "know; 64-bit little-endian x86_64, aarch64, riscv64 and "
                              "loongarch64 are known");
    }
    if (count > ELF_HEADERS_MAX || (count > 0 && number(header + 54, 2) != PROGRAM_HEADER_BYTES)) {
        return unfit(reading, "the ELF file has too many program headers, or odd ones");
    }
    reading->segment_count = (size_t)count;
    *ret_offset = number(header + 32, 8);
    return ELF_OK;
}

static enum elf_status read_segments(struct reading *reading, uint64_t offset)
{
    enum elf_status status = ELF_OK;
    for (size_t i = 0; status == ELF_OK && i < reading->segment_count; i++) {
        uint8_t header[PROGRAM_HEADER_BYTES];
        status = offset > UINT64_MAX - sizeof header
                     ? unfit(reading, "an offset is too large")
                     : read_at(reading, offset, header, sizeof header);
        if (status == ELF_OK) {
            reading->segments[i] = (struct segment){.type = (uint32_t)number(header, 4),
                                                    .offset = number(header + 8, 8),
                                                    .address = number(header + 16, 8),
                                                    .size = number(header + 32, 8)};
        }
        offset += sizeof header;
    }
    return status;
}

static const struct segment *segment_of(const struct reading *reading, uint32_t type)
{
    for (size_t i = 0; i < reading->segment_count; i++) {
        if (reading->segments[i].type == type) {
            return &reading->segments[i];
        }
    }
    return NULL;
}

/* Returns false when no loaded segment holds the address. */
static bool offset_of(const struct reading *reading, uint64_t address, uint64_t *ret_offset)
{
    for (size_t i = 0; i < reading->segment_count; i++) {
        const struct segment *segment = &reading->segments[i];
        if (segment->type == SEGMENT_LOAD && address >= segment->address &&
            address - segment->address < segment->size &&
            segment->offset <= UINT64_MAX - (address - segment->address)) {
            *ret_offset = segment->offset + (address - segment->address);
            return true;
        }
    }
    return false;
}

static enum elf_status read_name(struct reading *reading, uint64_t at, char *ret_text,
                                 size_t capacity)
{
    return at > UINT64_MAX - reading->texts
               ? unfit(reading, "an offset of the ELF file is too large")
               : read_text(reading, reading->texts + at, ret_text, capacity);
}

static enum elf_status take_entry(struct reading *reading, uint64_t tag, uint64_t value)
{
    struct elf *elf = reading->elf;
    if (tag == TAG_NEEDED && elf->needed_count == ELF_NEEDED_MAX) {
        return unfit(reading, "the ELF file names more than 256 libraries");
    }
    if (tag == TAG_NEEDED) {
        return read_name(reading, value, elf->needed[elf->needed_count++], ELF_NAME_BYTES);
    }
    if (tag == TAG_RUNPATH || (tag == TAG_RPATH && !elf->has_runpath)) {
        elf->has_runpath = tag == TAG_RUNPATH;
        return read_name(reading, value, elf->folders, sizeof elf->folders);
    }
    return ELF_OK;
}

/* The entry with the address of the names may come last. So the entries are read twice: first for
 * the address, then for the names. */
static enum elf_status read_dynamic(struct reading *reading, const struct segment *dynamic)
{
    enum elf_status status = ELF_OK;
    bool has_texts = false;
    for (int pass = 0; pass < 2; pass++) {
        bool has_ended = false;
        for (uint64_t i = 0; !has_ended && i < dynamic->size / DYNAMIC_BYTES; i++) {
            uint8_t entry[DYNAMIC_BYTES];
            status =
                i == ELF_DYNAMIC_MAX
                    ? unfit(reading, "the dynamic section of the ELF file is too long")
                    : read_at(reading, dynamic->offset + i * DYNAMIC_BYTES, entry, sizeof entry);
            if (status != ELF_OK) {
                return status;
            }
            const uint64_t tag = number(entry, 8);
            const uint64_t value = number(entry + 8, 8);
            has_ended = tag == TAG_END;
            if (pass == 0 && tag == TAG_TEXTS) {
                has_texts = offset_of(reading, value, &reading->texts);
            }
            status = pass == 1 ? take_entry(reading, tag, value) : ELF_OK;
            if (status != ELF_OK) {
                return status;
            }
        }
        if (!has_texts) {
            return unfit(reading, "the ELF file has a dynamic section without names");
        }
    }
    return ELF_OK;
}

enum elf_status elf_read(const struct elf_source *source, struct elf *ret_elf,
                         struct problem *ret_problem)
{
    struct reading reading = {.source = source, .elf = ret_elf, .problem = ret_problem};
    uint64_t offset = 0;
    memset(ret_elf, 0, sizeof *ret_elf);
    enum elf_status status = read_header(&reading, &offset);
    if (status == ELF_OK) {
        status = read_segments(&reading, offset);
    }
    const struct segment *loader = segment_of(&reading, SEGMENT_INTERPRETER);
    if (status == ELF_OK && loader != NULL) {
        status =
            read_text(&reading, loader->offset, ret_elf->interpreter, sizeof ret_elf->interpreter);
    }
    const struct segment *dynamic = segment_of(&reading, SEGMENT_DYNAMIC);
    if (status == ELF_OK && dynamic != NULL) {
        status = read_dynamic(&reading, dynamic);
    }
    return status;
}
