#include "broker/storage/disk_reserve.h"

#include "runtime/market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KIB = 1024 };

static char folder[64], path[96], last_path[96];

static void make_folder(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/bourse-reserve-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, MARKET_RESERVE);
    (void)snprintf(last_path, sizeof last_path, "%s/%s", folder, MARKET_RESERVE_LAST);
}

static void remove_folder(void)
{
    (void)unlink(path);
    (void)unlink(last_path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static int64_t taken_by(const char *file)
{
    struct stat status;
    return stat(file, &status) == 0 ? (int64_t)status.st_blocks * 512 : -1;
}

static int64_t reserved(void)
{
    return taken_by(path);
}

START_TEST(the_reserve_is_real_room_and_is_given_up_once)
{
    struct disk_reserve reserve;
    disk_reserve_open(&reserve, folder, 256 * KIB);
    ck_assert_int_ge(reserved(), 256 * KIB);
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_UNUSED);

    ck_assert(disk_reserve_met_full(&reserve));
    ck_assert_int_eq(reserved(), -1);
    ck_assert_int_eq(taken_by(last_path), 64 * KIB);
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_IN_USE);
    ck_assert(disk_reserve_met_full(&reserve)); /* what was on its way gets the last part, too */
    ck_assert_int_eq(taken_by(last_path), -1);
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_NONE);
    ck_assert(!disk_reserve_met_full(&reserve));
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_STUCK);

    disk_reserve_review(&reserve); /* this disk has room */
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_UNUSED);
    ck_assert_int_ge(reserved(), 256 * KIB);
}
END_TEST

START_TEST(a_reserve_of_another_size_is_made_right)
{
    struct disk_reserve reserve;
    struct stat status;
    disk_reserve_open(&reserve, folder, 512 * KIB);
    disk_reserve_open(&reserve, folder, 128 * KIB);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 128 * KIB);
    disk_reserve_open(&reserve, folder, 0);
    ck_assert_int_eq(reserved(), -1);
}
END_TEST

START_TEST(what_does_not_fit_is_wanted_still)
{
    struct disk_reserve reserve;
    disk_reserve_open(&reserve, folder, INT64_C(1) << 60);
    ck_assert_int_eq(reserved(), -1);
    ck_assert_int_eq(disk_reserve_state(&reserve),
                     DISK_RESERVE_LAST); /* no disk has an eighth of that left */
    ck_assert_int_ge(taken_by(last_path), 64 * KIB);
    disk_reserve_review(&reserve);
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_LAST);
    ck_assert(disk_reserve_met_full(&reserve));
    disk_reserve_review(&reserve); /* what is left becomes the last part again */
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_LAST);
    ck_assert_int_ge(taken_by(last_path), 64 * KIB);
    ck_assert(disk_reserve_met_full(&reserve));
    ck_assert(!disk_reserve_met_full(&reserve));
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_STUCK);

    reserve.bytes = 256 * KIB; /* as if there were room for it now */
    disk_reserve_review(&reserve);
    ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_UNUSED);
    ck_assert_int_ge(reserved(), 256 * KIB);
    ck_assert_int_eq(taken_by(last_path), -1);
}
END_TEST

/* The lines that the log of this process has so far in `file`, which is its standard error. */
static unsigned lines_in(FILE *file)
{
    unsigned lines = 0;
    rewind(file);
    for (int byte; (byte = getc(file)) != EOF;) {
        lines += byte == '\n';
    }
    (void)fseek(file, 0, SEEK_END);
    return lines;
}

START_TEST(the_log_is_told_once_of_each_change)
{
    struct disk_reserve reserve;
    FILE *file = tmpfile();
    const int error = dup(STDERR_FILENO);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
    disk_reserve_open(&reserve, folder, INT64_C(1) << 60);
    const unsigned at_start = lines_in(file);
    for (int act = 0; act < 4; act++) { /* each takes the last part, and leaves one */
        ck_assert(disk_reserve_met_full(&reserve));
        disk_reserve_review(&reserve);
        ck_assert_int_eq(disk_reserve_state(&reserve), DISK_RESERVE_LAST);
    }
    const unsigned after_acts = lines_in(file);
    ck_assert(disk_reserve_met_full(&reserve));
    ck_assert(!disk_reserve_met_full(&reserve));
    ck_assert(!disk_reserve_met_full(&reserve));
    const unsigned when_stuck = lines_in(file);
    ck_assert_int_eq(dup2(error, STDERR_FILENO), STDERR_FILENO);
    (void)close(error);
    (void)fclose(file);
    ck_assert_uint_ge(at_start, 1);
    ck_assert_uint_eq(after_acts, at_start);
    ck_assert_uint_eq(when_stuck, at_start + 1);
}
END_TEST

