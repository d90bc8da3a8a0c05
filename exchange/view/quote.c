/* A quote tells the present cost of a need. It takes the cheapest fitting asks within the cap, then
 * leases that the bid would take for its other lanes. Without either it quotes leased slots as if
 * they were idle. A read: pure, no trace. */
#include "exchange/view/search.h"

#include "base/checked.h"
#include "base/limit.h"
#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/daily.h"
#include "exchange/market/escrow.h"
#include "exchange/market/spot.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/instruments.h"
#include "exchange/state/job_records.h"
#include "exchange/state/lookup.h"
#include "exchange/state/steps.h"
#include "matching/book_walk.h"

#include <stdlib.h>
#include <string.h>

struct quoting {
    const struct exchange *exchange;
    const struct exchange_need *need;
    struct exchange_quote *quote;
    int64_t limit_micro;
    int64_t floor_micro;     /* a lane never counts below this */
    bool as_if_idle;         /* leased slots count too: the price of waiting for them */
    const struct part *part; /* model of the need's bid */
    uint32_t lanes_left;     /* lanes that the job could still use */
    uint32_t lanes_taken;
    uint64_t lanes_met;                            /* within the limit */
    int128 slot_price_sum;                         /* sum of price x lanes over the lanes taken */
    int128 escrow_sum;                             /* escrow of a term of those lanes */
    int64_t first_escrow_micro, last_escrow_micro; /* a term of the cheapest, of the dearest */
    uint64_t *asking; /* one bit per account: it is in its last level */
    size_t asking_words;
};

/* Counts the provider in the last level once, however many asks it has there. */
static void count_provider(struct quoting *quoting, uint32_t account)
{
    uint64_t *word = &quoting->asking[account / 64];
    const uint64_t bit = UINT64_C(1) << account % 64;
    quoting->quote->levels[quoting->quote->level_count - 1].providers += (*word & bit) == 0;
    *word |= bit;
}

/* A need by value keeps unlike devices in separate levels, because their limits differ. */
static void quote_level(struct quoting *quoting, const struct book_ask *ask, int64_t limit_micro,
                        uint32_t slots)
{
    struct exchange_quote *quote = quoting->quote;
    bool is_by_value = quoting->need->rate != RATE_NONE;
    uint32_t last = quote->level_count;
    if (last > 0 && quote->levels[last - 1].price_micro == ask->price_micro &&
        (!is_by_value || quote->levels[last - 1].cell == ask->cell)) {
        quote->levels[last - 1].slots += slots;
        count_provider(quoting, ask->owner);
    } else if (last < EXCHANGE_QUOTE_LEVELS) {
        quote->levels[last].price_micro = ask->price_micro;
        quote->levels[last].slots = slots;
        quote->level_count++;
        memset(quoting->asking, 0, quoting->asking_words * sizeof *quoting->asking);
        count_provider(quoting, ask->owner);
        if (is_by_value) {
            quote->levels[last].limit_micro = limit_micro;
            quote->levels[last].cell = ask->cell;
            instrument_of_cell(quoting->exchange, ask->cell, quote->levels[last].instrument);
        }
    }
}

static void quote_lanes(struct quoting *quoting, int64_t price_micro, uint32_t lanes)
{
    const struct exchange_need *need = quoting->need;
    uint32_t taken = lanes < quoting->lanes_left ? lanes : quoting->lanes_left;
    if (taken == 0) {
        return;
    }
    price_micro = price_micro > quoting->floor_micro ? price_micro : quoting->floor_micro;
    int64_t escrow = escrow_micro(price_micro, need->slots, need->term_ns);
    quoting->first_escrow_micro = quoting->lanes_taken == 0 ? escrow : quoting->first_escrow_micro;
    quoting->last_escrow_micro = escrow;
    quoting->escrow_sum += (int128)escrow * taken;
    quoting->slot_price_sum += (int128)price_micro * taken;
    quoting->lanes_left -= taken;
    quoting->lanes_taken += taken;
}

