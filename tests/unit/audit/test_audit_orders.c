/* The audit against a market in which orders were replaced: what nobody signed, and what a place in
 * the queue was kept for without right, is named. */
#include "audit/audit.h"
#include "base/rate.h"
#include "base/sha256.h"
#include "ledger/accounts.h"
#include "protocol/message.h"
#include "tests/support/small_market_story.h"
#include "tests/support/suite.h"

#include <check.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum told {
    TRUE_STORY,
    OTHER_HOLD,
    OTHER_LIMIT,
    OTHER_SLOTS,
    OTHER_ORDER,
    OTHER_PRICE_OF_ASK,
    OTHER_SLOTS_OF_ASK,
    FORMER_PRICE_FILLS, /* the bid lost its place with its limit: the ask is the maker now */
};

#define MORE INT64_C(5000000)

struct story {
    enum told told;
    struct story_job job;
};

/* A job that waits: its bid is above nothing that stands. */
static void submit(struct writer_state *state, struct story *story)
{
    story->job = (struct story_job){.name = "waits",
                                    .owner = state->market->owner,
                                    .account = SMALL_MARKET_OWNER,
                                    .cap_micro = SMALL_MARKET_PRICE / 2};
    story_submit(state, &story->job);
    writer_commit(state);
}

/* Less of the ask, at half its price. */
static void replace_ask(struct writer_state *state, const struct story *story)
{
    struct small_market *market = state->market;
    Bourse__V1__OrderReplace body = BOURSE__V1__ORDER_REPLACE__INIT;
    body.order = writer_data(market->other_ask.bytes, 16);
    body.has_slots = true;
    body.slots = 1;
    body.has_price_micro = true;
    body.price_micro = SMALL_MARKET_PRICE * 3 / 4;
    writer_add_message(state, MESSAGE_ORDER_REPLACE, market->provider, SMALL_MARKET_PROVIDER,
                       &body.base);
    struct ledger_record *record = writer_add_record(state, LEDGER_ASK);
    record->order = market->other_ask;
    record->owner = *identity_key(market->provider);
    record->device = market->other_device;
    record->slots = story->told == OTHER_SLOTS_OF_ASK ? 2 : 1;
    record->price_micro = body.price_micro - (story->told == OTHER_PRICE_OF_ASK);
    writer_commit(state);
}

/* Its budget, its cap and its slots; and what it then gets. */
static void replace_bid(struct writer_state *state, const struct story *story)
{
    struct small_market *market = state->market;
    Bourse__V1__OrderReplace body = BOURSE__V1__ORDER_REPLACE__INIT;
    body.order =
        writer_data(story->told == OTHER_ORDER ? market->job.bytes : story->job.id.bytes, 16);
    body.has_slots = true;
    body.slots = 1;
    body.has_price_micro = true;
    body.price_micro = SMALL_MARKET_PRICE;
    body.has_budget_micro = true;
    body.budget_micro = STORY_BUDGET + MORE;
    writer_add_message(state, MESSAGE_ORDER_REPLACE, market->owner, SMALL_MARKET_OWNER, &body.base);
    story_hold(state, &story->job, MORE - (story->told == OTHER_HOLD));
    story_bid(state, &story->job, story->told == OTHER_SLOTS ? 2 : 1,
              SMALL_MARKET_PRICE - (story->told == OTHER_LIMIT));
    story_fill(state, &story->job, 2, 1,
               story->told == FORMER_PRICE_FILLS ? SMALL_MARKET_PRICE : SMALL_MARKET_PRICE * 3 / 4);
    writer_commit(state);
}

static void tell(struct writer_state *state, void *context)
{
    struct story *story = context;
    submit(state, story);
    replace_ask(state, story);
    replace_bid(state, story);
}

static void audit_told(enum told told, struct audit_report *ret_report)
{
    struct small_market market;
    struct story story = {.told = told};
    small_market_create_more(&market, NULL, tell, &story);
    audit_run(market.folder, ret_report);
    small_market_destroy(&market);
}

START_TEST(orders_that_were_replaced_as_signed_are_ok)
{
    struct audit_report report;
    audit_told(TRUE_STORY, &report);
    ck_assert_msg(report.verdict == AUDIT_OK, "%s %lu: %s (%s, %s)", report.table,
                  (unsigned long)report.entry, report.what, report.expected, report.found);
    ck_assert_int_eq(report.held_micro, STORY_BUDGET + MORE);
}
END_TEST