START_TEST(a_start_gives_up_the_reserve_that_lies_there)
{
    struct disk_reserve reserve;
    ck_assert(!disk_reserve_give_up(folder));
    disk_reserve_open(&reserve, folder, 256 * KIB);
    ck_assert(disk_reserve_give_up(folder));
    ck_assert_int_eq(reserved(), -1);
    ck_assert(!disk_reserve_give_up(folder));
    disk_reserve_open(&reserve, folder, 256 * KIB);
    ck_assert(disk_reserve_met_full(&reserve));
    ck_assert(disk_reserve_give_up(folder)); /* the last part of a broker that was killed */
    ck_assert_int_eq(taken_by(last_path), -1);
    ck_assert(!disk_reserve_give_up(folder));
}
END_TEST

START_TEST(first_aid_comes_before_trade_and_reads_before_both)
{
    static const enum message_type trade[] = {MESSAGE_SUBMIT_JOB, MESSAGE_ASK_PLACE,
                                              MESSAGE_RESULTS, MESSAGE_MINT, MESSAGE_JOIN};
    static const enum message_type aid[] = {MESSAGE_JOB_CANCEL, MESSAGE_ORDER_CANCEL,
                                            MESSAGE_FREEZE, MESSAGE_HALT};
    for (size_t i = 0; i < sizeof trade / sizeof trade[0]; i++) {
        ck_assert(disk_reserve_admits(DISK_RESERVE_UNUSED, trade[i]));
        ck_assert(!disk_reserve_admits(DISK_RESERVE_IN_USE, trade[i]));
        ck_assert(!disk_reserve_admits(DISK_RESERVE_LAST, trade[i]));
        ck_assert(!disk_reserve_admits(DISK_RESERVE_NONE, trade[i]));
        ck_assert(!disk_reserve_admits(DISK_RESERVE_STUCK, trade[i]));
    }
    for (size_t i = 0; i < sizeof aid / sizeof aid[0]; i++) {
        ck_assert(disk_reserve_admits(DISK_RESERVE_UNUSED, aid[i]));
        const bool is_operators = aid[i] == MESSAGE_FREEZE || aid[i] == MESSAGE_HALT;
        ck_assert(disk_reserve_admits(DISK_RESERVE_IN_USE, aid[i]));
        ck_assert(disk_reserve_admits(DISK_RESERVE_LAST, aid[i]) == is_operators);
        ck_assert(!disk_reserve_admits(DISK_RESERVE_NONE, aid[i]));
        ck_assert(!disk_reserve_admits(DISK_RESERVE_STUCK, aid[i]));
    }
    ck_assert(disk_reserve_admits(DISK_RESERVE_IN_USE, MESSAGE_BALANCE_REQUEST));
    ck_assert(disk_reserve_admits(DISK_RESERVE_LAST, MESSAGE_BALANCE_REQUEST));
    ck_assert(disk_reserve_admits(DISK_RESERVE_NONE, MESSAGE_BALANCE_REQUEST));
    ck_assert(!disk_reserve_admits(DISK_RESERVE_STUCK,
                                   MESSAGE_BALANCE_REQUEST)); /* of a state not yet durable */
    ck_assert(disk_reserve_admits(DISK_RESERVE_STUCK, MESSAGE_RECEIPT_REQUEST));
}
END_TEST

SUITE("disk_reserve", make_folder, remove_folder,
      TEST(the_reserve_is_real_room_and_is_given_up_once),
      TEST(a_reserve_of_another_size_is_made_right), TEST(what_does_not_fit_is_wanted_still),
      TEST(the_log_is_told_once_of_each_change), TEST(a_start_gives_up_the_reserve_that_lies_there),
      TEST(first_aid_comes_before_trade_and_reads_before_both))
