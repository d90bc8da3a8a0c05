/* Each test puts layers on one another. It gives the layers as archives, and what the root is in
 * the end. */
#include "formats/image/image_tree.h"

#include "base/cleanup.h"
#include "tests/support/image_layers.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct image_tree *tree;
static struct problem problem;
static char shown[4096];

static void begin(uint32_t paths, size_t text_bytes)
{
    const struct image_tree_caps caps = {.paths = paths, .text_bytes = text_bytes};
    image_tree_destroy(&tree);
    tree = image_tree_create(&caps);
    ck_assert_ptr_nonnull(tree);
    problem.text[0] = '\0';
}

static void setup(void)
{
    begin(64, 4096);
}

static void teardown(void)
{
    image_tree_destroy(&tree);
}

struct bytes {
    const uint8_t *bytes;
};

static bool read_bytes(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    memcpy(ret_bytes, ((const struct bytes *)context)->bytes + offset, length);
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

static bool put_layer(const struct layer_entry *entries)
{
    size_t length;
    uint8_t *made = layer_make(entries, &length);
    struct bytes bytes = {.bytes = made};
    const struct tar_source source = {.size = length, .read = read_bytes, .context = &bytes};
    const struct tar_limits limits = {.entries = 100000, .bytes = 1 << 20};
    image_tree_next_layer(tree);
    const bool good = tar_walk(&source, &limits, remove_entry, tree, NULL, &problem) == TAR_OK &&
                      tar_walk(&source, &limits, add_entry, tree, NULL, &problem) == TAR_OK;
    free(made);
    return good;
}
#define LAYER(...) put_layer((const struct layer_entry[]){__VA_ARGS__, {0, "", "", 0}})

/* Adds "TYPE PATH MODE[ -> LINK][ @LAYER SIZE]" to what is shown. */
static bool show(void *context, const struct image_tree_item *item, struct problem *ret_problem)
{
    char *at = shown + strlen(shown);
    const size_t room = sizeof shown - strlen(shown);
    (void)context;
    (void)ret_problem;
    if (item->type == '0') {
        (void)snprintf(at, room, "%c %s %o @%u %llu\n", item->type, item->path, item->mode,
                       item->layer, (unsigned long long)item->size);
    } else {
        (void)snprintf(at, room, "%c %s %o%s%s\n", item->type, item->path, item->mode,
                       item->link[0] != '\0' ? " -> " : "", item->link);
    }
    return true;
}

static const char *root(void)
{
    shown[0] = '\0';
    ck_assert(image_tree_walk(tree, show, NULL, &problem));
    return shown;
}

static void refused(bool good, const char *why)
{
    ck_assert(!good);
    ck_assert_msg(strstr(problem.text, why) != NULL, "%s", problem.text);
}

START_TEST(a_layer_adds_and_replaces)
{
    ck_assert(LAYER({'5', "etc/", "", 0755}, {'0', "etc/name", "one", 0644},
                    {'0', "./bin/tool", "x", 0755}, {'2', "lib", "usr/lib", 0777}));
    ck_assert(LAYER({'0', "etc/name", "second", 0600}, {'5', "lib", "", 0755}));
    ck_assert_str_eq(root(), "5 bin 755\n0 bin/tool 755 @0 1\n5 etc 755\n0 etc/name 600 @1 6\n"
                             "5 lib 755\n");
    ck_assert_int_eq(image_tree_type(tree, "etc/name"), '0');
    ck_assert_int_eq(image_tree_type(tree, "/lib"), '5');
    ck_assert_int_eq(image_tree_type(tree, "usr"), 0);
}
END_TEST

START_TEST(a_whiteout_removes_what_layers_below_have)
{
    ck_assert(LAYER({'0', "a/b/c", "x", 0}, {'0', "a/d", "x", 0}, {'0', "e", "x", 0}));
    /* The new files stand before the whiteouts, and stay. */
    ck_assert(LAYER({'0', "a/b/new", "y", 0}, {'0', "a/.wh.b", "", 0}, {'0', ".wh.e", "", 0}));
    ck_assert_str_eq(root(), "5 a 755\n5 a/b 755\n0 a/b/new 644 @1 1\n0 a/d 644 @0 1\n");
}
END_TEST

START_TEST(an_opaque_whiteout_empties_a_folder)
{
    ck_assert(LAYER({'0', "a/b/c", "x", 0}, {'0', "a/d", "x", 0}, {'0', "e", "x", 0}));
    ck_assert(LAYER({'0', "a/new", "y", 0}, {'0', "a/.wh..wh..opq", "", 0},
                    {'0', "absent/.wh..wh..opq", "", 0}, {'0', ".wh..wh.plnk", "", 0}));
    ck_assert_str_eq(root(), "5 a 755\n0 a/new 644 @1 1\n0 e 644 @0 1\n");
    ck_assert(LAYER({'0', ".wh..wh..opq", "", 0}));
    ck_assert_str_eq(root(), "");
}
END_TEST

START_TEST(a_whiteout_of_nothing_is_refused)
{
    ck_assert(LAYER({'0', "a/b", "x", 0}));
    refused(LAYER({'0', "a/.wh.c", "", 0}), "\"a/.wh.c\": the layer removes a file that no layer");
    refused(LAYER({'0', "x/.wh.c", "", 0}), "no layer below has");
    refused(LAYER({'0', "a/.wh.", "", 0}), "names nothing");
    setup();
    refused(LAYER({'0', "mine", "", 0}, {'0', ".wh.mine", "", 0}), "no layer below has");
}
END_TEST

START_TEST(a_removed_path_may_come_back)
{
    for (unsigned i = 0; i < 100; i++) { /* the caps count it once */
        ck_assert(LAYER({'0', "a/b/c", "x", 0}));
        ck_assert(LAYER({'0', ".wh.a", "", 0}));
    }
    ck_assert_str_eq(root(), "");
    ck_assert(LAYER({'0', "a", "x", 0}));
    ck_assert_str_eq(root(), "0 a 644 @200 1\n");
}
END_TEST

START_TEST(hard_links_are_one_file)
{
    ck_assert(LAYER({'0', "z", "content", 0644}, {'1', "b", "z", 0}, {'1', "m", "/./b", 0}) ==
              false); /* an absolute target */
    setup();
    ck_assert(LAYER({'0', "z", "content", 0644}, {'1', "b", "z", 0}, {'1', "m", "./b", 0}));
    ck_assert_str_eq(root(), "0 b 644 @0 7\n1 m 644 -> b\n1 z 644 -> b\n");
    /* The file stays for the others when one name goes. */
    ck_assert(LAYER({'0', ".wh.z", "", 0}, {'0', ".wh.b", "", 0}));
    ck_assert_str_eq(root(), "0 m 644 @0 7\n");
    refused(LAYER({'1', "x", "absent", 0}), "a hard link to what is not there");
    setup();
    refused(LAYER({'0', "d/f", "x", 0}, {'1', "x", "d", 0}), "or is a folder");
    setup();
    refused(LAYER({'0', "d/f", "x", 0}, {'1', "d", "d/f", 0}), "in a folder that it replaces");
    setup();
    ck_assert(LAYER({'0', "f", "x", 0}, {'1', "f", "f", 0}));
    ck_assert_str_eq(root(), "0 f 644 @0 1\n");
}
END_TEST

START_TEST(nothing_lies_below_a_link_or_file)
{
    refused(LAYER({'2', "a", "/etc", 0}, {'0', "a/passwd", "x", 0}), "below a file or link");
    setup();
    ck_assert(LAYER({'0', "a", "x", 0}));
    refused(LAYER({'0', "a/b", "x", 0}), "below a file or link");
}
END_TEST

START_TEST(special_bits_and_devices_go)
{
    ck_assert(LAYER({'0', "su", "x", 04755}, {'5', "tmp", "", 01777}, {'5', "locked", "", 02070},
                    {'0', "secret", "x", 0200}, {'3', "dev/null", "", 0666}, {'0', "dev/x", "", 0},
                    {'6', "pipe", "", 0644}));
    ck_assert_str_eq(root(), "5 locked 770\n6 pipe 644\n0 secret 600 @0 1\n0 su 755 @0 1\n"
                             "5 tmp 777\n");
    refused(LAYER({'4', "disk", "", 0660}), "is a device, and not below /dev");
}
END_TEST

START_TEST(hostile_names_are_refused)
{
    refused(LAYER({'0', "../x", "", 0}), "\"..\"");
    refused(LAYER({'0', "a/../../x", "", 0}), "\"..\"");
    refused(LAYER({'2', "a/l", "../../x", 0}), "leads out of the image");
    refused(LAYER({'1', "a/l", "../x", 0}), "leads out of the image");
    setup();
    ck_assert(LAYER({'0', "/etc//./passwd", "", 0}, {'0', "\n\033[2J", "", 0}, {'5', "./", "", 0}));
    ck_assert_str_eq(root(), "0 \n\033[2J 644 @0 0\n5 etc 755\n0 etc/passwd 644 @0 0\n");
}
END_TEST

START_TEST(caps_bound_paths_and_names)
{
    begin(4, 4096);
    ck_assert(LAYER({'0', "a/b/c", "", 0}, {'0', "d", "", 0}));
    refused(LAYER({'0', "e", "", 0}), "more than 4 files, folders and links in all layers");
    begin(64, 16);
    refused(LAYER({'0', "0123456789", "", 0}, {'0', "abcdef", "", 0}), "take more than 16 bytes");
    begin(64, 16);
    refused(LAYER({'2', "l", "0123456789abcdef", 0}), "take more than 16 bytes");
}
END_TEST

START_TEST(many_names_are_found_again)
{
    struct layer_entry entries[2002] = {{0}};
    char names[2001][24];
    begin(10000, 1 << 20);
    for (size_t i = 0; i < 2001; i++) {
        (void)snprintf(names[i], sizeof names[i], "d%zu/f%zu", i % 7, i);
        entries[i] = (struct layer_entry){'0', names[i], "x", 0};
    }
    for (int i = 0; i < 2; i++) {
        entries[1000] = (struct layer_entry){0};
        ck_assert(put_layer(entries));
        entries[1000] = (struct layer_entry){'0', names[1000], "x", 0};
    }
    ck_assert_int_eq(image_tree_type(tree, names[999]), '0');
    ck_assert_int_eq(image_tree_type(tree, names[1001]), 0);
    ck_assert(LAYER({'0', ".wh.d3", "", 0}));
    ck_assert_int_eq(image_tree_type(tree, "d3"), 0);
    ck_assert_int_eq(image_tree_type(tree, "d3/f3"), 0);
    ck_assert_int_eq(image_tree_type(tree, "d4/f4"), '0');
}
END_TEST

SUITE("image_tree", setup, teardown, TEST(a_layer_adds_and_replaces),
      TEST(a_whiteout_removes_what_layers_below_have), TEST(an_opaque_whiteout_empties_a_folder),
      TEST(a_whiteout_of_nothing_is_refused), TEST(a_removed_path_may_come_back),
      TEST(hard_links_are_one_file), TEST(nothing_lies_below_a_link_or_file),
      TEST(special_bits_and_devices_go), TEST(hostile_names_are_refused),
      TEST(caps_bound_paths_and_names), TEST(many_names_are_found_again))
