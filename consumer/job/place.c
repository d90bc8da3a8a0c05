#include "consumer/job/place.h"

#include "base/sha256.h"
#include "base/text.h"
#include "formats/staging/staged_link.h"
#include "formats/template.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, COMPONENT_MAX = 255, SHOWN_BYTES = 256 };
/* Each waiting file holds two descriptors. From SYNC_EACH files on, one sync of the whole file
 * system costs less than a sync of each file. */
enum { WAITING_MAX = 64, SYNC_EACH = 4, TEMPORARY_SIZE = 64 };

struct waiting { /* a checked file without its name */
    int fd, folder;
    char temporary[TEMPORARY_SIZE];
    char name[COMPONENT_MAX + 1];
    char path[PLACE_PATH_SIZE]; /* for messages */
};

struct place_folder {
    int root;
    bool has_new_folder; /* the name of a new folder is not durable yet */
    /* This folder has files that were already there. Their writer may have been killed before they
     * were durable. -1: none. */
    int present;
    size_t count;
    struct waiting waiting[WAITING_MAX];
};

struct shown {
    char text[SHOWN_BYTES];
};
static struct shown shown(const char *text)
{
    struct shown copy;
    text_printable(text, strlen(text), copy.text, sizeof copy.text);
    return copy;
}

/* ---------------------------------------------------------------- where */

static bool is_plain_path(const char *path)
{
    if (!template_path_safe(path)) {
        return false;
    }
    for (const char *part = path; part != NULL; part = strchr(part, '/')) {
        part += *part == '/';
        if (strcspn(part, "/") > COMPONENT_MAX) {
            return false;
        }
    }
    return true;
}

/* Returns the name without the folder that {out} puts before it. */
static const char *without_out(const char *output)
{
    static const char free_name[] = "out/";
    bool has = strncmp(output, free_name, strlen(free_name)) == 0;
    return has ? output + strlen(free_name) : output;
}

bool place_path_of_task(const char *task, const char *output, char ret_path[PLACE_PATH_SIZE])
{
    output = without_out(output);
    if (!is_plain_path(task) || strchr(task, '/') != NULL || !is_plain_path(output)) {
        return false;
    }
    int length = snprintf(ret_path, PLACE_PATH_SIZE, "%s/%s", task, output);
    return length > 0 && length < PLACE_PATH_SIZE;
}

bool place_path(const char *input, bool single, uint64_t number, const char *output,
                char ret_path[PLACE_PATH_SIZE])
{
    output = without_out(output);
    if (!is_plain_path(output) || (input != NULL && !is_plain_path(input))) {
        return false;
    }
    const char *slash = input != NULL ? strrchr(input, '/') : NULL;
    int folder_length = slash != NULL ? (int)(slash - input) + 1 : 0; /* with its slash */
    int length;
    if (input != NULL) {
        bool inside = strncmp(output, input, (size_t)folder_length) == 0;
        length = snprintf(ret_path, PLACE_PATH_SIZE, "%.*s%s", inside ? 0 : folder_length, input,
                          output);
    } else if (single) {
        length = snprintf(ret_path, PLACE_PATH_SIZE, "%s", output);
    } else {
        length = snprintf(ret_path, PLACE_PATH_SIZE, "%" PRIu64 "/%s", number, output);
    }
    return length > 0 && length < PLACE_PATH_SIZE;
}

/* ---------------------------------------------------------------- folders */

/* Returns true when the folder was made. A missing folder makes open fail later. */
static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0;
}

struct place_folder *place_folder_open(const char *folder, struct problem *ret_problem)
{
    if (folder[0] == '\0') {
        problem_set(ret_problem, "the output folder has an empty name");
        return NULL;
    }
    struct place_folder *places = calloc(1, sizeof *places);
    char *path = strdup(folder);
    if (places == NULL || path == NULL) {
        problem_set(ret_problem, "out of memory");
        free(places);
        free(path);
        return NULL;
    }
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        places->has_new_folder = make_folder(path) || places->has_new_folder;
        *slash = '/';
    }
    places->has_new_folder = make_folder(path) || places->has_new_folder;
    places->present = -1;
    places->root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (places->root < 0) {
        problem_set(ret_problem, "the output folder %s: %s", shown(folder).text, strerror(errno));
        free(places);
        places = NULL;
    }
    free(path);
    return places;
}

