#include "consumer/job/image/image_source.h"

#include "base/array.h"
#include "base/sha256.h"
#include "consumer/job/input_list.h"
#include "formats/image/image_documents.h"
#include "formats/tar.h"
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct image_member {
    char *name;
    char *link; /* a name in the archive; NULL: a file */
    uint64_t offset, size;
};

/* ---------------------------------------------------------------- archives */

struct listing {
    struct image_source *source;
    size_t capacity;
    bool is_out_of_memory;
};

/* Writes a path without its parts ".", "" and "..". Returns false when the path does not fit. */
static bool plain_path(const char *folder, size_t folder_length, const char *path,
                       char ret_path[IMAGE_PATH_BYTES])
{
    const char *texts[2] = {folder, path};
    const size_t lengths[2] = {folder_length, strlen(path)};
    size_t length = 0;
    for (size_t i = 0; i < 2; i++) {
        for (size_t at = 0; at < lengths[i];) {
            const char *part = texts[i] + at;
            const char *slash = memchr(part, '/', lengths[i] - at);
            const size_t size = slash != NULL ? (size_t)(slash - part) : lengths[i] - at;
            at += size + 1;
            if (size == 0 || (size == 1 && part[0] == '.')) {
                continue;
            }
            if (size == 2 && memcmp(part, "..", 2) == 0) {
                while (length > 0 && ret_path[--length] != '/') {
                }
                continue;
            }
            if (length + size + 2 > IMAGE_PATH_BYTES) {
                return false;
            }
            if (length > 0) {
                ret_path[length++] = '/';
            }
            memcpy(ret_path + length, part, size);
            length += size;
        }
    }
    ret_path[length] = '\0';
    return length > 0;
}

/* Returns the name that a link of an archive leads to, or NULL. The name may lie outside the link's
 * own folder. */
static char *link_target(const char *name, const struct tar_entry *entry)
{
    char target[IMAGE_PATH_BYTES];
    const char *slash = strrchr(name, '/');
    const bool is_from_root = entry->type == '1' || entry->link[0] == '/' || slash == NULL;
    const size_t length = is_from_root ? 0 : (size_t)(slash - name);
    return plain_path(name, length, entry->link, target) ? strdup(target) : NULL;
}

static bool list_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    (void)ret_problem;
    struct listing *listing = context;
    struct image_source *source = listing->source;
    char name[IMAGE_PATH_BYTES];
    const bool is_link = entry->type == '1' || entry->type == '2';
    if ((entry->type != '0' && !is_link) || !plain_path("", 0, entry->name, name)) {
        return true;
    }
    if (source->count == IMAGE_MEMBERS) {
        source->is_cut = true;
        return true;
    }
    struct image_member *members =
        array_with_room(source->members, source->count, &listing->capacity, sizeof *members);
    char *copy = strdup(name);
    if (members != NULL) {
        source->members = members;
    }
    if (members == NULL || copy == NULL) {
        free(copy);
        listing->is_out_of_memory = true;
        return false;
    }
    members[source->count++] =
        (struct image_member){.name = copy,
                              .link = is_link ? link_target(name, entry) : NULL,
                              .offset = entry->offset,
                              .size = entry->size};
    return true;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct image_member *)a)->name, ((const struct image_member *)b)->name);
}

static const struct image_member *find(const struct image_source *source, const char *name)
{
    const struct image_member key = {.name = (char *)(uintptr_t)name};
    return source->count == 0 ? NULL
                              : bsearch(&key, source->members, source->count, sizeof key, by_name);
}

static bool read_archive(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    return file_read_at(*(const int *)context, ret_bytes, length, offset);
}

/* Lists the archive's files. A file that is no sound archive has none; the code that reads the file
 * as a root file system later says why. */
static bool list_archive(struct image_source *source, uint64_t size, struct problem *problem)
{
    struct listing listing = {.source = source};
    struct problem ignored;
    const struct tar_limits limits = {.entries = UINT64_MAX, .bytes = UINT64_MAX};
    const struct tar_source tar = {.size = size, .read = read_archive, .context = &source->fd};
    const bool is_fit = tar_walk(&tar, &limits, list_entry, &listing, NULL, &ignored) == TAR_OK;
    if (listing.is_out_of_memory) {
        problem_set(problem, "out of memory");
        return false;
    }
    if (!is_fit) {
        for (size_t i = 0; i < source->count; i++) {
            free(source->members[i].name);
            free(source->members[i].link);
        }
        source->count = 0;
    }
    if (source->count > 0) {
        qsort(source->members, source->count, sizeof *source->members, by_name);
    }
    return true;
}

/* ---------------------------------------------------------------- opening */

void image_source_fini(struct image_source *source)
{
    for (size_t i = 0; i < source->count; i++) {
        free(source->members[i].name);
        free(source->members[i].link);
    }
    free(source->members);
    if (source->fd >= 0) {
        (void)close(source->fd); /* read only: nothing to lose */
    }
    *source = (struct image_source){.fd = -1};
}

static bool has(const struct image_source *source, const char *name)
{
    struct image_part part;
    struct problem ignored;
    const bool is_there = image_source_part(source, name, &part, &ignored);
    if (is_there) {
        image_part_fini(&part);
    }
    return is_there;
}

