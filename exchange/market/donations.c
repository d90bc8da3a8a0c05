/* The donation queue orders accounts by the slot-time that they had at price 0.
 *
 * Donated use is the slot-time that an account's jobs were settled at price 0. It fades at every
 * midnight (UTC, log time), so that half is left after seven days. With d days since the last
 * count, use U becomes
 *
 *     floor(U x FADED[d mod 7] / 2^32) / 2^(d div 7), rounded down,
 *     FADED[k] = floor(2^32 x 2^(-k / 7))
 *
 * and the present day becomes its day. All accounts fade at the same moments and by the same
 * numbers, so fading never changes which of two accounts has less.
 *
 * A lease at 0 is granted for a term. The time that it may still use counts as used until it is
 * settled or the lease ends. Otherwise the first account of the queue would take everything free
 * before any use is counted. The sum of both is the account's rank. daily.c counts such time for
 * the days of a device in the same way. */
#include "exchange/market/donations.h"

#include "exchange/lifecycle.h"
#include "exchange/state/handles.h"
#include "exchange/state/lease_lanes.h"
#include "exchange/state/lookup.h"
#include "exchange/state/steps.h"

#include <assert.h>
#include <stdlib.h>

#define DAY_NS (24 * NS_PER_HOUR)

enum { FADED_BITS = 32, HALF_LIFE_DAYS = 7 };

static const uint64_t faded[HALF_LIFE_DAYS] = {
    UINT64_C(4294967296), UINT64_C(3890053517), UINT64_C(3523313525), UINT64_C(3191148436),
    UINT64_C(2890298655), UINT64_C(2617811889), UINT64_C(2371014176)};

int64_t donation_day(const struct exchange *exchange)
{
    return exchange->now_ns / DAY_NS;
}

/* Returns the rest of donated use after some days of fading. */
static int64_t donated_after(int64_t donated_ns, int64_t days)
{
    assert(donated_ns >= 0 && days >= 0);
    if (days / HALF_LIFE_DAYS >= 63) {
        return 0;
    }
    uint128 left = (uint128)donated_ns * faded[days % HALF_LIFE_DAYS] >> FADED_BITS;
    return (int64_t)left >> days / HALF_LIFE_DAYS;
}

int64_t donation_used_ns(const struct exchange *exchange, const struct member *member)
{
    return donated_after(member->donated_ns, donation_day(exchange) - member->donated_day);
}

int64_t donation_rank(const struct exchange *exchange, uint32_t account)
{
    const struct member *member = lookup_member(exchange, account);
    int128 rank = (int128)donation_used_ns(exchange, member) + member->promised_ns;
    return rank > INT64_MAX ? INT64_MAX : (int64_t)rank;
}

/* Returns the slot-time that the lease has run and that is not settled yet. */
static int128 running_ns(const struct exchange *exchange, struct lease *lease)
{
    int128 sum = 0;
    lease_find_unbilled(exchange, lease);
    for (uint32_t i = 0; i < lease->lane_count; i++) {
        sum += exchange->now_ns - lease->lanes[i].unbilled_from_ns + lease->lanes[i].outage_ns;
    }
    return sum * lease->part->width;
}

int64_t donation_promised_till(const struct exchange *exchange, struct lease *lease, int64_t end_ns)
{
    /* An attempt may run beyond the term; running_ns counts it. */
    const int64_t left_ns = end_ns > exchange->now_ns ? end_ns - exchange->now_ns : 0;
    const int128 most = (int128)left_ns * lease->slots + running_ns(exchange, lease);
    return most > INT64_MAX ? INT64_MAX : (int64_t)most;
}

int64_t donation_rank_without(const struct exchange *exchange, struct lease *lease)
{
    int128 rank = (int128)donation_rank(exchange, lease->job->owner) - lease->promised_ns +
                  running_ns(exchange, lease);
    return rank > INT64_MAX ? INT64_MAX : (int64_t)rank;
}

/* Returns the lowest sequence of each account's bids that want slots, or 0. Returns NULL when
 * memory is short. */
static uint64_t *first_bids(const struct exchange *exchange)
{
    uint64_t *first = calloc(exchange->member_count, sizeof *first);
    for (uint32_t handle = book_next(exchange->book, 0); first != NULL && handle != BOOK_NONE;
         handle = book_next(exchange->book, handle + 1)) {
        struct book_bid bid;
        steps_add(exchange, 2);
        if (book_bid(exchange->book, handle, &bid) && bid.slots > 0 &&
            !handle_waits_for_all(exchange, handle) &&
            (first[bid.owner] == 0 || bid.sequence < first[bid.owner])) {
            first[bid.owner] = bid.sequence;
        }
    }
    return first;
}

bool exchange_donated(const struct exchange *exchange, uint32_t account,
                      struct exchange_donated *ret_donated)
{
    const struct member *member = lookup_member(exchange, account);
    uint64_t *first = member == NULL ? NULL : first_bids(exchange);
    if (first == NULL) {
        return false;
    }
    const int64_t rank = donation_rank(exchange, account);
    *ret_donated = (struct exchange_donated){.used_ns = donation_used_ns(exchange, member),
                                             .is_waiting = first[account] != 0,
                                             .given_ns = member->given_ns};
    ret_donated->promised_ns = rank - ret_donated->used_ns;
    for (uint32_t i = 0; i < exchange->member_count; i++) {
        int64_t other = first[i] == 0 ? 0 : donation_rank(exchange, i);
        steps_add(exchange, first[i] == 0 ? 1 : 4);
        bool is_before = other < rank || (other == rank && first[i] < first[account]);
        ret_donated->waiting += first[i] != 0;
        ret_donated->before += first[i] != 0 && first[account] != 0 && i != account && is_before;
    }
    free(first);
    return true;
}