/* Opens the folder for the last component of `path` and returns its descriptor; *ret_name is the
 * component. Returns -1 with the status and the problem on failure. */
static int open_parent(struct place_folder *places, const char *path, const char **ret_name,
                       enum place_status *ret_status, struct problem *ret_problem)
{
    int folder = fcntl(places->root, F_DUPFD_CLOEXEC, 0);
    const char *const whole = path;
    const char *slash;
    while (folder >= 0 && (slash = strchr(path, '/')) != NULL) {
        char part[COMPONENT_MAX + 1];
        /* is_plain_path bounds the length. */
        (void)snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        bool is_new = mkdirat(folder, part, 0777) == 0;
        int made = is_new || errno == EEXIST ? 0 : errno;
        places->has_new_folder = places->has_new_folder || is_new;
        int next = openat(folder, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int why = made != 0 ? made : errno;
        (void)close(folder);
        folder = next;
        if (folder < 0) {
            *ret_status = why == ENOTDIR || why == ELOOP ? PLACE_OCCUPIED : PLACE_FAILED;
            char way[PLACE_PATH_SIZE];
            (void)snprintf(way, sizeof way, "%.*s", (int)(slash - whole), whole);
            problem_set(ret_problem, "%s in the output folder %s: %s", shown(way).text,
                        *ret_status == PLACE_OCCUPIED ? "is in the way" : "cannot be used",
                        *ret_status == PLACE_OCCUPIED ? "it is not a folder" : strerror(why));
            return -1;
        }
        path = slash + 1;
    }
    if (folder < 0) {
        *ret_status = PLACE_FAILED;
        problem_set(ret_problem, "the output folder: %s", strerror(errno));
    }
    *ret_name = path;
    return folder;
}

/* ---------------------------------------------------------------- content */

enum found { FOUND_SAME, FOUND_OTHER, FOUND_UNREADABLE }; /* unreadable: see errno */

static enum found compare(int fd, const struct place_content *content)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return FOUND_UNREADABLE;
    }
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size != content->size) {
        return FOUND_OTHER;
    }
    uint8_t buffer[READ_BYTES];
    struct sha256 sum;
    sha256_start(&sum);
    uint64_t done = 0;
    while (done < content->size) {
        ssize_t got = pread(fd, buffer, sizeof buffer, (off_t)done);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return got < 0 ? FOUND_UNREADABLE : FOUND_OTHER;
        }
        sha256_add(&sum, buffer, (size_t)got);
        done += (uint64_t)got;
    }
    struct hash32 hash = sha256_end(&sum);
    return hash32_equal(&hash, &content->hash) ? FOUND_SAME : FOUND_OTHER;
}

static enum place_status disk_failed(const char *path, struct problem *ret_problem)
{
    problem_set(ret_problem, "%s: %s", shown(path).text, strerror(errno));
    return PLACE_FAILED;
}

/* Allows execution to whoever may read, or to nobody. Nothing happens on a file system without such
 * bits, or to the file of another user. */
static void set_mode(int fd, mode_t mode, bool is_executable)
{
    mode &= 0666;
    (void)fchmod(fd, is_executable ? mode | (mode & 0444) >> 2 : mode);
}

/* Gives a file that is there the mode of a new one. The folder tells that mode by a file without a
 * name, since a library cannot ask for the umask without a change of it. A folder that has no such
 * files leaves reading and writing as they are. */
static void renew_mode(int folder, int fd, bool is_executable)
{
    struct stat status;
    const int sample = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (fstat(sample >= 0 ? sample : fd, &status) == 0) {
        set_mode(fd, status.st_mode, is_executable);
    }
    if (sample >= 0) {
        (void)close(sample); /* the sample ends here */
    }
}

