/* The word to hand the lead over, as a command line says it and as a folder keeps it. */
#include "broker/cluster/transfer.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_read(const char *text, const char *expected)
{
    char wish[TRANSFER_WISH_SIZE];
    struct problem problem = {.text = ""};
    ck_assert_msg(transfer_wish_read(text, wish, &problem), "%s", problem.text);
    ck_assert_str_eq(wish, expected);
}

START_TEST(a_successor_is_a_rank_an_address_or_anybody)
{
    check_read(NULL, "");
    check_read("0", "rank 0");
    check_read("9", "rank 9");
    check_read("tcp://10.0.0.2:4770", "tcp://10.0.0.2:4770");
    const char *const wrong[] = {"", "10", "-1", "x", "10.0.0.2", "tcp://", "ipc:///a"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char wish[TRANSFER_WISH_SIZE];
        struct problem problem;
        ck_assert_msg(!transfer_wish_read(wrong[i], wish, &problem), "%s", wrong[i]);
        ck_assert_ptr_nonnull(strstr(problem.text, "rank"));
    }
}
END_TEST

START_TEST(a_request_is_obeyed_once)
{
    char folder[] = "/tmp/bourse-transfer-XXXXXX";
    char wish[TRANSFER_WISH_SIZE];
    struct problem problem = {.text = ""};
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert(!transfer_take(folder, wish));
    ck_assert_msg(transfer_put(folder, "rank 2", &problem), "%s", problem.text);
    ck_assert(transfer_take(folder, wish));
    ck_assert_str_eq(wish, "rank 2");
    ck_assert(!transfer_take(folder, wish));
    ck_assert(transfer_put(folder, "", &problem));
    ck_assert(transfer_take(folder, wish));
    ck_assert_str_eq(wish, "");
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

SUITE("transfer", NULL, NULL, TEST(a_successor_is_a_rank_an_address_or_anybody),
      TEST(a_request_is_obeyed_once))
