#include "formats/image/image_tree.h"

#include "base/array.h"
#include "base/sha256.h"
#include "base/text.h"
#include "formats/limits.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NONE = INT_MAX, /* no node; an index below the largest cap */
    ROOT = 0,
    PATH_BYTES = 4096, /* with a NUL, as of a tar entry */
    SLOTS_LEAST = 1024,
    MODE_BITS = 0777,
    FOLDER_MODE = 0755, /* of a folder that only a path names */
};

static const char WHITEOUT[] = ".wh.";
static const char OPAQUE[] = ".wh..wh..opq";

/* A node is a path. A removed node leaves its folder's list, and keeps its place in the table. */
struct node {
    uint32_t parent, first, previous, next; /* the nodes of a folder are a list */
    size_t name, link;                      /* offsets in the text */
    uint32_t name_length;
    uint32_t content; /* of a file: index; several hard links have the same */
    unsigned mode;
    char type; /* 0: removed */
};

struct content {
    uint64_t offset, size;
    uint32_t layer;
    uint32_t first; /* node that the walk met first; NONE: not met yet */
};

struct image_tree {
    struct image_tree_caps caps;
    struct node *nodes;
    size_t count, capacity;
    struct content *contents;
    size_t content_count, content_capacity;
    char *text;
    size_t text_length, text_capacity;
    uint32_t *slots; /* hash table of nodes by folder and name; a power of two */
    size_t slot_count;
    uint32_t layers;
};

static bool fail(struct problem *problem, const char *path, const char *what)
{
    char shown[200];
    text_printable(path, strlen(path), shown, sizeof shown);
    problem_set(problem, "\"%s\": %s", shown, what);
    return false;
}

static bool no_memory(struct problem *problem)
{
    problem_set(problem, "out of memory");
    return false;
}

/* ---------------------------------------------------------------- nodes */

struct image_tree *image_tree_create(const struct image_tree_caps *caps)
{
    struct image_tree *tree = calloc(1, sizeof *tree);
    assert(caps->paths < NONE);
    if (tree == NULL) {
        return NULL;
    }
    tree->caps = *caps;
    tree->slot_count = SLOTS_LEAST;
    tree->slots = malloc(SLOTS_LEAST * sizeof *tree->slots);
    tree->nodes = array_with_room(NULL, 0, &tree->capacity, sizeof *tree->nodes);
    tree->text = calloc(1, ARRAY_LEAST);
    if (tree->slots == NULL || tree->nodes == NULL || tree->text == NULL) {
        image_tree_destroy(&tree);
        return NULL;
    }
    for (size_t i = 0; i < SLOTS_LEAST; i++) {
        tree->slots[i] = NONE;
    }
    tree->text_capacity = ARRAY_LEAST;
    tree->text_length = 1; /* offset 0 is "" */
    tree->nodes[tree->count++] =
        (struct node){.parent = NONE, .first = NONE, .previous = NONE, .next = NONE, .type = '5'};
    return tree;
}

void image_tree_destroy(struct image_tree **self)
{
    struct image_tree *tree = *self;
    if (tree != NULL) {
        free(tree->nodes);
        free(tree->contents);
        free(tree->text);
        free(tree->slots);
        free(tree);
        *self = NULL;
    }
}

/* The names come from strangers, so the hash is one for which nobody can choose collisions. */
static size_t slot_of(const struct image_tree *tree, uint32_t folder, const char *name,
                      size_t length)
{
    struct sha256 hash;
    size_t slot;
    sha256_start(&hash);
    sha256_add(&hash, &folder, sizeof folder);
    sha256_add(&hash, name, length);
    const struct hash32 digest = sha256_end(&hash);
    memcpy(&slot, digest.bytes, sizeof slot);
    return slot & (tree->slot_count - 1);
}

