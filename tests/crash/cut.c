#include "tests/crash/cut.h"

#include "base/random.h"
#include "tests/crash/disk.h"

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECTOR_BYTES = 512, NAMES_MAX = 1024 };

enum fate { LOST, KEPT, TORN, GROWN };

struct file {
    uint8_t *bytes;
    size_t size, capacity;
};

struct left_name {
    uint32_t folder, node;
    bool is_folder;
    char text[DISK_NAME_SIZE]; /* "": gone */
};

struct left {
    struct file *files; /* by node */
    struct left_name names[NAMES_MAX];
    size_t name_count;
};

/* ---- who survives */

static bool names_something(const struct disk_change *change)
{
    return change->kind != DISK_WRITE && change->kind != DISK_RESIZE;
}

/* The node whose fsync makes this change stay. A rename is one entry of the file system's journal:
 * the folder that it ends in takes the other along. */
static uint32_t keeper(const struct disk_change *change)
{
    if (!names_something(change)) {
        return change->node;
    }
    return change->kind == DISK_RENAME ? change->to_folder : change->folder;
}

static bool is_sync(const struct disk_change *change)
{
    return change->kind == DISK_SYNC || change->kind == DISK_SYNC_FAILED;
}

struct safety {
    bool bytes, names;
};

struct dice {
    struct random random;
    uint64_t keep_of_8; /* so many of eight unsynced changes stay */
};

static enum fate draw(const struct cut *cut, struct dice *dice)
{
    switch (cut->rest) {
    case CUT_LOSES_ALL:
        return LOST;
    case CUT_KEEPS_ALL:
        return KEPT;
    case CUT_SOME_STAYS:
        break;
    }
    if (random_below(&dice->random, 8) < dice->keep_of_8) {
        return KEPT;
    }
    return random_below(&dice->random, 4) == 0 ? GROWN : LOST;
}

/* Walks back from the cut. A node is safe once an fsync of it was met. A failed one takes that back
 * for the bytes before it: their pages are marked clean and no later fsync writes them. Names stay
 * in the file system's journal, and a later fsync finds them there. */
static void decide(const struct cut *cut, enum fate *ret_fates)
{
    struct dice dice = {.random = random_seeded(cut->seed)};
    dice.keep_of_8 = 1 + random_below(&dice.random, 7);
    struct safety *safe = calloc(disk_node_count(), sizeof *safe);
    size_t torn = SIZE_MAX;
    size_t candidates = 0;
    assert(safe != NULL);
    for (size_t i = cut->before; i-- > 0;) {
        const struct disk_change *change = disk_change_at(i);
        if (is_sync(change)) {
            safe[change->node].bytes = change->kind == DISK_SYNC;
            safe[change->node].names |= change->kind == DISK_SYNC;
            continue;
        }
        const struct safety *kept = &safe[keeper(change)];
        bool is_safe = names_something(change) ? kept->names : kept->bytes;
        ret_fates[i] = is_safe ? KEPT : draw(cut, &dice);
        if (change->kind == DISK_WRITE && !is_safe && change->length > SECTOR_BYTES &&
            cut->rest != CUT_LOSES_ALL) {
            candidates++;
            bool is_it = cut->rest == CUT_KEEPS_ALL ? candidates == 1
                                                    : random_below(&dice.random, candidates) == 0;
            torn = is_it ? i : torn;
        }
    }
    if (torn != SIZE_MAX) {
        ret_fates[torn] = TORN;
    }
    free(safe);
}

/* ---- what is left */

static void resize(struct file *file, size_t size)
{
    if (size > file->capacity) {
        file->capacity = size * 2;
        file->bytes = realloc(file->bytes, file->capacity);
        assert(file->bytes != NULL);
    }
    if (size > file->size) {
        memset(file->bytes + file->size, 0, size - file->size);
    }
    file->size = size;
}

static void apply_write(struct file *file, const struct disk_change *change, size_t from, size_t to)
{
    if (from < to) {
        size_t end = (size_t)change->offset + to;
        resize(file, end > file->size ? end : file->size);
        memcpy(file->bytes + change->offset + from, disk_bytes(change->data) + from, to - from);
    }
}

/* The head or the tail of the write, up to a boundary within it. */
static void apply_torn(struct file *file, const struct disk_change *change, uint64_t seed)
{
    struct random random = random_seeded(seed ^ change->offset);
    size_t first = SECTOR_BYTES - (size_t)(change->offset % SECTOR_BYTES);
    size_t boundaries = (change->length - first - 1) / SECTOR_BYTES + 1;
    size_t at = first + (size_t)random_below(&random, boundaries) * SECTOR_BYTES;
    if (random_below(&random, 2) == 0) {
        apply_write(file, change, 0, at);
    } else {
        apply_write(file, change, at, change->length);
    }
}

