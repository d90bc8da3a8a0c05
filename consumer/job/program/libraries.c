#include "consumer/job/program/libraries.h"

#include "base/array.h"
#include "base/text.h"
#include "consumer/job/input_list.h"
#include "formats/elf/ld_cache.h"
#include "runtime/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };
#define LD_CACHE "/etc/ld.so.cache"

/* One file whose libraries are looked for. */
struct object {
    char *path;    /* without symbolic links */
    char *folders; /* DT_RPATH, which holds for what the file loads too; NULL: none */
    size_t loader; /* index of the object that loaded this one; its own index for the program */
};

struct search {
    struct libraries *libraries;
    const char *machine;
    uint8_t *cache; /* of /etc/ld.so.cache; NULL: none */
    size_t cache_length;
    struct elf *elf; /* scratch for candidates */
    struct object *objects;
    size_t object_count, object_capacity;
    char found[PATH_BYTES]; /* the last candidate that fits, without symbolic links */
    uint64_t found_size;
    struct problem *problem;
};

void libraries_fini(struct libraries *libraries)
{
    for (size_t i = 0; i < libraries->count; i++) {
        free(libraries->items[i].name);
        free(libraries->items[i].path);
    }
    free(libraries->items);
    *libraries = (struct libraries){.items = NULL};
}

static bool read_file(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const int *fd = context;
    return file_read_at(*fd, ret_bytes, length, offset);
}

enum elf_status libraries_read_elf(int fd, uint64_t size, struct elf *ret_elf,
                                   struct problem *ret_problem)
{
    const struct elf_source source = {.size = size, .read = read_file, .context = &fd};
    return elf_read(&source, ret_elf, ret_problem);
}

static bool no_memory(struct search *search)
{
    problem_set(search->problem, "out of memory");
    return false;
}

/* ---------------------------------------------------------------- places */

/* Returns true when the file is an ELF file for the program's machine. Like the loader, the search
 * goes on after any other file. */
static bool fits(struct search *search, const char *path)
{
    struct problem ignored; /* the search goes on elsewhere */
    if (realpath(path, search->found) == NULL) {
        return false;
    }
    int fd = input_open(search->found, &search->found_size, &ignored);
    if (fd < 0) {
        return false;
    }
    const bool good = libraries_read_elf(fd, search->found_size, search->elf, &ignored) == ELF_OK &&
                      search->elf->is_program && strcmp(search->elf->machine, search->machine) == 0;
    (void)close(fd); /* read only: nothing to lose */
    return good;
}

static bool fits_in(struct search *search, const char *folder, const char *name)
{
    char path[PATH_BYTES];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && fits(search, path);
}

/* Writes the folder with $ORIGIN replaced. Returns false when the folder has another token, or is
 * relative: then the loader's answer depends on where the program starts. */
static bool expand(const char *folder, size_t length, const char *origin, char *ret_path,
                   size_t capacity)
{
    size_t at = 0;
    for (size_t i = 0; i < length;) {
        const char *rest = folder + i;
        const size_t token = length - i >= 9 && strncmp(rest, "${ORIGIN}", 9) == 0 ? 9
                             : length - i >= 7 && strncmp(rest, "$ORIGIN", 7) == 0 ? 7
                                                                                   : 0;
        const size_t more = token > 0 ? strlen(origin) : 1;
        if ((token == 0 && rest[0] == '$') || at + more >= capacity) {
            return false;
        }
        memcpy(ret_path + at, token > 0 ? origin : rest, more);
        at += more;
        i += token > 0 ? token : 1;
    }
    ret_path[at] = '\0';
    return ret_path[0] == '/';
}

/* Looks in a list of folders, separated by colons, of the object at `owner`. */
static bool fits_list(struct search *search, const char *folders, const char *owner,
                      const char *name)
{
    char origin[PATH_BYTES];
    const char *slash = strrchr(owner, '/');
    (void)snprintf(origin, sizeof origin, "%.*s", slash == NULL ? 0 : (int)(slash - owner), owner);
    bool found = false;
    while (!found && *folders != '\0') {
        char folder[PATH_BYTES];
        const size_t length = strcspn(folders, ":");
        found =
            expand(folders, length, origin, folder, sizeof folder) && fits_in(search, folder, name);
        folders += length + (folders[length] == ':');
    }
    return found;
}