/* Returns the slot of the name, or the free slot where the name belongs. */
static size_t find_slot(const struct image_tree *tree, uint32_t folder, const char *name,
                        size_t length)
{
    size_t slot = slot_of(tree, folder, name, length);
    for (; tree->slots[slot] != NONE; slot = (slot + 1) & (tree->slot_count - 1)) {
        const struct node *node = &tree->nodes[tree->slots[slot]];
        if (node->parent == folder && node->name_length == length &&
            memcmp(tree->text + node->name, name, length) == 0) {
            break;
        }
    }
    return slot;
}

/* Returns a node that is there, or NONE. */
static uint32_t find(const struct image_tree *tree, uint32_t folder, const char *name,
                     size_t length)
{
    const uint32_t node = tree->slots[find_slot(tree, folder, name, length)];
    return node != NONE && tree->nodes[node].type != 0 ? node : NONE;
}

static bool grow_slots(struct image_tree *tree)
{
    const size_t count = 2 * tree->slot_count;
    uint32_t *slots = malloc(count * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        slots[i] = NONE;
    }
    free(tree->slots);
    tree->slots = slots;
    tree->slot_count = count;
    for (uint32_t i = 1; i < tree->count; i++) {
        const struct node *node = &tree->nodes[i];
        slots[find_slot(tree, node->parent, tree->text + node->name, node->name_length)] = i;
    }
    return true;
}

/* Returns the offset of a copy of the text, or 0 with the problem. */
static size_t keep_text(struct image_tree *tree, const char *text, size_t length,
                        struct problem *problem)
{
    if (length + 1 > tree->caps.text_bytes ||
        tree->text_length > tree->caps.text_bytes - length - 1) {
        problem_set(problem, "the names in all layers take more than %zu bytes",
                    tree->caps.text_bytes);
        return 0;
    }
    while (tree->text_capacity - tree->text_length <= length) {
        char *larger = realloc(tree->text, 2 * tree->text_capacity);
        if (larger == NULL) {
            (void)no_memory(problem);
            return 0;
        }
        tree->text = larger;
        tree->text_capacity *= 2;
    }
    const size_t offset = tree->text_length;
    memcpy(tree->text + offset, text, length);
    tree->text[offset + length] = '\0';
    tree->text_length += length + 1;
    return offset;
}

static void link_into_folder(struct image_tree *tree, uint32_t index)
{
    struct node *node = &tree->nodes[index];
    struct node *folder = &tree->nodes[node->parent];
    node->first = node->previous = NONE;
    node->next = folder->first;
    if (folder->first != NONE) {
        tree->nodes[folder->first].previous = index;
    }
    folder->first = index;
}

/* Returns a new or returned folder of this name, or NONE with the problem. The caller gives another
 * type to it. */
static uint32_t make(struct image_tree *tree, uint32_t folder, const char *name, size_t length,
                     struct problem *problem)
{
    size_t slot = find_slot(tree, folder, name, length);
    uint32_t index = tree->slots[slot];
    if (index == NONE) {
        if (tree->count > tree->caps.paths) {
            problem_set(problem, "more than %u files, folders and links in all layers",
                        tree->caps.paths);
            return NONE;
        }
        struct node *nodes =
            array_with_room(tree->nodes, tree->count, &tree->capacity, sizeof *nodes);
        if (nodes != NULL) {
            tree->nodes = nodes;
        }
        if (nodes == NULL || (2 * tree->count > tree->slot_count && !grow_slots(tree))) {
            (void)no_memory(problem);
            return NONE;
        }
        const size_t kept = keep_text(tree, name, length, problem);
        if (kept == 0) {
            return NONE;
        }
        slot = find_slot(tree, folder, name, length);
        index = (uint32_t)tree->count++;
        tree->slots[slot] = index;
        tree->nodes[index] =
            (struct node){.parent = folder, .name = kept, .name_length = (uint32_t)length};
    }
    if (tree->nodes[index].type == 0) {
        tree->nodes[index].type = '5';
        tree->nodes[index].mode = FOLDER_MODE;
        link_into_folder(tree, index);
    }
    return index;
}

