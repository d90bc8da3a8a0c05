/* provider/worker/stage.c makes places for a subtask's inputs, collects its outputs, and empties
 * the folders afterwards. */
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Makes the folders that contain the file `name`. */
static bool make_folders(int work, const char *name)
{
    char path[LIMIT_PATH_BYTES];
    size_t length = strlen(name);
    if (length >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(path, name, length + 1);
    for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdirat(work, path, 0755) != 0 && errno != EEXIST) {
            return false;
        }
        *slash = '/';
    }
    return true;
}

static bool make_folder(int work, const char *name)
{
    return make_folders(work, name) && (mkdirat(work, name, 0755) == 0 || errno == EEXIST);
}

static int open_place(int work, const char *name)
{
    if (!make_folders(work, name)) {
        return -1;
    }
    return openat(work, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

/* Returns the outcome when a place cannot be made. Names that exclude one another, or that are too
 * long, are the job's own fault: every device would fail in the same way. */
static enum result_outcome outcome_of_place(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return OUTCOME_DISK_LIMIT;
    case EEXIST:
    case EISDIR:
    case ENOTDIR:
    case ENAMETOOLONG:
        return OUTCOME_PROGRAM_FAILED;
    default:
        return OUTCOME_INPUT_MISSING;
    }
}

static bool refuse(struct outcome *outcome, const char *name)
{
    outcome->outcome = outcome_of_place(errno);
    (void)snprintf(outcome->detail, sizeof outcome->detail, "cannot place the input %.128s: %s",
                   name, strerror(errno));
    return false;
}

static bool is_named_twice(const struct run *run, size_t which)
{
    bool found = false;
    for (size_t i = 0; i < run->input_count && !found; i++) {
        found = i != which && strcmp(run->inputs[i].name, run->inputs[which].name) == 0;
    }
    errno = EEXIST;
    return found;
}

/* Returns true for an input that the agent fills. */
static bool has_place(const struct input *input)
{
    return input->kind != WIRE_INPUT_MAPPED && input->kind != WIRE_INPUT_FOLDER &&
           input->kind != WIRE_INPUT_LINK && input->kind != WIRE_INPUT_HELD;
}

static bool make_place(int work, struct run *run, struct places *places,
                       struct outcome *ret_outcome)
{
    struct input *input = &run->inputs[places->next];
    if (input->kind == WIRE_INPUT_FOLDER || input->kind == WIRE_INPUT_LINK) {
        if (!(input->kind == WIRE_INPUT_FOLDER ? make_folder : make_folders)(work, input->name)) {
            return refuse(ret_outcome, input->name);
        }
    } else if (input->kind == WIRE_INPUT_MAPPED) {
        if (is_named_twice(run, places->next) || !make_folders(work, input->name)) {
            return refuse(ret_outcome, input->name);
        }
    } else if (has_place(input)) {
        input->file = open_place(work, input->name);
        if (input->file < 0) {
            return refuse(ret_outcome, input->name);
        }
        places->files[places->count++] = input->file;
    }
    places->next++;
    return true;
}

/* Makes what must be there beside the inputs, when all inputs have places. */
static bool make_rest(struct worker *worker, struct run *run, struct places *places,
                      struct outcome *ret_outcome)
{
    int work = worker->folders[FOLDER_WORK];
    if (run->checkpoint != NULL && !make_folder(work, run->checkpoint)) {
        return refuse(ret_outcome, run->checkpoint);
    }
    for (size_t i = 0; i < run->output_count; i++) { /* on failure the output will be missing */
        (void)(run->is_folder[i] ? make_folder : make_folders)(work, run->outputs[i]);
    }
    if (run->wants_stdin) {
        run->stdin_file = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (run->stdin_file < 0) {
            return refuse(ret_outcome, "stdin");
        }
        places->files[places->count++] = run->stdin_file;
        places->next++;
    }
    return true;
}

bool stage_places(struct worker *worker, struct run *run, struct places *places,
                  struct outcome *ret_outcome)
{
    const int work = worker->folders[FOLDER_WORK];
    places->from = places->next;
    places->count = 0;
    places->total = run->input_count + (run->wants_stdin ? 1 : 0);
    /* One place of a message stays free for stdin, which goes last. */
    while (places->next < run->input_count && places->count < PACKET_FILES - 1) {
        if (!make_place(work, run, places, ret_outcome)) {
            return false;
        }
    }
    return places->next < run->input_count || make_rest(worker, run, places, ret_outcome);
}

/* Returns the access time, which stays as it is, and the time of change. */
static void times_of(const struct input *input, struct timespec ret_times[2])
{
    enum { NS_PER_S = 1000000000 };
    int64_t seconds = input->modified_ns / NS_PER_S;
    int64_t rest_ns = input->modified_ns % NS_PER_S;
    if (rest_ns < 0) { /* before 1970 */
        rest_ns += NS_PER_S;
        seconds--;
    }
    ret_times[0] = (struct timespec){.tv_nsec = UTIME_OMIT};
    ret_times[1] = (struct timespec){.tv_sec = seconds, .tv_nsec = rest_ns};
}

/* A file that its owner could not read would have no use. */
static void seal(const struct input *input)
{
    static const mode_t modes[WIRE_INPUT_KINDS] = {
        [WIRE_INPUT_DATA] = 0444, [WIRE_INPUT_PROGRAM] = 0555, [WIRE_INPUT_STATE] = 0644};
    const mode_t needed = input->kind == WIRE_INPUT_PROGRAM ? 0500 : 0400;
    struct timespec times[2];
    (void)fchmod(input->file, input->has_look ? input->mode | needed : modes[input->kind]);
    times_of(input, times);
    if (input->has_look) {
        (void)futimens(input->file, times); /* a time that the kernel does not have is left out */
    }
}

void stage_seal(struct run *run, const struct places *places)
{
    for (size_t i = places->from; i < run->input_count && i < places->next; i++) {
        if (run->inputs[i].file >= 0 && has_place(&run->inputs[i])) {
            seal(&run->inputs[i]);
            (void)close(run->inputs[i].file);
            run->inputs[i].file = -1;
        }
    }
    if (run->stdin_file >= 0) {
        (void)lseek(run->stdin_file, 0, SEEK_SET); /* the agent's writing moved the shared offset */
    }
}

/* All folders are there, also those that links lie in, and nothing is placed once there is a link.
 * So no link is ever followed here. */
bool stage_links(struct worker *worker, const struct run *run, struct outcome *ret_outcome)
{
    const int work = worker->folders[FOLDER_WORK];
    for (size_t i = 0; i < run->input_count; i++) {
        const struct input *input = &run->inputs[i];
        if (input->kind == WIRE_INPUT_LINK && symlinkat(input->link, work, input->name) != 0) {
            return refuse(ret_outcome, input->name);
        }
    }
    for (size_t i = 0; i < run->input_count; i++) { /* making a link changes its folder's time */
        const struct input *input = &run->inputs[i];
        struct timespec times[2];
        if (has_place(input) || input->kind == WIRE_INPUT_MAPPED ||
            input->kind == WIRE_INPUT_HELD || !input->has_look) {
            continue;
        }
        if (input->kind == WIRE_INPUT_FOLDER &&
            fchmodat(work, input->name, input->mode | 0500, 0) != 0) {
            return refuse(ret_outcome, input->name);
        }
        times_of(input, times);
        (void)utimensat(work, input->name, times, AT_SYMLINK_NOFOLLOW);
    }
    return true;
}

bool stage_map(struct run *run, const int *files, size_t file_count)
{
    size_t taken = 0;
    for (size_t i = 0; i < run->input_count; i++) {
        struct stat status;
        if (run->inputs[i].kind != WIRE_INPUT_MAPPED) {
            continue;
        }
        if (taken == file_count || fstat(files[taken], &status) != 0) {
            return false;
        }
        run->inputs[i].file = files[taken++];
        run->mapped_bytes += (uint64_t)status.st_size;
    }
    return taken == file_count;
}

void stage_unmap(struct run *run)
{
    for (size_t i = 0; i < run->input_count; i++) {
        if (run->inputs[i].kind == WIRE_INPUT_MAPPED && run->inputs[i].file >= 0) {
            (void)close(run->inputs[i].file);
            run->inputs[i].file = -1;
        }
    }
}

/* Opens a file of the job that may be anything by now. No link is followed, and nothing above /work
 * is reached. Opening a pipe or a device has no effect. */
int stage_open(int work, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                           .resolve =
                               RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    return (int)syscall(SYS_openat2, work, name, &how, sizeof how);
}

DIR *stage_list(int root, const char *folder)
{
    const int file = stage_open(root, folder);
    DIR *stream = file < 0 ? NULL : fdopendir(file);
    if (stream == NULL && file >= 0) {
        const int error = errno;
        (void)close(file);
        errno = error;
    }
    return stream;
}

bool stage_next(DIR *stream, const char *folder, size_t room, char ret_name[LIMIT_PATH_BYTES],
                const char **ret_last)
{
    const bool is_root = strcmp(folder, ".") == 0;
    struct dirent *entry;
    do {
        entry = readdir(stream);
        if (entry == NULL) {
            return false;
        }
    } while (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    const int length = snprintf(ret_name, LIMIT_PATH_BYTES, "%s%s%s", is_root ? "" : folder,
                                is_root ? "" : "/", entry->d_name);
    if (length <= 0 || (size_t)length + room >= LIMIT_PATH_BYTES) {
        ret_name[0] = '\0';
    }
    *ret_last = entry->d_name;
    return true;
}

const char *stage_why_missing(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
        return "was not written";
    case ELOOP:
        return "is or passes a symbolic link";
    case EXDEV:
        return "leads out of the work folder";
    case EACCES:
        return "cannot be read";
    default:
        return strerror(error);
    }
}

bool stage_output_failed(struct outcome *outcome, const char *name, const char *why)
{
    outcome->outcome = OUTCOME_OUTPUT_MISSING;
    (void)snprintf(outcome->detail, sizeof outcome->detail, "output %.128s %s", name, why);
    return false;
}

static bool collect(struct outcome *outcome, size_t i, int work, const char *name)
{
    struct stat status;
    const char *why = NULL;
    int file = stage_open(work, name);
    if (file < 0) {
        why = stage_why_missing(errno);
    } else if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        why = "is not a regular file";
    }
    if (why != NULL) {
        if (file >= 0) {
            (void)close(file);
        }
        return stage_output_failed(outcome, name, why);
    }
    outcome->output_files[i] = file;
    outcome->output_sizes[i] = (uint64_t)status.st_size;
    /* The bits of others depend on the program's umask, so only the owner's bit counts. */
    outcome->output_executable[i] = (status.st_mode & S_IXUSR) != 0;
    return true;
}

