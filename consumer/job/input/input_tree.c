#include "consumer/job/input/input_tree.h"

#include "base/array.h"
#include "formats/template.h"
#include "runtime/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

void input_tree_fini(struct input_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        free((char *)(uintptr_t)tree->items[i].name); /* the target lies behind it */
    }
    free(tree->items);
    *tree = (struct input_tree){.items = NULL};
}

static bool no_memory(struct problem *ret_problem)
{
    problem_set(ret_problem, "out of memory");
    return false;
}

/* ---------------------------------------------------------------- entries */

/* Adds the entry with copies of its texts, in one piece of memory. */
static bool add(struct input_tree *tree, const struct work_tree_entry *entry,
                struct problem *ret_problem)
{
    if (!template_path_safe(entry->name)) {
        return input_list_refuse_name(entry->name, ret_problem);
    }
    if (tree->count == WORK_TREE_ENTRIES) {
        problem_set(ret_problem,
                    "more than %d files, folders and links; pack them with tar, or leave some out",
                    WORK_TREE_ENTRIES);
        return false;
    }
    struct work_tree_entry *items =
        array_with_room(tree->items, tree->count, &tree->capacity, sizeof *items);
    if (items == NULL) {
        return no_memory(ret_problem);
    }
    tree->items = items;
    const size_t name_size = strlen(entry->name) + 1;
    const size_t target_size = strlen(entry->target) + 1;
    char *texts = malloc(name_size + target_size);
    if (texts == NULL) {
        return no_memory(ret_problem);
    }
    memcpy(texts, entry->name, name_size);
    memcpy(texts + name_size, entry->target, target_size);
    items[tree->count] = *entry;
    items[tree->count].name = texts;
    items[tree->count].target = texts + name_size;
    tree->count++;
    tree->folders += entry->kind == WORK_TREE_FOLDER;
    tree->links += entry->kind == WORK_TREE_LINK;
    return true;
}

static struct work_tree_entry entry_of(enum work_tree_kind kind, const char *name,
                                       const struct stat *status)
{
    return (struct work_tree_entry){.kind = kind,
                                    .mode = status->st_mode & 0777,
                                    .modified_ns = (int64_t)status->st_mtim.tv_sec * NS_PER_S +
                                                   status->st_mtim.tv_nsec,
                                    .name = name,
                                    .target = ""};
}

bool input_tree_add_file(struct input_tree *tree, const char *name, const struct stat *status,
                         struct problem *ret_problem)
{
    const struct work_tree_entry entry = entry_of(WORK_TREE_FILE, name, status);
    return add(tree, &entry, ret_problem);
}

bool input_tree_add_folder(struct input_tree *tree, const char *name, const struct stat *status,
                           struct problem *ret_problem)
{
    const struct work_tree_entry entry = entry_of(WORK_TREE_FOLDER, name, status);
    return name[0] == '\0' || strcmp(name, ".") == 0 || add(tree, &entry, ret_problem);
}

bool input_tree_add_link(struct input_tree *tree, const char *name, const char *target,
                         const struct stat *status, struct problem *ret_problem)
{
    struct work_tree_entry entry = entry_of(WORK_TREE_LINK, name, status);
    entry.mode = 0;
    entry.target = target;
    return add(tree, &entry, ret_problem);
}

bool input_tree_has_link_to(const struct input_tree *tree, const char *name)
{
    bool found = false;
    for (size_t i = 0; tree->links > 0 && i < tree->count && !found; i++) {
        const struct work_tree_entry *entry = &tree->items[i];
        found = entry->kind == WORK_TREE_LINK &&
                (strcmp(entry->name, name) == 0 || work_tree_is_below(name, entry->name));
    }
    return found;
}

/* ---------------------------------------------------------------- the listing */

static int by_name(const void *a, const void *b)
{
    return work_tree_compare(((const struct work_tree_entry *)a)->name,
                             ((const struct work_tree_entry *)b)->name);
}

/* Two names of `files:` may stand for one folder, or for one link. */
static bool is_same(const struct work_tree_entry *a, const struct work_tree_entry *b)
{
    return a->kind == b->kind && a->kind != WORK_TREE_FILE && strcmp(a->target, b->target) == 0;
}

/* Sorts the entries, and drops those that are there twice. */
static bool settle(struct input_tree *tree, struct problem *ret_problem)
{
    size_t kept = 0;
    bool good = true;
    qsort(tree->items, tree->count, sizeof *tree->items, by_name);
    for (size_t i = 0; i < tree->count; i++) {
        const struct work_tree_entry *entry = &tree->items[i];
        const struct work_tree_entry *before = kept > 0 ? &tree->items[kept - 1] : NULL;
        const bool is_again = before != NULL && strcmp(before->name, entry->name) == 0;
        if (good && is_again && !is_same(before, entry)) {
            problem_set(ret_problem, "'%s' is given twice", input_shown(entry->name).text);
            good = false;
        }
        if (good && before != NULL && before->kind != WORK_TREE_FOLDER &&
            work_tree_is_below(entry->name, before->name)) {
            problem_set(ret_problem, "'%s' would lie below '%s', which is no folder",
                        input_shown(entry->name).text, input_shown(before->name).text);
            good = false;
        }
        if (is_again) {
            free((char *)(uintptr_t)entry->name);
        } else {
            tree->items[kept++] = *entry;
        }
    }
    tree->count = kept;
    return good;
}

static void encode(const struct input_tree *tree, struct writer *out)
{
    work_tree_write_head(out, (uint32_t)tree->count);
    for (size_t i = 0; i < tree->count; i++) {
        work_tree_write(out, &tree->items[i]);
    }
}

/* Writes the listing into a temporary file. Returns its descriptor, or -1 with the problem. */
static int write_listing(const struct input_tree *tree, struct problem *ret_problem)
{
    struct writer measure = writer_counting();
    encode(tree, &measure);
    if (measure.position > WORK_TREE_BYTES) {
        problem_set(ret_problem, "the names of the files take %zu bytes, at most %d can be sent",
                    measure.position, WORK_TREE_BYTES);
        return -1;
    }
    uint8_t *bytes = malloc(measure.position);
    int fd = bytes != NULL ? input_temporary(ret_problem) : -1;
    if (bytes == NULL) {
        (void)no_memory(ret_problem);
    } else if (fd >= 0) {
        struct writer out = writer_over(bytes, measure.position);
        encode(tree, &out);
        if (!file_write_at(fd, bytes, measure.position, 0)) {
            problem_set(ret_problem, "the listing of a folder cannot be written: %s",
                        strerror(errno));
            (void)close(fd); /* the file has no name and ends here */
            fd = -1;
        }
    }
    free(bytes);
    return fd;
}

bool input_tree_list(struct input_tree *tree, struct input_list *list, struct problem *ret_problem)
{
    if (tree->folders + tree->links == 0) {
        return true;
    }
    const int fd = settle(tree, ret_problem) ? write_listing(tree, ret_problem) : -1;
    return fd >= 0 && input_list_add_listing(list, fd, ret_problem);
}
