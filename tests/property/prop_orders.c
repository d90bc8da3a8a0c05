/* Orders of all types against a slow, obvious matcher (tests/support/slow_market.h). Random scripts
 * of asks and jobs, of several terms, at a cap and at market price, while bands come and go, some
 * good for a while, for some accounts, at some minutes, for so much a day, or with leases that may
 * be taken; reduced and replaced ones, and cancels, from a printed seed. After every command the
 * fills and what stands are the same, with its limits and slots, and nothing that rests could
 * trade. Whose turn it is, and at which price, depends on every fill before, so the slow matcher
 * looks at each fill in its turn. */
#include "base/checked.h"
#include "base/random.h"
#include "exchange/exchange.h"
#include "protocol/reject.h"
#include "tests/support/orders_pair.h"
#include "tests/support/slow_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum {
    SCRIPTS_A_SEED = 500,
    SEEDS = 21, /* 10,500 scripts */
    TURN_SEEDS = 4,
    GOOD_SECONDS_MOST = 8,
    LONG_PAUSE_SECONDS = 60,
    TERM_MOST = 3, /* half hours */
};
enum { START_MIN = 22 * 60 + 13 };      /* start_ns, as a minute of the day */
static const int64_t unit_micro = 1000; /* prices are small multiples, but those of the market */

static struct requirement needs_of(uint32_t kind)
{
    struct requirement needs;
    memset(&needs, 0, sizeof needs);
    if (kind < SLOW_KINDS) {
        needs.count = 1;
        needs.nodes[0].op = REQUIREMENT_EQ;
        needs.nodes[0].attribute = kind_of(kind);
    }
    return needs;
}

static int64_t time_from_now(struct pair *pair)
{
    return pair->now_ns + (int64_t)(1 + draw(pair, GOOD_SECONDS_MOST)) * NS_PER_S;
}

static enum exchange_order_type draw_job_type(struct pair *pair)
{
    static const enum exchange_order_type types[] = {
        EXCHANGE_MARKET,      EXCHANGE_MARKET,     EXCHANGE_MARKET, EXCHANGE_LIMIT,
        EXCHANGE_LIMIT,       EXCHANGE_IOC,        EXCHANGE_FOK,    EXCHANGE_POST_ONLY,
        EXCHANGE_ALL_OR_NONE, EXCHANGE_ALL_OR_NONE};
    const enum exchange_order_type type = types[draw(pair, sizeof types / sizeof types[0])];
    const bool is_whole = type == EXCHANGE_FOK || type == EXCHANGE_ALL_OR_NONE;
    return is_whole && !has_wholes(pair) ? EXCHANGE_MARKET : type;
}

static struct slow_part draw_part(struct pair *pair, bool is_valued)
{
    struct slow_part part = {.kind = draw(pair, SLOW_KINDS + 1),
                             .width = 1 + draw(pair, 3),
                             .is_valued = is_valued,
                             .term = draw(pair, 3) == 0 ? 1 + draw(pair, TERM_MOST) : 1,
                             .expect_h = draw(pair, 3) * (1 + draw(pair, 30))};
    part.wanted = part.at_most = (1 + draw(pair, 5)) * part.width;
    part.cap = !is_valued && draw(pair, 4) == 0 ? -1 : draw(pair, 8) * unit_micro;
    return part;
}

static struct slow_job draw_job(struct pair *pair)
{
    struct slow_job job = {.is_open = true,
                           .part_count = 1 + (draw(pair, 3) == 0),
                           .type = draw_job_type(pair),
                           .is_firm_only = draw(pair, 4) == 0};
    const bool is_valued =
        pair->has_values && draw(pair, 2) == 0; /* each: or they arrive by kind */
    job.budget = draw(pair, 4) == 0 ? draw(pair, 31) * unit_micro : 10000 * unit_micro;
    job.free_micro = job.budget;
    for (uint32_t i = 0; i < job.part_count; i++) {
        job.parts[i] = draw_part(pair, is_valued);
        pair->at_market += job.parts[i].cap < 0;
        pair->longer += job.parts[i].term > 1;
    }
    pair->firm_only += job.is_firm_only;
    slow_set_limits(&pair->slow, &job);
    return job;
}

