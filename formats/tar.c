#include "formats/tar.h"

#include "base/text.h"
#include "formats/limits.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header has these fields (POSIX). Numbers are octal digits, or binary after a byte 0x80.
 *
 *   0 name 100 | 100 mode 8 | 124 size 12 | 148 checksum 8 | 156 type 1 | 157 link 100
 *   257 "ustar" | 345 prefix 155 */
enum {
    BLOCK = 512,
    NAME_AT = 0,
    NAME_BYTES = 100,
    MODE_AT = 100,
    MODE_BYTES = 8,
    SIZE_AT = 124,
    SIZE_BYTES = 12,
    SUM_AT = 148,
    SUM_BYTES = 8,
    TYPE_AT = 156,
    LINK_AT = 157,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155,
    PATH_BYTES = 4096,        /* with a NUL */
    PART_BYTES = 255,         /* bytes of one name in a path */
    EXTENSION_BYTES = 1 << 20 /* bytes of a pax header, which may hold attributes */
};

struct scan {
    const struct tar_source *source;
    const struct tar_limits *limits;
    struct problem *problem;
    tar_visit *visit; /* NULL: the archive becomes a root by itself, and so needs a file */
    void *context;
    uint64_t offset, entries, bytes, files;
    char name[PATH_BYTES], link[PATH_BYTES];
    char before[PATH_BYTES]; /* the name of the entry before */
    bool is_named;           /* `name` is of the entry at `offset`, or else of the entry before */
    bool has_name, has_link, has_size; /* set by an extension header for the next entry */
    uint64_t size;                     /* valid with has_size */
};

/* ---------------------------------------------------------------- refusals */

static enum tar_status unfit(struct scan *scan, const char *what)
{
    char shown[96];
    text_printable(scan->name, strlen(scan->name), shown, sizeof shown);
    if (!scan->is_named && scan->entries == 0) {
        problem_set(scan->problem, "the first entry: %s", what);
    } else {
        problem_set(scan->problem, "%s\"%s\" (byte %" PRIu64 " of the archive): %s",
                    scan->is_named ? "" : "the entry after ", shown, scan->offset, what);
    }
    return TAR_UNFIT;
}

static enum tar_status no_archive(struct scan *scan)
{
    if (scan->offset == 0) {
        problem_set(scan->problem,
                    "no plain tar archive; make one with `tar -cf` (no compression)");
    } else {
        problem_set(scan->problem, "damaged: no entry begins at byte %" PRIu64, scan->offset);
    }
    return TAR_UNFIT;
}

static enum tar_status cut(struct scan *scan)
{
    problem_set(scan->problem,
                "cut at byte %" PRIu64 ": an archive ends with a block of zeros behind its last "
                "entry; make it or copy it again",
                scan->source->size);
    return TAR_UNFIT;
}

/* ---------------------------------------------------------------- fields */