/* Looks at the file under the final name. Returns false when there is none. */
static bool look(int folder, const char *name, const char *path,
                 const struct place_content *content, enum place_status *ret_status,
                 struct problem *ret_problem)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return false;
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO)) {
        *ret_status = disk_failed(path, ret_problem);
        return true;
    }
    /* A file that cannot be opened for another reason is in the way: a link, a socket, another
     * user's file. */
    enum found found = fd < 0 ? FOUND_OTHER : compare(fd, content);
    switch (found) {
    case FOUND_SAME:
        renew_mode(folder, fd, content->is_executable);
        *ret_status = PLACE_PRESENT;
        break;
    case FOUND_UNREADABLE:
        *ret_status = disk_failed(path, ret_problem);
        break;
    case FOUND_OTHER:
        *ret_status = PLACE_OCCUPIED;
        problem_set(ret_problem,
                    "%s is there already with other content; nothing is overwritten: move it away,"
                    " or fetch into another folder",
                    shown(path).text);
        break;
    }
    if (fd >= 0) {
        (void)close(fd); /* its bytes were only read */
    }
    return true;
}

/* Gives the file its final name, and fails rather than replace a file. */
static bool settle(int folder, const char *temporary, const char *name)
{
    if (renameat2(folder, temporary, folder, name, RENAME_NOREPLACE) == 0) {
        return true;
    }
    if (errno == EEXIST || linkat(folder, temporary, folder, name, 0) != 0) {
        return false;
    }
    (void)unlinkat(folder, temporary, 0); /* a second name is harmless */
    return true;
}

static enum place_status check_filled(int fd, const char *path, const struct place_content *content,
                                      struct problem *ret_problem)
{
    switch (compare(fd, content)) {
    case FOUND_SAME:
        return PLACE_WRITTEN;
    case FOUND_UNREADABLE:
        return disk_failed(path, ret_problem);
    case FOUND_OTHER:
        break;
    }
    problem_set(ret_problem, "%s does not have the size and hash of the signed result",
                shown(path).text);
    return PLACE_WRONG;
}

/* ---------------------------------------------------------------- names */

static void forget(struct waiting *waiting)
{
    (void)close(waiting->fd); /* durable, or unwanted */
    (void)close(waiting->folder);
}

static bool sync_file_systems(const struct place_folder *places)
{
    dev_t last = 0;
    for (size_t i = 0; i < places->count; i++) {
        struct stat status;
        if (fstat(places->waiting[i].folder, &status) != 0) {
            return false;
        }
        if ((i == 0 || status.st_dev != last) && syncfs(places->waiting[i].folder) != 0) {
            return false;
        }
        last = status.st_dev;
    }
    return true;
}

static bool sync_bytes(const struct place_folder *places)
{
    if (places->count >= SYNC_EACH) {
        return sync_file_systems(places);
    }
    for (size_t i = 0; i < places->count; i++) {
        if (fsync(places->waiting[i].fd) != 0) {
            return false;
        }
    }
    return true;
}

static bool sync_names(struct place_folder *places)
{
    bool good = true;
    if (places->count >= SYNC_EACH || places->has_new_folder) {
        good = sync_file_systems(places);
    } else {
        for (size_t i = 0; good && i < places->count; i++) {
            good = fsync(places->waiting[i].folder) == 0;
        }
    }
    places->has_new_folder = places->has_new_folder && !good;
    return good;
}

static enum place_status give_name(const struct waiting *waiting, struct problem *ret_problem)
{
    if (settle(waiting->folder, waiting->temporary, waiting->name)) {
        return PLACE_WRITTEN;
    }
    enum place_status status = errno == EEXIST ? PLACE_OCCUPIED : PLACE_FAILED;
    problem_set(ret_problem, "%s: %s", shown(waiting->path).text, strerror(errno));
    (void)unlinkat(waiting->folder, waiting->temporary, 0); /* nothing more can be done */
    return status;
}

static enum place_status not_durable(struct problem *ret_problem)
{
    problem_set(ret_problem, "the outputs cannot be made durable: %s", strerror(errno));
    return PLACE_FAILED;
}

