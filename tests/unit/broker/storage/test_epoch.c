#include "broker/storage/epoch.h"

#include "base/sha256.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct hash32 none;

struct disk {
    struct epoch_secrets kept;
    bool is_full;
};

static bool keep(void *context, const struct epoch_secrets *secrets)
{
    struct disk *disk = context;
    if (!disk->is_full) {
        disk->kept = *secrets;
    }
    return !disk->is_full;
}

/* Starts as a broker does: it knows what is on the disk. */
static struct epoch start(struct disk *disk)
{
    return (struct epoch){.secrets = disk->kept, .length_ns = 10, .keep = keep, .context = disk};
}

static struct hash32 hash_of(const struct hash32 *secret)
{
    return sha256_of(secret->bytes, sizeof secret->bytes);
}

START_TEST(the_first_epoch_shows_nothing_and_the_next_shows_the_first)
{
    struct disk disk = {.is_full = false};
    struct epoch epoch = start(&disk);
    struct exchange_epoch first;
    struct exchange_epoch second;
    epoch_start(&epoch, 0, 90);
    ck_assert(!epoch.has_begun);
    ck_assert_int_eq(epoch.ends_ns, INT64_MAX); /* there is nothing to show */
    ck_assert(epoch_prepare(&epoch, &none, &first));
    ck_assert(hash32_equal(&first.secret, &none));
    epoch_begin(&epoch, 100);
    ck_assert(epoch.has_begun);
    ck_assert_int_eq(epoch.ends_ns, 110);
    struct hash32 hash = hash_of(&epoch.secrets.now);
    ck_assert(hash32_equal(&hash, &first.commitment));
    struct hash32 secret = epoch.secrets.now;
    ck_assert(epoch_prepare(&epoch, &first.commitment, &second));
    ck_assert(hash32_equal(&second.secret, &secret));
    ck_assert(!hash32_equal(&second.commitment, &first.commitment));
    epoch_start(&epoch, 1, 200); /* a broker that starts later */
    ck_assert(!epoch.has_begun);
    ck_assert_int_eq(epoch.ends_ns, 210);
}
END_TEST

/* Durable before the journal can commit to it, and still there when it did not. */
START_TEST(a_crash_on_either_side_of_the_command_loses_no_secret)
{
    struct disk disk = {.is_full = false};
    struct epoch epoch = start(&disk);
    struct exchange_epoch stands;
    struct exchange_epoch next;
    struct exchange_epoch after;
    ck_assert(epoch_prepare(&epoch, &none, &stands));
    epoch_begin(&epoch, 0);
    struct hash32 old = epoch.secrets.now;
    ck_assert(epoch_prepare(&epoch, &stands.commitment, &next));
    struct hash32 new = epoch.secrets.next;

    struct disk copy = disk; /* the command never came to the journal */
    struct epoch again = start(&copy);
    ck_assert(epoch_prepare(&again, &stands.commitment, &after));
    ck_assert(hash32_equal(&after.secret, &old));

    copy = disk; /* it did */
    again = start(&copy);
    ck_assert(epoch_prepare(&again, &next.commitment, &after));
    ck_assert(hash32_equal(&after.secret, &new));
}
END_TEST

START_TEST(a_lost_secret_is_shown_as_zeros)
{
    struct disk disk = {.is_full = false};
    struct epoch epoch = start(&disk);
    struct exchange_epoch command;
    const struct hash32 commitment = {{1, 2, 3}};
    ck_assert(epoch_prepare(&epoch, &commitment, &command));
    ck_assert(hash32_equal(&command.secret, &none));
    ck_assert(!hash32_equal(&command.commitment, &none));
}
END_TEST

START_TEST(what_cannot_be_kept_changes_nothing)
{
    struct disk disk = {.is_full = false};
    struct epoch epoch = start(&disk);
    struct exchange_epoch command;
    ck_assert(epoch_prepare(&epoch, &none, &command));
    epoch_begin(&epoch, 0);
    struct hash32 before = epoch_dice(&epoch, 7);
    disk.is_full = true;
    ck_assert(!epoch_prepare(&epoch, &command.commitment, &command));
    epoch_put_off(&epoch, 1000);
    ck_assert_int_eq(epoch.ends_ns, 1000 + 60 * NS_PER_S);
    struct hash32 after = epoch_dice(&epoch, 7);
    ck_assert(hash32_equal(&before, &after));
}
END_TEST

