/* The audit checks jobs and orders. docs/ledger.md section 6 has the rules. */
#include "audit/audit_internal.h"

#include "base/checked.h"
#include "base/limit.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

enum { CANCELLED_BY_OWNER = 0 };

/* Returns the signed limit of a bid: a cap or a value, or LIMIT_NONE. */
static int64_t cap_of(bool has_cap, int64_t cap_micro, const Bourse__V1__Value *value)
{
    return value != NULL ? value->micro : has_cap ? cap_micro : LIMIT_NONE;
}

static uint32_t rate_in(const Bourse__V1__Value *value)
{
    return value != NULL ? value->rate : AUDIT_RATE_NONE;
}

/* Returns true when an order may name the price. */
static bool may_name(const struct audit *audit, int64_t price)
{
    return price == 0 || (price >= audit->bands.least_micro && price <= audit->bands.most_micro);
}

/* Returns true when the limit may stand in a bid's row; `cap` may be LIMIT_NONE. */
static bool in_band(const struct audit *audit, uint32_t rate, int64_t cap, int64_t limit)
{
    return limit >= 0 &&
           (rate != AUDIT_RATE_NONE ||
            (limit <= audit->bands.most_micro && (!limit_is_set(cap) || may_name(audit, cap))));
}

/* Price x slots x time must be within the cap of one order; for a bid the budget bounds it, too. */
static bool in_notional(const struct audit *audit, int64_t price, int64_t slots, int64_t term_ms,
                        int64_t budget)
{
    const int64_t most = audit->bands.notional_micro;
    return most == 0 || budget <= most || term_ms <= 0 ||
           (int128)price * slots <= (int128)most * 3600000 / term_ms;
}

static bool ask_in_bounds(struct audit *audit, int64_t price, uint32_t slots, int64_t max_term_ms)
{
    return audit_expect(audit, may_name(audit, price),
                        "the ask's price is within the price band") &&
           audit_expect(
               audit,
               in_notional(audit, price, slots, max_term_ms > 0 ? max_term_ms : 3600000, INT64_MAX),
               "the order is worth no more than one order may be");
}

/* Checks a bid with so many slots at a time; by value it counts with the highest price. */
static bool bid_in_notional(const struct audit *audit, const struct audit_bid *bid, uint32_t slots,
                            int64_t limit, int64_t budget)
{
    const int64_t price = bid->rate == AUDIT_RATE_NONE ? limit : audit->bands.most_micro;
    const uint32_t most = slots == UINT32_MAX || bid->width == 0 ? slots : slots / bid->width;
    const int64_t lanes = bid->subtasks < most ? bid->subtasks : most;
    return in_notional(audit, price, lanes * bid->width, bid->term_ms, budget);
}

static bool sender_owns(struct audit *audit, const struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    return audit_expect_bytes(audit, "the row's owner signed the command",
                              audit->accounts[command->account].key.bytes, row->owner.bytes, 32);
}

