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

enum { READ_BYTES = 1 << 18, PATH_BYTES_MAX = 4096, SHOWN_BYTES = 256 };

void input_list_fini(struct input_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
    }
    free(list->items);
    *list = (struct input_list){.items = NULL};
}

/* Returns `text` in a printable form, because a file's name may hold any bytes. */
struct shown {
    char text[SHOWN_BYTES];
};
static struct shown shown(const char *text)
{
    struct shown copy;
    text_printable(text, strlen(text), copy.text, sizeof copy.text);
    return copy;
}

static bool no_memory(struct problem *ret_problem)
{
    problem_set(ret_problem, "out of memory");
    return false;
}

/* ---------------------------------------------------------------- names */

static const char *name_of(const char *path)
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

static bool name_check(const char *name, struct problem *ret_problem)
{
    if (!template_path_safe(name)) {
        problem_set(ret_problem,
                    "a file's name cannot be used: '%s'; rename it: relative, UTF-8, no control "
                    "characters, no "
                    "\"..\" inside, at most %d bytes",
                    shown(name).text, LIMIT_PATH_BYTES);
        return false;
    }
    return true;
}

/* The function takes `path` over. */
static bool append(struct input_list *list, char *path, size_t name_offset,
                   struct problem *ret_problem)
{
    if (path == NULL) {
        return no_memory(ret_problem);
    }
    const char *name = name_of(path + name_offset);
    if (!name_check(name, ret_problem)) {
        free(path);
        return false;
    }
    struct input_file *items =
        array_with_room(list->items, list->count, &list->capacity, sizeof *items);
    if (items == NULL) {
        free(path);
        return no_memory(ret_problem);
    }
    list->items = items;
    items[list->count++] = (struct input_file){.path = path, .name = path + (name - path)};
    return true;
}

/* ---------------------------------------------------------------- patterns */

/* Writes "FOLDER/", with special characters escaped for glob or unchanged; "" for an absolute
 * pattern. Returns the length of the unescaped form. */
static size_t folder_prefix(const char *folder, const char *pattern, bool escape, char *ret_text,
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
    size_t offset = folder_prefix(folder, pattern, true, prefix, sizeof prefix);
    int length = snprintf(full, sizeof full, "%s%s", prefix, pattern);
    if (length < 0 || (size_t)length >= sizeof full || 2 * strlen(folder) + 8 > sizeof prefix) {
        problem_set(ret_problem, "the path of the pattern '%s' is too long", shown(pattern).text);
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
                    shown(pattern).text, pattern[0] == '/' ? "/" : shown(folder).text,
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
                            shown(file->name).text, shown(last->path).text, shown(file->path).text);
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
    size_t offset = folder_prefix(folder, name, false, prefix, sizeof prefix);
    int length = snprintf(path, sizeof path, "%s%s", prefix, name);
    if (length < 0 || (size_t)length >= sizeof path || strlen(folder) + 8 > sizeof prefix) {
        problem_set(ret_problem, "the path '%s' is too long", shown(name).text);
        return false;
    }
    return append(list, strdup(path), offset, ret_problem);
}

/* ---------------------------------------------------------------- content */

enum { NEIGHBOURS_MAX = 4096 };

/* Returns "; did you mean 'data.csv'?" for a name that is missing in its folder, or "". */
static struct shown neighbour(const char *path)
{
    struct shown advice = {.text = ""};
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
                       shown(nearest).text);
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
        problem_set(ret_problem, "%s: %s%s", shown(path).text, why,
                    errno == ENOENT ? neighbour(path).text : "");
    } else if (!S_ISREG(status.st_mode)) {
        problem_set(ret_problem, "%s: is not a regular file", shown(path).text);
    } else {
        *ret_size = (uint64_t)status.st_size;
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd); /* read only: nothing to lose */
    }
    return -1;
}

bool input_list_look(const struct input_list *list, size_t from, struct problem *ret_problem)
{
    bool ok = true;
    for (size_t i = from; ok && i < list->count; i++) {
        uint64_t size = 0;
        int fd = input_open(list->items[i].path, &size, ret_problem);
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
    int fd = input_open(file->path, &announced, ret_problem);
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
        problem_set(ret_problem, "%s: %s", shown(file->path).text, strerror(errno));
    }
    (void)close(fd); /* read only: nothing to lose */
    file->hash = sha256_end(&hash);
    file->size = size;
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
        ok = hash_file(&list->items[i], buffer, ret_problem);
    }
    free(buffer);
    return ok;
}
