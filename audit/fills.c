/* The audit checks fills and the leases that they begin. docs/ledger.md section 6 has the rules. */
#include "audit/audit_internal.h"

#include "base/limit.h"

#include <string.h>

enum { INCREMENT_MICRO = 1000 };

/* Returns the most that a bid pays for a slot-hour of the ask's device. A bid by value pays by the
 * device's latest rate. */
static int64_t limit_of(const struct audit *audit, const struct audit_ask *ask,
                        const struct audit_bid *bid)
{
    if (bid->rate == AUDIT_RATE_NONE) {
        return bid->limit;
    }
    struct hash32 name = audit_id(&ask->device);
    const struct audit_device *device = audit_map_find(&audit->devices, &name);
    const int64_t rate = device == NULL ? 0 : device->rates[bid->rate];
    const int64_t limit = audit_worth_limit(bid->limit, rate);
    return limit < audit->bands.most_micro ? limit : audit->bands.most_micro;
}

/* Returns the price of the maker, the order that rested first; a donation always fills at 0. */
static int64_t price_of(const struct audit *audit, const struct audit_ask *ask,
                        const struct audit_bid *bid)
{
    if (ask->price == 0) {
        return 0;
    }
    return ask->entry < bid->entry ? ask->price : limit_of(audit, ask, bid);
}

static bool has_named_limit(const struct audit_bid *bid)
{
    return limit_is_set(bid->cap) && bid->limit >= bid->cap;
}

/* Since RULES_OF_CLEARING only limit and post-only orders with a cap pay the maker's price. */
static bool pays_clearing_price(const struct audit *audit, const struct audit_bid *bid)
{
    const bool is_maker = bid->type == ORDER_LIMIT || bid->type == ORDER_POST_ONLY;
    return audit->rules >= RULES_OF_CLEARING && !(is_maker && has_named_limit(bid));
}

/* The clearing price is the ask's, or a limit above it that another owner named and that the ask
 * left unfilled. Which bids the ask could serve does not follow from the rows alone: the audit
 * looks for a bid of that limit. The bid pays no more than its own limit. */
static bool is_clearing_price(struct audit *audit, const struct audit_ask *ask,
                              const struct audit_bid *bid, int64_t price)
{
    const int64_t most = limit_of(audit, ask, bid);
    bool is_named = price == ask->price;
    struct audit_bid **at = &audit->first_bid;
    while (ask->price > 0 && price > ask->price && !is_named && *at != NULL) {
        const struct audit_bid *other = *at;
        if (other->is_cancelled) {
            *at = other->next; /* a cancelled bid never stands again */
            continue;
        }
        if (other->job->owner_number != bid->job->owner_number &&
            other->job->owner_number != ask->owner_number && has_named_limit(other)) {
            const int64_t limit = limit_of(audit, ask, other);
            is_named = price == (limit < most ? limit : most);
        }
        at = &(*at)->next;
    }
    return is_named;
}

static bool has_due_price(struct audit *audit, const struct audit_ask *ask,
                          const struct audit_bid *bid, int64_t price)
{
    return pays_clearing_price(audit, bid) ? is_clearing_price(audit, ask, bid, price)
                                           : price == price_of(audit, ask, bid);
}

static bool same_terms(const struct audit_terms *a, const struct audit_terms *b)
{
    return a->is_interruptible == b->is_interruptible && a->notice_ms == b->notice_ms &&
           a->minimum_run_ms == b->minimum_run_ms;
}

/* An arriving bid takes the best ask, so a better ask is a witness against a fill. The better ask
 * has the same cell and terms, and so satisfies the same requirements. It has no conditions, and
 * its device never had a lease. */
static bool is_better(struct audit *audit, const struct audit_ask *other,
                      const struct audit_ask *taken, const struct audit_bid *bid)
{
    struct hash32 account = audit_number(other->owner_number);
    struct hash32 device_name = audit_id(&other->device);
    const struct audit_device *device = audit_map_find(&audit->devices, &device_name);
    bool stands = !other->is_cancelled && !other->has_conditions && device != NULL &&
                  !device->was_filled && other->owner_number != bid->job->owner_number &&
                  other->slots >= bid->width &&
                  (other->max_term_ms == 0 || other->max_term_ms >= bid->term_ms) &&
                  audit_map_find(&audit->tainted, &account) == NULL;
    bool is_alike = !hash32_is_zero(&other->cell) && hash32_equal(&other->cell, &taken->cell) &&
                    same_terms(&other->terms, &taken->terms);
    return stands && is_alike &&
           (other->price < taken->price ||
            (other->price == taken->price && other->price > 0 && other->entry < taken->entry));
}

