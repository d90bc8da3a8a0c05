/* Versions of etcd that may lose entries are refused, old ones are named, current ones are good. */
#include "broker/storage/etcd/etcd_version.h"

#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

static const struct {
    const char *version;
    enum etcd_version_verdict verdict;
} cases[] = {
    {"3.5.33", ETCD_VERSION_GOOD},     {"3.5.40", ETCD_VERSION_GOOD},
    {"3.6.14", ETCD_VERSION_GOOD},     {"3.7.0", ETCD_VERSION_GOOD},
    {"3.4.23", ETCD_VERSION_OLD},      {"3.4.45", ETCD_VERSION_OLD},
    {"3.5.17", ETCD_VERSION_OLD},      {"3.5.32", ETCD_VERSION_OLD},
    {"3.6.0", ETCD_VERSION_OLD},       {"3.6.13", ETCD_VERSION_OLD},
    {"3.6.0-rc.1", ETCD_VERSION_OLD},  {"3.5.0", ETCD_VERSION_REFUSED},
    {"3.5.16", ETCD_VERSION_REFUSED},  {"3.5.16+git", ETCD_VERSION_REFUSED},
    {"3.3.27", ETCD_VERSION_REFUSED},  {"2.3.8", ETCD_VERSION_REFUSED},
    {"4.0.0", ETCD_VERSION_REFUSED},   {"", ETCD_VERSION_REFUSED},
    {"3.5", ETCD_VERSION_REFUSED},     {"3.5.", ETCD_VERSION_REFUSED},
    {"v3.5.33", ETCD_VERSION_REFUSED}, {"3.5.99999999999999", ETCD_VERSION_GOOD},
    {"3.-5.33", ETCD_VERSION_REFUSED},
};

START_TEST(each_version_has_its_verdict)
{
    const char *advice = NULL;
    ck_assert_msg(etcd_version_judge(cases[_i].version, &advice) == cases[_i].verdict, "%s",
                  cases[_i].version);
    ck_assert_int_eq(advice[0] == '\0', cases[_i].verdict == ETCD_VERSION_GOOD);
    if (cases[_i].verdict != ETCD_VERSION_GOOD) {
        ck_assert_ptr_nonnull(strstr(advice, "3.5.33 or 3.6.14"));
    }
}
END_TEST

SUITE("etcd_version", NULL, NULL,
      LOOP(each_version_has_its_verdict, 0, sizeof cases / sizeof cases[0]))