static struct exchange_part given_part(const struct slow_part *part,
                                       const struct requirement *needs)
{
    return (struct exchange_part){.subtasks = SLOW_SUBTASKS,
                                  .needs = needs,
                                  .slots = part->width,
                                  .at_most = part->wanted,
                                  .cap_micro = part->cap,
                                  .rate = part->is_valued ? RATE_BF16 : RATE_NONE,
                                  .limit_ns = NS_PER_S,
                                  .term_ns = part->term * SLOW_HALF_NS,
                                  .expect_ns = part->expect_h * NS_PER_HOUR};
}

static void apply_job(struct pair *pair, const struct slow_job *job,
                      struct exchange_command *command, int64_t good_till_ns)
{
    struct requirement needs[SLOW_PARTS];
    struct exchange_part parts[SLOW_PARTS];
    for (uint32_t i = 0; i < job->part_count; i++) {
        needs[i] = needs_of(job->parts[i].kind);
        parts[i] = given_part(&job->parts[i], &needs[i]);
    }
    command->submit = (struct exchange_submit){.name = "job",
                                               .budget_micro = job->budget,
                                               .verify = EXCHANGE_VERIFY_NONE,
                                               .subtasks = job->part_count * SLOW_SUBTASKS,
                                               .needs = parts[0].needs,
                                               .slots = parts[0].slots,
                                               .at_most = parts[0].at_most,
                                               .cap_micro = parts[0].cap_micro,
                                               .rate = parts[0].rate,
                                               .limit_ns = parts[0].limit_ns,
                                               .term_ns = parts[0].term_ns,
                                               .expect_ns = parts[0].expect_ns,
                                               .parts = &parts[1],
                                               .part_count = job->part_count - 1,
                                               .good_till_ns = good_till_ns,
                                               .has_interruptions = job->is_firm_only,
                                               .type = job->type};
    apply(pair, command);
}

static void submit(struct pair *pair)
{
    struct exchange_command made = command_of(pair, EXCHANGE_SUBMIT, FIRST + draw(pair, PEOPLE));
    struct slow_job *job = &pair->slow.jobs[pair->slow.job_count];
    const int64_t good_till_ns = draw(pair, 4) == 0 ? time_from_now(pair) : 0;
    *job = draw_job(pair);
    job->id = made.id;
    job->owner = made.account;
    pair->job_good_till_ns[pair->slow.job_count] = good_till_ns;
    apply_job(pair, job, &made, good_till_ns);
    const uint32_t code = slow_admit(&pair->slow, job);
    ck_assert_uint_eq(code_of(pair), code);
    take_fills(pair, "a job");
    if (code == 0 && job->type == EXCHANGE_FOK && pair->slow.fill_count == 0) {
        slow_must(!slow_buy_whole(&pair->slow, job),
                  "a job that could be filled whole is cancelled");
        job->is_open = false;
    }
    slow_stand_down(&pair->slow, job);
}

/* Each condition by itself, and most asks without any. */
static void draw_conditions(struct pair *pair, struct slow_ask *ask)
{
    ask->is_interruptible = draw(pair, 4) == 0;
    ask->to = 0;
    for (uint32_t i = 0; draw(pair, 6) == 0 && i < 2; i++) {
        ask->to |= 1u << (FIRST + draw(pair, PEOPLE));
    }
    ask->from_min = ask->till_min = 0;
    if (draw(pair, 3) == 0) {
        ask->from_min = START_MIN + draw(pair, 7);
        ask->till_min = ask->from_min + 1 + draw(pair, 3);
    }
    ask->max_term = draw(pair, 3) == 0 ? 1 + draw(pair, TERM_MOST) : 0;
    ask->daily = 0;
    if (draw(pair, 5) == 0) {
        ask->max_term = ask->max_term == 0 ? 2 : ask->max_term; /* an hour, where none is said */
        ask->daily = ask->max_term + draw(pair, 8);
    }
    slow_look_at_hours(ask, pair->now_ns);
    pair->reserved += ask->to != 0;
    pair->of_day += ask->daily > 0;
}

