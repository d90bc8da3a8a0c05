/* Conditions of an ask limit the accounts, the hours and the daily time that it serves. Hours
 * follow log time; the exchange knows no other clock. An ask outside its hours keeps its place and
 * has no free slots, like one whose day is used up (daily.c). */
#include "exchange/market/ask_conditions.h"

#include "exchange/account/standing.h"
#include "exchange/market/bands.h"
#include "exchange/market/daily.h"
#include "exchange/market/devices.h"
#include "exchange/market/spot_index.h"
#include "exchange/state/effects.h"
#include "exchange/state/timers.h"

/* Finds an account by its key or its name. A name that several accounts share finds none, since the
 * sender meant one of them. */
static const struct member *named(const struct exchange *exchange,
                                  const struct exchange_ask_account *given)
{
    const struct member *member = given->has_key
                                      ? table_find(&exchange->members_by_key, &given->key)
                                      : table_find(&exchange->members_by_name, given->name);
    return member != NULL && (given->has_key || !member->shares_name) ? member : NULL;
}

static bool read_accounts(struct exchange *exchange, const struct exchange_ask *given,
                          struct ask *ask)
{
    if (given->to_count > EXCHANGE_ASK_TO_MOST) {
        effect_reject(exchange, XREJECT_LIMIT, "to", (int64_t)given->to_count,
                      EXCHANGE_ASK_TO_MOST);
        return false;
    }
    for (size_t i = 0; i < given->to_count; i++) {
        const struct member *member = named(exchange, &given->to[i]);
        if (member == NULL) {
            effect_reject(exchange, XREJECT_ACCOUNT, "to", (int64_t)i, (int64_t)given->to_count);
            return false;
        }
        if (ask->to_count == 0 || !ask_is_for(ask, member->number)) {
            ask->to[ask->to_count++] = member->number;
        }
    }
    return true;
}

/* A daily bound needs a longest term for leases. */
static bool read_daily(struct exchange *exchange, const struct exchange_ask *given, struct ask *ask)
{
    if (given->daily_ns < 0 || given->daily_ns > EXCHANGE_DAILY_MOST_NS) {
        effect_reject(exchange, XREJECT_QUANTITY, "daily_ms", given->daily_ns / NS_PER_MS,
                      EXCHANGE_DAILY_MOST_NS / NS_PER_MS);
        return false;
    }
    ask->daily_ns = given->daily_ns;
    if (ask->daily_ns > 0 && ask->max_term_ns == 0) {
        ask->max_term_ns =
            ask->daily_ns < EXCHANGE_DAILY_TERM_NS ? ask->daily_ns : EXCHANGE_DAILY_TERM_NS;
    }
    if (ask->daily_ns > 0 && ask->max_term_ns > ask->daily_ns) {
        effect_reject(exchange, XREJECT_QUANTITY, "daily_ms", ask->daily_ns / NS_PER_MS,
                      ask->max_term_ns / NS_PER_MS);
        return false;
    }
    return true;
}

bool ask_read_conditions(struct exchange *exchange, const struct exchange_ask *given,
                         struct ask *ask)
{
    const bool has_clock = given->hours.count > 0 || given->daily_ns > 0;
    if (!hours_well_formed(&given->hours) || (!has_clock && given->hours.offset_min != 0)) {
        effect_reject(exchange, XREJECT_HOURS, "hours", given->hours.count, HOURS_WINDOWS_MOST);
        return false;
    }
    ask->hours = given->hours;
    if (!read_daily(exchange, given, ask)) {
        return false;
    }
    ask_look_at_hours(exchange, ask);
    return read_accounts(exchange, given, ask);
}

bool ask_is_for(const struct ask *ask, uint32_t account)
{
    bool is = ask->to_count == 0;
    for (uint32_t i = 0; i < ask->to_count; i++) {
        is = is || ask->to[i] == account;
    }
    return is;
}

bool ask_suits(const struct ask *ask, const struct job *job)
{
    return ask_is_for(ask, job->owner) &&
           !(ask->terms.is_interruptible && job->interruptions_left == 0);
}

void ask_look_at_hours(const struct exchange *exchange, struct ask *ask)
{
    ask->is_open = hours_open(&ask->hours, exchange->now_ns);
    ask->turns_ns = hours_next_ns(&ask->hours, exchange->now_ns);
    if (ask->daily_ns > 0) {
        const int64_t midnight_ns = hours_next_day_ns(ask->hours.offset_min, exchange->now_ns);
        ask->turns_ns = midnight_ns < ask->turns_ns ? midnight_ns : ask->turns_ns;
    }
    const int64_t withdrawn_ns = account_withdrawn_until_ns(exchange, ask->device->key.provider);
    if (withdrawn_ns > exchange->now_ns) {
        ask->is_open = false;
        ask->turns_ns = withdrawn_ns < ask->turns_ns ? withdrawn_ns : ask->turns_ns;
    }
}

int64_t ask_opens_in_ns(const struct exchange *exchange, const struct ask *ask)
{
    if (!ask->is_open) {
        const int64_t withdrawn_ns =
            account_withdrawn_until_ns(exchange, ask->device->key.provider);
        const int64_t from_ns = withdrawn_ns > exchange->now_ns ? withdrawn_ns : exchange->now_ns;
        const bool opens_then = from_ns > exchange->now_ns && hours_open(&ask->hours, from_ns);
        return (opens_then ? from_ns : hours_next_ns(&ask->hours, from_ns)) - exchange->now_ns;
    }
    return daily_is_spent(exchange, ask)
               ? hours_next_day_ns(ask->hours.offset_min, exchange->now_ns) - exchange->now_ns
               : 0;
}

static void arm_turn(struct exchange *exchange, const struct ask *ask)
{
    if (ask->turns_ns != INT64_MAX) {
        timer_arm(exchange, TIMER_ASK, &ask->order, ask->turns_ns);
    }
}

void ask_turn(struct exchange *exchange, struct ask *ask)
{
    ask_look_at_hours(exchange, ask);
    arm_turn(exchange, ask);
    device_slots_changed(exchange, ask->device);
    spot_expose_device(exchange, ask->device);
}

void ask_arm(struct exchange *exchange, const struct ask *ask)
{
    if (ask->good_till_ns != 0) {
        timer_arm(exchange, TIMER_ASK, &ask->order, ask->good_till_ns);
    }
    arm_turn(exchange, ask);
}

bool ask_is_unsuited(void *context, uint32_t handle)
{
    const struct suiting *suiting = context;
    const void *order = suiting->exchange->orders_by_handle[handle];
    const struct ask *ask = suiting->ask != NULL ? suiting->ask : order;
    const struct part *part = suiting->ask != NULL ? order : suiting->part;
    return !ask_suits(ask, part->job) || !band_reaches_ask(suiting->exchange, part, ask);
}
