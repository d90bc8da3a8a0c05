#include "consumer/job/image/image_user.h"

#include "base/text.h"
#include "formats/tar.h"
#include "runtime/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 64, ID_DIGITS = 10 };
#define ID_MAX UINT32_C(2147483647)

struct place {
    const char *name;
    uint64_t offset, size;
};

static bool read_root(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    return file_read_at(*(const int *)context, ret_bytes, length, offset);
}

static bool note(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    (void)ret_problem;
    struct place *place = context;
    if (entry->type == '0' && strcmp(entry->name, place->name) == 0) {
        place->offset = entry->offset;
        place->size = entry->size;
    }
    return true;
}

/* Returns the text of a file of the root, "" when there is none, or NULL with the problem. The
 * archive is one that image_flatten wrote. */
static char *read_text(int root_fd, const char *name, struct problem *problem)
{
    struct stat status;
    struct place place = {.name = name};
    const struct tar_limits limits = {.entries = UINT64_MAX, .bytes = UINT64_MAX};
    if (fstat(root_fd, &status) != 0) {
        problem_set(problem, "the image's archive cannot be read");
        return NULL;
    }
    const struct tar_source tar = {
        .size = (uint64_t)status.st_size, .read = read_root, .context = &root_fd};
    if (tar_walk(&tar, &limits, note, &place, NULL, problem) != TAR_OK) {
        return NULL;
    }
    if (place.size > IMAGE_USER_FILE_BYTES) {
        problem_set(problem, "its /%s has %llu bytes; at most %d are read", name,
                    (unsigned long long)place.size, IMAGE_USER_FILE_BYTES);
        return NULL;
    }
    char *text = malloc((size_t)place.size + 1);
    if (text == NULL || !file_read_at(root_fd, text, (size_t)place.size, place.offset)) {
        problem_set(problem, text == NULL ? "out of memory" : "its /%s cannot be read", name);
        free(text);
        return NULL;
    }
    text[place.size] = '\0';
    return text;
}

static bool read_number(const char *text, size_t length, uint32_t *ret_number)
{
    uint64_t number = 0;
    if (length == 0 || length > ID_DIGITS) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return false;
        }
        number = 10 * number + (uint64_t)(text[i] - '0');
    }
    *ret_number = (uint32_t)number;
    return number <= ID_MAX;
}

/* Returns the begin of a field of a line, and its length. */
static const char *field(const char *line, size_t index, size_t *ret_length)
{
    for (; index > 0; index--) {
        line += strcspn(line, ":\n");
        line += *line == ':';
    }
    *ret_length = strcspn(line, ":\n");
    return line;
}

/* Finds the line whose field 0 is the name, or whose field 2 is the number. */
static const char *find_line(const char *text, const char *name)
{
    while (*text != '\0') {
        size_t length;
        size_t id_length;
        const char *first = field(text, 0, &length);
        const char *id = field(text, 2, &id_length);
        if ((length == strlen(name) && memcmp(first, name, length) == 0) ||
            (id_length == strlen(name) && memcmp(id, name, id_length) == 0)) {
            return text;
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return NULL;
}

static bool number_at(const char *line, size_t index, uint32_t *ret_number)
{
    size_t length;
    const char *text = field(line, index, &length);
    return read_number(text, length, ret_number);
}

static bool unknown(const char *kind, const char *name, const char *file, struct problem *problem)
{
    char shown[NAME_BYTES];
    text_printable(name, strlen(name), shown, sizeof shown);
    problem_set(problem, "its %s \"%s\" is neither a number up to %u nor in its /%s", kind, shown,
                ID_MAX, file);
    return false;
}

static bool find_group(const char *name, int root_fd, uint32_t *ret_group, struct problem *problem)
{
    char *text = read_text(root_fd, "etc/group", problem);
    if (text == NULL) {
        return false;
    }
    const char *line = find_line(text, name);
    *ret_group = 0;
    const bool good = read_number(name, strlen(name), ret_group) ||
                      (line != NULL && number_at(line, 2, ret_group)) ||
                      strcmp(name, "root") == 0 || unknown("group", name, "etc/group", problem);
    free(text);
    return good;
}

bool image_user_find(const char *text, int root_fd, uint32_t *ret_user, uint32_t *ret_group,
                     struct problem *ret_problem)
{
    char name[NAME_BYTES];
    const char *colon = strchr(text, ':');
    const size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
    uint32_t user = 0;
    uint32_t group = 0;
    if (length >= sizeof name) {
        return unknown("user", text, "etc/passwd", ret_problem);
    }
    memcpy(name, text, length);
    name[length] = '\0';
    char *users = read_text(root_fd, "etc/passwd", ret_problem);
    if (users == NULL) {
        return false;
    }
    const char *line = length > 0 ? find_line(users, name) : NULL;
    /* Root is 0 in every image, also in one without any file but its program. */
    bool good = read_number(name, length, &user) || (line != NULL && number_at(line, 2, &user)) ||
                strcmp(name, "root") == 0 || unknown("user", name, "etc/passwd", ret_problem);
    if (good && line != NULL && colon == NULL) {
        good = number_at(line, 3, &group) || unknown("user", name, "etc/passwd", ret_problem);
    }
    free(users);
    good = good && (colon == NULL || find_group(colon + 1, root_fd, &group, ret_problem));
    if (good) {
        *ret_user = user;
        *ret_group = group;
    }
    return good;
}