static size_t accounts_of(const struct slow_ask *ask, struct exchange_ask_account to[PEOPLE])
{
    size_t count = 0;
    memset(to, 0, PEOPLE * sizeof *to);
    for (uint32_t i = 0; i < PEOPLE; i++) {
        if ((ask->to >> (FIRST + i) & 1) != 0) {
            to[count].has_key = true;
            to[count++].key.bytes[0] = (uint8_t)(i + 1);
        }
    }
    return count;
}

static void apply_place(struct pair *pair, uint32_t device, const struct slow_ask *ask,
                        struct exchange_command *command, int64_t good_till_ns)
{
    /* Nobody takes a lease from its holder before it ends. */
    const struct exchange_terms interruptible = {.is_interruptible = true,
                                                 .minimum_run_ns = EXCHANGE_RUN_MOST_NS};
    const bool is_max_said = ask->daily == 0 || ask->max_term != 2 || ask->daily < 2;
    struct exchange_ask_account to[PEOPLE];
    command->ask =
        (struct exchange_ask){.device = device_id(device),
                              .slots = ask->slots,
                              .price_micro = ask->price,
                              .type = ask->type,
                              .to = to,
                              .to_count = accounts_of(ask, to),
                              .max_term_ns = is_max_said ? ask->max_term * SLOW_HALF_NS : 0,
                              .daily_ns = ask->daily * SLOW_HALF_NS,
                              .good_till_ns = good_till_ns};
    if (ask->is_interruptible) {
        command->ask.terms = interruptible;
    }
    if (ask->from_min != ask->till_min) {
        command->ask.hours.count = 1;
        command->ask.hours.windows[0] = (struct hours_window){.days = HOURS_ALL_DAYS,
                                                              .from_min = (uint16_t)ask->from_min,
                                                              .till_min = (uint16_t)ask->till_min};
    }
    apply(pair, command);
}

static void place(struct pair *pair)
{
    static const enum exchange_order_type types[] = {EXCHANGE_LIMIT, EXCHANGE_LIMIT, EXCHANGE_LIMIT,
                                                     EXCHANGE_IOC, EXCHANGE_POST_ONLY};
    const uint32_t device = draw(pair, SLOW_DEVICES);
    struct slow_ask given = pair->slow.asks[device];
    struct exchange_command made = command_of(pair, EXCHANGE_ASK, given.owner);
    const int64_t good_till_ns = draw(pair, 3) == 0 ? time_from_now(pair) : 0;
    given.stands = true;
    given.slots = 1 + draw(pair, 6);
    given.price = (1 + draw(pair, 5)) * unit_micro;
    given.price = pair->has_gifts && draw(pair, 2) == 0 ? 0 : given.price;
    given.type = types[draw(pair, sizeof types / sizeof types[0])];
    given.order = made.id;
    draw_conditions(pair, &given);
    apply_place(pair, device, &given, &made, good_till_ns);
    if (code_of(pair) == 0) {
        pair->good_till_ns[device] = good_till_ns;
    }
    const uint32_t code = slow_put(&pair->slow, device, &given);
    ck_assert_uint_eq(code_of(pair), code);
    take_fills(pair, "an ask");
    pair->slow.asks[device].stands &= code != 0 || given.type != EXCHANGE_IOC;
}

static bool look_at_hours(struct pair *pair)
{
    bool opens = false;
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        struct slow_ask *ask = &pair->slow.asks[i];
        const bool was_open = ask->is_open;
        slow_look_at_hours(ask, pair->now_ns);
        opens = opens || (ask->stands && ask->is_open && !was_open);
    }
    return opens;
}