void stage_outputs(struct worker *worker, const struct run *run, struct outcome *outcome)
{
    uint64_t total = 0;
    outcome->output_count = run->output_count;
    for (size_t i = 0; i < run->output_count; i++) {
        outcome->output_files[i] = -1;
    }
    for (size_t i = 0; i < run->output_count; i++) {
        if (run->is_folder[i]) {
            continue;
        }
        if (!collect(outcome, i, worker->folders[FOLDER_WORK], run->outputs[i])) {
            return;
        }
        total += outcome->output_sizes[i];
    }
    /* Files are small to look at, so they are looked at before a folder is sent. */
    for (size_t i = 0; i < run->output_count && total <= run->output_bytes; i++) {
        if (run->is_folder[i] && !output_folder_send(worker, run, i, &total, outcome)) {
            return;
        }
    }
    if (total > run->output_bytes) {
        outcome->outcome = OUTCOME_OUTPUT_LIMIT;
        (void)snprintf(outcome->detail, sizeof outcome->detail,
                       "the outputs take %llu bytes; their limit is %llu",
                       (unsigned long long)total, (unsigned long long)run->output_bytes);
    }
}

struct sweep {
    int root;              /* root of the tree being emptied */
    unsigned long counter; /* counter for names of folders that were moved up */
};