/* Removes all that is below the folder. Every node is removed once for each time it was made. */
static void empty(struct image_tree *tree, uint32_t folder)
{
    uint32_t at = folder;
    for (;;) {
        struct node *node = &tree->nodes[at];
        if (node->first != NONE) {
            at = node->first;
            continue;
        }
        if (at == folder) {
            return;
        }
        node->type = 0;
        at = node->parent;
        tree->nodes[at].first = node->next; /* the node was the first of its folder */
    }
}

static void drop(struct image_tree *tree, uint32_t index)
{
    struct node *node = &tree->nodes[index];
    empty(tree, index);
    if (node->previous != NONE) {
        tree->nodes[node->previous].next = node->next;
    } else {
        tree->nodes[node->parent].first = node->next;
    }
    if (node->next != NONE) {
        tree->nodes[node->next].previous = node->previous;
    }
    node->type = 0;
}

/* ---------------------------------------------------------------- paths */

/* Returns the length of the next name of a path, 0 at the end, and moves *at behind the name. A tar
 * entry has no "..". */
static size_t next_name(const char **at, const char **ret_name)
{
    for (;;) {
        *at += strspn(*at, "/");
        *ret_name = *at;
        const size_t length = strcspn(*at, "/");
        *at += length;
        if (length != 1 || (*ret_name)[0] != '.') {
            return length;
        }
    }
}

static bool is_last(const char *rest)
{
    const char *name;
    return next_name(&rest, &name) == 0;
}

/* Returns the node at a path, or NONE. */
static uint32_t find_path(const struct image_tree *tree, const char *path)
{
    const char *name;
    uint32_t at = ROOT;
    for (size_t length; at != NONE && (length = next_name(&path, &name)) > 0;) {
        at = find(tree, at, name, length);
    }
    return at;
}

char image_tree_type(const struct image_tree *tree, const char *path)
{
    const uint32_t node = find_path(tree, path);
    return node == NONE ? 0 : tree->nodes[node].type;
}

/* Splits off the last name of an entry. Returns its length, 0 for the root, and the path before. */
static size_t split(const char *path, char ret_folder[PATH_BYTES], const char **ret_name)
{
    const char *at = path;
    const char *name;
    size_t last = 0;
    *ret_name = "";
    for (size_t length; (length = next_name(&at, &name)) > 0;) {
        *ret_name = name;
        last = length;
    }
    const size_t length = last > 0 ? (size_t)(*ret_name - path) : 0;
    assert(length < PATH_BYTES);
    memcpy(ret_folder, path, length);
    ret_folder[length] = '\0';
    return last;
}

static bool begins_with(const char *name, size_t length, const char *begin)
{
    return length >= strlen(begin) && memcmp(name, begin, strlen(begin)) == 0;
}

/* ---------------------------------------------------------------- layers */

void image_tree_next_layer(struct image_tree *tree)
{
    tree->layers++;
}

bool image_tree_remove(struct image_tree *tree, const struct tar_entry *entry,
                       struct problem *ret_problem)
{
    char folder_path[PATH_BYTES];
    const char *name;
    const size_t length = split(entry->name, folder_path, &name);
    if (!begins_with(name, length, WHITEOUT)) {
        return true;
    }
    const uint32_t folder = find_path(tree, folder_path);
    if (length == sizeof OPAQUE - 1 && begins_with(name, length, OPAQUE)) {
        if (folder != NONE) {
            empty(tree, folder);
        }
        return true;
    }
    if (begins_with(name, length, ".wh..wh.")) {
        return true; /* notes of a file system that Docker once used */
    }
    const size_t cut = sizeof WHITEOUT - 1;
    if (length == cut) {
        return fail(ret_problem, entry->name, "a whiteout that names nothing");
    }
    const uint32_t node = folder == NONE ? NONE : find(tree, folder, name + cut, length - cut);
    if (node == NONE) {
        return fail(ret_problem, entry->name,
                    "the layer removes a file that no layer below has; build the image again");
    }
    drop(tree, node);
    return true;
}

