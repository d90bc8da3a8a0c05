#include "broker/challenge/challenge_rules.h"

#include <assert.h>

enum { SIDE_STEP = 64 };
#define FLOPS_OF_MFLOPS 1e6

static double work_of(const struct challenge_product *product)
{
    const double side = product->side;
    return challenge_product_is_chain(product)
               ? 2 * side * side * product->rows * product->steps * product->rounds
               : 2 * side * side * side * product->rounds;
}

static void size_products(double work, struct challenge_product *product)
{
    struct challenge_product next = *product;
    for (next.side += SIDE_STEP; next.side <= CHALLENGE_SIDE_MOST && work_of(&next) <= work;
         next.side += SIDE_STEP) {
        product->side = next.side;
    }
    next = *product;
    for (next.rounds++; next.side == CHALLENGE_SIDE_MOST && next.rounds <= CHALLENGE_ROUNDS_MOST &&
                        work_of(&next) <= work;
         next.rounds++) {
        product->rounds = next.rounds;
    }
}

/* More rows cost the broker nothing, and more steps do. */
static void size_chain(double work, struct challenge_product *product)
{
    product->side = CHALLENGE_CHAIN_SIDE_MOST;
    product->rounds = CHALLENGE_CHAIN_ROUNDS;
    product->rows = CHALLENGE_SIDE_LEAST;
    product->steps = 1;
    work = work < CHALLENGE_CHAIN_WORK_MOST ? work : CHALLENGE_CHAIN_WORK_MOST;
    while (product->rows < CHALLENGE_CHAIN_ROWS_MOST &&
           work / work_of(product) >= CHALLENGE_CHAIN_STEPS) {
        product->rows *= 2;
    }
    const double steps = work / work_of(product);
    product->steps = steps >= 1 ? (uint32_t)steps : 1;
    assert(challenge_product_is_valid(product));
}

static bool is_chain(int64_t claimed_mflops, bool answers_chains)
{
    return answers_chains && claimed_mflops >= CHALLENGE_CHAIN_LEAST_MFLOPS;
}

void challenge_rules_way(int64_t claimed_mflops, bool answers_chains,
                         struct challenge_product *ret_product)
{
    const bool has_steps = is_chain(claimed_mflops, answers_chains);
    ret_product->side = CHALLENGE_SIDE_LEAST;
    ret_product->rounds = 1;
    ret_product->rows = has_steps ? CHALLENGE_SIDE_LEAST : 0;
    ret_product->steps = has_steps ? 1 : 0;
}

void challenge_rules_size(int64_t claimed_mflops, bool answers_chains,
                          struct challenge_product *ret_product)
{
    assert(claimed_mflops > 0);
    const double work =
        (double)claimed_mflops * FLOPS_OF_MFLOPS * ((double)CHALLENGE_WORK_NS / (double)NS_PER_S);
    challenge_rules_way(claimed_mflops, answers_chains, ret_product);
    if (is_chain(claimed_mflops, answers_chains)) {
        size_chain(work, ret_product);
    } else {
        size_products(work, ret_product);
    }
}

/* Returns the time for what is no product: numbers that are made, and go to the device and back. */
static int64_t beside_ns(const struct challenge_product *product, bool on_device)
{
    const int64_t side = product->side;
    if (challenge_product_is_chain(product)) {
        const int64_t narrow = CHALLENGE_CHAIN_INNER + CHALLENGE_CHAIN_COLUMNS;
        return (side * side + (side + (int64_t)product->rows * product->rounds) * narrow) *
               CHALLENGE_ENTRY_NS;
    }
    return side * side * product->rounds *
           (on_device ? CHALLENGE_DEVICE_ENTRY_NS : CHALLENGE_ENTRY_NS);
}

int64_t challenge_rules_allowed_ns(const struct challenge_product *product, int64_t claimed_mflops,
                                   bool on_device)
{
    assert(claimed_mflops > 0);
    const double claimed_ns =
        work_of(product) / ((double)claimed_mflops * FLOPS_OF_MFLOPS) * (double)NS_PER_S;
    return (int64_t)(CHALLENGE_TOLERANCE * claimed_ns) + beside_ns(product, on_device) +
           CHALLENGE_START_NS;
}

