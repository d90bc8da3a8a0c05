/* The tests follow key files: how they are made, read, noted in, and refused. */
#include "runtime/keyfile.h"

#include "runtime/files.h"
#include "runtime/private_folder.h"
#include "runtime/process.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void make_key(void)
{
    struct identity *identity = NULL;
    ck_assert_msg(keyfile_create(path, &identity, &problem), "%s", problem.text);
    identity_destroy(&identity);
}

static bool load(void)
{
    struct identity *identity = NULL;
    bool good = keyfile_load(path, &identity, &problem);
    ck_assert(good == (identity != NULL));
    identity_destroy(&identity);
    return good;
}

START_TEST(a_key_is_made_once_and_read_again)
{
    struct identity *made;
    struct identity *loaded;
    ck_assert(keyfile_create(path, &made, &problem));
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    ck_assert_int_eq(status.st_size, 65);
    ck_assert_uint_eq(status.st_nlink, 1);

    ck_assert(keyfile_load(path, &loaded, &problem));
    ck_assert(key32_equal(identity_key(made), identity_key(loaded)));
    struct identity *again = NULL;
    ck_assert(!keyfile_create(path, &again, &problem));
    ck_assert(says("there already"));
    ck_assert_ptr_null(again);
    identity_destroy(&loaded);
    ck_assert(keyfile_load(path, &loaded, &problem)); /* untouched */
    ck_assert(key32_equal(identity_key(made), identity_key(loaded)));
    identity_destroy(&made);
    identity_destroy(&loaded);
}
END_TEST

START_TEST(a_key_file_says_whether_its_key_has_signed)
{
    static const unsigned all[] = {KEYFILE_SIGNED, KEYFILE_FOLLOWS | KEYFILE_SIGNED,
                                   KEYFILE_FOLLOWS, 0};
    struct identity *made;
    ck_assert(keyfile_create(path, &made, &problem));
    ck_assert_int_eq(chmod(path, 0400), 0);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct identity *loaded;
        struct stat status;
        unsigned notes = 99;
        ck_assert_msg(keyfile_note(path, all[i], &problem), "%s", problem.text);
        ck_assert(keyfile_load_noted(path, &loaded, &notes, &problem));
        ck_assert_uint_eq(notes, all[i]);
        ck_assert(key32_equal(identity_key(made), identity_key(loaded)));
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0400);
        identity_destroy(&loaded);
        ck_assert(load()); /* who does not ask reads the key alone */
    }
    identity_destroy(&made);
}
END_TEST

START_TEST(a_second_line_that_is_no_note_is_refused)
{
    static const char *const wrong[] = {"signed", "signed\nsigned\n",  "unsigned\n", "signed \n",
                                        "\n",     "follows signed\n\n"};
    make_key();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(truncate(path, 65), 0);
        FILE *file = fopen(path, "ae");
        ck_assert(fputs(wrong[i], file) >= 0 && fclose(file) == 0);
        ck_assert_msg(!load() && says("not a key file"), "%s", wrong[i]);
    }
}
END_TEST

START_TEST(a_key_that_others_may_read_is_refused_with_the_fix)
{
    static const mode_t wrong[] = {0644, 0640, 0604, 0660, 0666, 0700, 0601, 04600};
    make_key();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(chmod(path, wrong[i]), 0);
        ck_assert_msg(!load(), "mode %04o", (unsigned)wrong[i]);
        char fix[256];
        (void)snprintf(fix, sizeof fix, "chmod 600 '%s'", path);
        ck_assert_msg(says(fix), "%s", problem.text);
    }
    ck_assert_int_eq(chmod(path, 0400), 0);
    ck_assert(load());
    ck_assert_int_eq(chmod(path, 0600), 0);
    ck_assert(load());
}
END_TEST

START_TEST(a_folder_that_others_may_enter_is_refused_with_the_fix)
{
    static const mode_t wrong[] = {0755, 0750, 0701, 0711, 0770, 0777};
    make_key();
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(chmod(folder, wrong[i]), 0);
        ck_assert_msg(!load(), "mode %04o", (unsigned)wrong[i]);
        char fix[256];
        (void)snprintf(fix, sizeof fix, "chmod 700 '%s'", folder);
        ck_assert_msg(says(fix), "%s", problem.text);
        ck_assert(!private_folder(folder, true, &problem));
    }
    ck_assert_int_eq(chmod(folder, 0710),
                     0); /* a group passes through: an embedded market's agent */
    ck_assert(load());
}
END_TEST

