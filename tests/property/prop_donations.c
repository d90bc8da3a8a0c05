/* Random scripts around the donation queue, from a printed seed: two accounts that always want more
 * share what is given away, and what each has had is what the ledger says, faded as
 * exchange/market/donations.c writes it. */
#include "base/random.h"
#include "tests/support/hand_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEEDS = 12,
    STEPS = 2500,
    HUNGRY = 2,
    FIRST = 3, /* their accounts */
    DONORS = 3,
    FIRST_DONOR = FIRST + HUNGRY,
    SLOTS_MOST = 4,
    WORKS = 4096
};
#define TERM_NS (20 * NS_PER_S)
#define LIMIT_NS (4 * NS_PER_S)
#define DAY_NS (24 * 3600 * NS_PER_S)
#define LEASE_NS (TERM_NS * SLOTS_MOST) /* slot-time of the largest */

struct out { /* work that is out */
    struct id128 job;
    struct exchange_work work;
    uint32_t donor;
    int64_t since_ns; /* when it began, after what its lane had before it */
};

struct play {
    struct random random;
    struct out outs[WORKS];
    size_t out_count;
    struct id128 job_of_lease[1 << 14];
    int64_t used_ns[HUNGRY], day[HUNGRY]; /* by the ledger */
    int64_t had_ns[HUNGRY];               /* never faded */
    int64_t apart_ns;                     /* the most that they were */
    uint32_t donors;
    bool offers[DONORS];
};

static uint32_t draw(struct play *play, uint32_t bound)
{
    return (uint32_t)random_below(&play->random, bound);
}

/* A day at a time would round otherwise: the rule takes all days that passed at once. */
static int64_t fade(int64_t used_ns, int64_t days)
{
    static const double parts[] = {4294967296, 3890053517, 3523313525, 3191148436,
                                   2890298655, 2617811889, 2371014176};
    if (days >= 63 * 7) {
        return 0;
    }
    int128 left = (int128)used_ns * (int64_t)parts[days % 7];
    for (int i = 0; i < 32; i++) {
        left /= 2;
    }
    for (int64_t i = 0; i < days / 7; i++) {
        left /= 2;
    }
    return (int64_t)left;
}

static void take_record(struct play *play, const struct ledger_record *record)
{
    for (uint32_t i = 0; i < HUNGRY; i++) {
        if (record->kind == LEDGER_RESULT && record->owner.bytes[0] == FIRST + i &&
            record->price_micro == 0 && record->paid_ns > 0 && record->status < 2) {
            int64_t day = market.now_ns / DAY_NS;
            play->used_ns[i] = fade(play->used_ns[i], day - play->day[i]) + record->paid_ns;
            play->day[i] = day;
            play->had_ns[i] += record->paid_ns;
        }
    }
}

static void take_effects(struct play *play)
{
    for (size_t i = 0; i < market.effects.count; i++) {
        const struct exchange_effect *effect = &market.effects.items[i];
        if (effect->type == EFFECT_LEDGER) {
            take_record(play, &effect->ledger);
        } else if (effect->type == EFFECT_LEASE_GRANT) {
            ck_assert_int_eq(effect->grant.price_micro, 0);
            play->job_of_lease[effect->grant.lease % (1 << 14)] = effect->grant.job;
        } else if (effect->type == EFFECT_DISPATCH) {
            ck_assert_uint_lt(play->out_count, WORKS);
            play->outs[play->out_count++] =
                (struct out){play->job_of_lease[effect->work.lease % (1 << 14)], effect->work,
                             effect->account, market.now_ns};
        } else if (effect->type == EFFECT_WITHDRAW || effect->type == EFFECT_LEASE_END) {
            bool whole = effect->type == EFFECT_LEASE_END;
            for (size_t k = 0; k < play->out_count;) {
                const struct out *out = &play->outs[k];
                bool is = out->work.lease == (whole ? effect->lease.lease : effect->work.lease) &&
                          (whole || out->work.index == effect->work.index);
                if (is) {
                    play->outs[k] = play->outs[--play->out_count];
                } else {
                    k++;
                }
            }
        }
    }
}

static void do_it(struct play *play, const struct exchange_command *made)
{
    apply(made);
    take_effects(play);
}

static void give(struct play *play, uint32_t donor, bool gives)
{
    static struct attribute kind = {.name = "kind", .is_text = true, .text = "cpu"};
    struct exchange_device device = {.device = {{(uint8_t)(FIRST_DONOR + donor)}},
                                     .slots = 1 + draw(play, SLOTS_MOST),
                                     .attributes = &kind,
                                     .attribute_count = 1,
                                     .label = "a cpu"};
    struct exchange_command made = command(EXCHANGE_ADVERTISE, FIRST_DONOR + donor);
    made.advertise = (struct exchange_advertise){&device, 1};
    do_it(play, &made);
    play->offers[donor] = gives;
    if (gives) {
        made = command(EXCHANGE_ASK, FIRST_DONOR + donor);
        made.ask = (struct exchange_ask){.device = device.device, .slots = device.slots};
        do_it(play, &made);
        ck_assert_uint_eq(count_of(EFFECT_REJECT), 0);
    }
}