static const struct {
    enum told told;
    const char *table, *words;
} lies[] = {
    {OTHER_HOLD, "transfers", "the budget becomes the one that was signed"},
    {OTHER_LIMIT, "bids", "the bid's limit is the cap that was signed"},
    {OTHER_SLOTS, "bids", "the bid's slots are those that were signed"},
    {OTHER_ORDER, "transfers", "the raised hold is of the job that was signed"},
    {OTHER_PRICE_OF_ASK, "asks", "the ask's price is the one that was signed"},
    {OTHER_SLOTS_OF_ASK, "asks", "the ask's slots are those that were signed"},
    {FORMER_PRICE_FILLS, "fills", "the fill has the maker's price"},
};
enum { LIES = sizeof lies / sizeof lies[0] };

/* ---- a bid by value */

/* The device says what it does; a job that values that work takes its ask, which was there
 * first. */
static void tell_by_value(struct writer_state *state, void *context)
{
    const int64_t *value_micro = context;
    struct small_market *market = state->market;
    Bourse__V1__Attribute rate = BOURSE__V1__ATTRIBUTE__INIT;
    Bourse__V1__Attribute *attributes = &rate;
    rate.name = "bf16";
    rate.has_number = true;
    rate.number = RATE_UNIT / 2;
    Bourse__V1__Device device = BOURSE__V1__DEVICE__INIT;
    Bourse__V1__Device *devices = &device;
    device.device = writer_data(market->other_device.bytes, 16);
    device.instrument = "cpu.x86_64.avx2";
    device.slots = 2;
    device.n_attributes = 1;
    device.attributes = &attributes;
    Bourse__V1__Advertise advertise = BOURSE__V1__ADVERTISE__INIT;
    advertise.n_devices = 1;
    advertise.devices = &devices;
    writer_add_message(state, MESSAGE_ADVERTISE, market->provider, SMALL_MARKET_PROVIDER,
                       &advertise.base);
    writer_commit(state);

    struct story_job job = {.name = "values",
                            .owner = market->owner,
                            .account = SMALL_MARKET_OWNER,
                            .cap_micro = *value_micro,
                            .rate = RATE_BF16};
    story_submit(state, &job);
    story_fill(state, &job, 2, 1, SMALL_MARKET_PRICE);
    writer_commit(state);
}

START_TEST(a_fill_is_within_what_the_work_of_the_device_is_worth)
{
    struct audit_report report;
    struct small_market market;
    int64_t value_micro = 2 * SMALL_MARKET_PRICE - _i; /* on half a unit of it */
    small_market_create_more(&market, NULL, tell_by_value, &value_micro);
    audit_run(market.folder, &report);
    small_market_destroy(&market);
    if (_i == 0) {
        ck_assert_msg(report.verdict == AUDIT_OK, "%s: %s (%s, %s)", report.table, report.what,
                      report.expected, report.found);
    } else {
        ck_assert_int_eq(report.verdict, AUDIT_FINDING);
        ck_assert_str_eq(report.table, "fills");
        ck_assert_str_eq(report.what, "broken rule: the fill's price is within the bid's limit");
    }
}
END_TEST

/* ---- a lease that is taken */

enum taking {
    TAKEN_FAIRLY,
    TAKEN_FOR_LESS,
    TAKEN_FOR_MORE,
    TAKEN_AT_ITS_LIMIT,
    TAKEN_TOO_SOON,
    TAKEN_FROM_ITSELF,
    TAKEN_AS_IF_FREE, /* at the price of the ask, which nobody may take it for */
    TAKINGS
};
enum { RIVAL = 5 };

static const struct identity *rival;

static void add_rival(struct writer_state *state)
{
    static const uint8_t token[16] = {9, 9};
    struct hash32 token_hash = sha256_of(token, sizeof token);
    Bourse__V1__InviteCreate create = BOURSE__V1__INVITE_CREATE__INIT;
    create.token_hash = writer_data(token_hash.bytes, 32);
    create.roles = ROLE_CONSUMER;
    create.credits_micro = 2 * STORY_BUDGET;
    create.expires_ms = state->now_ns / 1000000 + 3600000;
    writer_add_message(state, MESSAGE_INVITE_CREATE, state->market->owner, SMALL_MARKET_OWNER,
                       &create.base);
    Bourse__V1__Join join = BOURSE__V1__JOIN__INIT;
    join.account = writer_data(identity_key(rival)->bytes, 32);
    join.token = writer_data(token, sizeof token);
    writer_add_message(state, MESSAGE_JOIN, rival, UINT32_MAX, &join.base);
    writer_add_account(state, RIVAL, rival, ROLE_CONSUMER, "");
    struct ledger_record *record = writer_add_record(state, LEDGER_TRANSFER);
    record->owner = *identity_key(rival);
    record->debit = ACCOUNT_MINT;
    record->credit = RIVAL;
    record->amount_micro = create.credits_micro;
    writer_commit(state);
}

