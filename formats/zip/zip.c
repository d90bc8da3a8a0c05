#include "formats/zip/zip.h"

#include "base/cursor.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

enum {
    END_MARK = 0x06054b50,
    ENTRY_MARK = 0x02014b50,
    LOCAL_MARK = 0x04034b50,
    END_BYTES = 22,
    FLAG_ENCRYPTED = 1 << 0,
    FLAG_PATCHED = 1 << 5,
};

#define REFUSE(problem, ...) (problem_set((problem), __VA_ARGS__), false)

/* ---------------------------------------------------------------- the end */

bool zip_read_end(const uint8_t *tail, size_t length, uint64_t archive_bytes,
                  struct zip_folder *ret_folder, struct problem *ret_problem)
{
    for (size_t back = END_BYTES; back <= length && back <= ZIP_TAIL_BYTES; back++) {
        struct reader in = reader_over(tail + length - back, back);
        if (reader_u32(&in) != END_MARK) {
            continue;
        }
        const uint32_t part = reader_u16(&in);
        const uint32_t folder_part = reader_u16(&in);
        const uint32_t here = reader_u16(&in);
        const uint32_t count = reader_u16(&in);
        const uint32_t size = reader_u32(&in);
        const uint32_t offset = reader_u32(&in);
        const size_t comment = reader_u16(&in);
        const uint64_t end = archive_bytes - back;
        if (in.failed || comment != back - END_BYTES) {
            continue; /* the mark is a part of the comment */
        }
        if (count == UINT16_MAX || size == UINT32_MAX || offset == UINT32_MAX) {
            return REFUSE(ret_problem, "it is a ZIP64 archive, which has 4 GiB or 65,535 files; "
                                       "save the arrays as .npy files");
        }
        if (part != 0 || folder_part != 0 || here != count) {
            return REFUSE(ret_problem, "it is a part of an archive of several parts");
        }
        if (size > ZIP_FOLDER_BYTES || (uint64_t)offset + size != end) {
            return REFUSE(ret_problem,
                          "it is no whole archive: its folder of %u bytes at %u does "
                          "not end where the archive does",
                          size, offset);
        }
        *ret_folder = (struct zip_folder){.offset = offset, .size = size, .count = count};
        return true;
    }
    return REFUSE(ret_problem, "it is no ZIP archive, as .npz files are");
}

/* ---------------------------------------------------------------- the folder */

/* Returns true for a relative path without empty parts, "." and "..", and without a backslash. */
static bool is_plain(const char *name, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t part = 0;
        while (at + part < length && name[at + part] != '/') {
            part++;
        }
        const bool is_dots =
            (part == 1 && name[at] == '.') || (part == 2 && name[at] == '.' && name[at + 1] == '.');
        if (part == 0 || is_dots) {
            return false;
        }
        at += part + 1;
    }
    return length > 0 && memchr(name, '\\', length) == NULL && memchr(name, '\0', length) == NULL;
}

/* Reads one entry of the folder. */
static bool read_entry(struct reader *in, struct zip_member *member, uint32_t *ret_flags,
                       uint32_t *ret_method, struct problem *problem)
{
    const uint32_t mark = reader_u32(in);
    (void)reader_u32(in); /* who made the entry, and who may read it */
    *ret_flags = reader_u16(in);
    *ret_method = reader_u16(in);
    (void)reader_u32(in); /* the time */
    member->crc = reader_u32(in);
    member->packed_bytes = reader_u32(in);
    member->bytes = reader_u32(in);
    const size_t name_length = reader_u16(in);
    const size_t extra_length = reader_u16(in);
    const size_t comment_length = reader_u16(in);
    (void)reader_view(in, 8); /* the part, and attributes */
    member->header_offset = reader_u32(in);
    const char *name = (const char *)reader_view(in, name_length);
    (void)reader_view(in, extra_length);
    (void)reader_view(in, comment_length);
    if (in->failed || mark != ENTRY_MARK) {
        return REFUSE(problem, "the folder of the archive does not decode");
    }
    if (name_length > ZIP_NAME_BYTES || !is_plain(name, name_length)) {
        char shown[80];
        text_printable(name, name_length, shown, sizeof shown);
        return REFUSE(problem, "the archive has a file \"%s\", which is no plain name", shown);
    }
    memcpy(member->name, name, name_length);
    member->name[name_length] = '\0';
    return true;
}