bool audit_job_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 name = audit_id(&row->job);
    if (!audit_expect(audit, command->type == MESSAGE_SUBMIT_JOB,
                      "a signed SubmitJob made the job") ||
        !audit_expect_bytes(audit, "the job's id is the command's", command->envelope.id.bytes,
                            row->job.bytes, 16) ||
        !audit_expect(audit, audit_map_find(&audit->jobs, &name) == NULL,
                      "a job is accepted once")) {
        return false;
    }
    const Bourse__V1__SubmitJob *body = (const Bourse__V1__SubmitJob *)command->body;
    struct hash32 manifest = codec_hash(body->manifest);
    if (!sender_owns(audit, command) ||
        !audit_expect_bytes(audit, "the job's manifest is the one that was signed", manifest.bytes,
                            row->hash.bytes, 32) ||
        !audit_expect_i64(audit, "the job's subtasks are those that were signed", body->subtasks,
                          row->subtasks) ||
        !audit_expect_i64(audit, "the job's budget is the one that was signed", body->budget_micro,
                          row->budget) ||
        !audit_expect_i64(audit, "the job's cap is the one that was signed",
                          cap_of(body->has_cap_micro, body->cap_micro, body->value), row->cap) ||
        !audit_expect_i64(audit, "the job's width is the one that was signed", body->slots,
                          row->width) ||
        !audit_expect_name(audit, "the job's name is the one that was signed", body->name)) {
        return false;
    }
    struct audit_job *job = audit_map_add(&audit->jobs, &name, sizeof *job);
    const uint32_t checked = strcmp(body->verify, "cheap") == 0 ? body->subtasks / 2 : 0;
    uint8_t *bits = calloc(row->subtasks / 8 + 1, 1);
    struct audit_held **held =
        checked == 0 ? NULL : calloc(body->subtasks - checked, sizeof(struct audit_held *));
    const bool saves = body->has_checkpoint && body->checkpoint;
    struct hash32 *saved = saves ? calloc(body->subtasks, sizeof *saved) : NULL;
    if (job == NULL || bits == NULL || (checked > 0 && held == NULL) || (saves && saved == NULL)) {
        free(bits);
        free(held);
        free(saved);
        return audit_out_of_memory(audit);
    }
    *job = (struct audit_job){.id = row->job,
                              .entry = row->entry,
                              .owner = row->owner,
                              .owner_number = command->account,
                              .manifest = row->hash,
                              .subtasks = row->subtasks,
                              .budget = row->budget,
                              .accepted_bits = bits,
                              .checked = checked,
                              .held_now = held,
                              .saved = saved};
    audit->report->jobs++;
    return true;
}

void audit_job_end(void *value)
{
    struct audit_job *job = value;
    free(job->accepted_bits);
    free(job->held_now);
    free(job->saved);
}

/* ---- replaced orders: with fewer slots at the same price they keep their place in time, else
 * not */

static bool keeps_place(uint32_t slots_before, uint32_t slots, int64_t price_before, int64_t price)
{
    return price == price_before && slots <= slots_before;
}

static bool replaced_ask(struct audit *audit, const struct audit_command *command,
                         struct audit_ask *ask)
{
    const struct audit_row *row = &audit->rows.row;
    const Bourse__V1__OrderReplace *body = (const Bourse__V1__OrderReplace *)command->body;
    if (!audit_expect(audit, ask != NULL && !ask->is_cancelled, "the replaced order stands") ||
        !audit_expect_bytes(audit, "the replaced ask is the one that was signed", body->order.data,
                            row->order.bytes, 16) ||
        !sender_owns(audit, command) ||
        !audit_expect_bytes(audit, "the replaced ask keeps its owner", ask->owner.bytes,
                            row->owner.bytes, 32) ||
        !audit_expect_bytes(audit, "the replaced ask keeps its device", ask->device.bytes,
                            row->device.bytes, 16) ||
        !audit_expect_i64(audit, "the ask's slots are those that were signed",
                          body->has_slots ? body->slots : ask->slots, row->slots) ||
        !audit_expect_i64(audit, "the ask's price is the one that was signed",
                          body->has_price_micro ? body->price_micro : ask->price, row->price)) {
        return false;
    }
    const bool keeps = keeps_place(ask->slots, row->slots, ask->price, row->price);
    if (!keeps && !ask_in_bounds(audit, row->price, row->slots, ask->max_term_ms)) {
        return false;
    }
    ask->entry = keeps ? ask->entry : row->entry;
    ask->slots = row->slots;
    ask->price = row->price;
    return true;
}

/* A bid at market price has the limit that its job's budget allows. The limit depends on times that
 * no row has. */