/* Places an ask that takes the place of the one that stands for that device. Nothing is
 * committed. */
static void ask_interruptibly(struct writer_state *state, int64_t minimum_run_ms)
{
    struct small_market *market = state->market;
    Bourse__V1__AskPlace place = BOURSE__V1__ASK_PLACE__INIT;
    place.device = writer_data(market->other_device.bytes, 16);
    place.slots = 2;
    place.price_micro = SMALL_MARKET_PRICE / 2;
    place.has_interruptible = place.interruptible = true;
    place.has_notice_ms = place.has_minimum_run_ms = true;
    place.notice_ms = 1000;
    place.minimum_run_ms = minimum_run_ms;
    const struct id128 former = market->other_ask;
    market->other_ask = writer_add_message(state, MESSAGE_ASK_PLACE, market->provider,
                                           SMALL_MARKET_PROVIDER, &place.base);
    struct ledger_record *record = writer_add_record(state, LEDGER_CANCEL);
    record->order = former;
    record->status = 3; /* replaced */
    record = writer_add_record(state, LEDGER_ASK);
    record->order = market->other_ask;
    record->owner = *identity_key(market->provider);
    record->device = market->other_device;
    record->slots = 2;
    record->price_micro = place.price_micro;
}

/* A job that gets both slots of it, at that price. */
static void submit_and_fill(struct writer_state *state, struct story_job *job, uint64_t lease,
                            int64_t price_micro)
{
    story_submit(state, job);
    story_fill(state, job, lease, 2, price_micro);
    writer_commit(state);
}

/* The holder gives the market's price and pays what was asked. The taker pays that price and the
 * increment. The former holder is done with its work after the lease was taken. */
static void tell_of_taking(struct writer_state *state, void *context)
{
    enum { INCREMENT = 1000 };
    static const int64_t wrong[TAKINGS] = {
        [TAKEN_FOR_LESS] = -1,
        [TAKEN_FOR_MORE] = 1,
        [TAKEN_AT_ITS_LIMIT] = SMALL_MARKET_PRICE - INCREMENT,
        [TAKEN_AS_IF_FREE] = -SMALL_MARKET_PRICE / 2 - INCREMENT,
    };
    const enum taking *taking = context;
    const bool is_own = *taking == TAKEN_FROM_ITSELF;
    struct story_job taker = {
        .name = "takes", .owner = rival, .account = RIVAL, .cap_micro = 2 * SMALL_MARKET_PRICE};
    struct story_job holder = {.name = "holds",
                               .owner = is_own ? rival : state->market->owner,
                               .account = is_own ? (uint32_t)RIVAL : (uint32_t)SMALL_MARKET_OWNER,
                               .cap_micro = SMALL_MARKET_PRICE};
    add_rival(state);
    ask_interruptibly(state, *taking == TAKEN_TOO_SOON ? 3600000 : 0);
    writer_commit(state);
    submit_and_fill(state, &holder, 2, SMALL_MARKET_PRICE / 2);
    submit_and_fill(state, &taker, 3, SMALL_MARKET_PRICE + INCREMENT + wrong[*taking]);
    const struct story_result done = {.job = &holder,
                                      .lease = 2,
                                      .attempt = 1,
                                      .outcome = OUTCOME_OK,
                                      .status = ATTEMPT_ACCEPTED,
                                      .price_micro = SMALL_MARKET_PRICE / 2};
    story_settle(state, &done);
}

