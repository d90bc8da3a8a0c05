#include "formats/tar.h"

#include "formats/limits.h"
#include "tests/support/suite.h"

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, BLOCKS = 64 };

/* An archive under construction, as POSIX draws it. */
struct archive {
    uint8_t bytes[BLOCKS * BLOCK];
    size_t length;
};

static void put_sum(uint8_t *block)
{
    unsigned sum = 0;
    memset(block + 148, ' ', 8);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += block[i];
    }
    (void)snprintf((char *)block + 148, 8, "%06o", sum);
}

static uint8_t *put_entry(struct archive *archive, char type, const char *name, const char *link,
                          size_t size)
{
    uint8_t *block = archive->bytes + archive->length;
    ck_assert_uint_lt(strlen(name), 101);
    memcpy(block, name, strlen(name));
    (void)snprintf((char *)block + 124, 12, "%011zo", size);
    block[156] = (uint8_t)type;
    memcpy(block + 157, link, strlen(link));
    memcpy(block + 257,
           "ustar\0"
           "00",
           8);
    put_sum(block);
    archive->length += BLOCK;
    return block;
}

static void put_data(struct archive *archive, const void *bytes, size_t size)
{
    memcpy(archive->bytes + archive->length, bytes, size);
    archive->length += (size + BLOCK - 1) / BLOCK * BLOCK;
}

static void put_end(struct archive *archive)
{
    archive->length += 2 * (size_t)BLOCK;
    ck_assert_uint_le(archive->length, sizeof archive->bytes);
}

static bool read_archive(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct archive *archive = context;
    ck_assert_uint_le(offset + length, archive->length);
    memcpy(ret_bytes, archive->bytes + offset, length);
    return true;
}

static enum tar_status checked(struct archive *archive, uint64_t entries, uint64_t bytes,
                               struct problem *problem)
{
    const struct tar_source source = {
        .size = archive->length, .read = read_archive, .context = archive};
    const struct tar_limits limits = {.entries = entries, .bytes = bytes};
    struct tar_limits has = {0};
    const enum tar_status status = tar_check(&source, &limits, &has, problem);
    if (status == TAR_OK) { /* what it is said to have is the least that it fits */
        struct problem unused;
        const struct tar_limits less[] = {{has.entries - 1, has.bytes},
                                          {has.entries, has.bytes - 1}};
        ck_assert_int_eq(tar_check(&source, &has, NULL, &unused), TAR_OK);
        ck_assert(has.entries == 0 || tar_check(&source, &less[0], NULL, &unused) == TAR_TOO_MANY);
        ck_assert(has.bytes == 0 || tar_check(&source, &less[1], NULL, &unused) == TAR_TOO_LARGE);
    }
    return status;
}

static struct archive small_root(void)
{
    static const struct archive empty;
    struct archive archive = empty;
    put_entry(&archive, '5', "./", "", 0);
    put_entry(&archive, '5', "./bin/", "", 0);
    put_entry(&archive, '0', "./bin/busybox", "", 700);
    put_data(&archive, (uint8_t[700]){1}, 700);
    put_entry(&archive, '1', "./bin/cat", "./bin/busybox", 0);
    put_entry(&archive, '2', "./bin/sh", "busybox", 0);
    put_entry(&archive, '2', "./etc", "/bin/../bin", 0);
    put_entry(&archive, '2', "./a/b/up", "../../bin", 0);
    put_entry(&archive, '3', "./dev/null", "", 0);
    put_entry(&archive, '6', "./pipe", "", 0);
    return archive;
}

START_TEST(a_root_file_system_is_taken)
{
    struct problem problem = {""};
    struct archive archive = small_root();
    put_end(&archive);
    ck_assert_msg(checked(&archive, 12, 700, &problem) == TAR_OK, "%s", problem.text);
    archive.length -= BLOCK; /* one block of zeros is an end, too */
    ck_assert_msg(checked(&archive, 12, 700, &problem) == TAR_OK, "%s", problem.text);
}
END_TEST