static bool replaced_bid(struct audit *audit, const struct audit_command *command,
                         struct audit_bid *bid)
{
    const struct audit_row *row = &audit->rows.row;
    const Bourse__V1__OrderReplace *body = (const Bourse__V1__OrderReplace *)command->body;
    if (!audit_expect(audit, bid != NULL && !bid->is_cancelled, "the replaced order stands") ||
        !audit_expect_bytes(audit, "the replaced bid is of the job that was signed",
                            body->order.data, bid->job->id.bytes, 16) ||
        !audit_expect_bytes(audit, "the row's job is the job of the replaced bid",
                            bid->job->id.bytes, row->job.bytes, 16) ||
        !sender_owns(audit, command) ||
        !audit_expect_bytes(audit, "the bid's owner is the job's", bid->job->owner.bytes,
                            row->owner.bytes, 32) ||
        !audit_expect_i64(audit, "the replaced bid keeps its width", bid->width, row->width)) {
        return false;
    }
    const bool is_meant = !body->has_part || body->part == bid->number;
    const bool has_slots = is_meant && body->has_slots;
    const bool has_cap = is_meant && (body->has_price_micro || body->value != NULL);
    const uint32_t slots = !has_slots ? bid->slots : body->slots == 0 ? UINT32_MAX : body->slots;
    const int64_t cap = has_cap ? cap_of(true, body->price_micro, body->value) : bid->cap;
    const bool keeps = keeps_place(bid->slots, row->slots, bid->limit, row->price);
    const int64_t budget = body->has_budget_micro ? body->budget_micro : bid->job->budget;
    if (!audit_expect_i64(audit, "the replaced bid's limit keeps its unit", bid->rate,
                          has_cap ? rate_in(body->value) : bid->rate) ||
        !audit_expect_i64(audit, "the bid's slots are those that were signed", slots, row->slots) ||
        !audit_expect(audit, keeps || in_band(audit, bid->rate, cap, row->price),
                      "the bid's limit is within the market's price band") ||
        !audit_expect(audit, keeps || bid_in_notional(audit, bid, row->slots, row->price, budget),
                      "the order is worth no more than one order may be") ||
        !audit_expect(audit, !limit_is_set(cap) || row->price == cap,
                      "the bid's limit is the cap that was signed") ||
        !audit_expect(audit,
                      limit_is_set(cap) || body->has_budget_micro || row->price == bid->limit,
                      "the bid's limit changes with a cap or a budget")) {
        return false;
    }
    bid->entry = keeps ? bid->entry : row->entry;
    bid->slots = row->slots;
    bid->cap = cap;
    bid->limit = row->price;
    return true;
}

static struct audit_terms signed_terms(const Bourse__V1__AskPlace *body)
{
    if (!body->has_interruptible || !body->interruptible) {
        return (struct audit_terms){.is_interruptible = false};
    }
    return (struct audit_terms){
        .is_interruptible = true,
        .notice_ms = body->has_notice_ms ? body->notice_ms : 0,
        .minimum_run_ms = body->has_minimum_run_ms ? body->minimum_run_ms : 0,
    };
}

bool audit_ask_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 name = audit_id(&row->order);
    if (command->type == MESSAGE_ORDER_REPLACE) {
        return replaced_ask(audit, command, audit_map_find(&audit->asks, &name));
    }
    if (!audit_expect(audit, command->type == MESSAGE_ASK_PLACE,
                      "a signed AskPlace made the ask") ||
        !audit_expect_bytes(audit, "the ask's id is the command's", command->envelope.id.bytes,
                            row->order.bytes, 16) ||
        !audit_expect(audit, audit_map_find(&audit->asks, &name) == NULL,
                      "an order is placed once")) {
        return false;
    }
    const Bourse__V1__AskPlace *body = (const Bourse__V1__AskPlace *)command->body;
    struct id128 device = codec_id(body->device);
    if (!sender_owns(audit, command) ||
        !audit_expect_bytes(audit, "the ask's device is the one that was signed", device.bytes,
                            row->device.bytes, 16) ||
        !audit_expect_i64(audit, "the ask's slots are those that were signed", body->slots,
                          row->slots) ||
        !audit_expect_i64(audit, "the ask's price is the one that was signed", body->price_micro,
                          row->price) ||
        !ask_in_bounds(audit, row->price, row->slots,
                       body->has_max_term_ms ? body->max_term_ms : 0)) {
        return false;
    }
    struct hash32 device_name = audit_id(&row->device);
    const struct audit_device *known = audit_map_find(&audit->devices, &device_name);
    struct audit_ask *ask = audit_map_add(&audit->asks, &name, sizeof *ask);
    if (ask == NULL) {
        return audit_out_of_memory(audit);
    }
    *ask = (struct audit_ask){.entry = row->entry,
                              .owner = row->owner,
                              .owner_number = command->account,
                              .device = row->device,
                              .cell = known != NULL ? known->cell : (struct hash32){{0}},
                              .slots = row->slots,
                              .price = row->price,
                              .max_term_ms = body->has_max_term_ms ? body->max_term_ms : 0,
                              .has_conditions =
                                  body->n_to > 0 || body->n_hours > 0 || body->has_daily_ms,
                              .terms = signed_terms(body)};
    *(audit->last_ask != NULL ? &audit->last_ask->next : &audit->first_ask) = ask;
    audit->last_ask = ask;
    return true;
}

