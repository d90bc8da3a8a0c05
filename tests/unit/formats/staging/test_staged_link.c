#include "formats/staging/staged_link.h"

#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

START_TEST(a_link_that_stays_in_the_folder_travels)
{
    static const struct {
        const char *name, *target;
    } cases[] = {
        {"a", "b"},        {"a", "b/c"},        {"a/b", "../c"},     {"a/b/c", "../../d"},
        {"a", "."},        {"a/b", ".."},       {"a/b", "../"},      {"a", "./b"},
        {"a", "a"},        {"a/b", "./../c"},   {"a", "b//c/."},     {"a", "...x/y.."},
        {"a/b", ".././c"}, {"a", "ü and more"}, {"a/b", "../a/b/c"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_msg(staged_link_problem(cases[i].name, cases[i].target) == NULL, "%s -> %s",
                      cases[i].name, cases[i].target);
    }
}
END_TEST

START_TEST(a_link_that_could_lead_out_does_not)
{
    static const struct {
        const char *name, *target, *why;
    } cases[] = {
        {"a", "..", "leads out"},
        {"a", "../a", "leads out"},
        {"a/b", "../../c", "leads out"},
        {"a/b", "./.././..", "leads out"},
        {"a", "/etc", "absolute"},
        {"a", "/", "absolute"},
        /* x/y/up may be a link to the top, from which one more step leads out. */
        {"x/y/l", "up/../..", "behind a name"},
        {"a", "b/../c", "behind a name"},
        {"a", "", "empty"},
        {"a", "b\nc", "plain text"},
        {"a", "\xff", "plain text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why = staged_link_problem(cases[i].name, cases[i].target);
        ck_assert_msg(why != NULL && strstr(why, cases[i].why) != NULL, "%s -> %s: %s",
                      cases[i].name, cases[i].target, why == NULL ? "travels" : why);
    }
}
END_TEST

START_TEST(a_target_has_a_bound)
{
    char target[STAGED_LINK_BYTES + 2];
    memset(target, 'x', sizeof target);
    target[STAGED_LINK_BYTES] = '\0';
    ck_assert_ptr_null(staged_link_problem("a", target));
    target[STAGED_LINK_BYTES] = 'x';
    target[STAGED_LINK_BYTES + 1] = '\0';
    ck_assert_ptr_nonnull(staged_link_problem("a", target));
}
END_TEST

SUITE("staged_link", NULL, NULL, TEST(a_link_that_stays_in_the_folder_travels),
      TEST(a_link_that_could_lead_out_does_not), TEST(a_target_has_a_bound))