static uint32_t slots_if_idle(const struct ask *ask)
{
    return ask->slots < ask->device->slots ? ask->slots : ask->device->slots;
}

/* Returns the lanes on that ask, now or as if it were idle; 0: it does not fit this need. */
static uint32_t lanes_of(const struct exchange *exchange, const struct exchange_need *need,
                         uint32_t handle, const struct book_ask *ask, bool as_if_idle)
{
    const struct ask *standing = exchange->orders_by_handle[handle];
    bool is_for_it = ask->owner != need->account && ask_is_for(standing, need->account) &&
                     (ask->max_term_ns == 0 || ask->max_term_ns >= need->term_ns);
    uint32_t slots = as_if_idle ? slots_if_idle(standing) : ask->slots;
    return is_for_it && (!need->is_firm_only || !standing->terms.is_interruptible)
               ? slots / need->slots
               : 0;
}

struct rivals { /* The two accounts that ask least. */
    const struct exchange *exchange;
    const struct exchange_need *need;
    uint32_t first;
    int64_t second_micro; /* -1: not found yet */
};

static bool find_rivals(void *context, uint32_t handle, const struct book_ask *ask)
{
    struct rivals *rivals = context;
    steps_add(rivals->exchange, 4);
    if (lanes_of(rivals->exchange, rivals->need, handle, ask, true) == 0) {
        return true;
    }
    if (rivals->first == EXCHANGE_NO_ACCOUNT) {
        rivals->first = ask->owner;
    }
    rivals->second_micro = ask->owner != rivals->first ? ask->price_micro : -1;
    return rivals->second_micro < 0;
}

/* Returns false when no later ask is within the limit. */
static bool quote_ask(struct quoting *quoting, uint32_t handle, const struct book_ask *ask)
{
    const struct exchange_need *need = quoting->need;
    int64_t limit_micro =
        book_limit(quoting->exchange->book, need->rate, quoting->limit_micro, ask->cell);
    bool is_within = ask->price_micro <= limit_micro;
    if (!is_within && need->rate == RATE_NONE) {
        return false;
    }
    uint32_t lanes = lanes_of(quoting->exchange, need, handle, ask, quoting->as_if_idle);
    if (lanes == 0) {
        return true;
    }
    quote_level(quoting, ask, limit_micro, lanes * need->slots);
    if (!is_within) {
        return true; /* the needed limit is told, no cost */
    }
    struct exchange_quote *quote = quoting->quote;
    bool is_first = quoting->lanes_met == 0;
    quoting->lanes_met += lanes;
    quote->price_low_micro = is_first || ask->price_micro < quote->price_low_micro
                                 ? ask->price_micro
                                 : quote->price_low_micro;
    quote->price_high_micro = is_first || ask->price_micro > quote->price_high_micro
                                  ? ask->price_micro
                                  : quote->price_high_micro;
    quote->slots_now += quoting->as_if_idle ? 0 : lanes * need->slots;
    quote_lanes(quoting, ask->price_micro, lanes);
    return true;
}

/* One walk answers all questions. */
struct quoting_asks {
    struct quoting now, idle; /* `idle` counts until `now` finds something */
    struct rivals rivals;
    bool seeks_rivals, is_within; /* still true during the walk */
    uint32_t elsewhere_left;      /* lanes still to find at a price, beside donated ones */
};

static void quote_elsewhere(struct quoting_asks *asks, uint32_t handle, const struct book_ask *ask)
{
    const struct quoting *now = &asks->now;
    struct exchange_quote *quote = now->quote;
    const bool is_met = now->lanes_met > 0 && quote->price_low_micro == 0 && ask->price_micro > 0;
    if (!is_met || asks->elsewhere_left == 0 ||
        ask->price_micro >
            book_limit(now->exchange->book, now->need->rate, now->limit_micro, ask->cell)) {
        return;
    }
    const uint32_t lanes = lanes_of(now->exchange, now->need, handle, ask, true);
    const uint32_t taken = lanes < asks->elsewhere_left ? lanes : asks->elsewhere_left;
    if (taken > 0) {
        quote->elsewhere_micro =
            ask->price_micro > quote->elsewhere_micro ? ask->price_micro : quote->elsewhere_micro;
        quote->elsewhere_slots += taken * now->need->slots;
        asks->elsewhere_left -= taken;
    }
}