/* Asks and bids whose time is over are gone; nothing is filled but by asks whose hours begin. */
static void expire(struct pair *pair)
{
    struct exchange_command tick = command_of(pair, EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(pair, &tick);
    for (uint32_t i = 0; i < SLOW_DEVICES; i++) {
        struct slow_ask *ask = &pair->slow.asks[i];
        if (ask->stands && pair->good_till_ns[i] != 0 && pair->good_till_ns[i] <= pair->now_ns) {
            ask->stands = false;
            pair->expired++;
        }
    }
    for (uint32_t i = 0; i < pair->slow.job_count; i++) {
        struct slow_job *job = &pair->slow.jobs[i];
        const int64_t till_ns = pair->job_good_till_ns[i];
        if (job->is_open && !job->is_over && till_ns != 0 && till_ns <= pair->now_ns) {
            slow_expire(&pair->slow, job);
            pair->ended++;
        }
    }
    const uint64_t filled = pair->filled;
    if (look_at_hours(pair)) {
        take_fills(pair, "hours that begin");
        pair->opened++;
        pair->filled_opening += pair->filled - filled;
    } else {
        expect_no_fill(pair, "time that passes");
    }
}

/* An ask at another price, or of more slots, arrives anew; with fewer, or as it is, it keeps its
 * place. Refused, it stays as it was. */
static void replace(struct pair *pair)
{
    const uint32_t device = draw(pair, SLOW_DEVICES);
    struct slow_ask given = pair->slow.asks[device];
    if (!given.stands) {
        return;
    }
    struct exchange_command made = command_of(pair, EXCHANGE_REPLACE, given.owner);
    made.replace = (struct exchange_replace){.order = given.order};
    if (draw(pair, 2) == 0) {
        made.replace.has_slots = true;
        given.slots = made.replace.slots = 1 + draw(pair, 6);
    } else {
        made.replace.has_price = true;
        given.price = made.replace.price_micro = (1 + draw(pair, 5)) * unit_micro;
    }
    const struct slow_ask before = pair->slow.asks[device];
    const bool keeps_place = given.price == before.price && given.slots <= before.slots;
    apply(pair, &made);
    if (keeps_place) {
        ck_assert_uint_eq(code_of(pair), 0);
        pair->slow.asks[device].slots = given.slots;
        pair->reduced += given.slots < before.slots;
        expect_no_fill(pair, "an ask of fewer slots");
        return;
    }
    pair->slow.asks[device].stands = false; /* it is not in its own way */
    const uint32_t code = slow_put(&pair->slow, device, &given);
    if (code != 0) {
        pair->slow.asks[device] = before;
    }
    ck_assert_uint_eq(code_of(pair), code);
    pair->replaced += code == 0;
    take_fills(pair, "an ask on other terms");
}

static struct slow_terms draw_terms(struct pair *pair, const struct slow_job *job)
{
    struct slow_terms terms = {.part = SLOW_PARTS, .cap = -1};
    if (job->part_count > 1 && draw(pair, 3) > 0) {
        terms.part = draw(pair, 2);
    }
    const uint32_t dice = draw(pair, 5);
    if (dice < 2 && job->type != EXCHANGE_ALL_OR_NONE) {
        terms.at_most = (1 + draw(pair, 5)) * 6; /* of any width */
    } else if (dice < 4) {
        terms.cap = draw(pair, 8) * unit_micro;
    } else {
        terms.budget = job->budget + draw(pair, 20) * unit_micro;
    }
    return terms;
}

/* A bid at another limit, or for more slots, arrives anew; for fewer it keeps its place. */
static void rebid(struct pair *pair)
{
    struct slow_market *slow = &pair->slow;
    struct slow_job *job = &slow->jobs[draw(pair, slow->job_count + 1)];
    if (job == &slow->jobs[slow->job_count] || !job->is_open || !job->parts[0].stands) {
        return;
    }
    const struct slow_terms terms = draw_terms(pair, job);
    struct exchange_command made = command_of(pair, EXCHANGE_REPLACE, job->owner);
    made.replace = (struct exchange_replace){
        .order = job->id,
        .part = terms.part == SLOW_PARTS ? EXCHANGE_ANY_PART : terms.part,
        .has_slots = terms.at_most > 0,
        .slots = terms.at_most,
        .has_price = terms.cap >= 0,
        .price_micro = terms.cap >= 0 ? terms.cap : 0,
        .rate = terms.cap >= 0 && job->parts[0].is_valued ? RATE_BF16 : RATE_NONE,
        .has_budget = terms.budget > 0,
        .budget_micro = terms.budget};
    apply(pair, &made);
    const uint32_t code = slow_rebid(slow, job, &terms);
    ck_assert_uint_eq(code_of(pair), code);
    pair->rebid += code == 0;
    if (code == 0) {
        take_fills(pair, "a bid on other terms");
    } else {
        expect_no_fill(pair, "a bid on other terms, refused");
    }
}

static void withdraw(struct pair *pair)
{
    struct slow_ask *ask = &pair->slow.asks[draw(pair, SLOW_DEVICES)];
    if (!ask->stands) {
        return;
    }
    struct exchange_command made = command_of(pair, EXCHANGE_CANCEL_ORDER, ask->owner);
    made.cancel_order.order = ask->order;
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), 0);
    ask->stands = false;
    expect_no_fill(pair, "a withdrawn ask");
}