static bool sync_present(struct place_folder *places)
{
    if (places->present < 0) {
        return true;
    }
    bool good = syncfs(places->present) == 0;
    (void)close(places->present); /* a folder has nothing to lose */
    places->present = -1;
    return good;
}

/* Takes `folder` over. One folder of each file system is enough. */
static bool note_present(struct place_folder *places, int folder)
{
    struct stat status;
    struct stat before;
    if (places->present >= 0 &&
        (fstat(folder, &status) != 0 || fstat(places->present, &before) != 0 ||
         status.st_dev != before.st_dev) &&
        !sync_present(places)) {
        (void)close(folder);
        return false;
    }
    if (places->present >= 0) {
        (void)close(folder);
    } else {
        places->present = folder;
    }
    return true;
}

static enum place_status settle_batch(struct place_folder *places, struct problem *ret_problem)
{
    enum place_status status = PLACE_WRITTEN;
    if (!sync_bytes(places)) {
        status = not_durable(ret_problem);
    }
    const bool has_bytes = status == PLACE_WRITTEN;
    for (size_t i = 0; i < places->count; i++) {
        struct problem problem;
        const struct waiting *waiting = &places->waiting[i];
        if (!has_bytes) {
            (void)unlinkat(waiting->folder, waiting->temporary, 0); /* its content is uncertain */
            continue;
        }
        enum place_status named = give_name(waiting, &problem);
        if (named != PLACE_WRITTEN && status == PLACE_WRITTEN) {
            status = named;
            problem_set(ret_problem, "%s", problem.text);
        }
    }
    if (has_bytes && !sync_names(places) && status == PLACE_WRITTEN) {
        status = not_durable(ret_problem);
    }
    for (size_t i = 0; i < places->count; i++) {
        forget(&places->waiting[i]);
    }
    places->count = 0;
    return status;
}

enum place_status place_folder_settle(struct place_folder *places, struct problem *ret_problem)
{
    enum place_status status = settle_batch(places, ret_problem);
    if (!sync_present(places) && status == PLACE_WRITTEN) {
        status = not_durable(ret_problem);
    }
    return status;
}

void place_folder_close(struct place_folder **self)
{
    struct place_folder *places = *self;
    if (places == NULL) {
        return;
    }
    for (size_t i = 0; i < places->count; i++) {
        (void)unlinkat(places->waiting[i].folder, places->waiting[i].temporary, 0);
        forget(&places->waiting[i]);
    }
    if (places->present >= 0) {
        (void)close(places->present);
    }
    (void)close(places->root); /* a folder has nothing to lose */
    free(places);
    *self = NULL;
}

/* ---------------------------------------------------------------- one file */

