#include "consumer/job/output/folder_unpack.h"

#include "base/sha256.h"
#include "formats/staging/staged_link.h"
#include "formats/tar.h"
#include "formats/template.h"
#include "protocol/limits.h"
#include "runtime/files.h"

#include <errno.h>
#include <string.h>

enum { PIECE_BYTES = 64 << 10 };

struct unpacking {
    int fd;
    folder_take *take;
    void *context;
    bool keeps_trees, has_link;
    bool has_ended, is_unreadable;
};

static bool read_archive(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct unpacking *unpacking = context;
    return file_read_at(unpacking->fd, ret_bytes, length, offset);
}

/* Reads the file once, and copies it to `to` unless that is -1. */
static bool read_file(const struct folder_file *file, int to, struct hash32 *ret_hash)
{
    uint8_t piece[PIECE_BYTES];
    struct sha256 sum;
    sha256_start(&sum);
    for (uint64_t done = 0; done < file->size;) {
        const uint64_t left = file->size - done;
        const size_t length = left < sizeof piece ? (size_t)left : sizeof piece;
        if (!file_read_at(file->fd, piece, length, file->offset + done) ||
            (to >= 0 && !file_write_at(to, piece, length, done))) {
            return false;
        }
        sha256_add(&sum, piece, length);
        done += length;
    }
    *ret_hash = sha256_end(&sum);
    return true;
}

bool folder_file_copy(const struct folder_file *file, int to)
{
    struct hash32 hash; /* unused: who places the file hashes what came */
    return read_file(file, to, &hash);
}

/* Says why an entry may not be in the archive, or returns NULL. Links come last, so that no file
 * lies below one. */
static const char *why_unfit(struct unpacking *unpacking, const struct tar_entry *entry)
{
    const bool is_bare = entry->type == '5' || entry->type == '2';
    if (entry->type != '0' && !(is_bare && unpacking->keeps_trees)) {
        return "it has an entry that is no file";
    }
    if (unpacking->has_link && entry->type != '2') {
        return "it has an entry behind a link";
    }
    unpacking->has_link = entry->type == '2';
    return entry->type == '2' && (!template_path_safe(entry->name) ||
                                  staged_link_problem(entry->name, entry->link) != NULL)
               ? "it has a link that could lead out of it"
               : NULL;
}

static bool take_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    struct unpacking *unpacking = context;
    struct folder_file file = {.name = entry->name,
                               .fd = unpacking->fd,
                               .offset = entry->offset,
                               .size = entry->size,
                               .is_folder = entry->type == '5',
                               .link = entry->type == '2' ? entry->link : NULL,
                               .is_executable = (entry->mode & 0111) != 0};
    const char *why = why_unfit(unpacking, entry);
    if (why != NULL) {
        problem_set(ret_problem, "%s", why);
        return false;
    }
    unpacking->is_unreadable = entry->type == '0' && !read_file(&file, -1, &file.hash);
    if (unpacking->is_unreadable) {
        problem_set(ret_problem, "%s", strerror(errno));
        return false;
    }
    unpacking->has_ended = !unpacking->take(unpacking->context, &file);
    if (unpacking->has_ended) {
        problem_set(ret_problem, "the call was ended");
    }
    return !unpacking->has_ended;
}

enum folder_status folder_unpack(int fd, uint64_t size, bool keeps_trees, folder_take *take,
                                 void *context, struct problem *ret_problem)
{
    struct unpacking unpacking = {
        .fd = fd, .take = take, .context = context, .keeps_trees = keeps_trees};
    const struct tar_source source = {.size = size, .read = read_archive, .context = &unpacking};
    /* An entry counts its new folders, too. */
    const struct tar_limits limits = {.entries = 2 * LIMIT_FOLDER_FILES, .bytes = UINT64_MAX};
    const enum tar_status status =
        tar_walk(&source, &limits, take_entry, &unpacking, NULL, ret_problem);
    if (status == TAR_OK) {
        return FOLDER_OK;
    }
    return unpacking.has_ended                                   ? FOLDER_ENDED
           : unpacking.is_unreadable || status == TAR_UNREADABLE ? FOLDER_FAILED
                                                                 : FOLDER_UNFIT;
}