/* DT_RPATH holds for the file itself and for every file on the way to the program. */
static bool fits_rpath(struct search *search, size_t index, const char *name)
{
    for (;;) {
        const struct object *object = &search->objects[index];
        if (object->folders != NULL && fits_list(search, object->folders, object->path, name)) {
            return true;
        }
        if (object->loader == index) {
            return false;
        }
        index = object->loader;
    }
}

static bool fits_cache(struct search *search, const char *name)
{
    size_t index = 0;
    const char *path;
    while (search->cache != NULL &&
           (path = ld_cache_next(search->cache, search->cache_length, name, &index)) != NULL) {
        if (fits(search, path)) {
            return true;
        }
    }
    return false;
}

static bool fits_default(struct search *search, const char *name)
{
    static const char *const roots[] = {"/lib", "/usr/lib"};
    bool found = false;
    for (size_t i = 0; !found && i < sizeof roots / sizeof roots[0]; i++) {
        char folder[PATH_BYTES];
        (void)snprintf(folder, sizeof folder, "%s/%s-linux-gnu", roots[i], search->machine);
        found = fits_in(search, folder, name);
        (void)snprintf(folder, sizeof folder, "%s64", roots[i]);
        found = found || fits_in(search, folder, name) || fits_in(search, roots[i], name);
    }
    return found;
}

/* ---------------------------------------------------------------- closure */