static bool check_priority(struct audit *audit, const struct audit_command *command,
                           const struct audit_ask *taken, const struct audit_bid *bid)
{
    if (command->type != MESSAGE_SUBMIT_JOB || !id128_equal(&command->envelope.id, &bid->job->id)) {
        return true; /* the rows do not show which asks were free when the job came for more */
    }
    for (const struct audit_ask *other = audit->first_ask; other != NULL; other = other->next) {
        if (other != taken && is_better(audit, other, taken, bid)) {
            return audit_expect_i64(audit,
                                    "the best ask of the cell is taken first (an ask's entry)",
                                    (int64_t)other->entry, (int64_t)taken->entry);
        }
    }
    return true;
}

static bool check_sides(struct audit *audit, const struct audit_ask *ask,
                        const struct audit_bid *bid)
{
    const struct audit_row *row = &audit->rows.row;
    const struct audit_job *job = bid == NULL ? NULL : bid->job;
    return audit_expect(audit, ask != NULL && !ask->is_cancelled, "the fill's ask stands") &&
           audit_expect(audit, bid != NULL && !bid->is_cancelled, "the fill's bid stands") &&
           audit_expect_bytes(audit, "the fill's bid belongs to the fill's job", job->id.bytes,
                              row->job.bytes, 16) &&
           audit_expect_bytes(audit, "the fill's provider is the ask's owner", ask->owner.bytes,
                              row->provider.bytes, 32) &&
           audit_expect_bytes(audit, "the fill's consumer is the job's owner", job->owner.bytes,
                              row->owner.bytes, 32) &&
           audit_expect(audit, ask->owner_number != job->owner_number,
                        "no account trades with itself") &&
           audit_expect_bytes(audit, "the fill's device is the ask's", ask->device.bytes,
                              row->device.bytes, 16);
}

/* Returns another's lease on the device that the bid could take at the fill's price, or NULL. Such
 * a lease is interruptible and has had its minimum run. The lease ranks by its holder's limit, or
 * by its price when the holder bids no more. */
static struct audit_lease *taken_lease(const struct audit *audit, const struct audit_ask *ask,
                                       const struct audit_bid *bid)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 device_name = audit_id(&row->device);
    const struct audit_device *device = audit_map_find(&audit->devices, &device_name);
    struct audit_lease *lease = device == NULL ? NULL : device->last_lease;
    for (; lease != NULL; lease = lease->before) {
        int64_t rank = lease->bid->is_cancelled ? lease->price : limit_of(audit, ask, lease->bid);
        if (!lease->was_taken && lease->terms.is_interruptible &&
            lease->job->owner_number != bid->job->owner_number &&
            row->price - INCREMENT_MICRO == rank &&
            row->log_time_ns - lease->filled_ns >= lease->terms.minimum_run_ms * 1000000) {
            return lease;
        }
    }
    return NULL;
}

/* A fill that takes another's lease has that lease's rank plus the increment as its price. Where
 * this price is also due without that, the audit cannot tell whether a lease was taken. */
static bool check_price(struct audit *audit, const struct audit_ask *ask,
                        const struct audit_bid *bid, bool *ret_is_plain)
{
    const struct audit_row *row = &audit->rows.row;
    struct audit_lease *taken = taken_lease(audit, ask, bid);
    *ret_is_plain = taken == NULL;
    if (taken != NULL && !has_due_price(audit, ask, bid, row->price)) {
        taken->was_taken = true;
        return true;
    }
    if (pays_clearing_price(audit, bid)) {
        return audit_expect(audit, has_due_price(audit, ask, bid, row->price),
                            "the fill has the ask's price, or a limit that another owner named");
    }
    return audit_expect_i64(audit, "the fill has the maker's price", price_of(audit, ask, bid),
                            row->price);
}

