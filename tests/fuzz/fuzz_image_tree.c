/* The target puts two layers of an image on one another. The first byte says at which block the
 * second layer begins. Whatever the layers hold, no path leads out of the root, and each folder
 * comes before what is in it. */
#include "formats/image/image_tree.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { BLOCK = 512 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_bytes(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    memcpy(ret_bytes, (const uint8_t *)context + offset, length);
    return true;
}

static bool remove_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    return image_tree_remove(context, entry, ret_problem);
}

static bool add_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    return image_tree_add(context, entry, ret_problem);
}

static bool apply(struct image_tree *tree, const uint8_t *data, size_t size)
{
    const struct tar_source source = {
        .size = size, .read = read_bytes, .context = (void *)(uintptr_t)data};
    const struct tar_limits limits = {.entries = 1000, .bytes = UINT64_MAX};
    struct problem problem = {.text = ""};
    image_tree_next_layer(tree);
    return tar_walk(&source, &limits, remove_entry, tree, NULL, &problem) == TAR_OK &&
           tar_walk(&source, &limits, add_entry, tree, NULL, &problem) == TAR_OK;
}

static bool see(void *context, const struct image_tree_item *item, struct problem *ret_problem)
{
    char *before = context;
    (void)ret_problem;
    const char *slash = strrchr(item->path, '/');
    assert(item->path[0] != '/' && item->path[0] != '\0');
    assert(strcmp(item->path, "..") != 0 && strncmp(item->path, "../", 3) != 0);
    assert(strstr(item->path, "/../") == NULL && (item->mode & ~0777U) == 0);
    if (slash != NULL) { /* its folder, or what is in its folder */
        const size_t length = (size_t)(slash - item->path);
        assert(strncmp(before, item->path, length) == 0);
        assert(before[length] == '/' || before[length] == '\0');
    }
    memcpy(before, item->path, strlen(item->path) + 1);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct image_tree_caps caps = {.paths = 1000, .text_bytes = 1 << 20};
    struct image_tree *tree = image_tree_create(&caps);
    struct problem problem = {.text = ""};
    char before[4096] = "";
    if (tree != NULL && size > 1) {
        size_t first = (size_t)data[0] * BLOCK;
        first = first < size - 1 ? first : size - 1;
        if (apply(tree, data + 1, first) && apply(tree, data + 1 + first, size - 1 - first)) {
            assert(image_tree_walk(tree, see, before, &problem));
        }
    }
    image_tree_destroy(&tree);
    return 0;
}
