#include "consumer/job/input/input_pack.h"

#include "base/sha256.h"
#include "formats/limits.h"
#include "runtime/archive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096 }; /* a work folder lies in memory */

struct packing {
    struct input_list *list; /* the result */
    struct input_packed packed;
    uint64_t mask;        /* an archive ends after a name in whose hash these bits are 0 */
    uint64_t alone_count; /* files so far that are sent by themselves */
    struct archive archive;
    uint64_t files; /* files in the open archive */
    uint64_t placed_bytes, archive_bytes;
    struct problem *problem;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct input_file *)a)->name, ((const struct input_file *)b)->name);
}

static bool open_archive(struct packing *packing)
{
    const int fd = input_temporary(packing->problem);
    packing->files = 0;
    packing->archive = (struct archive){.fd = fd, .problem = packing->problem};
    return fd >= 0;
}

static void drop_archive(struct packing *packing)
{
    if (packing->archive.fd >= 0) {
        (void)close(packing->archive.fd); /* the file has no name and ends here */
        packing->archive.fd = -1;
    }
}

static bool end_archive(struct packing *packing)
{
    char shown[64];
    if (packing->archive.fd < 0 || packing->files == 0) {
        return true;
    }
    if (!archive_put_end(&packing->archive)) {
        return false;
    }
    (void)snprintf(shown, sizeof shown, "an archive of %llu files",
                   (unsigned long long)packing->files);
    const int fd = packing->archive.fd;
    packing->archive.fd = -1;
    packing->archive_bytes += packing->archive.length;
    packing->packed.files += packing->files;
    packing->packed.archives++;
    return input_list_add_archive(packing->list, fd, shown, packing->problem);
}

static bool ends_archive(const struct packing *packing, const char *name)
{
    uint64_t bits;
    const struct hash32 hash = sha256_of(name, strlen(name));
    memcpy(&bits, hash.bytes, sizeof bits); /* every machine that we support is little endian */
    return (bits & packing->mask) == 0 && packing->packed.archives + 1 < INPUT_PACK_ARCHIVES_MAX;
}

static bool put_file(struct packing *packing, const struct input_file *file, int fd, uint64_t size)
{
    struct stat status;
    if (packing->archive.fd < 0 && !open_archive(packing)) {
        return false;
    }
    const bool is_executable = fstat(fd, &status) == 0 && (status.st_mode & 0111) != 0;
    packing->files++;
    packing->placed_bytes += (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    return archive_put_header(&packing->archive, '0', file->name, "", is_executable ? 0755 : 0644,
                              size) &&
           archive_put_file(&packing->archive, fd, 0, size, file->path) &&
           (!ends_archive(packing, file->name) || end_archive(packing));
}

static bool take_file(struct packing *packing, struct input_file *file)
{
    uint64_t size = 0;
    if (file->held_fd > 0) { /* it has no path to be opened by again */
        packing->alone_count++;
        return input_list_move(packing->list, file, packing->problem);
    }
    const int fd = input_file_open(file, &size, packing->problem);
    if (fd < 0) {
        return false;
    }
    const bool is_alone =
        size >= INPUT_PACK_ALONE_BYTES && packing->alone_count < INPUT_PACK_ALONE_MAX;
    packing->alone_count += is_alone;
    const bool good =
        is_alone ? input_list_add_as(packing->list, file->path, file->name, packing->problem)
                 : put_file(packing, file, fd, size);
    (void)close(fd); /* read only: nothing to lose */
    return good;
}

/* Returns a mask with one bit more each time that the number of files doubles. A longer mask ends
 * archives at fewer names, and at no new ones. So most archives stay as they are when a folder
 * grows. */
static uint64_t mask_for(size_t count)
{
    uint64_t mask = 0;
    while (count > INPUT_PACK_ARCHIVES) {
        mask = 2 * mask + 1;
        count /= 2;
    }
    return mask;
}

bool input_pack(struct input_list *list, struct input_packed *ret_packed,
                struct problem *ret_problem)
{
    struct input_list all = *list;
    struct packing packing = {
        .list = list, .mask = mask_for(all.count), .archive = {.fd = -1}, .problem = ret_problem};
    *ret_packed = (struct input_packed){.files = 0};
    if (all.count <= FORMAT_SHARED_FILES) {
        return true;
    }
    *list = (struct input_list){.skipped = all.skipped};
    qsort(all.items, all.count, sizeof *all.items, by_name);
    bool good = true;
    for (size_t i = 0; good && i < all.count; i++) {
        good = take_file(&packing, &all.items[i]);
    }
    good = good && end_archive(&packing);
    drop_archive(&packing);
    input_list_fini(&all);
    packing.packed.more_bytes = packing.placed_bytes > packing.archive_bytes
                                    ? packing.placed_bytes - packing.archive_bytes
                                    : 0;
    *ret_packed = packing.packed;
    return good;
}