/* A root file system may have a manifest.json of its own, so the content of the file decides. */
static bool is_saved(const struct image_source *source)
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem ignored;
    const bool is = has(source, "manifest.json") &&
                    image_source_read(source, "manifest.json", NULL, &bytes, &length, &ignored) &&
                    image_saved_is(bytes, length);
    free(bytes);
    return is;
}

bool image_source_open(const char *path, struct image_source *ret_source, enum image_form *ret_form,
                       struct problem *ret_problem)
{
    struct stat status;
    *ret_source = (struct image_source){.fd = -1};
    *ret_form = IMAGE_FORM_ROOT;
    struct image_source *source = ret_source;
    source->fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (source->fd < 0 || fstat(source->fd, &status) != 0 ||
        (!S_ISDIR(status.st_mode) && !S_ISREG(status.st_mode))) {
        image_source_fini(source); /* the code that reads the file as a root says what is wrong */
        return true;
    }
    source->is_folder = S_ISDIR(status.st_mode);
    if (!source->is_folder && !list_archive(source, (uint64_t)status.st_size, ret_problem)) {
        return false;
    }
    if (has(source, "oci-layout") && has(source, "index.json")) {
        *ret_form = IMAGE_FORM_LAYOUT;
    } else if (is_saved(source)) {
        *ret_form = IMAGE_FORM_SAVED;
    } else if (source->is_folder) {
        problem_set(ret_problem,
                    "%s is a folder and no OCI image layout, which has the files oci-layout and "
                    "index.json; for a root file system, give a tar of it (tar -C %s -cf)",
                    input_shown(path).text, input_shown(path).text);
        return false;
    } else {
        image_source_fini(source);
        return true;
    }
    if (source->is_cut) {
        problem_set(ret_problem, "the archive of the image has more than %d files", IMAGE_MEMBERS);
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- parts */

static bool no_part(const char *name, const char *why, struct problem *problem)
{
    problem_set(problem, "its file %s: %s", input_shown(name).text, why);
    return false;
}

static bool folder_part(const struct image_source *source, const char *name,
                        struct image_part *ret_part, struct problem *problem)
{
    struct stat status;
    struct open_how how = {.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    const int fd = (int)syscall(SYS_openat2, source->fd, name, &how, sizeof how);
    if (fd < 0) {
        return no_part(name, errno == EXDEV ? "a link leads out of the image" : strerror(errno),
                       problem);
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        (void)close(fd); /* read only: nothing to lose */
        return no_part(name, "is not a regular file", problem);
    }
    *ret_part = (struct image_part){.fd = fd, .is_own = true, .size = (uint64_t)status.st_size};
    return true;
}

bool image_source_part(const struct image_source *source, const char *name,
                       struct image_part *ret_part, struct problem *ret_problem)
{
    char plain[IMAGE_PATH_BYTES];
    if (!plain_path("", 0, name, plain)) {
        return no_part(name, "is not a path of a file", ret_problem);
    }
    if (source->is_folder) {
        return folder_part(source, plain, ret_part, ret_problem);
    }
    const struct image_member *member = find(source, plain);
    if (member != NULL && member->link != NULL) {
        member = find(source, member->link); /* `docker save` links layers that images share */
    }
    if (member == NULL || member->link != NULL) {
        return no_part(name, "is not in the archive", ret_problem);
    }
    *ret_part =
        (struct image_part){.fd = source->fd, .offset = member->offset, .size = member->size};
    return true;
}

void image_part_fini(struct image_part *part)
{
    if (part->is_own && part->fd >= 0) {
        (void)close(part->fd); /* read, or a file without a name: nothing to lose */
    }
    *part = (struct image_part){.fd = -1};
}

bool image_source_read(const struct image_source *source, const char *name,
                       const struct hash32 *digest, uint8_t **ret_bytes, size_t *ret_length,
                       struct problem *ret_problem)
{
    struct image_part part;
    if (!image_source_part(source, name, &part, ret_problem)) {
        return false;
    }
    uint8_t *bytes = NULL;
    bool good = part.size <= IMAGE_DOCUMENT_BYTES;
    if (!good) {
        problem_set(ret_problem, "its file %s has %llu bytes; at most %d are read",
                    input_shown(name).text, (unsigned long long)part.size, IMAGE_DOCUMENT_BYTES);
    } else if ((bytes = malloc((size_t)part.size + 1)) == NULL) {
        problem_set(ret_problem, "out of memory");
        good = false;
    } else if (!file_read_at(part.fd, bytes, (size_t)part.size, part.offset)) {
        good = no_part(name, strerror(errno), ret_problem);
    } else if (digest != NULL) {
        const struct hash32 hash = sha256_of(bytes, (size_t)part.size);
        good = hash32_equal(&hash, digest) ||
               no_part(name, "has other bytes than its digest says; copy the image again",
                       ret_problem);
    }
    *ret_length = (size_t)part.size;
    image_part_fini(&part);
    if (!good) {
        free(bytes);
        return false;
    }
    *ret_bytes = bytes;
    return true;
}