/* Nobody answers for what its leases run: they end when it has waited for that, all at once. */
static void cancel(struct pair *pair)
{
    struct slow_market *slow = &pair->slow;
    struct slow_job *job = &slow->jobs[draw(pair, slow->job_count + 1)];
    if (job == &slow->jobs[slow->job_count] || !job->is_open || job->is_over) {
        return;
    }
    pair->now_ns += GOOD_SECONDS_MOST * NS_PER_S; /* so that no ask's time is over while it waits */
    expire(pair);
    if (!job->is_open || job->is_over) {
        return;
    }
    struct exchange_command made = command_of(pair, EXCHANGE_CANCEL_JOB, job->owner);
    made.cancel_job.job = job->id;
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), 0);
    expect_no_fill(pair, "a cancelled job");
    pair->now_ns += 30 * NS_PER_S;
    struct exchange_command tick = command_of(pair, EXCHANGE_TICK, EXCHANGE_NO_ACCOUNT);
    apply(pair, &tick);
    slow_end(slow, job);
    (void)look_at_hours(pair);
    take_fills(pair, "the end of a job");
}

/* Narrow ones and wide ones in turns: what rests outside of one stays. */
static void set_bands(struct pair *pair)
{
    struct exchange_command made = command_of(pair, EXCHANGE_BANDS, FIRST);
    const int64_t least = draw(pair, 4) > 0 ? 0 : draw(pair, 4) * unit_micro;
    const int64_t most = draw(pair, 3) > 0 ? band_micro : (3 + draw(pair, 5)) * unit_micro;
    const int64_t notional = draw(pair, 4) > 0 ? 0 : (10 + draw(pair, 60)) * unit_micro;
    made.bands = (struct exchange_bands){.has_least = true,
                                         .has_most = true,
                                         .has_notional = true,
                                         .least_micro = least,
                                         .most_micro = most,
                                         .notional_micro = notional};
    apply(pair, &made);
    ck_assert_uint_eq(code_of(pair), 0);
    slow_set_bands(&pair->slow, least, most, notional);
    take_fills(pair, "other bands");
}

static void run_script(struct pair *pair)
{
    for (int i = 0; i < COMMANDS; i++) {
        const uint32_t dice = draw(pair, 19);
        pair->now_ns += (draw(pair, 12) == 0 ? LONG_PAUSE_SECONDS : 1) *
                        NS_PER_S; /* all within the first term */
        expire(pair);
        if (dice < 7) {
            submit(pair);
        } else if (dice < 12) {
            place(pair);
        } else if (dice < 14 && has_wholes(pair)) {
            replace(pair);
        } else if (dice < 14) {
            place(pair);
        } else if (dice < 16) {
            rebid(pair);
        } else if (dice < 17) {
            withdraw(pair);
        } else if (dice < 18) {
            set_bands(pair);
        } else {
            cancel(pair);
        }
        pair->refused += code_of(pair) == REJECT_WOULD_TRADE;
        pair->beyond += code_of(pair) == REJECT_PRICE;
        pair->too_much += code_of(pair) == REJECT_NOTIONAL;
        check_rest(pair);
        check_state(pair);
    }
}

