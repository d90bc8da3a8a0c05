#include "runtime/market.h"

#include "runtime/files.h"
#include "runtime/process.h"
#include "tests/support/sample_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(market_files_are_read_as_written)
{
    char folder[] = "/tmp/bourse-market-XXXXXX";
    char path[64];
    struct problem problem;
    ck_assert(process_start(&problem));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, MARKET_FILE);
    struct market out = sample_market();
    strcpy(out.control, "ipc:///tmp/a folder: \"quoted\" # and\\more/broker.sock");
    struct market in;
    ck_assert_msg(market_write(path, &out, &problem), "%s", problem.text);
    ck_assert_msg(market_read(path, &in, &problem), "%s", problem.text);
    sample_market_check_same(&in, &out);
    ck_assert_int_eq(in.pid, 4711);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 07777, 0640);

    static const char *const wrong[] = {"", "control: x\n", "- a\n", "control: [\n",
                                        "pid: 1\npid: 2\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        ck_assert(file_write(path, wrong[i], strlen(wrong[i]), 0600, &problem));
        ck_assert_msg(!market_read(path, &in, &problem), "text %zu", i);
        ck_assert_ptr_nonnull(strstr(problem.text, MARKET_FILE));
    }
    static const char *const nowhere[] = {"tcp://127.0.0.1:4770x", "tcp://127.0.0.1:99999",
                                          "tcp://127.0.0.1", "ipc://", "127.0.0.1:4770"};
    for (size_t i = 0; i < sizeof nowhere / sizeof nowhere[0]; i++) {
        strcpy(out.control, nowhere[i]);
        ck_assert_msg(market_write(path, &out, &problem), "%s", problem.text);
        ck_assert_msg(!market_read(path, &in, &problem), "%s is read", nowhere[i]);
        ck_assert_ptr_nonnull(strstr(problem.text, "tcp://HOST:PORT"));
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(!market_read(path, &in, &problem));
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_market_of_several_brokers_lists_them)
{
    char folder[] = "/tmp/bourse-market-XXXXXX";
    char path[64];
    struct problem problem;
    struct contact all[CONTACTS_MAX];
    ck_assert(process_start(&problem));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, MARKET_FILE);
    struct market out = sample_cluster();
    struct market in;
    ck_assert_msg(market_write(path, &out, &problem), "%s", problem.text);
    ck_assert_msg(market_read(path, &in, &problem), "%s", problem.text);
    sample_market_check_same(&in, &out);
    ck_assert_uint_eq(market_addresses(&in, all), 3);
    ck_assert_str_eq(all[0].control, out.control);
    ck_assert_str_eq(all[0].blobs, out.blobs);
    ck_assert_str_eq(all[2].control, out.others[1].control);

    /* The longest file has room, and one more broker than a market may have is refused. */
    memset(out.control, '"', sizeof out.control - 1);
    memset(out.blobs, '"', sizeof out.blobs - 1);
    memcpy(out.control, "ipc://", 6);
    memcpy(out.blobs, "ipc://", 6);
    out.other_count = CONTACTS_MAX - 1;
    for (size_t i = 0; i < out.other_count; i++) {
        (void)snprintf(out.others[i].control, sizeof out.others[i].control, "tcp://%0*zu:4770",
                       LIMIT_ENDPOINT_BYTES - 11, i);
        out.others[i].blobs[0] = '\0';
        strcpy(out.others[i].blobs, out.others[i].control);
    }
    ck_assert_msg(market_write(path, &out, &problem), "%s", problem.text);
    ck_assert_msg(market_read(path, &in, &problem), "%s", problem.text);
    sample_market_check_same(&in, &out);
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    (void)fputs("  - {control: tcp://more:1, blobs: tcp://more:2}\n", file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert(!market_read(path, &in, &problem));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* Whoever may write the file chooses the broker that every program on this machine trusts. */
START_TEST(a_market_file_that_others_may_write_is_refused)
{
    static const struct {
        unsigned mode;
        bool is_read;
    } cases[] = {{0600, true},  {0640, true},  {0644, true},  {0400, true}, {0444, true},
                 {0666, false}, {0620, false}, {0660, false}, {0602, false}};
    char folder[] = "/tmp/bourse-market-XXXXXX";
    char path[64];
    struct problem problem;
    struct market in;
    struct market out = sample_market();
    ck_assert(process_start(&problem));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, MARKET_FILE);
    ck_assert_msg(market_write(path, &out, &problem), "%s", problem.text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(chmod(path, (mode_t)cases[i].mode), 0);
        ck_assert_msg(market_read(path, &in, &problem) == cases[i].is_read, "mode %04o",
                      cases[i].mode);
        ck_assert(cases[i].is_read || strstr(problem.text, "run: chmod go-w '/tmp/") != NULL);
    }
    ck_assert_int_eq(chmod(path, 0640), 0);
    if (geteuid() == 0) { /* only root gives files away */
        ck_assert_int_eq(chown(path, 65534, (gid_t)-1), 0);
        ck_assert(!market_read(path, &in, &problem));
        ck_assert_ptr_nonnull(strstr(problem.text, "belongs to user"));
    }
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_staged_market_gets_its_name_last)
{
    char folder[] = "/tmp/bourse-market-XXXXXX";
    char path[64];
    struct problem problem;
    struct market in;
    const struct market out = sample_market();
    ck_assert(process_start(&problem));
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/%s", folder, MARKET_FILE);
    ck_assert(!market_settle(path, &problem)); /* nothing is staged */
    for (int i = 0; i < 2; i++) {              /* a second time over what a killed process left */
        ck_assert_msg(market_stage(path, &out, &problem), "%s", problem.text);
        ck_assert_int_ne(access(path, F_OK), 0);
    }
    market_unstage(path);
    ck_assert(!market_settle(path, &problem));
    ck_assert(market_stage(path, &out, &problem));
    ck_assert_msg(market_settle(path, &problem), "%s", problem.text);
    ck_assert_msg(market_read(path, &in, &problem), "%s", problem.text);
    sample_market_check_same(&in, &out);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left in it */
}
END_TEST

SUITE("market", NULL, NULL, TEST(market_files_are_read_as_written),
      TEST(a_market_of_several_brokers_lists_them),
      TEST(a_market_file_that_others_may_write_is_refused),
      TEST(a_staged_market_gets_its_name_last))