/* Returns the signed terms of part `number` of a job: docs/ledger.md section 6. */
static struct audit_bid signed_bid(const Bourse__V1__SubmitJob *body, uint32_t number,
                                   int64_t *ret_cap)
{
    if (number == 0) {
        uint32_t subtasks = body->subtasks;
        for (size_t i = 0; i < body->n_parts; i++) {
            subtasks -= body->parts[i]->subtasks;
        }
        *ret_cap = cap_of(body->has_cap_micro, body->cap_micro, body->value);
        return (struct audit_bid){.width = body->slots,
                                  .subtasks = subtasks,
                                  .slots = body->at_most,
                                  .term_ms = body->term_ms,
                                  .rate = rate_in(body->value)};
    }
    const Bourse__V1__Part *part = body->parts[number - 1];
    *ret_cap = cap_of(part->has_cap_micro, part->cap_micro, part->value);
    return (struct audit_bid){.width = part->slots,
                              .subtasks = part->subtasks,
                              .slots = part->at_most,
                              .term_ms = part->term_ms,
                              .rate = rate_in(part->value)};
}

/* The first part's bid has the job's id; the others have the first bytes of a hash. */
static struct id128 bid_id(const struct id128 *job, uint32_t number)
{
    uint8_t bytes[35] = "bourse/part/v1"; /* hashed with its NUL */
    struct id128 id = *job;
    if (number > 0) {
        memcpy(bytes + 15, job->bytes, 16);
        for (unsigned i = 0; i < 4; i++) {
            bytes[31 + i] = (uint8_t)(number >> 8 * i);
        }
        struct hash32 hash = sha256_of(bytes, sizeof bytes);
        memcpy(id.bytes, hash.bytes, sizeof id.bytes);
    }
    return id;
}

bool audit_bid_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    const Bourse__V1__SubmitJob *body = (const Bourse__V1__SubmitJob *)command->body;
    struct hash32 job_name = audit_id(&row->job);
    struct hash32 name = audit_id(&row->order);
    struct audit_job *job = audit_map_find(&audit->jobs, &job_name);
    if (command->type == MESSAGE_ORDER_REPLACE) {
        return replaced_bid(audit, command, audit_map_find(&audit->bids, &name));
    }
    if (!audit_expect(audit,
                      command->type == MESSAGE_SUBMIT_JOB && job != NULL &&
                          job->bid_count <= body->n_parts,
                      "one command submitted the bid and its job")) {
        return false;
    }
    int64_t cap;
    struct audit_bid bid = signed_bid(body, job->bid_count, &cap);
    struct id128 id = bid_id(&row->job, job->bid_count);
    if (!audit_expect_bytes(audit, "the bid has the id of its part", id.bytes, row->order.bytes,
                            16) ||
        !audit_expect(audit, audit_map_find(&audit->bids, &name) == NULL,
                      "an order is placed once") ||
        !audit_expect_bytes(audit, "the bid's owner is the job's", job->owner.bytes,
                            row->owner.bytes, 32) ||
        !audit_expect_i64(audit, "the bid's width is the one that was signed", bid.width,
                          row->width) ||
        !audit_expect_i64(audit, "the bid's slots are those that were signed",
                          bid.slots == 0 ? UINT32_MAX : bid.slots, row->slots) ||
        !audit_expect(audit, bid.rate < AUDIT_RATES, "the rate of the bid's value is known") ||
        !audit_expect(audit, in_band(audit, bid.rate, cap, row->price),
                      "the bid's limit is within the market's price band") ||
        !audit_expect(audit,
                      bid_in_notional(audit, &bid, row->slots, row->price, body->budget_micro),
                      "the order is worth no more than one order may be") ||
        !audit_expect(audit, limit_allows(cap, row->price),
                      "the bid's limit is not above the cap that was signed")) {
        return false;
    }
    struct audit_bid *kept = audit_map_add(&audit->bids, &name, sizeof *kept);
    if (kept == NULL) {
        return audit_out_of_memory(audit);
    }
    bid.job = job;
    bid.type = body->has_order_type               ? body->order_type
               : audit->rules < RULES_OF_CLEARING ? (uint32_t)ORDER_LIMIT
                                                  : (uint32_t)ORDER_MARKET;
    bid.number = job->bid_count;
    bid.cap = cap;
    bid.entry = row->entry;
    bid.slots = row->slots;
    bid.limit = row->price;
    *kept = bid;
    kept->next = audit->first_bid;
    audit->first_bid = kept;
    job->bid_count++;
    return true;
}

