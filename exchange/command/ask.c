/* A provider places an ask on a device, and cancels it. */
#include "base/checked.h"
#include "exchange/command/apply.h"
#include "exchange/lifecycle.h"
#include "exchange/market/ask_conditions.h"
#include "exchange/market/asks.h"
#include "exchange/market/bands.h"
#include "exchange/market/interning.h"
#include "exchange/market/promises.h"
#include "exchange/state/effects.h"
#include "exchange/state/lookup.h"
#include "exchange/state/tracking.h"

static bool terms_in_range(struct exchange *exchange, const struct exchange_terms *terms)
{
    const int64_t notice_ns = terms->is_interruptible ? terms->notice_ns : 0;
    const int64_t run_ns = terms->is_interruptible ? terms->minimum_run_ns : 0;
    if (notice_ns < 0 || notice_ns > EXCHANGE_NOTICE_MOST_NS) {
        effect_reject(exchange, XREJECT_QUANTITY, "notice_ms", notice_ns / NS_PER_MS,
                      EXCHANGE_NOTICE_MOST_NS / NS_PER_MS);
        return false;
    }
    if (run_ns < 0 || run_ns > EXCHANGE_RUN_MOST_NS) {
        effect_reject(exchange, XREJECT_QUANTITY, "minimum_run_ms", run_ns / NS_PER_MS,
                      EXCHANGE_RUN_MOST_NS / NS_PER_MS);
        return false;
    }
    return true;
}

/* Returns the advertised device that the sender may place an ask on, or NULL with a reject. */
static struct device *find_device(struct exchange *exchange, const struct exchange_ask *given)
{
    const struct member *member = lookup_sender(exchange);
    if ((member->roles & XROLE_PROVIDER) == 0) {
        effect_reject(exchange, XREJECT_ROLE, "account", 0, 0);
        return NULL;
    }
    if (exchange->is_halted) {
        effect_reject(exchange, XREJECT_HALTED, "market", 0, 0);
        return NULL;
    }
    if (member->provider == NULL || member->provider->state != PROVIDER_PRESENT) {
        effect_reject(exchange, XREJECT_STATE, "provider", 0, 0);
        return NULL;
    }
    const struct device_key key = {.device = given->device, .provider = member->number};
    struct device *device = table_find(&exchange->devices, &key);
    if (device == NULL || !device->is_advertised) {
        effect_reject(exchange, XREJECT_DEVICE, "device", 0, 0);
        return NULL;
    }
    return device;
}

static bool slots_and_price_in_range(struct exchange *exchange, const struct device *device,
                                     const struct exchange_ask *given)
{
    if (given->slots == 0 || given->slots > device->slots) {
        effect_reject(exchange, XREJECT_QUANTITY, "slots", given->slots, device->slots);
        return false;
    }
    if (!band_allows_price(exchange, "price_micro", given->price_micro)) {
        return false;
    }
    if (given->price_micro > INT64_MAX / given->slots) {
        effect_reject(exchange, XREJECT_PRICE, "price_micro", given->price_micro,
                      INT64_MAX / given->slots);
        return false;
    }
    return true;
}

static bool type_and_times_in_range(struct exchange *exchange, const struct exchange_ask *given)
{
    if (given->type != EXCHANGE_LIMIT && given->type != EXCHANGE_IOC &&
        given->type != EXCHANGE_POST_ONLY) {
        effect_reject(exchange, XREJECT_QUANTITY, "order", given->type, EXCHANGE_POST_ONLY);
        return false;
    }
    if (given->max_term_ns < 0) {
        effect_reject(exchange, XREJECT_QUANTITY, "max_term_ms", given->max_term_ns / NS_PER_MS, 0);
        return false;
    }
    if (!band_allows_notional(
            exchange, "notional_micro",
            band_ask_notional(given->price_micro, given->slots, given->max_term_ns))) {
        return false;
    }
    if (given->good_till_ns < 0 ||
        (given->good_till_ns != 0 && given->good_till_ns <= exchange->now_ns)) {
        effect_reject(exchange, XREJECT_QUANTITY, "good_till_ms", given->good_till_ns / NS_PER_MS,
                      exchange->now_ns / NS_PER_MS);
        return false;
    }
    return true;
}

/* Returns whether there is room for one more ask, under the id of this command. */
static bool has_room(struct exchange *exchange, const struct device *device)
{
    if (device->ask == NULL && exchange->ask_count >= exchange->limits.asks) {
        effect_reject(exchange, XREJECT_LIMIT, "asks", exchange->ask_count, exchange->limits.asks);
        return false;
    }
    if (table_find(&exchange->asks, &exchange->command->id) != NULL) {
        /* Another account's order has that id. */
        effect_reject(exchange, XREJECT_EXISTS, "id", 0, 0);
        return false;
    }
    return true;
}

void apply_ask(struct exchange *exchange, const struct exchange_ask *given)
{
    struct device *device = find_device(exchange, given);
    if (device == NULL || !slots_and_price_in_range(exchange, device, given) ||
        !type_and_times_in_range(exchange, given) || !has_room(exchange, device) ||
        !terms_in_range(exchange, &given->terms)) {
        return;
    }
    struct ask fields = {
        .order = exchange->command->id,
        .device = device,
        .slots = given->slots,
        .price_micro = given->price_micro,
        .good_till_ns = given->good_till_ns,
        .max_term_ns = given->max_term_ns,
        .type = (uint8_t)given->type,
        .sequence = exchange->sequence,
    };
    if (!ask_read_conditions(exchange, given, &fields)) {
        return;
    }
    const uint32_t cell_before = device->cell;
    uint32_t cell;
    if (!interning_take_cell_with_terms(exchange, device, &given->terms, &cell)) {
        return;
    }
    device->cell = cell;
    fields.terms = interning_cell_terms(exchange, cell);
    int64_t bid_micro = 0;
    const uint32_t code = ask_refusal(exchange, &fields, &bid_micro);
    if (code != 0) {
        device->cell = cell_before;
        interning_give_cell(exchange, cell);
        effect_reject(exchange, code, "price_micro", given->price_micro, bid_micro);
        return;
    }
    if (device->ask != NULL) {
        ask_cancel(exchange, device->ask, CANCEL_REPLACED);
    }
    struct ask *ask = ask_create(exchange, &fields);
    if (ask == NULL || !promise_count_days(exchange, ask)) {
        return;
    }
    interning_give_cell(exchange, cell_before);
    tracking_touch(exchange, &device->tracked);
    exchange->sequence++;
    ask_arm(exchange, ask);
    ask_placed(exchange, ask);
}

void apply_cancel_order(struct exchange *exchange, const struct exchange_cancel_order *cancel)
{
    uint32_t account = exchange->command->account;
    struct ask *ask = table_find(&exchange->asks, &cancel->order);
    if (ask != NULL && ask->device->key.provider == account) {
        ask_cancel(exchange, ask, CANCEL_BY_OWNER);
        return;
    }
    const struct job *job = table_find(&exchange->jobs, &cancel->order);
    if (job != NULL && job->owner == account) {
        /* A job's own order ends with the job. */
        effect_reject(exchange, XREJECT_STATE, "order", 0, 0);
        return;
    }
    effect_reject(exchange, XREJECT_NOT_FOUND, "order", 0, 0);
}