START_TEST(a_lease_is_taken_at_its_rank_and_the_increment)
{
    struct audit_report report;
    struct small_market market;
    enum taking taking = (enum taking)_i;
    struct identity *joins = writer_identity(9);
    rival = joins;
    small_market_create_more(&market, NULL, tell_of_taking, &taking);
    audit_run(market.folder, &report);
    small_market_destroy(&market);
    identity_destroy(&joins);
    if (taking == TAKEN_FAIRLY) {
        ck_assert_msg(report.verdict == AUDIT_OK, "%s: %s (%s, %s)", report.table, report.what,
                      report.expected, report.found);
        return;
    }
    ck_assert_msg(report.verdict == AUDIT_FINDING, "not found: %d", _i);
    if (taking == TAKEN_AS_IF_FREE) {
        ck_assert_str_eq(report.table, "results");
        ck_assert_str_eq(report.what,
                         "broken rule: no other lease had the lease's slots meanwhile");
        return;
    }
    ck_assert_str_eq(report.table, "fills");
    ck_assert_str_eq(report.what, "broken rule: the fill has the maker's price");
}
END_TEST

START_TEST(what_nobody_signed_is_named)
{
    struct audit_report report;
    audit_told(lies[_i].told, &report);
    ck_assert_msg(report.verdict == AUDIT_FINDING, "lie %d not found (%s)", _i, report.what);
    ck_assert_msg(strcmp(report.table, lies[_i].table) == 0 &&
                      strstr(report.what, lies[_i].words) != NULL,
                  "lie %d: %s: %s", _i, report.table, report.what);
}
END_TEST

/* ---- the clearing price */

/* A job without an order type waits, and an ask comes to half its limit. */
static const struct clearing_tale {
    uint32_t rules;
    bool has_rival;  /* another owner's job waits, too, with a cap of three quarters */
    int64_t percent; /* price of the fill, of the market's */
    bool is_right;
} clearing_tales[] = {
    {20, false, 50, true},   /* the ask's price: nobody else is left unfilled */
    {20, false, 100, false}, /* the own limit, as before rules 20 */
    {20, true, 75, true},    /* the limit that the other owner named */
    {20, true, 80, false},   /* a limit that nobody named */
    {20, true, 40, false},   /* less than the ask's */
    {19, false, 100, true},  /* before rules 20 the job that waited was the maker */
    {19, false, 50, false},
};
enum { CLEARING_TALES = sizeof clearing_tales / sizeof clearing_tales[0] };

static void tell_of_clearing(struct writer_state *state, void *context)
{
    const struct clearing_tale *tale = context;
    struct story_job waits = {.name = "waits",
                              .owner = state->market->owner,
                              .account = SMALL_MARKET_OWNER,
                              .cap_micro = SMALL_MARKET_PRICE};
    struct story_job other = {.name = "is left",
                              .owner = rival,
                              .account = RIVAL,
                              .cap_micro = SMALL_MARKET_PRICE * 3 / 4};
    add_rival(state);
    story_rules(state, tale->rules);
    story_submit(state, &waits);
    writer_commit(state);
    if (tale->has_rival) {
        story_submit(state, &other);
        writer_commit(state);
    }
    ask_interruptibly(state, 0);
    story_fill(state, &waits, 2, 2, SMALL_MARKET_PRICE * tale->percent / 100);
    writer_commit(state);
}

START_TEST(since_rules_20_nobody_pays_more_than_it_takes)
{
    struct audit_report report;
    struct small_market market;
    struct clearing_tale tale = clearing_tales[_i];
    struct identity *joins = writer_identity(9);
    rival = joins;
    small_market_create_more(&market, NULL, tell_of_clearing, &tale);
    audit_run(market.folder, &report);
    small_market_destroy(&market);
    identity_destroy(&joins);
    ck_assert_msg((report.verdict == AUDIT_OK) == tale.is_right, "%s: %s (%s, %s)", report.table,
                  report.what, report.expected, report.found);
    if (!tale.is_right) {
        ck_assert_str_eq(report.table, "fills");
        ck_assert_str_eq(report.what, tale.rules < 20
                                          ? "broken rule: the fill has the maker's price"
                                          : "broken rule: the fill has the ask's price, or a limit "
                                            "that another owner named");
    }
}
END_TEST

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
    Suite *suite = suite_create("audit of replaced orders");
    TCase *tests = tcase_create("all");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, orders_that_were_replaced_as_signed_are_ok);
    tcase_add_loop_test(tests, what_nobody_signed_is_named, 0, LIES);
    tcase_add_loop_test(tests, a_fill_is_within_what_the_work_of_the_device_is_worth, 0, 2);
    tcase_add_loop_test(tests, a_lease_is_taken_at_its_rank_and_the_increment, 0, TAKINGS);
    tcase_add_loop_test(tests, since_rules_20_nobody_pays_more_than_it_takes, 0, CLEARING_TALES);
    suite_add_tcase(suite, tests);
    return suite_run(suite);
}
