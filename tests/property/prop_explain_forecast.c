/* A forecast of a bid of any type comes true when the bid comes, where leases may be taken, too. */
#include "base/random.h"
#include "formats/requirement.h"
#include "protocol/message.h"
#include "tests/support/hand_market.h"
#include "tests/support/known_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t suggested, alone; /* over all books: the test must have tested */

static uint32_t started, taken, refused_own, refused_trade, whole_started, left_waiting,
    changed_type;

struct filled { /* of one job, by the last command */
    uint32_t slots;
    int64_t first_micro, dearest_micro; /* -1: nothing */
};

static struct filled filled_of(struct id128 job)
{
    struct filled filled = {.first_micro = -1, .dearest_micro = -1};
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        const struct ledger_record *record = &effect->ledger;
        if (effect->type != EFFECT_LEDGER || record->kind != LEDGER_FILL ||
            !id128_equal(&record->job, &job)) {
            continue;
        }
        filled.first_micro = filled.slots == 0 ? record->price_micro : filled.first_micro;
        filled.dearest_micro =
            record->price_micro > filled.dearest_micro ? record->price_micro : filled.dearest_micro;
        filled.slots += record->slots;
    }
    return filled;
}

static bool is_whole(const struct wish *wish)
{
    return wish->type == EXCHANGE_FOK || wish->type == EXCHANGE_ALL_OR_NONE;
}

static void any_order(struct random *random, struct wish *ret_wish)
{
    any_wish(random, ret_wish);
    ret_wish->clause_count /= 2;
    ret_wish->slots = 1 + ret_wish->slots / 3;
    ret_wish->at_most = ret_wish->slots * (uint32_t)random_below(random, 3);
    ret_wish->cap_micro *= ret_wish->cap_micro < 0 ? 1 : 1 + (int64_t)random_below(random, 2);
    ret_wish->type = random_below(random, 2) == 0
                         ? EXCHANGE_LIMIT
                         : (enum exchange_order_type)random_below(random, EXCHANGE_MARKET + 1);
    const bool is_maker = ret_wish->type == EXCHANGE_LIMIT || ret_wish->type == EXCHANGE_POST_ONLY;
    if (is_maker && ret_wish->cap_micro < 0) {
        ret_wish->type = EXCHANGE_MARKET; /* a maker names its price */
    }
    ret_wish->is_firm_only = random_below(random, 6) == 0;
    if (ret_wish->type == EXCHANGE_ALL_OR_NONE && ret_wish->rate != RATE_NONE) {
        ret_wish->rate = RATE_NONE; /* it is not by value */
        ret_wish->cap_micro = 2 * price;
    }
}

static void check_changed(const struct wish *wish,
                          const struct exchange_smallest_change *smallest_change,
                          struct id128 instead, bool is_filed)
{
    struct wish changed = *wish;
    bool has_cap = wish->cap_micro >= 0;
    for (uint32_t i = 0; i < smallest_change->count; i++) {
        has_cap = has_cap || smallest_change->changes[i].kind == BID_CHANGE_CAP;
        changed_type += smallest_change->changes[i].kind == BID_CHANGE_ORDER;
    }
    changed.slots = smallest_change->slots;
    changed.cap_micro = has_cap ? smallest_change->cap_micro : -1;
    changed.term_ns = smallest_change->term_ns;
    changed.budget_micro = smallest_change->budget_micro;
    changed.type = (enum exchange_order_type)smallest_change->type;
    if (is_filed) {
        cancel_job(CONSUMER, instead);
    }
    const struct id128 id = submit_wish(CONSUMER, &changed, &smallest_change->needs);
    const struct filled filled = filled_of(id);
    char text[1024];
    ck_assert(requirement_text(&smallest_change->needs, text, sizeof text));
    ck_assert_msg(filled.slots > 0, "type %d, %u changes of kind %d..., needs %s, slots %u of %u",
                  (int)wish->type, smallest_change->count, (int)smallest_change->changes[0].kind,
                  text, smallest_change->slots, wish->slots);
    ck_assert_int_eq(is_whole(&changed) ? filled.dearest_micro : filled.first_micro,
                     smallest_change->price_micro);
    ck_assert_uint_ge(filled.slots, smallest_change->fills_slots); /* it may take leases, too */
    suggested++;
    alone += smallest_change->takes;
    bring_back();
}