static bool set_content(struct image_tree *tree, uint32_t index, const struct tar_entry *entry,
                        struct problem *problem)
{
    struct content *contents = array_with_room(tree->contents, tree->content_count,
                                               &tree->content_capacity, sizeof *contents);
    if (contents == NULL) {
        return no_memory(problem);
    }
    tree->contents = contents;
    contents[tree->content_count] = (struct content){
        .offset = entry->offset, .size = entry->size, .layer = tree->layers - 1, .first = NONE};
    tree->nodes[index].content = (uint32_t)tree->content_count++;
    return true;
}

/* Makes the new node the same as what the hard link leads to, which is in the tree already. */
static bool set_same(struct image_tree *tree, uint32_t index, uint32_t target)
{
    struct node *node = &tree->nodes[index];
    const struct node *same = &tree->nodes[target];
    node->type = same->type;
    node->mode = same->mode;
    node->link = same->link;
    node->content = same->content;
    return true;
}

static bool fill(struct image_tree *tree, uint32_t index, uint32_t target,
                 const struct tar_entry *entry, struct problem *problem)
{
    if (target != NONE) {
        return set_same(tree, index, target);
    }
    struct node *node = &tree->nodes[index];
    node->type = entry->type;
    node->mode = (entry->mode & MODE_BITS) | (entry->type == '5' ? 0700U : 0400U);
    if (entry->type == '2') {
        const size_t link = keep_text(tree, entry->link, strlen(entry->link), problem);
        node->link = link;
        node->mode = MODE_BITS;
        return link != 0;
    }
    return entry->type != '0' || set_content(tree, index, entry, problem);
}

/* Returns the folder that the entry goes into, made where it is missing, or NONE. */
static uint32_t make_folders(struct image_tree *tree, const char *folders,
                             const struct tar_entry *entry, struct problem *problem)
{
    const char *name;
    uint32_t at = ROOT;
    for (size_t length; at != NONE && (length = next_name(&folders, &name)) > 0;) {
        const uint32_t known = find(tree, at, name, length);
        if (known != NONE && tree->nodes[known].type != '5') {
            (void)fail(problem, entry->name,
                       "the entry lies below a file or link and not below a folder");
            return NONE;
        }
        at = known != NONE ? known : make(tree, at, name, length, problem);
    }
    return at;
}

static bool is_in_dev(const char *path)
{
    const char *name;
    const size_t length = next_name(&path, &name);
    return length == 3 && memcmp(name, "dev", 3) == 0 && !is_last(path);
}

bool image_tree_add(struct image_tree *tree, const struct tar_entry *entry,
                    struct problem *ret_problem)
{
    char folder_path[PATH_BYTES];
    const char *name;
    const size_t length = split(entry->name, folder_path, &name);
    assert(tree->layers > 0);
    if (length == 0 || begins_with(name, length, WHITEOUT) || is_in_dev(entry->name)) {
        return true; /* jails have a root and devices of their own */
    }
    if (entry->type < '0' || entry->type > '6' || entry->type == '3' || entry->type == '4') {
        return fail(ret_problem, entry->name, "the entry is neither file, folder nor link");
    }
    uint32_t target = NONE;
    if (entry->type == '1') {
        target = find_path(tree, entry->link);
        if (target == NONE || tree->nodes[target].type == '5') {
            return fail(ret_problem, entry->name,
                        "a hard link to what is not there, or is a folder");
        }
    }
    const uint32_t folder = make_folders(tree, folder_path, entry, ret_problem);
    if (folder == NONE) {
        return false;
    }
    const uint32_t known = find(tree, folder, name, length);
    if (known != NONE && known == target) {
        return true;
    }
    if (known != NONE && (tree->nodes[known].type != '5' || entry->type != '5')) {
        drop(tree, known);
    }
    if (target != NONE && tree->nodes[target].type == 0) {
        return fail(ret_problem, entry->name, "a hard link to a file in a folder that it replaces");
    }
    const uint32_t index = make(tree, folder, name, length, ret_problem);
    return index != NONE && fill(tree, index, target, entry, ret_problem);
}

