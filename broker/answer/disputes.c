#include "broker/answer/disputes.h"

#include "broker/answer/wire_view.h"
#include "exchange/view/disputes.h"
#include "protocol/limits.h"

#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------- DisputesRequest */

struct dispute_page { /* a page with everything that its rows point to */
    struct exchange_dispute rows[LIMIT_DISPUTES];
    struct exchange_account_row accusers[LIMIT_DISPUTES];
    Bourse__V1__DisputeRow wires[LIMIT_DISPUTES];
    Bourse__V1__DisputeRow *pointers[LIMIT_DISPUTES];
};

static void dispute_to_wire(const struct exchange *exchange, struct dispute_page *page, size_t i)
{
    const struct exchange_dispute *row = &page->rows[i];
    Bourse__V1__DisputeRow *wire = &page->wires[i];
    bourse__v1__dispute_row__init(wire);
    wire->index = row->index;
    wire->attempt = row->attempt;
    wire->result = wire_view(row->bytes, row->length);
    wire->seed = wire_view(&row->seed, sizeof row->seed);
    wire->has_referee = wire->referee = row->has_referee;
    if (row->accuser != EXCHANGE_NO_ACCOUNT &&
        exchange_account(exchange, row->accuser, &page->accusers[i])) {
        wire->accuser = page->accusers[i].name;
    }
    page->pointers[i] = wire;
}

struct outgoing *disputes_page(const struct exchange *exchange, const struct request *request,
                               const struct id128 *job, uint32_t from)
{
    struct dispute_page *page = calloc(1, sizeof *page);
    if (page == NULL) {
        return NULL;
    }
    Bourse__V1__DisputesReply answer = BOURSE__V1__DISPUTES_REPLY__INIT;
    answer.n_rows =
        exchange_disputes(exchange, job, from, page->rows, LIMIT_DISPUTES, &answer.next);
    for (size_t i = 0; i < answer.n_rows; i++) {
        dispute_to_wire(exchange, page, i);
    }
    answer.rows = page->pointers;
    answer.has_next = answer.next > 0;
    answer.index = exchange_index(exchange);
    struct outgoing *outgoing = outgoing_reply(request, MESSAGE_DISPUTES_REPLY, &answer.base);
    free(page);
    return outgoing;
}

/* ---------------------------------------------------------------- ExplainRequest */

/* Writes how many results are held, and for how many of them no referee is left. */
static void describe(const struct exchange_dispute_counts *counts, uint32_t held, char *ret_text,
                     size_t capacity)
{
    static const char none_left[] = "no referee of another owner is left";
    const char *at_least = counts->is_partial ? "at least " : "";
    const char *are = counts->accused == 1 ? " is" : "s are";
    if (counts->for_client == 0) {
        (void)snprintf(
            ret_text, capacity,
            "%u result%s held, rejected by one referee, until a referee of another owner "
            "decides",
            counts->accused, are);
        return;
    }
    int used = 0;
    if (counts->for_client == counts->accused && !counts->is_partial) {
        used = snprintf(ret_text, capacity, "%u result%s held, rejected by one referee, and %s",
                        counts->accused, are, none_left);
    } else {
        used = snprintf(ret_text, capacity,
                        "%u of %u held result%s rejected by one referee; for %s%u of the %u %s",
                        counts->accused, held, held == 1 ? " is" : "s are", at_least,
                        counts->for_client, held, none_left);
    }
    (void)snprintf(ret_text + used, capacity - (size_t)used,
                   ", so the client computes the check: `bourse judge JOB`, or any command that "
                   "waits for the job");
}

void disputes_explain(const struct exchange *exchange, const struct exchange_job_row *job,
                      char *text, size_t capacity, Bourse__V1__ExplainReply *answer)
{
    const struct exchange_dispute_counts counts = exchange_dispute_counts(exchange, &job->job);
    answer->has_accused = job->accused > 0;
    answer->accused = job->accused;
    answer->for_client = counts.for_client;
    answer->has_for_client = answer->for_client > 0;
    if (counts.accused == 0 && counts.for_client == 0) {
        return;
    }
    char held[LIMIT_TEXT_BYTES / 2];
    describe(&counts, job->checking, held, sizeof held);
    /* No device helps when the client has to compute every check. So the answer about the part of
     * the checks, which is the last part, has nothing about devices. */
    const bool is_all = counts.for_client == job->checking && answer->part + 1 == answer->parts;
    (void)snprintf(text, capacity, "%s%s%s", held, is_all ? "" : "; ",
                   is_all ? "" : answer->explanation->text);
    answer->explanation->text = text;
}
