/* The archive of a folder is a stranger's: what may be in it, and what ends the reading. */
#include "consumer/job/output/folder_unpack.h"

#include "runtime/archive.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct problem problem;
static char seen[512];

struct entry {
    char type;
    const char *name, *target;
};

static bool see(void *context, const struct folder_file *file)
{
    const size_t used = strlen(seen);
    (void)context;
    (void)snprintf(seen + used, sizeof seen - used, "%s%s%s%s ", file->name,
                   file->is_folder ? "/" : "", file->link != NULL ? ">" : "",
                   file->link != NULL ? file->link : "");
    return true;
}

static enum folder_status unpack(const struct entry *entries, size_t count, bool keeps_trees)
{
    struct archive archive = {.fd = memfd_create("archive", MFD_CLOEXEC), .problem = &problem};
    seen[0] = '\0';
    problem = (struct problem){.text = ""};
    for (size_t i = 0; i < count; i++) {
        ck_assert(archive_put_header(&archive, entries[i].type, entries[i].name, entries[i].target,
                                     0644, 0));
    }
    ck_assert(archive_put_end(&archive));
    const enum folder_status status =
        folder_unpack(archive.fd, archive.length, keeps_trees, see, NULL, &problem);
    (void)close(archive.fd);
    return status;
}

#define UNPACK(keeps_trees, ...)                                                                   \
    unpack((const struct entry[]){__VA_ARGS__},                                                    \
           sizeof((const struct entry[]){__VA_ARGS__}) / sizeof(struct entry), (keeps_trees))

START_TEST(files_then_folders_then_links_are_shown)
{
    ck_assert_int_eq(
        UNPACK(true, {'0', "a/b", ""}, {'5', "c", ""}, {'2', "a/l", "../c"}, {'2', "m", "absent"}),
        FOLDER_OK);
    ck_assert_str_eq(seen, "a/b c/ a/l>../c m>absent ");
    ck_assert_int_eq(UNPACK(false, {'0', "a/b", ""}), FOLDER_OK);
}
END_TEST

START_TEST(what_the_job_does_not_keep_is_unfit)
{
    ck_assert_int_eq(UNPACK(false, {'0', "a", ""}, {'5', "c", ""}), FOLDER_UNFIT);
    ck_assert_int_eq(UNPACK(false, {'0', "a", ""}, {'2', "l", "a"}), FOLDER_UNFIT);
    ck_assert_int_eq(UNPACK(true, {'0', "a", ""}, {'1', "l", "a"}), FOLDER_UNFIT);
    ck_assert_int_eq(UNPACK(true, {'0', "a", ""}, {'6', "pipe", ""}), FOLDER_UNFIT);
}
END_TEST

START_TEST(a_hostile_link_is_unfit)
{
    static const char *const targets[] = {"..", "/etc", "/etc/passwd", "../../x", "b/../../x"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const struct entry entries[] = {{'2', "a", targets[i]}, {'0', "a/passwd", ""}};
        ck_assert_msg(unpack(entries, 2, true) == FOLDER_UNFIT, "%s", targets[i]);
        ck_assert_str_eq(seen, "");
    }
    /* A file below a link would be written where the link leads. */
    ck_assert_int_eq(UNPACK(true, {'2', "a", "b"}, {'0', "a/passwd", ""}), FOLDER_UNFIT);
    ck_assert_str_eq(seen, "a>b ");
    ck_assert_int_eq(UNPACK(true, {'2', "a", "b"}, {'5', "a/c", ""}), FOLDER_UNFIT);
    ck_assert_int_eq(UNPACK(true, {'2', "/a", "b"}), FOLDER_UNFIT);
}
END_TEST

SUITE("folder_unpack", NULL, NULL, TEST(files_then_folders_then_links_are_shown),
      TEST(what_the_job_does_not_keep_is_unfit), TEST(a_hostile_link_is_unfit))
