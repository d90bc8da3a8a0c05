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
    const struct id128 market = {{1}};
    const struct etcd_mark written = {
        .cluster = UINT64_C(0xfedcba9876543210), .journal = {{7, 8}}, .member = "00ab00ab00ab00ab"};
    const struct etcd_mark nobody = {.cluster = 7, .journal = {{9}}};
    struct etcd_mark mark = {.cluster = 1};
    ck_assert(etcd_mark_read(folder, &mark, &problem));
    ck_assert_uint_eq(mark.cluster, 0); /* no file yet */
    ck_assert(id128_equal(etcd_mark_journal(&mark, &market), &market));
    ck_assert(etcd_mark_write(folder, &written, &problem));
    ck_assert(etcd_mark_read(folder, &mark, &problem));
    ck_assert(mark.cluster == written.cluster);
    ck_assert(id128_equal(etcd_mark_journal(&mark, &market), &written.journal));
    ck_assert_str_eq(mark.member, written.member);
    ck_assert(etcd_mark_write(folder, &nobody, &problem));
    ck_assert(etcd_mark_read(folder, &mark, &problem));
    ck_assert_uint_eq(mark.cluster, 7);
    ck_assert_str_eq(mark.member, "");
    ck_assert(etcd_mark_remove(folder, &problem));
    ck_assert(etcd_mark_remove(folder, &problem)); /* there is none any more */
    ck_assert(etcd_mark_read(folder, &mark, &problem));
    ck_assert_uint_eq(mark.cluster, 0);
}
END_TEST

#define ZEROS "0000000000000000"
START_TEST(another_content_is_refused)
{
    static const char *const contents[] = {
        "",
        "bourse-journal-etcd 1\n",
        "bourse-journal-etcd 1\n0000000000000000\n",
        "bourse-journal-etcd 1\n000000000000000g\n",
        "bourse-journal-etcd 1\n00000000000000AB\n",
        "bourse-journal-etcd 2\n00000000000000ab\n",
        "bourse-journal-etcd 1\n00000000000000ab\nx",
        "bourse-journal-etcd 1\n00000000000000ab ",
        "bourse-journal-etcd 3\n00000000000000ab\n",
        "bourse-journal-etcd 2\n00000000000000ab\n" ZEROS ZEROS "\n",
        "bourse-journal-etcd 2\n00000000000000ab\n" ZEROS "\n" ZEROS "\n",
        "bourse-journal-etcd 2\n" ZEROS "\n" ZEROS ZEROS "\n" ZEROS "\n",
        "bourse-journal-etcd 2\n00000000000000ab\n" ZEROS ZEROS "\n" ZEROS "\n\n",
        "bourse-journal-etcd 2\n00000000000000ab\n" ZEROS ZEROS "\n00000000000000AB\n"};
    struct etcd_mark mark;
    for (size_t i = 0; i < sizeof contents / sizeof contents[0]; i++) {
        write_file(contents[i]);
        ck_assert_msg(!etcd_mark_read(folder, &mark, &problem), "accepted: %s", contents[i]);
        ck_assert(says(MARKET_JOURNAL_ETCD));
        ck_assert_uint_eq(mark.cluster, 0);
    }
}
END_TEST

START_TEST(a_folder_of_an_earlier_release_has_no_record)
{
    const struct id128 market = {{1}};
    struct etcd_mark mark;
    write_file("bourse-journal-etcd 1\n00000000000000ab\n");
    ck_assert(etcd_mark_read(folder, &mark, &problem));
    ck_assert_uint_eq(mark.cluster, 0xab);
    ck_assert_str_eq(mark.member, "");
    ck_assert(id128_equal(etcd_mark_journal(&mark, &market), &market));
}
END_TEST

START_TEST(who_was_on_etcd_does_not_go_on_alone)
{
    const struct etcd_mark mark = {.cluster = 7};
    ck_assert(etcd_mark_check_alone(folder, false, &problem));
    ck_assert(etcd_mark_write(folder, &mark, &problem));
    ck_assert(!etcd_mark_check_alone(folder, false, &problem));
    ck_assert(says("etcd cluster 0000000000000007"));
    ck_assert(etcd_mark_check_alone(folder, true, &problem));
    ck_assert(etcd_mark_check_alone(folder, false, &problem)); /* the mark is gone */
}
END_TEST

SUITE("etcd_mark", setup, teardown, TEST(what_is_written_is_read), TEST(another_content_is_refused),
      TEST(a_folder_of_an_earlier_release_has_no_record),
      TEST(who_was_on_etcd_does_not_go_on_alone))
