/* The audit against a market whose broker found that outputs, or a checkpoint, were not stored:
 * from the rules 18 on that result counts for nothing, and before them nobody asked. */
#include "audit/audit.h"
#include "base/sha256.h"
#include "protocol/message.h"
#include "tests/support/small_market_story.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE = 2 };

struct story {
    uint32_t rules;
    bool has_checkpoints, is_missing;
    uint8_t outcome, status;
};

static void tell(struct writer_state *state, void *context)
{
    const struct story *story = context;
    struct story_job job = {.name = "leaves",
                            .owner = state->market->owner,
                            .account = SMALL_MARKET_OWNER,
                            .cap_micro = SMALL_MARKET_PRICE,
                            .has_checkpoints = story->has_checkpoints};
    const struct hash32 hash = sha256_of("n", 1);
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files = &file;
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    file.name = "n";
    file.hash = writer_data(hash.bytes, 32);
    saved.n_files = 1;
    saved.files = &files;
    story_rules(state, story->rules);
    story_submit(state, &job);
    story_fill(state, &job, LEASE, 1, SMALL_MARKET_PRICE);
    writer_commit(state);
    const struct story_result result = {.job = &job,
                                        .lease = LEASE,
                                        .attempt = 1,
                                        .outcome = story->outcome,
                                        .status = story->status,
                                        .price_micro = SMALL_MARKET_PRICE,
                                        .saved = story->has_checkpoints ? &saved : NULL,
                                        .is_missing = story->is_missing};
    story_settle(state, &result);
}

#define NOTHING "a result with an output that was not stored is neither accepted nor paid"
static const struct {
    struct story story;
    const char *table, *words; /* of the finding; NULL: it is as it should be */
} cases[] = {
    {{17, false, false, OUTCOME_OK, ATTEMPT_ACCEPTED}, NULL, NULL},
    {{18, false, false, OUTCOME_OK, ATTEMPT_ACCEPTED}, NULL, NULL},
    {{18, false, true, OUTCOME_OK, ATTEMPT_FAILED_UNPAID}, NULL, NULL},
    {{18, false, true, OUTCOME_OK, ATTEMPT_LATE}, NULL, NULL},
    {{18, false, true, OUTCOME_OUTPUT_MISSING, ATTEMPT_FAILED_PAID}, NULL, NULL},
    {{18, false, true, OUTCOME_PREEMPTED, ATTEMPT_FAILED_PAID}, NULL, NULL},
    {{18, true, true, OUTCOME_PREEMPTED, ATTEMPT_FAILED_UNPAID}, NULL, NULL},
    {{18, false, true, OUTCOME_OK, ATTEMPT_ACCEPTED}, "results", NOTHING},
    {{18, false, true, OUTCOME_OK, ATTEMPT_FAILED_PAID}, "results", NOTHING},
    {{18, true, true, OUTCOME_PREEMPTED, ATTEMPT_FAILED_PAID}, "results", NOTHING},
    {{17, false, true, OUTCOME_OK, ATTEMPT_FAILED_UNPAID}, "journal", "has no known kind"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

START_TEST(what_was_not_stored_counts_for_nothing)
{
    struct small_market market;
    struct audit_report report;
    struct story story = cases[_i].story;
    small_market_create_more(&market, NULL, tell, &story);
    audit_run(market.folder, &report);
    small_market_destroy(&market);
    if (cases[_i].words == NULL) {
        ck_assert_msg(report.verdict == AUDIT_OK, "%s %lu: %s (%s, %s)", report.table,
                      (unsigned long)report.entry, report.what, report.expected, report.found);
        ck_assert_uint_eq(report.rules, story.rules);
    } else {
        ck_assert_int_eq(report.verdict, AUDIT_FINDING);
        ck_assert_str_eq(report.table, cases[_i].table);
        ck_assert_ptr_nonnull(strstr(report.what, cases[_i].words));
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("audit of outputs");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, what_was_not_stored_counts_for_nothing, 0, CASES);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