/* Moves `name` of `folder` to the root of the tree. So a deep tree needs neither a descriptor nor a
 * stack frame for each of its levels. */
static bool move_up(struct sweep *sweep, int folder, const char *name)
{
    for (int tries = 0; tries < 1000; tries++) {
        char fresh[32];
        (void)snprintf(fresh, sizeof fresh, ".sweep-%lu", sweep->counter++);
        if (renameat(folder, name, sweep->root, fresh) == 0) {
            return true;
        }
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR && errno != EISDIR) {
            return false;
        }
    }
    return false;
}

static DIR *list(int folder, const char *name)
{
    int file = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) {
        return NULL;
    }
    DIR *stream = fdopendir(file);
    if (stream == NULL) {
        (void)close(file);
    }
    return stream;
}

static bool special(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Empties one folder of the root. Files and empty folders are removed, and other folders move up to
 * the root. */
static bool empty_folder(struct sweep *sweep, const char *name)
{
    DIR *stream = list(sweep->root, name);
    if (stream == NULL) {
        return false;
    }
    bool done = true;
    for (struct dirent *entry = readdir(stream); entry != NULL && done; entry = readdir(stream)) {
        if (special(entry->d_name) || unlinkat(dirfd(stream), entry->d_name, 0) == 0) {
            continue;
        }
        /* A move changes ".." in the folder, so this process must be able to write to the
         * folder. */
        done = fchmodat(dirfd(stream), entry->d_name, 0700, 0) == 0 &&
               (unlinkat(dirfd(stream), entry->d_name, AT_REMOVEDIR) == 0 ||
                move_up(sweep, dirfd(stream), entry->d_name));
    }
    (void)closedir(stream);
    return done;
}

/* Passes once over the root. *ret_left means that the pass met a folder, so that another pass is
 * needed. Returns false after a failure. */
static bool sweep_pass(struct sweep *sweep, bool *ret_left)
{
    DIR *stream = list(sweep->root, ".");
    if (stream == NULL) {
        return false;
    }
    bool done = true;
    *ret_left = false;
    for (struct dirent *entry = readdir(stream); entry != NULL && done; entry = readdir(stream)) {
        const char *name = entry->d_name;
        if (special(name) || unlinkat(sweep->root, name, 0) == 0) {
            continue;
        }
        *ret_left = true; /* folders are moved up to places that this pass may have read already */
        done = fchmodat(sweep->root, name, 0700, 0) == 0 &&
               (unlinkat(sweep->root, name, AT_REMOVEDIR) == 0 || empty_folder(sweep, name)) &&
               (unlinkat(sweep->root, name, AT_REMOVEDIR) == 0 || errno == ENOENT ||
                errno == ENOTEMPTY);
    }
    (void)closedir(stream);
    return done;
}

/* Removes attributes that the job may have left on the folder itself. */
static void strip_attributes(int folder)
{
    char names[4096];
    ssize_t length = flistxattr(folder, names, sizeof names);
    for (ssize_t at = 0; at < length; at += (ssize_t)strlen(names + at) + 1) {
        (void)fremovexattr(folder, names + at); /* an attribute that stays is not the job's */
    }
}

bool stage_empty(struct worker *worker)
{
    for (size_t i = 0; i < FOLDERS; i++) {
        struct sweep sweep = {.root = worker->folders[i], .counter = 0};
        (void)fchmod(sweep.root, 0700);
        bool left = true;
        while (left) {
            if (!sweep_pass(&sweep, &left)) {
                return false;
            }
        }
        strip_attributes(sweep.root);
        (void)fchmod(sweep.root, 0755);
    }
    return true;
}

struct usage stage_usage(const struct worker *worker, bool work_too)
{
    struct usage usage = {0};
    for (size_t i = work_too ? 0 : 1; i < FOLDERS; i++) {
        struct statvfs status;
        if (fstatvfs(worker->folders[i], &status) == 0) {
            usage.used_bytes += (uint64_t)(status.f_blocks - status.f_bfree) * status.f_frsize;
            usage.files += status.f_files - status.f_ffree;
            usage.full = usage.full || status.f_bavail == 0 || status.f_favail == 0;
        }
    }
    return usage;
}