bool audit_cancel_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct hash32 name = audit_id(&row->order);
    struct audit_ask *ask = audit_map_find(&audit->asks, &name);
    struct audit_bid *bid = audit_map_find(&audit->bids, &name);
    bool *is_cancelled = ask != NULL ? &ask->is_cancelled : bid != NULL ? &bid->is_cancelled : NULL;
    if (!audit_expect(audit, is_cancelled != NULL, "the cancelled order exists") ||
        !audit_expect(audit, !*is_cancelled, "an order is cancelled once")) {
        return false;
    }
    if (ask != NULL && row->status == CANCELLED_BY_OWNER &&
        !audit_expect(audit,
                      command->type == MESSAGE_ORDER_CANCEL &&
                          command->account == ask->owner_number &&
                          memcmp(((const Bourse__V1__OrderCancel *)command->body)->order.data,
                                 row->order.bytes, 16) == 0,
                      "the ask's owner signed the cancel")) {
        return false;
    }
    *is_cancelled = true;
    return true;
}

/* A band that the command does not set stays. */
static void set_bands(struct audit *audit, const Bourse__V1__SetBands *body)
{
    struct audit_bands *bands = &audit->bands;
    bands->least_micro = body->has_least_micro ? body->least_micro : bands->least_micro;
    bands->most_micro = body->has_most_micro ? body->most_micro : bands->most_micro;
    bands->notional_micro = body->has_notional_micro ? body->notional_micro : bands->notional_micro;
}

bool audit_flag_row(struct audit *audit, struct audit_command *command)
{
    const struct audit_row *row = &audit->rows.row;
    struct key32 owner;
    const char *name;
    if (command->type == MESSAGE_FREEZE) {
        const Bourse__V1__Freeze *body = (const Bourse__V1__Freeze *)command->body;
        owner = codec_key(body->account);
        name = body->frozen ? "frozen" : "thawed";
    } else if (command->type == MESSAGE_HALT) {
        owner = audit->accounts[command->account].key;
        name = ((const Bourse__V1__Halt *)command->body)->halted ? "halted" : "resumed";
    } else if (command->type == MESSAGE_SET_BANDS) {
        owner = audit->accounts[command->account].key;
        name = "bands";
        set_bands(audit, (const Bourse__V1__SetBands *)command->body);
    } else if (command->type == MESSAGE_SET_OWNER) {
        owner = audit->accounts[command->account].key;
        name = "owner";
        if (!audit_set_owner(audit, command)) {
            return false;
        }
    } else {
        return audit_expect(audit, false,
                            "a signed Freeze, Halt, SetBands or SetOwner made the flag");
    }
    return audit_expect_bytes(audit, "the flag's account is the one that was signed", owner.bytes,
                              row->owner.bytes, 32) &&
           audit_expect_i64(audit, "the flag's state is always 0", 0, row->status) &&
           audit_expect_name(audit, "the flag's name is what was signed", name);
}
