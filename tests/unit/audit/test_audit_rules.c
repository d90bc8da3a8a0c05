/* The tests audit commands that change the rules, which since rules 23 rise by one and never
 * fall. */
#include "audit/audit.h"
#include "tests/support/small_market_story.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>

static const struct change {
    uint32_t from, to;
    bool is_right;
} changes[] = {
    {22, 23, true}, {22, 21, true},  {20, 22, true},  {23, 23, true},
    {23, 24, true}, {23, 22, false}, {23, 25, false}, {24, 1, false},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static void tell(struct writer_state *state, void *context)
{
    const struct change *change = context;
    story_rules(state, change->from);
    story_rules(state, change->to);
}

START_TEST(rules_rise_by_one_and_never_fall)
{
    struct audit_report report;
    struct small_market market;
    struct change change = changes[_i];
    small_market_create_more(&market, NULL, tell, &change);
    audit_run(market.folder, &report);
    small_market_destroy(&market);
    ck_assert_msg((report.verdict == AUDIT_OK) == change.is_right, "%s: %s", report.table,
                  report.what);
    if (change.is_right) {
        ck_assert_uint_eq(report.rules, change.to);
    } else {
        ck_assert_str_eq(report.table, "journal");
        ck_assert_str_eq(report.what, "command 13: the rules fall, or one number is skipped");
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    const struct suite_test tests[] = {LOOP(rules_rise_by_one_and_never_fall, 0, CHANGES)};
    return suite_main("audit of rules", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