START_TEST(limits_hold_with_their_figures)
{
    struct problem problem;
    struct archive archive = small_root();
    put_end(&archive);
    ck_assert_int_eq(checked(&archive, 11, 700, &problem), TAR_TOO_MANY);
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 11 files"));
    ck_assert_int_eq(checked(&archive, 12, 699, &problem), TAR_TOO_LARGE);
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 699 bytes"));
}
END_TEST

/* Unpacking makes every folder that a path names, so each of them counts. */
START_TEST(folders_that_only_a_path_names_count)
{
    static const struct {
        const char *names[4];
        uint64_t counts;
    } cases[] = {
        {{"a/b/c/d/f"}, 5},
        {{"./a//b/./f"}, 3},
        {{"a/f", "a/g", "a/h"}, 4}, /* the folder counts once for its files */
        {{"a/b/f", "a/c/f", "a/g"}, 6},
        {{"a/b/f", "a/b/f"}, 4},       /* an entry counts, even one that makes nothing new */
        {{"a/f", "ab/f", "abc/f"}, 6}, /* a part is compared as a whole */
        {{"a/b/f", "x", "a/b/g"}, 7},  /* folders left and entered again count again */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct problem problem = {""};
        struct archive archive = {.length = 0};
        for (size_t k = 0; k < 4 && cases[i].names[k] != NULL; k++) {
            put_entry(&archive, '0', cases[i].names[k], "", 0);
        }
        put_end(&archive);
        ck_assert_msg(checked(&archive, cases[i].counts, 0, &problem) == TAR_OK, "case %zu: %s", i,
                      problem.text);
        ck_assert_msg(checked(&archive, cases[i].counts - 1, 0, &problem) == TAR_TOO_MANY,
                      "case %zu", i);
    }
}
END_TEST

/* Writes an archive of one file in `levels - 1` folders. */
static struct archive deep(size_t levels)
{
    struct archive archive = {.length = 0};
    char path[2 * (FORMAT_IMAGE_DEPTH + 1)];
    for (size_t i = 0; i < levels; i++) {
        memcpy(path + 2 * i, i + 1 < levels ? "x/" : "f", 2);
    }
    put_entry(&archive, 'L', "././@LongLink", "", 2 * levels);
    put_data(&archive, path, 2 * levels);
    put_entry(&archive, '0', "short", "", 0);
    put_end(&archive);
    return archive;
}

START_TEST(a_path_of_too_many_levels_is_refused)
{
    struct problem problem = {""};
    struct archive archive = deep(FORMAT_IMAGE_DEPTH);
    ck_assert_msg(checked(&archive, FORMAT_IMAGE_DEPTH, 0, &problem) == TAR_OK, "%s", problem.text);
    archive = deep(FORMAT_IMAGE_DEPTH + 1);
    ck_assert_int_eq(checked(&archive, 1000, 0, &problem), TAR_UNFIT);
    ck_assert_msg(strstr(problem.text, "more than 128 levels") != NULL, "%s", problem.text);
}
END_TEST

START_TEST(entries_that_no_root_has_are_refused)
{
    static const struct {
        char type;
        const char *name, *link, *says;
        size_t size;
    } wrong[] = {
        {'0', "../passwd", "", "\"..\"", 0},
        {'0', "a/../../passwd", "", "\"..\"", 0},
        {'5', "..", "", "\"..\"", 0},
        {'2', "a", "..", "link that leads out", 0},
        {'2', "a/b", "../../etc", "link that leads out", 0},
        {'2', "a/b", "/../etc", "link that leads out", 0},
        {'2', "a", "", "link that leads out", 0},
        {'1', "a", "../etc/passwd", "hard link that leads out", 0},
        {'1', "a", "", "hard link that leads out", 0},
        {'1', "a", "/bin/busybox", "hard link to an absolute path", 0},
        {'1', "a", "dev/null", "hard link to a file below /dev", 0},
        {'1', "a", "./dev/null", "hard link to a file below /dev", 0},
        {'3', "disk", "", "a device", 0},
        {'4', "lib/dev/disk", "", "a device", 0},
        {'3', "dev", "", "a device", 0},
        {'2', "a", "b", "no file and has bytes", 5},
        {'5', "a", "", "no file and has bytes", 5},
        {'S', "a", "", "no file", 5},
        {'M', "a", "", "neither file", 0},
        {'V', "a", "", "neither file", 0},
        {'0', "", "", "no name", 0},
        {'0', "./", "", "no name", 0},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        struct archive archive = small_root();
        put_entry(&archive, wrong[i].type, wrong[i].name, wrong[i].link, wrong[i].size);
        put_data(&archive, (uint8_t[8]){0}, wrong[i].size);
        put_end(&archive);
        ck_assert_msg(checked(&archive, 100, 10000, &problem) == TAR_UNFIT, "case %zu", i);
        ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "case %zu: %s", i, problem.text);
    }
}
END_TEST