/* A WRITTEN *waiting is complete and owns its descriptors. */
static enum place_status fill_file(struct waiting *waiting, const struct place_content *content,
                                   place_fill *fill, void *context, struct problem *ret_problem)
{
    static unsigned serial;
    (void)snprintf(waiting->temporary, sizeof waiting->temporary, ".bourse-%ld-%u.part",
                   (long)getpid(), serial++);
    (void)unlinkat(waiting->folder, waiting->temporary, 0); /* of a dead process of this number */
    waiting->fd = openat(waiting->folder, waiting->temporary,
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (waiting->fd < 0) {
        return disk_failed(waiting->path, ret_problem);
    }
    enum place_status status = fill(context, waiting->fd)
                                   ? check_filled(waiting->fd, waiting->path, content, ret_problem)
                                   : PLACE_UNFILLED;
    struct stat made;
    if (status == PLACE_WRITTEN && content->is_executable && fstat(waiting->fd, &made) == 0) {
        set_mode(waiting->fd, made.st_mode, true);
    }
    if (status != PLACE_WRITTEN) {
        (void)close(waiting->fd); /* an unwanted file */
        (void)unlinkat(waiting->folder, waiting->temporary, 0);
    }
    return status;
}

enum place_status place_file(struct place_folder *places, const char *path,
                             const struct place_content *content, place_fill *fill, void *context,
                             struct problem *ret_problem)
{
    if (!is_plain_path(path) || strlen(path) >= PLACE_PATH_SIZE) {
        problem_set(ret_problem, "'%s' is not a plain relative path", shown(path).text);
        return PLACE_FAILED;
    }
    const char *name = NULL;
    enum place_status status;
    struct waiting *waiting = &places->waiting[places->count];
    waiting->folder = open_parent(places, path, &name, &status, ret_problem);
    if (waiting->folder < 0) {
        return status;
    }
    (void)snprintf(waiting->name, sizeof waiting->name, "%s", name); /* is_plain_path bounds it */
    (void)snprintf(waiting->path, sizeof waiting->path, "%s", path);
    if (!look(waiting->folder, name, path, content, &status, ret_problem)) {
        status = fill_file(waiting, content, fill, context, ret_problem);
    }
    if (status == PLACE_PRESENT) {
        return note_present(places, waiting->folder) ? PLACE_PRESENT : not_durable(ret_problem);
    }
    if (status != PLACE_WRITTEN) {
        (void)close(waiting->folder); /* a folder has nothing to lose */
        return status;
    }
    places->count++;
    return places->count == WAITING_MAX ? settle_batch(places, ret_problem) : PLACE_WRITTEN;
}

/* ---------------------------------------------------------------- folders and links */

enum place_status place_empty_folder(struct place_folder *places, const char *path,
                                     struct problem *ret_problem)
{
    char inside[PLACE_PATH_SIZE + 1];
    const char *name = NULL;
    enum place_status status;
    if (!is_plain_path(path) || strlen(path) >= PLACE_PATH_SIZE) {
        problem_set(ret_problem, "'%s' is not a plain relative path", shown(path).text);
        return PLACE_FAILED;
    }
    (void)snprintf(inside, sizeof inside, "%s/", path);
    const bool had_new_folder = places->has_new_folder;
    places->has_new_folder = false;
    const int folder = open_parent(places, inside, &name, &status, ret_problem);
    const bool is_new = places->has_new_folder;
    places->has_new_folder = is_new || had_new_folder;
    if (folder < 0) {
        return status;
    }
    if (!note_present(places, folder)) {
        return not_durable(ret_problem);
    }
    return is_new ? PLACE_WRITTEN : PLACE_PRESENT;
}

/* Looks at what is in the way of a link. */
static enum place_status look_link(int folder, const char *name, const char *path,
                                   const char *target, struct problem *ret_problem)
{
    char found[PLACE_PATH_SIZE];
    const ssize_t length = readlinkat(folder, name, found, sizeof found);
    if (length >= 0 && (size_t)length == strlen(target) &&
        memcmp(found, target, (size_t)length) == 0) {
        return PLACE_PRESENT;
    }
    problem_set(ret_problem,
                "%s is there already and is no link to %s; nothing is overwritten: move it away, or"
                " fetch into another folder",
                shown(path).text, shown(target).text);
    return PLACE_OCCUPIED;
}

enum place_status place_link(struct place_folder *places, const char *path, const char *target,
                             struct problem *ret_problem)
{
    const char *name = NULL;
    enum place_status status;
    const char *why = is_plain_path(path) && strlen(path) < PLACE_PATH_SIZE
                          ? staged_link_problem(path, target)
                          : "has no plain relative path";
    if (why != NULL) {
        problem_set(ret_problem, "the link %s %s", shown(path).text, why);
        return PLACE_WRONG;
    }
    const int folder = open_parent(places, path, &name, &status, ret_problem);
    if (folder < 0) {
        return status;
    }
    status = PLACE_WRITTEN;
    if (symlinkat(target, folder, name) != 0) {
        status = errno == EEXIST ? look_link(folder, name, path, target, ret_problem)
                                 : disk_failed(path, ret_problem);
    }
    if (status != PLACE_WRITTEN && status != PLACE_PRESENT) {
        (void)close(folder); /* a folder has nothing to lose */
        return status;
    }
    return note_present(places, folder) ? status : not_durable(ret_problem);
}