/* The size of a file is written by itself: it may cover bytes that were not. */
static void apply_grown(struct file *file, const struct disk_change *change)
{
    size_t end = (size_t)change->offset + change->length;
    resize(file, end > file->size ? end : file->size);
}

static struct left_name *find(struct left *left, uint32_t folder, const char *text)
{
    for (size_t i = 0; i < left->name_count; i++) {
        if (left->names[i].folder == folder && strcmp(left->names[i].text, text) == 0) {
            return &left->names[i];
        }
    }
    return NULL;
}

static void remove_name(struct left *left, uint32_t folder, const char *text)
{
    struct left_name *name = find(left, folder, text);
    if (name != NULL) {
        name->text[0] = '\0';
    }
}

static void put_name(struct left *left, uint32_t folder, const char *text, uint32_t node,
                     bool is_folder)
{
    struct left_name *name = find(left, folder, text);
    if (name == NULL) {
        assert(left->name_count < NAMES_MAX);
        name = &left->names[left->name_count++];
    }
    *name = (struct left_name){.folder = folder, .node = node, .is_folder = is_folder};
    strcpy(name->text, text);
}

static void apply(struct left *left, const struct disk_change *change, enum fate fate,
                  uint64_t seed)
{
    struct file *file = &left->files[change->node];
    switch (change->kind) {
    case DISK_MAKE:
    case DISK_LINK:
        put_name(left, change->folder, change->name, change->node, false);
        return;
    case DISK_MAKE_FOLDER:
        put_name(left, change->folder, change->name, change->node, true);
        return;
    case DISK_UNLINK:
        remove_name(left, change->folder, change->name);
        return;
    case DISK_RENAME:
        remove_name(left, change->folder, change->name);
        put_name(left, change->to_folder, change->to_name, change->node, false);
        return;
    case DISK_WRITE:
        if (fate == TORN) {
            apply_torn(file, change, seed);
        } else if (fate == GROWN) {
            apply_grown(file, change);
        } else {
            apply_write(file, change, 0, change->length);
        }
        return;
    case DISK_RESIZE:
        resize(file, (size_t)change->offset);
        return;
    case DISK_SYNC:
    case DISK_SYNC_FAILED:
        return;
    }
}

static void write_file(const char *path, const struct file *file)
{
    FILE *out = fopen(path, "w");
    assert(out != NULL && chmod(path, 0600) == 0);
    assert(file->size == 0 || fwrite(file->bytes, file->size, 1, out) == 1);
    assert(fclose(out) == 0);
}

static void write_folder(const struct left *left, uint32_t folder, const char *path)
{
    assert(mkdir(path, 0700) == 0);
    for (size_t i = 0; i < left->name_count; i++) {
        const struct left_name *name = &left->names[i];
        char below[PATH_MAX];
        if (name->text[0] == '\0' || name->folder != folder) {
            continue;
        }
        int length = snprintf(below, sizeof below, "%s/%s", path, name->text);
        assert(length > 0 && (size_t)length < sizeof below);
        if (name->is_folder) {
            write_folder(left, name->node, below);
        } else {
            write_file(below, &left->files[name->node]);
        }
    }
}

void cut_power(const struct cut *cut, const char *target)
{
    enum fate *fates = calloc(cut->before + 1, sizeof *fates);
    struct left *left = calloc(1, sizeof *left);
    assert(fates != NULL && left != NULL);
    left->files = calloc(disk_node_count(), sizeof *left->files);
    assert(left->files != NULL);
    decide(cut, fates);
    for (size_t i = 0; i < cut->before; i++) {
        bool is_write = disk_change_at(i)->kind == DISK_WRITE;
        if (fates[i] != LOST && (fates[i] != GROWN || is_write)) {
            apply(left, disk_change_at(i), fates[i], cut->seed);
        }
    }
    write_folder(left, DISK_ROOT, target);
    for (uint32_t node = 0; node < disk_node_count(); node++) {
        free(left->files[node].bytes);
    }
    free(left->files);
    free(left);
    free(fates);
}

/* ---- words */

void cut_describe(const struct cut *cut, char *ret_text, size_t capacity)
{
    static const char *const verbs[] = {"make",  "make folder", "link",  "unlink",         "rename",
                                        "write", "resize",      "fsync", "failed fsync of"};
    if (cut->before == disk_change_count()) {
        (void)snprintf(ret_text, capacity, "after the last change"); /* cut short at worst */
        return;
    }
    const struct disk_change *change = disk_change_at(cut->before);
    (void)snprintf(
        ret_text, capacity, "before change %zu: %s %s (%zu bytes at %llu), rest %d, seed %llu",
        cut->before, verbs[change->kind], disk_name(change->node), change->length,
        (unsigned long long)change->offset, (int)cut->rest, (unsigned long long)cut->seed);
}