START_TEST(symbolic_links_are_refused)
{
    char elsewhere[128];
    make_key();
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/b.key", folder);
    ck_assert_int_eq(rename(path, elsewhere), 0);
    ck_assert_int_eq(symlink("b.key", path), 0);
    ck_assert(!load());
    ck_assert(says("symbolic link"));

    char link_folder[128];
    (void)snprintf(link_folder, sizeof link_folder, "%s/link", folder);
    ck_assert_int_eq(symlink(folder, link_folder), 0);
    ck_assert(!private_folder(link_folder, false, &problem));
    ck_assert(says("symbolic link"));
    (void)snprintf(path, sizeof path, "%s/link/b.key", folder);
    ck_assert(!load());
}
END_TEST

START_TEST(what_is_no_key_is_refused)
{
    static const char *const wrong[] = {
        "",
        "\n",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000000\n\n",
        "000000000000000000000000000000000000000000000000000000000000000\n",
        "g000000000000000000000000000000000000000000000000000000000000000\n",
        "0000000000000000000000000000000000000000000000000000000000000000 "};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert(file_write(path, wrong[i], strlen(wrong[i]), 0600, &problem));
        ck_assert_msg(!load(), "text %zu", i);
        ck_assert(says("not a key file"));
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!load());
    ck_assert(says("No such file"));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!load()); /* and does not wait for a writer */
    ck_assert(says("not a file"));
}
END_TEST

static bool load_credential(void)
{
    struct identity *identity = NULL;
    unsigned notes = 0;
    bool good = keyfile_load_credential("a.key", &identity, &notes, &problem);
    ck_assert(good == (identity != NULL));
    identity_destroy(&identity);
    return good;
}

START_TEST(a_supervisor_may_hand_a_key_over)
{
    ck_assert_int_eq(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    ck_assert(!keyfile_has_credential("a.key"));
    ck_assert(!load_credential());
    make_key();
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
    ck_assert(keyfile_has_credential("a.key"));
    ck_assert(!keyfile_has_credential("b.key"));
    ck_assert_int_eq(chmod(path, 0400), 0);
    ck_assert_int_eq(chmod(folder, 0500), 0); /* as systemd makes it */
    ck_assert_msg(load_credential(), "%s", problem.text);
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", folder + 1, 1), 0); /* no absolute path */
    ck_assert(!keyfile_has_credential("a.key"));
}
END_TEST

START_TEST(a_credential_that_others_may_read_or_write_is_refused)
{
    static const mode_t wrong[] = {0404, 0420, 0402, 04400, 0444, 0660};
    char other[256];
    make_key();
    ck_assert_int_eq(setenv("CREDENTIALS_DIRECTORY", folder, 1), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert_int_eq(chmod(path, wrong[i]), 0);
        ck_assert_msg(!load_credential(), "mode %04o", (unsigned)wrong[i]);
        ck_assert(says("others might read"));
    }
    ck_assert_int_eq(chmod(path, 0440), 0); /* root's group has root alone, or the service's list */
    ck_assert(load_credential() == (geteuid() == 0));
    (void)snprintf(other, sizeof other, "%s/real", folder);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_int_eq(symlink(other, path), 0);
    ck_assert(keyfile_has_credential("a.key"));
    ck_assert(!load_credential());
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!load_credential()); /* and does not wait for a writer */
    ck_assert(says("not a file"));
}
END_TEST

SUITE("keyfile", setup, teardown, TEST(a_key_is_made_once_and_read_again),
      TEST(a_key_file_says_whether_its_key_has_signed),
      TEST(a_second_line_that_is_no_note_is_refused),
      TEST(a_key_that_others_may_read_is_refused_with_the_fix),
      TEST(a_folder_that_others_may_enter_is_refused_with_the_fix),
      TEST(symbolic_links_are_refused), TEST(what_is_no_key_is_refused),
      TEST(a_supervisor_may_hand_a_key_over),
      TEST(a_credential_that_others_may_read_or_write_is_refused))
