#include "consumer/job/input/input_pack.h"

#include "base/cleanup.h"
#include "consumer/job/output/folder_unpack.h"
#include "formats/limits.h"
#include "tests/support/job_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct problem problem;

static void add(struct input_list *list, const char *name)
{
    ck_assert_msg(input_list_add_file(".", name, list, &problem), "%s", problem.text);
}

/* Makes `count` files, from number 0 on. The large one has its own name. */
static void make_files(size_t count)
{
    char name[32];
    (void)mkdir("many", 0755);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "many/%05zu", i);
        put(name, name);
    }
    put("large", "");
    ck_assert_int_eq(truncate("large", (off_t)INPUT_PACK_ALONE_BYTES), 0);
}

static void add_files(struct input_list *list, size_t count)
{
    char name[32];
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "many/%05zu", i);
        add(list, name);
    }
    add(list, "large");
}

static bool count_file(void *context, const struct folder_file *file)
{
    size_t *count = context;
    char text[32] = "";
    ck_assert_uint_eq(file->size, strlen(file->name));
    ck_assert_int_eq(pread(file->fd, text, file->size, (off_t)file->offset), (ssize_t)file->size);
    ck_assert_str_eq(text, file->name);
    (*count)++;
    return true;
}

static size_t files_in(const struct input_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t size = 0;
        if (strcmp(list->items[i].name, INPUT_LIST_ARCHIVE) != 0) {
            continue;
        }
        const int fd = input_file_open(&list->items[i], &size, &problem);
        ck_assert_int_ge(fd, 0);
        ck_assert_msg(folder_unpack(fd, size, false, count_file, &count, &problem) == FOLDER_OK,
                      "%s", problem.text);
        (void)close(fd);
    }
    return count;
}

START_TEST(a_short_list_stays_as_it_is)
{
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    struct input_packed packed;
    make_files(FORMAT_SHARED_FILES - 1);
    add_files(&list, FORMAT_SHARED_FILES - 1);
    ck_assert(input_pack(&list, &packed, &problem));
    ck_assert_uint_eq(list.count, FORMAT_SHARED_FILES);
    ck_assert_uint_eq(packed.files + packed.archives + packed.more_bytes, 0);
}
END_TEST

START_TEST(small_files_go_into_archives_and_large_ones_stay)
{
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    struct input_packed packed;
    make_files(2000);
    add_files(&list, 2000);
    ck_assert_msg(input_pack(&list, &packed, &problem), "%s", problem.text);
    ck_assert_uint_eq(packed.files, 2000);
    ck_assert_uint_gt(packed.archives, 10);
    ck_assert_uint_le(list.count, FORMAT_SHARED_FILES);
    ck_assert_uint_eq(list.count, packed.archives + 1);
    ck_assert_uint_eq(files_in(&list), 2000);
    ck_assert_uint_ge(packed.more_bytes, 2000 * 4096 - 2000 * 1024 - 128 * 1024);
}
END_TEST

/* Returns how many archives of `b` the list `a` has, too. */
static size_t common(const struct input_list *a, const struct input_list *b)
{
    size_t count = 0;
    for (size_t i = 0; i < b->count; i++) {
        for (size_t k = 0; k < a->count; k++) {
            count += strcmp(b->items[i].name, INPUT_LIST_ARCHIVE) == 0 &&
                     hash32_equal(&a->items[k].hash, &b->items[i].hash);
        }
    }
    return count;
}

START_TEST(a_changed_or_a_new_file_changes_one_archive)
{
    CLEANUP(input_list_fini) struct input_list before = {.items = NULL};
    CLEANUP(input_list_fini) struct input_list same = {.items = NULL};
    CLEANUP(input_list_fini) struct input_list after = {.items = NULL};
    struct input_packed packed;
    make_files(2000);
    add_files(&before, 2000);
    add_files(&same, 2000);
    ck_assert(input_pack(&before, &packed, &problem) && input_list_hash(&before, 0, &problem));
    ck_assert(input_pack(&same, &packed, &problem) && input_list_hash(&same, 0, &problem));
    ck_assert_uint_eq(common(&before, &same), packed.archives);
    put("many/00700", "other");
    put("many/new", "many/new");
    add_files(&after, 2000);
    add(&after, "many/new");
    ck_assert(input_pack(&after, &packed, &problem) && input_list_hash(&after, 0, &problem));
    ck_assert_uint_ge(common(&before, &after), packed.archives - 3);
    ck_assert_uint_lt(common(&before, &after), packed.archives);
}
END_TEST

/* A temporary file has no path, and goes among the archives as it is. */
START_TEST(a_temporary_file_stays_alone)
{
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    struct input_packed packed;
    size_t found = 0;
    make_files(600);
    add_files(&list, 600);
    const int fd = input_temporary(&problem);
    ck_assert_int_eq(write(fd, "listing", 7), 7);
    ck_assert(input_list_add_listing(&list, fd, &problem));
    ck_assert_msg(input_pack(&list, &packed, &problem) && input_list_hash(&list, 0, &problem), "%s",
                  problem.text);
    ck_assert_uint_eq(files_in(&list), 600);
    for (size_t i = 0; i < list.count; i++) {
        found += strcmp(list.items[i].name, INPUT_LIST_LISTING) == 0 && list.items[i].size == 7;
    }
    ck_assert_uint_eq(found, 1);
}
END_TEST

START_TEST(a_file_that_is_gone_is_named)
{
    CLEANUP(input_list_fini) struct input_list list = {.items = NULL};
    struct input_packed packed;
    make_files(300);
    add_files(&list, 300);
    ck_assert_int_eq(unlink("many/00123"), 0);
    ck_assert(!input_pack(&list, &packed, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "many/00123"));
}
END_TEST

SUITE("input_pack", setup, teardown, TEST(a_short_list_stays_as_it_is),
      TEST(small_files_go_into_archives_and_large_ones_stay),
      TEST(a_changed_or_a_new_file_changes_one_archive), TEST(a_temporary_file_stays_alone),
      TEST(a_file_that_is_gone_is_named))