/* ---------------------------------------------------------------- the walk */

struct walk {
    struct image_tree *tree;
    image_tree_visit *visit;
    void *context;
    struct problem *problem;
    char path[PATH_BYTES], first[PATH_BYTES];
};

struct child {
    const char *name;
    uint32_t node;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct child *)a)->name, ((const struct child *)b)->name);
}

/* Writes the path of a node. A path has as many levels as a tar entry may have. */
static void path_of(const struct image_tree *tree, uint32_t index, char ret_path[PATH_BYTES])
{
    uint32_t levels[FORMAT_IMAGE_DEPTH];
    size_t depth = 0;
    size_t length = 0;
    for (; index != ROOT; index = tree->nodes[index].parent) {
        assert(depth < FORMAT_IMAGE_DEPTH);
        levels[depth++] = index;
    }
    while (depth > 0) {
        const struct node *node = &tree->nodes[levels[--depth]];
        assert(length + node->name_length + 1 <= PATH_BYTES);
        memcpy(ret_path + length, tree->text + node->name, node->name_length);
        length += node->name_length;
        ret_path[length++] = depth > 0 ? '/' : '\0';
    }
}

static bool show(struct walk *walk, uint32_t index)
{
    struct image_tree *tree = walk->tree;
    const struct node *node = &tree->nodes[index];
    path_of(tree, index, walk->path);
    struct image_tree_item item = {.path = walk->path,
                                   .link = node->type == '2' ? tree->text + node->link : "",
                                   .type = node->type,
                                   .mode = node->mode};
    if (node->type == '0') {
        struct content *content = &tree->contents[node->content];
        if (content->first == NONE) {
            content->first = index;
        } else {
            path_of(tree, content->first, walk->first);
            item.type = '1';
            item.link = walk->first;
        }
        item.layer = content->layer;
        item.offset = content->offset;
        item.size = item.type == '1' ? 0 : content->size;
    }
    return walk->visit(walk->context, &item, walk->problem);
}

/* Calls itself once for each level of a path, which are FORMAT_IMAGE_DEPTH at most. */
static bool walk_folder(struct walk *walk, uint32_t folder)
{
    struct image_tree *tree = walk->tree;
    size_t count = 0;
    for (uint32_t at = tree->nodes[folder].first; at != NONE; at = tree->nodes[at].next) {
        count++;
    }
    struct child *children = calloc(count + 1, sizeof *children);
    if (children == NULL) {
        return no_memory(walk->problem);
    }
    count = 0;
    for (uint32_t at = tree->nodes[folder].first; at != NONE; at = tree->nodes[at].next) {
        children[count++] = (struct child){.name = tree->text + tree->nodes[at].name, .node = at};
    }
    qsort(children, count, sizeof *children, by_name);
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        good = show(walk, children[i].node) &&
               (tree->nodes[children[i].node].type != '5' || walk_folder(walk, children[i].node));
    }
    free(children);
    return good;
}

bool image_tree_walk(struct image_tree *tree, image_tree_visit *visit, void *context,
                     struct problem *ret_problem)
{
    struct walk *walk = malloc(sizeof *walk);
    if (walk == NULL) {
        return no_memory(ret_problem);
    }
    walk->tree = tree;
    walk->visit = visit;
    walk->context = context;
    walk->problem = ret_problem;
    for (size_t i = 0; i < tree->content_count; i++) {
        tree->contents[i].first = NONE;
    }
    const bool good = walk_folder(walk, ROOT);
    free(walk);
    return good;
}
