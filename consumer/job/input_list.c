#include "consumer/job/input_list.h"

#include "base/array.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/template.h"
#include "protocol/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 18, PATH_BYTES_MAX = 4096 };

void input_list_drop_last(struct input_list *list)
{
    const struct input_file *file = &list->items[--list->count];
    if (file->held_fd > 0) {
        (void)close(file->held_fd); /* the file has no name, or another has it, too */
    }
    free(file->path);
}

void input_list_fini(struct input_list *list)
{
    while (list->count > 0) {
        input_list_drop_last(list);
    }
    free(list->items);
    *list = (struct input_list){.items = NULL};
}

struct input_shown input_shown(const char *text)
{
    struct input_shown copy;
    text_printable(text, strlen(text), copy.text, sizeof copy.text);
    return copy;
}

static bool no_memory(struct problem *ret_problem)
{
    problem_set(ret_problem, "out of memory");
    return false;
}

/* ---------------------------------------------------------------- names */

const char *input_list_name(const char *path)
{
    const char *name = path;
    for (;;) {
        if (name[0] == '/') {
            name++;
        } else if (strncmp(name, "./", 2) == 0) {
            name += 2;
        } else if (strncmp(name, "../", 3) == 0) {
            name += 3;
        } else {
            return name;
        }
    }
}

bool input_list_refuse_name(const char *name, struct problem *ret_problem)
{
    problem_set(ret_problem,
                "a file's name cannot be used: '%s'; rename it: relative, UTF-8, no control "
                "characters, no "
                "\"..\" inside, at most %d bytes",
                input_shown(name).text, LIMIT_PATH_BYTES);
    return false;
}

static bool name_check(const char *name, struct problem *ret_problem)
{
    return template_path_safe(name) || input_list_refuse_name(name, ret_problem);
}

/* The function takes `path` over, in whose memory the name lies. */
static bool push(struct input_list *list, char *path, size_t name_offset,
                 struct problem *ret_problem)
{
    struct input_file *items =
        array_with_room(list->items, list->count, &list->capacity, sizeof *items);
    if (items == NULL) {
        free(path);
        return no_memory(ret_problem);
    }
    list->items = items;
    items[list->count++] = (struct input_file){.path = path, .name = path + name_offset};
    return true;
}

/* The function takes `path` over. */
static bool append(struct input_list *list, char *path, size_t name_offset,
                   struct problem *ret_problem)
{
    if (path == NULL) {
        return no_memory(ret_problem);
    }
    const char *name = input_list_name(path + name_offset);
    if (!name_check(name, ret_problem)) {
        free(path);
        return false;
    }
    return push(list, path, (size_t)(name - path), ret_problem);
}

/* ---------------------------------------------------------------- patterns */

size_t input_list_prefix(const char *folder, const char *pattern, bool escape, char *ret_text,
                         size_t capacity)
{
    ret_text[0] = '\0';
    if (pattern[0] == '/' || folder[0] == '\0' || strcmp(folder, ".") == 0) {
        return 0;
    }
    size_t written = 0;
    size_t length = strlen(folder);
    for (size_t i = 0; i < length && written + 4 < capacity; i++) {
        if (escape && strchr("*?[]\\{}~", folder[i]) != NULL) {
            ret_text[written++] = '\\';
        }
        ret_text[written++] = folder[i];
    }
    bool ends_with_slash = folder[length - 1] == '/';
    if (!ends_with_slash) {
        ret_text[written++] = '/';
    }
    ret_text[written] = '\0';
    return length + (ends_with_slash ? 0 : 1);
}

