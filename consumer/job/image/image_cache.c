#include "consumer/job/image/image_cache.h"

#include "base/text.h"
#include "consumer/job/input_list.h"
#include "runtime/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 2 * sizeof(struct hash32) + 8 };

/* The number is the version of image_flatten. It changes when image_flatten makes other bytes of
 * the same image. */
static void name_of(const struct hash32 *image, char ret_name[NAME_BYTES])
{
    text_hex(image->bytes, sizeof image->bytes, ret_name);
    (void)snprintf(ret_name + 2 * sizeof image->bytes, NAME_BYTES - 2 * sizeof image->bytes,
                   "-1.tar");
}

int image_cache_open(void)
{
    char path[PATH_MAX];
    struct problem ignored;
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int length = -1;
    if (cache != NULL && cache[0] == '/') {
        length = snprintf(path, sizeof path, "%s/bourse/images", cache);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(path, sizeof path, "%s/.cache/bourse/images", home);
    }
    if (length < 0 || (size_t)length >= sizeof path || !private_folder(path, true, &ignored)) {
        return -1;
    }
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A descriptor of 0 would mean that no file is held (input_list.h). */
static int above_zero(int fd)
{
    if (fd != 0) {
        return fd;
    }
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    (void)close(fd); /* the copy stays */
    return moved;
}

int image_cache_find(int folder, const struct hash32 *image)
{
    char name[NAME_BYTES];
    struct stat status;
    if (folder < 0) {
        return -1;
    }
    name_of(image, name);
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))) {
        (void)close(fd); /* read only: nothing to lose */
        fd = -1;
    }
    if (fd >= 0) {
        (void)utimensat(folder, name, NULL, AT_SYMLINK_NOFOLLOW); /* used just now */
    }
    return above_zero(fd);
}

int image_cache_begin(int folder, struct problem *ret_problem)
{
    int fd = folder < 0 ? -1 : openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    return fd >= 0 ? above_zero(fd) : input_temporary(ret_problem);
}

/* ---------------------------------------------------------------- the caps */

struct kept {
    char name[NAME_BYTES];
    uint64_t bytes;
    struct timespec used;
};

/* Orders files, the one used last first. */
static int by_use(const void *a, const void *b)
{
    const struct kept *left = a;
    const struct kept *right = b;
    if (left->used.tv_sec != right->used.tv_sec) {
        return left->used.tv_sec < right->used.tv_sec ? 1 : -1;
    }
    return (left->used.tv_nsec < right->used.tv_nsec) - (left->used.tv_nsec > right->used.tv_nsec);
}

static void evict(int folder)
{
    enum { LISTED = 4 * IMAGE_CACHE_FILES };
    const int listed_fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = listed_fd < 0 ? NULL : fdopendir(listed_fd);
    struct kept *kept = calloc(LISTED, sizeof *kept);
    size_t count = 0;
    uint64_t bytes = 0;
    for (struct dirent *file;
         files != NULL && kept != NULL && count < LISTED && (file = readdir(files)) != NULL;) {
        struct stat status;
        if (strlen(file->d_name) == NAME_BYTES - 2 &&
            fstatat(folder, file->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode)) {
            kept[count] = (struct kept){.bytes = (uint64_t)status.st_size, .used = status.st_mtim};
            memcpy(kept[count++].name, file->d_name, NAME_BYTES - 1); /* with its NUL */
        }
    }
    if (count > 0) {
        qsort(kept, count, sizeof *kept, by_use);
    }
    for (size_t i = 0; i < count; i++) {
        bytes += kept[i].bytes;
        if (i > 0 && (i >= IMAGE_CACHE_FILES || bytes > IMAGE_CACHE_BYTES)) {
            (void)unlinkat(folder, kept[i].name, 0); /* whoever has it open reads on */
        }
    }
    free(kept);
    if (files != NULL) {
        (void)closedir(files);
    } else if (listed_fd >= 0) {
        (void)close(listed_fd); /* read only: nothing to lose */
    }
}

void image_cache_keep(int folder, const struct hash32 *image, int fd)
{
    char name[NAME_BYTES];
    char path[64];
    if (folder < 0 || fsync(fd) != 0) {
        return;
    }
    name_of(image, name);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW) == 0) {
        evict(folder);
    }
}
