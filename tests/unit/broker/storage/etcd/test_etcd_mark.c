/* The folder remembers on which etcd cluster its market's journal is. */
#include "broker/storage/etcd/etcd_mark.h"

#include "runtime/files.h"
#include "runtime/market.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>

static void write_file(const char *text)
{
    char name[128];
    (void)snprintf(name, sizeof name, "%s/%s", folder, MARKET_JOURNAL_ETCD);
    ck_assert_msg(file_write(name, text, strlen(text), 0600, &problem), "%s", problem.text);
}

START_TEST(what_is_written_is_read)
{
    uint64_t cluster = 1;
    ck_assert(etcd_mark_read(folder, &cluster, &problem));
    ck_assert_uint_eq(cluster, 0); /* no file yet */
    ck_assert(etcd_mark_write(folder, UINT64_C(0xfedcba9876543210), &problem));
    ck_assert(etcd_mark_read(folder, &cluster, &problem));
    ck_assert(cluster == UINT64_C(0xfedcba9876543210));
    ck_assert(etcd_mark_write(folder, 7, &problem));
    ck_assert(etcd_mark_read(folder, &cluster, &problem));
    ck_assert_uint_eq(cluster, 7);
    ck_assert(etcd_mark_remove(folder, &problem));
    ck_assert(etcd_mark_remove(folder, &problem)); /* there is none any more */
    ck_assert(etcd_mark_read(folder, &cluster, &problem));
    ck_assert_uint_eq(cluster, 0);
}
END_TEST

START_TEST(another_content_is_refused)
{
    static const char *const contents[] = {"",
                                           "bourse-journal-etcd 1\n",
                                           "bourse-journal-etcd 1\n0000000000000000\n",
                                           "bourse-journal-etcd 1\n000000000000000g\n",
                                           "bourse-journal-etcd 1\n00000000000000AB\n",
                                           "bourse-journal-etcd 2\n00000000000000ab\n",
                                           "bourse-journal-etcd 1\n00000000000000ab\nx",
                                           "bourse-journal-etcd 1\n00000000000000ab "};
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        uint64_t cluster;
        write_file(contents[i]);
        ck_assert_msg(!etcd_mark_read(folder, &cluster, &problem), "accepted: %s", contents[i]);
        ck_assert(says(MARKET_JOURNAL_ETCD));
    }
    uint64_t cluster;
    write_file("bourse-journal-etcd 1\n00000000000000ab\n");
    ck_assert(etcd_mark_read(folder, &cluster, &problem));
    ck_assert_uint_eq(cluster, 0xab);
}
END_TEST

SUITE("etcd_mark", setup, teardown, TEST(what_is_written_is_read), TEST(another_content_is_refused))
