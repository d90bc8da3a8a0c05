#include "consumer/job/image/image_fetch.h"

#include "base/checked.h"
#include "base/text.h"
#include "consumer/job/input_list.h"
#include "runtime/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { ERROR_BYTES = 4096, OPEN_FOLDERS = 16, VARIABLES = 4096, LOOK_EVERY_MS = 100 };
static const char PREFIX[] = "bourse-image-";

bool image_fetch_is_name(const char *name)
{
    static const char *const transports[] = {
        "docker", "docker-archive",    "docker-daemon", "oci", "oci-archive",
        "dir",    "containers-storage"};
    const size_t length = strcspn(name, ":");
    bool is_name = false;
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
        is_name = is_name || (name[length] == ':' && strlen(transports[i]) == length &&
                              strncmp(name, transports[i], length) == 0);
    }
    return is_name;
}

/* ---------------------------------------------------------------- the temporary folder */

static const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder != NULL && folder[0] == '/' ? folder : "/tmp";
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    (void)remove(path); /* the folder above fails, then, and stays */
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Opens and locks a folder of ours. The lock ends with this process, however it ends. */
static int lock_folder(const char *path)
{
    struct stat status;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &status) != 0 || status.st_uid != geteuid() ||
                    flock(fd, LOCK_EX | LOCK_NB) != 0)) {
        (void)close(fd); /* read only: nothing to lose */
        return -1;
    }
    return fd;
}

/* Removes the folders of programs that were killed. */
static void sweep(void)
{
    char path[IMAGE_FETCH_PATH_BYTES];
    DIR *files = opendir(temporary_folder());
    for (struct dirent *file; files != NULL && (file = readdir(files)) != NULL;) {
        const int length = snprintf(path, sizeof path, "%s/%s", temporary_folder(), file->d_name);
        if (strncmp(file->d_name, PREFIX, strlen(PREFIX)) != 0 || length < 0 ||
            (size_t)length >= sizeof path) {
            continue;
        }
        const int lock = lock_folder(path);
        if (lock >= 0) {
            remove_tree(path);
            (void)close(lock); /* read only: nothing to lose */
        }
    }
    if (files != NULL) {
        (void)closedir(files);
    }
}

static bool make_folder(struct image_fetched *fetched, struct problem *problem)
{
    const int length = snprintf(fetched->folder, sizeof fetched->folder, "%s/%sXXXXXX",
                                temporary_folder(), PREFIX);
    if (length < 0 || (size_t)length >= sizeof fetched->folder ||
        mkdtemp(fetched->folder) == NULL) {
        fetched->folder[0] = '\0';
        problem_set(problem, "no temporary folder can be made in %s: %s",
                    input_shown(temporary_folder()).text, strerror(errno));
        return false;
    }
    fetched->lock = lock_folder(fetched->folder);
    if (fetched->lock < 0) { /* another one swept the folder before it was locked */
        problem_set(problem, "the temporary folder %s is gone; try again",
                    input_shown(fetched->folder).text);
        return false;
    }
    (void)snprintf(fetched->layout, sizeof fetched->layout, "%s/layout", fetched->folder);
    return true;
}

void image_fetched_fini(struct image_fetched *fetched)
{
    if (fetched->folder[0] != '\0') {
        remove_tree(fetched->folder);
        if (fetched->lock >= 0) {
            (void)close(fetched->lock); /* read only: nothing to lose */
        }
    }
    *fetched = (struct image_fetched){.lock = -1};
}

/* ---------------------------------------------------------------- skopeo */

/* Returns the last line that skopeo wrote, which says what is wrong. */
static void read_error(int fd, char ret_text[300])
{
    char text[ERROR_BYTES];
    const off_t size = lseek(fd, 0, SEEK_END);
    const off_t from = size > (off_t)sizeof text ? size - (off_t)sizeof text : 0;
    const ssize_t got = pread(fd, text, sizeof text, from);
    size_t length = got > 0 ? (size_t)got : 0;
    while (length > 0 && text[length - 1] == '\n') {
        length--;
    }
    size_t begin = length;
    while (begin > 0 && text[begin - 1] != '\n') {
        begin--;
    }
    const char *line = text + begin;
    const char *message = length > begin ? memmem(line, length - begin, "msg=", 4) : NULL;
    line = message != NULL ? message + 4 : line;
    text_printable(line, length - (size_t)(line - text), ret_text, 300);
}

/* Makes skopeo keep its own temporary files in our folder, which goes whatever happens. */
static char **environment_with(char *temporary)
{
    char **variables = calloc(VARIABLES + 2, sizeof *variables);
    size_t count = 0;
    for (size_t i = 0; variables != NULL && environ[i] != NULL && count < VARIABLES; i++) {
        if (strncmp(environ[i], "TMPDIR=", 7) != 0) {
            variables[count++] = environ[i];
        }
    }
    if (variables != NULL) {
        variables[count] = temporary;
    }
    return variables;
}

enum fetch_end { FETCH_ENDED, FETCH_TOO_LONG, FETCH_TOO_LARGE };

struct within {
    const struct image_fetch_caps *caps;
    const char *folder; /* that skopeo fills */
};

static _Thread_local uint64_t found_bytes; /* nftw passes no context */