/* It comes as it was asked about, and what was said of it is so; then all is as it was. */
static void check_foretold(const struct wish *wish, const struct requirement *needs)
{
    static struct exchange_explanation why;
    const struct exchange_need need = {.needs = needs,
                                       .account = CONSUMER,
                                       .subtasks = 4,
                                       .slots = wish->slots,
                                       .at_most = wish->at_most,
                                       .cap_micro = wish->cap_micro,
                                       .limit_ns = wish->limit_ns,
                                       .term_ns = wish->term_ns,
                                       .rate = wish->rate,
                                       .budget_micro = wish->budget_micro,
                                       .holds_nothing = wish->budget_micro == 0,
                                       .type = (uint8_t)wish->type,
                                       .is_firm_only = wish->is_firm_only};
    exchange_explain(market.exchange, &need, &why);
    keep();
    const struct id128 id = submit_wish(CONSUMER, wish, needs);
    const struct exchange_effect *refusal = nth(EFFECT_REJECT, 0);
    const struct filled filled = filled_of(id);
    ck_assert_uint_eq(why.refusal, refusal == NULL ? 0 : refusal->reject.code);
    const int64_t is_at = is_whole(wish) ? filled.dearest_micro : filled.first_micro;
    ck_assert_msg(why.starts_at_micro == is_at, "type %d: it was to start at %lld, and %lld is so",
                  (int)wish->type, (long long)why.starts_at_micro, (long long)is_at);
    bring_back();
    started += filled.slots > 0;
    whole_started += filled.slots > 0 && is_whole(wish);
    taken += why.starts_with_lease;
    refused_own += why.refusal == REJECT_SELF_MATCH;
    refused_trade += why.refusal == REJECT_WOULD_TRADE;
    left_waiting += refusal == NULL && filled.slots == 0;
    if (why.smallest_change.count > 0) {
        check_changed(wish, &why.smallest_change, id, false);
    }
    free(saved);
}

/* It waits: the same for what is there. */
static void check_filed(const struct wish *wish, const struct requirement *needs)
{
    static struct exchange_explanation why;
    const struct id128 id = submit_wish(CONSUMER, wish, needs);
    if (count_of(EFFECT_ACCEPT) == 0 || filled_of(id).slots > 0 || job_row(id).state != JOB_OPEN) {
        return;
    }
    ck_assert(exchange_explain_job(market.exchange, &id, EXCHANGE_ANY_PART, &why));
    ck_assert_int_eq(why.starts_at_micro, -1);
    if (why.smallest_change.count > 0) {
        keep();
        check_changed(wish, &why.smallest_change, id, true);
        free(saved);
    }
    cancel_job(CONSUMER, id);
}

START_TEST(what_is_foretold_comes_true)
{
    printf("seed %d\n", _i);
    struct random random = random_seeded(1000 + (uint64_t)_i);
    suggested = alone = 0;
    started = taken = refused_own = refused_trade = whole_started = left_waiting = changed_type = 0;
    /* Some seeds need more books until something is taken, and something refused. */
    for (int i = 0; i < 2 * BOOKS || ((taken == 0 || refused_trade == 0) && i < 8 * BOOKS); i++) {
        open_market();
        known.has_spot = true;
        any_offers(&random, PROVIDER, 1 + (uint32_t)random_below(&random, 10));
        any_offers(&random, OTHER_PROVIDER, (uint32_t)random_below(&random, 10));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS));
        any_jobs(&random, RIVAL, (uint32_t)random_below(&random, JOBS / 2));
        if (random_below(&random, 2) == 0) {
            any_offers(&random, CONSUMER, 1 + (uint32_t)random_below(&random, 3));
        }
        for (int k = 0; k < JOBS; k++) {
            struct wish wish;
            struct requirement needs;
            any_order(&random, &wish);
            read_needs(&wish, UINT32_MAX, &needs);
            check_foretold(&wish, &needs);
            check_filed(&wish, &needs);
        }
        exchange_destroy(&market.exchange);
        exchange_effects_fini(&market.effects);
    }
    printf("%u start, %u with a lease, %u whole; %u and %u refused, %u wait; %u changes, %u take, "
           "%u of type\n",
           started, taken, whole_started, refused_own, refused_trade, left_waiting, suggested,
           alone, changed_type);
    ck_assert_uint_gt(started, 10);
    ck_assert_uint_gt(taken, 0);
    ck_assert_uint_gt(whole_started, 0);
    ck_assert_uint_gt(refused_own, 0);
    ck_assert_uint_gt(refused_trade, 0);
    ck_assert_uint_gt(left_waiting, 10);
    ck_assert_uint_gt(suggested, 30);
    ck_assert_uint_gt(alone, 0);
    ck_assert_uint_gt(changed_type, 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {what_is_foretold_comes_true};
    return known_market_run("explain: forecast", tests, sizeof tests / sizeof tests[0]);
}