/* The expected bytes are Python's hmac. */
START_TEST(dice_are_the_hmac_of_the_command)
{
    static const uint8_t expected[32] = {0x39, 0x4e, 0x0b, 0x6f, 0xb7, 0xe7, 0x76, 0xa9,
                                         0x44, 0xee, 0x6e, 0x39, 0x2a, 0x8c, 0x59, 0x78,
                                         0x61, 0x6d, 0xed, 0x3e, 0xe5, 0x20, 0x97, 0xf3,
                                         0xb1, 0xeb, 0x17, 0xf6, 0xf3, 0x8a, 0xfd, 0x86};
    struct epoch epoch = {.length_ns = 1, .has_begun = true};
    memset(epoch.secrets.now.bytes, 0x0b, 32);
    struct hash32 dice = epoch_dice(&epoch, 0x0102);
    ck_assert_mem_eq(dice.bytes, expected, 32);
    struct hash32 other = epoch_dice(&epoch, 0x0103);
    ck_assert(!hash32_equal(&dice, &other));
}
END_TEST

static char path[64];

static void make_folder(void)
{
    (void)snprintf(path, sizeof path, "/tmp/bourse-epoch-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(path));
    strcat(path, "/epoch.secret");
}

static void remove_folder(void)
{
    (void)unlink(path);
    *strrchr(path, '/') = '\0';
    ck_assert_int_eq(rmdir(path), 0);
}

START_TEST(the_file_is_private_and_read_back)
{
    struct epoch_secrets secrets = {.now = {{1}}, .next = {{0xfe, 2}}};
    struct epoch_secrets again;
    struct problem problem;
    struct stat status;
    ck_assert_int_eq(epoch_load(path, &again, &problem), EPOCH_LOADED); /* none yet */
    ck_assert(hash32_equal(&again.now, &none));
    ck_assert(epoch_store(path, &secrets, &problem));
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0600);
    ck_assert_int_eq(epoch_load(path, &again, &problem), EPOCH_LOADED);
    ck_assert(hash32_equal(&again.now, &secrets.now));
    ck_assert(hash32_equal(&again.next, &secrets.next));
}
END_TEST

START_TEST(another_file_in_its_place_is_a_problem)
{
    static const char *const texts[] = {"", "bourse-epoch 1\n", "bourse-epoch 2\n", "rubbish"};
    struct epoch_secrets secrets = {.now = {{1}}};
    struct problem problem;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        FILE *file = fopen(path, "we");
        ck_assert_ptr_nonnull(file);
        ck_assert_int_ge(fputs(texts[i], file), 0);
        ck_assert_int_eq(fclose(file), 0);
        ck_assert_int_eq(epoch_load(path, &secrets, &problem), EPOCH_SPOILT);
        ck_assert(hash32_equal(&secrets.now, &none));
        ck_assert_ptr_nonnull(strstr(problem.text, path));
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("epoch");
    TCase *tests = tcase_create("secrets");
    tcase_add_test(tests, the_first_epoch_shows_nothing_and_the_next_shows_the_first);
    tcase_add_test(tests, a_crash_on_either_side_of_the_command_loses_no_secret);
    tcase_add_test(tests, a_lost_secret_is_shown_as_zeros);
    tcase_add_test(tests, what_cannot_be_kept_changes_nothing);
    tcase_add_test(tests, dice_are_the_hmac_of_the_command);
    suite_add_tcase(suite, tests);
    TCase *file = tcase_create("file");
    tcase_add_checked_fixture(file, make_folder, remove_folder);
    tcase_add_test(file, the_file_is_private_and_read_back);
    tcase_add_test(file, another_file_in_its_place_is_a_problem);
    suite_add_tcase(suite, file);
    return suite_run(suite);
}