static bool quote_asks(void *context, uint32_t handle, const struct book_ask *ask)
{
    struct quoting_asks *asks = context;
    steps_add(asks->now.exchange, 4);
    asks->seeks_rivals = asks->seeks_rivals && find_rivals(&asks->rivals, handle, ask);
    asks->is_within = asks->is_within && quote_ask(&asks->now, handle, ask);
    quote_elsewhere(asks, handle, ask);
    if (asks->is_within && asks->now.lanes_met == 0) {
        (void)quote_ask(&asks->idle, handle, ask); /* asks->idle has the same limit as asks->now */
    }
    return asks->seeks_rivals || asks->is_within;
}

/* Quotes an exposed lease for the lanes without free slots. */
static bool quote_lease(void *context, uint32_t handle, const struct book_ask *exposed)
{
    struct quoting *quoting = context;
    steps_add(quoting->exchange, 8);
    struct exchange_quote *quote = quoting->quote;
    const struct exchange *exchange = quoting->exchange;
    const struct exchange_need *need = quoting->need;
    const struct lease *lease = spot_lease(exchange, handle);
    const struct ask *ask = lease->device->ask;
    const int128 lane_ns = (int128)need->term_ns * need->slots;
    if (exposed->price_micro >
            book_limit(exchange->book, need->rate, quoting->limit_micro, exposed->cell) ||
        !spot_may_be_taken(exchange, quoting->part, lease) ||
        (exposed->max_term_ns != 0 && exposed->max_term_ns < need->term_ns) ||
        (ask->daily_ns != 0 && daily_left_ns(exchange, ask) < lane_ns)) {
        return true;
    }
    const uint32_t room = exposed->slots / need->slots;
    const uint32_t lanes = room < quoting->lanes_left ? room : quoting->lanes_left;
    const int64_t price_micro = exposed->price_micro;
    if (lanes > 0) {
        const bool is_first = quote->slots_taken == 0;
        quote->taken_low_micro =
            is_first || price_micro < quote->taken_low_micro ? price_micro : quote->taken_low_micro;
        quote->taken_high_micro =
            price_micro > quote->taken_high_micro ? price_micro : quote->taken_high_micro;
        quote->slots_taken += lanes * need->slots;
        quote_lanes(quoting, price_micro, lanes);
    }
    return quoting->lanes_left > 0;
}