static bool is_zero(const uint8_t *block)
{
    for (size_t i = 0; i < BLOCK; i++) {
        if (block[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Reads octal digits between blanks, or a binary number. Returns false for any other field, or a
 * number above 2^63. */
static bool read_number(const uint8_t *field, size_t length, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t at = 0;
    if (field[0] == 0x80) {
        for (at = 1; at < length; at++) {
            if (number > UINT64_MAX >> 9) {
                return false;
            }
            number = number << 8 | field[at];
        }
        *ret_number = number;
        return true;
    }
    while (at < length && field[at] == ' ') {
        at++;
    }
    const size_t first = at;
    for (; at < length && field[at] >= '0' && field[at] <= '7'; at++) {
        number = number << 3 | (uint64_t)(field[at] - '0'); /* 12 digits: 36 bits */
    }
    const bool has_digits = at > first;
    while (at < length && (field[at] == ' ' || field[at] == 0)) {
        at++;
    }
    *ret_number = number;
    return has_digits && at == length;
}

static bool has_sum(const uint8_t *block)
{
    uint64_t said;
    uint64_t sum = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        sum += i >= SUM_AT && i < SUM_AT + SUM_BYTES ? ' ' : block[i];
    }
    return memcmp(block + MAGIC_AT, "ustar", 5) == 0 &&
           read_number(block + SUM_AT, SUM_BYTES, &said) && said == sum;
}

static void take_text(const uint8_t *field, size_t length, char ret_text[PATH_BYTES])
{
    const uint8_t *end = memchr(field, 0, length);
    const size_t used = end != NULL ? (size_t)(end - field) : length;
    memcpy(ret_text, field, used);
    ret_text[used] = '\0';
}

/* A prefix exists in POSIX headers only. GNU headers, "ustar  ", use the field for other data. */
static void take_name(const uint8_t *block, char ret_name[PATH_BYTES])
{
    char name[PATH_BYTES];
    const bool is_posix = block[MAGIC_AT + 5] == 0;
    take_text(block + NAME_AT, NAME_BYTES, name);
    if (is_posix && block[PREFIX_AT] != 0) {
        take_text(block + PREFIX_AT, PREFIX_BYTES, ret_name);
        const size_t length = strlen(ret_name);
        (void)snprintf(ret_name + length, PATH_BYTES - length, "/%s", name);
    } else {
        memcpy(ret_name, name, sizeof name);
    }
}

/* ---------------------------------------------------------------- paths */

/* Returns the length of the next part of the path, 0 at the end, and moves *at behind the part. */
static size_t next_part(const char **at, const char **ret_part)
{
    while (**at == '/') {
        (*at)++;
    }
    *ret_part = *at;
    const size_t length = strcspn(*at, "/");
    *at += length;
    return length;
}

static bool is_part(const char *part, size_t length, const char *what)
{
    return length == strlen(what) && memcmp(part, what, length) == 0;
}

/* Does what next_part does, and skips the parts ".", which name nothing new. */
static size_t next_name(const char **at, const char **ret_part)
{
    size_t length = next_part(at, ret_part);
    while (is_part(*ret_part, length, ".")) {
        length = next_part(at, ret_part);
    }
    return length;
}

/* Counts what unpacking `path` makes at most, when all of `before` is there. A path without a new
 * part counts 1. The sum over all entries is never less than the number of different paths. */
static uint64_t count_new(const char *path, const char *before)
{
    const char *part;
    const char *known;
    uint64_t count = 0;
    bool is_known = true;
    for (size_t length; (length = next_name(&path, &part)) > 0;) {
        is_known =
            is_known && next_name(&before, &known) == length && memcmp(part, known, length) == 0;
        count += !is_known;
    }
    return count > 0 ? count : 1;
}

/* Checks a name that tar uses as written. Returns NULL, or the fault. */
static const char *check_path(const char *path, size_t *ret_depth)
{
    const char *part;
    size_t depth = 0;
    for (size_t length; (length = next_part(&path, &part)) > 0;) {
        if (is_part(part, length, "..")) {
            return "the entry's name has \"..\"";
        }
        if (length > PART_BYTES) {
            return "the entry's name has a part of more than 255 bytes";
        }
        depth += !is_part(part, length, ".");
    }
    *ret_depth = depth;
    return NULL;
}

/* Returns true when the link leaves the root. The link stands in a folder `depth` below the
 * root. A target with a leading "/" begins at the image's root. */
static bool leads_out(const char *target, size_t depth)
{
    const char *part;
    depth = target[0] == '/' ? 0 : depth;
    for (size_t length; (length = next_part(&target, &part)) > 0;) {
        if (!is_part(part, length, "..")) {
            depth += !is_part(part, length, ".");
        } else if (depth-- == 0) {
            return true;
        }
    }
    return false;
}

/* Returns true for a path below /dev. Unpacking an image leaves these out, because jails have
 * devices of their own. */
static bool is_in_dev(const char *path)
{
    const char *part;
    size_t length = next_part(&path, &part);
    while (is_part(part, length, ".")) {
        length = next_part(&path, &part);
    }
    return is_part(part, length, "dev") && next_part(&path, &part) > 0;
}

/* ---------------------------------------------------------------- headers of the next entry */

static enum tar_status read_at(struct scan *scan, uint64_t offset, uint8_t *ret_bytes,
                               size_t length)
{
    if (offset > scan->source->size || scan->source->size - offset < length) {
        return cut(scan);
    }
    if (!scan->source->read(scan->source->context, offset, ret_bytes, length)) {
        problem_set(scan->problem, "byte %" PRIu64 " cannot be read", offset);
        return TAR_UNREADABLE;
    }
    return TAR_OK;
}

static bool take_value(const char *value, size_t length, char ret_text[PATH_BYTES])
{
    if (length == 0 || length >= PATH_BYTES || memchr(value, 0, length) != NULL) {
        return false;
    }
    memcpy(ret_text, value, length);
    ret_text[length] = '\0';
    return true;
}

static bool take_size(struct scan *scan, const char *value, size_t length)
{
    uint64_t size = 0;
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9' || size > (UINT64_MAX >> 1) / 10 - 1) {
            return false;
        }
        size = 10 * size + (uint64_t)(value[i] - '0');
    }
    scan->has_size = true;
    scan->size = size;
    return length > 0;
}

static bool is_key(const char *record, size_t length, const char *key)
{
    return length >= strlen(key) && memcmp(record, key, strlen(key)) == 0;
}

/* Reads one record without its length and newline: "path=usr/bin". Returns NULL, or the fault. */
static const char *take_record(struct scan *scan, const char *record, size_t length)
{
    if (is_key(record, length, "GNU.sparse.")) {
        return "the entry is a sparse file; make the archive without --sparse";
    }
    if (is_key(record, length, "path=")) {
        scan->has_name = take_value(record + 5, length - 5, scan->name);
        scan->is_named = scan->is_named || scan->has_name;
        return scan->has_name ? NULL : "the entry's name is empty, has a NUL, or is too long";
    }
    if (is_key(record, length, "linkpath=")) {
        scan->has_link = take_value(record + 9, length - 9, scan->link);
        return scan->has_link ? NULL : "the entry's link is empty, has a NUL, or is too long";
    }
    if (is_key(record, length, "size=") && !take_size(scan, record + 5, length - 5)) {
        return "the entry's size is no number";
    }
    return memchr(record, '=', length) != NULL ? NULL : "the entry's pax header is damaged";
}

/* Reads records of the form "LENGTH key=value" and a newline, where LENGTH counts all of the
 * record. Returns NULL, or the fault. */
static const char *take_records(struct scan *scan, const char *text, size_t length)
{
    while (length > 0) {
        size_t record = 0;
        size_t digits = 0;
        while (digits < length && digits < 8 && text[digits] >= '0' && text[digits] <= '9') {
            record = 10 * record + (size_t)(text[digits++] - '0');
        }
        if (digits == 0 || record > length || record < digits + 3 || text[digits] != ' ' ||
            text[record - 1] != '\n') {
            return "the entry's pax header is damaged";
        }
        const char *wrong = take_record(scan, text + digits + 1, record - digits - 2);
        if (wrong != NULL) {
            return wrong;
        }
        text += record;
        length -= record;
    }
    return NULL;
}

/* Reads an extension header. Type x of pax concerns the next entry, g all that follow. Type L of
 * GNU is a long name and K a long link, each with its NUL. */
static enum tar_status take_extension(struct scan *scan, uint8_t type, uint64_t size)
{
    if (size == 0 || size > EXTENSION_BYTES) {
        return unfit(scan, "the header before its own is empty or larger than 1 MiB");
    }
    uint8_t *bytes = malloc((size_t)size);
    enum tar_status status =
        bytes != NULL ? read_at(scan, scan->offset + BLOCK, bytes, (size_t)size) : TAR_UNREADABLE;
    const char *wrong = NULL;
    if (bytes == NULL) {
        problem_set(scan->problem, "out of memory");
    } else if (status == TAR_OK && (type == 'x' || type == 'g')) {
        wrong = take_records(scan, (const char *)bytes, (size_t)size);
        if (wrong == NULL && type == 'g' && (scan->has_name || scan->has_link || scan->has_size)) {
            wrong = "a name or a size is said of all entries together";
        }
    } else if (status == TAR_OK) {
        const uint8_t *end = memchr(bytes, 0, (size_t)size);
        const size_t length = end != NULL ? (size_t)(end - bytes) : (size_t)size;
        bool *has = type == 'L' ? &scan->has_name : &scan->has_link;
        *has = take_value((const char *)bytes, length, type == 'L' ? scan->name : scan->link);
        scan->is_named = scan->is_named || (type == 'L' && *has);
        wrong = *has ? NULL : "the entry's long name is empty or too long";
    }
    free(bytes);
    return wrong != NULL ? unfit(scan, wrong) : status;
}

/* ---------------------------------------------------------------- entries */

/* Checks a hard link. An implementation of tar may look for an absolute path on its own host, or
 * below the folder it unpacks into. */
static const char *check_hard_link(const struct scan *scan)
{
    size_t depth = 0;
    const char *wrong = check_path(scan->link, &depth);
    if (scan->link[0] == '/') {
        return "the entry is a hard link to an absolute path; make the archive with `tar -C ROOT "
               "-cf`, "
               "of the names in ROOT";
    }
    if (wrong != NULL || depth == 0) {
        return "the entry is a hard link that leads out of the image";
    }
    return is_in_dev(scan->link) && !is_in_dev(scan->name)
               ? "the entry is a hard link to a file below /dev, which is left out"
               : NULL;
}

static_assert(FORMAT_IMAGE_DEPTH == 128, "the refusal names the cap");

static const char *check_entry(const struct scan *scan, uint8_t type, uint64_t size)
{
    size_t depth = 0;
    const char *wrong = check_path(scan->name, &depth);
    if (wrong != NULL) {
        return wrong;
    }
    if (depth > FORMAT_IMAGE_DEPTH) {
        return "the entry's path has more than 128 levels, the most that an image may have";
    }
    if (size > 0 && type != '0' && type != 0 && type != '7') {
        return "the entry is no file and has bytes";
    }
    switch (type) {
    case '0':
    case 0:
    case '7':
        return depth > 0 ? NULL : "a file has no name";
    case '1':
        return check_hard_link(scan);
    case '2':
        return scan->link[0] == '\0' || depth == 0 || leads_out(scan->link, depth - 1)
                   ? "the entry is a link that leads out of the image"
                   : NULL;
    case '3':
    case '4':
        return is_in_dev(scan->name) ? NULL : "the entry is a device, and not below /dev";
    case '5':
    case '6':
        return NULL;
    case 'S':
        return "the entry is a sparse file; make the archive without --sparse";
    default:
        return "the entry is neither file, folder nor link";
    }
}

static enum tar_status count_entry(struct scan *scan, uint64_t size)
{
    const uint64_t made = count_new(scan->name, scan->before);
    memcpy(scan->before, scan->name, sizeof scan->before);
    if (made > scan->limits->entries || scan->entries > scan->limits->entries - made) {
        problem_set(scan->problem,
                    "more than %" PRIu64 " files, folders and links; a folder counts again when "
                    "other entries stand between its files",
                    scan->limits->entries);
        return TAR_TOO_MANY;
    }
    if (size > scan->limits->bytes || scan->bytes > scan->limits->bytes - size) {
        problem_set(scan->problem, "the files have more than %" PRIu64 " bytes together",
                    scan->limits->bytes);
        return TAR_TOO_LARGE;
    }
    scan->entries += made;
    scan->bytes += size;
    return TAR_OK;
}

static bool show_entry(const struct scan *scan, const uint8_t *block, uint8_t type, uint64_t size)
{
    uint64_t mode = 0;
    const bool is_file = type == 0 || type == '7';
    const struct tar_entry entry = {
        .name = scan->name,
        .link = type == '1' || type == '2' ? scan->link : "",
        .type = is_file ? '0' : (char)type,
        .mode = read_number(block + MODE_AT, MODE_BYTES, &mode) ? (unsigned)(mode & 07777) : 0755,
        .offset = scan->offset + BLOCK,
        .size = size};
    return scan->visit == NULL || scan->visit(scan->context, &entry, scan->problem);
}

static enum tar_status take_entry(struct scan *scan, const uint8_t *block, uint8_t type,
                                  uint64_t *size)
{
    if (!scan->has_name) {
        take_name(block, scan->name);
    }
    if (!scan->has_link) {
        take_text(block + LINK_AT, NAME_BYTES, scan->link);
    }
    *size = scan->has_size ? scan->size : *size;
    scan->has_name = scan->has_link = scan->has_size = false;
    scan->is_named = true;
    const char *wrong = check_entry(scan, type, *size);
    if (wrong != NULL) {
        return unfit(scan, wrong);
    }
    scan->is_named = false; /* what follows is another entry */
    scan->files += (type == '0' || type == 0 || type == '7') && !is_in_dev(scan->name);
    const enum tar_status status = count_entry(scan, *size);
    return status != TAR_OK || show_entry(scan, block, type, *size) ? status : TAR_UNFIT;
}

static enum tar_status take_header(struct scan *scan, const uint8_t *block)
{
    const uint8_t type = block[TYPE_AT];
    uint64_t size;
    if (!has_sum(block) || !read_number(block + SIZE_AT, SIZE_BYTES, &size)) {
        return no_archive(scan);
    }
    enum tar_status status = TAR_OK;
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
        status = take_extension(scan, type, size);
    } else {
        status = take_entry(scan, block, type, &size);
    }
    if (status != TAR_OK) {
        return status;
    }
    const uint64_t left = scan->source->size - scan->offset - BLOCK;
    if (size > left || (size + BLOCK - 1) / BLOCK * BLOCK > left) {
        return cut(scan);
    }
    scan->offset += BLOCK + (size + BLOCK - 1) / BLOCK * BLOCK;
    return TAR_OK;
}