/* Returns true when the member is the one that is looked for. */
static bool is_wanted(const char *member, const char *name)
{
    const size_t length = name != NULL ? strlen(name) : 0;
    return name == NULL || strcmp(member, name) == 0 ||
           (strncmp(member, name, length) == 0 && strcmp(member + length, ".npy") == 0);
}

static bool check_member(const struct zip_folder *folder, struct zip_member *member, uint32_t flags,
                         uint32_t method, struct problem *problem)
{
    char shown[80];
    text_printable(member->name, strlen(member->name), shown, sizeof shown);
    if ((flags & (FLAG_ENCRYPTED | FLAG_PATCHED)) != 0) {
        return REFUSE(problem, "\"%s\" is encrypted", shown);
    }
    if (method != ZIP_STORED && method != ZIP_DEFLATED) {
        return REFUSE(problem,
                      "\"%s\" is packed by method %u; numpy.savez stores, and "
                      "numpy.savez_compressed deflates",
                      shown, method);
    }
    if (member->packed_bytes == UINT32_MAX || member->bytes == UINT32_MAX ||
        member->header_offset == UINT32_MAX) {
        return REFUSE(problem, "\"%s\" has 4 GiB or more; save the array as a .npy file", shown);
    }
    if (member->header_offset + ZIP_LOCAL_BYTES + member->packed_bytes > folder->offset) {
        return REFUSE(problem, "\"%s\" is not in the archive: its bytes would lie behind it",
                      shown);
    }
    if (method == ZIP_STORED && member->packed_bytes != member->bytes) {
        return REFUSE(problem, "\"%s\" has two sizes: %llu and %llu bytes", shown,
                      (unsigned long long)member->packed_bytes, (unsigned long long)member->bytes);
    }
    member->method = method == ZIP_STORED ? ZIP_STORED : ZIP_DEFLATED;
    return true;
}

bool zip_find(const uint8_t *bytes, const struct zip_folder *folder, const char *name,
              struct zip_member *ret_member, struct problem *ret_problem)
{
    struct reader in = reader_over(bytes, folder->size);
    struct zip_member found = {.name = ""};
    char names[160] = "";
    uint32_t found_flags = 0;
    uint32_t found_method = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < folder->count; i++) {
        struct zip_member member;
        uint32_t flags = 0;
        uint32_t method = 0;
        if (!read_entry(&in, &member, &flags, &method, ret_problem)) {
            return false;
        }
        const size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                       member.name);
        if (is_wanted(member.name, name)) {
            found = member;
            found_flags = flags;
            found_method = method;
            count++;
        }
    }
    if (!reader_finished(&in)) {
        return REFUSE(ret_problem, "the folder of the archive does not decode");
    }
    if (count != 1) {
        char shown[sizeof names];
        text_printable(names, strlen(names), shown, sizeof shown);
        return name == NULL || count == 0
                   ? REFUSE(ret_problem, "%s%.80s%s; it has %u: %s",
                            name != NULL ? "no array \"" : "it has not one array alone",
                            name != NULL ? name : "", name != NULL ? "\"" : "", folder->count,
                            shown)
                   : REFUSE(ret_problem, "\"%.80s\" stands in the archive %u times", name, count);
    }
    if (!check_member(folder, &found, found_flags, found_method, ret_problem)) {
        return false;
    }
    *ret_member = found;
    return true;
}

/* ---------------------------------------------------------------- a file */

bool zip_read_local(const uint8_t bytes[ZIP_LOCAL_BYTES], const struct zip_folder *folder,
                    const struct zip_member *member, uint64_t *ret_offset,
                    struct problem *ret_problem)
{
    struct reader in = reader_over(bytes, ZIP_LOCAL_BYTES);
    const uint32_t mark = reader_u32(&in);
    (void)reader_u32(&in); /* who may read it, and flags */
    const uint32_t method = reader_u16(&in);
    (void)reader_view(&in, 16); /* time, CRC and sizes, which may follow the bytes instead */
    const uint32_t name_length = reader_u16(&in);
    const uint32_t extra_length = reader_u16(&in);
    const uint64_t offset = member->header_offset + ZIP_LOCAL_BYTES + name_length + extra_length;
    if (mark != LOCAL_MARK || method != (uint32_t)member->method ||
        name_length != strlen(member->name) || offset + member->packed_bytes > folder->offset) {
        return REFUSE(ret_problem, "\"%.80s\" of the archive is not where its folder says",
                      member->name);
    }
    *ret_offset = offset;
    return true;
}