static bool is_regular(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static bool expand_one(const char *folder, const char *pattern, struct input_list *list,
                       struct problem *ret_problem)
{
    char full[PATH_BYTES_MAX];
    char prefix[PATH_BYTES_MAX];
    size_t offset = input_list_prefix(folder, pattern, true, prefix, sizeof prefix);
    int length = snprintf(full, sizeof full, "%s%s", prefix, pattern);
    if (length < 0 || (size_t)length >= sizeof full || 2 * strlen(folder) + 8 > sizeof prefix) {
        problem_set(ret_problem, "the path of the pattern '%s' is too long",
                    input_shown(pattern).text);
        return false;
    }
    glob_t matches = {.gl_pathc = 0};
    int status = glob(full, GLOB_NOSORT, NULL, &matches);
    if (status != 0 && status != GLOB_NOMATCH) {
        globfree(&matches);
        return no_memory(ret_problem);
    }
    size_t before = list->count;
    bool ok = true;
    for (size_t i = 0; ok && status == 0 && i < matches.gl_pathc; i++) {
        if (is_regular(matches.gl_pathv[i])) {
            ok = append(list, strdup(matches.gl_pathv[i]), offset, ret_problem);
        } else {
            list->skipped++;
        }
    }
    globfree(&matches);
    if (ok && list->count == before) {
        problem_set(ret_problem, "the pattern '%s' matches no regular file in %s%s",
                    input_shown(pattern).text, pattern[0] == '/' ? "/" : input_shown(folder).text,
                    status == 0 ? " (only folders or symbolic links)" : "");
        return false;
    }
    return ok;
}

static int by_name(const void *a, const void *b)
{
    const struct input_file *left = a;
    const struct input_file *right = b;
    int order = strcmp(left->name, right->name);
    return order != 0 ? order : strcmp(left->path, right->path);
}

/* Sorts the files, drops files matched twice, and refuses two files under one name. */
static bool sort_unique(struct input_list *list, size_t from, struct problem *ret_problem)
{
    qsort(list->items + from, list->count - from, sizeof *list->items, by_name);
    size_t kept = from;
    bool ok = true;
    for (size_t i = from; i < list->count; i++) {
        struct input_file *file = &list->items[i];
        const struct input_file *last = kept > from ? &list->items[kept - 1] : NULL;
        if (last != NULL && strcmp(last->name, file->name) == 0) {
            if (ok && strcmp(last->path, file->path) != 0) {
                problem_set(ret_problem, "two files have the name '%s' in the job: %s and %s",
                            input_shown(file->name).text, input_shown(last->path).text,
                            input_shown(file->path).text);
                ok = false;
            }
            free(file->path);
        } else {
            list->items[kept++] = *file;
        }
    }
    list->count = kept;
    return ok;
}

bool input_list_add_patterns(const char *folder, char *const *patterns, size_t count,
                             struct input_list *list, struct problem *ret_problem)
{
    size_t from = list->count;
    for (size_t i = 0; i < count; i++) {
        if (!expand_one(folder, patterns[i], list, ret_problem)) {
            return false;
        }
    }
    return sort_unique(list, from, ret_problem);
}

bool input_list_add_file(const char *folder, const char *name, struct input_list *list,
                         struct problem *ret_problem)
{
    char path[PATH_BYTES_MAX];
    char prefix[PATH_BYTES_MAX];
    size_t offset = input_list_prefix(folder, name, false, prefix, sizeof prefix);
    int length = snprintf(path, sizeof path, "%s%s", prefix, name);
    if (length < 0 || (size_t)length >= sizeof path || strlen(folder) + 8 > sizeof prefix) {
        problem_set(ret_problem, "the path '%s' is too long", input_shown(name).text);
        return false;
    }
    return append(list, strdup(path), offset, ret_problem);
}

/* Copies both texts into one piece of memory, the name behind the path. */
static char *copy_both(const char *path, const char *name)
{
    const size_t path_size = strlen(path) + 1;
    const size_t name_size = strlen(name) + 1;
    char *both = malloc(path_size + name_size);
    if (both != NULL) {
        memcpy(both, path, path_size);
        memcpy(both + path_size, name, name_size);
    }
    return both;
}

static bool append_named(struct input_list *list, const char *path, const char *name,
                         struct problem *ret_problem)
{
    return append(list, copy_both(path, name), strlen(path) + 1, ret_problem);
}

bool input_list_add_as(struct input_list *list, const char *path, const char *name,
                       struct problem *ret_problem)
{
    return append_named(list, path, name, ret_problem);
}

bool input_list_add_held(struct input_list *list, int fd, const char *shown, const char *name,
                         struct problem *ret_problem)
{
    if (!append_named(list, shown, name, ret_problem)) {
        (void)close(fd); /* nobody needs the file */
        return false;
    }
    list->items[list->count - 1].held_fd = fd;
    return true;
}

/* Appends a temporary file under a name that no file of a work folder has. */
static bool add_apart(struct input_list *list, int fd, const char *shown, const char *name,
                      struct problem *ret_problem)
{
    char *both = copy_both(shown, name);
    const bool good =
        both != NULL ? push(list, both, strlen(shown) + 1, ret_problem) : no_memory(ret_problem);
    if (!good) {
        (void)close(fd); /* nobody needs the file */
        return false;
    }
    list->items[list->count - 1].held_fd = fd;
    return true;
}

bool input_list_add_archive(struct input_list *list, int fd, const char *shown,
                            struct problem *ret_problem)
{
    return add_apart(list, fd, shown, INPUT_LIST_ARCHIVE, ret_problem);
}

bool input_list_add_listing(struct input_list *list, int fd, struct problem *ret_problem)
{
    return add_apart(list, fd, "the listing of a folder", INPUT_LIST_LISTING, ret_problem);
}

bool input_list_move(struct input_list *list, struct input_file *file, struct problem *ret_problem)
{
    struct input_file *items =
        array_with_room(list->items, list->count, &list->capacity, sizeof *items);
    if (items == NULL) {
        return no_memory(ret_problem);
    }
    list->items = items;
    items[list->count++] = *file;
    *file = (struct input_file){.path = NULL};
    return true;
}

bool input_list_add_made(struct input_list *list, const char *shown, const char *name,
                         const struct hash32 *hash, uint64_t size, struct problem *ret_problem)
{
    if (!input_list_add_as(list, shown, name, ret_problem)) {
        return false;
    }
    struct input_file *file = &list->items[list->count - 1];
    file->hash = *hash;
    file->size = size;
    file->is_made = true;
    return true;
}

int input_temporary(struct problem *ret_problem)
{
    const char *folder = getenv("TMPDIR");
    char path[PATH_BYTES_MAX];
    (void)snprintf(path, sizeof path, "%s/bourse-XXXXXX",
                   folder != NULL && folder[0] == '/' ? folder : "/tmp");
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(path); /* the descriptor keeps the file */
        if (fd == 0) {      /* 0 means that no file is held */
            fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
            (void)close(0);
        }
    }
    if (fd < 0) {
        problem_set(ret_problem, "no temporary file can be made in %s: %s",
                    input_shown(folder != NULL && folder[0] == '/' ? folder : "/tmp").text,
                    strerror(errno));
    }
    return fd;
}

