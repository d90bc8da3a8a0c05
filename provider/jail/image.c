#include "provider/jail/image.h"

#include "base/text.h"
#include "provider/jail/jail_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNPACK_WALL_NS (UINT64_C(600) * 1000000000)
#define COPY_BYTES (UINT64_C(16) << 20) /* copied between two looks at `give_up` */

/* The functions of one unpacking share these values. */
struct unpacking {
    struct launcher *launcher;
    const char *worker_path;
    struct cgroups *cgroups;
    int archive;
    uint64_t size; /* of the archive */
    const atomic_bool *give_up;
};

static bool is_given_up(const struct unpacking *unpacking)
{
    return unpacking->give_up != NULL && atomic_load(unpacking->give_up);
}

/* Opens a jail whose /work is the folder itself. */
static bool open_jail(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                      const char *path, uint64_t file_bytes, struct jail **ret_jail,
                      struct problem *ret_problem)
{
    char name[64];
    const char *base = strrchr(path, '/');
    (void)snprintf(name, sizeof name, "image-%.40s", base != NULL ? base + 1 : path);
    for (char *at = name; *at != '\0'; at++) {
        *at = *at == '.' ? '-' : *at;
    }
    struct jail_spec spec = {
        .worker_path = worker_path,
        .bind_path = path,
        .name = name,
        .limits = {.memory_bytes = UINT64_C(256) << 20, .disk_bytes = file_bytes, .processes = 16},
        .cgroups = cgroups};
    return jail_open(launcher, &spec, ret_jail, ret_problem);
}

/* Copies the archive for tar. A holder of the cached blob's descriptor, being the same user, could
 * open the blob again for writing. The copy has no name and disappears with its descriptor. */
static int copy_archive(const struct unpacking *unpacking, int tar_fd, const char *beside,
                        struct problem *ret_problem)
{
    const uint64_t size = unpacking->size;
    char folder[1024];
    const char *slash = strrchr(beside, '/');
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - beside), beside);
    int copy = open(slash == beside ? "/" : folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    off_t offset = 0;
    while (copy >= 0 && (uint64_t)offset < size) {
        uint64_t left = size - (uint64_t)offset;
        ssize_t moved = -1;
        errno = ECANCELED;
        if (!is_given_up(unpacking)) {
            moved = sendfile(copy, tar_fd, &offset, left < COPY_BYTES ? left : COPY_BYTES);
        }
        if (moved <= 0 && !(moved < 0 && errno == EINTR)) {
            const int error = moved == 0 ? EIO : errno;
            (void)close(copy);
            copy = -1;
            errno = error;
        }
    }
    if (copy < 0 || lseek(copy, 0, SEEK_SET) != 0) {
        const int error = errno;
        problem_set(ret_problem, "cannot copy the image's archive: %s", strerror(error));
        if (copy >= 0) {
            (void)close(copy);
        }
        errno = error;
        return -1;
    }
    return copy;
}

static bool is_no_room(int error)
{
    return error == ENOSPC || error == EDQUOT;
}

/* Returns true when tar reports a full disk. Its messages come from the C library, in English in a
 * jail. */
static bool says_no_room(const char *text)
{
    return strstr(text, strerror(ENOSPC)) != NULL || strstr(text, strerror(EDQUOT)) != NULL;
}

static enum image_status given_up(struct problem *ret_problem)
{
    problem_set(ret_problem, "unpacking the image was given up");
    return IMAGE_GIVEN_UP;
}

static enum image_status tell_why(const struct jail_reply *reply, struct problem *ret_problem)
{
    char raw[256];
    char text[256] = "";
    ssize_t length =
        reply->standard_error.fd >= 0 ? pread(reply->standard_error.fd, raw, sizeof raw, 0) : 0;
    if (length > 0) {
        const char *end = memchr(raw, '\n', (size_t)length);
        text_printable(raw, end != NULL ? (size_t)(end - raw) : (size_t)length, text, sizeof text);
    }
    if (reply->outcome == OUTCOME_CANCELLED) {
        return given_up(ret_problem);
    }
    if (reply->outcome != OUTCOME_PROGRAM_FAILED) {
        problem_set(ret_problem, "the image could not be unpacked here: %s", reply->detail);
        return IMAGE_FAILED;
    }
    if (says_no_room(text)) {
        problem_set(ret_problem, "no room to unpack the image: %s", text);
        return IMAGE_NO_ROOM;
    }
    problem_set(ret_problem, "the image is unfit, tar says: %s",
                text[0] != '\0' ? text : reply->detail);
    return IMAGE_UNFIT;
}

static enum image_status run_tar(struct jail *jail, const struct unpacking *unpacking,
                                 struct problem *ret_problem)
{
    /* tar does not guess at compression on stdin. The owners in the archive are ignored. */
    static const char *const argv[] = {"/bin/tar",
                                       "--extract",
                                       "--file=-",
                                       "--no-same-owner",
                                       "--no-same-permissions",
                                       "--delay-directory-restore",
                                       "--anchored",
                                       "--exclude=dev/*",
                                       "--exclude=./dev/*",
                                       "--exclude=/dev/*",
                                       NULL};
    struct jail_request request = {.argv = argv,
                                   .stdin_fd = unpacking->archive,
                                   .wall_ns = UNPACK_WALL_NS,
                                   .give_up = unpacking->give_up};
    struct jail_reply reply;
    jail_run_given(jail, &request, &reply);
    const enum image_status status =
        reply.outcome == OUTCOME_OK ? IMAGE_OK : tell_why(&reply, ret_problem);
    jail_reply_fini(&reply);
    return status;
}

