#include "formats/image/image_look.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    char *name; /* without "/" at either end */
    char *link; /* NULL: no link */
    char type;
    unsigned mode;
    uint64_t offset, size;
};

struct image_look {
    struct entry *entries; /* sorted by name */
    size_t count, capacity;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Returns a copy without "/" and "./" at the begin and without "/" at the end. */
static char *plain_name(const char *name)
{
    while (name[0] == '/' || (name[0] == '.' && name[1] == '/')) {
        name++;
    }
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == '/') {
        length--;
    }
    return strndup(name, length);
}

static bool add_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    struct image_look *look = context;
    struct entry *entries =
        array_with_room(look->entries, look->count, &look->capacity, sizeof *entries);
    if (entries != NULL) {
        look->entries = entries;
        struct entry *made = &entries[look->count++];
        *made = (struct entry){.name = plain_name(entry->name),
                               .type = entry->type,
                               .mode = entry->mode,
                               .offset = entry->offset,
                               .size = entry->size};
        if (entry->type == '1') {
            made->link = plain_name(entry->link);
        } else if (entry->type == '2') {
            made->link = strdup(entry->link);
        }
        if (made->name != NULL &&
            (made->link != NULL || (entry->type != '1' && entry->type != '2'))) {
            return true;
        }
    }
    problem_set(ret_problem, "out of memory");
    return false;
}

static const struct entry *entry_at(const struct image_look *look, const char *name)
{
    const struct entry key = {.name = (char *)(uintptr_t)name}; /* compared, never written */
    return look->count == 0 ? NULL : bsearch(&key, look->entries, look->count, sizeof key, by_name);
}

struct image_look *image_look_create(const struct tar_source *source, struct problem *ret_problem)
{
    const struct tar_limits limits = {.entries = UINT64_MAX, .bytes = UINT64_MAX};
    struct image_look *look = calloc(1, sizeof *look);
    if (look == NULL) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    if (tar_walk(source, &limits, add_entry, look, NULL, ret_problem) != TAR_OK) {
        image_look_destroy(&look);
        return NULL;
    }
    if (look->count > 0) {
        qsort(look->entries, look->count, sizeof *look->entries, by_name);
    }
    return look;
}

void image_look_destroy(struct image_look **self)
{
    struct image_look *look = *self;
    if (look != NULL) {
        for (size_t i = 0; i < look->count; i++) {
            free(look->entries[i].name);
            free(look->entries[i].link);
        }
        free(look->entries);
        free(look);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- paths */

/* The jail mounts something over each of these places. */
static bool is_of_jail(const char *place)
{
    static const char *const names[] = {"proc", "dev", "work", "tmp"};
    const size_t length = strcspn(place, "/");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) == length && memcmp(place, names[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static void leave_folder(char *place)
{
    char *slash = strrchr(place, '/');
    *(slash != NULL ? slash : place) = '\0';
}

/* Takes the next name off the rest of a path. Returns the name's length, 0 at the end. */
static size_t next_name(const char **rest, const char **ret_name)
{
    *rest += strspn(*rest, "/");
    *ret_name = *rest;
    *rest += strcspn(*rest, "/");
    return (size_t)(*rest - *ret_name);
}

struct walk {
    const struct image_look *look;
    char texts[2][2 * IMAGE_LOOK_PATH_BYTES]; /* the rest of the path, and the next rest */
    unsigned links;
    const char *rest;
    struct image_found *found;
};

/* Puts the link's target before the rest of the path. */
static bool follow(struct walk *walk, const struct entry *entry)
{
    char *text = walk->texts[walk->links % 2];
    const int length = snprintf(text, sizeof walk->texts[0], "%s%s", entry->link, walk->rest);
    if (entry->link[0] == '/') {
        walk->found->place[0] = '\0';
    } else {
        leave_folder(walk->found->place);
    }
    walk->rest = text;
    return length >= 0 && (size_t)length < sizeof walk->texts[0];
}

/* Goes on by one name. Returns false when the outcome is decided. */
static bool step(struct walk *walk, const char *name, size_t length)
{
    struct image_found *found = walk->found;
    const size_t used = strlen(found->place);
    if (length == 1 && name[0] == '.') {
        return true;
    }
    if (length == 2 && memcmp(name, "..", 2) == 0) {
        leave_folder(found->place);
        found->type = '5';
        return true;
    }
    if (used + length + 2 > sizeof found->place) {
        found->status = IMAGE_LOOK_UNKNOWN;
        return false;
    }
    (void)snprintf(found->place + used, sizeof found->place - used, "%s%.*s", used > 0 ? "/" : "",
                   (int)length, name);
    if (is_of_jail(found->place)) {
        found->status = IMAGE_LOOK_UNKNOWN;
        return false;
    }
    const struct entry *entry = entry_at(walk->look, found->place);
    if (entry != NULL && entry->type == '1') { /* a hard link: the same file */
        entry = entry_at(walk->look, entry->link);
    }
    if (entry == NULL) {
        found->status = IMAGE_LOOK_ABSENT;
        return false;
    }
    if (entry->type == '2') {
        const bool is_loop = ++walk->links > IMAGE_LOOK_LINKS;
        found->status = is_loop ? IMAGE_LOOK_LOOP : IMAGE_LOOK_UNKNOWN; /* if the path is long */
        return !is_loop && follow(walk, entry);
    }
    found->type = entry->type;
    found->mode = entry->mode;
    found->offset = entry->offset;
    found->size = entry->size;
    found->status = IMAGE_LOOK_NO_FOLDER;
    return entry->type == '5' || *walk->rest == '\0';
}

void image_look_find(const struct image_look *look, const char *path, struct image_found *ret_found)
{
    struct walk *walk = malloc(sizeof *walk);
    const char *name;
    *ret_found = (struct image_found){.status = IMAGE_LOOK_UNKNOWN, .type = '5'};
    if (walk == NULL || strlen(path) >= IMAGE_LOOK_PATH_BYTES) {
        free(walk);
        return;
    }
    *walk = (struct walk){.look = look, .rest = path, .found = ret_found};
    bool goes_on = true;
    for (size_t length; goes_on && (length = next_name(&walk->rest, &name)) > 0;) {
        goes_on = step(walk, name, length);
    }
    if (goes_on) {
        ret_found->status = IMAGE_LOOK_FOUND;
    }
    free(walk);
}