/* Checks the block after the final block of zeros: another block of zeros, or the end of the
 * file. Implementations differ in how they treat further data. */
static enum tar_status take_end(struct scan *scan)
{
    uint8_t block[BLOCK];
    if (scan->files == 0 && scan->visit == NULL) {
        problem_set(scan->problem,
                    "the archive has no file, and so no program; make it with `tar -C ROOT "
                    "-cf`, where ROOT holds the program and its libraries");
        return TAR_UNFIT;
    }
    scan->offset += BLOCK;
    if (scan->offset == scan->source->size) {
        return TAR_OK;
    }
    enum tar_status status = read_at(scan, scan->offset, block, BLOCK);
    return status != TAR_OK || is_zero(block) ? status : no_archive(scan);
}

static enum tar_status take_all(struct scan *scan, struct tar_limits *ret_has)
{
    uint8_t block[BLOCK];
    if (scan->source->size < BLOCK) {
        return no_archive(scan);
    }
    for (;;) {
        enum tar_status status = read_at(scan, scan->offset, block, BLOCK);
        if (status == TAR_OK && is_zero(block)) {
            status =
                scan->has_name || scan->has_link || scan->has_size ? cut(scan) : take_end(scan);
            if (status == TAR_OK && ret_has != NULL) {
                *ret_has = (struct tar_limits){.entries = scan->entries, .bytes = scan->bytes};
            }
            return status;
        }
        status = status == TAR_OK ? take_header(scan, block) : status;
        if (status != TAR_OK) {
            return status;
        }
    }
}

enum tar_status tar_check(const struct tar_source *source, const struct tar_limits *limits,
                          struct tar_limits *ret_has, struct problem *ret_problem)
{
    struct scan scan = {.source = source, .limits = limits, .problem = ret_problem};
    return take_all(&scan, ret_has);
}

enum tar_status tar_walk(const struct tar_source *source, const struct tar_limits *limits,
                         tar_visit *visit, void *context, struct tar_limits *ret_has,
                         struct problem *ret_problem)
{
    assert(visit != NULL);
    struct scan scan = {.source = source,
                        .limits = limits,
                        .problem = ret_problem,
                        .visit = visit,
                        .context = context};
    return take_all(&scan, ret_has);
}