static bool read_archive(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct unpacking *unpacking = context;
    for (size_t done = 0; done < length;) {
        if (is_given_up(unpacking)) {
            return false;
        }
        ssize_t got =
            pread(unpacking->archive, ret_bytes + done, length - done, (off_t)(offset + done));
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* Checks the bytes that tar reads next: nobody else has the copy. */
static enum image_status look(struct unpacking *unpacking, const struct tar_limits *limits,
                              struct tar_limits *ret_has, struct problem *ret_problem)
{
    const struct tar_source source = {
        .size = unpacking->size, .read = read_archive, .context = unpacking};
    struct problem why = {""};
    switch (tar_check(&source, limits, ret_has, &why)) {
    case TAR_OK:
        return IMAGE_OK;
    case TAR_UNFIT:
        problem_set(ret_problem, "the image is unfit: %s", why.text);
        return IMAGE_UNFIT;
    case TAR_TOO_MANY:
    case TAR_TOO_LARGE:
        problem_set(ret_problem, "the image is above the limits of this provider: %s", why.text);
        return IMAGE_TOO_LARGE;
    case TAR_UNREADABLE:
        break;
    }
    if (is_given_up(unpacking)) {
        return given_up(ret_problem);
    }
    problem_set(ret_problem, "the image's archive cannot be read here: %s", why.text);
    return IMAGE_FAILED;
}

/* bwrap mounts over these places. They must be real folders and files, or bwrap would follow an
 * image's link elsewhere. */
static bool has_places(const char *path, struct problem *ret_problem)
{
    static const char *const folders[] = {"proc", "dev", "work", "tmp"};
    int root = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool whole = root >= 0;
    const char *culprit = "/";
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    for (size_t i = 0; whole && i < sizeof folders / sizeof *folders; i++) {
        culprit = folders[i];
        (void)mkdirat(root, folders[i], 0755);
        int folder = (int)syscall(SYS_openat2, root, folders[i], &how, sizeof how);
        whole = folder >= 0;
        if (whole) {
            (void)close(folder);
        }
    }
    if (whole) {
        culprit = ".bourse-worker";
        int file =
            openat(root, culprit, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
        whole = file >= 0;
        if (whole) {
            (void)close(file);
        }
    }
    if (root >= 0) {
        (void)close(root);
    }
    if (!whole) {
        problem_set(ret_problem, "the image has something other than a folder of its own at /%s",
                    culprit);
    }
    return whole;
}

/* Unpacks into `fresh`, which does not exist yet. The caller removes the remains. */
static enum image_status unpack_into(const struct unpacking *unpacking, const char *fresh,
                                     struct problem *ret_problem)
{
    struct jail *jail = NULL;
    if (mkdir(fresh, 0700) != 0) {
        const bool is_full = is_no_room(errno);
        problem_set(ret_problem, "%s: %s", fresh, strerror(errno));
        return is_full ? IMAGE_NO_ROOM : IMAGE_FAILED;
    }
    if (!open_jail(unpacking->launcher, unpacking->worker_path, unpacking->cgroups, fresh,
                   unpacking->size, &jail, ret_problem)) {
        return IMAGE_FAILED;
    }
    enum image_status status = run_tar(jail, unpacking, ret_problem);
    jail_close(&jail);
    return status != IMAGE_OK || has_places(fresh, ret_problem) ? status : IMAGE_UNFIT;
}

enum image_status image_unpack(struct launcher *launcher, const char *worker_path,
                               struct cgroups *cgroups, int tar_fd, uint64_t size,
                               const struct tar_limits *limits, const char *path,
                               const atomic_bool *give_up, struct tar_limits *ret_has,
                               struct problem *ret_problem)
{
    struct unpacking unpacking = {.launcher = launcher,
                                  .worker_path = worker_path,
                                  .cgroups = cgroups,
                                  .size = size,
                                  .give_up = give_up};
    char fresh[1024];
    struct stat gone;
    int length = snprintf(fresh, sizeof fresh, "%s.part", path);
    if (path[0] != '/' || length >= (int)sizeof fresh) {
        problem_set(ret_problem, "an image needs a short absolute path, not %.64s", path);
        return IMAGE_FAILED;
    }
    if (lstat(fresh, &gone) == 0 &&
        !image_remove(launcher, worker_path, cgroups, fresh, ret_problem)) {
        return IMAGE_FAILED; /* left by a start that did not end */
    }
    unpacking.archive = copy_archive(&unpacking, tar_fd, path, ret_problem);
    if (unpacking.archive < 0 && errno == ECANCELED) {
        return given_up(ret_problem);
    }
    if (unpacking.archive < 0) {
        return is_no_room(errno) ? IMAGE_NO_ROOM : IMAGE_FAILED;
    }
    enum image_status status = look(&unpacking, limits, ret_has, ret_problem);
    if (status == IMAGE_OK) {
        status = unpack_into(&unpacking, fresh, ret_problem);
        if (status == IMAGE_OK && rename(fresh, path) != 0) {
            problem_set(ret_problem, "%s: %s", path, strerror(errno));
            status = IMAGE_FAILED;
        }
        if (status != IMAGE_OK) {
            (void)image_remove(launcher, worker_path, cgroups, fresh, NULL);
        }
    }
    (void)close(unpacking.archive);
    return status;
}

bool image_remove(struct launcher *launcher, const char *worker_path, struct cgroups *cgroups,
                  const char *path, struct problem *ret_problem)
{
    struct jail *jail = NULL;
    if (!open_jail(launcher, worker_path, cgroups, path, UINT64_C(1) << 20, &jail, ret_problem)) {
        return false;
    }
    bool cleaned = jail_clean(jail);
    jail_close(&jail);
    if (!cleaned || rmdir(path) != 0) {
        problem_set(ret_problem, "cannot remove the image %s: %s", path,
                    cleaned ? strerror(errno) : "something in it cannot be removed");
        return false;
    }
    return true;
}
