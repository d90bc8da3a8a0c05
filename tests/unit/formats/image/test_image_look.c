/* The tests look up paths of an image's root, through links. */
#include "formats/image/image_look.h"

#include "tests/support/image_layers.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *archive;
static struct image_look *look;
static struct image_found found;

static bool read_archive(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    (void)context;
    memcpy(ret_bytes, archive + offset, length);
    return true;
}

static void setup(void)
{
    static const struct layer_entry entries[] = {{'5', "bin/", "", 0755},
                                                 {'0', "bin/tool", "content", 0755},
                                                 {'1', "bin/again", "bin/tool", 0755},
                                                 {'2', "bin/short", "tool", 0777},
                                                 {'2', "bin/up", "../usr/lib/x", 0777},
                                                 {'2', "bin/gone", "/usr/none", 0777},
                                                 {'2', "bin/loop", "loop", 0777},
                                                 {'2', "bin/mine", "/work/tool", 0777},
                                                 {'0', "file", "x", 0644},
                                                 {'2', "lib", "usr/lib", 0777},
                                                 {'5', "usr/", "", 0755},
                                                 {'5', "usr/lib/", "", 0755},
                                                 {'0', "usr/lib/x", "", 0600},
                                                 {0, "", "", 0}};
    size_t length;
    struct problem problem = {""};
    archive = layer_make(entries, &length);
    const struct tar_source source = {.size = length, .read = read_archive};
    look = image_look_create(&source, &problem);
    ck_assert_msg(look != NULL, "%s", problem.text);
}

static void teardown(void)
{
    image_look_destroy(&look);
    free(archive);
}

static void check_place(const char *path, enum image_look_status status, const char *place)
{
    image_look_find(look, path, &found);
    ck_assert_msg(found.status == status, "%s: %d", path, (int)found.status);
    ck_assert_str_eq(found.place, place);
}

START_TEST(a_path_is_found_through_every_kind_of_link)
{
    check_place("/bin/tool", IMAGE_LOOK_FOUND, "bin/tool");
    ck_assert_int_eq(found.type, '0');
    ck_assert_uint_eq(found.mode, 0755);
    ck_assert_uint_eq(found.size, 7);
    ck_assert_int_eq(memcmp(archive + found.offset, "content", 7), 0);
    check_place("bin/again", IMAGE_LOOK_FOUND, "bin/again");
    ck_assert_uint_eq(found.size, 7);
    check_place("/bin/short", IMAGE_LOOK_FOUND, "bin/tool");
    check_place("/bin/up", IMAGE_LOOK_FOUND, "usr/lib/x");
    check_place("/lib/x", IMAGE_LOOK_FOUND, "usr/lib/x");
    check_place("/../lib/./../lib//x", IMAGE_LOOK_FOUND, "usr/lib/x");
    check_place("/lib/", IMAGE_LOOK_FOUND, "usr/lib");
    ck_assert_int_eq(found.type, '5');
    check_place("/", IMAGE_LOOK_FOUND, "");
}
END_TEST

START_TEST(a_path_that_leads_to_nothing_says_where)
{
    check_place("/bin/none", IMAGE_LOOK_ABSENT, "bin/none");
    check_place("/none/tool", IMAGE_LOOK_ABSENT, "none");
    check_place("/bin/gone", IMAGE_LOOK_ABSENT, "usr/none");
    check_place("/file/tool", IMAGE_LOOK_NO_FOLDER, "file");
    check_place("/bin/short/", IMAGE_LOOK_NO_FOLDER, "bin/tool");
    image_look_find(look, "/bin/loop", &found);
    ck_assert_int_eq(found.status, IMAGE_LOOK_LOOP);
}
END_TEST

START_TEST(of_a_place_that_a_jail_has_of_its_own_nothing_is_known)
{
    static char path[2 * IMAGE_LOOK_PATH_BYTES];
    check_place("/work/tool", IMAGE_LOOK_UNKNOWN, "work");
    check_place("/bin/mine", IMAGE_LOOK_UNKNOWN, "work");
    check_place("/proc/self/root/none", IMAGE_LOOK_UNKNOWN, "proc");
    memset(path, 'a', sizeof path - 1);
    check_place(path, IMAGE_LOOK_UNKNOWN, "");
}
END_TEST

SUITE("image_look", setup, teardown, TEST(a_path_is_found_through_every_kind_of_link),
      TEST(a_path_that_leads_to_nothing_says_where),
      TEST(of_a_place_that_a_jail_has_of_its_own_nothing_is_known))