static int add_size(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)path;
    (void)walk;
    found_bytes += type == FTW_F ? (uint64_t)status->st_size : 0;
    return 0;
}

static uint64_t bytes_in(const char *folder)
{
    found_bytes = 0;
    (void)nftw(folder, add_size, OPEN_FOLDERS, FTW_PHYS); /* files come and go meanwhile */
    return found_bytes;
}

/* Waits for the child, kills it at a cap, and returns its status of waitpid. */
static int watch(pid_t child, const struct within *within, enum fetch_end *ret_end)
{
    const int64_t until_ns = clock_monotonic_ns() + within->caps->time_ms * NS_PER_MS;
    int status = -1;
    pid_t ended;
    *ret_end = FETCH_ENDED;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        const bool is_over = clock_monotonic_ns() >= until_ns;
        if (is_over || bytes_in(within->folder) > within->caps->bytes) {
            *ret_end = is_over ? FETCH_TOO_LONG : FETCH_TOO_LARGE;
            (void)kill(child, SIGKILL);
            while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
            return status;
        }
        const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * NS_PER_MS};
        (void)nanosleep(&pause, NULL); /* a signal only makes the look come earlier */
    }
    return status;
}

/* Runs skopeo and returns its status of waitpid, or -1 with errno. */
static int run(char *const argv[], char *const variables[], const char *from, int error_fd,
               const struct within *within, enum fetch_end *ret_end)
{
    posix_spawn_file_actions_t actions;
    pid_t child = -1;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        errno = ENOMEM;
        return -1;
    }
    int error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    error = error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, error_fd, 1);
    error = error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, error_fd, 2);
    error = error != 0 ? error : posix_spawn_file_actions_addchdir_np(&actions, from);
    error = error != 0 ? error : posix_spawnp(&child, argv[0], &actions, NULL, argv, variables);
    (void)posix_spawn_file_actions_destroy(&actions); /* cannot fail here */
    if (error != 0) {
        errno = error;
        return -1;
    }
    return watch(child, within, ret_end);
}

/* Says which cap ended skopeo. */
static void say_cap(enum fetch_end end, const struct image_fetch_caps *caps,
                    struct problem *problem)
{
    if (end == FETCH_TOO_LONG) {
        problem_set(problem,
                    "skopeo was ended after %lld s, the most that fetching an image may take: "
                    "copy the image to a folder by `skopeo copy`, and name the folder",
                    (long long)(caps->time_ms / 1000));
    } else {
        problem_set(problem,
                    "skopeo was ended because the image takes more than %llu MiB, the most that "
                    "is fetched: take a smaller image",
                    (unsigned long long)(caps->bytes >> 20));
    }
}

static bool copy(const char *name, const char *from, const char *arch,
                 const struct image_fetch_caps *caps, const struct image_fetched *fetched,
                 int error_fd, struct problem *problem)
{
    const struct within within = {.caps = caps, .folder = fetched->folder};
    enum fetch_end end = FETCH_ENDED;
    char to[IMAGE_FETCH_PATH_BYTES + 32];
    char temporary[IMAGE_FETCH_PATH_BYTES + 32];
    char text[300];
    (void)snprintf(to, sizeof to, "oci:%s:image", fetched->layout);
    (void)snprintf(temporary, sizeof temporary, "TMPDIR=%s", fetched->folder);
    const char *const words[] = {
        "skopeo", "--override-os", "linux", "--override-arch", arch, "copy", "--quiet", name, to,
        NULL};
    char **variables = environment_with(temporary);
    if (variables == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    const int status =
        run((char *const *)(uintptr_t)words, variables, from, error_fd, &within, &end);
    free(variables);
    if (end != FETCH_ENDED) {
        say_cap(end, caps, problem);
        return false;
    }
    if (status == 0) {
        return true;
    }
    if (status < 0 && errno == ENOENT) {
        problem_set(problem, "skopeo, which copies images from registries, is not installed "
                             "(Debian package skopeo)");
        return false;
    }
    if (status < 0) {
        problem_set(problem, "skopeo cannot be started: %s", strerror(errno));
        return false;
    }
    read_error(error_fd, text);
    problem_set(problem, "skopeo says: %s", text[0] != '\0' ? text : "nothing");
    return false;
}

bool image_fetch(const char *name, const char *from, const char *arch,
                 struct image_fetched *ret_fetched, struct problem *ret_problem)
{
    const struct image_fetch_caps caps = {.time_ms = IMAGE_FETCH_TIME_S * INT64_C(1000),
                                          .bytes = (uint64_t)IMAGE_FETCH_MIB << 20};
    return image_fetch_within(name, from, arch, &caps, ret_fetched, ret_problem);
}

bool image_fetch_within(const char *name, const char *from, const char *arch,
                        const struct image_fetch_caps *caps, struct image_fetched *ret_fetched,
                        struct problem *ret_problem)
{
    *ret_fetched = (struct image_fetched){.lock = -1};
    sweep();
    const int error_fd = input_temporary(ret_problem);
    const bool good = error_fd >= 0 && make_folder(ret_fetched, ret_problem) &&
                      copy(name, from, arch, caps, ret_fetched, error_fd, ret_problem);
    if (error_fd >= 0) {
        (void)close(error_fd); /* the file has no name and ends here */
    }
    if (!good) {
        image_fetched_fini(ret_fetched);
    }
    return good;
}
