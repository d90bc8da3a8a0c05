/* The audit against a market in which attempts were preempted: of a job with checkpoints each is
 * paid for what was saved, and for nothing else. */
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

/* One after the other, each paid or not. */
struct attempt {
    const char *saved; /* what is in the one file of its checkpoint; NULL: it left none */
    uint8_t outcome, status;
};
struct story {
    bool has_checkpoints;
    struct attempt attempts[4];
};

static void settle(struct writer_state *state, const struct story_job *job,
                   const struct attempt *attempt, uint32_t number)
{
    const struct hash32 hash =
        sha256_of(attempt->saved, attempt->saved == NULL ? 0 : strlen(attempt->saved));
    Bourse__V1__Output file = BOURSE__V1__OUTPUT__INIT;
    Bourse__V1__Output *files = &file;
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    if (attempt->saved != NULL) {
        file.name = "n";
        file.hash = writer_data(hash.bytes, 32);
        file.size = strlen(attempt->saved);
        saved.n_files = 1;
        saved.files = &files;
    }
    const struct story_result result = {.job = job,
                                        .lease = LEASE,
                                        .attempt = number,
                                        .outcome = attempt->outcome,
                                        .status = attempt->status,
                                        .price_micro = SMALL_MARKET_PRICE,
                                        .saved = attempt->saved == NULL ? NULL : &saved};
    story_settle(state, &result);
}

static void tell(struct writer_state *state, void *context)
{
    const struct story *story = context;
    struct story_job job = {.name = "saves",
                            .owner = state->market->owner,
                            .account = SMALL_MARKET_OWNER,
                            .cap_micro = SMALL_MARKET_PRICE,
                            .has_checkpoints = story->has_checkpoints};
    story_submit(state, &job);
    story_fill(state, &job, LEASE, 1, SMALL_MARKET_PRICE);
    writer_commit(state);
    for (uint32_t number = 1; number <= 4 && story->attempts[number - 1].outcome != 0; number++) {
        settle(state, &job, &story->attempts[number - 1], number);
    }
}

#define SAID OUTCOME_PREEMPTED
static const struct {
    struct story story;
    const char *words; /* of the finding; NULL: it is as it should be */
} cases[] = {
    {{true, {{"at 3", SAID, ATTEMPT_FAILED_PAID}, {"at 6", SAID, ATTEMPT_FAILED_PAID}}}, NULL},
    {{true, {{NULL, SAID, ATTEMPT_FAILED_UNPAID}, {"at 3", SAID, ATTEMPT_FAILED_PAID}}}, NULL},
    {{true,
      {{"at 3", SAID, ATTEMPT_FAILED_PAID},
       {NULL, OUTCOME_PROGRAM_FAILED, ATTEMPT_FAILED_PAID},
       {"at 3", SAID, ATTEMPT_FAILED_PAID}}},
     NULL}, /* it was given up, and saved again */
    {{true, {{"at 3", SAID, ATTEMPT_FAILED_PAID}, {"at 3", SAID, ATTEMPT_FAILED_UNPAID}}}, NULL},
    {{false, {{NULL, SAID, ATTEMPT_FAILED_PAID}}}, NULL},
    {{true, {{NULL, SAID, ATTEMPT_FAILED_PAID}}},
     "broken rule: a preempted attempt is paid only if it left a checkpoint"},
    {{true, {{"at 3", SAID, ATTEMPT_FAILED_PAID}, {"at 3", SAID, ATTEMPT_FAILED_PAID}}},
     "broken rule: a preempted attempt is paid only if its checkpoint is new"},
    {{true,
      {{"at 3", SAID, ATTEMPT_FAILED_PAID},
       {NULL, OUTCOME_PROGRAM_FAILED, ATTEMPT_LATE},
       {"at 3", SAID, ATTEMPT_FAILED_PAID}}},
     /* A late result gives nothing up. */
     "broken rule: a preempted attempt is paid only if its checkpoint is new"},
};
enum { CASES = sizeof cases / sizeof cases[0] };

START_TEST(what_was_preempted_is_paid_for_what_was_saved)
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
    } else {
        ck_assert_int_eq(report.verdict, AUDIT_FINDING);
        ck_assert_str_eq(report.table, "results");
        ck_assert_str_eq(report.what, cases[_i].words);
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return EXIT_FAILURE;
    }
    Suite *suite = suite_create("audit of checkpoints");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, what_was_preempted_is_paid_for_what_was_saved, 0, CASES);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