static bool is_known(const struct libraries *libraries, const char *name)
{
    for (size_t i = 0; i < libraries->count; i++) {
        if (strcmp(libraries->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Adds the file found last, as a library and as an object whose libraries are looked for. */
static bool add_found(struct search *search, const char *name, size_t loader)
{
    struct libraries *libraries = search->libraries;
    if (libraries->count == LIBRARIES_MAX) {
        problem_set(search->problem, "the program loads more than %d libraries", LIBRARIES_MAX);
        return false;
    }
    if (search->found_size > LIBRARIES_BYTES_MAX - libraries->bytes) {
        problem_set(search->problem,
                    "the program's libraries have more than %llu bytes together; give an image, or "
                    "send the program with --host-libraries",
                    (unsigned long long)LIBRARIES_BYTES_MAX);
        return false;
    }
    if (search->found_size > LIBRARY_FILE_BYTES_MAX || strlen(name) > LIBRARY_NAME_BYTES_MAX) {
        problem_set(search->problem,
                    "the library %.200s is too large, or its name is too long; at most %d bytes "
                    "and %d bytes are possible",
                    search->found, LIBRARY_FILE_BYTES_MAX, LIBRARY_NAME_BYTES_MAX);
        return false;
    }
    struct library *items =
        array_with_room(libraries->items, libraries->count, &libraries->capacity, sizeof *items);
    if (items == NULL) {
        return no_memory(search);
    }
    libraries->items = items;
    struct library *library = &items[libraries->count];
    *library = (struct library){
        .name = strdup(name), .path = strdup(search->found), .size = search->found_size};
    libraries->count++;
    libraries->bytes += library->size;
    struct object *objects = array_with_room(search->objects, search->object_count,
                                             &search->object_capacity, sizeof *objects);
    if (objects == NULL || library->name == NULL || library->path == NULL) {
        search->objects = objects != NULL ? objects : search->objects;
        return no_memory(search);
    }
    search->objects = objects;
    objects[search->object_count++] =
        (struct object){.path = strdup(search->found), .loader = loader};
    return objects[search->object_count - 1].path != NULL || no_memory(search);
}

static bool add_needed(struct search *search, size_t index, const char *runpath, const char *name)
{
    const char *given = getenv("LD_LIBRARY_PATH");
    const char *owner = search->objects[index].path;
    if (is_known(search->libraries, name)) {
        return true;
    }
    if (strchr(name, '/') != NULL || name[0] == '\0') {
        problem_set(search->problem,
                    "%.200s needs the library '%.100s' by its path, which other machines do not "
                    "have; link it by its name",
                    owner, name);
        return false;
    }
    const bool found = (runpath == NULL && fits_rpath(search, index, name)) ||
                       (given != NULL && fits_list(search, given, owner, name)) ||
                       (runpath != NULL && fits_list(search, runpath, owner, name)) ||
                       fits_cache(search, name) || fits_default(search, name);
    if (!found) {
        problem_set(search->problem,
                    "%.200s needs the library %.100s, which is not found here; install it, or "
                    "name its folder in LD_LIBRARY_PATH by its whole path",
                    owner, name);
        return false;
    }
    return add_found(search, name, index);
}

/* Adds what one object names. */
static bool follow(struct search *search, size_t index, struct elf *elf)
{
    uint64_t size = 0;
    int fd = input_open(search->objects[index].path, &size, search->problem);
    if (fd < 0) {
        return false;
    }
    struct problem why = {.text = ""};
    const enum elf_status status = libraries_read_elf(fd, size, elf, &why);
    (void)close(fd); /* read only: nothing to lose */
    if (status != ELF_OK) {
        problem_set(search->problem, "%.200s: %.200s", search->objects[index].path, why.text);
        return false;
    }
    const bool has_rpath = elf->folders[0] != '\0' && !elf->has_runpath;
    if (has_rpath && (search->objects[index].folders = strdup(elf->folders)) == NULL) {
        return no_memory(search);
    }
    for (size_t i = 0; i < elf->needed_count; i++) {
        if (!add_needed(search, index, elf->has_runpath ? elf->folders : NULL, elf->needed[i])) {
            return false;
        }
    }
    return true;
}

static bool begin(struct search *search, const char *path, const struct elf *elf)
{
    struct problem ignored; /* a machine without a cache has the default folders */
    char real[PATH_BYTES];
    if (realpath(path, real) == NULL) {
        problem_set(search->problem, "%.200s: %s", path, strerror(errno));
        return false;
    }
    if (!file_read(LD_CACHE, LD_CACHE_BYTES_MAX, &search->cache, &search->cache_length, &ignored)) {
        search->cache = NULL;
    }
    search->objects = array_with_room(NULL, 0, &search->object_capacity, sizeof *search->objects);
    if (search->objects == NULL) {
        return no_memory(search);
    }
    search->objects[search->object_count++] = (struct object){.path = strdup(real)};
    if (search->objects[0].path == NULL) {
        return no_memory(search);
    }
    if (!fits(search, elf->interpreter)) {
        problem_set(search->problem, "the program's loader %.200s is not here, or does not fit",
                    elf->interpreter);
        return false;
    }
    return add_found(search, strrchr(elf->interpreter, '/') + 1, 0);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct library *)a)->name, ((const struct library *)b)->name);
}

bool libraries_find(const char *path, const struct elf *elf, struct libraries *libraries,
                    struct problem *ret_problem)
{
    if (elf->interpreter[0] == '\0') {
        return true;
    }
    struct search search = {
        .libraries = libraries, .machine = elf->machine, .problem = ret_problem};
    struct elf *current = malloc(sizeof *current);
    search.elf = malloc(sizeof *search.elf);
    bool good = current != NULL && search.elf != NULL && strchr(elf->interpreter, '/') != NULL;
    if (!good) {
        problem_set(ret_problem, "out of memory, or the program's loader has no path");
    }
    good = good && begin(&search, path, elf);
    for (size_t i = 0; good && i < search.object_count; i++) {
        good = follow(&search, i, current);
    }
    for (size_t i = 0; i < search.object_count; i++) {
        free(search.objects[i].path);
        free(search.objects[i].folders);
    }
    free(search.objects);
    free(search.cache);
    free(search.elf);
    free(current);
    if (good) {
        qsort(libraries->items, libraries->count, sizeof *libraries->items, by_name);
    }
    return good;
}