static bool check_terms(struct audit *audit, const struct audit_ask *ask,
                        const struct audit_bid *bid, bool *ret_is_plain)
{
    const struct audit_row *row = &audit->rows.row;
    return check_price(audit, ask, bid, ret_is_plain) &&
           audit_expect(audit, row->price <= limit_of(audit, ask, bid),
                        "the fill's price is within the bid's limit") &&
           audit_expect(audit, row->price >= ask->price, "the fill's price is not below the ask") &&
           audit_expect(audit,
                        row->slots > 0 && row->slots <= ask->slots && row->slots <= bid->slots,
                        "the fill's slots are within the ask's and the bid's") &&
           audit_expect(audit, bid->width > 0 && row->slots % bid->width == 0,
                        "the fill's slots are a multiple of the width") &&
           audit_expect_i64(audit, "the fill's term is the one that was signed", bid->term_ms,
                            row->term_ns / 1000000) &&
           audit_expect(audit, row->term_ns > 0, "the fill has a term") &&
           audit_expect(audit, ask->max_term_ms == 0 || row->term_ns / 1000000 <= ask->max_term_ms,
                        "the fill's term is within the ask's");
}

bool audit_fill_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 ask_name = audit_id(&row->order);
    struct hash32 bid_name = audit_id(&row->bid);
    struct hash32 lease_name = audit_number(row->lease);
    struct audit_ask *ask = audit_map_find(&audit->asks, &ask_name);
    const struct audit_bid *bid = audit_map_find(&audit->bids, &bid_name);
    bool is_plain = false;
    if (!audit_expect(audit, row->lease > audit->last_lease, "leases are numbered upwards") ||
        !check_sides(audit, ask, bid) || !check_terms(audit, ask, bid, &is_plain) ||
        !check_priority(audit, command, ask, bid)) {
        return false;
    }
    struct hash32 instrument = audit_instrument(ask->owner_number, &row->device, row->name);
    if (!audit_expect(audit, audit_map_find(&audit->instruments, &instrument) != NULL,
                      "the fill's provider advertised the device under the fill's instrument")) {
        return false;
    }
    struct audit_lease *lease = audit_map_add(&audit->leases, &lease_name, sizeof *lease);
    if (lease == NULL) {
        return audit_out_of_memory(audit);
    }
    *lease = (struct audit_lease){.job = bid->job,
                                  .provider = row->provider,
                                  .provider_number = ask->owner_number,
                                  .device = row->device,
                                  .is_simulated = strncmp(row->name, "sim.", 4) == 0,
                                  .width = bid->width,
                                  .price = row->price,
                                  .bid = bid,
                                  .terms = ask->terms,
                                  .filled_ns = row->log_time_ns,
                                  .slots = row->slots,
                                  .has_begun = is_plain,
                                  .is_plain = is_plain,
                                  .counted = lease};
    struct hash32 device_name = audit_id(&row->device);
    struct audit_device *device = audit_map_find(&audit->devices, &device_name);
    if (device != NULL) {
        device->was_filled = true;
        lease->device_slots = device->owner_number == ask->owner_number ? device->slots : 0;
        lease->before = device->last_lease;
        device->last_lease = lease;
    }
    audit->last_lease = row->lease;
    audit->report->fills++;
    return true;
}

/* Work of a lease counts only while it has its slots. Plain fills on its device meanwhile must have
 * had other slots. A taken lease that claims to be a plain fill is exposed by later work of the
 * lease before it. Each pair of leases is checked once. */
bool audit_lease_worked(struct audit *audit, struct audit_lease *lease)
{
    struct hash32 name = audit_id(&lease->device);
    const struct audit_device *device = audit_map_find(&audit->devices, &name);
    if (!lease->has_begun) {
        lease->has_begun = true;
        lease->counted = device == NULL ? lease : device->last_lease;
    }
    if (device == NULL) {
        return true;
    }
    for (struct audit_lease *at = device->last_lease; at != lease->counted; at = at->before) {
        at->beside += at->provider_number == lease->provider_number ? lease->slots : 0;
        if (at->is_plain && at->device_slots > 0 &&
            !audit_expect(audit, at->beside + at->slots <= at->device_slots,
                          "no other lease had the lease's slots meanwhile")) {
            return false;
        }
    }
    lease->counted = device->last_lease;
    return true;
}
