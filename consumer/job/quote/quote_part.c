#include "consumer/job/quote/quote_part.h"

#include "consumer/client/client.h"
#include "consumer/client/rows.h"
#include "consumer/job/quote/quote_limits.h"
#include "consumer/job/submit.h"

#include "base/cleanup.h"

#include <string.h>

/* Returns the file's budget, else the suggestion, which may be LIMIT_NONE. */
static int64_t budget_or(const struct bourse_job *job, int64_t suggested_micro)
{
    return limit_is_set(job->file->budget_micro) ? job->file->budget_micro : suggested_micro;
}

/* The budget is for all parts. A single part's share is unknown, unless the budget is 0. */
static void add_order(const struct bourse_job *job, int64_t budget_micro,
                      Bourse__V1__QuoteRequest *body)
{
    const struct job_file *file = job->file;
    body->has_order_type = true;
    body->order_type = (uint32_t)file->order;
    body->has_interruptions = file->interruptions != JOB_ABSENT;
    body->interruptions = body->has_interruptions ? (uint32_t)file->interruptions : 0;
    body->has_budget_micro = budget_micro == 0 || (job->part_count == 1 && budget_micro > 0);
    body->budget_micro = body->has_budget_micro ? budget_micro : 0;
}

bool quote_part_at(struct bourse *bourse, const struct bourse_job *job, size_t index,
                   int64_t cap_micro, int64_t budget_micro, struct bourse_quote *ret_quote,
                   struct bourse_error *error)
{
    const struct order_part *part = &job->parts[index];
    bool apart = submit_is_checks(job, index);
    CLEANUP(codec_requirement_free)
    Bourse__V1__Requirement *needs = submit_needs(job, index, error);
    if (needs == NULL) {
        return false;
    }
    Bourse__V1__QuoteRequest body = BOURSE__V1__QUOTE_REQUEST__INIT;
    body.needs = needs;
    body.subtasks = part->subtasks;
    body.slots = part->slots;
    body.at_most = part->at_most;
    body.has_cap_micro = limit_is_set(cap_micro);
    body.cap_micro = body.has_cap_micro ? cap_micro : 0;
    Bourse__V1__Value value;
    body.value = submit_value(job->file, &value);
    body.limit_ms = part->limit_ms;
    body.term_ms = part->term_ms;
    body.expect_ns = part->expect_ns;
    body.has_apart = apart;
    body.apart = apart;
    add_order(job, budget_micro, &body);
    CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
    if (!client_call(bourse, MESSAGE_QUOTE_REQUEST, &body.base, MESSAGE_QUOTE_REPLY, &answer,
                     error)) {
        return false;
    }
    rows_quote((const void *)answer, ret_quote);
    return true;
}

static bool is_over_notional(const struct bourse_quote *quote)
{
    return strcmp(quote->explanation.refusal, reject_name(REJECT_NOTIONAL)) == 0;
}

/* A quote that the market would refuse is asked again as it would be submitted, with the suggested
 * budget. The notional bounds that budget where the bound makes the market accept it. */
static bool quote_as_submitted(struct bourse *bourse, const struct bourse_job *job, size_t index,
                               struct bourse_quote *ret_quote, struct bourse_error *error)
{
    const struct order_part *part = &job->parts[index];
    const int64_t cap_micro = job->file->cap_micro;
    const int64_t budget_micro = quote_budget(job->file, part, ret_quote);
    const int64_t asked_micro = budget_micro > 0 ? budget_micro : LIMIT_NONE;
    if (!quote_part_at(bourse, job, index, cap_micro, budget_or(job, asked_micro), ret_quote,
                       error)) {
        return false;
    }
    const bool is_bounded = is_over_notional(ret_quote) && job->part_count == 1 &&
                            !limit_is_set(job->file->budget_micro) && asked_micro > 0;
    struct bourse_bands bands = {.notional_micro = 0};
    if (is_bounded && !bourse_bands(bourse, &bands, error)) {
        return false;
    }
    const int64_t most_micro = bands.notional_micro;
    if (most_micro > 0 && most_micro < asked_micro) {
        if (!quote_part_at(bourse, job, index, cap_micro, most_micro, ret_quote, error)) {
            return false;
        }
        ret_quote->most_micro = most_micro;
    }
    return true;
}

bool submit_has_gift(const struct bourse_quote *quote)
{
    bool has = false;
    for (uint32_t i = 0; i < quote->level_count; i++) {
        has = has || quote->levels[i].price_micro == 0;
    }
    return has;
}

/* Quotes donated slots alone: the job bids its cap at most and pays nothing. Without a donated slot
 * only the least budget to start counts from a paid quote. */
static bool quote_gifts(struct bourse *bourse, const struct bourse_job *job, size_t index,
                        struct bourse_quote *ret_quote, struct bourse_error *error)
{
    const int64_t cap_micro = job->file->cap_micro;
    if (!quote_part_at(bourse, job, index, cap_micro, 0, ret_quote, error)) {
        return false;
    }
    ret_quote->is_of_gifts = true;
    ret_quote->limit_micro = cap_micro;
    ret_quote->suggested_micro = 0;
    if (submit_has_gift(ret_quote)) {
        return true;
    }
    struct bourse_quote paid;
    if (!quote_part_at(bourse, job, index, cap_micro, LIMIT_NONE, &paid, error)) {
        return false;
    }
    ret_quote->minimum_micro = paid.minimum_micro;
    ret_quote->without_gift = (uint32_t)index + 1;
    return true;
}

bool quote_part(struct bourse *bourse, const struct bourse_job *job, size_t index,
                struct bourse_quote *ret_quote, struct bourse_error *error)
{
    const struct order_part *part = &job->parts[index];
    const int64_t cap_micro = job->file->cap_micro;
    if (job->holds_nothing) {
        return quote_gifts(bourse, job, index, ret_quote, error);
    }
    if (!quote_part_at(bourse, job, index, cap_micro, budget_or(job, LIMIT_NONE), ret_quote,
                       error)) {
        return false;
    }
    const bool is_refused = ret_quote->explanation.refusal[0] != '\0';
    if (is_refused && !quote_as_submitted(bourse, job, index, ret_quote, error)) {
        return false;
    }
    ret_quote->limit_micro = cap_micro;
    const int64_t budget_micro = quote_budget(job->file, part, ret_quote);
    const int64_t most_micro = ret_quote->most_micro;
    ret_quote->suggested_micro =
        most_micro > 0 && most_micro < budget_micro ? most_micro : budget_micro;
    if (quote_is_whole(job->file) &&
        !checked_mul(ret_quote->minimum_micro, quote_lanes(part), &ret_quote->minimum_micro)) {
        ret_quote->minimum_micro = INT64_MAX;
    }
    return true;
}
