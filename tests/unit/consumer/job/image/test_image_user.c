/* The user that a container image names: by number, as root, and by the image's own files. */
#include "consumer/job/image/image_user.h"

#include "runtime/archive.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct problem problem;

static void put(struct archive *archive, const char *name, const char *text)
{
    if (text != NULL) {
        ck_assert(archive_put_header(archive, '0', name, "", 0644, strlen(text)) &&
                  archive_put_bytes(archive, text, strlen(text)));
    }
}

/* Makes a root with a program and these files; NULL leaves a file out. */
static int root_of(const char *passwd, const char *group)
{
    struct archive archive = {.fd = memfd_create("root", MFD_CLOEXEC), .problem = &problem};
    put(&archive, "bin/tool", "tool");
    put(&archive, "etc/passwd", passwd);
    put(&archive, "etc/group", group);
    ck_assert(archive_put_end(&archive));
    return archive.fd;
}

static const char *found(int root, const char *text)
{
    static char numbers[64];
    uint32_t user = 99;
    uint32_t group = 99;
    problem = (struct problem){.text = ""};
    if (!image_user_find(text, root, &user, &group, &problem)) {
        return "refused";
    }
    (void)snprintf(numbers, sizeof numbers, "%u:%u", (unsigned)user, (unsigned)group);
    return numbers;
}

START_TEST(an_image_without_passwd_has_root_and_numbers)
{
    const int root = root_of(NULL, NULL);
    ck_assert_str_eq(found(root, "root"), "0:0");
    ck_assert_str_eq(found(root, "0"), "0:0");
    ck_assert_str_eq(found(root, "root:root"), "0:0");
    ck_assert_str_eq(found(root, "0:root"), "0:0");
    ck_assert_str_eq(found(root, "root:7"), "0:7");
    ck_assert_str_eq(found(root, "1234"), "1234:0");
    ck_assert_str_eq(found(root, "1234:5678"), "1234:5678");
    ck_assert_str_eq(found(root, "worker"), "refused");
    ck_assert_ptr_nonnull(strstr(problem.text, "\"worker\" is neither a number"));
    ck_assert_str_eq(found(root, "1:crew"), "refused");
    (void)close(root);
}
END_TEST

START_TEST(the_image_s_own_files_count)
{
    const int root = root_of("root:x:0:5::/:/bin/sh\nworker:x:4321:8765::/:/bin/sh\n",
                             "crew:x:777:\nroot:x:3:\n");
    ck_assert_str_eq(found(root, "worker"), "4321:8765");
    ck_assert_str_eq(found(root, "4321"), "4321:8765");
    ck_assert_str_eq(found(root, "worker:crew"), "4321:777");
    ck_assert_str_eq(found(root, "root"), "0:5");
    ck_assert_str_eq(found(root, "worker:root"), "4321:3");
    ck_assert_str_eq(found(root, "other"), "refused");
    (void)close(root);
}
END_TEST

SUITE("image_user", NULL, NULL, TEST(an_image_without_passwd_has_root_and_numbers),
      TEST(the_image_s_own_files_count))