/* Never without work that waits. */
static void feed(struct play *play)
{
    for (uint32_t i = 0; i < HUNGRY; i++) {
        struct exchange_job_row rows[64];
        size_t count = exchange_jobs(market.exchange, FIRST + i, rows, 64);
        uint32_t waiting = 0;
        for (size_t k = 0; k < count; k++) {
            waiting += rows[k].state == 0 ? rows[k].waiting : 0;
        }
        if (waiting < 100) {
            struct exchange_command made = submit_of(400, 1);
            made.account = FIRST + i;
            made.submit.cap_micro = (int64_t)draw(play, 4) * 1000;
            made.submit.term_ns = TERM_NS;
            made.submit.limit_ns = LIMIT_NS;
            do_it(play, &made);
            ck_assert_uint_eq(count_of(EFFECT_ACCEPT), 1);
        }
    }
}

/* The oldest of a lane, which has run since it was sent, or since the one before it ended. */
static void answer(struct play *play)
{
    size_t at = draw(play, (uint32_t)play->out_count);
    for (size_t i = 0; i < play->out_count; i++) {
        const struct out *out = &play->outs[i];
        const struct out *first = &play->outs[at];
        bool is_same = out->work.lease == first->work.lease && out->work.lane == first->work.lane;
        at = is_same && out->since_ns < first->since_ns ? i : at;
    }
    const struct out out = play->outs[at];
    play->outs[at] = play->outs[--play->out_count];
    for (size_t i = 0; i < play->out_count; i++) {
        struct out *next = &play->outs[i];
        if (next->work.lease == out.work.lease && next->work.lane == out.work.lane) {
            next->since_ns = market.now_ns;
        }
    }
    result_on(out.donor, (struct id128){{(uint8_t)out.donor}}, out.job, out.work,
              draw(play, 30) == 0 ? 1 : 0, market.now_ns - out.since_ns);
    take_effects(play);
}

static void open_market(void)
{
    struct exchange_limits limits = exchange_limits_default();
    limits.jobs = limits.asks = 1024;
    struct exchange_genesis_account accounts[HUNGRY + DONORS];
    memset(accounts, 0, sizeof accounts);
    for (unsigned i = 0; i < HUNGRY + DONORS; i++) {
        accounts[i].key.bytes[0] = (uint8_t)(FIRST + i);
        accounts[i].roles = i < HUNGRY ? 1 : 2;
        accounts[i].credits_micro = 1000 * MICRO_PER_CREDIT;
    }
    open_market_of(&limits, MICRO_PER_CREDIT, accounts, HUNGRY + DONORS);
}

static void look(struct play *play)
{
    int64_t ranks_ns[HUNGRY];
    for (uint32_t i = 0; i < HUNGRY; i++) {
        struct exchange_donated donated;
        ck_assert(exchange_donated(market.exchange, FIRST + i, &donated));
        ck_assert_int_eq(donated.used_ns,
                         fade(play->used_ns[i], market.now_ns / DAY_NS - play->day[i]));
        ck_assert_int_ge(donated.promised_ns, 0);
        ranks_ns[i] = donated.used_ns + donated.promised_ns;
    }
    int64_t apart_ns = llabs(ranks_ns[0] - ranks_ns[1]);
    int64_t used_ns = llabs(play->used_ns[0] - play->used_ns[1]);
    apart_ns = used_ns > apart_ns && play->day[0] == play->day[1] ? used_ns : apart_ns;
    play->apart_ns = apart_ns > play->apart_ns ? apart_ns : play->apart_ns;
}

static void step(struct play *play)
{
    market.now_ns += (int64_t)draw(play, 2500) * NS_PER_MS;
    if (draw(play, 400) == 0) {
        market.now_ns += DAY_NS * (1 + draw(play, 9)) / 2;
    }
    uint32_t dice = draw(play, 20);
    if (dice == 0) {
        uint32_t donor = draw(play, play->donors);
        give(play, donor, !play->offers[donor] || draw(play, 2) == 0);
    } else if (dice < 16 && play->out_count > 0) {
        answer(play);
    } else {
        tick();
        take_effects(play);
    }
    feed(play);
    look(play);
}

/* Within a lease of each other where there is one at a time. Several may end at once, and one
 * account have more of these than the other, which they were only promised: they are never further
 * apart than all that there can be. */
START_TEST(two_hungry_accounts_share_what_is_given)
{
    static struct play play;
    memset(&play, 0, sizeof play);
    play.random = random_seeded(1 + (uint64_t)_i);
    open_market();
    feed(&play);
    play.donors = _i % 2 == 0 ? 1 : DONORS;
    for (uint32_t i = 0; i < play.donors; i++) {
        give(&play, i, true);
    }
    for (int i = 0; i < STEPS; i++) {
        step(&play);
        if (i % 500 == 250) {
            reload();
        }
    }
    printf("seed %d: %.0f s and %.0f s, at most %.0f s apart of %.0f s\n", 1 + _i,
           (double)play.had_ns[0] / 1e9, (double)play.had_ns[1] / 1e9, (double)play.apart_ns / 1e9,
           (double)LEASE_NS / 1e9);
    tear_down();
    ck_assert_int_gt(play.had_ns[0], 10 * LEASE_NS); /* else nothing was given */
    ck_assert_int_le(play.apart_ns, LEASE_NS * play.donors);
    ck_assert_int_le(llabs(play.had_ns[0] - play.had_ns[1]), LEASE_NS * play.donors);
}
END_TEST

SUITE("donation properties", NULL, NULL, LOOP(two_hungry_accounts_share_what_is_given, 0, SEEDS))