START_TEST(all_types_of_orders_fill_as_the_slow_matcher_says)
{
    static struct pair pair;
    uint64_t filled = 0;
    uint64_t refused = 0;
    uint64_t whole = 0;
    uint64_t reduced = 0;
    uint64_t replaced = 0;
    uint64_t expired = 0;
    uint64_t rebid = 0;
    uint64_t ended = 0;
    uint64_t at_market = 0;
    uint64_t opened = 0;
    uint64_t filled_opening = 0;
    uint64_t reserved = 0;
    uint64_t firm_only = 0;
    uint64_t of_day = 0;
    uint64_t longer = 0;
    uint64_t beyond = 0;
    uint64_t too_much = 0;
    for (uint64_t i = 0; i < SCRIPTS_A_SEED; i++) {
        const uint64_t seed = (uint64_t)_i * SCRIPTS_A_SEED + i;
        open_pair(&pair, seed);
        run_script(&pair);
        if (i % 16 == 0) {
            reload(&pair);
            run_script(&pair);
        }
        filled += pair.filled;
        refused += pair.refused;
        whole += pair.whole;
        reduced += pair.reduced;
        replaced += pair.replaced;
        expired += pair.expired;
        rebid += pair.rebid;
        ended += pair.ended;
        at_market += pair.at_market;
        opened += pair.opened;
        filled_opening += pair.filled_opening;
        reserved += pair.reserved;
        firm_only += pair.firm_only;
        of_day += pair.of_day;
        longer += pair.longer;
        beyond += pair.beyond;
        too_much += pair.too_much;
        close_pair(&pair);
    }
    ck_assert_uint_gt(filled, 2 * SCRIPTS_A_SEED);
    ck_assert_uint_gt(refused, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(whole, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(reduced, SCRIPTS_A_SEED / 25);
    ck_assert_uint_gt(replaced, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(expired, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(rebid, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(ended, SCRIPTS_A_SEED / 10);
    ck_assert_uint_gt(at_market, SCRIPTS_A_SEED);
    ck_assert_uint_gt(opened, SCRIPTS_A_SEED / 25);
    ck_assert_uint_gt(filled_opening, SCRIPTS_A_SEED / 25);
    ck_assert_uint_gt(reserved, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(firm_only, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(of_day, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(longer, SCRIPTS_A_SEED / 2);
    ck_assert_uint_gt(beyond, SCRIPTS_A_SEED / 5);
    ck_assert_uint_gt(too_much, SCRIPTS_A_SEED / 10);
}
END_TEST

START_TEST(what_is_given_away_goes_to_who_has_least_of_it)
{
    static struct pair pair;
    uint64_t filled = 0;
    uint64_t given = 0;
    for (uint64_t i = 0; i < SCRIPTS_A_SEED; i++) {
        open_pair(&pair, (uint64_t)_i * SCRIPTS_A_SEED + i);
        pair.has_gifts = true;
        run_script(&pair);
        if (i % 16 == 0) {
            reload(&pair);
            run_script(&pair);
        }
        filled += pair.filled;
        given += pair.given;
        close_pair(&pair);
    }
    ck_assert_uint_gt(given, SCRIPTS_A_SEED);
    ck_assert_uint_gt(filled - given, SCRIPTS_A_SEED);
}
END_TEST

START_TEST(bids_by_value_go_by_what_they_give_for_each_device)
{
    static struct pair pair;
    uint64_t filled = 0;
    uint64_t valued = 0;
    for (uint64_t i = 0; i < SCRIPTS_A_SEED; i++) {
        open_pair(&pair, (uint64_t)_i * SCRIPTS_A_SEED + i);
        pair.has_values = true;
        run_script(&pair);
        if (i % 16 == 0) {
            reload(&pair);
            run_script(&pair);
        }
        filled += pair.filled;
        valued += pair.valued;
        close_pair(&pair);
    }
    ck_assert_uint_gt(valued, SCRIPTS_A_SEED);
    ck_assert_uint_gt(filled - valued, SCRIPTS_A_SEED);
}
END_TEST

SUITE("orders of all types", NULL, NULL,
      LOOP(all_types_of_orders_fill_as_the_slow_matcher_says, 0, SEEDS),
      LOOP(what_is_given_away_goes_to_who_has_least_of_it, 0, TURN_SEEDS),
      LOOP(bids_by_value_go_by_what_they_give_for_each_device, 0, TURN_SEEDS))
