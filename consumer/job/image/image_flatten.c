#include "consumer/job/image/image_flatten.h"

#include "consumer/job/image/image_layer.h"
#include "consumer/job/input_list.h"
#include "formats/image/image_tree.h"
#include "protocol/limits.h"
#include "runtime/archive.h"
#include "runtime/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The layers together may have four times as many paths as the finished image. */
const struct image_flatten_caps image_flatten_caps = {.paths = 4 * LIMIT_IMAGE_FILES,
                                                      .text_bytes = UINT64_C(128) << 20,
                                                      .layer_bytes = UINT64_C(16) << 30};

struct flatten {
    const struct image_source *source;
    const struct image_description *description;
    const struct image_flatten_caps *caps;
    struct image_tree *tree;
    struct image_part parts[IMAGE_LAYERS];  /* as they lie in the source */
    struct image_part layers[IMAGE_LAYERS]; /* without compression */
    uint64_t left;                          /* bytes that further layers may have */
    uint64_t entries;                       /* in the layers so far */
    struct archive archive;
    struct problem *problem;
};

static bool read_layer(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct image_part *layer = context;
    return file_read_at(layer->fd, ret_bytes, length, layer->offset + offset);
}

static bool remove_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    return image_tree_remove(context, entry, ret_problem);
}

static bool add_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    return image_tree_add(context, entry, ret_problem);
}

/* A repeated entry makes no new path, so the number of entries has a bound of its own. */
static bool apply(struct flatten *flatten, struct image_part *layer, struct problem *problem)
{
    const struct tar_source tar = {.size = layer->size, .read = read_layer, .context = layer};
    const struct tar_limits limits = {.entries = flatten->caps->paths - flatten->entries,
                                      .bytes = UINT64_MAX};
    struct tar_limits has = {.entries = 0};
    image_tree_next_layer(flatten->tree);
    if (tar_walk(&tar, &limits, remove_entry, flatten->tree, &has, problem) != TAR_OK ||
        tar_walk(&tar, &limits, add_entry, flatten->tree, NULL, problem) != TAR_OK) {
        return false;
    }
    flatten->entries += has.entries;
    return true;
}

static bool open_layer(struct flatten *flatten, size_t index, struct problem *problem)
{
    const struct image_layer_file *file = &flatten->description->layers[index];
    struct image_part *part = &flatten->parts[index];
    if (!image_source_part(flatten->source, file->path, part, problem)) {
        return false;
    }
    if (file->has_digest && part->size != file->size) {
        problem_set(problem, "it has %llu bytes, and its manifest says %llu; copy the image again",
                    (unsigned long long)part->size, (unsigned long long)file->size);
        return false;
    }
    return image_layer_open(part, file->has_digest ? &file->digest : NULL,
                            &flatten->description->config.diff_ids[index], &flatten->left,
                            &flatten->layers[index], problem);
}

static bool take_layers(struct flatten *flatten)
{
    for (size_t i = 0; i < flatten->description->layer_count; i++) {
        struct problem why = {.text = ""};
        if (!open_layer(flatten, i, &why) || !apply(flatten, &flatten->layers[i], &why)) {
            problem_set(flatten->problem, "layer %zu of %zu: %.440s", i + 1,
                        flatten->description->layer_count, why.text);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- the root */

/* The jail mounts over these places, and over no link of the image (provider/jail/image.c). */
static bool has_places(const struct flatten *flatten)
{
    static const char *const places[] = {"proc", "dev", "work", "tmp"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const char type = image_tree_type(flatten->tree, places[i]);
        if (type != 0 && type != '5') {
            problem_set(flatten->problem,
                        "it has a file or link at /%s, where each jail has a folder of its own",
                        places[i]);
            return false;
        }
    }
    if (image_tree_type(flatten->tree, ".bourse-worker") != 0) {
        problem_set(flatten->problem, "it has a file or folder at /.bourse-worker, where each jail "
                                      "has a program of its own");
        return false;
    }
    return true;
}

/* Adds the folder in which programs start when no layer has it, as Docker does. */
static bool make_directory(const struct flatten *flatten)
{
    const char *directory = flatten->description->config.directory;
    const char type = image_tree_type(flatten->tree, directory);
    if (type == '5' || type == '2') { /* a link may lead to a folder */
        return true;
    }
    if (type != 0) {
        problem_set(flatten->problem, "its WorkingDir is a file and no folder");
        return false;
    }
    const struct tar_entry entry = {.name = directory, .link = "", .type = '5', .mode = 0755};
    return image_tree_add(flatten->tree, &entry, flatten->problem);
}

static bool write_item(void *context, const struct image_tree_item *item,
                       struct problem *ret_problem)
{
    struct flatten *flatten = context;
    char name[8192];
    (void)ret_problem; /* the archive has the same */
    (void)snprintf(name, sizeof name, "%s%s", item->path, item->type == '5' ? "/" : "");
    if (!archive_put_header(&flatten->archive, item->type, name, item->link, item->mode,
                            item->size)) {
        return false;
    }
    const struct image_part *layer = &flatten->layers[item->layer];
    return item->type != '0' ||
           archive_put_file(&flatten->archive, layer->fd, layer->offset + item->offset, item->size,
                            input_shown(item->path).text);
}

static bool read_root(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    return file_read_at(*(const int *)context, ret_bytes, length, offset);
}

/* Refuses an image that no agent would unpack. */
static bool is_root(struct flatten *flatten)
{
    const struct tar_source tar = {
        .size = flatten->archive.length, .read = read_root, .context = &flatten->archive.fd};
    const struct tar_limits limits = {.entries = LIMIT_IMAGE_FILES, .bytes = UINT64_MAX};
    return tar_check(&tar, &limits, NULL, flatten->problem) == TAR_OK;
}

static bool flatten_all(struct flatten *flatten)
{
    const struct image_tree_caps caps = {.paths = flatten->caps->paths,
                                         .text_bytes = (size_t)flatten->caps->text_bytes};
    flatten->tree = image_tree_create(&caps);
    if (flatten->tree == NULL) {
        problem_set(flatten->problem, "out of memory");
        return false;
    }
    return take_layers(flatten) && has_places(flatten) && make_directory(flatten) &&
           image_tree_walk(flatten->tree, write_item, flatten, flatten->problem) &&
           archive_put_end(&flatten->archive) && is_root(flatten);
}

bool image_flatten(const struct image_source *source, const struct image_description *description,
                   const struct image_flatten_caps *caps, int fd, struct problem *ret_problem)
{
    struct flatten *flatten = calloc(1, sizeof *flatten);
    if (flatten == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    flatten->source = source;
    flatten->description = description;
    flatten->caps = caps;
    flatten->left = caps->layer_bytes;
    flatten->archive = (struct archive){.fd = fd, .problem = ret_problem};
    flatten->problem = ret_problem;
    for (size_t i = 0; i < IMAGE_LAYERS; i++) {
        flatten->parts[i].fd = flatten->layers[i].fd = -1;
    }
    const bool good = flatten_all(flatten);
    for (size_t i = 0; i < IMAGE_LAYERS; i++) {
        image_part_fini(&flatten->layers[i]);
        image_part_fini(&flatten->parts[i]);
    }
    image_tree_destroy(&flatten->tree);
    free(flatten);
    return good;
}
