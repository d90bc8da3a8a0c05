/* Archives are written in memory, and spoilt field by field. */
#include "formats/zip/zip.h"

#include "tests/support/suite.h"
#include "tests/support/zip_writer.h"

#include <string.h>

static struct zip_writer zip;

static void begin(void)
{
    memset(&zip, 0, sizeof zip);
    zip_writer_add(&zip, "x.npy", "0123456789", 10, false);
    zip_writer_add(&zip, "y.npy", "aaaaaaaaaaaaaaaaaaaa", 20, true);
    zip_writer_end(&zip);
}

/* Looks for a file in the whole archive. */
static bool look(const char *name, struct zip_member *ret_member, uint64_t *ret_offset,
                 struct problem *problem)
{
    struct zip_folder folder;
    return zip_read_end(zip.bytes, zip.length, zip.length, &folder, problem) &&
           zip_find(zip.bytes + folder.offset, &folder, name, ret_member, problem) &&
           zip_read_local(zip.bytes + ret_member->header_offset, &folder, ret_member, ret_offset,
                          problem);
}

static void refuse(const char *name, const char *said)
{
    struct zip_member member;
    struct problem problem = {""};
    uint64_t offset = 0;
    ck_assert(!look(name, &member, &offset, &problem));
    ck_assert_msg(strstr(problem.text, said) != NULL, "%s", problem.text);
}

START_TEST(files_are_found_by_their_names)
{
    struct zip_member member;
    struct problem problem = {""};
    uint64_t offset = 0;
    begin();
    ck_assert_msg(look("x", &member, &offset, &problem), "%s", problem.text);
    ck_assert_str_eq(member.name, "x.npy");
    ck_assert(member.method == ZIP_STORED && member.bytes == 10 && member.packed_bytes == 10);
    ck_assert_mem_eq(zip.bytes + offset, "0123456789", 10);
    ck_assert(look("y.npy", &member, &offset, &problem));
    ck_assert(member.method == ZIP_DEFLATED && member.bytes == 20 && member.packed_bytes < 20);
    refuse("z", "no array \"z\"; it has 2: x.npy, y.npy");
    refuse(NULL, "it has not one array alone; it has 2: x.npy, y.npy");
}
END_TEST

START_TEST(a_comment_may_follow)
{
    static const char comment[] = "a comment with PK\5\6 within";
    struct zip_member member;
    struct problem problem = {""};
    uint64_t offset = 0;
    begin();
    memcpy(zip.bytes + zip.length, comment, sizeof comment);
    zip.length += sizeof comment;
    zip.bytes[zip.end + 20] = sizeof comment;
    ck_assert_msg(look("x", &member, &offset, &problem), "%s", problem.text);
}
END_TEST

START_TEST(an_archive_that_is_cut_is_refused)
{
    for (size_t cut = 0; cut < 400; cut++) {
        struct zip_member member;
        struct problem problem = {""};
        uint64_t offset = 0;
        begin();
        zip.length = zip.length > cut + 1 ? zip.length - cut - 1 : 0;
        ck_assert_msg(!look("x", &member, &offset, &problem), "cut by %zu", cut + 1);
    }
}
END_TEST

/* Sets bytes of a field, which is little-endian. */
static void set(size_t place, uint32_t value, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        zip.bytes[place + i] = (uint8_t)(value >> (8 * i));
    }
}

START_TEST(headers_that_lie_are_refused)
{
    begin();
    set(zip.members[0].entry + 24, 11, 4);
    refuse("x", "has two sizes: 10 and 11 bytes");
    begin();
    set(zip.members[0].entry + 20, 100000, 4);
    refuse("x", "its bytes would lie behind it");
    begin();
    set(zip.members[0].entry + 42, 100000, 4);
    refuse("x", "its bytes would lie behind it");
    begin();
    set(zip.members[0].entry + 42, 1, 4);
    refuse("x", "is not where its folder says");
    begin();
    set(zip.members[0].local + 8, 8, 2);
    refuse("x", "is not where its folder says");
    begin();
    set(zip.members[0].local + 28, 5000, 2);
    refuse("x", "is not where its folder says");
    begin();
    set(zip.members[0].entry + 10, 12, 2);
    refuse("x", "is packed by method 12");
    begin();
    set(zip.members[0].entry + 8, 1, 2);
    refuse("x", "is encrypted");
    begin();
    set(zip.members[1].entry + 24, UINT32_MAX, 4);
    refuse("y", "has 4 GiB or more");
    begin();
    set(zip.members[0].entry, 0, 4);
    refuse("x", "the folder of the archive does not decode");
    begin();
    set(zip.end + 8, 3, 2);
    set(zip.end + 10, 3, 2);
    refuse("x", "the folder of the archive does not decode");
    begin();
    set(zip.end + 8, 1, 2);
    set(zip.end + 10, 1, 2);
    refuse("x", "the folder of the archive does not decode");
    begin();
    set(zip.end + 4, 1, 2);
    refuse("x", "a part of an archive of several parts");
    begin();
    set(zip.end + 16, 1, 4);
    refuse("x", "it is no whole archive");
    begin();
    set(zip.end + 16, UINT32_MAX, 4);
    refuse("x", "a ZIP64 archive");
}
END_TEST

START_TEST(names_that_lead_out_are_refused)
{
    static const char *const wrong[] = {"../x.npy", "/x.npy", "a/../x", "a//x", "./x", "a\\x", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memset(&zip, 0, sizeof zip);
        zip_writer_add(&zip, "x.npy", "0123456789", 10, false);
        zip_writer_add(&zip, wrong[i], "b", 1, false);
        zip_writer_end(&zip);
        refuse("x", "which is no plain name");
    }
    memset(&zip, 0, sizeof zip);
    zip_writer_add(&zip, "x.npy", "a", 1, false);
    zip_writer_add(&zip, "x", "b", 1, false);
    zip_writer_end(&zip);
    refuse("x", "\"x\" stands in the archive 2 times");
}
END_TEST

SUITE("zip", NULL, NULL, TEST(files_are_found_by_their_names), TEST(a_comment_may_follow),
      TEST(an_archive_that_is_cut_is_refused), TEST(headers_that_lie_are_refused),
      TEST(names_that_lead_out_are_refused))
