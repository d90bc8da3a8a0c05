/* The tests audit commands that say for how long no broker ran. Such commands exist since rules 21,
 * and need a time. */
#include "audit/audit.h"
#include "broker/core/translate.h"
#include "exchange/exchange.h"
#include "tests/support/small_market_story.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>

static const struct outage {
    uint32_t rules;
    int64_t outage_ns;
    size_t bytes; /* of the payload */
    bool is_right;
} outages[] = {
    {21, 5000000000, TRANSLATE_OUTAGE_BYTES, true},
    {21, 1, TRANSLATE_OUTAGE_BYTES, true},
    {20, 5000000000, TRANSLATE_OUTAGE_BYTES, false},
    {21, 0, TRANSLATE_OUTAGE_BYTES, false},
    {21, -1, TRANSLATE_OUTAGE_BYTES, false},
    {21, 5000000000, 4, false},
    {21, 5000000000, 0, false},
};
enum { OUTAGES = sizeof outages / sizeof outages[0] };

static void tell(struct writer_state *state, void *context)
{
    const struct outage *outage = context;
    uint8_t *payload = malloc(TRANSLATE_OUTAGE_BYTES);
    ck_assert_ptr_nonnull(payload);
    translate_outage(outage->outage_ns, payload);
    story_rules(state, outage->rules);
    writer_add_command(state, ENTRY_OUTAGE, EXCHANGE_NO_ACCOUNT, payload, outage->bytes);
    writer_commit(state);
}

START_TEST(an_outage_has_a_time_and_the_rules_that_know_it)
{
    struct audit_report report;
    struct small_market market;
    struct outage outage = outages[_i];
    small_market_create_more(&market, NULL, tell, &outage);
    audit_run(market.folder, &report);
    small_market_destroy(&market);
    ck_assert_msg((report.verdict == AUDIT_OK) == outage.is_right, "%s: %s", report.table,
                  report.what);
    if (!outage.is_right) {
        ck_assert_str_eq(report.table, "journal");
        ck_assert_str_eq(report.what,
                         "command 13: the outage names no time, or stands under rules without "
                         "outages");
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    const struct suite_test tests[] = {
        LOOP(an_outage_has_a_time_and_the_rules_that_know_it, 0, OUTAGES)};
    return suite_main("audit of outages", NULL, NULL, tests, sizeof tests / sizeof tests[0]);
}