/* ---------------------------------------------------------------- content */

enum { NEIGHBOURS_MAX = 4096 };

/* Returns "; did you mean 'data.csv'?" for a name that is missing in its folder, or "". */
static struct input_shown neighbour(const char *path)
{
    struct input_shown advice = {.text = ""};
    char folder[PATH_BYTES_MAX];
    const char *slash = strrchr(path, '/');
    (void)snprintf(folder, sizeof folder, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1,
                   slash == NULL ? "." : path);
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, NULL);
    const char **names = count > 0 ? calloc((size_t)count, sizeof *names) : NULL;
    size_t known = 0;
    for (int i = 0; names != NULL && i < count && known < NEIGHBOURS_MAX; i++) {
        names[known++] = entries[i]->d_name;
    }
    const char *nearest = text_nearest(slash == NULL ? path : slash + 1, names, known);
    if (nearest != NULL) {
        (void)snprintf(advice.text, sizeof advice.text, "; did you mean '%.200s'?",
                       input_shown(nearest).text);
    }
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
    free(names);
    return advice;
}

int input_open(const char *path, uint64_t *ret_size, struct problem *ret_problem)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0) {
        const char *why =
            errno == ELOOP ? "is a symbolic link; name the file itself" : strerror(errno);
        problem_set(ret_problem, "%s: %s%s", input_shown(path).text, why,
                    errno == ENOENT ? neighbour(path).text : "");
    } else if (!S_ISREG(status.st_mode)) {
        problem_set(ret_problem, "%s: is not a regular file", input_shown(path).text);
    } else {
        *ret_size = (uint64_t)status.st_size;
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd); /* read only: nothing to lose */
    }
    return -1;
}

int input_file_open(const struct input_file *file, uint64_t *ret_size, struct problem *ret_problem)
{
    if (file->held_fd == 0) {
        return input_open(file->path, ret_size, ret_problem);
    }
    char path[64];
    struct stat status;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file->held_fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC); /* a copy would share the offset */
    if (fd < 0 || fstat(fd, &status) != 0) {
        problem_set(ret_problem, "%s: %s", input_shown(file->path).text, strerror(errno));
        if (fd >= 0) {
            (void)close(fd); /* read only: nothing to lose */
        }
        return -1;
    }
    *ret_size = (uint64_t)status.st_size;
    return fd;
}

bool input_list_look(const struct input_list *list, size_t from, struct problem *ret_problem)
{
    bool ok = true;
    for (size_t i = from; ok && i < list->count; i++) {
        uint64_t size = 0;
        if (list->items[i].is_made) {
            continue;
        }
        int fd = input_file_open(&list->items[i], &size, ret_problem);
        ok = fd >= 0;
        if (ok) {
            (void)close(fd); /* read only: nothing to lose */
        }
    }
    return ok;
}

static bool hash_file(struct input_file *file, uint8_t *buffer, struct problem *ret_problem)
{
    uint64_t announced = 0;
    int fd = input_file_open(file, &announced, ret_problem);
    if (fd < 0) {
        return false;
    }
    struct sha256 hash;
    sha256_start(&hash);
    uint64_t size = 0;
    ssize_t got;
    while ((got = read(fd, buffer, READ_BYTES)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0) {
            sha256_add(&hash, buffer, (size_t)got);
            size += (uint64_t)got;
        }
    }
    if (got < 0) {
        problem_set(ret_problem, "%s: %s", input_shown(file->path).text, strerror(errno));
    }
    struct stat status;
    const bool is_seen = fstat(fd, &status) == 0;
    file->is_executable = is_seen && (status.st_mode & 0111) != 0;
    (void)close(fd); /* read only: nothing to lose */
    file->hash = sha256_end(&hash);
    file->size = size;
    if (got == 0 && is_seen && size != announced && (uint64_t)status.st_size == announced) {
        const struct input_shown shown = input_shown(file->path);
        problem_set(ret_problem,
                    "%.200s has no size of its own, as the files of /proc have none; `cat %.200s > "
                    "copy` makes a copy that can be sent",
                    shown.text, shown.text);
        return false;
    }
    return got == 0;
}

bool input_list_hash(struct input_list *list, size_t from, struct problem *ret_problem)
{
    uint8_t *buffer = malloc(READ_BYTES);
    if (buffer == NULL) {
        return no_memory(ret_problem);
    }
    bool ok = true;
    for (size_t i = from; ok && i < list->count; i++) {
        ok = list->items[i].is_made || hash_file(&list->items[i], buffer, ret_problem);
    }
    free(buffer);
    return ok;
}