/* "LENGTH key=value\n", where LENGTH counts itself. */
static void put_record(struct archive *archive, char type, const char *record)
{
    char text[300];
    size_t length = strlen(record) + 3; /* one digit, a blank, the end of the line */
    length += length > 9 ? 1 : 0;
    ck_assert_uint_lt(length, 100);
    (void)snprintf(text, sizeof text, "%zu %s\n", length, record);
    put_entry(archive, type, "pax", "", strlen(text));
    put_data(archive, text, strlen(text));
}

START_TEST(headers_before_an_entry_count_for_it)
{
    static const struct {
        char type;
        const char *text, *says;
    } cases[] = {
        {'x', "path=usr/bin/a long name", NULL},
        {'x', "comment=nothing", NULL},
        {'g', "comment=a commit", NULL},
        {'x', "path=../out", "\"..\""},
        {'x', "size=5", "cut"},
        {'x', "size=99999999999999999999", "no number"},
        {'x', "size=-1", "no number"},
        {'x', "GNU.sparse.major=1", "sparse"},
        {'x', "no equals sign", "damaged"},
        {'g', "path=everything", "all entries together"},
        {'L', "usr/long", NULL},
        {'L', "../out", "\"..\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const struct archive empty;
        struct archive archive = empty;
        struct problem problem = {""};
        if (cases[i].type == 'L') {
            put_entry(&archive, 'L', "././@LongLink", "", strlen(cases[i].text) + 1);
            put_data(&archive, cases[i].text, strlen(cases[i].text) + 1);
        } else {
            put_record(&archive, cases[i].type, cases[i].text);
        }
        put_entry(&archive, '0', "short", "", 0);
        if (strcmp(cases[i].text, "size=5") != 0) { /* its bytes are not there */
            put_end(&archive);
        }
        const enum tar_status status = checked(&archive, 3, 0, &problem);
        if (strcmp(cases[i].text, "size=5") == 0) {
            ck_assert_int_eq(status, TAR_TOO_LARGE);
            ck_assert_int_eq(checked(&archive, 3, 100, &problem), TAR_UNFIT);
        } else {
            ck_assert_msg(status == (cases[i].says == NULL ? TAR_OK : TAR_UNFIT), "case %zu: %s", i,
                          problem.text);
        }
        ck_assert_msg(cases[i].says == NULL || strstr(problem.text, cases[i].says) != NULL,
                      "case %zu: %s", i, problem.text);
    }
}
END_TEST

/* The name of an entry is known only after the headers before it. */
START_TEST(a_damaged_header_before_an_entry_never_names_the_entry_before)
{
    static const char *const records[] = {"no equals sign", "size=-1", "GNU.sparse.major=1"};
    struct problem problem = {""};
    for (size_t i = 0; i < sizeof records / sizeof records[0]; i++) {
        struct archive archive = small_root();
        put_record(&archive, 'x', records[i]);
        put_entry(&archive, '0', "bad", "", 0);
        put_end(&archive);
        ck_assert_int_eq(checked(&archive, 100, 10000, &problem), TAR_UNFIT);
        ck_assert_msg(
            strstr(problem.text, "the entry after \"./pipe\" (byte 5632 of the archive)") ==
                problem.text,
            "%s", problem.text);
    }
    struct archive first = {.length = 0}; /* no entry is before it */
    put_record(&first, 'x', records[0]);
    put_entry(&first, '0', "bad", "", 0);
    put_end(&first);
    ck_assert_int_eq(checked(&first, 100, 10000, &problem), TAR_UNFIT);
    ck_assert_msg(strstr(problem.text, "the first entry: ") == problem.text, "%s", problem.text);
    struct archive named = small_root(); /* its name came before the damage */
    put_record(&named, 'x', "path=bad");
    put_record(&named, 'x', records[0]);
    put_entry(&named, '0', "short", "", 0);
    put_end(&named);
    ck_assert_int_eq(checked(&named, 100, 10000, &problem), TAR_UNFIT);
    ck_assert_msg(strstr(problem.text, "\"bad\" (byte ") == problem.text, "%s", problem.text);
}
END_TEST

START_TEST(an_archive_without_a_file_is_refused)
{
    struct problem problem = {""};
    struct archive archive = {.length = 0};
    put_end(&archive);
    ck_assert_int_eq(checked(&archive, 100, 10000, &problem), TAR_UNFIT);
    ck_assert_msg(strstr(problem.text, "no file") != NULL, "%s", problem.text);
    struct archive folders = {.length = 0};
    put_entry(&folders, '5', "./", "", 0);
    put_entry(&folders, '2', "./bin", "usr/bin", 0);
    put_entry(&folders, '3', "./dev/null", "", 0);
    put_end(&folders);
    ck_assert_int_eq(checked(&folders, 100, 10000, &problem), TAR_UNFIT);
    ck_assert_msg(strstr(problem.text, "no file") != NULL, "%s", problem.text);
}
END_TEST

START_TEST(what_is_no_whole_archive_is_refused)
{
    struct problem problem;
    struct archive whole = small_root();
    put_end(&whole);
    for (size_t length = 0; length < whole.length - 2 * (size_t)BLOCK; length += 100) {
        struct archive archive = whole;
        archive.length = length;
        ck_assert_msg(checked(&archive, 100, 10000, &problem) == TAR_UNFIT, "%zu bytes", length);
        ck_assert_msg(strstr(problem.text, length < BLOCK ? "no plain tar" : "cut at byte") != NULL,
                      "%zu bytes: %s", length, problem.text);
    }
    for (size_t at = 0; at < BLOCK; at += 3) { /* every changed byte of a header is noticed */
        struct archive archive = whole;
        archive.bytes[BLOCK + at] ^= 1;
        ck_assert_msg(checked(&archive, 100, 10000, &problem) == TAR_UNFIT, "byte %zu", at);
    }
    struct archive archive = small_root();
    archive.length += BLOCK; /* tars differ about what follows a lone block of zeros */
    put_entry(&archive, '0', "../hidden", "", 0);
    put_end(&archive);
    ck_assert_int_eq(checked(&archive, 100, 10000, &problem), TAR_UNFIT);
    ck_assert_ptr_nonnull(strstr(problem.text, "no entry begins"));
}
END_TEST

static bool read_nothing(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    (void)context;
    (void)offset;
    (void)ret_bytes;
    (void)length;
    return false;
}

START_TEST(an_archive_that_cannot_be_read_is_not_unfit)
{
    struct problem problem;
    const struct tar_source source = {.size = 4 * (size_t)BLOCK, .read = read_nothing};
    const struct tar_limits limits = {.entries = 1, .bytes = 1};
    ck_assert_int_eq(tar_check(&source, &limits, NULL, &problem), TAR_UNREADABLE);
}
END_TEST

SUITE("tar", NULL, NULL, TEST(a_root_file_system_is_taken), TEST(limits_hold_with_their_figures),
      TEST(folders_that_only_a_path_names_count), TEST(a_path_of_too_many_levels_is_refused),
      TEST(entries_that_no_root_has_are_refused), TEST(headers_before_an_entry_count_for_it),
      TEST(a_damaged_header_before_an_entry_never_names_the_entry_before),
      TEST(an_archive_without_a_file_is_refused), TEST(what_is_no_whole_archive_is_refused),
      TEST(an_archive_that_cannot_be_read_is_not_unfit))