int64_t challenge_rules_shown(const struct challenge_product *product, int64_t took_ns)
{
    assert(took_ns > 0);
    int64_t mflops = (int64_t)(work_of(product) / (double)took_ns * 1e9 / FLOPS_OF_MFLOPS);
    int64_t scale = 1;
    while (mflops / scale >= 100) {
        scale *= 10;
    }
    mflops = mflops / scale * scale;
    return mflops > 0 ? mflops : 1;
}

int64_t challenge_rules_spread(int64_t every_ns, uint64_t dice)
{
    return every_ns / 2 + (int64_t)((double)every_ns * ((double)(dice >> 11) * 0x1p-53));
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Wrong and missing answers close the asks as refuted results do. */
static bool count_failure(struct challenge_fact *fact, int64_t now_ns, int64_t every_ns)
{
    fact->failed++;
    if (fact->failed <= CHALLENGE_FAILED_MOST) {
        fact->due_ns = now_ns + least(every_ns, CHALLENGE_AGAIN_NS);
        return false;
    }
    int64_t closed_ns = CHALLENGE_CLOSED_NS;
    for (uint32_t i = CHALLENGE_FAILED_MOST + 1;
         i < fact->failed && closed_ns < CHALLENGE_CLOSED_MOST_NS; i++) {
        closed_ns *= 2;
    }
    closed_ns = least(closed_ns, CHALLENGE_CLOSED_MOST_NS);
    fact->closed_until_ns = now_ns + closed_ns;
    fact->due_ns = fact->closed_until_ns + least(every_ns, CHALLENGE_AGAIN_NS);
    return true;
}

bool challenge_rules_decline(struct challenge_fact *fact)
{
    fact->declined++;
    return fact->declined > CHALLENGE_DECLINED_MOST;
}

bool challenge_rules_settle(struct challenge_fact *fact, enum challenge_outcome outcome,
                            int64_t claimed_mflops, int64_t shown_mflops, int64_t now_ns,
                            int64_t every_ns, uint64_t dice)
{
    assert(outcome != CHALLENGE_NONE);
    fact->declined = 0;
    fact->due_ns = now_ns + challenge_rules_spread(every_ns, dice);
    if (outcome == CHALLENGE_SLOW) {
        fact->slow++;
        fact->best_mflops = shown_mflops > fact->best_mflops ? shown_mflops : fact->best_mflops;
        if (fact->slow < CHALLENGE_TRIES) {
            fact->due_ns = now_ns + least(every_ns, CHALLENGE_SLOW_AGAIN_NS);
            return false;
        }
        shown_mflops = fact->best_mflops;
        fact->limit_mflops = shown_mflops;
        fact->limit_until_ns = now_ns + CHALLENGE_LOWERED_NS;
    }
    fact->outcome = outcome;
    fact->at_ns = now_ns;
    fact->claimed_mflops = claimed_mflops;
    fact->shown_mflops = outcome == CHALLENGE_SLOW ? shown_mflops : 0;
    fact->slow = 0;
    fact->best_mflops = 0;
    if (outcome == CHALLENGE_WRONG || outcome == CHALLENGE_UNANSWERED) {
        return count_failure(fact, now_ns, every_ns);
    }
    if (outcome == CHALLENGE_OK) {
        fact->failed -= fact->failed > 0;
        /* A device that was lowered while others used the machine shows more later. */
        const bool shows_more = fact->limit_mflops > 0 && shown_mflops > fact->limit_mflops;
        fact->limit_mflops = shows_more ? shown_mflops : fact->limit_mflops;
    }
    return outcome == CHALLENGE_SLOW;
}

bool challenge_rules_admit(const struct challenge_fact *fact, int64_t claimed_mflops,
                           int64_t now_ns)
{
    const bool is_closed = now_ns < fact->closed_until_ns;
    const bool is_above = fact->limit_mflops > 0 && now_ns < fact->limit_until_ns &&
                          claimed_mflops > fact->limit_mflops;
    return !is_closed && !is_above;
}