static int64_t clamp_micro(int128 value)
{
    return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

/* Returns busy_ns x price_sum / lanes, per hour, rounded up; INT64_MAX when that exceeds all
 * money. */
static int64_t cost_micro(int128 busy_ns, int128 price_sum, uint32_t lanes)
{
    int128 divisor = (int128)NS_PER_HOUR * lanes;
    int128 product;
    if (__builtin_mul_overflow(busy_ns, price_sum, &product) ||
        __builtin_add_overflow(product, divisor - 1, &product)) {
        return INT64_MAX;
    }
    return clamp_micro(product / divisor);
}

/* Returns how many lanes more than the present ones the budget should cover, because slots may come
 * while the job runs: as many again, or as many as have work for half a term each. */
static uint32_t lanes_to_come(const struct quoting *quoting, int128 busy_ns)
{
    const int128 lane_ns = (int128)quoting->need->term_ns * quoting->need->slots;
    const int128 of_work =
        lane_ns > 0 ? (2 * busy_ns + lane_ns - 1) / lane_ns - quoting->lanes_taken : 0;
    const int128 lanes = of_work > quoting->lanes_taken ? of_work : quoting->lanes_taken;
    return lanes < quoting->lanes_left ? (uint32_t)lanes : quoting->lanes_left;
}

/* The work is spread over the cheapest lanes that fit, with an equal share of the subtasks on
 * each. */
static void quote_cost(const struct quoting *quoting)
{
    const struct exchange_need *need = quoting->need;
    struct exchange_quote *quote = quoting->quote;
    int128 busy_ns = (int128)need->subtasks * need->expect_ns * need->slots;
    quote->expected_micro = cost_micro(busy_ns, quoting->slot_price_sum, quoting->lanes_taken);
    uint32_t rounds = (need->subtasks + quoting->lanes_taken - 1) / quoting->lanes_taken;
    quote->makespan_ns = clamp_micro((int128)rounds * need->expect_ns);
    quote->minimum_micro = quoting->first_escrow_micro;
    int64_t half = quote->expected_micro / 2 + (quote->expected_micro & 1);
    /* Each used lane draws one term's escrow beside charges; a smaller budget uses fewer lanes. One
     * more lane at the dearest price covers a lost provider, whose lease holds its escrow until the
     * term ends. Lanes to come count at this price, too. */
    const int128 more = (int128)1 + lanes_to_come(quoting, busy_ns);
    quote->suggested_micro = clamp_micro((int128)quote->expected_micro + half +
                                         quoting->escrow_sum + more * quoting->last_escrow_micro);
    quote->suggested_micro = quote->suggested_micro > 0 ? quote->suggested_micro : 1;
}

struct cheapest {
    const struct quoting *quoting;
    int64_t ask_micro; /* 0: no ask fits */
};

static bool find_cheapest(void *context, uint32_t handle, const struct book_ask *ask)
{
    struct cheapest *cheapest = context;
    const struct quoting *quoting = cheapest->quoting;
    steps_add(quoting->exchange, 4);
    if (lanes_of(quoting->exchange, quoting->need, handle, ask, true) > 0) {
        cheapest->ask_micro = ask->price_micro;
    }
    return cheapest->ask_micro == 0;
}

/* A budget that follows from a cap below all asks pays for the cheapest ask, too, so that the job
 * fills as soon as its cap is raised. Asks that are much higher count as CAP_RAISES_MOST caps. */
static void cover_raised_cap(const struct quoting *quoting)
{
    enum { CAP_RAISES_MOST = 10 };
    const struct exchange_need *need = quoting->need;
    struct exchange_quote *quote = quoting->quote;
    struct cheapest cheapest = {.quoting = quoting};
    steps_add(quoting->exchange,
              (2 + steps_of_needs(need->needs)) * book_cell_bound(quoting->exchange->book));
    book_walk_asks(quoting->exchange->book, need->needs, need->rate, find_cheapest, &cheapest);
    if (need->cap_micro > 0 && cheapest.ask_micro > need->cap_micro) {
        const int128 most = (int128)CAP_RAISES_MOST * need->cap_micro;
        const int128 price = cheapest.ask_micro < most ? cheapest.ask_micro : most;
        const int128 suggested = (int128)quote->suggested_micro * price;
        quote->suggested_micro = clamp_micro((suggested + need->cap_micro - 1) / need->cap_micro);
    }
}

/* The need would wait for leased slots and pay their asks' price then. A lease that it takes is
 * paid now. */
static void adopt_idle(const struct quoting *idle, struct quoting *quoting)
{
    struct exchange_quote *quote = quoting->quote;
    quote->level_count = idle->quote->level_count;
    memcpy(quote->levels, idle->quote->levels, sizeof quote->levels);
    if (quote->slots_taken == 0) {
        quote->price_low_micro = idle->quote->price_low_micro;
        quote->price_high_micro = idle->quote->price_high_micro;
        *quoting = *idle;
        quoting->quote = quote;
    }
}

/* The floor is found first: if the cheapest account may not take the need, no price counts below
 * the next account's. */
static void set_floor(struct quoting_asks *asks)
{
    const struct exchange_need *need = asks->now.need;
    struct rivals *rivals = &asks->rivals;
    if (need->apart && need->rate == RATE_NONE) {
        book_walk_asks(asks->now.exchange->book, need->needs, need->rate, find_rivals, rivals);
        asks->seeks_rivals = false;
        if (rivals->second_micro <= asks->now.limit_micro) {
            asks->now.floor_micro = asks->idle.floor_micro = rivals->second_micro;
        }
    }
}

static void quote_all_asks(struct quoting_asks *asks)
{
    const struct exchange *exchange = asks->now.exchange;
    const struct exchange_need *need = asks->now.need;
    /* The walk opens each cell that has an ask. */
    steps_add(exchange, (2 + steps_of_needs(need->needs)) * book_cell_bound(exchange->book));
    set_floor(asks);
    book_walk_asks(exchange->book, need->needs, need->rate, quote_asks, asks);
    if (job_type_challenges(need->type) && !exchange->is_halted) {
        spot_walk(exchange, need->needs, need->rate, quote_lease, &asks->now);
    }
    if (asks->now.lanes_met == 0) {
        adopt_idle(&asks->idle, &asks->now);
    }
}

bool exchange_quote(const struct exchange *exchange, const struct exchange_need *need,
                    struct exchange_quote *ret_quote)
{
    const size_t words = accounts_count(exchange->accounts) / 64 + 1;
    uint64_t *asking = calloc(words, 2 * sizeof *asking);
    memset(ret_quote, 0, sizeof *ret_quote);
    assert(need->slots > 0);
    steps_add(exchange, words / 8 + 64);
    if (asking == NULL) {
        return false;
    }
    uint32_t most = need->at_most == 0 ? UINT32_MAX : need->at_most / need->slots;
    struct exchange_quote if_idle = {0};
    struct quoting quoting = {
        .exchange = exchange,
        .need = need,
        .quote = ret_quote,
        .limit_micro = need->holds_nothing             ? 0 /* whatever its cap */
                       : limit_is_set(need->cap_micro) ? need->cap_micro
                                                       : exchange->price_band_micro,
        .lanes_left = need->subtasks < most ? need->subtasks : most,
        .asking = asking,
        .asking_words = words,
    };
    struct job asked;
    quoting.part = search_asked(exchange, need, &asked);
    struct quoting_asks asks = {
        .now = quoting,
        .idle = quoting,
        .rivals = {exchange, need, EXCHANGE_NO_ACCOUNT, -1},
        .seeks_rivals = true,
        .is_within = true,
        .elsewhere_left = quoting.lanes_left,
    };
    asks.idle.quote = &if_idle;
    asks.idle.as_if_idle = true;
    asks.idle.asking = asking + words;
    if (requirement_well_formed(need->needs)) {
        quote_all_asks(&asks);
    }
    ret_quote->second_micro = asks.rivals.second_micro;
    ret_quote->is_asked = asks.rivals.first != EXCHANGE_NO_ACCOUNT;
    if (ret_quote->is_asked) {
        ret_quote->first = lookup_member(exchange, asks.rivals.first)->key;
    }
    if (ret_quote->slots_now == 0 && ret_quote->slots_taken > 0) {
        ret_quote->price_low_micro = ret_quote->taken_low_micro;
        ret_quote->price_high_micro = ret_quote->taken_high_micro;
    }
    const bool is_below_asks = asks.now.lanes_taken == 0 && limit_is_set(need->cap_micro) &&
                               !need->holds_nothing && need->rate == RATE_NONE;
    if (is_below_asks) { /* the cap is the only known price */
        quote_lanes(&asks.now, need->cap_micro, 1);
    }
    if (asks.now.lanes_taken > 0) {
        quote_cost(&asks.now);
    }
    if (is_below_asks) {
        cover_raised_cap(&asks.now);
    }
    free(asking);
    return true;
}
